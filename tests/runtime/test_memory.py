from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest

import cyrt

SIZES = [
    1,
    3,
    511,
    512,
    513,
    4096,
    4097,
    65536,
    65537,
    (1 << 20) - 1,
    1 << 20,
    (1 << 20) + 1,
    (4 << 20) + 5,
    (17 << 20) + 3,
]


@pytest.mark.parametrize("nbytes", SIZES)
def test_round_trip(nbytes, rng):
    data = rng.integers(0, 256, nbytes, dtype=np.uint8)
    buffer = cyrt.Buffer(nbytes)
    assert buffer.nbytes == len(buffer) == nbytes
    assert buffer.ptr % 256 == 0
    buffer.copy_from(data)
    out = np.empty_like(data)
    buffer.copy_to(out)
    assert np.array_equal(out, data)


def test_empty_buffer():
    buffer = cyrt.Buffer(0)
    buffer.copy_from(b"")
    buffer.copy_to(bytearray())
    buffer.fill(0)
    assert buffer[0:0].nbytes == 0


@pytest.mark.parametrize(
    "source",
    [
        bytes(range(8)),
        bytearray(range(8)),
        memoryview(bytes(range(8))),
        np.arange(8, dtype=np.uint8),
        np.arange(8, dtype=np.uint8).view(np.int16),
    ],
)
def test_copy_from_any_buffer(source):
    buffer = cyrt.Buffer(8)
    buffer.copy_from(source)
    out = bytearray(8)
    buffer.copy_to(out)
    assert out == bytes(range(8))


def test_host_memory_has_been_read_on_return(rng):
    """Changed right after the call, with work in flight before it, small and large."""
    for nbytes in (1024, 9 << 20):
        data = rng.integers(0, 256, nbytes, dtype=np.uint8)
        kept = data.copy()
        buffer = cyrt.Buffer(nbytes)
        buffer.fill(1)
        buffer.copy_from(data)
        data[:] = 0
        out = np.empty_like(kept)
        buffer.copy_to(out)
        assert np.array_equal(out, kept)


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros((4, 4), np.uint8)[:, :2],
        lambda: np.zeros((4, 4), np.uint8)[::-1, :2],
        lambda: np.asfortranarray(np.zeros((2, 4), np.uint8)),
    ],
)
def test_not_contiguous(make):
    with pytest.raises(ValueError, match="expected a C-contiguous"):
        cyrt.Buffer(8).copy_from(make())
    with pytest.raises(ValueError, match="expected a C-contiguous writable"):
        cyrt.Buffer(8).copy_to(make())


def test_another_size():
    with pytest.raises(ValueError, match="expected 8 bytes, the size of the Buffer, got 16"):
        cyrt.Buffer(8).copy_from(np.zeros(2))
    with pytest.raises(ValueError, match="expected 8 bytes, the size of the Buffer, got 4"):
        cyrt.Buffer(8).copy_to(bytearray(4))
    with pytest.raises(ValueError, match="source has 16 bytes, the target 8"):
        cyrt.Buffer(8).copy_from(cyrt.Buffer(16))


def test_read_only_target():
    with pytest.raises(ValueError, match="writable"):
        cyrt.Buffer(8).copy_to(bytes(8))


@pytest.mark.parametrize("bad", [3, None, object(), "text"])
def test_copy_wants_memory(bad):
    with pytest.raises(TypeError):
        cyrt.Buffer(8).copy_from(bad)


def test_buffer_to_buffer():
    a, b = cyrt.Buffer(64), cyrt.Buffer(64)
    a.fill(9)
    b.copy_from(a)
    a.fill(1)
    out = bytearray(64)
    b.copy_to(out)
    assert out == bytes([9]) * 64
    a.copy_to(b)
    b.copy_to(out)
    assert out == bytes([1]) * 64


