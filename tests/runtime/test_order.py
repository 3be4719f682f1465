"""Order among streams and threads, and what is handed out."""

from __future__ import annotations

import ctypes
import signal
import textwrap
import threading
import time
from ctypes import c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from pathlib import Path

import numpy as np
import pytest
from gates import Gate

import cyrt
from cyrt import settings

N = 64
SOURCE = r"""
extern "C" {
__device__ int counter;
__global__ void increment(int* x) { x[threadIdx.x] += 1; }
__global__ void count() { counter += 1; }
__global__ void copy(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void put(int* x, int value) { x[threadIdx.x] = value; }
}
"""
graphs = pytest.mark.skipif(
    not settings.get("CYRT_GRAPHS") or settings.get("CYRT_LAUNCH_BLOCKING"),
    reason="forces what happens inside a graph's launch: CYRT_GRAPHS=0 and CYRT_LAUNCH_BLOCKING=1 "
    "have none",
)
asynchronous = pytest.mark.skipif(
    settings.get("CYRT_LAUNCH_BLOCKING"),
    reason="kernels wait for the host while it records: CYRT_LAUNCH_BLOCKING=1 waits for each",
)


@pytest.fixture(scope="module")
def module():
    return cyrt.Module(SOURCE)


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()
    cyrt.synchronize()


@pytest.fixture
def driver():
    """The driver itself, as another library uses it."""
    folder = Path(cyrt.__file__).parent
    library = ctypes.CDLL(
        str(folder / "emulator/libcyrt_emu.so") if cyrt.Device().emulated else "libcuda.so.1"
    )
    context = c_void_p()
    library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    library.cuCtxPushCurrent_v2(context)
    yield library
    library.cuCtxPopCurrent_v2(ctypes.byref(context))


def ints(value=0, count=N):
    array = cyrt.full(count, value, dtype=cyrt.int32)
    array.numpy()
    return array


