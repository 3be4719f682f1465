"""Other libraries' memory: PyTorch and CuPy on a GPU, protocols everywhere."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import cyrt

SOURCE = r"""
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
extern "C" __global__ void slow_scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state = i;
    for (int k = 0; k < 200000; ++k) state = state * 1664525u + 1013904223u;
    if (i < n) y[i] = a * x[i] + (state == 1u);
}
"""
N = 4096


@pytest.fixture(scope="module")
def module():
    return cyrt.Module(SOURCE)


@pytest.mark.gpu
def test_pytorch_tensor_is_never_late(module, torch):
    """Producer pending before the launch, consumer right after it, no call of the user's."""
    for _ in range(10):
        x = torch.zeros(N, device="cuda")
        y = torch.zeros(N, device="cuda")
        big = torch.randn(2048, 2048, device="cuda")
        for _ in range(5):
            big = big @ big * 1e-3
        x += 3
        module["slow_scale"][N // 256, 256](x, y, 2.0, N)
        y += 1
        assert (y == 7).all()


@pytest.mark.gpu
def test_pytorch_on_a_stream_of_its_own(module, torch):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.full((N,), 5.0, device="cuda")
        y = torch.empty(N, device="cuda")
    side.synchronize()
    with cyrt.stream(cyrt.Stream.wrap(side.cuda_stream)):
        module["scale"][N // 256, 256](x, y, 3.0, N)
    side.synchronize()
    assert (y == 15).all()


@pytest.mark.gpu
def test_pytorch_tensor_that_requires_a_gradient_is_refused_by_pytorch(module, torch):
    x = torch.ones(N, device="cuda", requires_grad=True)
    y = torch.zeros(N, device="cuda")
    with pytest.raises(ValueError, match=r"argument 1 .*detach"):
        module["scale"][N // 256, 256](x, y, 4.0, N)
    module["scale"][N // 256, 256](x.detach(), y, 4.0, N)
    assert (y == 4).all()


@pytest.mark.gpu
def test_pytorch_bfloat16_by_dlpack(torch):
    half = torch.ones(N, device="cuda", dtype=torch.bfloat16)
    buffer = cyrt.Buffer(2 * N)
    buffer.copy_from(half)
    out = np.empty(N, np.uint16)
    buffer.copy_to(out)
    assert (out == 0x3F80).all()


@pytest.mark.gpu
def test_tensor_dropped_right_after_its_launch(module, torch):
    out = torch.empty(N, device="cuda")
    for value in range(20):
        x = torch.full((N,), float(value), device="cuda")
        module["slow_scale"][N // 256, 256](x, out, 1.0, N)
        del x
        noise = torch.full((N,), -1.0, device="cuda")  # may take the dropped memory
        assert (out == value).all()
        del noise


@pytest.mark.gpu
def test_cupy_array(module, cupy):
    x = cupy.arange(N, dtype=cupy.float32)
    y = cupy.zeros_like(x)
    module["scale"][N // 256, 256](x, y, 2.0, N)
    cupy.testing.assert_array_equal(y, 2 * x)
    buffer = cyrt.Buffer(4 * N)
    buffer.copy_from(y)
    buffer.copy_to(x)
    cupy.testing.assert_array_equal(x, y)


@pytest.mark.gpu
def test_host_tensor_is_refused(module, torch):
    x = torch.zeros(N)
    with pytest.raises(
        TypeError, match=r"which a CUDA device cannot reach; cyrt.asarray\(\) copies it"
    ):
        module["scale"][1, 32](x, x, 1.0, N)


class Interface:
    def __init__(self, **fields):
        self.__cuda_array_interface__ = {"version": 3, "typestr": "<f4", **fields}


def test_interface_extent_of_strides(module):
    memory = cyrt.Buffer(1024)
    view = Interface(shape=(4, 8), strides=(64, 4), data=(memory.ptr, False))
    with pytest.raises(ValueError, match="source has 224 bytes"):
        cyrt.Buffer(8).copy_from(view)
    with pytest.raises(ValueError, match="negative strides"):
        cyrt.Buffer(8).copy_from(Interface(shape=(4,), strides=(-4,), data=(memory.ptr, False)))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"shape": (2, 2), "strides": (4,)}, r"shape \(2, 2\) and the strides \(4,\)"),
        ({"shape": (4,), "typestr": ">f4"}, "other byte order, '>f4'"),
    ],
)
def test_interface_that_is_none(fields, text):
    memory = cyrt.Buffer(16)
    with pytest.raises(ValueError, match=text):
        cyrt.asarray(Interface(data=(memory.ptr, False), **fields))


def test_interface_of_an_empty_array():
    cyrt.Buffer(0).copy_from(Interface(shape=(0, 5), data=(0, False)))


def test_interface_on_a_named_stream(module):
    producer = cyrt.Stream()
    x, y = cyrt.Buffer(4 * N), cyrt.Buffer(4 * N)
    x.copy_from(np.ones(N, np.float32))
    with producer:
        module["slow_scale"][N // 256, 256](x, y, 6.0, N)
    theirs = Interface(shape=(N,), data=(y.ptr, False), stream=producer.handle)
    out = cyrt.Buffer(4 * N)
    out.copy_from(theirs)
    result = np.empty(N, np.float32)
    out.copy_to(result)
    assert (result == 6).all()


def test_address_the_device_does_not_know():
    with pytest.raises(ValueError, match="is not an address that the device knows"):
        cyrt.Buffer(8).copy_from(Interface(shape=(2,), data=(0x1000, False)))


def test_dlpack_of_a_producer_that_speaks_1_0():
    """The stream asked for is ours, and the capsule is kept until the copy has run."""
    import ctypes

    class Device(ctypes.Structure):
        _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))

    class DType(ctypes.Structure):
        _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))

    class Tensor(ctypes.Structure):
        _fields_ = (
            ("data", ctypes.c_void_p),
            ("device", Device),
            ("ndim", ctypes.c_int32),
            ("dtype", DType),
            ("shape", ctypes.POINTER(ctypes.c_int64)),
            ("strides", ctypes.POINTER(ctypes.c_int64)),
            ("offset", ctypes.c_uint64),
        )

    class Managed(ctypes.Structure):
        _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))

    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
    )
    memory = cyrt.Buffer(64)
    memory.fill(3)
    shape = (ctypes.c_int64 * 1)(8)
    managed = Managed(Tensor(memory.ptr, Device(2, 0), 1, DType(2, 32, 1), shape, None, 16))
    asked = []

    class Producer:
        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, stream=None):
            asked.append(stream)
            return new(ctypes.addressof(managed), b"dltensor", None)

    target = cyrt.Buffer(32)
    target.copy_from(Producer())
    out = bytearray(32)
    target.copy_to(out)
    assert out == bytes([3]) * 32
    assert asked == [cyrt.stream().handle]