def test_views():
    buffer = cyrt.Buffer(16)
    buffer.copy_from(bytes(range(16)))
    view = buffer[4:12]
    assert (view.ptr, view.nbytes) == (buffer.ptr + 4, 8)
    inner = view[2:-2]
    out = bytearray(4)
    inner.copy_to(out)
    assert out == bytes(range(6, 10))
    inner.fill(0xFF)
    whole = bytearray(16)
    buffer.copy_to(whole)
    assert whole == bytes([*range(6), 255, 255, 255, 255, *range(10, 16)])
    assert buffer[10:400].nbytes == 6
    assert buffer[9:3].nbytes == 0


def test_bad_views():
    buffer = cyrt.Buffer(16)
    with pytest.raises(TypeError, match="slice of bytes"):
        buffer[3]
    with pytest.raises(ValueError, match="step 1, not 2"):
        buffer[::2]


def test_freed():
    buffer = cyrt.Buffer(64)
    view = buffer[8:16]
    with pytest.raises(ValueError, match="view does not own"):
        view.free()
    buffer.free()
    buffer.free()
    for use in (
        lambda: buffer.ptr,
        lambda: buffer.fill(0),
        lambda: buffer[0:4],
        lambda: view.ptr,
        lambda: view.copy_from(bytes(8)),
        lambda: cyrt.Buffer(64).copy_from(buffer),
    ):
        with pytest.raises(ValueError, match="was freed already"):
            use()
    assert "freed" in repr(buffer)


@pytest.mark.parametrize("value", [0, 1, 255])
def test_fill_bytes(value):
    buffer = cyrt.Buffer(1000)
    buffer.fill(value)
    out = bytearray(1000)
    buffer.copy_to(out)
    assert out == bytes([value]) * 1000


@pytest.mark.parametrize(
    "value",
    [
        np.uint8(7),
        np.int16(-2),
        np.float16(1.5),
        np.float32(3.25),
        np.int32(-5),
        np.array(2.5, np.float32),
        np.bool_(True),
    ],
)
def test_fill_with_a_scalars_pattern(value):
    buffer = cyrt.Buffer(32)
    buffer.fill(value)
    out = np.empty(32 // value.dtype.itemsize, value.dtype)
    buffer.copy_to(out)
    assert (out == value).all()


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (256, ValueError),
        (-1, ValueError),
        (1.5, TypeError),
        ("a", TypeError),
        (True, TypeError),
        (np.float64(1), ValueError),
    ],
)
def test_fill_refuses(value, error):
    with pytest.raises(error, match="fill: expected"):
        cyrt.Buffer(32).fill(value)


def test_fill_of_an_odd_size():
    with pytest.raises(
        ValueError, match="expected a Buffer of whole patterns of 4 bytes, got one of"
    ):
        cyrt.Buffer(30).fill(np.float32(1))
    with pytest.raises(ValueError, match="not aligned"):
        cyrt.Buffer(64)[1:9].fill(np.float32(1))


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (-1, ValueError),
        (1.5, TypeError),
        ("8", TypeError),
        (True, TypeError),
        (1 << 64, ValueError),
    ],
)
def test_size_refused(bad, error):
    with pytest.raises(error, match="nbytes"):
        cyrt.Buffer(bad)


def test_out_of_memory_gives_sizes_and_leaves_the_pool_usable():
    with pytest.raises(cyrt.OutOfMemoryError, match=r"1,\d{3},\d{3},\d{3},\d{3},\d{3}") as caught:
        cyrt.Buffer(1 << 50)
    assert isinstance(caught.value, MemoryError)
    _free, total = cyrt.Device().memory_info()
    with pytest.raises(cyrt.OutOfMemoryError, match="bytes wanted on device 0"):
        cyrt.Buffer(2 * total)
    cyrt.Buffer(100).fill(1)