def in_thread(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def ends(thread):
    thread.join(30)
    return not thread.is_alive()


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


# --- what is handed out ---


@asynchronous
@pytest.mark.parametrize("how", ["ptr", "dlpack", "interface"])
def test_a_consumer_waits_for_the_memorys_readers(gate, driver, how):
    x, y = ints(7), ints()
    with cyrt.Stream():
        gate.copy(x, y, N)  # reads x on another stream than the one that wrote it
    if how == "ptr":
        address = x.ptr
    elif how == "dlpack":
        capsule = x.__dlpack__(stream=1)
        assert capsule is not None
        address = x.ptr
    else:
        address = x.__cuda_array_interface__["data"][0]
    assert driver.cuMemsetD32Async(c_uint64(address), c_uint(0), c_size_t(N), None) == 0
    time.sleep(0.1)
    gate.open()
    cyrt.synchronize()
    assert (y.numpy() == 7).all()


@asynchronous
def test_a_consumers_stream_waits_for_the_memorys_readers(gate, driver):
    x, y, theirs = ints(7), ints(), c_void_p()
    assert driver.cuStreamCreate(ctypes.byref(theirs), 1) == 0
    assert x.ptr
    with cyrt.Stream():
        gate.copy(x, y, N)
    assert x.__dlpack__(stream=theirs.value) is not None
    assert driver.cuMemsetD32Async(c_uint64(x.ptr), c_uint(0), c_size_t(N), theirs) == 0
    time.sleep(0.1)
    gate.open()
    cyrt.synchronize()
    driver.cuStreamSynchronize(theirs)
    assert (y.numpy() == 7).all()


@asynchronous
def test_a_consumer_waits_while_another_thread_waits(gate, driver):
    box, launched = [], threading.Event()

    def work():
        y = ints()
        gate.write(y, 7, N)
        cyrt.commit()
        box.append(y)
        launched.set()
        cyrt.stream().synchronize()

    worker = in_thread(work)
    assert launched.wait(30)
    time.sleep(0.05)
    timer = gate.open_in(0.2)
    out = (c_int * N)()
    assert driver.cuMemcpyDtoH_v2(out, c_uint64(box[0].ptr), c_size_t(4 * N)) == 0
    assert list(out) == [7] * N
    assert ends(worker)
    timer.join()


@asynchronous
def test_undeclared_memory_is_ordered_with_other_streams(gate):
    """A kernel that reaches memory behind a struct comes before and after everything."""
    kernel = cyrt.Kernel(
        """
        struct Pair { int* x; volatile int* go; };
        extern "C" __global__ void late(Pair p) { while (!*p.go) {} *p.x = 7; }
        """,
        "late",
    )
    x, side = ints(0, 1), cyrt.Stream()
    pair = np.array([x.ptr, gate.memory.ptr], np.uint64).tobytes()
    cyrt.synchronize()
    with side:
        kernel[1, 1](pair)
    timer = gate.open_in(0.2)
    assert int(x[0]) == 7  # on the thread's own stream
    timer.join()


@asynchronous
def test_undeclared_memory_comes_after_other_streams(gate):
    kernel = cyrt.Kernel(
        """
        struct Pair { const int* x; int* y; };
        extern "C" __global__ void copy(Pair p) { *p.y = *p.x; }
        """,
        "copy",
    )
    x, y, side = ints(0, 1), ints(0, 1), cyrt.Stream()
    pair = np.array([x.ptr, y.ptr], np.uint64).tobytes()
    cyrt.synchronize()
    other = cyrt.zeros(1, dtype=cyrt.int32)
    with side:
        gate.write(other, 1, 1)  # not of its memory: after it all the same
    timer = gate.open_in(0.2)
    kernel[1, 1](pair)
    cyrt.stream().synchronize()
    assert gate.flag[0] == 1
    timer.join()


@asynchronous
def test_an_undeclared_kernel_that_has_ended_delays_nothing(gate):
    """Other streams do not wait for what came after it on its stream."""
    kernel = cyrt.Kernel(
        "struct Pair { int* x; int value; };"
        'extern "C" __global__ void put(Pair p) { *p.x = p.value; }',
        "put",
    )
    x, later, found = ints(0, 1), cyrt.Stream(), []
    kernel[1, 1](np.array([x.ptr, 7], np.uint64).tobytes())
    cyrt.stream().synchronize()
    gate.wait()
    cyrt.commit()

    def work():
        with later:
            found.append(int(ints(1, 1)[0]))

    worker = in_thread(work)
    worker.join(10)
    gate.open()
    assert found == [1]
    assert ends(worker)


class OnlyDlpack:
    """Another library's array that has no array interface, and makes nobody wait."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **_):
        return self.array.__dlpack__(stream=-1)


@asynchronous
def test_memory_that_came_by_dlpack_on_two_streams(gate, module):
    memory, y = ints(), ints()
    tensor = OnlyDlpack(memory)
    assert memory.ptr
    cyrt.synchronize()
    with cyrt.Stream():
        gate.write(tensor, 7, N)
    with cyrt.Stream():
        module["copy"][1, N](tensor, y)
    time.sleep(0.1)
    gate.open()
    cyrt.synchronize()
    assert (y.numpy() == 7).all()


@asynchronous
def test_the_per_thread_default_stream_of_another_thread(gate):
    y, launched, ended = ints(), threading.Event(), threading.Event()

    def work():
        with cyrt.stream(2):
            gate.write(y, 7, N)
        launched.set()
        ended.wait(30)

    worker = in_thread(work)
    assert launched.wait(30)
    timer = gate.open_in(0.2)
    assert (y.numpy() == 7).all()
    ended.set()
    assert ends(worker)
    timer.join()


def test_a_variable_whose_address_was_handed_out(module):
    """It behaves as a Buffer whose address was: what uses it is launched at once."""
    variable, out = module.get_global("counter"), np.zeros(1, np.int32)
    variable.fill(0)
    cyrt.synchronize()
    theirs = cyrt.pointer(variable.ptr, 4)
    module["count"][1, 1]()
    with cyrt.Stream():
        theirs.copy_to(out)
    assert out[0] == 1


def test_a_variable_and_its_address_in_one_batch(module, batched):
    variable = module.get_global("counter")
    variable.fill(0)
    theirs = cyrt.pointer(variable.ptr, 4)
    with cyrt.batch() as encoder:
        module["count"][1, 1]()
        module["increment"][1, 1](theirs)
        module["count"][1, 1]()
    assert {(a, b) for a, b, _ in encoder.last_plan().edges} == {(0, 1), (1, 2)}
    out = np.zeros(1, np.int32)
    variable.copy_to(out)
    assert out[0] == 3


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


@asynchronous
@graphs
def test_memory_outside_while_another_thread_launches(replaced):
    """An event that is recorded before the other launch is done does not cover it."""
    module = cyrt.Module(r"""
    extern "C" __global__ void increment_late(const volatile int* go, int* x) {
        int value = x[threadIdx.x];
        while (!*go) {}
        x[threadIdx.x] = value + 1;
    }""")
    gate, x = Gate(), ints()
    streams = [cyrt.Stream(), cyrt.Stream()]
    names = [cyrt.pointer(x.ptr, x.nbytes) for _ in streams]
    gate.open()
    for stream, name in zip(streams, names, strict=True):  # whatever is loaded first
        with stream:
            module["increment_late"][1, N](gate.memory, name)
    cyrt.synchronize()
    gate.flag[0] = 0
    begun = threading.Event()

    def launch(original, *arguments):
        if threading.current_thread() is worker and not begun.is_set():
            begun.set()
            time.sleep(0.2)  # the other thread records, and would launch
        return original(*arguments)

    def increment(stream, name):
        with stream:
            module["increment_late"][1, N](gate.memory, name)
            cyrt.commit()

    worker = threading.Thread(target=increment, args=(streams[0], names[0]))
    replaced("cuGraphLaunch", [c_void_p] * 2, launch)
    worker.start()
    assert begun.wait(30)
    increment(streams[1], names[1])
    worker.join(30)
    time.sleep(0.1)
    gate.open()
    cyrt.synchronize()
    assert (x.numpy() == 4).all()


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


# Two devices, and memory of the first one as two objects that know nothing of each other.
DEVICES = """
import threading
import time

import numpy as np
import cyrt
from gates import Gate

class OnlyDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **_):
        return self.array.__dlpack__(stream=-1)

