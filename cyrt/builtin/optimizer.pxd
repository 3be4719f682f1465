# Steps of optimizers: the launches of optimizer.cu.

from cpython.object cimport PyObject

from cyrt.graph.commit cimport Recorder

cdef extern from "params/optimizer.h" nogil:
    enum: OPTIMIZER_TENSORS, OPTIMIZER_BLOCK, OPTIMIZER_TILE_BYTES
    enum: OPTIMIZER_NESTEROV, OPTIMIZER_LINEAR, OPTIMIZER_EXPONENTIAL
    cdef struct Optimizer:
        unsigned long long step, m, v, squares, given_rate
        double rate, start, end
        unsigned int warmup, decay
        double log2_factor, b1, c1, log_b1, b2, c2, log_b2, eps, weight_decay, max_norm
        unsigned int flags, count
        unsigned int[1] first, elements             # OPTIMIZER_TENSORS
        unsigned long long[1] gradients, tensors    # OPTIMIZER_TENSORS

# A tensor, its gradient, the elements of either, and the first tile of its moments. Both are
# contiguous. Tensors have elements, and their tiles follow each other.
cdef struct Tensor:
    PyObject* array             # Memory, borrowed
    PyObject* gradient
    long long count
    long long tile
    Py_ssize_t index            # the index in the caller's list

# Memory whose addresses the numbers of a launch have besides those of the tensors, borrowed.
cdef struct Others:
    int num_read, num_written
    PyObject* read[2]
    PyObject* written[3]

# Return the elements of a tile of tensors of a type.
cdef long long tile_of(int dtype) noexcept
# Record the launches that step tensors of a type (`op` is one of the rules), or that sum up the
# squares of their gradients. They set the table of `params`, and leave the addresses in it changed.
cdef int record_optimizer(Recorder encoder, int op, int dtype, Optimizer* params,
                          const Tensor* tensors, Py_ssize_t count, const Others* others) except -1
