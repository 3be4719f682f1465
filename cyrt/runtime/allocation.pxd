# C arrays on the heap, which are freed by `free`.

from libc.stdlib cimport calloc, realloc


cdef inline void* allocate_zeroed(size_t nbytes) except NULL:
    """Allocate bytes that are 0."""
    cdef void* array = calloc(max(nbytes, <size_t>1), 1)
    if array == NULL:
        raise MemoryError()
    return array


cdef inline void* reallocate(void* array, size_t nbytes) except NULL:
    """Give an array another size, and return its new address. After a MemoryError it is as before.
    """
    cdef void* moved = realloc(array, nbytes)
    if moved == NULL:
        raise MemoryError()
    return moved