copy = cyrt.Kernel('''extern "C" __global__ void copy(const int* x, int* y, int n) {
    for (int i = 0; i < n; ++i) y[i] = x[i];
}''', "copy")
n = 64
x, y = cyrt.zeros(n, dtype=cyrt.int32), cyrt.zeros(n, dtype=cyrt.int32)
with cyrt.Device(1):
    seven = cyrt.Buffer(4 * n)
    seven.fill(np.int32(7))
    theirs = cyrt.Buffer(4 * n)
    theirs.fill(0)
    gate = Gate()
    cyrt.synchronize()
one, other = OnlyDlpack(x), OnlyDlpack(x)
address = x.ptr
cyrt.synchronize()
"""
USES = {
    # What another device recorded on the memory is launched first.
    "recorded": """
        with cyrt.batch():
            copy[1, 1](cyrt.full(n, 7, dtype=cyrt.int32), cyrt.pointer(address, 4 * n), n)
            theirs.copy_from(cyrt.pointer(address, 4 * n, 0))
        values = np.zeros(n, np.int32)
        theirs.copy_to(values)
        """,
    # What another device's stream does with the memory is waited for.
    "launched": """
        with cyrt.Device(1), cyrt.Stream(1):
            gate.wait()
            cyrt.commit()
            seven.copy_to(one)
        threading.Timer(0.3, gate.open).start()
        with cyrt.Stream(0):
            copy[1, 1](other, y, n)
            values = y.numpy()
        """,
    "copied": """
        with cyrt.Device(1), cyrt.Stream(1):
            gate.wait()
            cyrt.commit()
            seven.copy_to(one)
        threading.Timer(0.3, gate.open).start()
        with cyrt.Stream(0) as stream:
            whole = cyrt.Buffer(4 * n)
            whole.copy_from(other)
            values = np.zeros(n, np.int32)
            whole.copy_to(values)
        """,
}


@pytest.mark.parametrize("use", USES)
def test_memory_outside_that_another_device_uses(python, use):
    ended = python(
        DEVICES + textwrap.dedent(USES[use]) + "print(set(values.tolist()))\n",
        folders=[Path(__file__).resolve().parent.parent],
        CYRT_DEVICE="emulated",
        CYRT_EMULATED_DEVICES="2",
    )
    assert ended.stdout == "{7}\n", ended.stderr
