# cython: cdivision=True
"""Reductions: from an operation, an array and its axes to recorded kernels."""

from cpython.object cimport PyObject
from libc.stdlib cimport calloc
from libc.string cimport memset

from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport Recorder
from cyrt.kernels import catalogue
from cyrt.kernels.dispatch cimport perform
from cyrt.kernels.families import reduce as family
from cyrt.kernels.reduction_choice cimport (
    Finish, Launch, begin_launch, choose, choose_parts, put_dims,
)
from cyrt.kernels.row import BY_SIZE
from cyrt.kernels.space cimport MAX_NDIM, MAX_OUTER, Space, simplify
from cyrt.kernels.entries cimport (
    WHOLE,
    Entry, Explained, Operand, dtype_code, entry_of, op_code, record_entry,
)
from cyrt.runtime.device cimport current_ordinal
from cyrt.runtime.memory cimport Buffer
from cyrt.runtime.pool cimport allocate
from cyrt.runtime.state cimport StreamState

cdef enum:
    VECTOR_BYTES = 16

cdef int num_dtypes = len(DTYPES)
cdef int COPY = catalogue.OPS.index("copy")
# By operation and element type, as the table of kernels: bytes of a state.
cdef int* state_sizes = <int*>calloc(len(catalogue.OPS) * num_dtypes, sizeof(int))
if state_sizes == NULL:
    raise MemoryError()
for each in family.rows():
    state_sizes[<int>catalogue.OPS.index(each.op) * num_dtypes + <int>_dtype(each.dtype).code] = \
        family.state_bytes(each)
cdef unsigned long long places = 0      # bit i: operation i gives logical indices
for name in ("argmax", "argmin"):
    places |= 1ull << <int>catalogue.OPS.index(name) % 64


cdef inline int end_launch(Recorder encoder, const Launch* launch,
                           Explained explained) except -1:
    return record_entry(encoder, launch.entry, launch.variant, &launch.geometry,
                        <const char*>&launch.params, launch.operands, 2, 1 | WHOLE, explained)


cdef Buffer temporary(StreamState* stream, long long nbytes):
    cdef Buffer buffer = Buffer.__new__(Buffer)
    buffer.block = allocate(stream, nbytes)
    buffer.address = buffer.block.address
    buffer.size = nbytes
    return buffer


cdef int record_spaces(Recorder encoder, const Entry* entry, int state_size,
                       const Operand* operands, const Space* kept, const Space* reduced,
                       bint empty, const Finish* finish, Explained explained) except -1:
    """One launch, or two; several where there are more results than a grid covers. 1 where the
    reduced dimensions are too many."""
    cdef Launch launch
    cdef Operand[2] between
    cdef Buffer states
    cdef int itemsize = entry.itemsizes[1]
    cdef int items = VECTOR_BYTES // max(2, itemsize)
    begin_launch(&launch, entry, operands, kept, reduced, empty, itemsize, items, finish)
    if not choose(&launch):
        if not put_dims(&launch.params.reduced, &launch.params.num_reduced, reduced, 1):
            return 1
        return record_split(encoder, entry, state_size, operands, kept, reduced, empty, finish,
                            explained)
    if launch.num_parts == 1:
        return end_launch(encoder, &launch, explained)
    states = None if explained is not None else temporary(
        encoder.state, launch.num_parts * launch.params.outputs * state_size)
    between[0].buffer = between[1].buffer = <PyObject*>states
    between[0].address = between[1].address = 0 if states is None else states.address
    between[1].strides = NULL
    launch.params.output = between[0].address
    launch.operands = between
    between[1].buffer, between[1].address = operands[1].buffer, operands[1].address
    end_launch(encoder, &launch, explained)
    between[1].buffer, between[1].address = between[0].buffer, between[0].address
    between[0].buffer, between[0].address = operands[0].buffer, operands[0].address
    return record_parts(encoder, entry, state_size, between, kept, launch.num_parts, finish,
                        explained)


