"""Elementwise operations: types of operands and results, numbers, ``out=`` and ``where=``."""

cimport cython
from cpython.bool cimport PyBool_Check
from cpython.complex cimport PyComplex_Check
from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check
from cpython.object cimport PyObject
from libc.string cimport memset

import numpy as np

from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.builtin import catalogue
from cyrt.builtin.elementwise cimport (
    BINARY, NUMBER_LEFT, NUMBER_RIGHT, UNARY, Form, call_key, is_own, record_binary,
    record_elementwise, record_unary, record_with_number,
)
from cyrt.builtin.elementwise_choice cimport ALIGNED
from cyrt.builtin.entry cimport MAX_DTYPES, WIDEST, op_code, tables
from cyrt.builtin.operand cimport Operand
from cyrt.graph.recording cimport Node, Use
from cyrt.graph.replay_call cimport (
    is_same_use, is_verified, next_call, params_of, replay_next, uses_of,
)
from cyrt.kernels.vectorcall cimport PyVectorcall_NARGS, Vectorcall, offer_vectorcall
from cyrt.operators import functions
from cyrt.ndarray cimport (
    Array, device_of, give_memory, has_memory, has_shape, itemsizes, new_array_on, overlaps,
    set_operand, unallocated,
)
from cyrt.ops.copy cimport assign_array, cast, check_device, fill
from cyrt.ops.elementwise_broadcast cimport (
    MAX_OPS, check_out, outputs, record_broadcast, record_pair, refuse_devices,
)
from cyrt.ops.promotion cimport (
    BOOL, FLOAT32, NUM_DTYPES, is_number, kinds, python_number, promote, promote_number,
    put_number, same_kind,
)
from cyrt.runtime.memory cimport Memory, block_of, live_block, overwriting
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.pool cimport allocate_next, is_next
from cyrt.runtime.state cimport OVERWRITE, Block, StreamState
from cyrt.runtime.stream cimport current_state

cdef int WHERE = op_code("where")
# Results of comparisons with a number on the right that is below all of the type, and above it;
# otherwise -1.
cdef signed char[MAX_OPS][2] beyond
memset(beyond, -1, sizeof(beyond))
for _name, _low, _high in (("equal", 0, 0), ("not_equal", 1, 1), ("less", 0, 1),
                           ("less_equal", 0, 1), ("greater", 1, 0), ("greater_equal", 1, 0)):
    beyond[op_code(_name)][0] = _low
    beyond[op_code(_name)][1] = _high
cdef int POW = op_code("pow")
# The operations that are powers by some numbers, exactly rounded.
cdef dict powers = {1: op_code("positive"), 2: op_code("square"), 0.5: op_code("sqrt"),
                    -1: op_code("reciprocal")}


cdef int refuse_type(int op, int code) except -1:
    name = catalogue.OPS[op]
    takes = ", ".join(str(DTYPES[i]) for i in range(NUM_DTYPES) if outputs[op][i] >= 0)
    raise TypeError(f"{name}: not for {DTYPES[code]}; it takes {takes}")


cdef int result_code(int op, int code) noexcept:
    return outputs[op][code]


cdef inline int compute_type(int op, int code) except -1:
    """The type that an operation computes in: float32 for integers without a kernel of their
    own."""
    if outputs[op][code] >= 0:
        return code
    if (kinds[code] == c"i" or kinds[code] == c"u" or kinds[code] == c"b") \
            and outputs[op][FLOAT32] >= 0:
        for i in range(NUM_DTYPES):
            if kinds[i] == c"i" and outputs[op][i] >= 0:
                return refuse_type(op, code)
        return FLOAT32
    return refuse_type(op, code)


cdef int refuse_operand(str name, object value) except -1:
    advice = "; cyrt.asarray() copies it to the device" if isinstance(value, np.ndarray) else ""
    raise TypeError(f"{name}: expected an Array, got "
                    f"{type(value).__module__}.{type(value).__name__}{advice}")


