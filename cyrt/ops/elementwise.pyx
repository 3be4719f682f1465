"""Elementwise operations: types of operands and results, numbers, ``out=`` and ``where=``."""

cimport cython
from cpython.bool cimport PyBool_Check
from cpython.complex cimport PyComplex_Check
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check, PyFloat_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check, PyLong_CheckExact
from cpython.object cimport PyObject
from libc.math cimport ceil, floor, isinf, isnan
from libc.string cimport memcpy, memset

import numpy as np

from cyrt.builtin import catalogue
from cyrt.builtin.elementwise cimport (
    BINARY, INPUT_WORD, NUMBER_LEFT, NUMBER_RIGHT, OUT_WORD, UNARY, Form, call_key,
    record_contiguous, record_elementwise,
)
from cyrt.builtin.entry cimport MAX_OPS, WIDEST, op_code
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NDIM, MAX_OPERANDS
from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.hazards cimport is_ordered
from cyrt.graph.recorder cimport encoder_of
from cyrt.graph.recording cimport Node, Use
from cyrt.graph.replay_call cimport (
    is_verified, next_call, note_call, params_of, replay_without_versions, uses_of,
)
from cyrt.kernels.vectorcall cimport PyVectorcall_NARGS, Vectorcall, offer_vectorcall
from cyrt.ndarray cimport (
    Array, device_of, give_memory, has_shape, itemsizes, new_array_on, overlaps, set_operand,
    shape_of, unallocated, unallocated_like,
)
from cyrt.operators import functions
from cyrt.ops.arguments import is_of_others, refuse_array, refuse_device
from cyrt.ops.copy cimport (
    assign_array, broadcast_steps, cast, check_device, check_out, fill, overwrites, write_out,
)
from cyrt.ops.promotion cimport (
    BOOL, FLOAT32, FLOAT64, NUM_DTYPES, is_number, kinds, outputs, promote, promote_number,
    put_number, python_number, refuse_type, same_kind,
)
from cyrt.ops.tensors cimport view_operand, view_other, view_output
from cyrt.runtime.memory cimport READ_ONLY, Memory, block_of, live_block, overwriting
from cyrt.runtime.pool cimport allocate_next, is_next, is_own
from cyrt.runtime.state cimport OVERWRITE, READ, Access, Block, StreamState
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, note_write, recording
from cyrt.tape cimport Operation, call_operation, record_call

cdef int WHERE = op_code("where")
cdef unsigned long long[2] no_number
# Results of comparisons with a number on the right that is below all of the type, and above it;
# otherwise -1.
cdef signed char[MAX_OPS][2] beyond
memset(beyond, -1, sizeof(beyond))
for _name, _low, _high in (("equal", 0, 0), ("not_equal", 1, 1), ("less", 0, 1),
                           ("less_equal", 0, 1), ("greater", 1, 0), ("greater_equal", 1, 0)):
    beyond[op_code(_name)][0] = _low
    beyond[op_code(_name)][1] = _high
# The orders in which a float on the right is rounded up to an int, that of the left down.
cdef bint[MAX_OPS] rounds_up
memset(rounds_up, 0, sizeof(rounds_up))
rounds_up[op_code("less")] = rounds_up[op_code("greater_equal")] = True
cdef object OUTSIDE = 1 << 64       # out of the range of every integer type, as its negative is
cdef int POW = op_code("pow")
# The operations that are powers by some numbers, exactly rounded.
cdef dict powers = {1: op_code("positive"), 2: op_code("square"), 0.5: op_code("sqrt"),
                    -1: op_code("reciprocal")}
# The operations that compute bool in int8, as NumPy's do.
cdef bint[MAX_OPS] bool_as_int8
memset(bool_as_int8, 0, sizeof(bool_as_int8))
for _name in ("floor_divide", "remainder", "pow", "bitwise_left_shift", "bitwise_right_shift"):
    bool_as_int8[op_code(_name)] = True
cdef int INT8 = _dtype("int8").code
# The operations for which a number is true or false.
cdef bint[MAX_OPS] logical
memset(logical, 0, sizeof(logical))
for _name in ("logical_and", "logical_or", "logical_xor"):
    logical[op_code(_name)] = True
