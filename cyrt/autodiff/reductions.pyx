# cython: boundscheck=True, wraparound=True
"""The gradients of reductions and scans."""

from math import inf, prod

from cyrt import tape
from cyrt.ops import functions as f
from cyrt.ops import reduce, scan
from cyrt.ops.arange import arange
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy import astype
from cyrt.ops.shapes import expand_dims, flip, moveaxis, reshape
from cyrt.ops.ternary import where as choose


def _axes_of(axis, ndim):
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple([int(each) % ndim for each in axes])


def _spread(g, shape, axis, keepdims):
    """Broadcast the gradient of a reduction's result to the operand's shape."""
    if not keepdims and shape:
        g = expand_dims(g, _axes_of(axis, len(shape)))
    return broadcast_to(g, shape)


def _count(shape, axis):
    return prod([shape[each] for each in _axes_of(axis, len(shape))])


def _masked(g, where):
    return g if where is None or where is True else choose(where, g, 0.0)


def _sum(g, x_shape, axis, keepdims, where):
    return _masked(_spread(g, x_shape, axis, keepdims), where)


def _counts(x_shape, axis, where):
    """Return how many elements count, with the reduced dimensions."""
    if where is None or where is True:
        return _count(x_shape, axis)
    return astype(reduce.sum(broadcast_to(where, x_shape), axis, keepdims=True), "float64")


def _divided(g, count, g_dtype):
    return g / float(count) if isinstance(count, (int, float)) else g / astype(count, g_dtype)


def _mean(g, x_shape, axis, keepdims, where):
    if where is None or where is True:
        return _spread(g / float(_count(x_shape, axis)), x_shape, axis, keepdims)
    count = _counts(x_shape, axis, where)
    return _masked(_divided(_spread(g, x_shape, axis, keepdims), count, g.dtype), where)


def _deviation(x, axis, where):
    x = x - reduce.mean(x, axis, keepdims=True, where=where)
    return f.conj(x) if x.dtype.kind == "c" else x


def _degrees(x_shape, axis, ddof, correction, where):
    less = correction if correction is not None else ddof or 0
    count = _counts(x_shape, axis, where)
    return max(count - less, 0) if isinstance(count, int) else f.maximum(count - less, 0.0)


def _var(g, x, axis, ddof, keepdims, correction, where):
    degrees = _degrees(x.shape, axis, ddof, correction, where)
    scaled = _divided(_spread(g * 2.0, x.shape, axis, keepdims), degrees, g.dtype)
    return _masked(scaled * _deviation(x, axis, where), where)


def _std(g, x, axis, ddof, keepdims, correction, where, result):
    zero = f.equal(result, 0)
    g = choose(zero, 0.0, g / choose(zero, 1.0, result))
    return _var(g * 0.5, x, axis, ddof, keepdims, correction, where)


def _flattened(x, axis):
    """Return x with the reduced dimensions as one, the last."""
    axes = sorted(_axes_of(axis, x.ndim))
    x = moveaxis(x, tuple(axes), tuple(range(x.ndim - len(axes), x.ndim)))
    return reshape(x, (*x.shape[: x.ndim - len(axes)], -1)) if x.size else x


def _restored(x, shape, axis):
    """Undo `_flattened`."""
    axes = sorted(_axes_of(axis, len(shape)))
    kept = [size for d, size in enumerate(shape) if d not in axes]
    x = reshape(x, (*kept, *(shape[each] for each in axes)))
    return moveaxis(x, tuple(range(len(kept), len(shape))), tuple(axes))


def _products_of_others(x):
    """Return for each element along the last axis the product of all others."""
    before = scan.cumulative_prod(x, axis=-1, include_initial=True)[..., :-1]
    after = scan.cumulative_prod(flip(x, axis=-1), axis=-1, include_initial=True)[..., :-1]
    return before * flip(after, axis=-1)


def _prod(g, x, axis, dtype, keepdims, initial, where):
    if x.size == 0 or (axis == () and x.ndim):
        return _spread(g, x.shape, axis, keepdims)
    own = x if where is None or where is True else choose(where, x, 1.0)
    own = own if dtype is None else astype(own, dtype)
    others = (
        x * 0.0 + 1.0
        if x.ndim == 0
        else _restored(_products_of_others(_flattened(own, axis)), x.shape, axis)
    )
    g = g if initial is None else g * initial
    return _masked(_spread(g, x.shape, axis, keepdims) * others, where)


