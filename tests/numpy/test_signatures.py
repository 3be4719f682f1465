"""What NumPy takes by place, arrays' methods, and what is refused or waited for."""

from __future__ import annotations

import numpy as np
import pytest
from beside_numpy import NUMBERS, REAL, WIDE, beside

import cyrt

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's own

BY_PLACE = {
    "made": lambda xp, x, r: (
        xp.zeros((2, 3), "int32"),
        xp.ones(2, "bool"),
        xp.full((1, 2), 3, "float32"),
        xp.asarray(x, "float32"),
        xp.array(x, "int32"),
        xp.zeros_like(x, "float32"),
        xp.full_like(x, 2, "int32"),
        xp.arange(1, 9, 2, "float32"),
        xp.eye(2, 3, 1, "int32"),
    ),
    "reduced": lambda xp, x, r: (
        xp.sum(x, 0),
        xp.prod(x, -1, "float32"),
        xp.any(x, 0),
        xp.all(x, (0, 1)),
        xp.mean(x, 1),
        xp.count_nonzero(x, 1),
        xp.max(x, 0),
        xp.min(x, 1),
        xp.argmax(x, 1),
        xp.argmin(x, 0),
    ),
    "deviations": lambda xp, x, r: (
        xp.std(x, 1, ddof=1),
        xp.var(x, ddof=2),
        xp.var(x, 0, correction=1),
    ),
    "sorted": lambda xp, x, r: (xp.sort(x, 0), xp.sort(x, None)),
    "moved": lambda xp, x, r: (
        xp.flip(x, 1),
        xp.roll(x, 2, 1),
        xp.repeat(x, 2, 0),
        xp.stack([x, x], 1),
        xp.concatenate([x, x], 1),
        xp.take(x, [0, -1], 1),
        xp.take(x, 2),
        xp.tril(x, 1),
        xp.triu(x, -1),
        xp.diff(x, 1, 0),
        xp.tensordot(x, x.T, 1),
        xp.cumsum(x, 1),
    ),
    "where": lambda xp, x, r: (xp.where(x > 0), xp.where(x > 0, x, 0), xp.where(x, 1, x)),
    "clip": lambda xp, x, r: (xp.clip(x, a_min=0, a_max=1), xp.clip(x, a_min=0, a_max=None)),
    "mean of a type": lambda xp, x, r: (xp.mean(x, 0, "float32"), x.mean(dtype="float32")),
    "partition": lambda xp, x, r: (
        xp.partition(x, 1, 0)[1],
        xp.partition(x, [2], None)[2],
        xp.take_along_axis(x, xp.argpartition(x, -1), -1)[:, -1],
    ),
    "triangles": lambda xp, x, r: (x[xp.tril_indices(3, -1)], x[xp.triu_indices(3, 1, 2)]),
    "unravel_index": lambda xp, x, r: tuple(
        int(each) for each in xp.unravel_index(r.randint(0, 6), (2, 3), r.choice("CF"))
    ),
    "searched": lambda xp, x, r: xp.searchsorted(xp.sort(x, None), x, "right"),
}
METHODS = {
    "sort": lambda xp, x, r: (x.sort(r.choice([0, -1])), x)[1],
    "argsort": lambda xp, x, r: x.argsort(r.choice([0, -1, None]), stable=True),
    "take": lambda xp, x, r: (x.take([0, -1], 1), x.take(xp.asarray([1, 0]))),
    "nonzero": lambda xp, x, r: x.nonzero(),
    "dot": lambda xp, x, r: (x.dot(x.T), x[0].dot(x[0])),
    "cumulated": lambda xp, x, r: (x.cumsum(), x.cumsum(1), x[0].cumprod(0)),
    "repeat": lambda xp, x, r: (x.repeat(2), x.repeat(3, 0)),
    "views": lambda xp, x, r: (x.swapaxes(0, 1), x.diagonal(), x.diagonal(1, 1, 0)),
    "trace": lambda xp, x, r: x.trace(1),
    "compress": lambda xp, x, r: x.compress([True, False, True], 0),
    "searchsorted": lambda xp, x, r: xp.sort(x, None).searchsorted(x, side="right"),
    "round": lambda xp, x, r: x.round(1),
    "std": lambda xp, x, r: (x.std(0, ddof=1), x.var(ddof=1), x.sum(0, "float32"), x.prod(1)),
    "conjugate": lambda xp, x, r: x.conjugate(),
    "choose": lambda xp, x, r: xp.asarray([1, 0, 1]).choose([x[0, :3], x[1, :3]]),
    "put": lambda xp, x, r: (x.put([0, -1], [5, 6]), x)[1],
    "partition": lambda xp, x, r: (x.partition(1, 0), x[1])[1],
    "argpartition": lambda xp, x, r: xp.take_along_axis(x, x.argpartition(-1), -1)[:, -1],
}


