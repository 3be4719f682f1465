"""Order among streams and threads, with memory that cyrt alone uses."""

from __future__ import annotations

import ctypes
import gc
import signal
import threading
import time
from ctypes import c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from pathlib import Path

import numpy as np
import pytest
from order_programs import SOURCE, N, asynchronous, ends, graphs, in_thread, ints

import cyrt

# --- threads that record at once ---


@graphs
@pytest.mark.parametrize("times", [1, 5])
def test_what_is_recorded_while_another_streams_batch_is_launched(module, replaced, times):
    """An operation comes after all that the other stream has recorded when it is appended itself,
    not when it began to look."""
    x, left = ints(), [times]
    with cyrt.CommandEncoder() as side:
        side.add_kernel(module["increment"], 1, N, (x,))

        def launch(original, executable, stream):
            code = original(executable, stream)
            if left[0]:
                left[0] -= 1
                side.add_kernel(module["increment"], 1, N, (x,))  # as another thread would
            return code

        replaced("cuGraphLaunch", [c_void_p] * 2, launch)
        module["increment"][1, N](x)
        encoder = cyrt.current_encoder()
        assert left == [0]
        assert (side.num_ops, encoder.num_ops) == (0, 1)
        assert (x.numpy() == 2 + times).all()


@pytest.mark.parametrize("how", ["array", "buffer", "variable"])
def test_threads_that_update_one_memory(module, how):
    x, rounds, threads = ints(), 150, 4
    variable = module.get_global("counter")
    variable.fill(0)
    failures = []

    def work():
        try:
            for _ in range(rounds):
                if how == "array":
                    cyrt.add(x, 1, out=x)
                elif how == "buffer":
                    module["increment"][1, N](x)
                else:
                    module["count"][1, 1]()
            cyrt.commit()
        except BaseException as error:
            failures.append(error)

    workers = [in_thread(work) for _ in range(threads)]
    assert all(ends(worker) for worker in workers)
    assert failures == []
    cyrt.synchronize()
    if how == "variable":
        out = np.zeros(1, np.int32)
        variable.copy_to(out)
        assert out[0] == rounds * threads
    else:
        assert (x.numpy() == rounds * threads).all()


@graphs
@pytest.mark.parametrize("shrink", [False, True])
def test_a_block_whose_readers_change_while_they_are_launched(replaced, shrink):
    copy = cyrt.Module(SOURCE.replace("__device__ int counter;", "").replace("counter += 1;", ""))[
        "copy"
    ]  # kernels with nothing in common
    x, outs = ints(1), [ints() for _ in range(10)]
    encoders = [cyrt.CommandEncoder() for _ in range(8)]
    late = [cyrt.CommandEncoder() for _ in range(2)]
    for encoder, out in zip(encoders, outs, strict=False):
        encoder.add_kernel(copy, 1, N, (x, out))
    calls = []

    def launch(original, executable, stream):
        calls.append(stream)
        if len(calls) == 1:
            late[0].add_kernel(copy, 1, N, (x, outs[8]))
        if len(calls) == 2:
            if shrink:
                for encoder in encoders:
                    if encoder.num_ops and encoder is not encoders[7]:
                        encoder.commit()
            late[1].add_kernel(copy, 1, N, (x, outs[9]))
        return original(executable, stream)

    replaced("cuGraphLaunch", [c_void_p] * 2, launch)
    assert x.ptr
    assert [encoder.num_ops for encoder in encoders] == [0] * 8
    for encoder in encoders + late:
        encoder.close()
    assert [out.tolist() for out in outs] == [[1] * N] * 10


# --- whoever waits ---


@asynchronous
def test_a_wait_for_all_waits_for_a_stream_that_another_thread_waits_for(gate):
    out, launched = cyrt.PinnedBuffer(4), threading.Event()
    result = np.frombuffer(out, np.int32)
    result[0] = 0

    def work():
        stream = cyrt.Stream()
        with stream:
            gate.write(out, 7, 1)
        launched.set()
        stream.synchronize()

    worker = in_thread(work)
    assert launched.wait(30)
    time.sleep(0.05)  # it waits
    timer = gate.open_in(0.2)
    cyrt.synchronize()
    assert result[0] == 7
    assert ends(worker)
    timer.join()


