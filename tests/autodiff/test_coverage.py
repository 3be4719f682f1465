"""Every public function is differentiable, a constant, or refused with a reason."""

from __future__ import annotations

import pytest
from differentiation_cases import CASES
from linear_algebra_cases import CASES as LINEAR_ALGEBRA

import cyrt

# Other names of functions that have cases.
OTHER_NAMES = {
    *("absolute", "amax", "amin", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2"),
    *("arctanh", "asanyarray", "asfortranarray", "conjugate", "mod", "power", "true_divide"),
    *("linalg.matmul", "linalg.matrix_transpose", "linalg.tensordot", "linalg.vecdot"),
}
# The results have no gradient by nature: bool, integers, steps, or new arrays.
CONSTANT = {
    *("all", "allclose", "any", "arange", "argmax", "argmin", "argpartition", "argsort"),
    *("argwhere", "around", "array_equal", "array_equiv", "bartlett", "bincount", "bitwise_and"),
    *("bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift"),
    *("bitwise_xor", "blackman", "ceil", "count_nonzero", "diag_indices", "diag_indices_from"),
    *("digitize", "empty", "empty_like", "equal", "eye", "fix", "flatnonzero", "floor"),
    *("floor_divide", "frombuffer", "fromfunction", "full", "full_like", "gcd", "geomspace"),
    *("greater", "greater_equal", "hamming", "hanning", "histogram", "histogram2d"),
    *("histogram_bin_edges", "histogramdd", "identity", "indices", "invert", "isclose"),
    *("iscomplex", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "ix_"),
    *("kaiser", "lcm", "left_shift", "less", "less_equal", "lexsort", "linspace", "load"),
    *("load_checkpoint", "load_safetensors", "loadtxt", "logical_and", "logical_not"),
    *("logical_or", "logical_xor"),
    *("logspace", "nanargmax", "nanargmin", "nonzero", "not_equal", "ones", "ones_like"),
    *("packbits", "ravel_multi_index", "right_shift", "rint", "round", "searchsorted"),
    *("signbit", "tri", "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from"),
    *("trunc", "unpackbits", "unravel_index", "zeros", "zeros_like"),
    *("fft.fftfreq", "fft.rfftfreq", "linalg.matrix_rank"),
}
# No functions of the values of arrays.
OTHERS = {
    *("batch", "broadcast_shapes", "can_cast", "commit", "concurrent", "current_encoder"),
    *("dtype", "explain", "finfo", "from_dlpack", "get_array_module", "iinfo", "is_available"),
    *("asnumpy", "isdtype", "may_share_memory", "memory_stats", "ndim", "pointer", "profile"),
    *("result_type", "save", "save_checkpoint", "save_safetensors", "savetxt", "savez"),
    *("savez_compressed", "shape"),
    *("shares_memory", "show_config", "size", "stream", "synchronize", "trim_memory"),
    *("checkpoint", "custom_vjp", "grad", "stop_gradient", "tree_map", "value_and_grad", "vjp"),
    *("__array_namespace_info__",),
}


# Calls of functions that have no gradient although their results might.
REFUSED = {
    "i0": cyrt.i0,
    "intersect1d": lambda x: cyrt.intersect1d(x, x),
    "lgamma": cyrt.lgamma,
    "linalg.lu_factor": lambda x: cyrt.linalg.lu_factor(x[:, None] * x).lu,
    "nextafter": lambda x: cyrt.nextafter(x, 2.0),
    "setdiff1d": lambda x: cyrt.setdiff1d(x, cyrt.zeros(1)),
    "setxor1d": lambda x: cyrt.setxor1d(x, cyrt.zeros(1)),
    "union1d": lambda x: cyrt.union1d(x, x),
    "unique": cyrt.unique,
    "unique_all": lambda x: cyrt.unique_all(x)[0],
    "unique_counts": lambda x: cyrt.unique_counts(x)[0],
    "unique_inverse": lambda x: cyrt.unique_inverse(x)[0],
    "unique_values": cyrt.unique_values,
}


def test_every_public_function_has_a_place():
    public = {
        room + name
        for room, module in (("", cyrt), ("fft.", cyrt.fft), ("linalg.", cyrt.linalg))
        for name in module.__all__
        if callable(getattr(module, name))
        and not isinstance(getattr(module, name), (type, cyrt.DType))
    } | {"custom_vjp"}
    places = [{*CASES, *LINEAR_ALGEBRA} & public, OTHER_NAMES, CONSTANT, OTHERS, set(REFUSED)]
    assert public - set().union(*places) == set()
    for i, place in enumerate(places):
        assert place - public == set()
        for other in places[i + 1 :]:
            assert place & other == set()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refused_function_says_so(name):
    with pytest.raises((TypeError, RuntimeError)):
        cyrt.grad(lambda x: cyrt.sum(REFUSED[name](x)))(cyrt.asarray([1.0, 2.0]))
