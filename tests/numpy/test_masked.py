"""``where=``, ``initial=`` and ``dtype=``: which elements count, what a result begins with."""

from __future__ import annotations

import numpy as np
import pytest
from beside_numpy import EVERY, NUMBERS, REAL, WIDE, beside

import cyrt

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's own


def mask(xp, x, r, wrong=0.1):
    """A mask of x's shape, or of one that broadcasts to it; now and then of one that does not."""
    shapes = [x.shape, x.shape[-1:], x.shape[:-1] + (1,) * bool(x.ndim)]
    shape = (2, 5, *x.shape) if r.random() < wrong else r.choice(shapes)
    return xp.asarray(np.random.default_rng(r.randint(0, 2**32)).random(shape) < 0.6)


def reduced(name, **more):
    def program(xp, x, r):
        axis, keep, where = r.axis(x, several=True), r.random() < 0.5, mask(xp, x, r)
        function = (
            getattr(x, name)
            if r.random() < 0.5
            else (lambda **given: getattr(xp, name)(x, **given))
        )
        return function(
            axis=axis, keepdims=keep, where=where, **{key: value(r) for key, value in more.items()}
        )

    return program


BEGUN = {"initial": lambda r: r.choice([0, 3, -2])}
MASKED = {
    "sum": (NUMBERS, reduced("sum")),
    "sum begun": (NUMBERS[1:], reduced("sum", **BEGUN)),
    "prod": (NUMBERS, reduced("prod")),
    "prod begun": (NUMBERS[1:], reduced("prod", **BEGUN)),
    "max": (REAL[1:], reduced("max", **BEGUN)),
    "min": (REAL[1:], reduced("min", **BEGUN)),
    "mean": ((*WIDE, "complex64"), reduced("mean")),
    "var": (WIDE, reduced("var", ddof=lambda r: r.choice([0, 1]))),
    "std": (WIDE, reduced("std")),
    "any": (EVERY, reduced("any")),
    "all": (EVERY, reduced("all")),
}


@pytest.mark.parametrize("name", MASKED)
def test_elements_that_count(name):
    dtypes, program = MASKED[name]
    beside(program, dtypes, (0, 3), tolerance=2e-5, examples=40)


def test_all_or_none_by_a_bool():
    x = cyrt.asarray([1.0, 2.0, 4.0])
    assert [cyrt.sum(x, where=each).item() for each in (True, False)] == [7, 0]
    assert x.mean(where=[True, False, True]).item() == 2.5
    assert np.isnan(x.mean(where=False).item())
    assert cyrt.any(x, where=x > 9).item() is False
    assert cyrt.max(x, where=True).item() == cyrt.max(x, where=np.True_).item() == 4
    assert cyrt.maximum.reduce(x, where=np.True_, initial=0).item() == 4


def test_nothing_but_the_beginning():
    beside(
        lambda xp, x, r: (
            xp.max(x[:0], axis=0, initial=3),
            x[:0].min(axis=0, initial=-1),
            xp.sum(x[:0], initial=5),
            xp.add.reduce(x, initial=2),
            xp.maximum.reduce(x, initial=1, where=x > 2),
        ),
        REAL[1:],
        (1, 2),
        least=1,
    )


def test_beginnings_are_of_the_result_s_type():
    x = cyrt.asarray([2**40 + 1, 3])
    for name in ("sum", "max"):
        found = getattr(cyrt, name)(x, initial=0.0)
        assert (found.dtype, found.item()) == ("int64", int(getattr(x, name)()))
    assert cyrt.prod(x[:1], initial=1.0).item() == 2**40 + 1
    assert cyrt.max(x, initial=cyrt.asarray(5.5), where=x < 4).item() == 5
    for error, text, program in (
        (ValueError, "nan", lambda: cyrt.max(x, initial=np.nan)),
        (ValueError, "cannot convert inf to int64", lambda: cyrt.min(x, initial=np.inf)),
        (
            TypeError,
            r"sum: initial: 1j cannot be cast to float32",
            lambda: cyrt.sum(cyrt.ones(2), initial=1j),
        ),
        (
            TypeError,
            "max: initial: expected a number, got Array",
            lambda: cyrt.max(x, axis=0, initial=cyrt.zeros(4)),
        ),
        (
            TypeError,
            "sum: initial: expected a number, got list",
            lambda: cyrt.sum(x, initial=[1, 2]),
        ),
        (TypeError, "prod: initial: expected a number, got str", lambda: x.prod(initial="a")),
    ):
        with pytest.raises(error, match=text):
            program()


def test_out_takes_the_beginning_too():
    out = cyrt.zeros((), dtype="float64")
    cyrt.sum(cyrt.ones(3), dtype="float64", out=out, initial=2, where=[True, True, False])
    assert out.item() == 4


def test_variance_far_from_zero():
    x = cyrt.asarray((3e7 + 2 * (np.arange(4000) % 4)).astype(np.float32))
    where = cyrt.arange(4000) % 8 < 4
    assert x.var(where=x > 0).item() == x.var().item() == 5
    assert x.reshape(4, 1000).var(axis=1, where=where.reshape(4, 1000)).tolist() == [5] * 4


def test_half_precision_counts_beyond_its_range():
    x = cyrt.asarray(np.tile([1, -1], 35000).astype("float16"))
    assert x.var(where=x < 5).item() == 1


def test_half_precision_is_summed_in_float32():
    x = cyrt.full(4096, 60000, dtype="float16")
    where = cyrt.arange(4096) % 2 == 0
    assert x.mean(where=where).item() == 60000
    assert x.mean(where=where).dtype == "float16"
    assert x.std(where=where).item() == 0


