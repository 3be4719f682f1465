# Memory that kernels need besides their operands.

from cyrt.graph.recorder cimport Recorder
from cyrt.runtime.memory cimport Buffer

# The first bytes of a Buffer, a multiple of 4, become 0.
cdef int fill_zeros(Recorder encoder, Buffer scratch, long long nbytes) except -1
