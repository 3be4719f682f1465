# cython: cdivision=True
"""Reductions: the launches of reduce.cu."""

from cpython.object cimport PyObject
from libc.stdlib cimport calloc

from cyrt.builtin import catalogue
from cyrt.builtin.elementwise cimport record_elementwise
from cyrt.builtin.entry cimport Entry, entry_of, type_of_size
from cyrt.builtin.launch cimport WHOLE, record_launch
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.reduce_choice cimport (
    VECTOR_BYTES, Finish, Reduce, ReduceLaunch, Reduction, begin, choose, choose_parts, put_dims,
)
from cyrt.builtin.rows import reduce as family
from cyrt.builtin.space cimport MAX_NDIM, MAX_OUTER, Space, simplify
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.commit cimport Recorder
from cyrt.graph.exact_key cimport (
    Key, add_word, add_words, begin_key, find_plan, store_plan,
)
from cyrt.runtime.memory cimport Memory

cdef int num_dtypes = len(DTYPES)
cdef int COPY = catalogue.OPS.index("copy")
# Bytes of a state, by operation and element type, like the table of kernels.
cdef int* state_sizes = <int*>calloc(len(catalogue.OPS) * num_dtypes, sizeof(int))
if state_sizes == NULL:
    raise MemoryError()
for each in family.rows():
    state_sizes[<int>catalogue.OPS.index(each.op) * num_dtypes + <int>_dtype(each.dtype).code] = \
        family.state_bytes(each)
cdef int ARGMAX = catalogue.OPS.index("argmax"), ARGMIN = catalogue.OPS.index("argmin")


def param_bytes(row):
    """Return the size in bytes of the parameter of each kernel of a row."""
    return (sizeof(Reduce),) * len(row.kernels)


cdef int record_planned(Recorder encoder, const ReduceLaunch* plan,
                        const Operand* operands) except -1:
    """Record a planned launch, whose addresses are relative to the operands."""
    cdef ReduceLaunch own = plan[0]
    own.params.input += operands[1].address
    own.params.out += operands[0].address
    return record_launch(encoder, &own.launch, &own.params, operands, 2, 1 | WHOLE)


cdef int record_simplified(Recorder encoder, const Reduction* reduction, const Operand* operands,
                           const Key* key) except -1:
    """Record one launch, or two, or several if the results exceed a grid. Return 0 if there are too
    many reduced dimensions for a kernel. The plan of a single launch is stored, unless `key` is
    NULL."""
    cdef ReduceLaunch launch
    cdef Operand[2] between
    cdef Memory states
    begin(&launch, reduction, operands, False)
    if not choose(&launch, reduction):
        if not put_dims(&launch.params.reduced, &launch.params.num_reduced, reduction.reduced, 1):
            return 0
        record_split(encoder, reduction, operands)
        return 1
    if launch.num_parts == 1:
        launch.params.input -= operands[1].address
        launch.params.out -= operands[0].address
        if key != NULL:
            store_plan(key, &launch, sizeof(launch))
        record_planned(encoder, &launch, operands)
        return 1
    states = allocate_workspace(
        encoder, launch.num_parts * launch.params.outputs * reduction.state_size)
    launch.params.out = states.address
    between[0] = Operand(<PyObject*>states, states.address, NULL, [0, 0])
    between[1] = operands[1]
    record_launch(encoder, &launch.launch, &launch.params, between, 2, 1 | WHOLE)
    between[1] = between[0]
    between[0] = operands[0]
    record_parts(encoder, reduction, between, launch.num_parts)
    return 1


cdef int record_parts(Recorder encoder, const Reduction* whole, const Operand* operands,
                      unsigned int num_parts) except -1:
    """Record the combination of each result's states, part by part, in the results' order."""
    cdef ReduceLaunch launch
    cdef Reduction reduction = whole[0]
    cdef const Space* results = whole.kept
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
    reduction.kept, reduction.reduced, reduction.empty = &kept, &reduced, False
    begin(&launch, &reduction, operands, True)
    choose_parts(&launch, &reduction)
    return record_launch(encoder, &launch.launch, &launch.params, operands, 2, 1 | WHOLE)


cdef int record_split(Recorder encoder, const Reduction* whole, const Operand* operands) except -1:
    """Record the results for each index of the outermost dimension if there are too many
    dimensions; otherwise two halves."""
    cdef Reduction reduction = whole[0]
    cdef const Space* kept = whole.kept
    cdef Space part = kept[0]
    cdef int d, last = kept.ndim - 1
    cdef long long _index
    reduction.kept = &part
    if last > MAX_OUTER:
        part.ndim = last
        for _index in range(kept.shape[last]):
            record_simplified(encoder, &reduction, operands, NULL)
            part.offsets[0] += kept.strides[last][0]
            part.offsets[1] += kept.strides[last][1]
        return 0
    for d in range(kept.ndim):
        if kept.shape[d] > kept.shape[last]:
            last = d
    part.shape[last] = kept.shape[last] // 2
    record_simplified(encoder, &reduction, operands, NULL)
    part.offsets[0] += part.shape[last] * kept.strides[last][0]
    part.offsets[1] += part.shape[last] * kept.strides[last][1]
    part.shape[last] = kept.shape[last] - part.shape[last]
    record_simplified(encoder, &reduction, operands, NULL)
    return 0


