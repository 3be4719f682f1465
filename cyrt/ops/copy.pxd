# Copies, casts and fills between arrays.

from cyrt.ndarray cimport Array

# Return x as a dense array of the type; x itself if it already is one.
cdef Array cast(Array x, int code)
cdef Array duplicate(Array x)
# Write the source, broadcast and cast, into all of the target.
cdef int assign_array(Array target, Array source) except -1
cdef int fill(Array target, object value) except -1
# Convert a value that is not an Array to an array that can be written into the target.
cdef Array from_host(Array target, object value)
# Write a value, broadcast and cast, into all of an Array.
cdef int assign_value(object target, object value) except -1
# Raise a ValueError unless x is None or on the device of another array. It says `name`, or
# `name: argument`, which is not put together before it is needed.
cpdef int check_device(Array x, Array like, str name, str argument=*) except -1
# Steps of x broadcast to a shape; ValueError names both shapes.
cdef int broadcast_steps(Array x, int ndim, const long long* dims, long long* steps) except -1
# Return whether an element of the source, read by those steps, may be overwritten before it is
# read, while elements of the target are written.
cdef bint overwrites(Array target, Array source, const long long* steps) noexcept
# Return `out` if it can receive a result of that type, shape and device; TypeError, ValueError.
cdef Array check_out(str name, object out, int code, int ndim, const long long* dims,
                     int ordinal=*)
# Return the result, or `out`, which may be another library's array, with the result in it.
cpdef object write_out(str name, Array result, object out)
# Raise a ValueError if the target is a read-only view.
cdef int check_writable(Array target) except -1
