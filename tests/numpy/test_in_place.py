"""Writing in place, elements in a row, views and what shares memory: run on cyrt and on NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from beside_numpy import EVERY, NUMBERS, REAL, beside

import cyrt

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's own


SAME = {1: "int8", 4: "uint32", 8: "int64"}
NARROW = ("bool", "uint8", "int32", "int64", "float32", "complex64")
OF_ORDER = ("copyto where", "putmask", "place", "flat mask")


def written(xp, name, x, *args, **options):
    getattr(xp, name)(x, *args, **options)
    return x


def flat_set(x, key, value):
    x.flat[key] = value
    return x


WRITTEN = {
    "copyto": lambda xp, x, r: written(xp, "copyto", x, x[:1] + x[-1:]),
    "copyto of a number": lambda xp, x, r: written(xp, "copyto", x, r.choice([3, 1.5, 2j])),
    "copyto where": lambda xp, x, r: written(xp, "copyto", x, 7, where=x > 0),
    "copyto of another": lambda xp, x, r: written(
        xp,
        "copyto",
        x,
        xp.asarray([5], dtype=r.choice(EVERY)),
        casting=r.choice(["same_kind", "unsafe"]),
    ),
    # If an index is given twice, any one of its values is kept: these values are equal.
    "put": lambda xp, x, r: written(
        xp, "put", x, r.choice([0, [0, -1], []]), r.choice([5, [6, 7]]) if x.size > 1 else 5
    ),
    "put beyond": lambda xp, x, r: written(
        xp, "put", x, [x.size + 1, -x.size - 1, 0], 5, mode=r.choice(["wrap", "clip"])
    ),
    "putmask": lambda xp, x, r: written(xp, "putmask", x, x > 0, r.choice([5, [1, 2, 3]])),
    "place": lambda xp, x, r: written(xp, "place", x, x > 0, r.choice([[5], [1, 2, 3]])),
    "flat element": lambda xp, x, r: flat_set(x, r.randint(-6, 6), 7),
    "flat slice": lambda xp, x, r: flat_set(x, slice(r.randint(0, 3), None, r.randint(1, 3)), 7),
    "flat places": lambda xp, x, r: flat_set(x, xp.asarray([0, 2]), 7),
    "flat mask": lambda xp, x, r: flat_set(x, xp.ravel(x) > 0, 0),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written(name):
    beside(
        WRITTEN[name],
        REAL if name in OF_ORDER else NUMBERS,
        (1, 3),
        least=3 if "places" in name else 1,
    )


def test_all_elements_by_flat():
    x, host = cyrt.zeros((2, 3)), np.zeros((2, 3), np.float32)
    for each in (x, host, x.T, host.T):
        each.flat = range(6)
    np.testing.assert_array_equal(x.numpy(), host)


READ = {
    "elements": lambda xp, x, r: (x.flat[0], x.flat[-1], x.flat[1:4], len(x.flat)),
    "iterated": lambda xp, x, r: [v.item() for v in x.flat],
    "as an array": lambda xp, x, r: (x.T.flat.copy(), np.asarray(x.T.flat).tolist()),
    "flags": lambda xp, x, r: (
        x.T.copy().flags.c_contiguous,
        xp.broadcast_to(x, (2, *x.shape)).flags.writeable,
        x[:1].flags["OWNDATA"],
        x.copy().flags["C_CONTIGUOUS"],
    ),
    "view": lambda xp, x, r: xp.copy(x).view(r.choice(NARROW)),
    "view of its size": lambda xp, x, r: x.view(SAME[x.itemsize]),
    "view of a part": lambda xp, x, r: x.copy()[..., r.choice([0, 2]) :].view(r.choice(NARROW)),
    "view itself": lambda xp, x, r: (x.view(), x.view(xp.ndarray)),
    "windows": lambda xp, x, r: windows(xp)(x, 2, axis=r.axis(x, none=False)),
    "windows of all": lambda xp, x, r: windows(xp)(x, (2,) * r.randint(1, 3)),
    "windows of windows": lambda xp, x, r: windows(xp)(x, (2, 2), axis=(0, 0)),
}


def windows(xp):
    return np.lib.stride_tricks.sliding_window_view if xp is np else cyrt.sliding_window_view


@pytest.mark.parametrize("name", READ)
def test_read(name):
    beside(READ[name], NUMBERS, (1, 3), least=3 if "windows" not in name else 1, examples=60)


def test_a_view_of_another_type_is_written_through():
    x = cyrt.asarray(np.array([[1, 2], [3, 4]], np.float32))
    x.view("int32")[0, 0] = 0
    assert x.tolist() == [[0, 2], [3, 4]]
    with pytest.raises(ValueError, match=r"view: an array of float32, shape \(2, 2\).*float64"):
        x.T.view("float64")


def test_flags_by_name():
    flags = cyrt.zeros((2, 3)).T.flags
    assert flags.f_contiguous
    assert not flags.c_contiguous
    assert not flags.owndata
    with pytest.raises(KeyError, match="C_CONTIGUOUS, .*, not WIDE"):
        flags["WIDE"]


@pytest.mark.parametrize(
    "keys",
    [
        (np.s_[:4], np.s_[4:]),
        (np.s_[:5], np.s_[4:]),
        (np.s_[::2], np.s_[1::2]),
        (np.s_[:0], np.s_[:]),
        (np.s_[::-1], np.s_[3:4]),
    ],
    ids=str,
)
def test_shared_memory(keys):
    host, x = np.zeros(9), cyrt.zeros(9)
    for name in ("shares_memory", "may_share_memory"):
        wanted = getattr(np, name)(host[keys[0]], host[keys[1]])
        assert getattr(cyrt, name)(x[keys[0]], x[keys[1]]) is wanted
    assert not cyrt.shares_memory(x, x.copy())


def test_writing_refused():
    x = cyrt.asarray([1, 2, 3])
    with pytest.raises(TypeError, match="1.5 cannot be cast to int64 unless casting='unsafe'"):
        cyrt.copyto(x, 1.5)
    with pytest.raises(ValueError, match=r"mask: expected 3 elements, got shape \(2,\)"):
        cyrt.place(x, x[:2] > 0, [1])
    with pytest.raises(ValueError, match="does not broadcast"):
        cyrt.copyto(x, cyrt.asarray([[1], [2]]))
    with pytest.raises(ValueError, match="window_shape: expected 0 to 3 along axis 0, got 4"):
        cyrt.sliding_window_view(x, 4)
    assert x.tolist() == [1, 2, 3]


def test_nothing_waits(batched, unchecked):
    x = cyrt.asarray(np.arange(12.0, dtype=np.float32).reshape(3, 4))
    places, values = cyrt.asarray([0, 5]), cyrt.asarray([1.0, 2])
    programs = [
        lambda: cyrt.copyto(x, 1, where=x > 2),
        lambda: cyrt.put(x, places, values),
        lambda: cyrt.putmask(x, x > 3, values),
        lambda: cyrt.place(x, x > 1, values),
        lambda: cyrt.nanquantile(x, 0.5, 0),
        lambda: cyrt.nanmedian(x, 1),
        lambda: x.view("int32") + 1,
        lambda: cyrt.lexsort([x, x]),
        lambda: x.flat[3],
        lambda: cyrt.ldexp(x, 2),
    ]
    cyrt.synchronize()
    for program in programs:
        with cyrt.batch():
            before = cyrt.current_encoder().stats()["commits"]
            program()
            assert cyrt.current_encoder().stats()["commits"] == before, program


def test_parts_of_complex_numbers():
    def program(xp, x, r):
        x.real *= 2
        x.imag = x.real[::-1]
        x[..., 0].imag = 7
        return x

    beside(program, ("complex64", "complex128"), (1, 2), least=1)
    real = cyrt.asarray([1.0, 2.0])
    real.real = [3, 4]
    assert real.tolist() == [3, 4]
    with pytest.raises(TypeError, match="float32 has no imaginary parts"):
        real.imag = 1


def test_nothing_is_put():
    def program(xp, x, r):
        none = x[:0].ravel()
        xp.put(x, [0], none)
        xp.putmask(x, x > 0, none)
        xp.fill_diagonal(x, none)
        return x

    beside(program, REAL, (2, 2), least=1)
