"""Arrays handed to other libraries and taken from them: DLPack, the CUDA array interface."""

import ctypes
import gc
import operator
import pickle

import numpy as np
import pytest
from producers import Described

import cyrt

LEGACY = 1


class Consumer:
    """Another library's array over an Array's memory, by one of the two protocols."""

    def __init__(self, x):
        self.x = x


class ByInterface(Consumer):
    @property
    def __cuda_array_interface__(self):
        return self.x.__cuda_array_interface__


class ByDlpack(Consumer):
    versions = (1, 1)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.x.__dlpack__(
            stream=stream, max_version=self.versions, dl_device=dl_device, copy=copy
        )


class ByOldDlpack(ByDlpack):
    versions = None


PROTOCOLS = [ByInterface, ByDlpack, ByOldDlpack]
TYPES = [np.dtype(each.numpy) for each in cyrt.dtypes.DTYPES if each.name != "bfloat16"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_type_comes_back(protocol, dtype):
    host = np.arange(6).reshape(2, 3).astype(dtype)
    x = cyrt.asarray(host)
    y = cyrt.asarray(protocol(x))
    assert y.dtype == dtype
    assert y.ptr == x.ptr
    np.testing.assert_array_equal(y.numpy(), host)


@pytest.mark.parametrize("protocol", [ByDlpack, ByOldDlpack])
def test_bfloat16_goes_by_dlpack(protocol):
    x = cyrt.asarray([1.5, -2.0], dtype="bfloat16")
    assert not hasattr(x, "__cuda_array_interface__")
    y = cyrt.asarray(protocol(x))
    assert y.dtype is cyrt.bfloat16
    assert y.tolist() == [1.5, -2.0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "key",
    [
        (slice(None, None, 2),),
        (slice(None), 1),
        (slice(None, None, -1), slice(None, None, -2)),
        (0, 1),
        (slice(0, 0),),
        (None, Ellipsis, None),
    ],
    ids=str,
)
def test_views_come_back(protocol, key):
    host = np.arange(20, dtype=np.int32).reshape(4, 5)
    x = cyrt.asarray(host)[key]
    y = cyrt.asarray(protocol(x))
    assert y.shape == host[key].shape
    np.testing.assert_array_equal(y.numpy(), host[key])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_change_after_the_exchange_is_seen(protocol):
    x = cyrt.zeros(1000)
    y = cyrt.asarray(protocol(x))
    x += 1
    assert y.numpy().tolist() == [1] * 1000
    y *= 3
    assert x.numpy().tolist() == [3] * 1000


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_memory_outlives_the_array(protocol):
    x = cyrt.full(1000, 7)
    y = cyrt.asarray(protocol(x))
    address = x.ptr
    del x
    gc.collect()
    other = cyrt.full(1000, 8)
    assert other.ptr != address
    assert y.numpy().tolist() == [7] * 1000


@pytest.mark.usefixtures("pooled")
@pytest.mark.parametrize("max_version", [None, (), (0, 8), (1, 0), (1, 1), (2, 0)])
def test_a_capsule_that_nobody_takes_is_freed(max_version):
    gc.collect()
    cyrt.synchronize()  # what earlier tests left is gone
    before = cyrt.memory_stats()["in_use"]
    x = cyrt.zeros(1 << 16)
    name = "dltensor" if not max_version or max_version[0] < 1 else "dltensor_versioned"
    assert f'"{name}"' in repr(x.__dlpack__(max_version=max_version))
    del x
    gc.collect()
    cyrt.synchronize()
    assert cyrt.memory_stats()["in_use"] <= before  # less: what other threads still had


@pytest.mark.usefixtures("batched")
def test_a_recording_is_launched_before_it_is_handed_out():
    x = cyrt.zeros(1000) + 1
    assert cyrt.current_encoder().num_ops
    x.__dlpack__(stream=LEGACY)
    assert not cyrt.current_encoder().num_ops


def test_to_the_host():
    x = cyrt.arange(6)
    y = np.from_dlpack(x, device="cpu")
    np.testing.assert_array_equal(y, np.arange(6))
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        x.__dlpack__(dl_device=(10, 0))


def test_a_copy_is_one():
    x = cyrt.arange(6)

    class Copied(ByDlpack):
        def __dlpack__(self, **kwargs):
            return self.x.__dlpack__(**{**kwargs, "copy": True})

    y = cyrt.asarray(Copied(x))
    y += 1
    assert x.tolist() == list(range(6))
    assert y.tolist() == list(range(1, 7))


@pytest.mark.parametrize(
    ("stream", "error"), [(0, ValueError), (-2, ValueError), ("1", TypeError), (True, TypeError)]
)
def test_streams_that_are_none(stream, error):
    with pytest.raises(error, match="stream: expected"):
        cyrt.zeros(3).__dlpack__(stream=stream)


def test_from_dlpack():
    x = cyrt.arange(4)
    assert cyrt.from_dlpack(x) is x
    y = cyrt.from_dlpack(np.arange(4.0))
    assert y.dtype == np.float64
    assert y.tolist() == [0, 1, 2, 3]
    assert cyrt.from_dlpack(ByDlpack(x), copy=True).ptr != x.ptr
    with pytest.raises(BufferError, match="host"):
        cyrt.from_dlpack(np.arange(4), copy=False)
    with pytest.raises(AttributeError, match="list has no __dlpack__"):
        cyrt.from_dlpack([1, 2])


def test_a_host_object_with_dlpack_only():
    class Host:
        def __init__(self, values):
            self.values = values

        def __dlpack_device__(self):
            return self.values.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.values.__dlpack__(**options)

    x = cyrt.asarray(Host(np.arange(6, dtype=np.int16).reshape(2, 3).T))
    assert x.dtype is cyrt.int16
    assert x.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert cyrt.asarray(Host(np.arange(3)), dtype="float32").tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="Host lies on the host"):
        cyrt.asarray(Host(np.arange(3)), copy=False)