@pytest.mark.parametrize("call", ["fill", "copy", "kernel"])
def test_a_wait_for_a_stream_on_which_another_thread_is_putting_work(module, replaced, call):
    """The driver's call has not returned: the stream is not idle, whatever the driver says."""
    stream, out = cyrt.Stream(), cyrt.PinnedBuffer(4 * N)
    encoder = cyrt.CommandEncoder(stream, graphs=False)
    name, types = {
        "fill": ("cuMemsetD8Async", [c_uint64, c_ubyte, c_size_t, c_void_p]),
        "copy": ("cuMemcpyHtoDAsync", [c_uint64, c_void_p, c_size_t, c_void_p]),
        "kernel": ("cuLaunchKernel", [c_void_p] + [c_uint] * 7 + [c_void_p] * 3),
    }[call]
    waited, waiting = [], []

    def put(original, *arguments):
        waiting.append(in_thread(lambda: (stream.synchronize(), waited.append(len(done)))))
        time.sleep(0.1)
        assert waited == []
        return original(*arguments)

    replaced(name, types, put)
    done = []
    if call == "fill":
        out.fill(3, stream)
    elif call == "copy":
        cyrt.Buffer(4 * N).copy_from(np.zeros(N, np.int32), stream)
    else:
        encoder.add_kernel(module["put"], 1, N, (out, 3))
    done.append(1)
    assert all(ends(thread) for thread in waiting)
    assert waiting
    assert waited == [1] * len(waiting)
    cyrt.synchronize()


@asynchronous
def test_a_wait_for_all_covers_work_on_somebody_elses_stream(gate, driver):
    theirs, out = c_void_p(), cyrt.PinnedBuffer(4)
    result = np.frombuffer(out, np.int32)
    result[0] = 0
    assert driver.cuStreamCreate(ctypes.byref(theirs), 1) == 0
    with cyrt.stream(theirs.value):
        gate.write(out, 7, 1)
        timer = gate.open_in(0.2)
        cyrt.synchronize()
        assert result[0] == 7
    timer.join()


def test_a_wait_for_all_does_not_wait_for_a_stream_that_is_captured(module):
    x = ints()
    with cyrt.CommandEncoder() as encoder:
        encoder.add_kernel(module["increment"], 1, N, (x,))
        with encoder.capture(writes=[x]) as stream:
            cyrt.synchronize()
            with stream:
                pass
            y = ints(3)
            assert (y.numpy() == 3).all()
            library_free_fill(stream, x)
    assert (x.numpy() == 0).all()


@pytest.mark.usefixtures("batched")
def test_a_capture_that_begins_during_a_wait_for_all(module, replaced):
    """The wait has launched the encoder's batch when the encoder's thread begins the capture."""
    recorded, may_begin, begun, may_end = (threading.Event() for _ in range(4))
    waiter, failures = threading.get_ident(), []

    def query(original, event):
        result = original(event)
        if threading.get_ident() == waiter and recorded.is_set() and not may_begin.is_set():
            may_begin.set()
            assert begun.wait(30)
        return result

    def work():
        try:
            x = ints()
            with cyrt.CommandEncoder() as encoder:
                encoder.add_kernel(module["increment"], 1, N, (x,))
                recorded.set()
                assert may_begin.wait(30)
                with encoder.capture(writes=[x]) as stream:
                    library_free_fill(stream, x)
                    begun.set()
                    assert may_end.wait(30)
            assert (x.numpy() == 0).all()
        except BaseException as error:
            failures.append(error)
        finally:
            begun.set()

    cyrt.synchronize()
    replaced("cuEventQuery", [c_void_p], query)
    worker = in_thread(work)
    assert recorded.wait(30)
    cyrt.synchronize()
    may_end.set()
    assert ends(worker)
    assert may_begin.is_set()
    assert failures == []


def library_free_fill(stream, x):
    """Something that can be captured."""
    driver = ctypes.CDLL(
        str(Path(cyrt.__file__).parent / "emulator/libcyrt_emu.so")
        if cyrt.Device().emulated
        else "libcuda.so.1"
    )
    address = int(repr(cyrt.asarray(x).__cuda_array_interface__["data"][0]))
    assert (
        driver.cuMemsetD32Async(c_uint64(address), c_uint(0), c_size_t(N), c_void_p(stream.handle))
        == 0
    )


# --- memory that is freed and given back ---


def test_memory_dropped_while_a_stream_is_captured_returns(module, pooled):
    out, reserved = ints(), []
    with cyrt.CommandEncoder() as encoder:
        for _ in range(4):
            x = cyrt.Buffer(8 << 20)
            x.fill(1)  # on the current stream
            encoder.add_kernel(module["copy"], 1, N, (x, out))
            with pytest.raises(RuntimeError, match="nothing was put"), encoder.capture():
                del x
            cyrt.synchronize()
            cyrt.trim_memory()
            reserved.append(cyrt.memory_stats()["reserved"])
    assert reserved[-1] == reserved[0]


