# Reductions over axes.
#
# INVARIANTS
# - Arguments are checked, and memory is allocated, before anything is recorded.

from cyrt.builtin.reduce cimport Finish
from cyrt.ndarray cimport Array

# Return the axes as bits: all for None, or those of an int or a tuple.
cdef unsigned long long axes_mask(Array x, object axis) except? 0
# Record any reduction of the catalogue, on a type for which it has a kernel.
cdef Array reduce_array(int op, Array x, unsigned long long axes, object keepdims,
                        const Finish* finish)
