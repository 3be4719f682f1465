"""Every public function is differentiable, a constant, or refused with a reason."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from differentiation_cases import CASES
from linear_algebra_cases import CASES as LINEAR_ALGEBRA

import cyrt
from cyrt.tape import kind_of_rule

# Other names of functions that have cases.
OTHER_NAMES = {
    *("absolute", "amax", "amin", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2"),
    *("arctanh", "asanyarray", "asfortranarray", "conjugate", "mod", "power", "true_divide"),
    *("linalg.matmul", "linalg.matrix_transpose", "linalg.tensordot", "linalg.vecdot"),
}
# The results have no gradient by nature: bool, integers, steps, or new arrays. Those that a rule
# calls constant need no entry.
CONSTANT = {
    *("allclose", "arange", "argpartition", "argwhere", "around", "array_equal", "array_equiv"),
    *("bartlett", "bincount", "blackman", "diag_indices", "diag_indices_from", "digitize", "empty"),
    *("empty_like", "eye", "fft.fftfreq", "fft.rfftfreq", "fix", "flatnonzero", "frombuffer"),
    *("fromfunction", "full", "full_like", "geomspace", "hamming", "hanning", "histogram"),
    *("histogram2d", "histogram_bin_edges", "histogramdd", "identity", "indices", "isclose"),
    *("iscomplex", "isin", "isneginf", "isposinf", "isreal", "ix_", "kaiser", "lexsort"),
    *("linalg.matrix_rank", "linspace", "load", "load_checkpoint", "load_safetensors", "loadtxt"),
    *("logspace", "nanargmax", "nanargmin", "numpy.index_exp", "numpy.iscomplexobj"),
    *("numpy.isrealobj", "numpy.isscalar", "numpy.mgrid", "numpy.ogrid", "numpy.s_", "ones"),
    *("ones_like", "packbits", "random.bernoulli", "random.binomial", "random.categorical"),
    *("random.geometric", "random.multinomial", "random.negative_binomial", "random.poisson"),
    *("random.rand", "random.randint", "random.randn", "random.random", "random.standard_cauchy"),
    *("random.standard_normal", "ravel_multi_index", "rint", "round", "tri", "tril_indices"),
    *("tril_indices_from", "triu_indices", "triu_indices_from", "unpackbits", "unravel_index"),
    *("zeros", "zeros_like"),
}
# No functions of the values of arrays.
OTHERS = {
    *("batch", "broadcast_shapes", "can_cast", "commit", "concurrent", "current_encoder"),
    *("dtype", "explain", "finfo", "from_dlpack", "get_array_module", "iinfo", "is_available"),
    *("asnumpy", "isdtype", "may_share_memory", "memory_stats", "ndim", "pointer", "profile"),
    *("result_type", "save", "save_checkpoint", "save_safetensors", "savetxt", "savez"),
    *("savez_compressed", "shape"),
    *("shares_memory", "show_config", "size", "stream", "synchronize", "trim_memory"),
    *("numpy.array2string", "numpy.array_repr", "numpy.array_str", "numpy.get_printoptions"),
    *("numpy.geterr", "numpy.issubdtype", "numpy.iterable", "numpy.printoptions"),
    *("numpy.promote_types", "numpy.set_printoptions", "numpy.seterr"),
    *("random.default_rng", "random.fold_in", "random.key", "random.seed", "random.split"),
    *("checkpoint", "custom_vjp", "grad", "stop_gradient", "tree_map", "value_and_grad", "vjp"),
    *("__array_namespace_info__",),
}


# Calls of functions that have no gradient although their results might; is_refused() finds others.
REFUSED = {
    "intersect1d": lambda x: cyrt.intersect1d(x, x),
    "linalg.lu_factor": lambda x: cyrt.linalg.lu_factor(x[:, None] * x).lu,
    "random.beta": lambda x: cyrt.random.beta(1.0, x),
    "random.chisquare": cyrt.random.chisquare,
    "random.dirichlet": cyrt.random.dirichlet,
    "random.f": lambda x: cyrt.random.f(x, 1.0),
    "random.standard_t": cyrt.random.standard_t,
    "random.truncated_normal": lambda x: cyrt.random.truncated_normal(x[0], 2.0),
    "setdiff1d": lambda x: cyrt.setdiff1d(x, cyrt.zeros(1)),
    "setxor1d": lambda x: cyrt.setxor1d(x, cyrt.zeros(1)),
    "union1d": lambda x: cyrt.union1d(x, x),
    "unique": cyrt.unique,
    "unique_all": lambda x: cyrt.unique_all(x)[0],
    "unique_counts": lambda x: cyrt.unique_counts(x)[0],
    "unique_inverse": lambda x: cyrt.unique_inverse(x)[0],
    "unique_values": cyrt.unique_values,
}
# Calls of other functions with an argument that would be a constant although the result changes
# with it.
REFUSED_ARGUMENTS = {
    "arange": lambda x: cyrt.arange(x[0], 3.0),
    "bincount": lambda x: cyrt.bincount(cyrt.asarray([0, 1]), weights=x),
    "full": lambda x: cyrt.full(3, x[0]),
    "full_like": lambda x: cyrt.full_like(x, x[0]),
    "geomspace start": lambda x: cyrt.geomspace(x[0], 2.0, 3),
    "geomspace stop": lambda x: cyrt.geomspace(1.0, x[0], 3),
    "histogram range": lambda x: cyrt.histogram(cyrt.zeros(2), range=(0.0, x[0]))[1],
    "histogram weights": lambda x: cyrt.histogram(cyrt.zeros(2), weights=x)[0],
    "histogram_bin_edges": lambda x: cyrt.histogram_bin_edges(cyrt.zeros(2), range=(-1.0, x[0])),
    "histogram2d": lambda x: cyrt.histogram2d(x, x, range=[(0.0, 1.0), (0.0, x[0])])[2],
    "linspace": lambda x: cyrt.linspace(0.0, x[0], 3),
    "logspace": lambda x: cyrt.logspace(x[0], 2.0, 3),
    "pad": lambda x: cyrt.pad(x, 1, constant_values=x[0]),
    "random.beta": lambda x: cyrt.random.beta(x, 1.0),
    "random.f": lambda x: cyrt.random.f(1.0, x),
    "random.gamma": cyrt.random.gamma,
    "random.multivariate_normal": lambda x: cyrt.random.multivariate_normal([0, 0], cyrt.diag(x)),
    "random.truncated_normal": lambda x: cyrt.random.truncated_normal(0.0, x[0]),
    "random.vonmises": lambda x: cyrt.random.vonmises(1.0, x),
    "sum": lambda x: cyrt.sum(cyrt.ones(2), initial=x[0]),
}
ROOMS = {
    "": cyrt,
    "fft.": cyrt.fft,
    "linalg.": cyrt.linalg,
    "numpy.": cyrt.numpy,
    "random.": cyrt.random,
}


def is_function(value):
    """Whether a public value is called, or takes arrays in brackets as ``r_`` does."""
    return (callable(value) or hasattr(value, "__getitem__")) and not isinstance(
        value, (type, cyrt.DType, np.generic, str)
    )


def is_refused(function):
    """Whether a call with arrays alone is refused: by its rule, or because it has none."""
    kind = kind_of_rule(function)
    if kind == "gradient":
        return False
    parameters = inspect.signature(function).parameters.values()
    count = sum(each.default is each.empty for each in parameters)
    try:
        cyrt.grad(lambda x: cyrt.sum(function(*[x] * count)))(cyrt.asarray([1.0, 2.0]))
    except TypeError as error:
        return (kind or "has no gradient") in str(error)
    return False


def test_every_public_function_has_a_place():
    functions = {
        room + name: getattr(module, name)
        for room, module in ROOMS.items()
        for name in module.__all__
        if is_function(getattr(module, name))
    } | {"custom_vjp": cyrt.custom_vjp}
    public = functions.keys()
    places = [{*CASES, *LINEAR_ALGEBRA} & public, OTHER_NAMES, CONSTANT, OTHERS, set(REFUSED)]
    others = {each: functions[each] for each in public - set().union(*places)}
    assert [
        name
        for name, function in others.items()
        if kind_of_rule(function) != "constant" and not is_refused(function)
    ] == []
    for i, place in enumerate(places):
        assert place - public == set()
        for other in places[i + 1 :]:
            assert place & other == set()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refused_function_says_so(name):
    with pytest.raises((TypeError, RuntimeError)):
        cyrt.grad(lambda x: cyrt.sum(REFUSED[name](x)))(cyrt.asarray([1.0, 2.0]))


@pytest.mark.parametrize("name", sorted(REFUSED_ARGUMENTS))
def test_a_refused_argument_is_no_constant_in_silence(name):
    x, function = cyrt.asarray([1.0, 2.0]), REFUSED_ARGUMENTS[name]
    assert function(x).size
    with pytest.raises(TypeError, match=r"no gradient|would become a constant|is a constant"):
        cyrt.grad(lambda x: cyrt.sum(function(x)))(x)
