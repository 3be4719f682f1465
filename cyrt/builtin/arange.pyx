"""Evenly spaced numbers: the launches of arange.cu."""


from cyrt.builtin import catalogue
from cyrt.builtin.elementwise cimport set_grid
from cyrt.builtin.entry cimport entry_of
from cyrt.builtin.launch cimport WHOLE, Launch, record_launch
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport Source
from cyrt.graph.commit cimport Recorder

cdef extern from "params/arange.h" nogil:
    cdef struct Arange:
        Source start, step
        unsigned long long out
        long long n

cdef int ARANGE = catalogue.OPS.index("arange")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Arange),)


cdef int record_arange(Recorder encoder, int dtype, const Operand* operands,
                       long long n) except -1:
    cdef Arange params
    cdef Launch launch
    cdef int i
    launch.entry = entry_of(encoder.state.ordinal, ARANGE, dtype)
    launch.variant = 0
    if n == 0:
        return 0
    for i in range(2):
        params.start.word[i] = operands[1].value[i]
        params.step.word[i] = operands[2].value[i]
    params.out = operands[0].address
    params.n = n
    if not set_grid(&launch, n, 1):
        raise ValueError(f"arange: {n:,} elements are more than a grid covers")
    return record_launch(encoder, &launch, &params, operands, 1, 1 | WHOLE)
