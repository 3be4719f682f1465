# Temporary memory of kernels.

from cyrt.graph.commit cimport Recorder
from cyrt.runtime.memory cimport Memory

# Allocate memory for launches of the encoder, with undefined bytes.
cdef Memory allocate_workspace(Recorder encoder, long long nbytes)
# Record that its first bytes, a multiple of 4, become 0.
cdef int fill_zeros(Recorder encoder, Memory workspace, long long nbytes) except -1
