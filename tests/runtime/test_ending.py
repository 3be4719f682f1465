"""Dropped objects are given back once no work uses them, and without a wait for other work."""

from __future__ import annotations

import ctypes
import gc
import threading

import numpy as np
import pytest

import cyrt

WAIT = """extern "C" __global__ void wait(volatile int* go, int* x) {
    while (!*go) {}
    if (x) *x = 7;
}"""
TWO = {"CYRT_DEVICE": "emulated", "CYRT_EMULATED_DEVICES": "2", "CYRT_EXIT_TIMEOUT": "0.5"}
SIZE = 3 << 20  # no other test's pinned memory has this size


class Busy:
    """A kernel that runs until it is released; at the latest after thirty seconds."""

    def __init__(self, stream=None):
        """`stream`: None for the legacy one, which nobody keeps a Stream of."""
        self.kernel = cyrt.Kernel(WAIT, "wait")
        self.pinned = cyrt.PinnedBuffer(4)
        self.flag = np.frombuffer(self.pinned, np.int32)
        self.flag[0] = 0
        self.stream = stream
        self.timer = threading.Timer(30, self.release, [2])

    def run(self, other=None):
        with self.stream or cyrt.Stream.wrap(0):
            self.kernel[1, 1](self.pinned, other)
        self.timer.start()
        return self

    @property
    def runs(self):
        return self.flag[0] == 0

    def release(self, value=1):
        self.flag[0] = value

    def end(self):
        self.timer.cancel()
        self.release()
        (self.stream or cyrt.Stream.wrap(0)).synchronize()


@pytest.fixture
def busy():
    gc.collect()  # a module collected in the test would end what is unused
    cyrt.synchronize()
    made = []

    def start(stream, other=None):
        made.append(Busy(stream).run(other))
        return made[-1]

    yield start
    for each in made:
        each.end()


@pytest.fixture
def ended(replaced):
    """The calls that give memory and code back, in their order."""
    calls = []
    for name in ("cuMemFreeHost", "cuModuleUnload"):

        def call(original, handle, name=name):
            calls.append((name, handle))
            return original(handle)

        replaced(name, [ctypes.c_void_p], call)
    return calls


def address_of(pinned):
    return np.frombuffer(pinned, np.uint8).ctypes.data


@pytest.mark.parametrize("stream", [lambda: None, cyrt.Stream], ids=["legacy", "own"])
def test_dropped_pinned_memory_waits_for_its_kernel(stream, busy, ended, unchecked):
    """On streams of others, too; whoever drops it does not wait."""
    pinned = cyrt.PinnedBuffer(SIZE)
    address = address_of(pinned)
    kernel = busy(stream(), pinned)
    del pinned
    assert kernel.runs
    assert ("cuMemFreeHost", address) not in ended
    kernel.end()
    cyrt.synchronize()
    assert ("cuMemFreeHost", address) in ended


@pytest.mark.parametrize("stream", [lambda: None, cyrt.Stream], ids=["legacy", "own"])
def test_a_dropped_module_waits_for_its_kernel(stream, busy, ended):
    module = cyrt.Module('extern "C" __global__ void k() {}')  # a GPU waits to load one
    kernel = busy(stream())
    loaded = len(ended)
    del module
    gc.collect()
    assert kernel.runs
    assert ended[loaded:] == []
    kernel.end()
    cyrt.synchronize()
    assert [name for name, _ in ended[loaded:]].count("cuModuleUnload") >= 1


def test_pinned_memory_is_used_again_while_the_device_is_busy(busy, ended, pooled, unchecked):
    """What used it is done; a kernel that does not end has nothing to do with it."""
    fill, other = cyrt.Stream(), cyrt.Stream()
    kernel = busy(other)
    begun = len(ended)
    pinned = cyrt.PinnedBuffer(SIZE)
    address = address_of(pinned)
    pinned.fill(1, fill)
    fill.synchronize()
    del pinned
    again = cyrt.PinnedBuffer(SIZE - 100)
    assert address_of(again) == address
    assert again.nbytes == SIZE - 100
    assert len(memoryview(again)) == SIZE - 100
    further = cyrt.PinnedBuffer(SIZE)
    assert address_of(further) != address
    assert kernel.runs
    assert ended[begun:] == []


def test_pinned_memory_in_use_is_not_used_again(busy, pooled, unchecked):
    pinned = cyrt.PinnedBuffer(SIZE)
    address = address_of(pinned)
    kernel = busy(cyrt.Stream(), pinned)
    del pinned
    other = cyrt.PinnedBuffer(SIZE)
    assert address_of(other) != address
    assert kernel.runs
    kernel.end()
    assert address_of(cyrt.PinnedBuffer(SIZE)) == address


def test_pinned_memory_of_a_reader_is_not_used_again(busy, pooled, unchecked):
    """The stream that wrote is done; one that reads is not."""
    pinned = cyrt.PinnedBuffer(SIZE)
    address, writer, reader = address_of(pinned), cyrt.Stream(), cyrt.Stream()
    pinned.fill(0, writer)
    writer.synchronize()
    look = cyrt.Kernel(
        'extern "C" __global__ void look(volatile int* go, const int* x)'
        "{ while (!*go) {} if (*x) *go = 3; }",
        "look",
    )
    kernel = busy(cyrt.Stream())
    with reader:
        look[1, 1](kernel.pinned, pinned)
    del pinned
    assert address_of(cyrt.PinnedBuffer(SIZE)) != address
    assert kernel.runs