# The names of operands where they are not x1 and x2; those of gradients are g and x.
cdef dict names_of = {
    "where": ("condition", "x1", "x2"), "swiglu": ("gate", "up"),
    "multiply_add": ("x1", "x2", "x3"), "scale_centered": ("x", "mean", "scale"),
}


cdef inline int compute_type(int op, int code) except -1:
    """The type that an operation computes in: int8 for bool where NumPy does so, and float32 for
    integers without a kernel of their own."""
    if outputs[op][code] >= 0:
        return code
    if code == BOOL and bool_as_int8[op]:
        return INT8
    if (kinds[code] == c"i" or kinds[code] == c"u" or kinds[code] == c"b") \
            and outputs[op][FLOAT32] >= 0:
        for i in range(NUM_DTYPES):
            if kinds[i] == c"i" and outputs[op][i] >= 0:
                return refuse_type(op, code)
        return FLOAT32
    return refuse_type(op, code)


# -- calls that are replayed by their key ----------------------------------------------------------


cdef inline bint is_same_operand(const Use* use, Access access, const Block* block,
                                 Memory operand, const StreamState* stream) noexcept:
    """Return whether an aligned operand has the block of a use of that access, which is ordered."""
    return use.block == block and is_ordered(block, stream, access) and is_own(block, stream) \
        and operand.address & (WIDEST - 1) == 0


cdef inline bint replay(StreamState* stream, Node* node, Form form, Array x, const Block* block,
                        PyObject* y, const unsigned long long* number, Array out,
                        bint allocated) noexcept:
    """Replay a call on dense arrays of one shape and type, or an array and a number, if it is the
    script's next node, which has its key. If the result `out` is not allocated, it receives the
    node's block."""
    cdef unsigned long long* words
    cdef Use* uses = uses_of(stream, node)
    cdef const Use* result = &uses[1 + (form == BINARY)]
    cdef Block* to = result.block
    if not is_same_operand(uses, READ, block, x, stream):
        return False
    words = <unsigned long long*>params_of(stream, node)
    words[INPUT_WORD + (form == NUMBER_LEFT)] = x.address
    if form == BINARY:
        if not is_same_operand(&uses[1], READ, block_of(<Memory>y), <Memory>y, stream):
            return False
        words[INPUT_WORD + 1] = (<Memory>y).address
    elif form != UNARY:
        words[INPUT_WORD + (form == NUMBER_RIGHT)] = number[0]
    if allocated:
        if result.access != overwriting(out) \
                or not is_same_operand(result, result.access, block_of(out), out, stream):
            return False
    elif result.access != OVERWRITE or not is_ordered(to, stream, OVERWRITE) \
            or not is_own(to, stream):
        return False
    words[OUT_WORD] = out.address if allocated else to.address
    if is_verified(stream):             # It is recorded, and allocated there.
        if allocated or is_next(stream, to, out.size):
            note_call(stream)
        return False
    if not allocated:
        if not allocate_next(stream, to, out.size):
            return False
        out.block, out.address = to, to.address
    note_write(to, OVERWRITE)       # To ask first whether a tape exists would take longer.
    replay_without_versions(stream, uses, 2 + (form == BINARY))
    return True


# -- any operands ----------------------------------------------------------------------------------


cdef int refuse_devices(int op, int operand, int found, int expected) except -1:
    name = catalogue.OPS[op]
    names = names_of.get(name, ("g", "x") if name.endswith("_vjp") else ("x1", "x2"))
    refuse_device(f"{name}: {names[operand]}", found, expected)


cdef int refuse_shapes(int op, int count, const Operand* operands) except -1:
    shapes = " and ".join([str(shape_of(<Array>operands[i].buffer)) for i in range(1, count + 1)
                           if operands[i].buffer != NULL])
    raise ValueError(f"{catalogue.OPS[op]}: shapes {shapes} do not broadcast")


cdef Array record(int op, int code, int count, PyObject** operands, Array out):
    cdef Operand[MAX_OPERANDS] raw
    cdef int i
    for i in range(count):
        if isinstance(<object>operands[i], Array):
            set_operand(&raw[i + 1], <Array>operands[i])
        else:
            raw[i + 1].buffer, raw[i + 1].strides = NULL, NULL
            put_number(type_of(op, code, i), <object>operands[i], raw[i + 1].value)
    return record_operands(op, code, count, raw, out)


