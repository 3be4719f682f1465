"""Arrays and Buffers convert into each other, and copy their elements to and from the host."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt


def test_a_buffer_viewed_as_an_array():
    buffer = cyrt.Buffer(24)
    buffer.copy_from(np.arange(6, dtype=np.float32))
    x = cyrt.asarray(buffer, dtype=cyrt.float32)
    y = cyrt.asarray(buffer, dtype=cyrt.float32, shape=(2, 3))
    x += 1
    assert (y.numpy() == [[1, 2, 3], [4, 5, 6]]).all()
    assert cyrt.asarray(buffer[8:16], dtype=cyrt.float32).tolist() == [3, 4]
    assert cyrt.asarray(buffer, dtype=cyrt.uint8).shape == (24,)
    copied = cyrt.asarray(buffer, dtype=cyrt.float32, copy=True)
    x += 1
    assert copied.tolist() == [1, 2, 3, 4, 5, 6]
    del buffer, y
    assert x.tolist() == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (TypeError, "no element type", {}),
        (ValueError, "26 bytes are not a multiple", {"dtype": cyrt.float32}),
        (ValueError, "12 elements of int16 have 24 bytes", {"dtype": "int16", "shape": (3, 4)}),
        (TypeError, "is not an element type", {"dtype": "none"}),
    ],
)
def test_a_buffer_that_is_no_such_array(error, message, arguments):
    with pytest.raises(error, match=message):
        cyrt.asarray(cyrt.Buffer(26), **arguments)


@pytest.mark.parametrize("make", [cyrt.PinnedBuffer, cyrt.ManagedBuffer])
def test_memory_of_the_host_as_elements(make):
    buffer = make(16)
    np.frombuffer(buffer, np.float32)[:] = [1, 2, 3, 4]
    assert cyrt.asarray(buffer, dtype="float32").tolist() == [1, 2, 3, 4]
    assert cyrt.asarray(buffer, dtype="float32", shape=(2, 2)).tolist() == [[1, 2], [3, 4]]
    assert cyrt.asarray(buffer, dtype="bfloat16").shape == (8,)
    with pytest.raises(ValueError, match="4 elements of float32 cannot have the shape"):
        cyrt.asarray(buffer, dtype="float32", shape=(3, 2))
    with pytest.raises(ValueError, match="18 bytes are not a multiple"):
        cyrt.asarray(make(18), dtype="float32")


def test_a_misaligned_buffer():
    with pytest.raises(ValueError, match="address is not a multiple"):
        cyrt.asarray(cyrt.Buffer(26)[2:22], dtype=cyrt.float32)


def test_only_a_buffer_has_a_shape_to_choose():
    with pytest.raises(TypeError, match="reshape"):
        cyrt.asarray(np.zeros(4), shape=(2, 2))


def test_the_buffer_of_an_array():
    x = cyrt.arange(6, dtype=cyrt.int32)
    assert isinstance(x.buffer, cyrt.Buffer)
    assert x.buffer.nbytes == 24
    x[2:4].buffer.fill(0)
    assert x.tolist() == [0, 1, 0, 0, 4, 5]
    buffer = (x + 1).buffer
    assert cyrt.asarray(buffer, dtype=cyrt.int32).tolist() == [1, 2, 1, 1, 5, 6]
    with pytest.raises(ValueError, match="not contiguous"):
        _ = x[::2].buffer


def test_the_buffer_of_a_read_only_view_is_not_written():
    x = cyrt.arange(4)
    kernels = cyrt.Module(
        'extern "C" __global__ void set(char* x) { x[0] = 9; }'
        ' extern "C" __global__ void get(const char* x, char* y) { y[0] = x[0]; }'
    )
    row = cyrt.broadcast_to(x, (3, 4))[1]
    for buffer in (row.buffer, row.buffer[:8]):
        writes = (
            lambda buffer=buffer: buffer.fill(0),
            lambda buffer=buffer: buffer.copy_from(bytes(buffer.nbytes)),
            lambda buffer=buffer: kernels["set"][1, 1](buffer),
        )
        for write in writes:
            with pytest.raises(ValueError, match="read-only"):
                write()
        with pytest.raises(ValueError, match="read-only"):
            cyrt.asarray(buffer, dtype="int64").fill(1)
        out = cyrt.ones(1, "int8")
        kernels["get"][1, 1](buffer, out)
        assert out.tolist() == [0]
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["float32", "bfloat16", "bool", "complex64"])
def test_elements_to_and_from_the_host(name):
    dtype = cyrt.dtype(name)
    values = np.array([[1, 0, 2], [0, 3, 1]]).astype(dtype.numpy)
    x = cyrt.zeros((2, 3), dtype=dtype)
    x.copy_from(values)
    found = np.zeros_like(values)
    x.copy_to(found)
    assert (found == values).all()
    found[:] = 0
    assert x.numpy(out=found) is found
    assert (found == values).all()
    apart = np.zeros((2, 6), values.dtype)[:, ::2]
    x.numpy(out=apart)
    assert (apart == values).all()
    turned = x.T.numpy(out=np.empty((3, 2), values.dtype))
    assert (turned == values.T).all()


def test_elements_between_arrays_and_buffers():
    x, y, buffer = cyrt.arange(4, dtype=cyrt.int32), cyrt.zeros(4, cyrt.int32), cyrt.Buffer(16)
    x.copy_to(y)
    x.copy_to(buffer)
    assert y.tolist() == [0, 1, 2, 3]
    assert cyrt.asarray(buffer, dtype=cyrt.int32).tolist() == [0, 1, 2, 3]
    x += 5
    y.copy_from(x)
    assert y.tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize("other", [np.zeros(3, np.float32), np.zeros(4, np.float64)])
@pytest.mark.parametrize(
    "call", [lambda x, y: x.numpy(out=y), lambda x, y: x.copy_to(y), lambda x, y: x.copy_from(y)]
)
def test_other_shapes_and_types_are_refused(call, other):
    with pytest.raises(ValueError, match=r"expected shape \(4,\) and float32, got"):
        call(cyrt.ones(4), other)


def test_memory_that_receives_no_elements():
    x = cyrt.ones((2, 2))
    with pytest.raises(TypeError, match="NumPy array, got list"):
        x.numpy(out=[[0, 0], [0, 0]])
    with pytest.raises(ValueError, match="not contiguous"):
        x.T.copy_to(np.zeros((2, 2), np.float32))
    fixed = np.zeros((2, 2), np.float32)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        x.numpy(out=fixed)
    with pytest.raises((ValueError, BufferError)):
        x.copy_to(fixed)
