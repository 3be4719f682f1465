# cython: boundscheck=True
"""Fitting gradients to the operands that they belong to."""

from cyrt.ndarray cimport Array, shape_of
from cyrt.ops.copy import astype, copy
from cyrt.ops.creation import empty, zeros
from cyrt.ops.functions import real
from cyrt.ops.reduce import sum as sum_of
from cyrt.ops.shapes import reshape
from cyrt.tape cimport FIRST_FLOAT


def adapt(gradient, tuple shape not None, dtype, bint broadcast, str name):
    """Return a gradient in the shape and the type of its operand.

    Parameters
    ----------
    gradient : Array
    shape : tuple of int
    dtype : DType
        The gradient of a real operand is the real part of a complex one.
    broadcast : bool
        Whether the operand may have been broadcast: its gradient is the sum over the dimensions
        along which it was.
    name : str
        The function that has the gradient, for messages.

    Raises
    ------
    TypeError
        The gradient is no Array, or not of a floating-point type.
    ValueError
        It has another shape.
    """
    if not isinstance(gradient, Array):
        raise TypeError(
            f"{name}: a gradient: expected an Array of shape {shape} and {dtype}, got "
            f"{type(gradient).__name__}")
    if (<Array>gradient).code < FIRST_FLOAT:
        raise TypeError(f"{name}: a gradient: expected {dtype}, got {gradient.dtype}")
    if shape_of(<Array>gradient) != shape:
        if not broadcast:
            raise ValueError(
                f"{name}: a gradient: expected shape {shape} and {dtype}, got {gradient.shape} "
                f"and {gradient.dtype}")
        gradient = sum_to(gradient, shape)
    if (<Array>gradient).code == dtype.code:
        return gradient
    if gradient.dtype.kind == "c" and dtype.kind == "f":
        gradient = real(gradient)
    return astype(gradient, dtype, copy=False)


def own(gradient, tuple shape, dtype, device):
    """Return a new array with a gradient's values, or with zeros for None."""
    return zeros(shape, dtype, device=device) if gradient is None else copy(gradient)


def sum_to(Array gradient not None, tuple shape not None):
    """Sum over the dimensions along which an array of that shape was broadcast."""
    cdef int d, ndim = len(shape), extra = gradient.ndim_ - ndim
    cdef list axes = None
    for d in range(gradient.ndim_):
        if d < extra or gradient.dims[d] != 1 and shape[d - extra] == 1:
            axes = axes or []
            axes.append(d)
    if axes is None:
        return gradient
    gradient = sum_of(gradient, tuple(axes))
    return gradient if gradient.ndim_ == ndim else reshape(gradient, shape)


def unread(Array g not None, tuple shape, dtype):
    """Return an array in place of an argument of which a gradient needs no values."""
    return empty(shape, dtype, device=g.device)
