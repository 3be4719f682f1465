# cython: boundscheck=True, wraparound=True
"""The gradients of products of matrices, vectors and tensors; nothing is conjugated."""

from cyrt import tape
from cyrt.autodiff.adapting import sum_to
from cyrt.ops import matmul as products
from cyrt.ops.functions import conj
from cyrt.ops.matmul import matmul, tensordot
from cyrt.ops.shapes import expand_dims, permute_dims, reshape


def _matmul_first(g, x1_shape, x2):
    if x2.ndim == 1:
        return sum_to(expand_dims(g, -1) * x2, x1_shape)
    if len(x1_shape) == 1:
        if x2.ndim == 2:
            return matmul(x2, g)
        return sum_to(matmul(x2, expand_dims(g, -1))[..., 0], x1_shape)
    return sum_to(matmul(g, x2.mT), x1_shape)


def _matmul_second(g, x1, x2_shape):
    if x1.ndim == 1 and len(x2_shape) == 1:
        return g * x1
    if x1.ndim == 1:
        return sum_to(expand_dims(x1, -1) * expand_dims(g, -2), x2_shape)
    if len(x2_shape) == 1:
        if x1.ndim == 2:
            return matmul(x1.mT, g)
        return sum_to(matmul(x1.mT, expand_dims(g, -1))[..., 0], x2_shape)
    return sum_to(matmul(x1.mT, g), x2_shape)


tape.register(matmul, "x1", _matmul_first)
tape.register(matmul, "x2", _matmul_second)
tape.register(
    products.addmm, "c", lambda g, c_shape, beta: sum_to(g * beta, c_shape) if beta else None
)
tape.register(
    products.addmm, "a", lambda g, a_shape, b, alpha: _matmul_first(g * alpha, a_shape, b)
)
tape.register(
    products.addmm, "b", lambda g, a, b_shape, alpha: _matmul_second(g * alpha, a, b_shape)
)
tape.register(
    products.vecdot,
    "x1",
    lambda g, x1_shape, x2, axis: sum_to(conj(expand_dims(g, axis) * x2), x1_shape),
)
tape.register(
    products.vecdot,
    "x2",
    lambda g, x1, x2_shape, axis: sum_to(expand_dims(g, axis) * conj(x1), x2_shape),
)


def _read_axes(axes, shape1, shape2):
    """Return the axes that a tensordot sums over, counted from 0."""
    if hasattr(axes, "__index__"):
        count = int(axes)
        return list(range(len(shape1) - count, len(shape1))), list(range(count))
    first, second = ([int(each)] if hasattr(each, "__index__") else list(each) for each in axes)
    return [int(each) % len(shape1) for each in first], [int(each) % len(shape2) for each in second]


def _contract(g, other, own_shape, own, others, left):
    """Return the gradient of a tensordot's operand, which is the left one or the right one."""
    kept = [d for d in range(len(own_shape)) if d not in own]
    rest = [d for d in range(other.ndim) if d not in others]
    first = len(kept) if left else 0
    # The kept dimensions of the operand, then the summed ones, in the order of the other's.
    found = tensordot(g, other, (list(range(first, first + len(rest))), rest))
    order = kept + [own[others.index(each)] for each in sorted(others)]
    return permute_dims(found, tuple(order.index(d) for d in range(len(order))))


def _tensordot_first(g, x1_shape, x2, axes):
    own, others = _read_axes(axes, x1_shape, x2.shape)
    return _contract(g, x2, x1_shape, own, others, True)


def _tensordot_second(g, x1, x2_shape, axes):
    others, own = _read_axes(axes, x1.shape, x2_shape)
    return _contract(g, x1, x2_shape, own, others, False)


def _dot_axes(ndim1, ndim2):
    return ([ndim1 - 1], [max(ndim2 - 2, 0)])


def _dot_first(g, x1_shape, x2):
    if not x1_shape or x2.ndim == 0:
        return sum_to(g * x2, x1_shape)
    return _tensordot_first(g, x1_shape, x2, _dot_axes(len(x1_shape), x2.ndim))


def _dot_second(g, x1, x2_shape):
    if not x2_shape or x1.ndim == 0:
        return sum_to(g * x1, x2_shape)
    return _tensordot_second(g, x1, x2_shape, _dot_axes(x1.ndim, len(x2_shape)))


def _inner_first(g, x1_shape, x2):
    if not x1_shape or x2.ndim == 0:
        return sum_to(g * x2, x1_shape)
    return _tensordot_first(g, x1_shape, x2, (-1, -1))


def _inner_second(g, x1, x2_shape):
    if not x2_shape or x1.ndim == 0:
        return sum_to(g * x1, x2_shape)
    return _tensordot_second(g, x1, x2_shape, (-1, -1))


tape.register(tensordot, "x1", _tensordot_first)
tape.register(tensordot, "x2", _tensordot_second)
tape.register(products.dot, "x1", _dot_first)
tape.register(products.dot, "x2", _dot_second)
tape.register(products.inner, "x1", _inner_first)
tape.register(products.inner, "x2", _inner_second)
tape.register(
    products.outer, "x1", lambda g, x1_shape, x2: reshape(matmul(g, reshape(x2, (-1,))), x1_shape)
)
tape.register(
    products.outer, "x2", lambda g, x1, x2_shape: reshape(matmul(reshape(x1, (-1,)), g), x2_shape)
)
