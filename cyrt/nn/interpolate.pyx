"""Interpolation of images to another size, and its gradient."""

import math

import numpy as np

from libc.string cimport memset

from cyrt.builtin.entry cimport op_code
from cyrt.builtin.interpolate cimport (
    CUBIC, INTERPOLATE_AXES, LINEAR, NEAREST, Interpolation, record_interpolate,
)
from cyrt.builtin.operand cimport Operand
from cyrt.error_text import show
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array, set_operand, shape_of
from cyrt.nn.checks import check_floating, check_gradient, number_of
from cyrt.ops.arguments import check_bool, int_of
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef enum:
    LONGEST = 1 << 30       # the largest size of an axis

cdef int INTERPOLATE = op_code("interpolate"), INTERPOLATE_VJP = op_code("interpolate_vjp")
# The kernel of each mode, and the numbers of spatial dimensions for which the mode is.
cdef dict MODES = {
    "nearest": (NEAREST, (1, 2, 3)), "nearest-exact": (NEAREST, (1, 2, 3)),
    "linear": (LINEAR, (1,)), "bilinear": (LINEAR, (2,)), "trilinear": (LINEAR, (3,)),
    "bicubic": (CUBIC, (2,)),
}


cdef object rounded(object number, bint single):
    """Return a number in float32 or float64, in which PyTorch computes positions."""
    return float(np.float32(number)) if single else float(number)


cdef tuple one_each(str name, str argument, object value, int ndim):
    """Return a value for each dimension, from one value for all or from a sequence."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * ndim
    if len(values) != ndim:
        raise ValueError(f"{name}: {argument}: expected one number or {ndim}, one for each spatial "
                         f"dimension, got {value}")
    return values


cdef int read_arguments(str name, Array x, object size, object scale_factor, object mode,
                        object align_corners, Interpolation* images) except -1:
    """Check the arguments, and set the interpolation."""
    cdef int ndim = x.ndim_ - 2, d, first
    cdef bint single
    if not 1 <= ndim <= INTERPOLATE_AXES:
        raise ValueError(f"{name}: x: expected a shape (N, *spatial, C) of 3 to 5 dimensions, got "
                         f"{shape_of(x)}")
    if not isinstance(mode, str) or mode not in MODES:
        raise ValueError(f"{name}: mode: expected {', '.join(map(repr, MODES))}, got {show(mode)}")
    neighbours, dimensions = MODES[mode]
    if ndim not in dimensions:
        takes = [each for each in MODES if ndim in MODES[each][1]]
        raise ValueError(f"{name}: mode: {mode!r} is for {dimensions[0]} spatial dimension"
                         f"{'s' if dimensions[0] > 1 else ''}, got x of shape {shape_of(x)}, which "
                         f"has {ndim}; for it there are {', '.join(map(repr, takes))}")
    if align_corners is not None:
        check_bool(align_corners, f"{name}: align_corners")
        if neighbours == NEAREST:
            raise ValueError(f"{name}: align_corners: expected None for mode {mode!r}, got "
                             f"{align_corners}")
    if (size is None) == (scale_factor is None):
        raise ValueError(f"{name}: expected size or scale_factor, got "
                         f"{'neither' if size is None else 'both'}")
    memset(images, 0, sizeof(Interpolation))
    images.neighbours, images.halfway = neighbours, mode == "nearest-exact"
    images.corners = align_corners is True
    images.batch, images.channels = x.dims[0], x.dims[x.ndim_ - 1]
    inputs = shape_of(x)[1:ndim + 1]
    if size is None:
        factors = [number_of(each, name, "scale_factor", 0)
                   for each in one_each(name, "scale_factor", scale_factor, ndim)]
        outputs = tuple([math.floor(n * factor) for n, factor in zip(inputs, factors)])
    else:
        factors = (0.0,) * ndim
        outputs = tuple([int_of(each, f"{name}: size")
                         for each in one_each(name, "size", size, ndim)])
    if min(outputs) < 1 or max(outputs) > LONGEST or max(inputs) > LONGEST:
        raise ValueError(f"{name}: {'size' if scale_factor is None else 'scale_factor'}: expected "
                         f"outputs of 1 to {<long long>LONGEST:,} elements along each axis, got "
                         f"{outputs} of inputs {inputs}")
    if min(inputs) < 1:
        raise ValueError(f"{name}: x: expected elements along each spatial axis, got shape "
                         f"{shape_of(x)}")
    single = neighbours == NEAREST or x.dtype.name != "float64"
    first = INTERPOLATE_AXES - ndim
    for d in range(INTERPOLATE_AXES):
        images.axis[d].input = images.axis[d].output = 1
        images.axis[d].scale = 1
    for d in range(ndim):
        images.axis[first + d].input, images.axis[first + d].output = inputs[d], outputs[d]
        if images.corners:
            scale = (inputs[d] - 1) / (outputs[d] - 1) if outputs[d] > 1 else 0
        else:
            scale = 1 / factors[d] if factors[d] else inputs[d] / outputs[d]
        images.axis[first + d].scale = rounded(scale, single)
    return 0


cdef Array record(int op, Array source, Array out, const Interpolation* images):
    cdef Operand[2] operands
    memset(operands, 0, sizeof(operands))
    if out.count == 0:
        return out
    source = as_contiguous(source)
    set_operand(&operands[0], out)
    set_operand(&operands[1], source)
    record_interpolate(encoder_of(current_state(device_of(out))), op, out.code, operands, images)
    return out


cdef Array new_like(Array x, const Interpolation* images, bint output):
    """Return a new array of x's type, with the sizes of the input or the output."""
    cdef long long[INTERPOLATE_AXES + 2] dims
    cdef int d, first = INTERPOLATE_AXES + 2 - x.ndim_
    dims[0], dims[x.ndim_ - 1] = images.batch, images.channels
    for d in range(x.ndim_ - 2):
        dims[d + 1] = images.axis[first + d].output if output else images.axis[first + d].input
    return new_array(device_of(x), x.code, x.ndim_, dims)