cdef inline int type_of(int op, int code, int operand) noexcept:
    """Return the type that an operand is cast to: the condition of a choice is of bool."""
    return BOOL if op == WHERE and operand == 0 else code


cdef Array record_operands(int op, int code, int count, Operand* operands, Array out):
    """Record an operation on arrays, and numbers in the type that it computes in."""
    cdef long long[MAX_NDIM] joint
    cdef long long[MAX_OPERANDS][MAX_NDIM] broadcast
    cdef const long long* dims = NULL       # The result's; the arrays' own where all are equal.
    cdef const long long* steps
    cdef Block* block
    cdef Array x, target = out
    cdef list casts = None                  # keeps the casts alive until they are recorded
    cdef StreamState* stream
    cdef int i, type, result = outputs[op][code], ndim = 0, ordinal = -1
    cdef bint alike = True, ready = True, aside = False
    for i in range(1, count + 1):
        if operands[i].buffer == NULL:
            continue
        block = live_block(<Array>operands[i].buffer)
        if dims == NULL:
            dims, ndim = (<Array>operands[i].buffer).dims, (<Array>operands[i].buffer).ndim_
            ordinal = block.ordinal
        else:
            alike = alike and has_shape(<Array>operands[i].buffer, ndim, dims)
            if block.ordinal != ordinal:
                refuse_devices(op, i - 1, block.ordinal, ordinal)
        ready = ready and (<Array>operands[i].buffer).code == type_of(op, code, i - 1)
    if not alike:
        ndim = join_shapes(op, count, operands, joint, broadcast)
        dims = joint
    if out is not None:
        check_out(catalogue.OPS[op], out, result, ndim, dims, ordinal)
    for i in range(1, 1 if ready and out is None else count + 1):
        if operands[i].buffer == NULL:
            continue
        x = <Array>operands[i].buffer
        type = type_of(op, code, i - 1)
        if x.code != type:
            x = cast(x, type)
            casts = casts or []
            casts.append(x)
            set_operand(&operands[i], x)
            if not has_shape(x, ndim, dims):
                broadcast_steps(x, ndim, dims, broadcast[i])
                operands[i].strides = broadcast[i]
        steps = operands[i].strides
        if out is not None and x is not out:
            aside = aside or overwrites(out, x, x.steps if steps == NULL else <long long*>steps)
    stream = current_state(ordinal)
    if out is None or out.code != result or aside:
        target = new_array_on(stream, result, ndim, dims)
    set_operand(&operands[0], target)
    record_elementwise(encoder_of(stream), op, code, operands, ndim, dims)
    if out is not None and target is not out:
        assign_array(out, target)
        return out
    return target


cdef inline int join_shapes(int op, int count, Operand* operands, long long* dims,
                            long long[MAX_NDIM]* broadcast) except -1:
    """Broadcast the shapes of arrays together, and set the strides of those that repeat elements.
    Return the number of dimensions."""
    cdef long long size, elements = 1
    cdef int d, i, own, ndim = 0
    for i in range(1, count + 1):
        if operands[i].buffer != NULL and (<Array>operands[i].buffer).ndim_ > ndim:
            ndim = (<Array>operands[i].buffer).ndim_
    for d in range(ndim):
        dims[d] = 1
        for i in range(1, count + 1):
            if operands[i].buffer == NULL:
                continue
            own = d + (<Array>operands[i].buffer).ndim_ - ndim
            size = (<Array>operands[i].buffer).dims[own] if own >= 0 else 1
            if size == 1:
                broadcast[i][d] = 0
                continue
            broadcast[i][d] = (<Array>operands[i].buffer).steps[own]
            if dims[d] == 1:
                dims[d] = size
            elif size != dims[d]:
                refuse_shapes(op, count, operands)
        elements *= dims[d]
    for i in range(1, count + 1):
        if operands[i].buffer != NULL and (
                (<Array>operands[i].buffer).count != elements
                or (<Array>operands[i].buffer).ndim_ != ndim):
            operands[i].strides = broadcast[i]
    return ndim


