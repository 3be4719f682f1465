"""What other threads, or finalizers, do inside a call of the driver's that keeps the GIL: a tool's
function in its place may be Python code."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from ctypes import c_void_p

import numpy as np
import pytest

import cyrt

NOT_READY = 600
QUERY = "cuStreamQuery", [c_void_p]
QUERY_EVENT = "cuEventQuery", [c_void_p]
SIZE = 7 << 20  # no other test's memory has this size
MANY = 10_000  # calls that no loop comes to, also with the streams of earlier tests


@pytest.fixture
def inside(replaced):
    """Call a function after each successful call of one of the driver's, except for the calls that
    the function itself leads to, and for those about `besides`. Returns a list of the
    successful calls' arguments."""

    def call_inside(driver_call, function, besides=()):
        calls, running = [], []

        def call(original, *arguments):
            result = original(*arguments)
            if result == 0:
                calls.append(arguments)
            if result == 0 and not running and arguments[0] not in besides:
                running.append(True)
                function()
                running.clear()
            return NOT_READY if len(calls) > MANY else result  # this ends a loop

        replaced(*driver_call, call)
        return calls

    return call_inside


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def elsewhere(function):
    """The function, called in another thread."""

    def call():
        thread = threading.Thread(target=function)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()

    return call


WHERE = pytest.mark.parametrize(
    "where", [lambda call: call, elsewhere], ids=["here", "another thread"]
)


def address_of(pinned):
    return np.frombuffer(pinned, np.uint8).ctypes.data


def test_a_new_stream_has_a_state_of_its_own(inside):
    ended = [cyrt.Stream() for _ in range(3)]
    ended.clear()  # their states are free now
    cyrt.synchronize()
    streams = []
    inside(QUERY, lambda: streams.append(cyrt.Stream()))
    streams.append(cyrt.Stream())
    assert len(streams) >= 2
    assert len({each.handle for each in streams}) == len(streams)


@pytest.mark.usefixtures("pooled")
def test_a_free_block_has_one_next_owner(inside):
    first, second = cyrt.Stream(), cyrt.Stream()
    with first:
        cyrt.Buffer(SIZE).free()
    first.synchronize()
    buffers = []
    with second:
        inside(QUERY, lambda: buffers.append(cyrt.Buffer(SIZE)))
        buffers.append(cyrt.Buffer(SIZE))
    assert len(buffers) >= 2
    assert len({each.ptr for each in buffers}) == len(buffers)


@pytest.mark.usefixtures("pooled", "unchecked")
def test_pinned_memory_has_one_next_owner(gate, inside):
    target = cyrt.zeros(1, dtype=cyrt.int32)
    pinned = cyrt.PinnedBuffer(SIZE)
    with cyrt.Stream() as stream:
        gate.copy(pinned, target, 1)
    del pinned  # an event after the kernel shows when it may be used again
    gate.open()
    stream.synchronize()
    buffers = []
    inside(QUERY_EVENT, lambda: buffers.append(cyrt.PinnedBuffer(SIZE)))
    buffers.append(cyrt.PinnedBuffer(SIZE))
    assert len(buffers) >= 2
    assert len(set(map(address_of, buffers))) == len(buffers)


@WHERE
def test_what_waits_for_an_idle_device_is_destroyed_once(where, gate, inside, replaced):
    """An allocation of page-locked memory asks whether the device is idle. It puts nothing on a
    stream: a GPU may report a stream as busy just after the last event on it was reached."""
    freed, held = [], []

    def free(original, address):
        freed.append(address)
        return original(address)

    def allocate():
        held.append(cyrt.PinnedBuffer(1))

    gc.collect()
    cyrt.synchronize()
    with cyrt.Stream() as stream:
        gate.wait()
    dropped = [cyrt.PinnedBuffer((i + 1) * SIZE) for i in range(4)]
    addresses = set(map(address_of, dropped))
    dropped.clear()
    replaced("cuMemFreeHost", [c_void_p], free)
    gate.open()
    stream.synchronize()
    # Not before: a query of an idle stream by a finalizer would let the other thread wait for the
    # gate.
    calls = inside(QUERY, where(allocate))
    for _ in range(100):
        allocate()
        if addresses <= set(freed):
            break
        time.sleep(0.01)
    assert calls
    assert addresses <= set(freed)
    assert len(set(freed)) == len(freed)


@WHERE
def test_reached_events_are_removed_once(where, gate, inside):
    """They tell how much room the stream's queue has."""
    stream, event = cyrt.Stream(), cyrt.Event()
    with stream:
        gate.wait()

    def fill():
        for _ in range(800):
            event.record(stream)

    filling = threading.Thread(target=fill)
    filling.start()
    filling.join(0.5)
    assert filling.is_alive()  # it waits for room
    calls = inside(QUERY_EVENT, where(lambda: event.record(stream)))
    gate.open()
    filling.join(30)
    assert not filling.is_alive()
    assert 1 < len(calls) < MANY
    stream.synchronize()


@pytest.mark.usefixtures("batched")
@WHERE
def test_ended_batches_are_counted_once(where, gate, inside):
    """What the others use is kept."""

    class Thing:
        pass

    def commit(thing):
        x.fill(1)
        cyrt.current_encoder().keep(thing)
        cyrt.commit()
        return weakref.ref(thing)

    def ask():
        assert reached.done

    x, reached, end = cyrt.zeros(1024), cyrt.Event().record(), cyrt.Event()
    reached.synchronize()
    calls = inside(QUERY_EVENT, where(ask), besides=(reached.handle, end.handle))
    with cyrt.Stream() as stream:
        ended = commit(Thing())
        end.record()
        while not end.done:
            pass
        assert calls
        assert ended() is None
        gate.wait()
        kept = commit(Thing())
        ask()
        assert kept() is not None
        gate.open()
        stream.synchronize()
        assert kept() is None
