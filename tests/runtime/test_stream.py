from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from threads import run_in_threads

import cyrt
from cyrt import settings

SPIN = r"""
extern "C" __global__ void slow_set(int* out, int value, int rounds) {
    unsigned state = value;
    for (int i = 0; i < rounds; ++i) state = state * 1664525u + 1013904223u;
    *out = state == 1u ? -1 : value;
}
extern "C" __global__ void twice(const int* in, int* out) { *out = 2 * *in; }
"""


@pytest.fixture(scope="module")
def module():
    return cyrt.Module(SPIN)


def read(buffer):
    out = np.zeros(1, np.int32)
    buffer.copy_to(out)
    return int(out[0])


def test_default_stream_is_cyrts_own_and_per_thread():
    handles = {cyrt.stream().handle}
    assert cyrt.stream().handle == cyrt.stream().handle
    barrier = threading.Barrier(2)

    def note():
        handles.add(cyrt.stream().handle)
        barrier.wait()  # both alive: states of ended threads are used again

    assert run_in_threads(note, note) == []
    assert len(handles) == 3
    assert not handles & {0, 1, 2}


def test_a_stream_that_ends_is_no_longer_current(replaced):
    """A finalizer that computes while its thread's first stream is created makes a stream current
    that ends at once. What it recorded is launched then, which may run the next finalizer."""
    x = cyrt.ones(4, dtype=cyrt.int32)
    cyrt.synchronize()
    held, computed, made, current, found = [], [], [], [], []

    def create(original, *arguments):
        made.append(threading.current_thread())
        if made.count(thread) == 1 and made[-1] is thread:
            computed.append(x + 1)
            found.append(hash(cyrt.stream()))
        return original(*arguments)

    def launch(original, *arguments):
        if threading.current_thread() is thread:
            current.append(hash(cyrt.stream()))
        return original(*arguments)

    def work():
        found.append(hash(cyrt.stream()))

    thread = threading.Thread(target=work)
    replaced("cuStreamCreateWithPriority", [ctypes.c_void_p, ctypes.c_uint, ctypes.c_int], create)
    replaced("cuGraphLaunch", [ctypes.c_void_p] * 2, launch)
    while not made:  # until no stream that ended is left, of which a new one takes over the state
        held.append(cyrt.Stream())
    thread.start()
    thread.join()
    ended, left = found
    assert ended != left
    assert set(current) <= {left}
    assert current or not settings.get("CYRT_GRAPHS")
    assert (computed[0].numpy() == 2).all()


def test_protocol():
    stream = cyrt.Stream()
    assert stream.__cuda_stream__() == (0, stream.handle)


def test_with_makes_it_current_and_nests():
    outer, inner = cyrt.Stream(), cyrt.Stream()
    default = cyrt.stream()
    with outer:
        assert cyrt.stream() == outer
        with cyrt.stream(inner):
            assert cyrt.stream() == inner
        assert cyrt.stream() == outer
    assert cyrt.stream() == default


def test_wraps_a_protocol_object_and_a_handle():
    own = cyrt.Stream()

    class Theirs:
        def __cuda_stream__(self):
            return 0, own.handle

    wrapped = cyrt.Stream.wrap(Theirs())
    assert wrapped.handle == own.handle
    assert cyrt.Stream.wrap(own.handle).handle == own.handle
    assert cyrt.Stream.wrap(own) is own
    with cyrt.stream(Theirs()) as current:
        assert current.handle == own.handle
        buffer = cyrt.Buffer(4)
        buffer.fill(3)
        assert read(buffer) == 0x03030303
    cyrt.Stream.wrap(0).synchronize()


def test_a_device_that_is_not_the_streams(python):
    done = python(
        """
        import cyrt
        stream = cyrt.Stream(device=1)
        assert cyrt.Stream.wrap(stream.handle, device=1).device.index == 1
        assert cyrt.Stream.wrap(0, device=1).device.index == 1
        try:
            cyrt.Stream.wrap(stream.handle, device=0)
        except ValueError as error:
            print(error)
        """,
        CYRT_DEVICE="emulated",
        CYRT_EMULATED_DEVICES="2",
    )
    assert done.stdout == "device: expected 1, the stream's device, got 0\n", done.stderr


@pytest.mark.parametrize("bad", ["stream", 1.5, None, object()])
def test_wrap_refuses_what_is_no_stream(bad):
    with pytest.raises(TypeError, match=f"got {type(bad).__name__}"):
        cyrt.Stream.wrap(bad)