cdef inline bint may_write(int op, Form form, Array x, PyObject* other, Array out) noexcept:
    """Return whether an operation may write to `out` as it goes."""
    return outputs[op][x.code] == x.code and not out.traits & READ_ONLY \
        and (out is x or (out.dense and out.code == x.code and has_shape(out, x.ndim_, x.dims)
                          and not overlaps(out, x))) \
        and (form != BINARY or other == <PyObject*>out or not overlaps(out, <Array>other))


cdef inline bint has_shape_of(Array x, Array y) noexcept:
    """Return whether two dense arrays have one shape."""
    return x.count == y.count and (x.ndim_ == y.ndim_ == 1 or has_shape(x, y.ndim_, y.dims))


cdef object apply(int op, object a, PyObject* other, Array out, Form form,
                  const unsigned long long* number):
    """Apply an operation to an array, to an array and a converted number, or to two operands, which
    have the form BINARY. Two that are not arrays of one type, or an array and a usual number, go to
    `of_others`."""
    cdef unsigned long long[2] own
    cdef PyObject* x = <PyObject*>a
    cdef Array target
    cdef Block* block
    cdef StreamState* stream
    cdef Node* node
    cdef bint direct
    cdef int result
    if form == BINARY:
        if type(a) is not Array:
            if type(<object>other) is not Array or not put_float(op, <Array>other, a, own):
                return of_others(op, a, <object>other, out)
            x, form, number = other, NUMBER_LEFT, own
        elif type(<object>other) is not Array:
            if not put_float(op, <Array>a, <object>other, own):
                return of_others(op, a, <object>other, out)
            form, number = NUMBER_RIGHT, own
        elif (<Array>a).code != (<Array>other).code:
            return of_others(op, a, <object>other, out)
    direct = out is None or may_write(op, form, <Array>x, other, out)
    result = outputs[op][(<Array>x).code]
    if not (direct and (<Array>x).dense and result >= 0 and (form != BINARY or (
            (<Array>other).dense and has_shape_of(<Array>x, <Array>other)))):
        if result < 0 and other != NULL and form != BINARY:
            return of_others(op, a, <object>other, out)
        return record_alike(op, form, <Array>x, other, number, out, out, direct, NULL)
    if out is None:
        target = unallocated_like(result, <Array>x)
    else:
        target = out
    block = block_of(<Array>x)
    if block == NULL:
        return record_alike(op, form, <Array>x, other, number, out, target, True, NULL)
    stream = current_state(block.ordinal)
    node = next_call(stream, call_key(op, (<Array>x).code, form, (<Array>x).count))
    if node != NULL and replay(stream, node, form, <Array>x, block, other, number, target,
                               out is not None):
        return target
    return record_alike(op, form, <Array>x, other, number, out, target, True, stream)


cdef Array record_alike(int op, Form form, Array x, PyObject* other,
                        const unsigned long long* number, Array out, Array target, bint direct,
                        StreamState* stream):
    """Record the operation; `target` is `out`, or an array without memory for the result. `direct`
    says whether the operation may write to `out` as it goes. All arrays are contiguous and of one
    shape if the current stream is passed, and not NULL."""
    cdef long long[MAX_NDIM] joint
    cdef long long[3][MAX_NDIM] broadcast
    cdef Operand[3] operands
    cdef const long long* dims = x.dims
    cdef Block* block = live_block(x)
    cdef bint dense = stream != NULL
    cdef int ndim = x.ndim_, result = outputs[op][x.code]
    if not dense:
        stream = current_state(block.ordinal)
    if result < 0:
        return of_casts(op, 1, x, x, out) if form == UNARY \
            else of_casts(op, 2, x, <Array>other, out)
    set_operand(&operands[2 if form == NUMBER_LEFT else 1], x)
    if form == BINARY:
        set_operand(&operands[2], <Array>other)
        if live_block(<Array>other).ordinal != block.ordinal:
            refuse_devices(op, 1, live_block(<Array>other).ordinal, block.ordinal)
    elif form != UNARY:
        operands[1 if form == NUMBER_LEFT else 2] = Operand(NULL, 0, NULL, [number[0], number[1]])
    if not direct:
        return record_operands(op, x.code, 1 if form == UNARY else 2, operands, out)
    if not dense and form == BINARY and not has_shape(<Array>other, ndim, dims):
        ndim = join_shapes(op, 2, operands, joint, broadcast)
        dims = joint
    if out is not None:
        check_out(catalogue.OPS[op], out, result, ndim, dims, block.ordinal)
    else:
        if target is None:
            target = unallocated(result, ndim, dims)
        give_memory(target, stream)
    set_operand(&operands[0], target)
    if dense:
        record_contiguous(encoder_of(stream), op, x.code, operands, x.count)
    else:
        record_elementwise(encoder_of(stream), op, x.code, operands, ndim, dims)
    return target