cdef int record_parts(Recorder encoder, const Entry* entry, int state_size,
                      const Operand* operands, const Space* results, unsigned int num_parts,
                      const Finish* finish, Explained explained) except -1:
    """Puts together the states of each result, which lie as its number says, part by part."""
    cdef Launch launch
    cdef Space kept, reduced
    cdef long long number = 1
    cdef int d, last = -1
    for d in range(results.ndim):
        if last >= 0 and kept.strides[last][1] * kept.shape[last] == results.strides[d][1]:
            kept.shape[last] *= results.shape[d]
        else:
            last += 1
            kept.shape[last] = results.shape[d]
            kept.strides[last][0] = number
            kept.strides[last][1] = results.strides[d][1]
        number *= results.shape[d]
    kept.ndim = last + 1
    kept.offsets[0], kept.offsets[1] = 0, results.offsets[1]
    reduced.ndim = 1
    reduced.shape[0] = num_parts
    reduced.strides[0][0], reduced.strides[0][1] = number, 0
    reduced.offsets[0] = reduced.offsets[1] = 0
    begin_launch(&launch, entry, operands, &kept, &reduced, False, state_size, 1, finish)
    choose_parts(&launch)
    return end_launch(encoder, &launch, explained)


cdef int record_split(Recorder encoder, const Entry* entry, int state_size,
                      const Operand* operands, const Space* kept, const Space* reduced,
                      bint empty, const Finish* finish, Explained explained) except -1:
    """The results index by index of the outermost dimension where there are too many; else two
    halves."""
    cdef Space part = kept[0]
    cdef int d, last = kept.ndim - 1
    cdef long long _index
    if last > MAX_OUTER:
        part.ndim = last
        for _index in range(kept.shape[last]):
            record_spaces(encoder, entry, state_size, operands, &part, reduced, empty, finish,
                          explained)
            part.offsets[0] += kept.strides[last][0]
            part.offsets[1] += kept.strides[last][1]
        return 0
    for d in range(kept.ndim):
        if kept.shape[d] > kept.shape[last]:
            last = d
    part.shape[last] = kept.shape[last] // 2
    record_spaces(encoder, entry, state_size, operands, &part, reduced, empty, finish, explained)
    part.offsets[0] += part.shape[last] * kept.strides[last][0]
    part.offsets[1] += part.shape[last] * kept.strides[last][1]
    part.shape[last] = kept.shape[last] - part.shape[last]
    return record_spaces(encoder, entry, state_size, operands, &part, reduced, empty, finish,
                         explained)


cdef int record_reduction(Recorder encoder, int op, int dtype, const Operand* operands, int ndim,
                          const long long* shape, unsigned long long axes,
                          const Finish* finish) except -1:
    return perform_reduction(encoder, encoder.state.ordinal, op, dtype, operands, ndim, shape,
                             axes, finish, None)


cdef int perform_reduction(Recorder encoder, int ordinal, int op, int dtype,
                           const Operand* operands, int ndim, const long long* shape,
                           unsigned long long axes, const Finish* finish,
                           Explained explained) except -1:
    cdef const Entry* entry = entry_of(ordinal, op, dtype)
    cdef Space kept, reduced
    # The kept dimensions, the reduced ones: shape, and strides as the spaces have them.
    cdef long long[MAX_NDIM] kept_shape, kept_in, kept_out, reduced_shape, reduced_in, logical
    cdef const long long* strides[2]
    cdef long long of_input = 1, of_output = 1, of_index = 1, stride
    cdef bint indexed = places >> op % 64 & 1
    cdef int d, num_kept = 0, num_reduced = 0, k = ndim, r = ndim
    # From the last dimension on, into the arrays' ends.
    for d in range(ndim - 1, -1, -1):
        stride = of_input if operands[1].strides == NULL else operands[1].strides[d]
        of_input *= shape[d]
        if axes >> d & 1:
            r -= 1
            reduced_shape[r] = shape[d]
            reduced_in[r] = stride
            logical[r] = of_index if indexed else 0
            of_index *= shape[d]
        else:
            k -= 1
            kept_shape[k] = shape[d]
            kept_in[k] = stride
            kept_out[k] = of_output if operands[0].strides == NULL else operands[0].strides[d]
            of_output *= shape[d]
    if of_output == 0:
        return 0
    num_kept, num_reduced = ndim - k, ndim - r
    strides[0], strides[1] = &kept_in[k], &kept_out[k]
    simplify(&kept, 2, num_kept, &kept_shape[k], strides)
    strides[0], strides[1] = &reduced_in[r], &logical[r]
    simplify(&reduced, 2, num_reduced if of_index else 0, &reduced_shape[r], strides)
    if record_spaces(encoder, entry, state_sizes[op * num_dtypes + dtype], operands, &kept,
                     &reduced, of_index == 0, finish, explained) == 0:
        return 0
    return record_packed(encoder, ordinal, op, dtype, operands, num_kept, &kept_shape[k],
                         &kept_in[k], &kept_out[k], num_reduced, &reduced_shape[r],
                         &reduced_in[r], finish, explained)