def _extreme(greatest):
    def backward(g, x, axis, keepdims, initial, where, result):
        if x.ndim == 0 or axis == ():
            chosen = f.equal(x, result)
        else:
            own = (
                x if where is None or where is True else choose(where, x, -inf if greatest else inf)
            )
            rows = _flattened(own, axis)
            find = reduce.argmax if greatest else reduce.argmin
            indices = expand_dims(find(rows, axis=-1), -1)
            chosen = _restored(
                f.equal(arange(rows.shape[-1], device=x.device), indices), x.shape, axis
            )
        if initial is not None:
            kept = _spread(result, x.shape, axis, keepdims)
            chosen = f.logical_and(chosen, f.equal(x, kept))
        return choose(chosen, _spread(g, x.shape, axis, keepdims), 0.0)

    return backward


def _logsumexp(g, x, axis, keepdims, result):
    # As in PyTorch and JAX, the part of an infinite element is NaN, and that of others beside it 0.
    # Only elements that are all -inf have no greatest one to subtract: their parts are 0.
    base = choose(f.equal(result, -inf), 0.0, result)
    return _spread(g, x.shape, axis, keepdims) * f.exp(x - _spread(base, x.shape, axis, keepdims))


tape.register(reduce.sum, "x", _sum)
tape.register(reduce.mean, "x", _mean)
tape.register(reduce.var, "x", _var)
tape.register(reduce.std, "x", _std)
tape.register(reduce.prod, "x", _prod)
tape.register(reduce.max, "x", _extreme(True))
tape.register(reduce.min, "x", _extreme(False))
tape.register(reduce.logsumexp, "x", _logsumexp)
for _each in (reduce.any, reduce.all, reduce.argmax, reduce.argmin, reduce.count_nonzero):
    tape.register_constant(_each)


# -- scans -----------------------------------------------------------------------------------------


def _sums_from_behind(g, axis):
    return flip(scan.cumulative_sum(flip(g, axis=axis), axis=axis), axis=axis)


def _without_initial(g, axis, include_initial):
    return g[(slice(None),) * axis + (slice(1, None),)] if include_initial else g


def _cumulative_sum(g, x_shape, axis, include_initial):
    along = 0 if axis is None else axis % len(x_shape)
    return reshape(_sums_from_behind(_without_initial(g, along, include_initial), along), x_shape)


def _products(g, x, axis):
    """The gradient of a cumulative product: exact for any number of zeros."""
    zero = f.equal(x, 0)
    first = f.logical_and(zero, f.equal(scan.cumulative_sum(zero, axis=axis), 1))
    usual = _sums_from_behind(g * scan.cumulative_prod(x, axis=axis), axis)
    others = scan.cumulative_prod(choose(first, 1.0, x), axis=axis)
    # Behind the first zero all products are zero, and at it the product of all others counts.
    return choose(
        first, _sums_from_behind(g * others, axis), choose(zero, 0.0, usual / choose(zero, 1.0, x))
    )


def _cumulative_prod(g, x, axis, dtype, include_initial):
    along = 0 if axis is None else axis % x.ndim
    own = reshape(x, (1,)) if x.ndim == 0 else x
    own = own if dtype is None else astype(own, dtype)
    return reshape(_products(_without_initial(g, along, include_initial), own, along), x.shape)


def _cumsum(g, x_shape, axis):
    if axis is None or not x_shape:
        return reshape(_sums_from_behind(g, 0), x_shape)
    return _sums_from_behind(g, axis)


def _cumprod(g, x, axis, dtype):
    own = x if dtype is None else astype(x, dtype)
    if axis is None or x.ndim == 0:
        return reshape(_products(g, reshape(own, (-1,)), 0), x.shape)
    return _products(g, own, axis)


tape.register(scan.cumulative_sum, "x", _cumulative_sum)
tape.register(scan.cumulative_prod, "x", _cumulative_prod)
tape.register(scan.cumsum, "x", _cumsum)
tape.register(scan.cumprod, "x", _cumprod)
