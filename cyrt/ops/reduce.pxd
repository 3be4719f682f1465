# Reductions over axes.
#
# INVARIANTS
# - Everything is checked, and memory taken, before anything is recorded.

from cyrt.kernels.reduction_choice cimport Finish
from cyrt.ndarray cimport Array

# The axes as bits: all for None, else an int's or a tuple's.
cdef unsigned long long axes_mask(Array x, object axis) except? 0
# Any reduction of the catalogue, on a type that it has a kernel for.
cdef Array reduce_array(int op, Array x, unsigned long long axes, bint keepdims,
                        const Finish* finish)
