"""Completed handlers, and objects kept for a batch."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
import weakref
from ctypes import c_void_p
from pathlib import Path

import numpy as np
import pytest
from outside import Library, N, host, until, zeros

import cyrt
from cyrt.graph import completion


class Thing:
    pass


@pytest.fixture
def gate(encoder):
    """Holds the encoder's stream back: what is put on it afterwards runs once the gate is set."""
    opened = threading.Event()
    library = Library()
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: opened.wait(30))
    with library:
        library("cuLaunchHostFunc", ctypes.c_void_p(encoder.stream.handle), callback, None)
    yield opened
    opened.set()
    encoder.synchronize()


def test_run_once_their_batch_has_ended(module, encoder, gate):
    """In their order, on a thread of cyrt's own."""
    x, calls = zeros(), []
    for i in range(30):
        encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
        encoder.add_completed_handler(
            lambda i=i: calls.append((i, threading.current_thread().name))
        )
        if i % 3 == 0:
            encoder.commit()
    encoder.commit()
    assert not calls
    gate.set()
    assert until(lambda: len(calls) == 30)
    assert calls == [(i, "cyrt completion") for i in range(30)]


def test_streams_do_not_wait_for_each_other(encoder, gate):
    calls = []
    encoder.add_completed_handler(lambda: calls.append("held back"))
    encoder.commit()
    with cyrt.CommandEncoder() as other:
        other.add_completed_handler(lambda: calls.append("free"))
        other.commit()
        assert until(lambda: calls == ["free"])
    gate.set()
    assert until(lambda: calls == ["free", "held back"])


def test_one_that_raises(module, encoder, monkeypatch):
    """The hook receives the error, what the handler recorded is launched, and later ones run."""
    seen, calls, x = [], [], zeros()
    monkeypatch.setattr(
        sys, "unraisablehook", lambda u: seen.append((u.exc_value, u.exc_traceback, u.object))
    )

    def raises():
        module["axpb"][1, N](x, 1.0, 5.0, N)
        cyrt.current_encoder().keep(watched)
        raise KeyError("of the handler")

    def leaves():
        raise SystemExit(3)

    watched = Thing()
    encoder.add_completed_handler(raises)
    encoder.add_completed_handler(leaves)
    encoder.add_completed_handler(lambda: calls.append(1))
    encoder.commit()
    assert until(lambda: calls)
    (error, traceback, function), (exit_, _, _) = seen
    assert isinstance(error, KeyError)
    assert error.args == ("of the handler",)
    assert traceback is not None
    assert function is raises
    assert isinstance(exit_, SystemExit)
    assert (host(x) == 5).all()
    seen.clear()


def test_one_that_records_is_launched(module, encoder):
    x, done = zeros(), []

    def record(left=20):
        module["axpb"][1, N](x, 1.0, 1.0, N)
        if left:
            cyrt.current_encoder().add_completed_handler(lambda: record(left - 1))
        else:
            done.append(1)

    encoder.add_completed_handler(record)
    encoder.commit()
    assert until(lambda: done)
    assert (host(x) == 21).all()


def test_one_may_not_use_the_encoder_of_its_thread(encoder):
    errors = []

    def use():
        try:
            encoder.commit()
        except RuntimeError as error:
            errors.append(str(error))

    encoder.add_completed_handler(use)
    encoder.commit()
    assert until(lambda: errors)
    assert errors == ["the CommandEncoder belongs to another thread"]


def test_ones_of_an_encoder_that_is_dropped_or_closed(module):
    calls, x = [], zeros()
    for close in (True, False):
        encoder = cyrt.CommandEncoder()
        encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
        encoder.add_completed_handler(lambda close=close: calls.append(close))
        if close:
            encoder.close()
        del encoder
    assert until(lambda: len(calls) == 2)
    assert (host(x) == 2).all()


