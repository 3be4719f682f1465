"""Threads, streams and events; finalizers; a full queue."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
import time

import numpy as np
import pytest
from gates import Gate
from outside import Library, N, host, only_batches, only_graphs, until, zeros
from threads import run_in_threads

import cyrt


def test_two_threads_two_streams_with_events_between_them(module):
    """Each waits for the other's last step by events alone, on memory that nobody else orders."""
    x, rounds = zeros(), 60
    address = x.ptr
    cyrt.synchronize()  # the zeros are there
    library = Library()
    events = [[cyrt.Event(timing=False) for _ in range(rounds)] for _ in range(2)]
    recorded = [[threading.Event() for _ in range(rounds)] for _ in range(2)]

    def work(me):
        with cyrt.CommandEncoder() as encoder:
            for i in range(rounds):
                if me or i:  # 0: first, 1: second, and so on in turn
                    before = events[1 - me][i - (1 - me)]
                    assert recorded[1 - me][i - (1 - me)].wait(30)
                    encoder.wait(before)
                with encoder.capture(writes=[]) as stream:
                    library.launch(stream.handle, address, *((1.0, 1.0) if me else (0.5, 0.0)))
                encoder.record(events[me][i])
                recorded[me][i].set()

    assert run_in_threads(lambda: work(0), lambda: work(1)) == []
    value = 0.0
    for _ in range(rounds):
        value = np.float32(np.float32(0.5) * value) + np.float32(1)
    assert (host(x) == value).all()


def test_an_event_waited_for_before_it_was_launched(module):
    """The recording that it marks is launched by `record`; the mark then holds the other back."""
    x, y = zeros(1 << 20), zeros(1 << 20)
    with cyrt.CommandEncoder() as first, cyrt.CommandEncoder() as second:
        event = cyrt.Event()
        for _ in range(20):
            first.add_kernel(module["axpb"], 4096, N, (x, 1.0, 1.0, 1 << 20))
        first.record(event)
        assert first.num_ops == 0
        second.wait(event)
        second.add_kernel(module["add"], 4096, N, (x, y, y, 1 << 20))
        second.synchronize()
        assert event.done
    assert (host(y) == 20).all()


def test_memory_shared_by_encoders_needs_no_event(module):
    x = zeros()
    with cyrt.CommandEncoder() as first, cyrt.CommandEncoder() as second:
        for _ in range(30):
            first.add_kernel(module["axpb"], 1, N, (x, 2.0, 1.0, N))
            second.add_kernel(module["axpb"], 1, N, (x, 0.5, 0.0, N))
            x[:512].fill(0)  # the current encoder's
    assert (host(x)[:128] == 0).all()


def test_another_thread_commits_by_using_the_memory(module):
    """What it commits is whole operations, while their thread goes on recording."""
    x, stop = zeros(), threading.Event()
    seen = []

    def record():
        with cyrt.CommandEncoder() as encoder:
            for i in range(2000):
                encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
                if i % 50 == 0:
                    with encoder.concurrent():
                        for k in range(2):
                            encoder.add_kernel(
                                module["axpb"], 1, 128, (x[512 * k : 512 * (k + 1)], 1.0, 0.0, 128)
                            )
        stop.set()

    def read():
        out = np.empty(N, np.float32)
        while not stop.is_set():
            x.copy_to(out)
            seen.append((out == out[0]).all())

    assert run_in_threads(record, read, read) == []
    assert all(seen)
    assert (host(x) == 2000).all()


@only_graphs
def test_a_commit_that_begins_within_another_threads_launch(module, replaced, tmp_path):
    """Its batch has an event of its own, and not that of the batch which is being launched."""
    x = zeros()
    launching, committing, launched = (threading.Event() for _ in range(3))
    reader = None

    def launch(original, *arguments):
        if threading.get_ident() == reader:
            launching.set()
            assert committing.wait(30)
        return original(*arguments)

    def create_event(original, *arguments):  # the trace's, after the commit has begun
        if launching.is_set() and threading.get_ident() != reader:
            committing.set()
            assert launched.wait(30)
        return original(*arguments)

    def read():
        nonlocal reader
        reader = threading.get_ident()
        cyrt.synchronize()  # launches what all threads have recorded
        launched.set()

    replaced("cuGraphLaunch", [ctypes.c_void_p] * 2, launch)
    replaced("cuEventCreate", [ctypes.c_void_p, ctypes.c_int], create_event)
    with cyrt.profile(tmp_path / "trace.json"), cyrt.CommandEncoder() as encoder:
        encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
        thread = threading.Thread(target=read)
        thread.start()
        assert launching.wait(30)
        for _ in range(2):
            encoder.add_kernel(module["axpb"], 1, N, (x, 2.0, 0.0, N))
        encoder.commit()
        thread.join(30)
        assert committing.is_set()
        assert launched.is_set()
        assert encoder.stats()["commits"] == 2
    assert (host(x) == 4).all()