def test_an_address_handed_out_is_ordered_with_the_legacy_stream(replaced):
    """What was recorded on the memory comes before what others do on that stream."""
    buffer = cyrt.Buffer(64)
    stream = cyrt.Stream()
    buffer.fill(1, stream)
    cyrt.synchronize()
    waits = []

    def wait(original, waiting, event, flags):
        waits.append(waiting)
        return original(waiting, event, flags)

    replaced("cuStreamWaitEvent", [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint], wait)
    buffer.fill(3, stream)
    assert buffer.ptr
    # Once for the buffer; once more where an undeclared kernel of another test still runs.
    assert waits in ([None], [None, None])
    count = len(waits)
    assert buffer.ptr
    assert len(waits) == count


GOOD = {"shape": (4,), "typestr": "<f4", "strides": None, "version": 3}
HUGE, LARGE = 1 << 32, 1 << 62


@pytest.fixture
def memory():
    return cyrt.Buffer(16)


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"typestr": None}, TypeError, "typestr: expected a str, got None"),
        ({"typestr": ""}, ValueError, "typestr: expected the like of '<f4', got ''"),
        ({"typestr": "<f"}, ValueError, "typestr"),
        ({"typestr": "<f-4"}, ValueError, "typestr"),
        ({"typestr": "<b4"}, ValueError, "a bool has one byte"),
        ({"typestr": "<f99"}, TypeError, "no counterpart in cyrt"),
        ({"data": None}, TypeError, "data: expected a tuple"),
        ({"data": 5}, TypeError, "data: expected a tuple"),
        ({"data": (5,)}, TypeError, "data: expected a tuple"),
        ({"data": (None, False)}, TypeError, "data: expected an int, got None"),
        ({"data": ("5", False)}, TypeError, "data: expected an int"),
        ({"data": (-4, False)}, ValueError, "data: expected an int of 64 bits, got -4"),
        ({"data": (1 << 64, False)}, ValueError, "data: expected an int of 64 bits"),
        ({"data": (0, False)}, ValueError, "16 bytes at address 0"),
        ({"shape": None}, TypeError, "shape: expected a tuple of ints, got None"),
        ({"shape": 4}, TypeError, "shape: expected a tuple of ints"),
        ({"shape": "44"}, TypeError, "shape: expected a tuple of ints"),
        ({"shape": (4.0,)}, TypeError, "shape: expected a tuple of ints"),
        ({"shape": (-1,)}, ValueError, r"the shape \(-1,\); expected sizes of 0 or more"),
        ({"shape": (1 << 64,)}, ValueError, "more elements than memory can hold"),
        ({"shape": (HUGE, HUGE), "strides": (0, 0)}, ValueError, "more elements"),
        ({"shape": (HUGE, HUGE)}, ValueError, "more elements"),
        ({"shape": (1 << 59,), "strides": (0,)}, ValueError, "more elements"),
        ({"shape": (0, HUGE, HUGE)}, ValueError, "more elements"),
        ({"shape": (1,) * 70}, ValueError, "dimensions"),
        ({"strides": 4}, TypeError, "strides: expected a tuple of ints"),
        ({"strides": (None,)}, TypeError, "strides: expected a tuple of ints"),
        ({"strides": (4, 4)}, ValueError, r"the shape \(4,\) and the strides \(4, 4\)"),
        ({"strides": (LARGE,)}, ValueError, "leave the address space"),
        ({"strides": (-LARGE,)}, ValueError, "leave the address space"),
        ({"strides": (1 << 70,), "shape": (1,)}, ValueError, "leave the address space"),
        ({"stream": "legacy"}, TypeError, "stream: expected an int, got 'legacy'"),
        ({"stream": True}, TypeError, "stream: expected an int"),
        ({"stream": -1}, ValueError, "stream: expected an int of 64 bits"),
        ({"mask": object()}, ValueError, "mask"),
    ],
)
def test_interface_that_is_malformed(memory, fields, error, text):
    theirs = Interface(**{**GOOD, "data": (memory.ptr, False), **fields})
    with pytest.raises(error, match=text):
        cyrt.asarray(theirs)


