"""How long things live: what work in flight, other objects or the host still use."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import weakref

import numpy as np
import pytest

import cyrt

ENDLESS = """
import signal, threading
import numpy as np
import cyrt
endless = cyrt.Kernel('extern "C" __global__ void k(volatile int* x) { while (!*x) {} }', "k")
pinned = cyrt.PinnedBuffer(4)
flag = np.frombuffer(pinned, np.int32)
flag[0] = 0
"""


def test_pinned_memory_that_the_host_looks_at_is_not_freed():
    pinned = cyrt.PinnedBuffer(64)
    array = np.frombuffer(pinned, np.uint8)
    with pytest.raises(BufferError, match="still looks"):
        pinned.free()
    array[:] = 3
    del array
    pinned.free()
    with pytest.raises(ValueError, match="freed"):
        memoryview(pinned)


def test_an_array_keeps_pinned_memory():
    array = np.frombuffer(cyrt.PinnedBuffer(1 << 20), np.uint8)
    gc.collect()
    array[:] = 1
    assert array.sum() == 1 << 20


def test_a_view_keeps_its_buffer():
    buffer = cyrt.Buffer(64)
    buffer.fill(4)
    view, gone = buffer[8:16][2:4], weakref.ref(buffer)
    del buffer
    assert gone() is not None
    out = bytearray(2)
    view.copy_to(out)
    assert out == b"\4\4"
    del view
    assert gone() is None


@pytest.mark.usefixtures("only_emulated")
def test_a_wrapped_stream_may_end_before_the_memory_used_on_it(python):
    done = python(
        """
        import ctypes
        import cyrt
        from cyrt.driver import table
        buffer, out = cyrt.Buffer(64), bytearray(64)
        driver, handle, context = table._opened, ctypes.c_void_p(), ctypes.c_void_p()
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert driver.cuCtxPushCurrent_v2(context) == 0

        class Theirs:
            def __init__(self):
                assert driver.cuStreamCreate(ctypes.byref(handle), 1) == 0
            def __cuda_stream__(self):
                return 0, handle.value
            def __del__(self):
                assert driver.cuStreamDestroy_v2(handle) == 0

        buffer.fill(3, Theirs())
        buffer.copy_to(out)
        assert out == bytes([3]) * 64
        buffer.fill(4, Theirs())
        in_use = cyrt.memory_stats()["in_use"]
        buffer.free()
        assert cyrt.memory_stats()["in_use"] == in_use - 64
        assert cyrt.Buffer(64).ptr == cyrt.Buffer(64).ptr
        """,
        CYRT_DEVICE="emulated",
        CYRT_CHECK="0",
        CYRT_POOL="1",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("only_emulated")
@pytest.mark.parametrize("check", ["0", "1"])
def test_dropping_objects_never_waits_for_a_kernel(python, check):
    done = python(
        ENDLESS
        + """
def use():
    kernel = cyrt.Kernel('extern "C" __global__ void k(volatile int* x) { while (!*x) {} }', "k")
    buffer, other = cyrt.Buffer(4), cyrt.PinnedBuffer(64)
    buffer.fill(0)
    kernel[1, 1](buffer)
    signal.signal(signal.SIGINT, signal.default_int_handler)    # a shell may have ignored it
    threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT)).start()
    cyrt.synchronize()

try:
    use()
except KeyboardInterrupt:
    print("interrupted")
print("dropped")
""",
        CYRT_EXIT_TIMEOUT="0.2",
        CYRT_CHECK=check,
    )
    assert done.stdout == "interrupted\ndropped\n", done.stderr
    assert "was given up" in done.stderr


@pytest.mark.usefixtures("only_emulated")
def test_a_signal_handler_copies_while_a_copy_waits(python):
    done = python(
        ENDLESS
        + """
slow, quick, side = cyrt.Buffer(1 << 20), cyrt.Buffer(1 << 20), cyrt.Stream()
slow.fill(9)
quick.fill(7, side)