@pytest.mark.usefixtures("only_emulated")
@pytest.mark.parametrize("bad", [3, -1, 1 << 64, SimpleNamespace(__cuda_stream__=(0, 3))])
def test_a_handle_that_is_no_streams(bad):
    number = 3 if isinstance(bad, SimpleNamespace) else bad
    for use in (
        cyrt.stream,
        lambda stream: cyrt.CommandEncoder(stream=stream),
        cyrt.Event().record,
        lambda stream: cyrt.Buffer(8).fill(1, stream),
    ):
        with pytest.raises(ValueError, match=f"stream: expected the handle of .* got {number}$"):
            use(bad)


def test_protocol_of_another_version():
    class Theirs:
        def __cuda_stream__(self):
            return 7, 0

    with pytest.raises(ValueError, match="version 7"):
        cyrt.Stream.wrap(Theirs())


def test_priority_is_clipped():
    assert cyrt.Stream(priority=-1000).priority <= cyrt.Stream(priority=1000).priority


def test_done_and_synchronize(module):
    stream = cyrt.Stream()
    assert stream.done
    out = cyrt.Buffer(4)
    with stream:
        module["slow_set"][1, 1](out, 5, 3_000_000)
        pending = stream.done
    stream.synchronize()
    assert not pending
    assert stream.done
    assert read(out) == 5


def test_wait_for_a_stream(module):
    first, second = cyrt.Stream(), cyrt.Stream()
    a, b = cyrt.Buffer(4), cyrt.Buffer(4)
    address = cyrt.pointer(a.ptr, 4)  # not known as the same memory: only wait() orders
    with first:
        module["slow_set"][1, 1](a, 21, 2_000_000)
    with second:
        second.wait(first)
        module["twice"][1, 1](address, b)
    second.synchronize()
    assert read(b) == 42


@pytest.mark.parametrize("other", [3, True, "now"])
def test_wait_for_something_else(other):
    with pytest.raises(TypeError, match="expected an Event, a Stream or an object with __cuda_st"):
        cyrt.Stream().wait(other)


def test_wait_for_an_event(module):
    first, second = cyrt.Stream(), cyrt.Stream()
    a, b = cyrt.Buffer(4), cyrt.Buffer(4)
    with first:
        module["slow_set"][1, 1](a, 4, 2_000_000)
        event = cyrt.Event().record()
    second.wait(event)
    with second:
        module["twice"][1, 1](cyrt.pointer(a.ptr, 4), b)
        second.synchronize()
    assert event.done
    assert read(b) == 8


def test_a_buffer_on_two_streams_is_ordered(module):
    """No event of the user's: the block knows who wrote it."""
    first, second = cyrt.Stream(), cyrt.Stream()
    for value in range(1, 6):
        a, b = cyrt.Buffer(4), cyrt.Buffer(4)
        with first:
            module["slow_set"][1, 1](a, value, 300_000)
        with second:
            module["twice"][1, 1](a, b)
        with first:
            module["slow_set"][1, 1](a, -1, 1)  # after the other stream has read
        with second:
            assert read(b) == 2 * value
        assert read(a) == -1


def test_synchronize_waits_for_all_streams(module):
    streams = [cyrt.Stream() for _ in range(3)]
    outs = [cyrt.Buffer(4) for _ in streams]
    for stream, out in zip(streams, outs, strict=True):
        with stream:
            module["slow_set"][1, 1](out, 9, 300_000)
    cyrt.synchronize()
    assert all(stream.done for stream in streams)


def test_ended_streams_are_used_again():
    handles = {cyrt.Stream().handle for _ in range(20)}
    assert len(handles) < 20


def test_nothing_is_put_on_a_stream_that_was_waited_for(python):
    """Code and memory are given back while the device is idle, which an event would delay. In a
    process of its own: other tests have handed out the streams' handles."""
    done = python(
        """
        import ctypes
        import cyrt
        from cyrt.driver import table

        Record = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

        @Record
        def record(event, handle):
            recorded.append(handle)
            return original(event, handle)

        recorded = []
        stream, other = cyrt.Stream(), cyrt.Stream()
        with stream:
            x = cyrt.zeros(4)
            x += 1
        stream.synchronize()
        address = ctypes.cast(record, ctypes.c_void_p).value
        original = Record(table.replace("cuEventRecord", address))
        other.wait(stream)
        assert recorded == [], recorded
        with other:
            x += 1
        assert (x.numpy() == 2).all()
        table.replace("cuEventRecord", ctypes.cast(original, ctypes.c_void_p).value)
        """
    )
    assert done.returncode == 0, done.stderr


def test_many_threads_leave_few_streams():
    handles = set()

    def work():
        buffer = cyrt.Buffer(64)
        buffer.fill(1)
        cyrt.stream().synchronize()
        handles.add(cyrt.stream().handle)

    for _ in range(30):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(handles) < 10