cdef inline Node* next_aligned(StreamState* stream, int op, Form form, Array x,
                               PyObject** kernel) noexcept:
    """Return the next node of the stream's script if it is such a call on aligned operands, the
    first one included, and set the kernel; else NULL."""
    cdef Node* node = next_call(stream, call_key(op, x.code, form, x.count))
    if node == NULL:
        return NULL
    kernel[0] = tables[stream.ordinal][op * MAX_DTYPES + x.code].functions[<int>ALIGNED]
    if node.serial != (<LoadedFunction>kernel[0]).serial \
            or not is_same_operand(uses_of(stream, node), x, stream):
        return NULL
    return node


cdef inline bint is_same_operand(const Use* use, Memory operand, StreamState* stream) noexcept:
    cdef const Block* block = block_of(operand)
    return is_same_use(use, block, stream) and is_own(block) \
        and operand.address & (WIDEST - 1) == 0


cdef inline bint is_same_result(const Use* use, Array out, StreamState* stream) noexcept:
    """Return whether the result is that of the use, or would get its memory."""
    if has_memory(out):
        return use.access == overwriting(out) and is_same_operand(use, out, stream)
    return use.access == OVERWRITE and is_same_use(use, use.block, stream) and is_own(use.block) \
        and is_next(stream, use.block, out.size)


cdef inline bint replay_aligned(StreamState* stream, PyObject* kernel, Array out, Use* uses,
                                int inputs) noexcept:
    """Replay the call, whose uses, addresses of inputs and numbers are those of the next node."""
    cdef Block* block = uses[inputs].block
    if is_verified(stream):
        return False
    if not has_memory(out):
        allocate_next(stream, block, out.size)
        out.block, out.address = block, block.address
    replay_next(stream, uses, inputs + 1, kernel)
    return True


cdef inline bint replay_binary(StreamState* stream, int op, Array x, Array y, Array out) noexcept:
    """Replay a call on dense arrays of one shape and type, if it is the next one of a script.
    Where the result `out` has no memory, it gets some."""
    cdef PyObject* kernel
    cdef Node* node = next_aligned(stream, op, BINARY, x, &kernel)
    cdef unsigned long long* words
    cdef Use* uses
    if node == NULL:
        return False
    uses = uses_of(stream, node)
    if not is_same_operand(&uses[1], y, stream) or not is_same_result(&uses[2], out, stream):
        return False
    words = <unsigned long long*>params_of(stream, node)
    words[0], words[1] = x.address, y.address
    words[2] = out.address if has_memory(out) else uses[2].block.address
    return replay_aligned(stream, kernel, out, uses, 2)


cdef bint replay_single(StreamState* stream, int op, Form form, Array x,
                        unsigned long long number, Array out) noexcept:
    """Do so for a call on one array, and a number unless it is UNARY."""
    cdef PyObject* kernel
    cdef Node* node = next_aligned(stream, op, form, x, &kernel)
    cdef unsigned long long* words
    cdef Use* uses
    if node == NULL:
        return False
    uses = uses_of(stream, node)
    if not is_same_result(&uses[1], out, stream):
        return False
    words = <unsigned long long*>params_of(stream, node)
    words[form == NUMBER_LEFT] = x.address
    if form != UNARY:
        words[form == NUMBER_RIGHT] = number
    words[1 if form == UNARY else 2] = out.address if has_memory(out) else uses[1].block.address
    return replay_aligned(stream, kernel, out, uses, 1)


cdef Array unary(int op, Array x, Array out):
    cdef StreamState* stream
    cdef Array target
    cdef Block* block
    cdef PyObject* operand
    cdef int code = compute_type(op, x.code)
    if not x.dense or code != x.code or out is not None:
        operand = <PyObject*>x
        return record_broadcast(op, code, outputs[op][code], 1, &operand, &code, out)
    block = live_block(x)
    stream = current_state(block.ordinal)
    target = unallocated(outputs[op][code], x.ndim_, x.dims)
    if replay_single(stream, op, UNARY, x, 0, target):
        return target
    give_memory(target, stream)
    record_unary(stream, op, code, target, x, block, x.count)
    return target


cdef inline bint alike(Array x, Array y) noexcept:
    return x.code == y.code and has_shape(x, y.ndim_, y.dims)


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


cdef Array out_of_range(int op, Array x, object number, bint left, Array out):
    """Compare integers with an int out of their range; None if the int is in range."""
    cdef int side
    if beyond[op][0] < 0 or (kinds[x.code] != c"i" and kinds[x.code] != c"u") \
            or not PyLong_Check(number) or PyBool_Check(number):
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