def save(*_):
    out = bytearray(1 << 20)
    quick.copy_to(out, side)
    print(set(out))
    flag[0] = 1

signal.signal(signal.SIGTERM, save)
threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGTERM)).start()
endless[1, 1](pinned)
out = bytearray(1 << 20)
slow.copy_to(out)
print(set(out))
"""
    )
    assert (done.returncode, done.stdout) == (0, "{7}\n{9}\n"), done.stderr


@pytest.mark.usefixtures("only_emulated")
def test_memory_of_others_used_before_a_reset(python):
    done = python(
        """
        import cyrt
        for _ in range(2):
            k = cyrt.Kernel('extern "C" __global__ void k(int* x) { *x = 1; }', "k")
            buffer = cyrt.Buffer(64)
            for _ in range(2):
                k[1, 1](cyrt.pointer(buffer.ptr, 64, owner=buffer))
            cyrt.Device(0).reset()
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("only_emulated")
def test_a_reset_while_another_thread_waits(python):
    """The waiting thread gets an error, which is no fault of the fresh context."""
    done = python(
        """
        import threading, time
        import cyrt
        source = 'extern "C" __global__ void k(volatile int* x) { while (!*x) {} }'
        messages = []

        def wait():
            flag = cyrt.Buffer(4)
            flag.fill(0)
            cyrt.Kernel(source, "k")[1, 1](flag)
            begun.set()
            try:
                cyrt.stream().synchronize()
            except RuntimeError as error:
                messages.append(str(error))

        big, out = bytes([3]) * (1 << 20), bytearray(1 << 20)
        for _ in range(5):
            begun = threading.Event()
            thread = threading.Thread(target=wait)
            thread.start()
            begun.wait()
            time.sleep(0.02)
            cyrt.Device(0).reset()
            thread.join()
            buffer = cyrt.Buffer(1 << 20)
            buffer.copy_from(big)       # staged: in memory of the fresh context
            buffer.copy_to(out)
            assert out == big
        assert len(messages) == 5 and all("was reset" in text for text in messages), messages
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("only_emulated")
def test_host_views_outlive_a_reset(python):
    done = python(
        """
        import cyrt
        import numpy as np
        pinned, managed = cyrt.PinnedBuffer(1 << 20), cyrt.ManagedBuffer(1 << 20)
        views = [np.frombuffer(buffer, np.uint8) for buffer in (pinned, managed)]
        for view in views:
            view[:] = 5
        cyrt.Device(0).reset()
        print(*(int(view.sum()) // len(view) for view in views))
        """
    )
    assert (done.returncode, done.stdout) == (0, "5 5\n"), done.stderr


def test_a_named_stream_of_others_waits_for_our_kernel():
    slow = cyrt.Kernel(
        """extern "C" __global__ void slow(unsigned* x, int n) {
        unsigned v = *x;
        for (int i = 0; i < n; ++i) v = v * v + i;
        *x = v; }""",
        "slow",
    )
    buffer, theirs = cyrt.Buffer(4), cyrt.Stream()
    buffer.fill(0)

    class Array:
        __cuda_array_interface__ = {  # noqa: RUF012
            "version": 3,
            "shape": (1,),
            "typestr": "<u4",
            "data": (buffer.ptr, False),
            "stream": theirs.handle,
        }

    slow[1, 1](Array(), 2_000_000)
    assert not theirs.done
    theirs.synchronize()


def test_what_others_do_with_memory_waits_for_our_kernel():
    """The legacy stream, where an address's owner works, comes after the launch."""
    slow = cyrt.Kernel(
        """extern "C" __global__ void slow(unsigned* x, int n) {
        unsigned v = *x;
        for (int i = 0; i < n; ++i) v = v * v + i;
        *x = v == 1u ? 1 : 5; }""",
        "slow",
    )
    buffer, legacy = cyrt.Buffer(4), cyrt.Stream.wrap(1, 0)
    buffer.fill(0)
    slow[1, 1](cyrt.pointer(buffer.ptr, 4), 2_000_000)
    assert not legacy.done
    legacy.synchronize()


@pytest.mark.parametrize(
    "make",
    [
        lambda: cyrt.Buffer(8),
        lambda: cyrt.Buffer(8)[2:4],
        lambda: cyrt.PinnedBuffer(8),
        cyrt.Stream,
        cyrt.Event,
        lambda: cyrt.Module('extern "C" __global__ void k() {}'),
        lambda: cyrt.Kernel('extern "C" __global__ void k() {}', "k"),
    ],
)
def test_what_belongs_to_this_process_is_not_pickled(make):
    thing = make()
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="is not pickled"):
            duplicate(thing)
    assert weakref.ref(thing)() is thing


@pytest.mark.parametrize(
    "make",
    [
        lambda: cyrt.Buffer(8),
        cyrt.Stream,
        cyrt.Event,
        lambda: cyrt.PinnedBuffer(8),
        lambda: cyrt.Kernel('extern "C" __global__ void k() {}', "k"),
    ],
)
def test_initialised_once(make):
    thing = make()
    arguments = (
        ("", "k")
        if isinstance(thing, cyrt.Kernel)
        else ((8,) if isinstance(thing, cyrt.Buffer) else ())
    )
    with pytest.raises(RuntimeError, match="initialised once"):
        thing.__init__(*arguments)


def test_a_launch_is_made_by_a_kernel():
    kernel = cyrt.Kernel('extern "C" __global__ void k() {}', "k")
    with pytest.raises(TypeError, match="made by kernel"):
        type(kernel[1, 1])()


@pytest.mark.parametrize("bad", [None, 5, [1, 2], "text", ctypes])
def test_what_is_no_memory(bad):
    with pytest.raises(TypeError, match="buffer protocol"):
        cyrt.Buffer(8).copy_from(bad)


class Tensor:
    """Another library's: it hands memory out, and keeps what was made of it."""

    def __init__(self):
        self.memory = cyrt.zeros(64)
        self.__cuda_array_interface__ = self.memory.__cuda_array_interface__


def held(tensor):
    tensor.held = cyrt.asarray(tensor)


def held_view(tensor):
    tensor.held = cyrt.asarray(tensor)[1:].reshape(-1)[2:]


def held_pointer(tensor):
    tensor.held = cyrt.pointer(tensor.memory.ptr, 64, owner=tensor)


def held_slice(tensor):
    tensor.held = cyrt.pointer(tensor.memory.ptr, 64, owner=tensor)[8:][8:]


@pytest.mark.parametrize("hold", [held, held_view, held_pointer, held_slice])
def test_what_holds_a_view_of_its_own_memory_is_collected(hold):
    tensor = Tensor()
    hold(tensor)
    gone = weakref.ref(tensor)
    del tensor
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("kind", [cyrt.Buffer, cyrt.PinnedBuffer, cyrt.ManagedBuffer])
def test_a_buffer_that_holds_a_view_of_itself_is_collected(kind):
    class Framed(kind):
        def __init__(self, nbytes):
            super().__init__(nbytes)
            self.head = self[:16][:8]

    framed = Framed(64)
    framed.head.fill(1)
    gone = weakref.ref(framed)
    del framed
    gc.collect()
    assert gone() is None


def test_the_collector_tracks_only_what_may_be_in_a_cycle():
    x, buffer, pinned = cyrt.zeros(8), cyrt.Buffer(8), cyrt.PinnedBuffer(8)
    for plain in (x, x[1:], x.T, x + 1, buffer, buffer[1:], pinned, pinned[1:]):
        assert not gc.is_tracked(plain)
    theirs = cyrt.asarray(Tensor())
    for tracked in (theirs, theirs[1:], cyrt.pointer(buffer.ptr, 8, owner=buffer)[1:]):
        assert gc.is_tracked(tracked)
    assert not gc.is_tracked(theirs + 1)