class OnTheHost:
    """An array of another library in the host's memory, with DLPack alone."""

    device = (1, 0)

    def __init__(self, values, code=None):
        self.values, self.code = values, code

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        capsule = self.values.__dlpack__()
        if self.code is not None:  # NumPy's arrays have no such type
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
            Described.from_address(pointer(capsule, b"dltensor")).code = self.code
        return capsule


HOST = OnTheHost(np.ones(3, np.float32))
COPIES = r"expected an Array, got .*OnTheHost; cyrt.asarray\(\) copies it to the device"


@pytest.mark.parametrize("convert", [cyrt.asarray, cyrt.from_dlpack])
def test_every_type_is_read_from_the_host(convert):
    bits = cyrt.asarray([1.5, -2.0], dtype="bfloat16").view("uint16").numpy()
    x = convert(OnTheHost(bits[::-1], code=4))
    assert x.dtype is cyrt.bfloat16
    assert x.tolist() == [-2.0, 1.5]
    x = convert(OnTheHost(np.arange(6, dtype=np.int16).reshape(2, 3).T))
    assert x.dtype is cyrt.int16
    assert x.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert convert(OnTheHost(np.zeros((0, 2), bool))).shape == (0, 2)


def test_what_is_not_read_from_the_host():
    with pytest.raises(TypeError, match="OnTheHost: its element type .* has no counterpart"):
        cyrt.asarray(OnTheHost(np.ones(3, np.int8), code=10))  # float8_e4m3fn
    elsewhere = OnTheHost(np.ones(3))
    elsewhere.device = (8, 0)
    with pytest.raises(TypeError, match=r"DLPack device \(8, 0\), neither in memory of a GPU nor"):
        cyrt.asarray(elsewhere)


@pytest.mark.parametrize(
    "call",
    [
        *(
            lambda x, host, f=f: f(x, host)
            for f in (operator.eq, operator.ne, operator.lt, operator.add, operator.iadd)
        ),
        *(lambda x, host, f=f: f(host, x) for f in (operator.eq, operator.ne, operator.mul)),
        lambda x, host: cyrt.add(x, host),
        lambda x, host: cyrt.exp(host),
        lambda x, host: cyrt.nn.relu(host),
        lambda x, host: cyrt.where(x > 0, x, host),
        lambda x, host: cyrt.matmul(host, x),
        lambda x, host: cyrt.sort(host),
    ],
)
def test_an_array_on_the_host_is_no_operand(call):
    with pytest.raises(TypeError, match=COPIES):
        call(cyrt.ones(3), HOST)