@pytest.mark.parametrize("name", BY_PLACE)
def test_by_place(name):
    beside(BY_PLACE[name], WIDE, (2, 2), least=3, tolerance=1e-5, examples=10)


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    dtypes = {"conjugate": NUMBERS, "trace": NUMBERS, "std": WIDE}.get(name, REAL)
    beside(METHODS[name], dtypes, (2, 2), least=3, tolerance=1e-5, examples=10)


def test_linspace_by_place():
    assert cyrt.linspace(0, 98).tolist() == np.linspace(0, 98).tolist()
    assert cyrt.linspace(0, 4, 4, False).tolist() == [0, 1, 2, 3]


def test_bytes():
    host = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert cyrt.asarray(host).T.tobytes() == host.T.tobytes()


def test_names_of_constants_and_types():
    for name in ("pi", "e", "inf", "newaxis"):
        assert getattr(cyrt, name) == getattr(np, name)
    assert cyrt.numpy.euler_gamma == np.euler_gamma
    for name in (
        "bool_",
        "int_",
        "intp",
        "uintp",
        "byte",
        "ubyte",
        "short",
        "ushort",
        "intc",
        "uintc",
        "half",
        "single",
        "double",
        "csingle",
        "cdouble",
    ):
        assert getattr(cyrt.numpy, name) == np.dtype(getattr(np, name)), name
    assert cyrt.dtype("int32") is cyrt.int32
    assert cyrt.zeros(2, dtype=cyrt.numpy.double).dtype == np.float64


# -- what is not done ------------------------------------------------------------------------------

OF_ONE = (
    "amax",
    "amin",
    "angle",
    "argwhere",
    "around",
    "average",
    "bincount",
    "corrcoef",
    "cov",
    "deg2rad",
    "degrees",
    "diag",
    "diagflat",
    "diagonal",
    "ediff1d",
    "fix",
    "fliplr",
    "flipud",
    "gradient",
    "histogram",
    "identity",
    "isreal",
    "iscomplex",
    "isneginf",
    "isposinf",
    "median",
    "nan_to_num",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "ptp",
    "rad2deg",
    "radians",
    "rint",
    "rot90",
    "round",
    "sinc",
    "trace",
    "transpose",
    "trapezoid",
    "trim_zeros",
    "unique",
    "vander",
)
OF_TWO = (
    "allclose",
    "append",
    "array_equal",
    "array_split",
    "choose",
    "convolve",
    "correlate",
    "cross",
    "divmod",
    "fmax",
    "fmin",
    "fmod",
    "heaviside",
    "hsplit",
    "intersect1d",
    "isclose",
    "kron",
    "logaddexp2",
    "pad",
    "quantile",
    "percentile",
    "resize",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "vdot",
    "delete",
    "digitize",
    "extract",
    "compress",
)


@pytest.mark.parametrize("name", OF_ONE + OF_TWO)
def test_arrays_of_numpy_are_refused(name):
    host, x = np.ones((3, 3)), cyrt.ones((3, 3))
    function = getattr(cyrt, name)
    if name in OF_ONE:
        if name != "identity":
            with pytest.raises(TypeError, match=r"expected an Array, got numpy\.ndarray"):
                function(host)
        return
    for each in ((host, x), (host, host)):
        with pytest.raises(TypeError, match=r"expected an Array, got numpy\.ndarray"):
            function(*each)