cdef int record_packed(Recorder encoder, int ordinal, int op, int dtype, const Operand* operands,
                       int num_kept, const long long* kept_shape, const long long* kept_in,
                       const long long* kept_out, int num_reduced,
                       const long long* reduced_shape, const long long* reduced_in,
                       const Finish* finish, Explained explained) except -1:
    """Where the dimensions are too many for a kernel: of a copy, contiguous in what is reduced."""
    cdef Operand[2] copy, packed
    cdef long long[MAX_NDIM] whole, stride, out_stride
    cdef Buffer buffer = None
    cdef long long count = 1
    cdef int d, itemsize = _dtype(DTYPES[dtype]).itemsize
    for d in range(num_kept + num_reduced):
        whole[d] = kept_shape[d] if d < num_kept else reduced_shape[d - num_kept]
        stride[d] = kept_in[d] if d < num_kept else reduced_in[d - num_kept]
        out_stride[d] = kept_out[d] if d < num_kept else 0
        count *= whole[d]
    if explained is None:
        buffer = temporary(encoder.state, count * itemsize)
    copy[0].buffer, copy[0].strides = <PyObject*>buffer, NULL
    copy[0].address = 0 if buffer is None else buffer.address
    copy[1] = operands[1]
    copy[1].strides = stride
    perform(encoder, ordinal, COPY, _dtype(BY_SIZE[itemsize]).code, copy, num_kept + num_reduced,
            whole, explained)
    packed[0] = operands[0]
    packed[0].strides = out_stride
    packed[1] = copy[0]
    return perform_reduction(encoder, ordinal, op, dtype, packed, num_kept + num_reduced, whole,
                             ((1ull << num_reduced) - 1) << num_kept, finish, explained)


def explain_reduction(op, dtype, shape, axes, strides=None):
    """Which launches a reduction takes on the current device.

    Parameters
    ----------
    op : str
        Of the catalogue: ``"sum"``.
    dtype : str
        Of the input.
    shape : sequence of int
    axes : sequence of int
    strides : sequence of int, optional
        In elements; None for contiguous.

    Returns
    -------
    list of tuple
        Kernel, grid and block of each.
    """
    cdef Operand[2] operands
    cdef long long[MAX_NDIM] sizes, steps
    cdef Finish finish = Finish(1.0, False)
    cdef Explained explained = Explained()
    cdef unsigned long long mask = 0
    cdef int d
    memset(operands, 0, sizeof(operands))
    operands[0].buffer = operands[1].buffer = <PyObject*>None       # something, at address 0
    for d in range(len(shape)):
        sizes[d] = shape[d]
        if strides is not None:
            steps[d] = strides[d]
    for d in axes:
        mask |= 1ull << d
    if strides is not None:
        operands[1].strides = steps
    perform_reduction(None, current_ordinal(), op_code(op), dtype_code(dtype), operands,
                      len(shape), sizes, mask, &finish, explained)
    return explained.launches
