"""The launches of a built-in operation, without its memory."""

import importlib
import inspect
import operator
from dataclasses import dataclass

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport dtype_code, op_code, origin_of
from cyrt.builtin.launch cimport Explainer, explainer_of
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.dtypes import dtype as _dtype
from cyrt.runtime.device cimport current_ordinal


@dataclass(frozen=True)
class Explanation:
    """The launches of an operation.

    Attributes
    ----------
    kernel : str
        The symbol of the first kernel.
    grid : int
        The number of its blocks; grids are one-dimensional.
    block : tuple of int
        The number of its threads, x and y.
    launches : int
        The number of launches of the operation.
    origin : str
        The origin of the code: a prebuilt cubin, prebuilt PTX or the compiler (JIT), and the
        architecture that it was compiled for; or a library and its version.
    expression : str
        The computed expression of the inputs a, b and c, in C++, or in words.
    kernels : tuple of tuple
        The kernel, grid and block of every launch, in order.
    """

    kernel: str
    grid: int
    block: tuple[int, int]
    launches: int
    origin: str
    expression: str
    kernels: tuple[tuple[str, int, tuple[int, int]], ...]


def explain(op, dtype, *shapes, **options):
    """Return the kernels, blocks, grids and code of an operation on the current device.

    Nothing is launched. Operands are assumed to be contiguous, and aligned to 16
    bytes.

    Parameters
    ----------
    op : str
        An operation of the catalogue: ``"add"``, ``"to_float32"`` (a cast), ``"copy"``, ``"sum"``,
        ``"matmul"``, ``"take"``, ``"sort"``, ``"cumulative_sum"``, ...
    dtype : str
        Element type of the operands; of an elementwise operation, of its last input.
    *shapes : int or sequence of int
        The shapes of the operands: one shape that all operands of an elementwise operation or of
        ``"swiglu_vjp"`` share; the input's of a reduction, a scan, or of a sort or ``"top_k"``
        along the last axis; the factors' of ``"matmul"``; the input's and the weight's of
        ``"linear"``; the array's and the indices' of ``"take"``, ``"put"``, ``"places"`` and
        ``"add_at"``; the sorted elements' and the values' of ``"search"``; the queries' and the
        cache's of ``"attention"``, and the keys' of ``"flash_attention"``; the input's and the
        weight's of ``"conv"`` and its gradients; the input's and the window's of ``"max_pool"``,
        ``"avg_pool"`` and their gradients.
    strides : sequence, optional
        In elements. For elementwise operations: those of the output and each input, each a sequence
        of int, or None for contiguous. For reductions: a sequence of int, the input's.
    axis : int or sequence of int, optional
        The axes of a reduction (all of them by default), the axis of a scan (the last one) or of
        ``"take"`` and ``"put"`` (the first one).
    k : int
        How many elements ``"top_k"`` selects of a row (1 by default).
    stride, padding, dilation, input_dilation, groups, flip : optional
        Of a convolution: see :func:`cyrt.nn.conv_general`.
    activation : str, optional
        Of ``"linear"``: see :func:`cyrt.nn.linear`.
    rms_norm, layer_norm : bool, optional
        Of ``"linear"``: whether the input is normalised so, with a weight (and a bias).

    Returns
    -------
    Explanation or None
        None if there are no elements, and so no launch.

    Raises
    ------
    ValueError, TypeError
        There is no such operation, it does not take the type, the shapes or the option; the message
        names what is expected.

    Examples
    --------
    >>> cyrt.kernels.explain("add", "float32", (1000, 1000)).kernel
    'cyrt_add_float32_aligned'
    """
    cdef Explainer explainer
    cdef int ordinal = current_ordinal()
    name = _dtype(dtype).name
    family = importlib.import_module(f"cyrt.builtin.{catalogue.family_of(op)}")
    known = list(inspect.signature(family.explain).parameters)[4:]
    for each in options:
        if each not in known:
            raise TypeError(f"{op} has no option {each!r}; it has {', '.join(known) or 'none'}")
    explainer = explainer_of(ordinal)
    # The family returns the type of its kernels' row.
    name = family.explain(explainer, op, name, [as_shape(each) for each in shapes], **options)
    if not explainer.launches:
        return None
    kernel, grid, block = explainer.launches[0]
    return Explanation(kernel, grid, block, len(explainer.launches),
                       explainer.origin or origin_of(ordinal, op_code(op), dtype_code(name)),
                       catalogue.row(op, name).expression, tuple(explainer.launches))


cdef tuple as_shape(value):
    cdef tuple shape
    try:
        shape = (operator.index(value),) if hasattr(value, "__index__") else tuple(
            [operator.index(each) for each in value])
    except TypeError:
        raise TypeError(f"shape: expected an int or a sequence of int, got {value!r}") from None
    if len(shape) > MAX_NDIM:
        raise ValueError(f"shape: expected at most {<int>MAX_NDIM} dimensions, got {len(shape)}")
    size = 1
    for each in shape:
        if each < 0:
            raise ValueError(f"shape: expected sizes of 0 or more, got {shape}")
        size *= each
    if size >= 1 << 62:
        raise ValueError(f"shape: {shape} has more elements than memory can hold")
    return shape


def expect_shapes(op, shapes, *names):
    """Return the shapes; ValueError unless there is one for each of the operands named."""
    if len(shapes) != len(names):
        raise ValueError(f"{op}: expected {len(names)} shapes, of {' and '.join(names)}, got "
                         f"{len(shapes)}")
    return shapes


def expect_strides(op, strides):
    """Return an operand's strides, or None; TypeError unless they are a sequence of int."""
    if strides is not None and not (isinstance(strides, (tuple, list))
                                    and all([hasattr(each, "__index__") for each in strides])):
        raise TypeError(f"{op}: strides: expected a sequence of int, got {strides!r}")
    return strides


def expect_axis(op, axis, shape):
    """Return the axis as an index from 0; TypeError, ValueError unless the shape has it."""
    if not hasattr(axis, "__index__"):
        raise TypeError(f"{op}: axis: expected an int, got {axis!r}")
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"{op}: axis {axis} is out of bounds for the shape {shape}")
    return axis % len(shape)
