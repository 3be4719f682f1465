"""Calls of every differentiable function: by name, functions of arrays and their arguments."""

from __future__ import annotations

import inspect

import numpy as np
from elementwise_reference import DOMAINS
from reduce_reference import REFERENCES

import cyrt
from cyrt.ops import functions, reduce
from cyrt.ops.elementwise import Elementwise
from cyrt.tape import kind_of_rule

RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.standard_normal(shape)


def positive(*shape):
    return RNG.uniform(0.5, 2.0, shape)


def within(*shape):
    return RNG.uniform(-0.8, 0.8, shape)


def operand(limits, *shape):
    return RNG.uniform(*limits, shape) if limits else normal(*shape)


def distinct(*shape):
    return RNG.permutation(int(np.prod(shape))).reshape(shape) / 3.0 - 1.0


def complex_normal(*shape):
    return normal(*shape) + 1j * normal(*shape)


CASES: dict[str, list] = {}


def case(name, function, *arrays, second=True):
    CASES.setdefault(name, []).append((function, arrays, second))


def differentiable(count):
    """The elementwise functions of so many operands that have a gradient, by name."""
    return {
        name: each
        for name, each in vars(functions).items()
        if isinstance(each, Elementwise)
        and each.__name__ == name
        and len(inspect.signature(each).parameters) - 3 == count  # out, where, dtype
        and kind_of_rule(each) == "gradient"
    }


for _name, _f in differentiable(1).items():
    if _name not in ("sign", "imag"):  # 0 for real numbers
        case(_name, _f, operand(DOMAINS.get(_name), 3, 4))
        case(_name, lambda x, f=_f: f(x.T[::-1]), operand(DOMAINS.get(_name), 2, 3))
for _name in (
    "negative",
    "square",
    "exp",
    "log",
    "sin",
    "cos",
    "tanh",
    "conj",
    "real",
    "imag",
    "reciprocal",
    "sqrt",
):
    case(_name, getattr(cyrt, _name), complex_normal(3, 2))
for _name in ("abs", "sign"):
    case(_name, getattr(cyrt, _name), complex_normal(5))
for _name, _f in differentiable(2).items():
    _first, _second = DOMAINS.get(_name, (None, None))
    case(_name, _f, operand(_first, 3, 4), operand(_second, 3, 4))
    case(_name, _f, operand(_first, 3, 1), operand(_second, 2, 1, 4))
    case(_name, lambda x, y, f=_f: f(x.T, y), operand(_first, 4, 3), operand(_second, 3, 4))
    case(_name, lambda x, f=_f: f(x, 1.5), operand(_first, 5))
    case(_name, lambda y, f=_f: f(1.5, y), operand(_second, 5))
    if _name not in ("maximum", "minimum", "copysign", "remainder"):
        case(_name, lambda x, f=_f: f(x, x), operand(_second, 4))
for _name in ("add", "subtract", "multiply", "divide"):
    case(_name, getattr(cyrt, _name), complex_normal(3), complex_normal(2, 1))
    case(_name, getattr(cyrt, _name), normal(3), complex_normal(2, 3))
for _exponent in (0, 1, 2, 3, 0.5, -1, -2):
    case("pow", lambda x, e=_exponent: x**e, positive(4))
case("pow", lambda x: 2.0**x, normal(4))
case("where", lambda x, y: cyrt.where(x > 0, x, y), normal(4, 3), normal(3))
case("where", lambda x: cyrt.where(x > 0, x * x, 0.0), normal(5))
case("clip", lambda x: cyrt.clip(x, -0.5, 0.5), normal(9))
case(
    "clip",
    lambda x, low, high: cyrt.clip(x, low, high),
    normal(3, 4),
    normal(4) - 1,
    1 + normal(3, 1),
)
case("astype", lambda x: x.astype("float32").astype("float64") * 0 + x.astype("float64"), normal(3))
case("add", lambda x: cyrt.add(x, 2.0, dtype="float64"), normal(3))
case(
    "exp",
    lambda x: cyrt.exp(x, where=cyrt.ones(x.shape, "bool"), out=cyrt.zeros_like(x)),
    normal(3),
)

