# cython: cdivision=True
"""Images in another size: the launches of interpolate.cu."""

from libc.string cimport memset

from cyrt.builtin.entry cimport entry_of, op_code
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, WARP, WHOLE, Launch, ceiling, power_of_two, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NUMERATOR, Divider, divider
from cyrt.graph.commit cimport Recorder

cdef extern from "params/interpolate.h" nogil:
    cdef struct Interpolate:
        unsigned long long source, out
        InterpolateAxis[INTERPOLATE_AXES] axis
        Divider[INTERPOLATE_AXES] sizes
        Divider chunks
        unsigned int positions, channels, corners, halfway

cdef enum:
    BLOCK = 256             # threads

cdef int INTERPOLATE_VJP = op_code("interpolate_vjp")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Interpolate),)


cdef int record_interpolate(Recorder encoder, int op, int dtype, const Operand* operands,
                            const Interpolation* images) except -1:
    cdef Launch launch
    cdef Interpolate params
    cdef long long positions = images.batch, chunks, blocks
    cdef int d, size
    cdef unsigned int x = power_of_two(images.channels, 1, WARP)
    memset(&params, 0, sizeof(params))
    for d in range(INTERPOLATE_AXES):
        size = images.axis[d].input if op == INTERPOLATE_VJP else images.axis[d].output
        positions *= size
        if positions > MAX_NUMERATOR:
            break
        params.axis[d] = images.axis[d]
        params.sizes[d] = divider(size)
    chunks = ceiling(images.channels, x)
    blocks = chunks * ceiling(positions, BLOCK // x)
    if positions > MAX_NUMERATOR or blocks > MAX_BLOCKS:
        raise ValueError(f"interpolate: more than {<long long>MAX_NUMERATOR:,} positions or blocks "
                         f"are not supported, got {positions:,} and {blocks:,}")
    params.source, params.out = operands[1].address, operands[0].address
    params.chunks = divider(<unsigned int>chunks)
    params.positions = <unsigned int>positions
    params.channels = <unsigned int>images.channels
    params.corners, params.halfway = images.corners, images.halfway
    launch.entry = entry_of(encoder.state.ordinal, op, dtype)
    launch.variant = images.neighbours
    set_geometry(&launch.geometry, blocks, x, BLOCK // x)
    return record_launch(encoder, &launch, &params, operands, 2, 1 | WHOLE)
