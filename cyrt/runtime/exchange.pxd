# Export of memory to other libraries: DLPack and the CUDA array interface.

from cyrt.runtime.memory cimport Memory

# Return a DLPack capsule over elements of a kind ("b", "i", "u", "f", "c"), and make the consumer's
# stream wait for the memory. `steps` are strides in elements. The capsule keeps `owner` alive until
# the consumer is done.
cdef object capsule_of(Memory owner, int ndim, const long long* dims, const long long* steps,
                       str kind, bint brain_float, int itemsize, stream, max_version, bint copied)
# Return the dict of __cuda_array_interface__.
cdef dict interface_of(Memory owner, tuple shape, strides, str typestr)
