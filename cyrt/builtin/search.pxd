# Positions in sorted elements: the launches of search.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# Record for each of `count` contiguous values, operand 2, the number of the n elements of operand
# 1, contiguous and sorted, that are before it, or with `right` not after it, into operand 0,
# int64. Operand 3 holds the indices that sort the elements, int64, if they are not sorted;
# otherwise its buffer is NULL. The elements and values have one type.
cdef int record_search(Recorder encoder, int dtype, const Operand* operands, long long n,
                       long long count, bint right) except -1
# Record whether each value equals an element, or with `invert` none, into operand 0, bool.
cdef int record_contains(Recorder encoder, int dtype, const Operand* operands, long long n,
                         long long count, bint invert) except -1