@pytest.mark.parametrize("handler", [None, 1, "x", [print]])
def test_what_is_not_callable(encoder, handler):
    with pytest.raises(TypeError, match="add_completed_handler: expected a callable"):
        encoder.add_completed_handler(handler)


def test_are_called_for_a_batch_that_failed(python, only_emulated):
    """Also for one that could not be launched any more."""
    done = python(
        """
        import time
        import cyrt
        from gates import Gate
        bad = cyrt.Kernel('extern "C" __global__ void bad(int* p, long long n) { p[n] = 1; }',
                          "bad")
        gate = Gate()       # without graphs, too, nothing fails before everything is recorded
        calls = []
        first, second = cyrt.CommandEncoder(), cyrt.CommandEncoder()
        for encoder, name in ((first, "launched"), (second, "recorded")):
            encoder.add_kernel(gate.kernels["wait"], 1, 1, (gate.memory,))
            encoder.add_kernel(bad, 1, 1, (cyrt.Buffer(64), 1 << 40))
            encoder.add_completed_handler(lambda name=name: calls.append(name))
        gate.open()
        for encoder in (first, second):
            try:
                encoder.synchronize()
            except cyrt.CudaError:
                continue
            raise AssertionError
        end = time.monotonic() + 20
        while len(calls) < 2 and time.monotonic() < end:
            time.sleep(0.001)
        assert sorted(calls) == ["launched", "recorded"], calls
        """,
        folders=[Path(__file__).parents[1]],
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_run_before_the_process_ends(python):
    done = python(
        """
        import cyrt
        encoder = cyrt.CommandEncoder()
        encoder.add_completed_handler(lambda: print("committed", flush=True))
        encoder.commit()
        encoder.add_completed_handler(lambda: print("left open", flush=True))
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "committed\nleft open\n"


def test_a_forked_child_does_not_wait_for_them(python):
    done = python(
        """
        import ctypes, os, sys, threading, time
        import cyrt
        sys.path.insert(0, os.environ["HERE"])
        from outside import Library
        encoder = cyrt.CommandEncoder()
        go = threading.Event()
        hold = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: go.wait(30))
        library = Library()
        with library:
            library("cuLaunchHostFunc", ctypes.c_void_p(encoder.stream.handle), hold, None)
        encoder.add_completed_handler(lambda: print("parent", flush=True))
        encoder.commit()
        child = os.fork()
        if child == 0:
            encoder.add_completed_handler(lambda: print("child", flush=True))
            try:
                encoder.commit()
            except RuntimeError as error:
                assert "fork" in str(error), error
            start = time.monotonic()
            import atexit
            atexit._run_exitfuncs()
            os._exit(time.monotonic() - start > 2)
        _, status = os.waitpid(child, 0)
        go.set()
        assert status == 0, status
        """,
        HERE=__file__.rpartition("/")[0],
    )
    assert (done.returncode, done.stdout) == (0, "parent\n"), done.stderr


# --- keep ---


def test_keep_is_until_the_batch_has_ended(module, encoder, gate):
    x, thing = zeros(), Thing()
    seen = weakref.ref(thing)
    encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
    encoder.keep(thing)
    del thing
    encoder.commit()
    for _ in range(10):  # later batches do not end it earlier
        encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
        encoder.commit()
    gc.collect()
    assert seen() is not None
    gate.set()
    encoder.synchronize()
    assert seen() is None


@pytest.mark.parametrize("wait", ["cyrt", "stream", "close", "drop"])
def test_keep_is_no_longer_than_that(module, wait):
    encoder, thing = cyrt.CommandEncoder(), Thing()
    seen = weakref.ref(thing)
    encoder.add_kernel(module["axpb"], 1, N, (zeros(), 1.0, 1.0, N))
    encoder.keep(thing)
    encoder.keep(encoder.stream)
    del thing
    if wait == "drop":
        del encoder
    else:
        {"cyrt": cyrt.synchronize, "stream": encoder.stream.synchronize, "close": encoder.close}[
            wait
        ]()
    assert seen() is None


@pytest.mark.parametrize("exported", [False, True], ids=["an object", "exported memory"])
@pytest.mark.parametrize(
    "call", ["a copy", "another copy", "an event", "a wait for it", "a stream", "all", "a handler"]
)
def test_what_is_kept_is_dropped_by_whoever_finds_the_work_ended(module, call, exported, pooled):
    """No later commit on that stream is needed, and no wait for it."""
    completion.drain(10)
    gc.collect()
    stream, event, called = cyrt.Stream(), cyrt.Event(), threading.Event()
    y, out, thing = zeros(), np.empty(N, np.float32), Thing()
    seen = weakref.ref(thing)
    cyrt.synchronize()
    before = cyrt.memory_stats()["in_use"]
    with stream:
        memory = zeros()
        if exported:
            assert memory.ptr
        module["add"][1, N](memory, memory, y, N)
        cyrt.current_encoder().keep(thing)
        if call == "a handler":
            cyrt.current_encoder().add_completed_handler(called.set)
        event.record()
        del thing, memory
        if call in ("a copy", "all"):
            y.copy_to(out)  # the stream is known to be idle
    if call == "all":
        cyrt.synchronize()
    elif call == "another copy":
        y.copy_to(out)
    elif call == "an event":
        assert until(lambda: event.done)
    elif call == "a wait for it":
        event.synchronize()
    elif call == "a stream":
        while not stream.done:
            time.sleep(0.0005)
    elif call == "a handler":
        assert called.wait(10)
        completion.drain(10)
    assert seen() is None
    assert cyrt.memory_stats()["in_use"] == before


def test_the_end_of_what_is_kept_may_record_and_close(module):
    x, y = zeros(), zeros()

    class Recording:
        def __init__(self, close=None):
            self.close = close

        def __del__(self):
            module["axpb"][1, N](x, 1.0, 1.0, N)
            cyrt.commit()
            if self.close is not None:
                self.close.close()

    encoder = cyrt.CommandEncoder()
    for i in range(20):
        encoder.add_kernel(module["axpb"], 1, N, (y, 1.0, 1.0, N))
        encoder.keep(Recording(encoder if i == 15 else None))
        if i == 19:
            encoder.keep(Recording())
        encoder.commit()
        if i == 15:
            cyrt.synchronize()
            with pytest.raises(RuntimeError, match="closed"):
                encoder.commit()
            break
    assert (host(x) == 16).all()
    assert (host(y) == 16).all()


def test_what_a_handler_holds_ends_with_its_call(encoder):
    """Not with the next handler's."""

    class Held:
        pass

    held, called = Held(), threading.Event()
    gone = weakref.ref(held)
    encoder.add_completed_handler(lambda held=held: called.set())
    del held
    encoder.commit()
    assert called.wait(10)
    completion.drain(10)
    assert gone() is None


def test_what_a_handler_adds_is_launched_on_every_stream(encoder, batched):
    """On streams of its own and of others, that held something before or did not."""
    x, other = [cyrt.Buffer(4) for _ in range(4)], cyrt.Stream()
    made = []
    for each in x:
        each.fill(0)
    x[1].fill(1, other)  # recorded on it before

    def record():
        x[0].fill(2)
        x[1].fill(2, other)
        further = cyrt.CommandEncoder()
        further.add_memset(x[2], 2)
        made.append(further)
        with cyrt.stream(cyrt.Stream()):
            x[3].fill(2)

    encoder.add_completed_handler(record)
    encoder.commit()
    completion.drain(10)
    assert made[0].num_ops == 0
    assert recorded_on(other) == 0
    for each in x:
        out = bytearray(4)
        each.copy_to(out)
        assert out == bytes([2]) * 4


def recorded_on(stream):
    with stream:
        return cyrt.current_encoder().num_ops


def test_what_others_have_recorded_stays(encoder, batched):
    """A handler that does not touch a stream does not cut its batch."""
    buffer, other = cyrt.Buffer(4), cyrt.CommandEncoder()
    other.add_memset(buffer, 3)
    assert other.num_ops == 1
    encoder.add_completed_handler(lambda: None)
    encoder.commit()
    completion.drain(10)
    assert other.num_ops == 1
    other.close()


def test_what_other_threads_record_while_one_runs_stays(encoder, batched):
    """It may have to wait for other streams. The handler records on one of these streams, too."""
    buffers, threads = [cyrt.Buffer(4) for _ in range(3)], []
    streams = [cyrt.Stream() for _ in range(2)]
    for each in buffers:
        each.fill(0)
    cyrt.synchronize()

    def record_elsewhere():
        buffers[0].fill(1, streams[0])
        buffers[1].fill(1, streams[1])

    def handler():
        thread = threading.Thread(target=record_elsewhere)
        thread.start()
        thread.join()
        threads.append(thread)
        buffers[2].fill(2, streams[1])

    encoder.add_completed_handler(handler)
    encoder.commit()
    completion.drain(10)
    assert threads
    assert recorded_on(streams[0]) == 1
    assert recorded_on(streams[1]) == 0
    for each, value in zip(buffers, (1, 1, 2), strict=True):
        out = bytearray(4)
        each.copy_to(out)
        assert out == bytes([value]) * 4


def test_what_a_handler_records_on_another_device(python):
    done = python(
        """
        import threading, time
        import numpy as np
        import cyrt
        with cyrt.Device(1):
            put = cyrt.Kernel('extern "C" __global__ void put(int* x) { *x = 7; }', "put")
            out = cyrt.PinnedBuffer(4)
            seen = np.frombuffer(out, np.int32)
            seen[0] = 0

        def handler():
            with cyrt.Device(1):
                put[1, 1](out)

        cyrt.current_encoder().add_completed_handler(handler)
        cyrt.commit()
        end = time.monotonic() + 10
        while seen[0] != 7 and time.monotonic() < end:
            time.sleep(0.001)
        print(seen[0])
        """,
        CYRT_DEVICE="emulated",
        CYRT_EMULATED_DEVICES="2",
    )
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr


def test_handlers_that_are_added_while_the_thread_looks_for_some(encoder, gate, replaced):
    """A callback of the driver's may add them where the thread queries an event."""
    streams, added, called, adding = [cyrt.Stream() for _ in range(3)], [], [], []

    def query(original, event):
        on_thread = threading.current_thread().name == "cyrt completion"
        if on_thread and not adding and len(added) < 50:
            adding.append(1)
            with streams[len(added) % 3]:
                cyrt.current_encoder().add_completed_handler(lambda: called.append(1))
                added.append(1)
                cyrt.commit()
            adding.pop()
        return original(event)

    encoder.add_completed_handler(lambda: called.append(1))
    encoder.commit()
    replaced("cuEventQuery", [c_void_p], query)
    until(lambda: len(added) == 50)
    gate.set()
    until(lambda: len(called) == 51)


def test_a_finalizer_commits_while_the_thread_starts(python):
    """The collector may run in the new thread before the one that starts it goes on."""
    done = python(
        """
        import threading
        import cyrt

        def set_ident(thread):
            found(thread)
            if thread.name == "cyrt completion":
                with cyrt.Stream():
                    x = cyrt.zeros(10)
                    cyrt.current_encoder().add_completed_handler(lambda: called.append(2))
                    cyrt.commit()

        found, called = threading.Thread._set_ident, []
        threading.Thread._set_ident = set_ident
        y = cyrt.zeros(10)
        cyrt.current_encoder().add_completed_handler(lambda: called.append(1))
        cyrt.commit()
        cyrt.synchronize()
        for _ in range(1000):
            if len(called) == 2:
                break
            threading.Event().wait(0.01)
        assert sorted(called) == [1, 2], called
        """
    )
    assert done.returncode == 0, done.stderr