def test_allocating_while_another_thread_captures(python):
    done = python(
        """
        import threading, cyrt
        def work():
            b = cyrt.Buffer(40 << 20)
            del b
            found.append(cyrt.Buffer(50 << 20).nbytes)
        found = []
        with cyrt.CommandEncoder() as encoder:
            try:
                with encoder.capture():
                    thread = threading.Thread(target=work)
                    thread.start()
                    thread.join()
            except RuntimeError as error:
                assert "nothing was put" in str(error)
        assert found == [50 << 20], found
        """,
        CYRT_MEMORY_LIMIT="64M",
    )
    assert done.returncode == 0, done.stderr


@asynchronous
def test_what_is_freed_while_memory_is_given_back_stays(gate, pooled):
    warm = cyrt.zeros(8)  # a GPU loads no code while a kernel waits
    warm += warm + 1
    warm.numpy()
    cyrt.trim_memory()  # other tests' memory would be given back by an allocation, which waits
    gate.wait()  # the thread's stream is busy: giving back waits for it
    cyrt.commit()
    ready, trimmed, failures = threading.Event(), threading.Event(), []

    def work():
        try:
            out = cyrt.zeros(1 << 19)  # 2 MB
            out.numpy()
            ready.set()
            time.sleep(0.1)
            for _ in range(3):
                t = out + 1
                out += t
            del t
            trimmed.wait(30)
            assert (out.numpy() == 7).all()
        except BaseException as error:
            failures.append(error)

    worker = in_thread(work)
    assert ready.wait(30)
    timer = gate.open_in(0.4)
    cyrt.trim_memory()
    trimmed.set()
    assert ends(worker)
    assert failures == []
    timer.join()


def test_giving_back_what_no_batch_has_used(python):
    """Freed memory is unmapped there, so that a read of it is a crash."""
    done = python(
        """
        import cyrt
        x = cyrt.ones(4) + 1
        x.numpy()
        buffers = [cyrt.Buffer(512) for _ in range(20_000)]
        del buffers
        cyrt.trim_memory()
        x = cyrt.ones(4) + 1
        assert (x.numpy() == 2).all()
        """,
        MALLOC_MMAP_THRESHOLD_="128",
    )
    assert done.returncode == 0, done.stderr


@asynchronous
def test_giving_back_that_is_interrupted(gate, pooled, request):
    """What was about to be given back is the pool's again."""

    def interrupt(*_):
        raise KeyboardInterrupt

    x = cyrt.zeros(1 << 20)
    x.numpy()
    del x
    gc.collect()  # what other tests left is free now
    gate.wait()
    cached = cyrt.memory_stats()["cached"]
    before = signal.signal(signal.SIGALRM, interrupt)
    request.addfinalizer(lambda: signal.signal(signal.SIGALRM, before))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(KeyboardInterrupt):
        cyrt.trim_memory()
    gate.open()
    assert cyrt.memory_stats()["cached"] == cached
    assert cyrt.trim_memory() >= 4 << 20


@asynchronous
def test_a_reader_that_writes_comes_after_later_reads(gate):
    """Its read came after the other stream's write, but not after what that has read since."""
    x, y, z = ints(), ints(), ints()
    with cyrt.Stream() as first:
        x += 1
    with cyrt.Stream() as second:
        cyrt.add(x, 1, out=y)
        cyrt.synchronize()
    with first:
        gate.copy(x, z, N)
    with second:
        cyrt.add(x, 5, out=x)
        cyrt.commit()
    with first:
        cyrt.commit()
    time.sleep(0.1)
    gate.open()
    assert (z.numpy() == 1).all()
    assert (x.numpy() == 6).all()


def test_values_that_were_read_are_a_wait_for_their_stream(python):
    """Nothing is left to wait for; a stream that waits for another one has something again."""
    done = python(
        """
        import ctypes, cyrt
        from cyrt.driver import table
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        handles = []

        def record(event, handle):
            handles.append(handle)
            return original(event, handle)

        def waits_for():
            handles.clear()
            cyrt.synchronize()
            return list(handles)

        callback = prototype(record)
        address = ctypes.cast(callback, ctypes.c_void_p).value
        original = prototype(table.replace("cuEventRecord", address))
        with cyrt.Stream() as stream:
            x = cyrt.zeros(64)
            cyrt.synchronize()
            handles.clear()
            x += 1
            x.numpy()
            own = handles[-1]
            assert own not in waits_for()
            x += 1
            x.numpy()
            event = cyrt.Event()
            event.record(cyrt.Stream())
            event.wait(stream)
            assert own in waits_for()
        """
    )
    assert done.returncode == 0, done.stderr
