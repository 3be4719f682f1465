# cython: cdivision=True
"""Steps of optimizers: the launches of optimizer.cu."""

from cpython.object cimport PyObject

from cyrt.builtin.entry cimport dtype_code, entry_of, op_code
from cyrt.builtin.launch cimport MAX_MEMORIES, Launch, ceiling, record_launch_of_many, set_geometry
from cyrt.runtime.memory cimport Memory

cdef enum:
    MOST_ELEMENTS = 1 << 30     # limit for an entry of a launch's table; a multiple of each tile

cdef int SQUARE_SUM = op_code("square_sum"), FLOAT64 = dtype_code("float64")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Optimizer),)


cdef long long tile_of(int dtype) noexcept:
    return OPTIMIZER_TILE_BYTES // (8 if dtype == FLOAT64 else 4)


cdef int record_optimizer(Recorder encoder, int op, int dtype, Optimizer* params,
                          const Tensor* tensors, Py_ssize_t count,
                          const Others* others) except -1:
    cdef PyObject* memories[MAX_MEMORIES]
    cdef Launch launch
    cdef long long tile = tile_of(dtype), done = 0, elements, itemsize
    cdef unsigned int tiles
    cdef int i, entry, used, written
    cdef Py_ssize_t next = 0, first, last, tensor
    launch.entry = entry_of(encoder.state.ordinal, op, dtype)
    launch.variant = 0
    itemsize = launch.entry.itemsizes[0]
    while next < count:
        first, tiles, entry = next, 0, 0
        while next < count and entry < OPTIMIZER_TENSORS:
            elements = min(tensors[next].count - done, <long long>MOST_ELEMENTS)
            params.first[entry] = tiles
            params.elements[entry] = <unsigned int>elements
            params.gradients[entry] = (<Memory>tensors[next].gradient).address + done * itemsize
            params.tensors[entry] = (<Memory>tensors[next].array).address + done * itemsize
            tiles += <unsigned int>ceiling(elements, tile)
            entry += 1
            done += elements
            if done == tensors[next].count:
                done = 0
                next += 1
        params.count = entry
        last = next if done == 0 else next + 1
        used = 0
        for i in range(others.num_read):
            memories[used] = others.read[i]
            used += 1
        for tensor in range(first, last):
            memories[used] = tensors[tensor].gradient
            used += 1
        written = used
        for i in range(others.num_written):
            memories[used] = others.written[i]
            used += 1
        for tensor in range(first, last if op != SQUARE_SUM else first):
            memories[used] = tensors[tensor].array
            used += 1
        set_geometry(&launch.geometry, tiles, OPTIMIZER_BLOCK, 1)
        record_launch_of_many(encoder, &launch, params, memories, used, written)
        params.m += tiles * <long long>OPTIMIZER_TILE_BYTES
        params.v += tiles * <long long>OPTIMIZER_TILE_BYTES
        params.step += tiles * sizeof(int)
        if op == SQUARE_SUM:
            params.squares += tiles * sizeof(double)
    return 0
