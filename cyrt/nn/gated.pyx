"""Gradients of gated linear units, of three operands and two results."""

from libc.string cimport memset

from cyrt.builtin.entry cimport op_code
from cyrt.builtin.gated cimport record_swiglu_vjp
from cyrt.builtin.operand cimport Operand
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, device_of, new_array, set_operand, view_of
from cyrt.nn.rows cimport spaced_rows
from cyrt.ops.arguments import check_array
from cyrt.ops.copy cimport cast
from cyrt.ops.elementwise cimport refuse_type, result_code
from cyrt.ops.promotion cimport promote
from cyrt.runtime.stream cimport current_state

cdef int SWIGLU_VJP = op_code("swiglu_vjp")


cdef Array put_rows(Operand* operand, Array x, int code, long long* step):
    """Set an input that is cast to a type, and copied unless its rows are evenly spaced."""
    cdef long long one = 1
    if x.code != code:
        x = cast(x, code)
    if x.ndim_ == 0:
        x = view_of(x, code, 1, &one, &one, 0)
    x = spaced_rows(x, step)
    set_operand(operand, x)
    return x


def swiglu_vjp(gate, up, g):
    """Compute the gradients of :func:`swiglu` from that of its result, in one launch.

    Parameters
    ----------
    gate, up : Array
        The operands, of real floating-point types and one shape.
    g : Array
        The gradient of the result, of that shape.

    Returns
    -------
    tuple of Array
        The gradients of gate and up, of the type that all three promote to.

    Raises
    ------
    TypeError
        An operand is no Array, or not of a real floating-point type.
    ValueError
        The shapes differ.
    """
    cdef Operand[5] operands
    cdef long long[3] steps
    cdef long long n
    cdef Array a = check_array(gate, "swiglu_vjp: gate"), b = check_array(up, "swiglu_vjp: up")
    cdef Array c = check_array(g, "swiglu_vjp: g"), of_gate, of_up
    cdef int code = promote(promote(a.code, b.code), c.code), ordinal
    if result_code(SWIGLU_VJP, code) < 0:
        refuse_type(SWIGLU_VJP, code)
    if not a.shape == b.shape == c.shape:
        raise ValueError(f"swiglu_vjp: expected one shape, got {a.shape} of gate, {b.shape} of up "
                         f"and {c.shape} of g")
    ordinal = device_of(a)
    of_gate = new_array(ordinal, code, a.ndim_, a.dims)
    of_up = new_array(ordinal, code, a.ndim_, a.dims)
    n = a.dims[a.ndim_ - 1] if a.ndim_ else 1
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], of_gate)
    set_operand(&operands[1], of_up)
    a = put_rows(&operands[2], a, code, &steps[0])      # lives until the launch is recorded
    b = put_rows(&operands[3], b, code, &steps[1])
    c = put_rows(&operands[4], c, code, &steps[2])
    record_swiglu_vjp(encoder_of(current_state(ordinal)), code, operands, of_gate.count // n if n
                      else 0, n, steps)
    return of_gate, of_up