@pytest.mark.parametrize("key", ["shape", "typestr", "data"])
def test_interface_without(memory, key):
    theirs = Interface(**GOOD, data=(memory.ptr, False))
    del theirs.__cuda_array_interface__[key]
    with pytest.raises(ValueError, match=f"__cuda_array_interface__ has no {key}"):
        cyrt.asarray(theirs)


def test_interface_that_is_no_dict():
    theirs = Interface()
    theirs.__cuda_array_interface__ = [("shape", (4,))]
    with pytest.raises(TypeError, match="expected a dict, got list"):
        cyrt.asarray(theirs)


ODD = [
    None,
    True,
    -1,
    0,
    1,
    7,
    1 << 31,
    1 << 63,
    1 << 64,
    -1 << 63,
    1.5,
    float("nan"),
    "",
    "4",
    b"4",
    (),
    [],
    (0,),
    (4,),
    [4],
    (4, 4),
    (-4,),
    (1 << 40,),
    (1 << 63,),
    (4.0,),
    ("4",),
    (None,),
    ((4,),),
    {},
    object(),
    1j,
    np.int64(4),
    np.array([4]),
    (np.int64(4),),
    "<f4",
    ">f4",
    "|V16",
    "<c16",
    "|b1",
    "<U4",
    (0, False),
    (0, True),
    (None, None),
]


def test_interfaces_of_odd_values(memory, rng):
    """Whatever a field holds, it is taken or refused, and the memory serves on."""
    address = memory.ptr
    for _ in range(3000):
        fields = {**GOOD, "data": (address, False)}
        for key in rng.choice(
            ["shape", "typestr", "data", "strides", "stream", "mask"], rng.integers(1, 4)
        ):
            value = ODD[rng.integers(len(ODD))]
            if key == "stream" and isinstance(value, int | np.integer) and value > 1:
                continue  # a handle that is none: whoever passes it has lost already
            fields[str(key)] = (value, False) if key == "data" and rng.integers(2) else value
        try:
            x = cyrt.asarray(Interface(**fields))
        except (TypeError, ValueError, cyrt.CudaError):
            continue
        assert x.size < 1 << 59
        assert x.nbytes >= 0
    memory.fill(1)
    out = bytearray(16)
    memory.copy_to(out)
    assert out == bytes([1]) * 16


