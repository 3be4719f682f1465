# Attention of many rows of queries by cuDNN, where there is one: recorded from templates.
#
# INVARIANTS
# - Everything that selects the library's plan is in the key: types, every size and stride, the
#   scale, and whether it is causal or has a mask. Operands are aligned to ALIGNMENT.
# - A causal row sees a key at least, and the scale is above 0: what the library makes of others is
#   not what this package does. A mask hides keys, by -infinity, or adds 0: in the library a large
#   number becomes an infinity. A row of -infinity gives 0.
# - When the library is asked is decided by counting, and never by the time: a program whose calls
#   come in the same order has the same results. A key's first calls are those of other kernels.
# - Plans whose results differ from run to run are not used. The workspace is a block of the pool
#   for each call, so calls on several streams share none.

from cyrt.builtin.flash_attention cimport FlashSpace
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# Return whether the library is tried for the attention of operands of these sizes, without sinks.
cdef bint is_for_library(int ordinal, const FlashSpace* space) except -1
# Record the attention; operands and space are those of record_flash_attention. Return False, and
# record nothing, if it is small, if its like has come too seldom to be worth a plan, if the library
# does not provide it, or if there is no memory for its workspace.
cdef bint record_library_attention(Recorder encoder, int dtype, const Operand* operands,
                                   const FlashSpace* space) except -1
