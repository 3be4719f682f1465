"""Normalisation of channels over positions, and its gradients.

All three functions normalise a view of x with the shape (samples, positions, groups, channels) over
the positions and the channels of a group. For batch_norm there is one sample; for batch_norm and
instance_norm each channel is a group. Statistics have the shape (samples, 1, groups, 1), weights
(groups, channels). Everything is computed in float32, or for float64 in float64.
"""

from __future__ import annotations

import math
from typing import Any

from cyrt.ndarray import Array
from cyrt.nn.checks import check_floating, check_gradient, number_of, wide_type
from cyrt.ops.arguments import check_array, check_bool, int_of
from cyrt.ops.copy import check_device
from cyrt.ops.functions import add, multiply, rsqrt
from cyrt.ops.reduce import mean, var
from cyrt.ops.reduce import sum as _sum
from cyrt.ops.shapes import reshape
from cyrt.ops.ternary import ternary
from cyrt.tape import detach, differentiable

_OVER = (1, 3)
Gradients = tuple[Array, Array | None, Array | None]


def batch_norm(
    x: Array,
    running_mean: Array | None,
    running_var: Array | None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """Normalise each channel (the last axis) over all its elements.

    The result is ``(x - mean) / sqrt(var + eps) * weight + bias``.

    Parameters
    ----------
    x : Array
        Shape (N, ..., C): float16, bfloat16, float32 or float64.
    running_mean, running_var : Array or None
        The mean and the variance, shape (C,), of x's type or of the type of the computation:
        float32, or for float64 float64. In training they are not used for the result, but updated
        in place; both may be None.
    weight, bias : Array, optional
        Shape (C,), of one of these types.
    training : bool
        Whether the mean and the variance of x are used, instead of the running ones.
    momentum : float
        The weight of x's mean and variance in the updated running ones, from 0 to 1. The variance
        is the unbiased one here: its divisor is one less than the number of elements.
    eps : float
        The number that is added to the variance, 0 or more.

    Returns
    -------
    Array
        An array of x's shape and type.

    Raises
    ------
    TypeError
        x is not an array of one of these types, or another argument has another type; `training`
        is False and there are no running statistics.
    ValueError
        An argument has another shape or is on another device; or in training a channel has fewer
        than two elements, or the running statistics cannot be written.

    Notes
    -----
    Ioffe and Szegedy, arXiv:1502.03167. The arguments are those of PyTorch's
    ``torch.nn.functional.batch_norm``, with channels last.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[1.0, 4.0], [3.0, 4.0]])
    >>> mean, var = cyrt.zeros(2), cyrt.ones(2)
    >>> cyrt.nn.batch_norm(x, mean, var, training=True, eps=1e-12)
    Array([[-1.,  0.],
           [ 1.,  0.]], dtype=float32)
    >>> mean
    Array([0.2, 0.4], dtype=float32)
    """
    name = "batch_norm"
    check_bool(training, f"{name}: training")
    share = number_of(momentum, name, "momentum", 0, 1)
    eps = number_of(eps, name, "eps", 0)
    _check_input(name, x)
    _check_running(name, x, running_mean, running_var, training)
    moments = (None, None) if training else (running_mean, running_var)
    result, level, spread = normalize_channels(x, *moments, weight, bias, eps)
    if training and running_mean is not None and running_var is not None:
        count = math.prod(x.shape[:-1])
        unbiased = count / (count - 1) if count > 1 else 1.0
        for running, found, factor in (
            (running_mean, level, share),
            (running_var, spread, share * unbiased),
        ):
            running *= 1 - share
            found = reshape(detach(found), running.shape)
            ternary("multiply_add", found, factor, running, running)
    return result


@differentiable
def normalize_channels(
    x: Array,
    mean: Array | None,
    variance: Array | None,
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> tuple[Array, Array, Array]:
    """Return :func:`batch_norm`'s result, and the mean and the variance by which it is computed.

    If the mean and the variance are None, those of x are computed.
    """
    rows = _channels("batch_norm", x)
    weight, bias = _parameters("batch_norm", x, (x.shape[-1], 1), weight=weight, bias=bias)
    level, spread = _moments(rows) if mean is None else _running(rows, mean, variance)
    return _normalized(x, rows, level, spread, weight, bias, eps), level, spread


def batch_norm_vjp(
    g: Array,
    x: Array,
    running_mean: Array | None,
    running_var: Array | None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Gradients:
    """Compute the gradients of :func:`batch_norm` from that of its result.

    In training, the mean and the variance are functions of x, and are computed again from it.

    Parameters
    ----------
    g : Array
        The gradient of the result, of x's type and shape.
    x, training, eps
        As for :func:`batch_norm`.
    running_mean, running_var : Array or None
        They are read if `training` is False, and never changed.
    weight, bias : Array, optional
        As for :func:`batch_norm`; the bias's values are not read.
    momentum : float
        It has no effect.

    Returns
    -------
    tuple of (Array, Array or None, Array or None)
        The gradients of x, weight and bias; None for a parameter that is None.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`batch_norm`; or g differs from x in type or shape.

    Examples
    --------
    >>> import cyrt
    >>> x, one = cyrt.asarray([[1.0], [3.0]]), cyrt.ones(1)
    >>> g = cyrt.asarray([[1.0], [3.0]])
    >>> of_x, of_weight, of_bias = cyrt.nn.batch_norm_vjp(g, x, one, one, one, one, eps=0)
    >>> of_weight, of_bias
    (Array([6.], dtype=float32), Array([4.], dtype=float32))
    """
    name = "batch_norm_vjp"
    check_bool(training, f"{name}: training")
    number_of(momentum, name, "momentum", 0, 1)
    eps = number_of(eps, name, "eps", 0)
    rows = _channels(name, x)
    _check_running(name, x, running_mean, running_var, training)
    wide_weight, _ = _parameters(name, x, (x.shape[-1], 1), weight=weight, bias=bias)
    check_gradient(name, g, x.shape, x, "x")
    moments = None if training else _running(rows, running_mean, running_var)
    return _gradients(g, x, rows, moments, wide_weight, weight, bias, eps)


@differentiable
def group_norm(
    x: Array,
    num_groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """Normalise groups of channels (the last axis), in each sample over all positions.

    Parameters
    ----------
    x : Array
        Shape (N, ..., C): float16, bfloat16, float32 or float64.
    num_groups : int
        The number of groups; a group is a range of neighbouring channels.
    weight, bias : Array, optional
        Shape (C,), of x's type or of the type of the computation: float32, or for float64 float64.
    eps : float
        The number that is added to the variance, 0 or more.

    Returns
    -------
    Array
        ``(x - mean) / sqrt(var + eps) * weight + bias``, of x's shape and type.

    Raises
    ------
    TypeError
        x is not an array of one of these types, or another argument has another type.
    ValueError
        C is not a multiple of the number of groups, or an argument has another shape or is on
        another device.

    Notes
    -----
    Wu and He, arXiv:1803.08494. This is PyTorch's ``torch.nn.functional.group_norm``, with channels
    last.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[1.0, 3.0, 6.0, 6.0]])
    >>> cyrt.nn.group_norm(x, 2, eps=1e-12)
    Array([[-1.,  1.,  0.,  0.]], dtype=float32)
    """
    return _group_norm("group_norm", x, num_groups, weight, bias, eps)


def group_norm_vjp(
    g: Array,
    x: Array,
    num_groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Gradients:
    """Compute the gradients of :func:`group_norm` from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result, of x's type and shape.
    x, num_groups, eps
        As for :func:`group_norm`.
    weight, bias : Array, optional
        As for :func:`group_norm`; the bias's values are not read.

    Returns
    -------
    tuple of (Array, Array or None, Array or None)
        The gradients of x, weight and bias; None for a parameter that is None.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`group_norm`; or g differs from x in type or shape.

    Examples
    --------
    >>> import cyrt
    >>> x, one = cyrt.asarray([[1.0, 3.0]]), cyrt.ones(2)
    >>> cyrt.nn.group_norm_vjp(x, x, 1, one, one, eps=1e-12)[1:]
    (Array([-1.,  3.], dtype=float32), Array([1., 3.], dtype=float32))
    """
    return _group_norm_vjp("group_norm_vjp", g, x, num_groups, weight, bias, eps)


@differentiable
def instance_norm(
    x: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    """Normalise each channel (the last axis), in each sample over all positions.

    Parameters
    ----------
    x : Array
        Shape (N, ..., C): float16, bfloat16, float32 or float64.
    weight, bias, eps
        As for :func:`group_norm`.

    Returns
    -------
    Array
        The result of :func:`group_norm` with a group for each channel, of x's shape and type.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`group_norm`.

    Notes
    -----
    Ulyanov, Vedaldi and Lempitsky, arXiv:1607.08022. This is PyTorch's
    ``torch.nn.functional.instance_norm``, with channels last and without running statistics.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[[1.0, 4.0], [3.0, 4.0]]])
    >>> cyrt.nn.instance_norm(x, eps=1e-12)[0]
    Array([[-1.,  0.],
           [ 1.,  0.]], dtype=float32)
    """
    return _group_norm("instance_norm", x, None, weight, bias, eps)


def instance_norm_vjp(
    g: Array, x: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Gradients:
    """Compute the gradients of :func:`instance_norm` from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result, of x's type and shape.
    x, weight, bias, eps
        As for :func:`instance_norm`.

    Returns
    -------
    tuple of (Array, Array or None, Array or None)
        The gradients of x, weight and bias; None for a parameter that is None.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`instance_norm`; or g differs from x in type or shape.

    Examples
    --------
    >>> import cyrt
    >>> x, one = cyrt.asarray([[[1.0], [3.0]]]), cyrt.ones(1)
    >>> cyrt.nn.instance_norm_vjp(x, x, one, one, eps=1e-12)[1:]
    (Array([2.], dtype=float32), Array([4.], dtype=float32))
    """
    return _group_norm_vjp("instance_norm_vjp", g, x, None, weight, bias, eps)


def _group_norm(
    name: str,
    x: Array,
    num_groups: int | None,
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> Array:
    """:func:`group_norm`; None is a group for each channel."""
    eps = number_of(eps, name, "eps", 0)
    rows = _groups(name, x, num_groups)
    weight, bias = _parameters(name, x, rows.shape[2:], weight=weight, bias=bias)
    return _normalized(x, rows, *_moments(rows), weight, bias, eps)


def _group_norm_vjp(
    name: str,
    g: Array,
    x: Array,
    num_groups: int | None,
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> Gradients:
    eps = number_of(eps, name, "eps", 0)
    rows = _groups(name, x, num_groups)
    wide_weight, _ = _parameters(name, x, rows.shape[2:], weight=weight, bias=bias)
    check_gradient(name, g, x.shape, x, "x")
    return _gradients(g, x, rows, None, wide_weight, weight, bias, eps)


# -- arguments -------------------------------------------------------------------------------------


def _check_input(name: str, x: Array) -> None:
    check_floating(name, "x", x)
    if x.ndim < 2:
        raise ValueError(f"{name}: x: expected a shape (N, ..., C), got {x.shape}")


def _channels(name: str, x: Array) -> Array:
    """Return x with all positions of a channel in one row."""
    _check_input(name, x)
    channels = x.shape[-1]
    wide = x.astype(wide_type(x), copy=False)
    return reshape(wide, (1, math.prod(x.shape[:-1]), channels, 1))


def _groups(name: str, x: Array, num_groups: int | None) -> Array:
    """Return x with its channels in groups; None makes a group of each channel."""
    _check_input(name, x)
    channels = x.shape[-1]
    if num_groups is None:
        groups, size = channels, 1
    else:
        groups = int_of(num_groups, f"{name}: num_groups")
        if groups < 1 or channels % groups:
            raise ValueError(
                f"{name}: num_groups: expected a divisor of {channels}, the number of channels of "
                f"x of shape {x.shape}, got {groups}"
            )
        size = channels // groups
    wide = x.astype(wide_type(x), copy=False)
    return reshape(wide, (x.shape[0], math.prod(x.shape[1:-1]), groups, size))


def _check_parameter(name: str, argument: str, parameter: Array, x: Array) -> None:
    check_array(parameter, f"{name}: {argument}")
    wide = wide_type(x)
    if parameter.dtype.name not in (x.dtype.name, wide):
        types = " or ".join(dict.fromkeys((x.dtype.name, wide)))
        raise TypeError(
            f"{name}: {argument}: expected {types}, for x of {x.dtype}, got {parameter.dtype}"
        )
    if parameter.shape != x.shape[-1:]:
        raise ValueError(
            f"{name}: {argument}: expected shape {x.shape[-1:]}, for x of shape {x.shape}, whose "
            f"channels are last, got {parameter.shape}"
        )
    check_device(parameter, x, name, argument)


def _check_running(
    name: str, x: Array, running_mean: Array | None, running_var: Array | None, training: bool
) -> None:
    if not (training and running_mean is None and running_var is None):
        for argument, each in (("running_mean", running_mean), ("running_var", running_var)):
            _check_parameter(name, argument, each, x)  # type: ignore[arg-type]
            if training and each is not None and not each.flags.writeable:
                raise ValueError(
                    f"{name}: {argument}: it is updated, and this array is a read-only view: "
                    "copy() it first"
                )
    if training and x.shape[-1] and math.prod(x.shape[:-1]) < 2:
        raise ValueError(
            f"{name}: x: training needs two elements of each channel or more, got shape {x.shape}"
        )
    if training and running_mean is not None and running_mean is running_var:
        raise ValueError(f"{name}: running_var: expected another Array than running_mean")


def _parameters(
    name: str, x: Array, shape: tuple[int, ...], **parameters: Array | None
) -> list[Array | None]:
    """Check weight and bias, and return them as groups, in the type of the computation."""
    found: list[Array | None] = []
    for argument, each in parameters.items():
        if each is not None:
            _check_parameter(name, argument, each, x)
            each = reshape(each.astype(wide_type(x), copy=False), shape)
        found.append(each)
    return found


def _running(rows: Array, running_mean: Any, running_var: Any) -> tuple[Array, Array]:
    shape = (1, 1, rows.shape[2], 1)
    level, spread = (
        reshape(each.astype(rows.dtype, copy=False), shape) for each in (running_mean, running_var)
    )
    return level, spread


# -- the computation -------------------------------------------------------------------------------


def _moments(rows: Array) -> tuple[Array, Array]:
    return mean(rows, axis=_OVER, keepdims=True), var(rows, axis=_OVER, keepdims=True)


def _normalized(
    x: Array,
    rows: Array,
    level: Array,
    spread: Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> Array:
    scale = rsqrt(spread + eps)
    if weight is not None:
        scale = multiply(scale, weight)
    result = ternary("scale_centered", rows, level, scale)
    if bias is not None:
        add(result, bias, out=result)
    return reshape(result, x.shape).astype(x.dtype, copy=False)


def _gradients(
    g: Array,
    x: Array,
    rows: Array,
    moments: tuple[Array, Array] | None,
    wide_weight: Array | None,
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> Gradients:
    """Compute the gradients of x, weight and bias, for constant moments, or for None x's
    moments."""
    level, spread = _moments(rows) if moments is None else moments
    scale = rsqrt(spread + eps)
    slope = reshape(g.astype(rows.dtype, copy=False), rows.shape)
    wanted = moments is None or weight is not None
    normal = ternary("scale_centered", rows, level, scale) if wanted else None
    # The sums over positions are the gradients of weight and bias; the sums of a group are made of
    # them.
    sums = _sum(slope, axis=1, keepdims=True) if moments is None or bias is not None else None
    products = _sum(slope * normal, axis=1, keepdims=True) if normal is not None else None

    def of_parameter(parameter: Array | None, found: Array | None) -> Array | None:
        if parameter is None or found is None:
            return None
        if rows.shape[0] != 1:
            found = _sum(found, axis=0)
        return reshape(found, parameter.shape).astype(parameter.dtype, copy=False)

    of_weight, of_bias = of_parameter(weight, products), of_parameter(bias, sums)
    grouped = rows.shape[3] > 1
    if wide_weight is not None and not grouped:
        scale = scale * wide_weight
    elif wide_weight is not None:
        slope = slope * wide_weight

    def over_group(found: Array, factor: float) -> Array:
        """Add the sums over positions of a group's channels, each times its weight."""
        if grouped:
            weighted = found if wide_weight is None else found * wide_weight
            found = _sum(weighted, axis=3, keepdims=True)
        return found * factor

    if moments is None and rows.size and sums is not None and products is not None:
        count = rows.shape[1] * rows.shape[3]
        slope = ternary("multiply_add", normal, over_group(products, -1 / count), slope)
        of_x = ternary("scale_centered", slope, over_group(sums, 1 / count), scale)
    else:
        of_x = slope * scale
    return reshape(of_x, x.shape).astype(x.dtype, copy=False), of_weight, of_bias


__all__ = [
    "batch_norm",
    "batch_norm_vjp",
    "group_norm",
    "group_norm_vjp",
    "instance_norm",
    "instance_norm_vjp",
]