cdef inline bint takes_number(int op, Array x, int code, Array out) noexcept:
    """Return whether an operation on an array and a number needs no cast and no check of `out`."""
    return code == x.code and outputs[op][code] >= 0 and (
        out is None or (out is x and x.dense and outputs[op][code] == code))


cdef Array apply_to_number(int op, Array x, object number, bint left, Array out):
    cdef Block* block = live_block(x)
    cdef StreamState* stream = current_state(block.ordinal)
    cdef unsigned long long[2] value
    cdef Operand[3] raw
    put_number(x.code, number, value)
    if out is None:
        out = unallocated(outputs[op][x.code], x.ndim_, x.dims)
    if x.dense and replay_single(stream, op, NUMBER_LEFT if left else NUMBER_RIGHT, x, value[0],
                                 out):
        return out
    if not has_memory(out):
        give_memory(out, stream)
    if x.dense:
        record_with_number(stream, op, x.code, out, x, block, value, left, x.count)
    else:
        set_operand(&raw[0], out)
        set_operand(&raw[1 + left], x)
        raw[2 - left] = Operand(NULL, 0, NULL, [value[0], value[1]])
        record_elementwise(encoder_of(stream), op, x.code, raw, x.ndim_, x.dims)
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


cdef Array of_arrays(int op, Array x, Array y, Array out):
    """Apply an operation to arrays that need no cast; return None for others."""
    cdef StreamState* stream
    cdef Array target
    cdef Block* x_block
    cdef Block* y_block
    cdef Operand[3] raw
    cdef int result = outputs[op][x.code]
    if x.code != y.code or result < 0:
        return None
    if not has_shape(x, y.ndim_, y.dims) or not (out is None or (
            x.dense and y.dense and out.dense and alike(out, x) and result == x.code
            and (out is x or not overlaps(out, x)) and (out is y or not overlaps(out, y)))):
        if out is None or (out is x and result == x.code and (y is x or not overlaps(x, y))):
            return record_pair(op, x, y, out)
        return None
    x_block = live_block(x)
    stream = current_state(x_block.ordinal)
    target = unallocated(result, x.ndim_, x.dims) if out is None else out
    if x.dense and y.dense and replay_binary(stream, op, x, y, target):
        return target
    y_block = live_block(y)
    if y_block.ordinal != x_block.ordinal:
        refuse_devices(op, 1, y_block.ordinal, x_block.ordinal)
    if out is None:
        give_memory(target, stream)
    elif device_of(out) != x_block.ordinal:
        check_out(catalogue.OPS[op], out, x.code, x.ndim_, x.dims, x_block.ordinal)
    if x.dense and y.dense:
        record_binary(stream, op, x.code, target, x, x_block, y, y_block, x.count)
    else:
        set_operand(&raw[0], target)
        set_operand(&raw[1], x)
        set_operand(&raw[2], y)
        record_elementwise(encoder_of(stream), op, x.code, raw, x.ndim_, x.dims)
    return target


cdef object binary(int op, object a, object b, Array out):
    cdef Array x, result
    cdef PyObject* operands[2]
    cdef int[2] types
    cdef int code
    if type(a) is Array:
        x = <Array>a
        if type(b) is Array:
            result = of_arrays(op, x, <Array>b, out)
            if result is not None:
                return result
            code = promote(x.code, (<Array>b).code)
        elif PyFloat_CheckExact(b) and kinds[x.code] == c"f" and op != POW \
                and takes_number(op, x, x.code, out):
            return apply_to_number(op, x, b, False, out)
        elif is_number(b):
            code = x.code
            if op == POW:
                settled = power(x, python_number(b), out)
                if settled is not None:
                    return settled
            if not (PyFloat_CheckExact(b) and kinds[code] == c"f"):
                b = python_number(b)
                code = promote_number(code, b)
                settled = out_of_range(op, x, b, False, out)
                if settled is not None:
                    return settled
            if takes_number(op, x, code, out):
                return apply_to_number(op, x, b, False, out)
        elif isinstance(b, (list, tuple)):
            return binary(op, x, functions.weak_array(x, b), out)
        else:
            return foreign_operand(op, b)
    elif is_number(a):
        a = python_number(a)
        code = promote_number((<Array>b).code, a)
        settled = out_of_range(op, <Array>b, a, True, out)
        if settled is not None:
            return settled
        if takes_number(op, <Array>b, code, out):
            return apply_to_number(op, <Array>b, a, True, out)
    elif isinstance(a, (list, tuple)):
        return binary(op, functions.weak_array(<Array>b, a), b, out)
    else:
        return foreign_operand(op, a)
    types[0] = types[1] = code = compute_type(op, code)
    operands[0], operands[1] = <PyObject*>a, <PyObject*>b
    return record_broadcast(op, code, outputs[op][code], 2, operands, types, out)