_with_gradients = [name for name in REFERENCES if kind_of_rule(getattr(reduce, name)) == "gradient"]
for _keepdims in (False, True):
    for _axis in (None, 0, -1, (0, 2), ()):
        _k = {"axis": _axis, "keepdims": _keepdims}
        for _name in _with_gradients:
            if _name not in ("var", "std"):
                _f = getattr(cyrt, _name)
                case(_name, lambda x, f=_f, k=_k: f(x, **k), distinct(2, 3, 4))
        if _axis != ():
            for _name in ("var", "std"):
                _f = getattr(cyrt, _name)
                case(_name, lambda x, f=_f, k=_k: f(x, **k), normal(2, 3, 4))
                case(_name, lambda x, f=_f, k=_k: f(x, correction=1, **k), normal(2, 3, 4))
_mask = np.array([[True, False, True], [True, True, False]])
for _name in ("sum", "mean", "var", "std", "prod"):
    _f = getattr(cyrt, _name)
    case(_name, lambda x, f=_f: f(x, axis=1, where=cyrt.asarray(_mask)), normal(2, 3))
for _name in ("max", "min"):
    _f = getattr(cyrt, _name)
    case(_name, lambda x, f=_f: f(x, axis=1, where=cyrt.asarray(_mask), initial=0.3), normal(2, 3))
case("sum", lambda x: cyrt.sum(x, axis=0, initial=2.0, dtype="float64"), normal(3, 2))
case("prod", lambda x: cyrt.prod(x, axis=0, initial=2.0), normal(3, 2))
case("prod", cyrt.prod, np.array([2.0, 0.0, 3.0]))
case("prod", cyrt.prod, np.array([2.0, 0.0, 0.0]))
case("sum", cyrt.sum, complex_normal(3, 2))
case("mean", cyrt.mean, complex_normal(3, 2))
case("sum", cyrt.sum, np.float64(3.0))
for _name in ("cumulative_sum", "cumulative_prod"):
    _f = getattr(cyrt, _name)
    case(_name, _f, normal(5))
    case(_name, lambda x, f=_f: f(x, axis=0), normal(3, 2))
    case(_name, lambda x, f=_f: f(x, axis=-1, include_initial=True), normal(3, 4))
case("cumulative_prod", cyrt.cumulative_prod, np.array([2.0, 0.0, 3.0, 4.0]), second=False)
case("cumulative_prod", cyrt.cumulative_prod, np.array([2.0, 0.0, 3.0, 0.0, 1.0]), second=False)
case("cumulative_prod", lambda x: cyrt.minimum.accumulate(x, 1), distinct(3, 5), second=False)
for _name in ("cumsum", "cumprod"):
    _f = getattr(cyrt, _name)
    case(_name, _f, normal(2, 3))
    case(_name, lambda x, f=_f: f(x, 1), normal(2, 3))
case("diff", cyrt.diff, normal(3, 4))
case("diff", lambda x: cyrt.diff(x, 2, axis=0, prepend=0.0), normal(3, 2))

for _a, _b in (
    ((3, 4), (4, 2)),
    ((4,), (4,)),
    ((4,), (4, 2)),
    ((3, 4), (4,)),
    ((5, 3, 4), (4, 2)),
    ((3, 4), (5, 4, 2)),
    ((1, 3, 4), (5, 4, 2)),
    ((4,), (5, 4, 2)),
    ((5, 3, 4), (4,)),
):
    case("matmul", cyrt.matmul, normal(*_a), normal(*_b))