cdef Array of_casts(int op, int count, Array x, Array y, Array out):
    """Apply an operation to arrays of two types, or of one that has no kernel."""
    cdef PyObject** operands = [<PyObject*>x, <PyObject*>y]
    cdef int code = compute_type(op, promote(x.code, y.code))
    return record(op, code, count, operands, out)


cdef object compute_unary(int op, PyObject** operands):
    return apply(op, <object>operands[0], NULL, <Array>operands[1], UNARY, no_number)


cdef object unary_of_variables(int op, object operand, object out):
    cdef PyObject** operands = [<PyObject*>operand, <PyObject*>out]
    return call_operation(op, operands, 2, <Operation>compute_unary)


cdef object unary(int op, object operand, object out):
    if recording:
        return unary_of_variables(op, operand, out)
    return apply(op, operand, NULL, <Array>out, UNARY, no_number)


cdef int side_of(int code, object number) except -2:
    """Return 0 for an int in the range of an integer type, -1 for one below it, 1 for one above."""
    cdef int overflow, bits = 8 * itemsizes[code]
    cdef long long value = PyLong_AsLongLongAndOverflow(number, &overflow)
    if kinds[code] == c"u":
        if overflow > 0:
            return 0 if bits == 64 and not number >> 64 else 1
        return -1 if overflow or value < 0 else bits < 64 and value >> bits != 0
    if overflow:
        return overflow
    value >>= bits - 1
    return (value > 0) - (value < -1)


cdef object whole_bound(int op, double number, bint left):
    """Return the int with which every integer compares as with a float.

    An order rounds a fraction up or down. An infinity, NaN, and a fraction that is compared for
    equality become ints out of the range of all types, on the side that gives the result.
    """
    cdef bint rises = beyond[op][0] < beyond[op][1]
    cdef bint equality = beyond[op][0] == beyond[op][1]
    if isnan(number):
        return OUTSIDE if rises == left else -OUTSIDE
    if isinf(number) or (equality and floor(number) != number):
        return OUTSIDE if number > 0 else -OUTSIDE
    return int(ceil(number) if rounds_up[op] != left else floor(number))


cdef Array out_of_range(int op, Array x, object number, bint left, Array out):
    """Compare integers with an int out of their range; None if the int is in range."""
    cdef int side
    if not PyLong_Check(number) or PyBool_Check(number):
        return None
    side = side_of(x.code, number)
    if side == 0:
        return None
    if out is None:
        out = new_array_on(current_state(device_of(x)), BOOL, x.ndim_, x.dims)
    else:
        check_out(catalogue.OPS[op], out, BOOL, x.ndim_, x.dims, device_of(x))
    fill(out, beyond[op][(side > 0) != left])
    return out


cdef Array power(Array x, object exponent, Array out):
    """Compute a floating-point power by a number that another operation is for, as NumPy does;
    otherwise return None."""
    cdef int code = promote_number(x.code, exponent)
    cdef object op = None if PyComplex_Check(exponent) else powers.get(exponent)
    if op is None or (kinds[code] != c"f" and kinds[code] != c"c") or not (
            out is None or (has_shape(out, x.ndim_, x.dims) and same_kind(code, out.code))):
        return None
    return unary(op, cast(x, code), out)