def test_out_of_memory_says_what_was_asked_for(python):
    done = python(
        """
        import cyrt
        kept = cyrt.Buffer(3 << 20)
        for use in (lambda: cyrt.zeros(10**8), lambda: cyrt.Buffer(900_000)):
            try:
                use()
            except cyrt.OutOfMemoryError as error:
                print(error.text.partition(";")[0])
        """,
        CYRT_DEVICE="emulated",
        CYRT_MEMORY_LIMIT="4M",
        CYRT_POOL="1",
        CYRT_CHECK="0",
    )
    assert done.stdout.splitlines() == [
        "400,000,000 bytes wanted on device 0, in a block of 402,653,184",
        "900,000 bytes wanted on device 0, in a block of 4,194,304",
    ], done.stderr


@pytest.mark.usefixtures("pooled")
def test_pool_reuses_without_the_driver():
    cyrt.Buffer(5000).free()
    before = cyrt.memory_stats()["driver_allocations"]
    addresses = set()
    for _ in range(50):
        buffer = cyrt.Buffer(5000)
        addresses.add(buffer.ptr)
        del buffer
    assert len(addresses) == 1
    assert cyrt.memory_stats()["driver_allocations"] == before


@pytest.mark.usefixtures("pooled")
def test_stats_and_trim():
    gc.collect()
    cyrt.trim_memory()
    before = cyrt.memory_stats()
    big = cyrt.Buffer(32 << 20)
    during = cyrt.memory_stats()
    assert during["in_use"] - before["in_use"] == 32 << 20
    assert during["peak"] >= during["in_use"]
    assert during["driver_allocations"] == before["driver_allocations"] + 1
    assert during["reserved"] == during["in_use"] + during["cached"]
    big.free()
    after = cyrt.memory_stats()
    assert after["in_use"] == before["in_use"]
    assert after["cached"] - before["cached"] == 32 << 20
    assert cyrt.trim_memory() >= 32 << 20
    assert cyrt.memory_stats()["reserved"] <= before["reserved"]


@pytest.mark.usefixtures("pooled")
def test_trim_keeps_blocks_that_live():
    small = [cyrt.Buffer(700) for _ in range(10)]
    for i, buffer in enumerate(small):
        buffer.fill(i)
    cyrt.trim_memory()
    more = [cyrt.Buffer(700) for _ in range(10)]
    for buffer in more:
        buffer.fill(99)
    for i, buffer in enumerate(small):
        out = bytearray(700)
        buffer.copy_to(out)
        assert out == bytes([i]) * 700


def test_living_buffers_never_overlap(rng):
    living = {}
    for step in range(400):
        if living and rng.random() < 0.45:
            del living[list(living)[rng.integers(len(living))]]
        else:
            size = int(rng.integers(1, 20_000 if rng.random() < 0.9 else 3 << 20))
            living[step] = cyrt.Buffer(size)
    spans = sorted((b.ptr, b.ptr + b.nbytes) for b in living.values())
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert end <= start


def test_memory_limit(python):
    done = python(
        """
        import cyrt
        a = cyrt.Buffer(40 << 20)
        try:
            cyrt.Buffer(40 << 20)
        except cyrt.OutOfMemoryError as error:
            assert "CYRT_MEMORY_LIMIT is 67,108,864 bytes" in str(error), error
        else:
            raise AssertionError
        del a
        cyrt.Buffer(60 << 20)       # the cache is given back first
        assert cyrt.memory_stats()["limit"] == 64 << 20
        """,
        CYRT_MEMORY_LIMIT="64M",
    )
    assert done.returncode == 0, done.stderr


def test_without_the_pool_each_buffer_is_an_allocation(python):
    done = python(
        """
        import cyrt
        buffers = [cyrt.Buffer(n) for n in (1, 100, 5000)]
        stats = cyrt.memory_stats()
        assert stats["driver_allocations"] == 3 and stats["in_use"] == 5101, stats
        del buffers
        assert cyrt.memory_stats()["reserved"] == 0
        """,
        CYRT_POOL="0",
    )
    assert done.returncode == 0, done.stderr


