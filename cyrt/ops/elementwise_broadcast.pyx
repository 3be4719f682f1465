# C-level functions only: see elementwise_broadcast.pxd.
"""Elementwise operations whose operands are broadcast, cast, or written into ``out``."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.elementwise cimport record_elementwise
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NDIM, MAX_OPERANDS
from cyrt.dtypes import DTYPES
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport (
    Array, device_of, has_shape, new_array_on, overlaps, set_operand, shape_of,
)
from cyrt.ops.arguments import refuse_device
from cyrt.ops.copy cimport assign_array, broadcast_steps, cast, check_writable
from cyrt.ops.promotion cimport NUM_DTYPES, put_number, same_kind
from cyrt.runtime.memory cimport live_block
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state

cdef enum:
    MAX_INPUTS = MAX_OPERANDS - 1

cdef signed char[MAX_OPS][NUM_DTYPES] outputs
# The names of operands where they are not x1 and x2; those of gradients are g and x.
cdef dict OPERANDS = {
    "where": ("condition", "x1", "x2"), "swiglu": ("gate", "up"),
    "multiply_add": ("x1", "x2", "x3"), "scale_centered": ("x", "mean", "scale"),
}
cdef int num_ops = len(catalogue.OPS)


def _fill_outputs():
    if num_ops > MAX_OPS:
        raise RuntimeError(f"{num_ops} operations, {MAX_OPS} are provided for")
    memset(outputs, -1, sizeof(outputs))
    codes = {name: code for code, name in enumerate(catalogue.OPS)}
    types = {each.name: each.code for each in DTYPES}
    for row in catalogue.ROWS:
        if row.template in ("unary", "binary", "ternary", "activation"):
            outputs[<int>codes[row.op]][<int>types[row.dtype]] = types[row.output]


_fill_outputs()


cdef int refuse_devices(int op, int operand, int found, int expected) except -1:
    name = catalogue.OPS[op]
    names = OPERANDS.get(name, ("g", "x") if name.endswith("_vjp") else ("x1", "x2"))
    refuse_device(f"{name}: {names[operand]}", found, expected)


cdef int refuse_broadcast(int op, int count, const Operand* operands) except -1:
    shapes = " and ".join([str(shape_of(<Array>operands[i].buffer)) for i in range(count)
                           if operands[i].buffer != NULL])
    raise ValueError(f"{catalogue.OPS[op]}: shapes {shapes} do not broadcast")


cdef int join_shapes(int op, int count, const Operand* operands, long long* dims) except -1:
    """Broadcast the shapes of all arrays together."""
    cdef long long size
    cdef int ndim = 0, i, d, first
    for i in range(count):
        if operands[i].buffer != NULL:
            ndim = max(ndim, (<Array>operands[i].buffer).ndim_)
    for d in range(ndim):
        dims[d] = 1
    for i in range(count):
        if operands[i].buffer == NULL:
            continue
        first = ndim - (<Array>operands[i].buffer).ndim_
        for d in range(first, ndim):
            size = (<Array>operands[i].buffer).dims[d - first]
            if dims[d] == 1:
                dims[d] = size
            elif size != 1 and size != dims[d]:
                refuse_broadcast(op, count, operands)
    return ndim


cdef Array check_out(str name, object out, int code, int ndim, const long long* dims,
                     int ordinal=-1):
    cdef Array target
    if not isinstance(out, Array):
        raise TypeError(f"{name}: out: expected an Array, got {type(out).__name__}")
    target = <Array>out
    if not has_shape(target, ndim, dims):
        shape = tuple([dims[i] for i in range(ndim)])
        raise ValueError(f"{name}: the result has shape {shape}, it cannot be written "
                         f"into shape {shape_of(target)}")
    if not same_kind(code, target.code):
        raise TypeError(f"{name}: a result of {DTYPES[code]} cannot be "
                        f"written into {DTYPES[target.code]}")
    if ordinal >= 0 and device_of(target) != ordinal:
        refuse_device(f"{name}: out", device_of(target), ordinal)
    check_writable(target)
    return target


cdef bint overwrites_input(Array out, Array x, const long long* steps) noexcept:
    """Return whether an element of x may be overwritten before another element's result reads
    it."""
    cdef int d
    if not overlaps(out, x):
        return False
    if out.address != x.address or out.code != x.code:
        return True
    for d in range(out.ndim_):
        if out.dims[d] != 1 and out.steps[d] != steps[d]:
            return True
    return False


cdef Array record_broadcast(int op, int code, int result, int count, PyObject** operands,
                            const int* types, Array out):
    cdef long long[MAX_NDIM] joint
    cdef long long[MAX_INPUTS][MAX_NDIM] broadcast
    cdef Operand[MAX_INPUTS + 1] raw
    cdef const long long* dims = NULL       # The result's; the arrays' own where all are equal.
    cdef const long long* steps
    cdef Array x, target
    cdef list casts = None                  # keeps the casts alive until they are recorded
    cdef StreamState* stream
    cdef int i, ndim = 0, ordinal = -1
    cdef bint alike = True, ready = out is None, aside = False
    for i in range(count):
        if isinstance(<object>operands[i], Array):
            x = <Array>operands[i]
            if dims == NULL:
                dims = x.dims
                ndim = x.ndim_
                ordinal = live_block(x).ordinal
            else:
                alike = alike and has_shape(x, ndim, dims)
                if live_block(x).ordinal != ordinal:
                    refuse_devices(op, i, live_block(x).ordinal, ordinal)
            set_operand(&raw[i + 1], x)
            ready = ready and x.code == types[i]
        else:
            raw[i + 1].buffer = NULL
            raw[i + 1].strides = NULL
            put_number(types[i], <object>operands[i], raw[i + 1].value)
    if not alike:
        ndim = join_shapes(op, count, raw + 1, joint)
        dims = joint
    if out is not None:
        out = check_out(catalogue.OPS[op], out, result, ndim, dims, ordinal)
    for i in range(0 if alike and ready else count):
        if raw[i + 1].buffer != NULL:
            x = <Array>raw[i + 1].buffer
            if x.code != types[i]:
                x = cast(x, types[i])
                casts = casts or []
                casts.append(x)
                set_operand(&raw[i + 1], x)
            steps = x.steps
            if not has_shape(x, ndim, dims):
                broadcast_steps(x, ndim, dims, broadcast[i])
                raw[i + 1].strides = steps = broadcast[i]
            if out is not None:
                aside = aside or overwrites_input(out, x, steps)
    stream = current_state(ordinal)
    target = out
    if out is None or out.code != result or aside:
        target = new_array_on(stream, result, ndim, dims)
    set_operand(&raw[0], target)
    record_elementwise(encoder_of(stream), op, code, raw, ndim, dims)
    if out is not None and target is not out:
        assign_array(out, target)
        return out
    return target


cdef Array record_pair(int op, Array x, Array y, Array out):
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] x_steps
    cdef long long[MAX_NDIM] y_steps
    cdef Operand[3] raw
    cdef StreamState* stream
    cdef Array target
    cdef long long a, b
    cdef int d, ordinal = live_block(x).ordinal
    cdef int ndim = max(x.ndim_, y.ndim_), x_first = ndim - x.ndim_, y_first = ndim - y.ndim_
    cdef bint x_repeats = x_first > 0, y_repeats = y_first > 0
    if live_block(y).ordinal != ordinal:
        refuse_devices(op, 1, live_block(y).ordinal, ordinal)
    set_operand(&raw[1], x)
    set_operand(&raw[2], y)
    for d in range(ndim):
        a = b = 1
        x_steps[d] = y_steps[d] = 0
        if d >= x_first:
            a, x_steps[d] = x.dims[d - x_first], x.steps[d - x_first]
        if d >= y_first:
            b, y_steps[d] = y.dims[d - y_first], y.steps[d - y_first]
        dims[d] = a
        if a != b:
            if a == 1:
                dims[d], x_steps[d], x_repeats = b, 0, True
            elif b == 1:
                y_steps[d], y_repeats = 0, True
            else:
                refuse_broadcast(op, 2, raw + 1)
    if x_repeats:
        raw[1].strides = x_steps
    if y_repeats:
        raw[2].strides = y_steps
    stream = current_state(ordinal)
    target = out
    if out is None:
        target = new_array_on(stream, outputs[op][x.code], ndim, dims)
    else:
        check_out(catalogue.OPS[op], out, x.code, ndim, dims, ordinal)
    set_operand(&raw[0], target)
    record_elementwise(encoder_of(stream), op, x.code, raw, ndim, dims)
    return target
