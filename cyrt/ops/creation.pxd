# Creation of arrays.

from cyrt.ndarray cimport Array

# Allocate an array on a device; None: the current one.
cdef Array make(shape, int code, device)
# Return the ordinal of a device, or of the current one for None.
cdef int chosen_device(object device) except -1
# Return a Python number, also for an Array of no dimensions; TypeError for anything else.
cdef object number_of(object value, str name, str argument)