def test_another_type_may_implement_the_operation():
    class Other:
        __array_ufunc__ = None

        def __array__(self):
            raise AssertionError

        def __radd__(self, x):
            return "sum"

    assert cyrt.ones(3) + Other() == "sum"
    assert (cyrt.ones(3) == object()) is False


def test_a_result_is_not_written_to_the_host():
    x = cyrt.ones((2, 2))
    for call in (
        lambda out: cyrt.sqrt(x, out=out),
        lambda out: cyrt.matmul(x, x, out=out),
        lambda out: cyrt.concat([x, x], out=out),
        lambda out: cyrt.sum(x, out=out),
    ):
        with pytest.raises(TypeError, match=r"\w+: out: .*OnTheHost, which is on the host; out= "):
            call(HOST)


def test_an_array_in_a_sequence_whose_type_is_anothers():
    class Foreign(OnTheHost):
        dtype = "float32 of another library"

        def __array__(self, dtype=None, copy=None):
            return self.values

    with pytest.raises(TypeError, match=r"element of .*Foreign, of .*: convert each .*stack\(\)"):
        cyrt.asarray([Foreign(np.ones(2)), Foreign(np.ones(2))])


class ReadOnlyByInterface(Consumer):
    @property
    def __cuda_array_interface__(self):
        found = self.x.__cuda_array_interface__
        return {**found, "data": (found["data"][0], True)}


class ReadOnlyByDlpack(ByDlpack):
    def __dlpack__(self, **options):
        capsule = super().__dlpack__(**options)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # DLManagedTensorVersioned: the version, the context, the deleter, then the flags.
        flags = pointer(capsule, b"dltensor_versioned") + 24
        ctypes.c_uint64.from_address(flags).value |= 1
        return capsule


@pytest.mark.parametrize("protocol", [ReadOnlyByInterface, ReadOnlyByDlpack])
def test_read_only_memory_is_copied(protocol):
    x = cyrt.arange(4)
    y = cyrt.asarray(protocol(x))
    y += 1
    y[0] = 9
    assert y.tolist() == [9, 2, 3, 4]
    assert cyrt.asarray(protocol(x), copy=True).ptr != x.ptr
    with pytest.raises(ValueError, match=f"{protocol.__name__} is read-only .*copy=False"):
        cyrt.asarray(protocol(x), copy=False)
    if protocol is ReadOnlyByDlpack:
        z = cyrt.from_dlpack(protocol(x))
        z += 1
        with pytest.raises(BufferError, match="read-only"):
            cyrt.from_dlpack(protocol(x), copy=False)
    assert x.tolist() == [0, 1, 2, 3]


def test_read_only_views_are_exported_as_such():
    x = cyrt.arange(4)
    view = cyrt.broadcast_to(x, (3, 4))
    for each in (view, view[0], view[:, :2]):
        assert each.__cuda_array_interface__["data"][1]
        capsule = each.__dlpack__(max_version=(1, 0))
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        address = pointer(capsule, b"dltensor_versioned") + 24
        assert ctypes.c_uint64.from_address(address).value == 1
        for version in (None, (0, 8)):
            with pytest.raises(BufferError, match=r"read-only view.*copy\(\)"):
                each.__dlpack__(max_version=version)
        assert each.__dlpack__(copy=True)
        y = cyrt.asarray(ByDlpack(each))
        y += 1
    assert x.tolist() == [0, 1, 2, 3]
    assert not x.__cuda_array_interface__["data"][1]


def test_arrays_go_where_buffers_go():
    kernel = cyrt.Kernel(
        """
        extern "C" __global__ void twice(const float* x, float* y, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] = 2 * x[i];
        }""",
        "twice",
    )
    x = cyrt.arange(100, dtype=cyrt.float32)
    y = cyrt.zeros_like(x)
    kernel[1, 128](x, y, 100)
    kernel[1, 64](y, y[50:], 50)
    expected = 2 * np.arange(100.0)
    expected[50:] = 2 * expected[:50]
    np.testing.assert_array_equal(y.numpy(), expected)
    encoder = cyrt.current_encoder()
    encoder.add_memcpy(y, x)
    encoder.add_memcpy(x[:50], np.ones(50, np.float32))
    encoder.add_memset(y[98:], 0)
    np.testing.assert_array_equal(x.numpy()[49:52], [1, 50, 51])
    np.testing.assert_array_equal(y.numpy()[96:], [96, 97, 0, 0])
    with pytest.raises(ValueError, match="not contiguous"):
        encoder.add_memcpy(x[::2], y[:50])
    with pytest.raises(ValueError, match="not contiguous"):
        encoder.add_memset(x[::2], 0)