cdef void set_key(Key* key, const Entry* entry, const Operand* operands, int ndim,
                  const long long* shape, unsigned long long axes, const Finish* finish) noexcept:
    cdef bint scattered_in = operands[1].strides != NULL
    cdef bint scattered_out = operands[0].strides != NULL
    cdef unsigned long long alignments = operands[1].address % VECTOR_BYTES << 4 \
        | operands[0].address % VECTOR_BYTES
    begin_key(key, entry, alignments << 16 | <unsigned int>ndim << 3 | scattered_in << 2
              | scattered_out << 1 | finish.root)
    add_word(key, axes)
    add_word(key, (<const unsigned long long*>&finish.divisor)[0])
    add_words(key, shape, ndim)
    if scattered_in:
        add_words(key, operands[1].strides, ndim)
    if scattered_out:
        add_words(key, operands[0].strides, ndim)


cdef int record_reduction(Recorder encoder, int op, int dtype, const Operand* operands, int ndim,
                          const long long* shape, unsigned long long axes,
                          const Finish* finish) except -1:
    cdef Reduction reduction
    cdef Key key
    cdef const ReduceLaunch* plan
    cdef Space kept, reduced
    # Shape and strides of the kept dimensions, and of the reduced ones.
    cdef long long[MAX_NDIM] kept_shape, kept_in, kept_out, reduced_shape, reduced_in, logical
    cdef const long long* strides[2]
    cdef long long of_input = 1, of_output = 1, of_index = 1, stride
    cdef bint indexed = op == ARGMAX or op == ARGMIN
    cdef int d, k = ndim, r = ndim
    reduction.entry = entry_of(encoder.state.ordinal, op, dtype)
    set_key(&key, reduction.entry, operands, ndim, shape, axes, finish)
    plan = <const ReduceLaunch*>find_plan(&key)
    if plan != NULL:
        return record_planned(encoder, plan, operands)
    reduction.state_size = state_sizes[op * num_dtypes + dtype]
    reduction.finish = finish
    # The arrays are filled from the last dimension on, at their ends.
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
    strides[0], strides[1] = &kept_in[k], &kept_out[k]
    simplify(&kept, 2, ndim - k, &kept_shape[k], strides)
    strides[0], strides[1] = &reduced_in[r], &logical[r]
    simplify(&reduced, 2, ndim - r if of_index else 0, &reduced_shape[r], strides)
    reduction.kept, reduction.reduced, reduction.empty = &kept, &reduced, of_index == 0
    if record_simplified(encoder, &reduction, operands, &key):
        return 0
    return record_packed(encoder, op, dtype, operands, ndim, shape, axes, finish)


cdef int record_packed(Recorder encoder, int op, int dtype, const Operand* operands, int ndim,
                       const long long* shape, unsigned long long axes,
                       const Finish* finish) except -1:
    """Record the reduction of a copy in which the reduced dimensions come last and are contiguous,
    because there are too many reduced dimensions for a kernel."""
    cdef Operand[2] copy, packed
    cdef long long[MAX_NDIM] sizes, strides_in, strides_out, natural_in, natural_out
    cdef long long count = 1, results = 1
    cdef int d, at = 0, num_kept = 0, itemsize = _dtype(DTYPES[dtype]).itemsize
    cdef Memory memory
    for d in range(ndim - 1, -1, -1):
        natural_in[d] = count if operands[1].strides == NULL else operands[1].strides[d]
        natural_out[d] = results if operands[0].strides == NULL else operands[0].strides[d]
        count *= shape[d]
        if not axes >> d & 1:
            results *= shape[d]
            num_kept += 1
    for reduced in (False, True):
        for d in range(ndim):
            if (axes >> d & 1) == reduced:
                sizes[at] = shape[d]
                strides_in[at] = natural_in[d]
                strides_out[at] = 0 if reduced else natural_out[d]
                at += 1
    memory = allocate_workspace(encoder, count * itemsize)
    copy[0] = Operand(<PyObject*>memory, memory.address, NULL, [0, 0])
    copy[1] = operands[1]
    copy[1].strides = strides_in
    record_elementwise(encoder, COPY, type_of_size[itemsize], copy, ndim, sizes)
    packed[0] = operands[0]
    packed[0].strides = strides_out
    packed[1] = copy[0]
    return record_reduction(encoder, op, dtype, packed, ndim, sizes,
                            ((1ull << (ndim - num_kept)) - 1) << num_kept, finish)
