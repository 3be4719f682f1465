# Copies, casts and fills between arrays.

from cyrt.ndarray cimport Array

# As a dense array of the type; x itself where it is of that type.
cdef Array cast(Array x, int code)
# Writes the source, broadcast and cast, into all of the target.
cdef int assign_array(Array target, Array source) except -1
cdef int fill(Array target, object value) except -1
# What is no Array, as one that is to be written into the target.
cdef Array from_host(Array target, object value)
# Steps of x broadcast to a shape; ValueError names both shapes.
cdef int broadcast_steps(Array x, int ndim, const long long* dims, long long* steps) except -1
# A target is written element by element: ValueError where elements of it coincide.
cdef int check_writable(Array target) except -1