def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Change the size of images, or of arrays with 1 or 3 spatial dimensions, by interpolation.

    Parameters
    ----------
    x : Array
        Shape (N, *spatial, C), of float16, bfloat16, float32 or float64. It is copied if it is not
        contiguous.
    size : int or tuple of int, optional
        The result's spatial sizes, one for all dimensions or one for each.
    scale_factor : float or tuple of float, optional
        The factors by which the sizes are multiplied, instead of `size`; products are rounded down.
    mode : str
        ``"nearest"`` and ``"nearest-exact"`` take one element; the latter takes the element at the
        middle of the output element, as Pillow and scikit-image do. ``"linear"``, ``"bilinear"``
        and ``"trilinear"`` interpolate between neighbours in 1, 2 or 3 dimensions, ``"bicubic"``
        between 4 by 4 neighbours.
    align_corners : bool, optional
        True aligns the middles of the outermost elements of x and of the result; False aligns their
        outer edges. The modes that take one element do not accept it.

    Returns
    -------
    Array
        Shape (N, *sizes, C), of x's type; sums are computed in float32, or for float64 in float64.
        The number of neighbours is the same if the size becomes smaller.

    Raises
    ------
    TypeError
        x is not an array of one of these types, or a size is not an int.
    ValueError
        x has no spatial dimension or more than 3, or no elements along one; the mode is for another
        number of dimensions; both `size` and `scale_factor` are given, or neither; a size of the
        result is 0.

    Notes
    -----
    This is PyTorch's ``torch.nn.functional.interpolate``, with channels last, without ``antialias``
    and without ``recompute_scale_factor``: positions are computed with the argument `scale_factor`
    itself. The cubic weights are those of Keys, IEEE TASSP 29 (1981), with a = -0.75.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[[1.0], [3.0]]])
    >>> cyrt.nn.interpolate(x, 4, mode="linear")[0, :, 0]
    Array([1. , 1.5, 2.5, 3. ], dtype=float32)
    >>> cyrt.nn.interpolate(x, scale_factor=2)[0, :, 0]
    Array([1., 1., 3., 3.], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(interpolate, (x, size, scale_factor, mode, align_corners))
    cdef Interpolation images
    check_floating("interpolate", "x", x)
    read_arguments("interpolate", x, size, scale_factor, mode, align_corners, &images)
    return record(INTERPOLATE, x, new_like(x, &images, True), &images)


def interpolate_vjp(g, x, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Compute the gradient of :func:`interpolate`'s input from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result, of its shape and x's type.
    x : Array
        The input; its values are not read.
    size, scale_factor, mode, align_corners
        As for :func:`interpolate`.

    Returns
    -------
    Array
        An array of x's shape and type. Equal inputs give equal bits, because sums are always added
        in the same order.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`interpolate`; or g has another type or shape.

    Examples
    --------
    >>> import cyrt
    >>> x, g = cyrt.ones((1, 2, 1)), cyrt.ones((1, 4, 1))
    >>> cyrt.nn.interpolate_vjp(g, x, 4, mode="linear")[0, :, 0]
    Array([2., 2.], dtype=float32)
    """
    cdef Interpolation images
    cdef int d
    check_floating("interpolate_vjp", "x", x)
    read_arguments("interpolate_vjp", x, size, scale_factor, mode, align_corners, &images)
    outputs = [images.axis[d].output
               for d in range(INTERPOLATE_AXES + 2 - x.ndim, INTERPOLATE_AXES)]
    check_gradient("interpolate_vjp", g, (images.batch, *outputs, images.channels), x, "x")
    return record(INTERPOLATE_VJP, g, new_like(x, &images, False), &images)