cdef object foreign_operand(int op, object value):
    """Return NotImplemented, as another type may implement the operation; refuse a NumPy array."""
    if isinstance(value, np.ndarray):
        refuse_operand(catalogue.OPS[op], value)
    return NotImplemented


cdef object apply_unary(int op, object x):
    return unary(op, <Array>x, None)


cdef object apply_binary(int op, object a, object b, object target):
    cdef Array result
    if type(a) is Array and type(b) is Array:
        result = of_arrays(op, <Array>a, <Array>b, <Array>target)
        if result is not None:
            return result
    return binary(op, a, b, <Array>target)


@cython.final
@cython.no_gc
cdef class Elementwise:
    """An elementwise function of arrays; one for each operation of the catalogue.

    The result for numbers alone is a NumPy number: that of NumPy's function of that name, or where
    NumPy has none, that for arrays of the type in which NumPy would compute. A list or a tuple next
    to an array is an array of weak numbers. `out`, `where` and `dtype` have NumPy's meaning.

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
    """Parse a function's call from the interpreter."""
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


cdef int check_out_type(str name, object out) except -1:
    if out is not None and not isinstance(out, Array):
        raise TypeError(f"{name}: out: expected an Array, got {type(out).__name__}")
    return 0


cdef object evaluate(Elementwise self, object a, object b, object out, object where,
                     object dtype):
    """Compute an operation; `b` is its last operand, which may also be its first."""
    if dtype is not None:
        return put_where(self.name, where, in_type(self, a, b, dtype), out)
    if where is not None:
        return put_where(self.name, where, evaluate(self, a, b, None, None, None), out)
    check_out_type(self.name, out)
    if self.count == 1:
        if isinstance(a, Array):
            return unary(self.op, <Array>a, <Array>out)
        return of_numbers(self, (a,), out, None)
    if isinstance(a, Array) or isinstance(b, Array):
        result = binary(self.op, a, b, <Array>out)
        if result is not NotImplemented:
            return result
        return refuse_operand(self.name, b if isinstance(a, Array) else a)
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


cdef object put_where(str name, object where, object result, object out):
    """Write the result into `out` at a mask; without `out`, the other elements are undefined."""
    cdef Array x
    whole = isinstance(where, (bool, np.bool_)) or where is None
    if not whole and (not isinstance(where, Array) or (<Array>where).code != BOOL):
        raise TypeError(f"{name}: where: expected an Array of bool, got "
                        f"{where.dtype if isinstance(where, Array) else type(where).__name__}")
    if not isinstance(result, Array):
        if out is None and whole:
            return result
        refuse_argument(name, result)
    x = result
    if not whole:
        check_device(where, x, f"{name}: where")
    if out is None:
        if whole or has_shape(<Array>where, x.ndim_, x.dims):
            return x
        return choose_where(where, x, x, x.code, None)
    check_out(name, out, x.code, x.ndim_, x.dims, device_of(x))
    if whole:
        if where is None or where:
            assign_array(<Array>out, x)
        return out
    code = (<Array>out).code
    return choose_where(where, x, out, code, out)


cdef Array choose_where(object condition, object x1, object x2, int code, Array out):
    cdef PyObject** operands = [<PyObject*>condition, <PyObject*>x1, <PyObject*>x2]
    cdef int[3] types = [BOOL, code, code]
    return record_broadcast(WHERE, code, code, 3, operands, types, out)


cdef object of_numbers(Elementwise self, tuple operands, object out, object dtype):
    """Return the result for numbers, a NumPy number."""
    for each in operands:
        if not is_number(each):
            refuse_operand(self.name, each)
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
    return refuse_operand(name, value)