def test_bad_setting_is_named(python):
    done = python("import cyrt; cyrt.Buffer(8)", CYRT_MEMORY_LIMIT="lots")
    assert "CYRT_MEMORY_LIMIT='lots': expected a number of bytes" in done.stderr


def test_pinned_memory_is_the_hosts_and_the_devices():
    pinned = cyrt.PinnedBuffer(64)
    view = np.frombuffer(pinned, np.uint8)
    view[:] = np.arange(64)
    device = cyrt.Buffer(64)
    device.copy_from(pinned)
    view[:] = 0
    device.copy_to(pinned)
    assert np.array_equal(view, np.arange(64))
    kernel = cyrt.Kernel(
        'extern "C" __global__ void k(unsigned char* x){ x[threadIdx.x] += 1; }', "k"
    )
    kernel[1, 64](pinned)
    cyrt.synchronize()
    assert np.array_equal(view, np.arange(1, 65))


def test_managed_memory():
    if not cyrt.Device().concurrent_managed_access:
        with pytest.raises(RuntimeError, match="concurrent_managed_access is 0"):
            cyrt.ManagedBuffer(64)
        return
    managed = cyrt.ManagedBuffer(64)
    managed.fill(3)
    view = np.frombuffer(managed, np.uint8)
    assert (view == 3).all()


@pytest.mark.parametrize("kind", [cyrt.PinnedBuffer, cyrt.ManagedBuffer])
def test_empty_host_visible_memory(kind):
    with pytest.raises(ValueError, match="expected at least 1 byte"):
        kind(0)


def test_pointer_is_somebody_elses_memory():
    buffer = cyrt.Buffer(32)
    theirs = cyrt.pointer(buffer.ptr + 8, 8)
    theirs.fill(5)
    out = bytearray(32)
    buffer.fill(0)
    theirs.fill(5)
    buffer.copy_to(out)
    assert out == bytes(8) + bytes([5]) * 8 + bytes(16)
    with pytest.raises(TypeError, match="address"):
        cyrt.pointer("x", 8)


class ArrayInterface:
    """What a foreign array shows."""

    def __init__(self, buffer, shape, typestr="|u1", strides=None, read_only=False):
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (buffer.ptr, read_only),
            "strides": strides,
            "version": 3,
            "stream": 1,
        }


def test_cuda_array_interface():
    memory = cyrt.Buffer(32)
    array = ArrayInterface(memory, (4, 2), "<f4")
    target = cyrt.Buffer(32)
    memory.fill(6)
    target.copy_from(array)
    out = bytearray(32)
    target.copy_to(out)
    assert out == bytes([6]) * 32
    with pytest.raises(ValueError, match="read-only"):
        target.copy_to(ArrayInterface(memory, (32,), read_only=True))


def test_dlpack_of_the_host_is_refused():
    class HostArray:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            raise AssertionError("asked for what cannot be used")

    with pytest.raises(TypeError, match="which a CUDA device cannot reach"):
        cyrt.Buffer(8).copy_from(HostArray())


def test_two_devices_keep_their_memory_apart(python):
    done = python(
        """
        import cyrt
        import numpy as np
        a, b, pinned = cyrt.Buffer(4096, 0), cyrt.Buffer(4096, 1), cyrt.PinnedBuffer(4096, 0)
        a.fill(1)
        a.copy_to(b)                    # on a stream of device 0
        theirs = b.ptr
        b.free()
        fresh = [cyrt.Buffer(4096, 0) for _ in range(3)]
        assert theirs not in [x.ptr for x in fresh], "memory of device 1 came back on device 0"
        assert cyrt.Buffer(4096, 1).ptr == theirs

        b = cyrt.Buffer(4096, 1)
        host = np.frombuffer(pinned, np.uint8)
        host[:] = 7
        b.copy_from(pinned)
        pinned.copy_to(a)
        host[:] = 0
        b.copy_to(pinned)
        assert (host == 7).all()
        a.copy_to(b)
        cyrt.Device(0).reset()          # its work is over; nobody waits for it
        out = bytearray(4096)
        b.copy_to(out)
        assert set(out) == {7}
        """,
        CYRT_EMULATED_DEVICES="2",
        CYRT_DEVICE="emulated",
        CYRT_CHECK="0",
        CYRT_POOL="1",
    )
    assert done.returncode == 0, done.stderr


