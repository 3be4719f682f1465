# Indexing by arrays of indices and by masks.

from cyrt.ndarray cimport Array

# Return the offset in elements of the element of x with the lowest address, counted from that with
# index 0, and set how many elements there are from it to the one with the highest address.
cdef long long lowest_offset(Array x, long long* extent) noexcept
# Return the offsets of the elements of x[key], counted from the lowest one: uint32, or uint64 if x
# extends beyond that. None: the key has no arrays.
cdef Array offsets_of(Array x, object key)
