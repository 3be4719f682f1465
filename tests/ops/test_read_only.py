"""Nothing writes to views whose elements share memory or that diag returns, or to their views."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt

N = 50_000  # more than one block of a kernel: their order is not known


class Strided:
    """Another library's array of rows that overlap."""

    def __init__(self, memory):
        self.memory = memory
        self.__cuda_array_interface__ = memory.__cuda_array_interface__ | {
            "shape": (3, 4),
            "strides": (4, 4),
        }


VIEWS = {
    "broadcast": lambda x: cyrt.broadcast_to(x[:4], (3, 4)),
    "a row of it": lambda x: cyrt.broadcast_to(x[:4], (3, 4))[1],
    "an element of it": lambda x: cyrt.broadcast_to(x[:4], (3, 4))[1, 2],
    "transposed": lambda x: cyrt.broadcast_to(x[:4], (3, 4)).T[2:],
    "reshaped": lambda x: cyrt.broadcast_to(x, (2, N))[1].reshape(2, N // 2),
    "another type": lambda x: cyrt.broadcast_to(x[:4], (3, 4)).view("int32"),
    "an iterated row": lambda x: next(iter(cyrt.broadcast_to(x[:4], (3, 4)))),
    "split": lambda x: cyrt.split(cyrt.broadcast_to(x[:4], (3, 4)), 3)[0],
    "arrays": lambda x: cyrt.broadcast_arrays(x[:4], cyrt.zeros((3, 1)))[0][0],
    "meshgrid": lambda x: cyrt.meshgrid(x[:4], x[:3])[0][0],
    "windows": lambda x: cyrt.sliding_window_view(x, 7),
    "a window": lambda x: cyrt.sliding_window_view(x, 7)[5],
    "windows of two": lambda x: cyrt.sliding_window_view(x[:100].reshape(10, 10), (3, 3)),
    "diag": lambda x: cyrt.diag(x[:100].reshape(10, 10)),
    "a part of diag": lambda x: cyrt.diag(x[:100].reshape(10, 10), 1)[::2],
    "another library's": lambda x: cyrt.asarray(Strided(x)),
    "a row of another library's": lambda x: cyrt.asarray(Strided(x))[0],
}


def set_all(v):
    v[...] = 1


def add_in_place(v):
    v += 1


def multiply_in_place(v):
    v *= v


def set_by_indices(v):
    v[np.zeros(v.shape, dtype=bool)] = cyrt.ones((), dtype=v.dtype)


WRITES = {
    "assign": set_all,
    "+= 1": add_in_place,
    "*= itself": multiply_in_place,
    "mask": set_by_indices,
    "out": lambda v: cyrt.add(v, v, out=v),
    "out of one": lambda v: cyrt.negative(v, out=v),
    "out of another": lambda v: cyrt.add(cyrt.ones(v.shape, dtype=v.dtype), 1, out=v),
    "out of a sum": lambda v: cyrt.sum(cyrt.ones((2, *v.shape), dtype=v.dtype), axis=0, out=v),
    "fill": lambda v: v.fill(1),
    "copyto": lambda v: cyrt.copyto(v, 1),
    "add.at": lambda v: cyrt.add.at(v, (np.array(0),) * v.ndim, 1) if v.ndim else v.fill(1),
    "flat": lambda v: v.flat.__setitem__(0, 1),
    "copy_from": lambda v: v.copy_from(np.zeros(v.shape, v.dtype.numpy)),
    "copy_from an array": lambda v: v.copy_from(cyrt.zeros(v.shape, dtype=v.dtype)),
    "copy_to": lambda v: cyrt.zeros(v.shape, dtype=v.dtype).copy_to(v),
    "a kernel": lambda v: cyrt.Kernel(
        f'extern "C" __global__ void k({"int" if v.dtype == "int32" else "float"}* x) {{}}', "k"
    )[1, 1](v),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_writing_is_refused(view, write):
    x = cyrt.asarray(np.arange(N, dtype=np.float32))
    v = view(x)
    assert not v.flags.writeable
    with pytest.raises(ValueError, match="read-only|not contiguous|C-contiguous"):
        write(v)
    assert (x == cyrt.arange(N, dtype="float32")).all()


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_copy_is_writable(view):
    x = cyrt.asarray(np.arange(N, dtype=np.float32))
    v = view(x)
    before, copied = v.numpy(), v.copy()
    assert copied.flags.writeable
    copied += 1
    np.testing.assert_array_equal(copied.numpy(), before + 1)


def test_a_kernel_reads_it():
    x = cyrt.broadcast_to(cyrt.ones(4), (3, 4))[1]
    y = cyrt.zeros(4)
    k = cyrt.Kernel(
        'extern "C" __global__ void k(const float* x, float* y) '
        "{ y[threadIdx.x] = x[threadIdx.x] + 1; }",
        "k",
    )
    k[1, 4](x, y)
    assert y.tolist() == [2, 2, 2, 2]


def test_views_of_others_are_writable():
    x = cyrt.zeros((3, 4, 5, 6))
    for view in (
        x[::2, ::-1],
        x.T,
        cyrt.diagonal(x, axis1=1, axis2=3),
        cyrt.diagonal(cyrt.diagonal(x)),
        x.view("int32")[..., ::2],
        x.reshape(12, 30)[1:],
        x[:0],
        cyrt.broadcast_to(x, (1, *x.shape)),
        cyrt.broadcast_to(x, (0, *x.shape)),
        cyrt.sliding_window_view(x, 6, axis=3),
        cyrt.sliding_window_view(x, 1, axis=3),
    ):
        assert view.flags.writeable
        view.fill(1)


@pytest.mark.parametrize("name", ["swiglu_vjp", "layer_norm_vjp", "rms_norm_vjp"])
def test_a_donated_view_is_not_overwritten(name):
    """Its rows are contiguous and evenly spaced, but its memory has other users."""
    row = cyrt.asarray(np.arange(8, dtype=np.float32))
    g = cyrt.broadcast_to(row, (4, 8))[:1]
    x, up = cyrt.ones((1, 8)) * 2, cyrt.ones((1, 8))
    operands = (g, x, up) if name == "swiglu_vjp" else (g, x, cyrt.ones(8))
    function = getattr(cyrt.nn, name)
    wanted = [
        each.numpy() for each in function(*(each.copy() for each in operands)) if each is not None
    ]
    x[...] = 2
    read_only = [cyrt.broadcast_to(each, (2, *each.shape))[1] for each in operands]
    found = [each for each in function(*read_only, donate=True) if each is not None]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.numpy(), other)
    assert row.tolist() == list(range(8))
    assert (x == 2).all()
    assert (up == 1).all()