def test_pickle_and_copies():
    x = cyrt.asarray([[1, 2], [3, 4]], dtype="int16").T
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype is x.dtype
    assert y.tolist() == [[1, 3], [2, 4]]
    y = pickle.loads(pickle.dumps(x.astype("bfloat16")))
    assert y.dtype is cyrt.bfloat16
    assert y.tolist() == [[1, 3], [2, 4]]
    assert pickle.loads(pickle.dumps(cyrt.int16)) is cyrt.int16


def test_buffers_are_not_arrays():
    with pytest.raises(TypeError, match="Array is made by"):
        cyrt.Array()


# -- other libraries on a GPU ----------------------------------------------------------------------


@pytest.mark.gpu
def test_pytorch_both_ways_with_work_pending(torch):
    big = torch.randn(2048, 2048, device="cuda")
    for _ in range(20):
        t = torch.zeros(1 << 20, device="cuda")
        big @ big  # keeps PyTorch's stream busy
        t += 1
        x = cyrt.asarray(t)  # a view
        y = x + 1
        x *= 5
        for _ in range(50):
            y = y + 1
        back = torch.from_dlpack(y)  # with work pending
        assert torch.equal(back, torch.full_like(back, 52))
        assert torch.equal(t, torch.full_like(t, 5))
        y += 1
        assert back.sum().item() == 53 * (1 << 20)
        big @ big
        t.fill_(9)
        assert x.numpy()[-1] == 9


@pytest.mark.gpu
def test_pytorch_on_a_stream_of_its_own(torch):
    side = torch.cuda.Stream()
    for _ in range(20):
        y = cyrt.zeros(1 << 20)
        for _ in range(50):
            y = y + 1
        with torch.cuda.stream(side):
            t = torch.from_dlpack(y)
            t *= 2
            assert t[-1].item() == 100
            x = cyrt.from_dlpack(t)
        assert x.numpy().sum() == 100 * (1 << 20)


@pytest.mark.gpu
def test_pytorch_types(torch):
    for name in (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ):
        x = cyrt.asarray([[0, 1, 2], [3, 4, 5]]).astype(name)
        t = torch.from_dlpack(x.T)
        assert t.dtype == getattr(torch, name)
        assert t.shape == (3, 2)
        back = cyrt.asarray(t[1:])
        assert back.dtype.name == name
        np.testing.assert_array_equal(back.numpy(), x.numpy().T[1:])


@pytest.mark.gpu
def test_cupy_both_ways_with_work_pending(cupy):
    for _ in range(20):
        c = cupy.zeros(1 << 20, cupy.float32)
        for _ in range(50):
            c += 1
        x = cyrt.asarray(c)
        y = x * 2
        for _ in range(50):
            y = y + 1
        back = cupy.asarray(y)
        assert int(back.min()) == int(back.max()) == 150
        y -= 150
        assert int(back.max()) == 0
        back = cupy.from_dlpack(y)
        y += 3
        assert int(back.sum()) == 3 * (1 << 20)
    x = cyrt.asarray(cupy.arange(12).reshape(3, 4)[::-1, ::2])
    np.testing.assert_array_equal(x.numpy(), np.arange(12).reshape(3, 4)[::-1, ::2])


@pytest.mark.gpu
def test_jax_both_ways():
    jax = pytest.importorskip("jax", reason="tested with JAX, which is not installed")
    j = jax.numpy.arange(1000, dtype="float32") * 2
    x = cyrt.from_dlpack(j)
    np.testing.assert_array_equal((x + 1).numpy(), 2 * np.arange(1000) + 1)
    y = cyrt.arange(1000, dtype=cyrt.float32) * 3
    np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(y)), 3 * np.arange(1000))