cdef object of_number(int op, Array x, object number, bint left, Array out):
    """Apply an operation to an array and a number, which is the left or the right operand."""
    cdef PyObject** operands = [<PyObject*>x, <PyObject*>x]
    cdef unsigned long long[2] value
    cdef Array settled = None
    cdef int code = x.code
    if not PyFloat_CheckExact(number) or kinds[code] != c"f" or op == POW:
        number = python_number(number)
        if op == POW and not left:
            settled = power(x, number, out)
        elif beyond[op][0] >= 0 and (kinds[code] == c"i" or kinds[code] == c"u"):
            if PyFloat_Check(number):
                number = whole_bound(op, number, left)
            settled = out_of_range(op, x, number, left, out)
        elif logical[op]:
            number = bool(number)
        if settled is not None:
            return settled
        code = promote_number(code, number)
    code = compute_type(op, code)
    if code == x.code:
        put_number(code, number, value)
        return apply(op, x, NULL, out, NUMBER_LEFT if left else NUMBER_RIGHT, value)
    operands[not left] = <PyObject*>number
    return record(op, code, 2, operands, out)


cdef object of_others(int op, object a, object b, Array out):
    """Apply an operation to arrays of two types, or to an array and something else."""
    cdef bint left = type(a) is not Array
    cdef object other = a if left else b
    cdef Array x = <Array>(b if left else a)
    if type(other) is Array:
        return of_casts(op, 2, x, <Array>other, out)
    if is_number(other):
        return of_number(op, x, other, left, out)
    if isinstance(other, (list, tuple)):
        other = functions.weak_array(x, other)
        return of_others(op, other if left else a, b if left else other, out)
    view = view_other(other)
    if view is not other:
        return binary(op, view if left else a, b if left else view, out)
    # Another type may implement the operation. One that NumPy, too, would read as an array does
    # not: Python would then answer == by identity.
    if is_of_others(other) and getattr(other, "__array_ufunc__", other) is not None:
        refuse_array(other, catalogue.OPS[op])
    return NotImplemented


cdef inline bint put_float(int op, Array x, object value, unsigned long long* number) noexcept:
    """Set a usual number next to an array of float32 or float64: a float, or an int that one can
    hold, in the array's type."""
    cdef float single
    cdef unsigned int bits
    cdef double real
    cdef long long integer, most = <long long>1 << 53      # a double holds all integers up to it
    cdef int overflow
    if op == POW:
        return False
    number[1] = 0
    if PyFloat_CheckExact(value):
        real = PyFloat_AS_DOUBLE(value)
    elif PyLong_CheckExact(value):
        integer = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow or not -most <= integer <= most:
            return False
        real = <double>integer
    else:
        return False
    if x.code == FLOAT32:
        single = <float>real            # a number out of range becomes an infinity
        memcpy(&bits, &single, 4)
        number[0] = bits
    elif x.code == FLOAT64:
        memcpy(number, &real, 8)
    else:
        return False
    return True


cdef object compute_binary(int op, PyObject** operands):
    return binary_of_constants(op, <object>operands[0], <object>operands[1], <object>operands[2])


cdef object binary_of_variables(int op, object a, object b, object out):
    cdef PyObject** operands = [<PyObject*>a, <PyObject*>b, <PyObject*>out]
    return call_operation(op, operands, 3, <Operation>compute_binary)


cdef object binary(int op, object a, object b, object out):
    if recording:
        return binary_of_variables(op, a, b, out)
    return binary_of_constants(op, a, b, out)


cdef inline object binary_of_constants(int op, object a, object b, object out):
    """Apply an operation to operands that no tape follows now."""
    return apply(op, a, <PyObject*>b, <Array>out, BINARY, no_number)


# -- the public functions --------------------------------------------------------------------------


