"""Gradients of gated linear units, operations of three operands."""

from cpython.object cimport PyObject

from cyrt.builtin.entry cimport op_code
from cyrt.ndarray cimport Array
from cyrt.nn.activations import swiglu
from cyrt.ops.arguments import check_array
from cyrt.ops.elementwise cimport record_broadcast, refuse_type, result_code
from cyrt.ops.promotion cimport promote

cdef int GATE = op_code("swiglu_vjp_gate")


def swiglu_vjp(gate, up, g):
    """Compute the gradients of :func:`swiglu` from that of its result.

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
    cdef Array a = check_array(gate, "swiglu_vjp: gate"), b = check_array(up, "swiglu_vjp: up")
    cdef Array c = check_array(g, "swiglu_vjp: g")
    cdef int code = promote(promote(a.code, b.code), c.code)
    cdef PyObject** operands = [<PyObject*>a, <PyObject*>b, <PyObject*>c]
    cdef int[3] types = [code, code, code]
    if result_code(GATE, code) < 0:
        refuse_type(GATE, code)
    if not a.shape == b.shape == c.shape:
        raise ValueError(f"swiglu_vjp: expected one shape, got {a.shape} of gate, {b.shape} of up "
                         f"and {c.shape} of g")
    return record_broadcast(GATE, code, code, 3, operands, types, None), swiglu(gate, g)
