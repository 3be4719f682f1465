"""What the tests of operations along rows share: lengths, types, layouts and comparisons."""

from __future__ import annotations

import numpy as np

import cyrt

# About the elements that a warp, a block and the registers of a row's threads hold.
LENGTHS = [1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 4099, 8192, 16384, 65536, 100_003]
TYPES = ["float16", "bfloat16", "float32", "float64"]
# Errors of results about 1, absolute and relative: a rounding to the type, and float32 sums.
TOLERANCES = {"float16": 1.5e-3, "bfloat16": 1.2e-2, "float32": 4e-6, "float64": 1e-12}


def rows_for(length):
    """How many rows of a length to compute: some blocks of short rows, few long ones."""
    return 37 if length < 300 else 3


def many_rows(length):
    """How many rows of 16-bit elements let persistent blocks take two each, and some three."""
    threads = max(32, 1 << (length - 1).bit_length() - 5)
    return 1024 // threads * cyrt.Device(0).multiprocessors + 3


def numbers(rng, name, *shape):
    """Normal random numbers in a type, NumPy's."""
    return rng.normal(size=shape).astype(cyrt.dtype(name).numpy)


def exact(x):
    """An Array or a NumPy array as float64."""
    return (x.numpy() if isinstance(x, cyrt.Array) else np.asarray(x)).astype(np.float64)


def assert_close(found, wanted, name, scale=1.0):
    """Compare within the type's tolerance times `scale`."""
    tolerance = TOLERANCES[name]
    assert str(found.dtype) == name
    np.testing.assert_allclose(exact(found), wanted, rtol=tolerance, atol=tolerance * scale)


def as_view(x, how):
    """An Array of x's values, two-dimensional, in a layout."""
    rows, n = x.shape
    if how == "dense":
        return cyrt.asarray(x)
    if how == "transposed":
        return cyrt.asarray(np.ascontiguousarray(x.T)).T
    if how == "upside down":
        return cyrt.asarray(np.ascontiguousarray(x[::-1]))[::-1]
    if how == "backwards":
        return cyrt.asarray(np.ascontiguousarray(x[:, ::-1]))[:, ::-1]
    room = {"within aligned rows": 16, "within rows": 3, "shifted": 1}[how]
    begin = 8 if room == 16 else 1
    wide = np.zeros((rows, n + room), x.dtype)
    wide[:, begin : begin + n] = x
    return cyrt.asarray(wide)[:, begin : begin + n]


# Layouts, and whether kernels take them as they are.
LAYOUTS = {
    "dense": True,
    "within aligned rows": True,
    "within rows": True,
    "shifted": True,
    "upside down": True,
    "transposed": False,
    "backwards": False,
}


def launches(function):
    """Names of the kernels that a function launches, in order."""
    encoder = cyrt.CommandEncoder()
    with encoder.stream:
        function()  # loads code
        cyrt.commit()
        function()
        cyrt.commit()
        return cyrt.current_encoder().last_plan().names