@cython.final
@cython.no_gc
cdef class Elementwise:
    """An elementwise function of arrays; one for each operation of the catalogue.

    If all operands are numbers, the result is a NumPy number: that of NumPy's function of the same
    name or, where NumPy has none, the element that an array of the type in which NumPy would
    compute gives. A list or a tuple beside an array counts as an array of weak numbers. `out`,
    `where` and `dtype` have NumPy's meaning.

    Operands broadcast, and are cast to the type of :func:`cyrt.result_type`; Python and NumPy
    numbers are weak. An integer type for which the operation has no kernel is computed in float32.

    Parameters
    ----------
    name : str
        The name of the operation and of the public function.
    operands : tuple of str
        The names of the operands.
    doc : str
        The function's docstring.
    module : str
        The public module that has the function.
    """

    cdef Vectorcall vectorcall
    cdef int op, count
    cdef tuple operands
    cdef str name
    cdef dict __dict__          # the attributes of a Python function

    def __init__(self, str name not None, tuple operands not None, str doc not None,
                 str module not None="cyrt"):
        self.vectorcall = call
        self.op = op_code(name)
        self.operands = operands
        self.count = len(operands)
        self.name = name
        vars(self).update(__name__=name, __qualname__=name, __doc__=doc,
                          __module__=module)

    def __call__(self, *operands, out=None, where=None, dtype=None):
        if out is None and len(operands) == self.count + 1:
            out = operands[self.count]
        elif len(operands) != self.count:
            refuse_count(self, len(operands))
        return evaluate(self, operands[0], operands[self.count - 1], out, where, dtype)

    @property
    def operation(self):
        """The code of the operation in the catalogue."""
        return self.op

    def __getattr__(self, name):
        if name != "__signature__":
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        from inspect import Parameter, Signature

        return Signature([*(Parameter(each, Parameter.POSITIONAL_ONLY) for each in self.operands),
                          Parameter("out", Parameter.POSITIONAL_OR_KEYWORD, default=None),
                          *(Parameter(each, Parameter.KEYWORD_ONLY, default=None)
                            for each in ("where", "dtype"))])

    def __repr__(self):
        return f"<function {self.__module__}.{self.name}>"

    def __reduce__(self):
        return self.name


cdef object call(object callee, PyObject** values, size_t flagged, PyObject* keywords):
    """Call a function from the interpreter: most calls have arrays, or an array and a float, and
    nothing else."""
    cdef int count = (<Elementwise>callee).count
    if keywords == NULL and PyVectorcall_NARGS(flagged) == count \
            and type(<object>values[0]) is Array:
        if count == 1:
            return unary((<Elementwise>callee).op, <object>values[0], None)
        if type(<object>values[1]) is Array or PyFloat_CheckExact(<object>values[1]):
            return binary((<Elementwise>callee).op, <object>values[0], <object>values[1], None)
    return parse(callee, values, flagged, keywords)


cdef object parse(object callee, PyObject** values, size_t flagged, PyObject* keywords):
    """Parse a function's call, and compute the operation."""
    cdef Elementwise self = <Elementwise>callee
    cdef Py_ssize_t count = PyVectorcall_NARGS(flagged)
    cdef object out = None, where = None, dtype = None
    if keywords != NULL:
        for i, name in enumerate(<tuple>keywords):
            if name == "out":
                out = <object>values[count + i]
            elif name == "where":
                where = <object>values[count + i]
            elif name == "dtype":
                dtype = <object>values[count + i]
            else:
                raise TypeError(f"{self.name}() got an unexpected keyword argument {name!r}")
    if count == self.count + 1 and out is None:
        out = <object>values[self.count]
    elif count != self.count:
        refuse_count(self, count)
    return evaluate(self, <object>values[0], <object>values[self.count - 1], out, where,
                    dtype)


cdef Elementwise _first = Elementwise.__new__(Elementwise)
offer_vectorcall(_first, &_first.vectorcall)


cdef int refuse_count(Elementwise function, Py_ssize_t count) except -1:
    raise TypeError(f"{function.name}({', '.join(function.operands)}, /, out=None) takes "
                    f"{function.count} or {function.count + 1} positional arguments, got {count}")


cdef object evaluate(Elementwise self, object a, object b, object out, object where,
                     object dtype):
    """Compute an operation; `b` is its last operand, which may also be its first."""
    cdef bint alike = b is a
    a = view_operand(a)
    b = a if alike else view_operand(b)
    if out is not None and not isinstance(out, Array):
        evaluate(self, a, b, view_output(self.name, out), where, dtype)
        return out
    if dtype is not None:
        return put_where(self.name, where, in_type(self, a, b, dtype), out)
    if where is not None:
        return put_where(self.name, where, evaluate(self, a, b, None, None, None), out)
    if self.count == 1:
        if isinstance(a, Array):
            return unary(self.op, a, out)
        return of_numbers(self, (a,), out, None)
    if isinstance(a, Array) or isinstance(b, Array):
        result = binary(self.op, a, b, out)
        if result is not NotImplemented:
            return result
        return refuse_array(b if isinstance(a, Array) else a, self.name)
    return of_numbers(self, (a, b), out, None)