@pytest.mark.parametrize(
    ("error", "text", "program"),
    [
        (
            ValueError,
            "method: expected one of 'inverted_cdf', .*, got 'low'",
            lambda x: cyrt.quantile(x, 0.5, method="low"),
        ),
        (
            ValueError,
            "q: expected numbers from 0 to 100, got 101.0",
            lambda x: cyrt.percentile(x, 101),
        ),
        (
            ValueError,
            "mode: expected one of constant, edge, linear_ramp, .*, wrap, got 'median'",
            lambda x: cyrt.pad(x, 1, "median"),
        ),
        (ValueError, "pad_width: expected 0 or more", lambda x: cyrt.pad(x, -1)),
        (TypeError, "pad_width: expected ints", lambda x: cyrt.pad(x, 1.5)),
        (
            ValueError,
            "pad_width: expected one value, a pair or 2 pairs",
            lambda x: cyrt.pad(x, [(1, 2)] * 3),
        ),
        (ValueError, "axis 0 is empty", lambda x: cyrt.pad(x[:0], 1, "edge")),
        (TypeError, "bincount: x: expected integers, got float32", lambda x: cyrt.bincount(x[0])),
        (
            ValueError,
            "expected integers of 0 or more, got -1",
            lambda x: cyrt.bincount(cyrt.asarray([3, -1])),
        ),
        (
            ValueError,
            r"weights: expected shape \(2,\), got \(3,\)",
            lambda x: cyrt.bincount(cyrt.asarray([3, 1]), x[0]),
        ),
        (ValueError, "ascending numbers, got", lambda x: cyrt.histogram(x, [1, 3, 2])),
        (ValueError, "two finite numbers, ascending", lambda x: cyrt.histogram(x, 3, (2, 1))),
        (ValueError, "kth: 3 is out of bounds for 3 elements", lambda x: cyrt.partition(x, [0, 3])),
        (ValueError, "at least two dimensions", lambda x: cyrt.diagonal(x[0])),
        (ValueError, "expected two different axes", lambda x: cyrt.diagonal(x, 0, 1, -1)),
        (
            ValueError,
            r"of one size, got shape \(2, 3, 3\)",
            lambda x: cyrt.fill_diagonal(cyrt.zeros((2, 3, 3)), 1),
        ),
        (TypeError, "expected lists of arrays, got a tuple", lambda x: cyrt.block([(x, x)])),
        (ValueError, "lists of one depth", lambda x: cyrt.block([x, [x]])),
        (ValueError, "at least one Array", lambda x: cyrt.block([1, 2])),
        (
            IndexError,
            "index 4 is out of bounds for axis 1 with size 3",
            lambda x: cyrt.insert(x, 4, 1, axis=1),
        ),
        (
            ValueError,
            "array_split: expected 1 to 16,777,216 parts, got 1000",
            lambda x: cyrt.array_split(x, 10**30),
        ),
        (
            ValueError,
            "array_split: expected 1 to 16,777,216 parts, got 0",
            lambda x: cyrt.array_split(x, 0),
        ),
        (
            ValueError,
            "at least 3 elements, got 2",
            lambda x: cyrt.gradient(x[:, :2], axis=1, edge_order=2),
        ),
        (TypeError, "expected 1 or 2 distances, got 3", lambda x: cyrt.gradient(x, 1, 1, 1)),
        (ValueError, "vectors of 3 elements", lambda x: cyrt.cross(x[:, :2], x)),
        (
            ValueError,
            "mode: expected 'full', 'same' or 'valid'",
            lambda x: cyrt.convolve(x[0], x[0], "half"),
        ),
        (ValueError, "not 0", lambda x: cyrt.geomspace(0, 4)),
        (ValueError, "one sign", lambda x: cyrt.geomspace(-1, 4)),
        (ValueError, "as many choices", lambda x: cyrt.select([x > 0], [x, x])),
        (
            TypeError,
            "indices: expected integers, got float32",
            lambda x: cyrt.put_along_axis(x, x, 1, 0),
        ),
        (ValueError, "xp, fp: expected as many", lambda x: cyrt.interp(x[0], x, x)),
    ],
    ids=lambda each: None,
)
def test_refused(error, text, program):
    with pytest.raises(error, match=text):
        program(cyrt.ones((3, 3)))


