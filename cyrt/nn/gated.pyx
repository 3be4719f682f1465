"""Gradients of gated linear units, of three operands and two results."""

from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.gated cimport GATED_MOST, record_swiglu_vjp
from cyrt.builtin.operand cimport Operand
from cyrt.dtypes import DTYPES
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport (
    Array, as_contiguous, device_of, new_array, overlaps, set_operand, shape_of, view_of,
)
from cyrt.nn.rows cimport array_of, bool_of, may_overwrite, spaced_rows
from cyrt.ops.copy cimport cast, check_device
from cyrt.ops.promotion cimport kinds, promote
from cyrt.runtime.memory cimport READ_ONLY
from cyrt.runtime.stream cimport current_state

cdef int SWIGLU_VJP = op_code("swiglu_vjp")


cdef Array operand_of(str argument, object x):
    cdef Array array = array_of(SWIGLU_VJP, argument, x)
    if kinds[array.code] != c"f":
        catalogue.row("swiglu_vjp", DTYPES[array.code].name)        # raises
    return array


cdef Array rows_of(Array x, int code, long long* step):
    """Return an operand as rows of a type: cast, and copied unless its rows are evenly spaced."""
    cdef long long one = 1
    if x.code != code:
        x = cast(x, code)
    if x.ndim_ == 0:
        x = view_of(x, code, 1, &one, &one, 0)
    if x.dims[x.ndim_ - 1] > GATED_MOST:
        x = as_contiguous(x)
    return spaced_rows(x, step)


cdef Array gradient_target(tuple operands, int code, bint donate, Array other):
    """Choose the memory of a gradient: that of a contiguous operand that may be overwritten and
    does not share memory with the other gradient, `other`; or new memory."""
    cdef Array first = operands[0], target, each
    for target in operands if donate else ():
        if not target.dense or target.traits & READ_ONLY or target.code != code \
                or (other is not None and overlaps(target, other)):
            continue
        for each in operands:
            if not may_overwrite(target, each):
                break
        else:
            return target
    return new_array(device_of(first), code, first.ndim_, first.dims)


def swiglu_vjp(g, gate, up, *, donate=False):
    """Compute the gradients of :func:`swiglu` from that of its result, in one launch.

    Parameters
    ----------
    g : Array
        The gradient of the result, of the operands' shape.
    gate, up : Array
        The operands, of real floating-point types and one shape; rows along the last axis that are
        not evenly spaced are copied.
    donate : bool
        Whether gate, up and g may be overwritten. The gradients are then in the memory of those
        that are contiguous and of their type.

    Returns
    -------
    tuple of Array
        The gradients of gate and up, of the type that all three promote to.

    Raises
    ------
    TypeError
        An operand is not an Array, or not of a real floating-point type.
    ValueError
        The shapes differ, or the arrays are on two devices.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([0.0, 2.0])
    >>> cyrt.nn.swiglu_vjp(cyrt.ones(2, dtype=x.dtype), x, x)
    (Array([0.       , 2.1815684], dtype=float32), Array([0.      , 1.761594], dtype=float32))
    """
    cdef Operand[5] operands
    cdef long long[3] steps
    cdef long long n
    cdef Array a = operand_of("gate", gate), b = operand_of("up", up), c = operand_of("g", g)
    cdef Array gate_gradient, up_gradient
    cdef int code = promote(promote(a.code, b.code), c.code), ordinal = device_of(a)
    cdef bint donates = bool_of("swiglu_vjp", "donate", donate)
    if not shape_of(a) == shape_of(b) == shape_of(c):
        raise ValueError(f"swiglu_vjp: expected one shape, got {shape_of(a)} of gate, "
                         f"{shape_of(b)} of up and {shape_of(c)} of g")
    check_device(b, a, "swiglu_vjp", "up")
    check_device(c, a, "swiglu_vjp", "g")
    gate_gradient = gradient_target((a, b, c), code, donates, None)
    up_gradient = gradient_target((a, b, c), code, donates, gate_gradient)
    a = rows_of(a, code, &steps[0])         # live until the launch is recorded
    b = rows_of(b, code, &steps[1])
    c = rows_of(c, code, &steps[2])
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], gate_gradient)
    set_operand(&operands[1], up_gradient)
    set_operand(&operands[2], a)
    set_operand(&operands[3], b)
    set_operand(&operands[4], c)
    n = a.dims[a.ndim_ - 1]
    record_swiglu_vjp(encoder_of(current_state(ordinal)), code, operands, a.count // n if n else 0,
                      n, steps)
    return gate_gradient, up_gradient
