# Memory that a kernel uses: its pointer arguments, and what is declared beside them.

from cyrt.graph.recording cimport Use
from cyrt.kernels.packing cimport Param
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.state cimport Block

# Of 8 bytes that may be a pointer or a number: whether a pointer is meant.
cdef bint is_memory(object value)
# Sets which arrays a pointer takes; `fit`: jit.signature.Elements, or None for all.
cdef int set_checks(Param* param, object fit, bint strided) except -1
# Whether memory may not fit, and check_array has to look.
cdef inline bint is_doubtful(const Param* param, Memory memory) noexcept:
    return ((memory.traits & param.refused) | ((memory.address | memory.size) & param.coarse)) != 0
# TypeError or ValueError where an array does not fit. `description`: dtype, shape and strides
# of another library's; None: an Array's own are asked.
cdef int check_array(const Param* param, Memory memory, tuple description) except -1
# The checked memory of what is given for a pointer and is no Array or Buffer of cyrt's.
cdef Memory pointer_argument(object value, const Param* param)
# Memory of one device in a kernel's hands on another.
cdef object wrong_device(const Block* block, int ordinal)
# [(Buffer, whether it is written)] of `reads=` and `writes=`; None where neither is given.
cdef list declared_memory(str name, reads, writes)
# Adds them to a launch's foreign Buffers (or None) and uses; returns both, the uses by their count.
cdef tuple use_declared(str name, list declared, int ordinal, list foreign, Use* uses, int count)
# The Buffers that a launch writes, as far as its arguments and `writes=` tell.
cdef list written_memory(str name, const Param* params, tuple args, reads, writes)
