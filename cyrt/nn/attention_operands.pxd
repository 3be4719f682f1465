# Operands of the launches of attention: strides and sinks.

from cyrt.builtin.attention cimport Steps
from cyrt.builtin.operand cimport Operand
from cyrt.ndarray cimport Array

# Set the distances of batches, heads and rows of an array of four dimensions.
cdef inline void set_steps(Steps* steps, Array x) noexcept:
    steps.batch = x.steps[0] if x.dims[0] > 1 else 0
    steps.head = x.steps[1] if x.dims[1] > 1 else 0
    steps.row = x.steps[2] if x.dims[2] > 1 else 0
# Set the operand of the sinks, for queries of an element type; return it, cast to float32 (`wide`)
# unless it has that type. None: there are no sinks.
cdef Array set_sinks(Operand* operand, object sinks, int code, long long* step, bint* wide)