def test_copy_onto_itself(rng):
    data = rng.integers(0, 256, 1000, dtype=np.uint8)
    for source, target in (
        (slice(0, 900), slice(100, 1000)),
        (slice(100, 1000), slice(0, 900)),
        (slice(0, 1000), slice(0, 1000)),
    ):
        buffer, expected = cyrt.Buffer(1000), data.copy()
        buffer.copy_from(data)
        buffer[target].copy_from(buffer[source])
        expected[target] = data[source]
        result = np.empty_like(data)
        buffer.copy_to(result)
        assert np.array_equal(result, expected)


def test_pinned_host_memory_has_been_read_on_return():
    slow = cyrt.Kernel(
        """extern "C" __global__ void slow(unsigned* x, int n) {
        unsigned v = *x;
        for (int i = 0; i < n; ++i) v = v * v + i;
        *x = v; }""",
        "slow",
    )
    pinned, buffer, other = cyrt.PinnedBuffer(4096), cyrt.Buffer(4096), cyrt.Buffer(4)
    other.fill(1)
    host = np.frombuffer(pinned, np.uint8)
    result = np.empty(4096, np.uint8)
    for source in (host, memoryview(pinned), pinned):
        host[:] = 1
        slow[1, 1](other, 1_000_000)
        buffer.copy_from(source)
        host[:] = 2
        buffer.copy_to(result)
        assert (result == 1).all()


def test_managed_memory_is_looked_at_after_the_work_that_uses_it():
    if not cyrt.Device().concurrent_managed_access:
        pytest.skip("no concurrent managed access")
    slow = cyrt.Kernel(
        """extern "C" __global__ void slow(unsigned* x, int n) {
        unsigned v = *x;
        for (int i = 0; i < n; ++i) v = v * v + i;
        *x = v == 1 ? 6 : 5; }""",
        "slow",
    )
    managed, side = cyrt.ManagedBuffer(4), cyrt.Stream()
    managed.fill(0)
    with side:
        slow[1, 1](managed, 1_000_000)
    assert np.frombuffer(managed, np.uint32)[0] in (5, 6)


@pytest.mark.usefixtures("only_emulated")
def test_out_of_memory_is_one_class(python):
    done = python(
        """
        import cyrt
        try:
            cyrt.Kernel('__device__ char large[256 << 20];'
                        'extern "C" __global__ void k() { large[threadIdx.x] = 1; }', "k")
        except cyrt.OutOfMemoryError as error:
            print(error)
        """,
        CYRT_EMULATED_MEMORY="64M",
    )
    assert "cuModuleLoadDataEx failed: CUDA_ERROR_OUT_OF_MEMORY" in done.stdout, done.stderr


def test_two_devices(python):
    done = python(
        """
        import cyrt
        a, b = cyrt.Buffer(64, 0), cyrt.Buffer(64, 1)
        a.fill(8)
        b.copy_from(a)
        out = bytearray(64)
        b.copy_to(out)
        assert out == bytes([8]) * 64
        k = cyrt.Kernel('extern "C" __global__ void k(char* x) { x[threadIdx.x] = 1; }', "k")
        try:
            k[1, 1](b)
        except ValueError as error:
            assert "the Buffer is of device 1, the kernel runs on device 0" in str(error), error
        else:
            raise AssertionError
        with cyrt.Device(1):
            k[1, 64](b)
        b.copy_to(out)
        assert out == bytes([1]) * 64
        assert cyrt.memory_stats(1)["in_use"] > 0
        """,
        CYRT_EMULATED_DEVICES="2",
        CYRT_DEVICE="emulated",
    )
    assert done.returncode == 0, done.stderr