cdef object in_type(Elementwise self, object a, object b, object dtype):
    """The result in a requested type; the operands are cast to it unless the operation compares."""
    cdef int code = _dtype(dtype).code
    if not isinstance(a, Array) and not isinstance(b, Array):
        return of_numbers(self, (a,) if self.count == 1 else (a, b), None, DTYPES[code])
    compared = outputs[self.op][FLOAT32] == BOOL
    first = in_kind(self.name, a, code, compared)
    second = first if b is a else in_kind(self.name, b, code, compared)
    result = evaluate(self, first, second, None, None, None)
    if (<Array>result).code != code:
        raise TypeError(f"{self.name}: dtype: its result is {result.dtype}, expected "
                        f"{DTYPES[code]}")
    return result


cdef object in_kind(str name, object operand, int code, bint compared):
    if compared or not isinstance(operand, Array):
        return operand
    if not same_kind((<Array>operand).code, code):
        raise TypeError(f"{name}: dtype: an operand of {(<Array>operand).dtype} cannot be cast to "
                        f"{DTYPES[code]} by the rule 'same_kind'")
    return cast(<Array>operand, code)


cdef Array mask_of(str name, object where, Array x):
    """Return an argument `where` as an Array of bool; None if all elements count."""
    if where is None or isinstance(where, (bool, np.bool_)) and where:
        return None
    where = view_operand(where)
    if isinstance(where, (bool, np.bool_, list, tuple)):
        where = functions.asarray(where, device=x.device)
    if not isinstance(where, Array) or (<Array>where).code != BOOL:
        raise TypeError(f"{name}: where: expected an Array of bool, got "
                        f"{where.dtype if isinstance(where, Array) else type(where).__name__}")
    check_device(where, x, name, "where")
    return <Array>where


cdef object put_where(str name, object where, object result, object out):
    """Write the result into `out` at a mask; without `out`, the other elements are undefined."""
    cdef Array x, mask
    if not isinstance(result, Array):
        if out is None and isinstance(where, (bool, np.bool_, type(None))):
            return result
        refuse_argument(name, result)
    x = <Array>result
    mask = mask_of(name, where, x)
    if out is None:
        return x if mask is None or has_shape(mask, x.ndim_, x.dims) \
            else choose_where(mask, x, x, x.code, None)
    if mask is None:
        return write_out(name, x, out)
    check_out(name, out, x.code, x.ndim_, x.dims, device_of(x))
    return choose_where(mask, x, out, (<Array>out).code, <Array>out)


cdef Array choose_where(object condition, object x1, object x2, int code, Array out):
    if recording and (is_followed(x1) or is_followed(x2) or is_followed(out)):
        return record_call(chosen, (condition, x1, x2, code, out))
    return chosen(condition, x1, x2, code, out)


def chosen(condition, x1, x2, int code, Array out):
    """Choose elements of x1, if the condition is true, or of x2, in the type of that code."""
    cdef PyObject** operands = [<PyObject*>condition, <PyObject*>x1, <PyObject*>x2]
    return record(WHERE, code, 3, operands, out)


cdef object of_numbers(Elementwise self, tuple operands, object out, object dtype):
    """Return the result for numbers, a NumPy number."""
    for each in operands:
        if not is_number(each):
            refuse_array(each, self.name)
    if out is not None:
        refuse_argument(self.name, operands[0])
    function = getattr(np, self.name, None)
    if function is not None:
        with np.errstate(all="ignore"):
            if dtype is None:
                return function(*operands)
            return function(*operands, dtype=dtype.numpy)
    if dtype is not None:
        kind = dtype.numpy
    else:
        kind = np.result_type(*[np.asarray(each) for each in operands])
        kind = kind if kind.kind in "fc" else np.float64
    arrays = [functions.asarray(np.asarray(each, kind)) for each in operands]
    return evaluate(self, arrays[0], arrays[self.count - 1], None, None, None).numpy()[()]


cdef int refuse_argument(str name, object value) except -1:
    if is_number(value):
        raise TypeError(f"{name}: expected an Array, got only numbers: {value!r}")
    return refuse_array(value, name)
