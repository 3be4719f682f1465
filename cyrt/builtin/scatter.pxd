# Values combined into the elements that keys name: the launches of scatter.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# Record out[key] = out[key] op value for n keys and their values. There are four operands, which
# are contiguous; the first shares no memory with the others:
# - `out`: key i names the i-th element from its address, and the `length` - 1 elements behind it,
#   which no other key names unless it is the same;
# - the keys in any order, of type uint64 if `wide` is true, otherwise uint32;
# - the int64 indices that sort the keys by a stable sort;
# - the values: `length` for each key, or a single one for all if `step` is 0.
cdef int record_scatter(Recorder encoder, int op, int dtype, const Operand* operands, long long n,
                        long long length, bint wide, bint step) except -1