def test_masks_that_do_not_fit():
    x = cyrt.ones((2, 3))
    with pytest.raises(TypeError, match="sum: where: expected an Array of bool, got ndarray"):
        cyrt.sum(x, where=np.ones((2, 3), bool))
    with pytest.raises(TypeError, match="sum: where: expected an Array of bool, got int64"):
        cyrt.sum(x, where=cyrt.ones((2, 3), dtype="int64"))
    with pytest.raises(ValueError, match=r"\(2,\).*\(2, 3\)"):
        x.mean(where=[True, False])
    with pytest.raises(ValueError, match="max: where: expected an initial value beside it"):
        cyrt.max(x, where=x > 0)


def typed(name):
    return lambda xp, x, r: getattr(xp, name)(
        x, r.choice([x, 2]), dtype=r.choice(["float32", "complex64", "int64", "int32"])
    )


TYPED = {
    "add": typed("add"),
    "multiply": typed("multiply"),
    "hypot": typed("hypot"),
    "one": lambda xp, x, r: [
        getattr(xp, name)(x, dtype=r.choice(["float32", "float64"]))
        for name in ("sqrt", "exp", "square")
    ],
    "into": lambda xp, x, r: xp.add(x, 1, dtype="float64", out=xp.zeros(x.shape, dtype="float64")),
    "where": lambda xp, x, r: xp.add(
        x, 1, dtype="float64", where=x > 2, out=xp.zeros(x.shape, dtype="float64")
    ),
    "compared": lambda xp, x, r: xp.less(x, 2, dtype="bool"),
}


@pytest.mark.parametrize("name", TYPED)
def test_type_of_the_result(name):
    beside(
        TYPED[name],
        ("float64",) if name in ("one", "into", "where") else ("int32", "int64", "float64"),
        (0, 2),
        tolerance=1e-5,
        examples=40,
    )


def test_masks_without_out_broadcast():
    x = cyrt.asarray([1.0, 2, 3])
    assert cyrt.add(x, 1, where=cyrt.ones((2, 3), dtype="bool")).tolist() == [[2, 3, 4]] * 2
    assert cyrt.add(x, 1, where=x > 0).tolist() == [2, 3, 4]
    with pytest.raises(ValueError, match="do not broadcast"):
        cyrt.log(x, where=cyrt.asarray([True, False]))
    with pytest.raises(TypeError, match="add: where: expected an Array of bool, got float32"):
        cyrt.add(x, 1, where=x)


def test_types_of_numbers():
    found = cyrt.add(1, 2, dtype="float32")
    assert (found.dtype, found) == (np.float32, 3)
    for program in (
        lambda xp: xp.add(2.5, 1, dtype="int32"),
        lambda xp: xp.sqrt(2, dtype="int32"),
        lambda xp: xp.less(1, 2, dtype="float32"),
    ):
        for xp in (np, cyrt):
            with pytest.raises(TypeError):
                program(xp)


def test_all_or_none_of_what_is_put():
    out = cyrt.zeros(3, dtype="float64")
    assert cyrt.add(cyrt.ones(3), 1, dtype="float64", where=True, out=out) is out
    assert cyrt.add(cyrt.ones(3), 7, where=False, out=out).tolist() == [2, 2, 2]
    assert cyrt.add(cyrt.ones(3), 7, where=np.True_, out=out).tolist() == [8, 8, 8]
    assert cyrt.exp.__call__(cyrt.ones(1), dtype="float64").dtype == "float64"


def test_types_that_a_result_cannot_have():
    x = cyrt.ones(3)
    with pytest.raises(TypeError, match="add: dtype: .* float32 cannot be cast to int64"):
        cyrt.add(x, 1, dtype="int64")
    with pytest.raises(TypeError, match="sqrt: dtype: its result is float32, expected int64"):
        cyrt.sqrt(cyrt.ones(3, dtype="int64"), dtype="int64")
    with pytest.raises(TypeError, match="less: dtype: its result is bool, expected float32"):
        cyrt.less(x, 1, dtype="float32")


def test_lists_beside_a_condition():
    beside(
        lambda xp, x, r: (
            xp.where(x > 0, [1, 2, 3], x),
            xp.where(x > 0, x, [0.5, 1, 2]),
            xp.where(x > 0, [1, 2, 3], 0),
            xp.clip(x, [0, 1, 2], 3),
        ),
        ("float64",),
        (1, 1),
        least=3,
        size=3,
    )
    x = cyrt.asarray(np.array([1, -2, 3], np.int8))
    assert cyrt.where(x > 0, [1, 2, 3], x).dtype == "int8"
    assert cyrt.where(x > 0, [0.1, 1, 1], cyrt.zeros(3, dtype="float64"))[0].item() == 0.1
    assert cyrt.clip(cyrt.asarray([1.0, 5, 9]), 0, [2, 2, 10]).tolist() == [1, 2, 9]


def test_on_another_device(python, only_emulated):
    done = python(
        """
        import cyrt
        x = cyrt.ones(3, device=1)
        print(cyrt.arange(3, device=1).device == x.device, x.sum(where=[True, False, True]).item(),
              cyrt.max(x[:0], initial=3).device == x.device,
              cyrt.where(x > 0, [1, 2, 3], 0).tolist())
    """,
        CYRT_EMULATED_DEVICES="2",
    )
    assert done.stdout == "True 2.0 True [1, 2, 3]\n", done.stderr
