from cyrt.driver.cuda cimport CUevent

cdef class Event:
    cdef CUevent handle
    cdef int ordinal
    cdef unsigned int epoch
    cdef bint timing
    cdef bint recorded
    cdef object __weakref__

    cdef int live(self) except -1