case("matmul", lambda x: x.T @ x, normal(3, 2))
case("matmul", cyrt.matmul, complex_normal(2, 3), complex_normal(3, 2))
case("addmm", lambda c, a, b: cyrt.addmm(c, a, b, 0.5, 2.0), normal(2), normal(3, 4), normal(4, 2))
case("vecdot", cyrt.vecdot, normal(2, 3), normal(3))
case("vecdot", lambda x, y: cyrt.vecdot(x, y, axis=-2), normal(3, 2), normal(4, 3, 1))
case("vecdot", cyrt.vecdot, complex_normal(2, 3), complex_normal(2, 3))
case("tensordot", cyrt.tensordot, normal(2, 3, 4), normal(3, 4, 5))
case(
    "tensordot",
    lambda x, y: cyrt.tensordot(x, y, ([2, 0], [0, 1])),
    normal(2, 3, 4),
    normal(4, 2, 5),
)
case("tensordot", lambda x, y: cyrt.tensordot(x, y, 0), normal(2), normal(3))
for _a, _b in (((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (4, 3, 2)), ((), (3,))):
    case("dot", cyrt.dot, normal(*_a), normal(*_b))
for _a, _b in (((3,), (3,)), ((2, 3), (4, 3)), ((2,), ())):
    case("inner", cyrt.inner, normal(*_a), normal(*_b))
case("outer", cyrt.outer, normal(3), normal(2, 2))
case("matrix_transpose", cyrt.matrix_transpose, normal(2, 3, 4))
for _text, _shapes in (
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("ij->ji", ((2, 3),)),
    ("ii->i", ((3, 3),)),
    ("bij,bjk,k->bi", ((2, 3, 4), (2, 4, 5), (5,))),
    ("ij,ij->", ((2, 3),) * 2),
    ("i,j->ij", ((2,), (3,))),
):
    case("einsum", lambda *x, text=_text: cyrt.einsum(text, *x), *(normal(*s) for s in _shapes))

case("reshape", lambda x: cyrt.reshape(x, (3, -1)), normal(2, 6))
case("reshape", lambda x: cyrt.reshape(x.T, (4, 3)), normal(2, 6))
for _order in "CFA":
    case("reshape", lambda x, o=_order: cyrt.reshape(x.T, (4, 3), order=o), normal(2, 6))
case("ravel", lambda x: cyrt.ravel(x.T), normal(2, 3))
case("ravel", lambda x: cyrt.ravel(x.T, "K"), normal(2, 3))
case("permute_dims", lambda x: cyrt.permute_dims(x, (2, 0, 1)), normal(2, 3, 4))
case("transpose", lambda x: cyrt.transpose(x) * x.T.T.T, normal(2, 3))
case("moveaxis", lambda x: cyrt.moveaxis(x, (0, 1), (-1, 0)), normal(2, 3, 4))
case("swapaxes", lambda x: cyrt.swapaxes(x, 0, -1), normal(2, 3, 4))
case("flip", lambda x: cyrt.flip(x, axis=0) * cyrt.flip(x), normal(2, 3))
case("expand_dims", lambda x: cyrt.expand_dims(x, (0, 2)), normal(2, 3))
case("squeeze", lambda x: cyrt.squeeze(x, 1), normal(2, 1, 3))
case("broadcast_to", lambda x: cyrt.broadcast_to(x, (4, 2, 3)), normal(2, 1))
case("broadcast_arrays", cyrt.broadcast_arrays, normal(2, 1), normal(3))
case("concat", lambda x, y: cyrt.concat([x, y, x], axis=1), normal(2, 1), normal(2, 3))
case("concat", lambda x, y: cyrt.concat([x, y], axis=None), normal(2, 1), normal(3))
case("stack", lambda x, y: cyrt.stack([x, y], axis=-1), normal(2, 3), normal(2, 3))
case("hstack", lambda x, y: cyrt.hstack([x, y]), normal(2), normal(3))
case("vstack", lambda x, y: cyrt.vstack([x, y]), normal(3), normal(3))
case("split", lambda x: cyrt.split(x, 2, axis=1), normal(2, 4))
case("split", lambda x: cyrt.split(x, [1, 3])[1], normal(5, 2))
case("unstack", lambda x: cyrt.unstack(x, axis=1)[1:], normal(2, 3))
case("roll", lambda x: cyrt.roll(x, 2), normal(2, 3))
case("roll", lambda x: cyrt.roll(x, (1, -1), (0, 1)), normal(3, 3))
case("pad", lambda x: cyrt.pad(x, 2), normal(2, 3))
case("pad", lambda x: cyrt.pad(x, ((1, 0), (2, 1)), mode="edge"), normal(2, 3))
case("tile", lambda x: cyrt.tile(x, (2, 1, 3)), normal(2, 3))
case("repeat", lambda x: cyrt.repeat(x, 3), normal(2, 2))
case("repeat", lambda x: cyrt.repeat(x, 2, axis=1), normal(2, 2))
case("repeat", lambda x: cyrt.repeat(x, [1, 0, 2], axis=0), normal(3, 2))
case("diagonal", lambda x: cyrt.diagonal(x, 1), normal(3, 4))
case("sliding_window_view", lambda x: cyrt.sliding_window_view(x, 3) * 2.0, normal(6))
case("tril", cyrt.tril, normal(3, 3))
case("triu", lambda x: cyrt.triu(x, 1), normal(2, 3, 3))

for _key in (
    0,
    -1,
    (1, 2),
    slice(1, None),
    (slice(None), slice(None, None, -2)),
    (..., 1),
    None,
    (slice(None), None, 2),
    [0, 2, 0],
    ([0, 1, 1], [2, 2, 2]),
    (slice(None), [3, 1, 3]),
):
    case("getitem", lambda x, k=_key: x[k], normal(3, 4))
case("getitem", lambda x: x[cyrt.asarray([[0, 1], [1, 1]])], normal(3, 2))
case("getitem", lambda x: x[x > 0], normal(3, 4))
case("take", lambda x: cyrt.take(x, cyrt.asarray([2, 0, 2]), axis=1), normal(2, 3))
case("take", lambda x: cyrt.take(x, [1, 5, 1]), normal(2, 3))
case(
    "take_along_axis",
    lambda x: cyrt.take_along_axis(x, cyrt.asarray([[0, 2, 2], [1, 1, 0]]), 1),
    normal(2, 3),
)
case("sort", cyrt.sort, normal(3, 4))
case("sort", lambda x: cyrt.sort(x, 0, descending=True), normal(3, 4))
case("sort", lambda x: cyrt.sort(x, None), normal(3, 4))
case("top_k", lambda x: cyrt.top_k(x, 2), normal(3, 5))
case("top_k", lambda x: cyrt.top_k(x, 2, axis=0)[0], normal(4, 2))


def _write(x, y):
    h = x * 2.0
    h[0] = y
    h[:, 1] += x[:, 0]
    h += x
    return h


case("setitem", _write, normal(3, 3), normal(3))


def _write_into_zeros(x):
    h = cyrt.zeros((3, 3), "float64")
    h[1] = x
    h[:, 2] = 1.0
    return h


case("setitem", _write_into_zeros, normal(3))


# -- NumPy's other functions, which are made of those above ----------------------------------------

case("append", lambda x, y: cyrt.append(x, y), normal(2, 3), normal(2))
case("array_split", lambda x: cyrt.array_split(x, 2), normal(5, 2))
case("atleast_1d", cyrt.atleast_1d, normal())
case("atleast_2d", cyrt.atleast_2d, normal(3))
case("atleast_3d", cyrt.atleast_3d, normal(2, 3))
case("average", cyrt.average, normal(2, 3))
case("average", lambda x, w: cyrt.average(x, axis=1, weights=w), normal(2, 3), positive(3))
case("array", lambda x: cyrt.array(x), normal(3))
case("asarray", lambda x: cyrt.asarray(x, copy=True), normal(3))
case("ascontiguousarray", lambda x: cyrt.ascontiguousarray(x.T), normal(2, 3))
case("block", lambda x, y: cyrt.block([[x, y], [y, x]]), normal(2, 2), normal(2, 2))
case("choose", lambda x, y: cyrt.choose(cyrt.asarray([0, 1, 0]), [x, y]), normal(3), normal(3))
case("column_stack", lambda x, y: cyrt.column_stack([x, y]), normal(3), normal(3, 2))
case("compress", lambda x: cyrt.compress([True, False, True], x, axis=1), normal(2, 3))
case("concatenate", lambda x, y: cyrt.concatenate([x, y]), normal(2), normal(3))
case("convolve", cyrt.convolve, normal(5), normal(3))
case("copy", cyrt.copy, normal(3))
case("corrcoef", cyrt.corrcoef, normal(3, 6))
case("correlate", cyrt.correlate, normal(5), normal(3))
case("cov", cyrt.cov, normal(3, 6))
case("cross", cyrt.cross, normal(2, 3), normal(2, 3))
case("deg2rad", cyrt.deg2rad, normal(3))
case("degrees", cyrt.degrees, normal(3))
case("delete", lambda x: cyrt.delete(x, 1, axis=0), normal(3, 2))
case("diag", cyrt.diag, normal(3, 3))
case("diag", lambda x: cyrt.diag(x, 1), normal(3))
case("diagflat", cyrt.diagflat, normal(2, 2))
case("dsplit", lambda x: cyrt.dsplit(x, 2), normal(2, 2, 4))
case("dstack", lambda x, y: cyrt.dstack([x, y]), normal(2, 3), normal(2, 3))
case("divmod", cyrt.divmod, normal(4), positive(4))
case("ediff1d", cyrt.ediff1d, normal(4))
case("extract", lambda x: cyrt.extract(x > 0, x), normal(5))
case("fabs", cyrt.fabs, normal(4))
case("fliplr", cyrt.fliplr, normal(2, 3))
case("flipud", cyrt.flipud, normal(2, 3))
case("float_power", cyrt.float_power, positive(3), normal(3))
case("fmax", cyrt.fmax, normal(4), normal(4))
case("fmin", cyrt.fmin, normal(4), normal(4))
case("fmod", cyrt.fmod, positive(4), positive(4))
case("hsplit", lambda x: cyrt.hsplit(x, 2), normal(2, 4))
case("insert", lambda x: cyrt.insert(x, 1, 0.5), normal(4))
case(
    "interp",
    lambda x, y: cyrt.interp(x, cyrt.asarray([0.0, 1.0, 2.0]), y),
    positive(4) * 0.9,
    normal(3),
)
case("kron", cyrt.kron, normal(2, 2), normal(2, 3))
case("logaddexp2", cyrt.logaddexp2, normal(3), normal(3))
case("median", cyrt.median, distinct(5))
case("meshgrid", cyrt.meshgrid, normal(2), normal(3))
case("modf", cyrt.modf, normal(4))
case("nan_to_num", cyrt.nan_to_num, normal(4))
for _name in (
    "nansum",
    "nanmean",
    "nanprod",
    "nanmax",
    "nanmin",
    "nanvar",
    "nanstd",
    "nancumsum",
    "nancumprod",
):
    case(_name, getattr(cyrt, _name), distinct(2, 3) + 0.1)
case("nanmedian", cyrt.nanmedian, distinct(5))
case("partition", lambda x: cyrt.partition(x, 2), distinct(5))
case("percentile", lambda x: cyrt.percentile(x, 30.0), distinct(5))
case("nanpercentile", lambda x: cyrt.nanpercentile(x, 30.0), distinct(5))
case("quantile", lambda x: cyrt.quantile(x, 0.3), distinct(5))
case("nanquantile", lambda x: cyrt.nanquantile(x, 0.3), distinct(5))
case(
    "piecewise",
    lambda x: cyrt.piecewise(x, [x < 0, x >= 0], [lambda v: v * v, lambda v: v]),
    normal(5),
)
case("polyval", cyrt.polyval, normal(3), normal(4))
case("ptp", cyrt.ptp, distinct(5))
case("rad2deg", cyrt.rad2deg, normal(3))
case("radians", cyrt.radians, normal(3))
case("resize", lambda x: cyrt.resize(x, (2, 5)), normal(3))
case("rollaxis", lambda x: cyrt.rollaxis(x, 2), normal(2, 3, 4))
case("rot90", cyrt.rot90, normal(2, 3))
case("select", lambda x: cyrt.select([x > 0, x < -1], [x * x, x * 3.0], 0.0), normal(6))
case("sinc", cyrt.sinc, positive(4))
case("trace", cyrt.trace, normal(3, 3))
case("trapezoid", cyrt.trapezoid, normal(5))
case("trim_zeros", cyrt.trim_zeros, np.array([3.0, 1.0, 2.0]))
case("unwrap", cyrt.unwrap, normal(5) * 5)
case("vander", lambda x: cyrt.vander(x, 3), normal(4))
case("vdot", cyrt.vdot, normal(4), normal(4))
case("vsplit", lambda x: cyrt.vsplit(x, 2), normal(4, 2))
case("angle", cyrt.angle, complex_normal(4))
case("real_if_close", cyrt.real_if_close, normal(4))
case("frexp", cyrt.frexp, positive(4) * 3.0)
case("gradient", cyrt.gradient, normal(3, 4))
case("gradient", lambda x: cyrt.gradient(x, 0.5, axis=0, edge_order=2), normal(4, 2))
case("gradient", cyrt.gradient, normal(4), np.array([0.0, 1.0, 1.5, 3.0]))
case("to_device", lambda x: cyrt.to_device(x * x, x.device), normal(2))
case("logaddexp", lambda x: cyrt.logaddexp(x, x * 1.0), normal(3))
case("pow", cyrt.pow, positive(3), np.array([0.0, 1.0, 2.0]))
case("heaviside", lambda x: cyrt.heaviside(x, 0.5) * x, normal(4))
case("ldexp", lambda x: cyrt.ldexp(x, cyrt.asarray([1, 2, 3])), normal(3))
case("apply_along_axis", lambda x: cyrt.apply_along_axis(cyrt.sum, 0, x), normal(2, 3))
case("apply_over_axes", lambda x: cyrt.apply_over_axes(cyrt.sum, x, (0,)), normal(2, 3))


def _assigned(write):
    def f(x, y):
        h = x * 1.0
        write(h, y)
        return h

    return f


case("put", _assigned(lambda h, y: cyrt.put(h, [3, -4], y)), normal(2, 3), normal(2))
for _shape, _wrap in (((3, 2), False), ((2, 3), True), ((5, 2), True), ((2, 2, 2), False)):
    case(
        "fill_diagonal",
        _assigned(lambda h, y, w=_wrap: cyrt.fill_diagonal(h, y, w)),
        normal(*_shape),
        normal(2),
    )
case("copyto", _assigned(lambda h, y: cyrt.copyto(h, y)), normal(2, 2), normal(2))
case("putmask", _assigned(lambda h, y: cyrt.putmask(h, h > 0, y)), normal(4), normal(4))
case("place", _assigned(lambda h, y: cyrt.place(h, h > 0, y)), normal(4), normal(4))
case(
    "put_along_axis",
    _assigned(lambda h, y: cyrt.put_along_axis(h, cyrt.asarray([[0], [1]]), y, 1)),
    normal(2, 3),
    normal(2, 1),
)

# -- random numbers, whose parameters have gradients -----------------------------------------------

_KEY = cyrt.random.key(7)
case(
    "random.normal",
    lambda loc, scale: cyrt.random.normal(loc, scale, (2, 3), dtype="float64", key=_KEY),
    normal(3),
    positive(2, 1),
)
case(
    "random.lognormal",
    lambda mean, sigma: cyrt.random.lognormal(mean, sigma, (2, 3), dtype="float64", key=_KEY),
    normal(3),
    positive(2, 1),
)
case(
    "random.uniform",
    lambda low, high: cyrt.random.uniform(low, high, (2, 3), dtype="float64", key=_KEY),
    -positive(3),
    positive(2, 1),
)
case(
    "random.triangular",
    lambda *bounds: cyrt.random.triangular(*bounds, (2, 3), dtype="float64", key=_KEY),
    np.array([-3.0, -2.0, -1.5]),
    np.array([0.5]),
    positive(2, 1) + 1.0,
)
case(
    "random.normal", lambda loc: cyrt.random.normal(loc, 2.0, dtype="float64", key=_KEY), normal(4)
)
for _name in ("gumbel", "laplace", "logistic"):
    _f = getattr(cyrt.random, _name)
    case(
        f"random.{_name}",
        lambda loc, scale, f=_f: f(loc, scale, (2, 3), dtype="float64", key=_KEY),
        normal(3),
        positive(2, 1),
    )
for _name in ("exponential", "pareto", "rayleigh", "weibull"):
    _f = getattr(cyrt.random, _name)
    case(f"random.{_name}", lambda x, f=_f: f(x, (2, 3), dtype="float64", key=_KEY), positive(3))
case(
    "random.gamma",
    lambda scale: cyrt.random.gamma(2.0, scale, (2, 3), dtype="float64", key=_KEY),
    positive(3),
)
case(
    "random.wald",
    lambda mean, scale: cyrt.random.wald(mean, scale, (2, 3), dtype="float64", key=_KEY),
    positive(3),
    positive(2, 1),
)
case(
    "random.vonmises",
    lambda mu: cyrt.random.vonmises(mu, 2.0, (2, 3), dtype="float64", key=_KEY),
    within(3),
)
case(
    "random.multivariate_normal",
    lambda mean: cyrt.random.multivariate_normal(
        mean, [[1.0, 0.5], [0.5, 2.0]], 3, dtype="float64", key=_KEY
    ),
    normal(2),
)
case("random.permutation", lambda x: cyrt.random.permutation(x, axis=1, key=_KEY), normal(2, 5))
case("random.choice", lambda x: cyrt.random.choice(x, 4, key=_KEY), normal(3, 2))
case(
    "random.shuffle", _assigned(lambda h, y: cyrt.random.shuffle(h, key=_KEY)), normal(4), normal()
)
case("numpy.r_", lambda x, y: cyrt.numpy.r_[x, 1.0, y, 0:2], normal(3), normal(2))
case("numpy.c_", lambda x, y: cyrt.numpy.c_[x, y], normal(3), normal(3, 2))