def test_pinned_memory_of_a_recording_is_not_used_again(busy, pooled, batched, unchecked):
    """It is recorded and not launched; a kernel elsewhere keeps the device from being idle."""
    put = cyrt.Kernel('extern "C" __global__ void put(int* x) { *x = 9; }', "put")
    kernel = busy(cyrt.Stream())
    pinned, stream = cyrt.PinnedBuffer(SIZE), cyrt.Stream()
    address = address_of(pinned)
    encoder = cyrt.CommandEncoder(stream)
    encoder.add_kernel(put, 1, 1, [pinned])
    del pinned
    other = cyrt.PinnedBuffer(SIZE)
    assert encoder.num_ops == 1
    assert address_of(other) != address
    encoder.synchronize()
    assert address_of(cyrt.PinnedBuffer(SIZE)) == address
    assert kernel.runs


def test_pinned_memory_whose_address_was_handed_out(busy, pooled, unchecked):
    """Whoever has the address may use it on any stream."""
    pinned = cyrt.PinnedBuffer(SIZE)
    address = pinned.ptr
    kernel = busy(cyrt.Stream())
    del pinned
    other = cyrt.PinnedBuffer(SIZE)
    assert address_of(other) != address
    assert kernel.runs
    kernel.end()
    assert address_of(cyrt.PinnedBuffer(SIZE)) == address


@pytest.mark.parametrize("size", [SIZE // 2, SIZE + 1])
def test_pinned_memory_serves_its_own_size(size, busy, pooled, unchecked):
    kernel = busy(cyrt.Stream())
    pinned = cyrt.PinnedBuffer(SIZE)
    address = address_of(pinned)
    del pinned
    assert address_of(cyrt.PinnedBuffer(size)) != address
    assert kernel.runs


def test_pinned_memory_of_another_devices_recording(python):
    done = python(
        """
        import cyrt
        with cyrt.Device(0):
            pinned = cyrt.PinnedBuffer(4096)
            cyrt.synchronize()
        with cyrt.Device(1):
            put = cyrt.Kernel('extern "C" __global__ void put(int* y) { *y = 7; }', "put")
            put[1, 1](pinned)
            with cyrt.Device(0):
                cyrt.synchronize()
                del pinned
                cyrt.synchronize()
            cyrt.synchronize()
        """,
        **TWO,
    )
    assert done.returncode == 0, done.stderr


def test_pinned_memory_of_another_devices_kernel(python):
    """Device 0 is idle; the memory is its own, and device 1's kernel uses it."""
    done = python(
        f"""
        import ctypes
        import numpy as np
        import cyrt
        from cyrt.driver import table
        freed = []
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

        @prototype
        def free(address):
            freed.append(address)
            return original(address)

        go = cyrt.PinnedBuffer(4)
        flag = np.frombuffer(go, np.int32)
        flag[0] = 0
        original = prototype(table.replace("cuMemFreeHost",
                                           ctypes.cast(free, ctypes.c_void_p).value))
        pinned = cyrt.PinnedBuffer(4096)
        address = np.frombuffer(pinned, np.int32).ctypes.data
        with cyrt.Device(1):
            cyrt.Kernel({WAIT!r}, "wait")[1, 1](go, pinned)
            cyrt.commit()
        del pinned
        cyrt.synchronize()
        assert address not in freed
        flag[0] = 1
        with cyrt.Device(1):
            cyrt.synchronize()
        cyrt.synchronize()
        assert address in freed, freed
        """,
        **TWO,
    )
    assert done.returncode == 0, done.stderr


def test_pinned_memory_freed_in_a_batch_of_another_device(python):
    done = python(
        """
        import cyrt
        with cyrt.Device(0):
            pinned = cyrt.PinnedBuffer(4096)
            pinned.ptr
            cyrt.synchronize()
        with cyrt.Device(1):
            put = cyrt.Kernel('extern "C" __global__ void put(int* y) { *y = 7; }', "put")
            other = cyrt.full(5, 3.0)
            with cyrt.batch():
                put[1, 1](pinned)
                pinned.free()
            print(other.numpy())
        """,
        **TWO,
    )
    assert (done.returncode, done.stdout) == (0, "[3. 3. 3. 3. 3.]\n"), done.stderr


def test_a_view_of_the_host_made_while_memory_is_freed(replaced, batched):
    """free() launches what is recorded, and looks at the host's views after that."""
    pinned, views = cyrt.PinnedBuffer(4096), []
    assert pinned.ptr
    put = cyrt.Kernel('extern "C" __global__ void put(int* x) { *x = 9; }', "put")

    def launch(original, *arguments):
        views.append(np.frombuffer(pinned, np.int32))
        return original(*arguments)

    with cyrt.batch():
        put[1, 1](pinned)
        replaced("cuGraphLaunch", [ctypes.c_void_p, ctypes.c_void_p], launch)
        with pytest.raises(BufferError, match="still looks"):
            pinned.free()
    cyrt.synchronize()
    assert views[0][0] == 9