FOUR = """extern "C" __global__
void four(const float* a, const float* b, const float* c, float* d) { d[0] = a[0] + b[0] + c[0]; }
"""


@pytest.fixture
def three_streams():
    """Arrays, and two streams that have recorded work on the first two of them: a thread that uses
    all of these looks for a third time before it comes to the last one, and asks for priority."""
    arrays = [cyrt.zeros(16) for _ in range(3)]
    streams = [cyrt.Stream() for _ in range(3)]
    # All kernels are loaded now: a driver may not do so while another one waits.
    kernel, spare = cyrt.Kernel(FOUR, "four"), cyrt.zeros(16)
    spare += 1
    kernel[1, 1](spare, spare, spare, spare + 1)
    cyrt.synchronize()

    with contextlib.ExitStack() as blocks:

        def record(numbers=(0, 1)):
            for i in numbers:  # the end of a block would commit
                blocks.enter_context(streams[i])
                array = arrays[i]
                array += 1

        yield arrays, streams[2], record, kernel


def use_all(kernel, arrays, begun):
    """Start a thread that uses all arrays on its own stream; it first calls `begun`."""

    def use():
        result = cyrt.zeros(16)
        cyrt.stream().synchronize()
        begun()
        kernel[1, 1](*arrays, result)

    thread = threading.Thread(target=use)
    thread.start()
    return thread


@only_batches
def test_a_thread_that_waits_for_the_device_has_no_priority(three_streams, replaced):
    """It waits for room behind a slow kernel. Others have nothing to do with that."""
    arrays, last, record, kernel = three_streams
    gate, array = Gate(), arrays[2]
    waiting, worker, queries = threading.Event(), [], []

    def query(original, event):
        result = original(event)
        if result and threading.get_ident() in worker:
            queries.append(event)
            if queries[-20:] == 20 * [event]:
                waiting.set()
        return result

    with last:
        gate.wait()
        cyrt.commit()
        for _ in range(63):
            array += 1
            cyrt.commit()
    record((0, 1, 2))
    replaced("cuEventQuery", [ctypes.c_void_p], query)
    thread = use_all(kernel, arrays, lambda: worker.append(threading.get_ident()))
    assert waiting.wait(20)
    with cyrt.Stream():
        mine = cyrt.zeros(16)
        begun = time.monotonic()
        for _ in range(30):
            mine = mine + 1
        seconds = time.monotonic() - begun
    assert thread.is_alive()
    gate.open()
    thread.join(30)
    assert not thread.is_alive()
    assert seconds < 2
    assert (mine.numpy() == 30).all()


@only_batches
def test_priority_ends_after_some_time(three_streams, replaced):
    """A thread that has it waits for another one's turn, while a third one computes in Python."""
    arrays, last, record, kernel = three_streams
    launching, go, stop = (threading.Event() for _ in range(3))
    launcher, worker, asked = [], [], []

    def launch(original, *arguments):
        if threading.get_ident() in launcher:
            launching.set()
            assert go.wait(30)
        elif threading.get_ident() in worker:
            asked.append(1)
        return original(*arguments)

    def hold():
        launcher.append(threading.get_ident())
        array = arrays[2]
        with last:
            array += 1
            cyrt.commit()

    def spin():
        while not stop.is_set():
            sum(range(1000))

    replaced("cuGraphLaunch", [ctypes.c_void_p] * 2, launch)
    threads = [threading.Thread(target=hold), threading.Thread(target=spin)]
    threads[0].start()
    assert launching.wait(20)
    record()
    threads.append(use_all(kernel, arrays, lambda: worker.append(threading.get_ident())))
    assert until(lambda: len(asked) == 2)  # then it looks for the third time
    threads[1].start()
    begun = time.monotonic()
    with cyrt.Stream():
        mine = cyrt.zeros(16)
        mine = mine + 1
    seconds = time.monotonic() - begun
    assert threads[2].is_alive()
    stop.set()
    go.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert seconds < 3
    assert (mine.numpy() == 1).all()


class Capsules:
    """Memory by DLPack: ordered on the stream that was current when it was given."""

    def __init__(self):
        self.pinned = cyrt.PinnedBuffer(4 * N)
        self.values = np.frombuffer(self.pinned, np.float32)
        self.values[:] = 0

    def __dlpack_device__(self):
        return 3, 0

    def __dlpack__(self, stream=None, max_version=None):
        return self.values.__dlpack__()