def test_nothing_waits(batched, unchecked):
    """Where the result's shape does not depend on values, and indices are not checked."""
    x = cyrt.asarray(np.arange(12.0, dtype=np.float32).reshape(3, 4))
    places = cyrt.asarray([1, 0, 2])
    programs = [
        lambda: cyrt.median(x, 1),
        lambda: cyrt.quantile(x, cyrt.asarray(0.3)),
        lambda: cyrt.nanvar(x),
        lambda: cyrt.average(x, 0, weights=x[:, 0]),
        lambda: cyrt.histogram(x, 5),
        lambda: cyrt.histogram(x, x[0], weights=x),
        lambda: cyrt.digitize(x, x[0]),
        lambda: cyrt.cov(x),
        lambda: cyrt.corrcoef(x),
        lambda: cyrt.allclose(x, x),
        lambda: cyrt.array_equal(x, x),
        lambda: cyrt.einsum("ij,kj->ik", x, x),
        lambda: cyrt.interp(x, x[0], x[0]),
        lambda: cyrt.gradient(x),
        lambda: cyrt.convolve(x[0], x[1]),
        lambda: cyrt.choose(places, [x[0, :3], x[1, :3], 2]),
        lambda: cyrt.pad(x, 2, "reflect"),
        lambda: cyrt.put_along_axis(x, places[:, None], 1.0, 1),
        lambda: cyrt.nan_to_num(x),
        lambda: cyrt.unravel_index(places, (2, 3)),
        lambda: x.sort(),
        lambda: cyrt.trace(x),
    ]
    cyrt.synchronize()
    for number, program in enumerate(programs):
        # On the stream of earlier tests, a round that the encoder knows may end within a batch.
        with cyrt.Stream(), cyrt.batch():
            before = cyrt.current_encoder().stats()["commits"]
            program()
            commits = cyrt.current_encoder().stats()["commits"] - before
            assert commits == 0, f"the program of number {number}"


BY_NAME = {
    "pad": lambda xp, x, r: xp.pad(array=x, pad_width=1, mode="edge"),
    "counted": lambda xp, x, r: (xp.digitize(x=x, bins=[0, 2]), xp.histogram(a=x, bins=3)[0]),
    "placed": lambda xp, x, r: (
        xp.quantile(a=x, q=0.5),
        xp.percentile(x, q=30),
        xp.searchsorted(xp.sort(x, None), v=x),
    ),
    "moved": lambda xp, x, r: (
        xp.repeat(x, repeats=2),
        xp.tile(x, reps=(2, 1)),
        xp.moveaxis(x, source=0, destination=1),
        xp.swapaxes(x, axis1=0, axis2=1),
        xp.split(x, indices_or_sections=[1], axis=0),
    ),
    "taken": lambda xp, x, r: (
        xp.take(x, indices=[1, 0], axis=0),
        xp.take_along_axis(x, indices=xp.argsort(x, axis=1), axis=1),
    ),
    "assembled": lambda xp, x, r: (
        xp.insert(arr=x, obj=1, values=3, axis=0),
        xp.delete(x, obj=0, axis=1),
        xp.append(x, values=x, axis=0),
    ),
    "others": lambda xp, x, r: (
        xp.isin(x, test_elements=[1, 2]),
        xp.polyval(p=[1, 2], x=x),
        xp.gradient(f=x),
        xp.stack(arrays=[x, x]),
        xp.array(object=[1]),
    ),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_by_name(name):
    beside(BY_NAME[name], ("float64",), (2, 2), least=3, tolerance=1e-5, examples=5)


WHOLE = {
    "split": lambda xp, x, r: (
        xp.split(x, xp.asarray([1, 2])),
        xp.array_split(x, xp.asarray([2])),
        xp.split(x, xp.cumsum(xp.asarray([1, 1]))),
    ),
    "delete": lambda xp, x, r: (
        xp.delete(x, xp.asarray([0, 2]), 0),
        xp.delete(x, xp.asarray(1), 1),
        xp.delete(x, x > 0),
        xp.delete(x, xp.where(xp.ravel(x) > 0)[0]),
    ),
    "insert": lambda xp, x, r: xp.insert(x, xp.asarray([1, 3]), xp.asarray([5, 6])),
    "tile": lambda xp, x, r: xp.tile(x, xp.asarray([2, 1])),
}


@pytest.mark.parametrize("name", WHOLE)
def test_ints_of_an_array(name):
    beside(WHOLE[name], ("float64",), (2, 2), least=3, examples=5)
