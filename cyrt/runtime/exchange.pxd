# Handing memory out as other libraries' arrays: DLPack and the CUDA array interface.

from cyrt.runtime.memory cimport Memory

# A DLPack capsule over elements of a kind ("b", "i", "u", "f", "c") that makes the consumer's
# stream wait. The strides are in elements; `owner` lives until the consumer is done.
cdef object capsule_of(Memory owner, int ndim, const long long* dims, const long long* steps,
                       str kind, bint brain_float, int itemsize, stream, max_version, bint copied)
# The dict of __cuda_array_interface__.
cdef dict interface_of(Memory owner, tuple shape, strides, str typestr)