@only_batches
def test_batches_that_come_after_each_others_streams(module):
    """Another thread's commit of one waits for room while its owner commits the other."""
    shared, theirs, mine, opened = zeros(), Capsules(), Capsules(), threading.Event()
    library, held = Library(), threading.Event()
    hold = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: opened.wait(30))
    encoders = []

    def own():
        first, second = cyrt.CommandEncoder(), cyrt.CommandEncoder()
        encoders.extend((first, second))
        with library:
            library("cuLaunchHostFunc", ctypes.c_void_p(second.stream.handle), hold, None)
        for _ in range(64):  # as many batches as may be in flight
            second.add_kernel(module["axpb"], 1, N, (shared, 1.0, 1.0, N))
            second.commit()
        with first.stream:
            second.add_kernel(module["add"], 1, N, (theirs, shared, shared, N))
            with second.stream:
                first.add_kernel(module["axpb"], 1, N, (mine, 1.0, 1.0, N))
                held.set()
                until(lambda: second.num_ops == 0, 1)
                first.add_kernel(module["axpb"], 1, N, (mine, 1.0, 1.0, N))
                threading.Timer(0.1, opened.set).start()
                first.commit()

    def use():
        assert held.wait(30)
        module["axpb"][1, N](shared, 1.0, 1.0, N)
        cyrt.commit()

    assert run_in_threads(own, use) == []
    cyrt.synchronize()
    assert (host(shared) == 65).all()
    assert (mine.values == 2).all()


def test_finalizers_record_and_commit_while_others_are_launched(module):
    """Collections happen anywhere, also inside a commit."""
    x, y = zeros(), zeros()
    made, ended = [], []

    class Ends:
        def __init__(self):
            self.circle = self
            made.append(None)

        def __del__(self):
            module["axpb"][1, N](x, 1.0, 1.0, N)
            if len(made) % 3 == 0:
                cyrt.commit()
            ended.append(None)

    threshold = gc.get_threshold()
    gc.set_threshold(7, 2, 2)
    try:
        for i in range(400):
            Ends()
            for _ in range(i % 7):
                module["axpb"][1, N](y, 1.0, 1.0, N)
            if i % 2:
                cyrt.commit()
    finally:
        gc.set_threshold(*threshold)
    # While another thread collects, this one does not.
    assert until(lambda: gc.collect() >= 0 and len(ended) == 400)
    assert (host(x) == 400).all()
    assert (host(y) == sum(i % 7 for i in range(400))).all()


def test_a_full_launch_queue_beside_a_python_callback(module, encoder):
    """The driver's queue is bounded; its callback needs the GIL that launching must not hold."""
    x, library, called = zeros(), Library(), []
    y = zeros()
    go = threading.Event()

    def callback(_):
        called.append(go.wait(0.2))

    hold = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(callback)
    for graphs in (True, False):
        with cyrt.CommandEncoder(graphs=graphs) as other:
            with library:
                library("cuLaunchHostFunc", ctypes.c_void_p(other.stream.handle), hold, None)
            for i in range(1500):
                other.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
                other.commit()
                if i % 3 == 0:
                    other.add_memset(y, 1)
                    other.add_memcpy(y[:512], y[512:])
    assert len(called) == 2
    assert (host(x) == 3000).all()


@only_batches
def test_threads_that_wait_for_room_fill_no_batch_beyond_its_limit(module, setting):
    """They find the batch full and wait; then each appends its operation to the next one."""
    setting(CYRT_MAX_OPS_PER_GRAPH="16")
    count, in_flight = 40, 64
    first, others = Gate(), Gate()

    def add(i):
        module["axpb"][1, 4](parts[i], 1.0, 1.0, 4)

    def add_elsewhere(i):
        stream.__enter__()
        add(i)

    with cyrt.Stream() as stream:
        encoder, memory = cyrt.current_encoder(), zeros(4 * count)
        parts = [memory[16 * i : 16 * i + 16] for i in range(count)]
        add(0)
        cyrt.synchronize()
        commits = encoder.stats()["commits"]
        for gate in first, others:
            gate.wait()
            cyrt.commit()
        while encoder.stats()["commits"] < commits + in_flight:
            add(0)
            cyrt.commit()
        for _ in range(11):
            add(0)
        threads = [threading.Thread(target=add_elsewhere, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        threads[0].join(0.5)
        first.open()
        until(lambda: encoder.stats()["commits"] == commits + in_flight + 1)
        threads[0].join(0.5)
        others.open()
        for thread in threads:
            thread.join(30)
        cyrt.synchronize()
        assert encoder.stats()["commits"] >= commits + in_flight + 4  # 51 operations
        assert (host(memory).reshape(count, 4)[1:] == 1).all()
