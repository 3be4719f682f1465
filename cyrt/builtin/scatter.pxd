# Values combined into the elements that keys name: the launches of scatter.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# Record out[key] = out[key] op value for n keys and their values. There are four operands, which
# are contiguous; the first shares no memory with the others:
# - `out`: key i names the i-th element from its address;
# - the keys in any order, of type uint64 if `wide` is true, otherwise uint32;
# - the int64 indices that sort the keys by a stable sort;
# - the values: n of them, or a single one for all keys if `step` is 0.
cdef int record_scatter(Recorder encoder, int op, int dtype, const Operand* operands, long long n,
                        bint wide, bint step) except -1