class Tensor(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("kind", ctypes.c_int32),
        ("index", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


class Producer:
    def __init__(
        self, memory, shape=(4,), strides=None, name=b"dltensor", device=(2, 0), major=1, **fields
    ):
        def numbers(values):
            return None if values is None else (ctypes.c_int64 * len(values))(*values)

        self.kept = numbers(shape), numbers(strides)
        self.tensor = Versioned(
            major,
            1,
            None,
            None,
            0,
            Tensor(memory.ptr, 2, 0, len(shape or ()), 2, 32, 1, *self.kept, 0),
        )
        for key, value in fields.items():
            setattr(self.tensor.tensor, key, value)
        self.name, self.device = name, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = (
            ctypes.py_object,
            (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
        )
        start = self.tensor if self.name == b"dltensor_versioned" else self.tensor.tensor
        return new(ctypes.addressof(start), self.name, None) if self.name else self


def test_dlpack_tensors_that_are_good(memory):
    memory.copy_from(np.arange(4, dtype=np.float32))
    for name in (b"dltensor", b"dltensor_versioned"):
        assert cyrt.asarray(Producer(memory, name=name)).numpy().tolist() == [0, 1, 2, 3]
        x = cyrt.asarray(Producer(memory, (2,), (-2,), name=name, offset=12))
        assert x.numpy().tolist() == [3, 1]


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"shape": (-1,)}, ValueError, "expected sizes of 0 or more"),
        ({"shape": (HUGE, HUGE), "strides": (0, 0)}, ValueError, "more elements than memory"),
        ({"shape": (HUGE, HUGE)}, ValueError, "more elements than memory"),
        ({"strides": (LARGE,)}, ValueError, "leave the address space"),
        ({"offset": (1 << 64) - 1}, ValueError, "leave the address space"),
        ({"ndim": -1}, ValueError, "a DLPack tensor of -1 dimensions has no shape"),
        ({"shape": None, "ndim": 3}, ValueError, "a DLPack tensor of 3 dimensions has no shape"),
        ({"data": 0}, ValueError, "16 bytes at address 0"),
        ({"lanes": 2, "bits": 16}, TypeError, "kind '\\?', 4 bytes"),
        ({"lanes": 0}, TypeError, "kind '\\?'"),
        ({"code": 0, "bits": 4}, TypeError, "kind '\\?', 1 bytes"),
        ({"code": 99}, TypeError, "kind '\\?'"),
        ({"name": b"used_dltensor"}, TypeError, "a DLPack capsule that nobody has consumed"),
        ({"name": None}, TypeError, "a DLPack capsule that nobody has consumed, got"),
        ({"name": b"dltensor_versioned", "major": 2}, ValueError, "speaks DLPack 2.1"),
    ],
)
def test_dlpack_that_is_malformed(memory, fields, error, text):
    with pytest.raises(error, match=text):
        cyrt.asarray(Producer(memory, **fields))


@pytest.mark.parametrize(
    ("device", "error", "text"),
    [
        (None, TypeError, r"__dlpack_device__\(\): expected a tuple of ints, got None"),
        (("cuda", 0), TypeError, r"__dlpack_device__\(\): expected a tuple of ints"),
        ((2,), TypeError, r"__dlpack_device__\(\): expected a kind and an index, got \(2,\)"),
        ((2, 0, 0), TypeError, r"__dlpack_device__\(\): expected a kind and an index"),
        ((2, 99), ValueError, "lies on CUDA device 99"),
        ((2, 1 << 70), ValueError, "lies on CUDA device"),
        ((1, 0), TypeError, r"in host memory, which .* cyrt.asarray\(\) copies it"),
    ],
)
def test_dlpack_on_no_device_of_ours(memory, device, error, text):
    with pytest.raises(error, match=text):
        memory.copy_from(Producer(memory, device=device))


@pytest.mark.parametrize("versions", [5, "1.0", 1.0])
def test_what_is_no_version_of_dlpack(versions):
    with pytest.raises(TypeError, match="max_version: expected a tuple of two ints"):
        cyrt.zeros(3).__dlpack__(max_version=versions)
