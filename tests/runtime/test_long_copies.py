"""Copies of several chunks, which other threads find before them or after them."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from ctypes import c_size_t, c_ubyte, c_uint, c_uint64, c_void_p

import numpy as np
import pytest
from gates import Gate
from order_programs import asynchronous, ends, in_thread, ints

import cyrt
from cyrt.runtime import transfer

CHUNK = 1 << 10
N = 2 * CHUNK  # int32: eight chunks, twice the ring
TO_HOST = "cuMemcpyDtoHAsync", [c_void_p, c_uint64, c_size_t, c_void_p]
TO_DEVICE = "cuMemcpyHtoDAsync", [c_uint64, c_void_p, c_size_t, c_void_p]
NOT_SUPPORTED = 801


@pytest.fixture(autouse=True)
def small_chunks():
    before = transfer._set_chunk_size(CHUNK)
    yield
    transfer._set_chunk_size(before)


class Halt:
    """Halts the first copy of a direction between two of its chunks, until `go` is set."""

    def __init__(self, replaced, direction, chunk=3, result=0):
        self.reached, self.go = threading.Event(), threading.Event()
        self.calls, self.chunk, self.result = 0, chunk, result
        self.addresses = None  # target and source of the first chunk
        replaced(*direction, self.copy)

    def copy(self, original, *arguments):
        self.calls += 1
        self.addresses = self.addresses or arguments[:2]
        if self.calls == self.chunk:
            self.reached.set()
            self.go.wait(30)
            if self.result:
                return self.result
        return original(*arguments)


class HaltBetween(Halt):
    """Halts the first copy to the device between two chunks, where it looks for a free one. By then
    it has sent one of these numbers of them."""

    def __init__(self, replaced, chunks=range(4, 8)):
        super().__init__(replaced, TO_DEVICE, chunk=0)
        self.thread, self.chunks = None, chunks
        replaced("cuEventQuery", [c_void_p], self.query)

    def copy(self, original, *arguments):
        self.thread = self.thread or threading.get_ident()
        self.calls += self.thread == threading.get_ident()
        return original(*arguments)

    def query(self, original, event):
        if self.thread == threading.get_ident() and self.calls in self.chunks:
            self.reached.set()
            self.go.wait(30)
        return original(event)


@pytest.fixture
def halt(replaced):
    halts = []

    def make(*arguments, **keywords):
        made = (Halt if arguments else HaltBetween)(replaced, *arguments, **keywords)
        halts.append(made)
        return made

    yield make
    for each in halts:
        each.go.set()


def halt_within(halt, chunks, x):
    """Halt a copy to the device of some chunks: between two, or in one turn with all of them."""
    if chunks > 4:
        return halt()
    with cyrt.Stream():
        x + 1  # memory that nobody uses gets one chunk while the next one is staged
    cyrt.synchronize()
    # Were each chunk sent in a turn of its own, the copy would not come as far as the other halt.
    halt(chunks=range(1, chunks))
    return halt(TO_DEVICE, 2)


class Task:
    """A call in a thread of its own."""

    def __init__(self, function, *arguments):
        self.found = self.error = None

        def run():
            try:
                self.found = function(*arguments)
            except BaseException as error:
                self.error = error

        self.thread = in_thread(run)

    def waits(self):
        """Whether it has not ended after a while that is much longer than it takes."""
        self.thread.join(0.3)
        return self.thread.is_alive()

    def result(self):
        assert ends(self.thread)
        if self.error is not None:
            raise self.error
        return self.found


def add_one(x):
    cyrt.add(x, 1, out=x)
    cyrt.synchronize()


def is_whole(found, *values):
    return any((found == value).all() for value in values)


MEMORY = {
    "array": ints,
    "view": lambda value, count: ints(value, count + 5)[5:],
    "exported": lambda value, count: export(ints(value, count)),
}


def export(x):
    assert x.__cuda_array_interface__
    return x


@pytest.mark.parametrize("kind", MEMORY)
def test_a_write_waits_for_a_copy_to_the_host(kind, halt):
    x = MEMORY[kind](0, N)
    halted = halt(TO_HOST)
    copy = Task(x.numpy)
    assert halted.reached.wait(30)
    write = Task(add_one, x)
    assert write.waits()
    halted.go.set()
    assert is_whole(copy.result(), 0)
    write.result()
    assert is_whole(x.numpy(), 1)


@pytest.mark.parametrize("kind", MEMORY)
@pytest.mark.parametrize("chunks", [3, 8])
def test_a_write_waits_for_a_copy_to_the_device(kind, chunks, halt):
    """Up to four chunks go in one turn of the stream."""
    count = chunks * CHUNK // 4
    x = MEMORY[kind](0, count)
    halted = halt_within(halt, chunks, x)
    copy = Task(x.copy_from, np.full(count, 5, np.int32))
    assert halted.reached.wait(30)
    write = Task(add_one, x)
    assert write.waits()
    halted.go.set()
    copy.result()
    write.result()
    assert is_whole(x.numpy(), 6)


@pytest.mark.parametrize("chunks", [4, 8])
def test_two_copies_to_the_device(chunks, halt):
    count = chunks * CHUNK // 4
    x = ints(0, count)
    halted = halt_within(halt, chunks, x)
    first = Task(x.copy_from, np.full(count, 1, np.int32))
    assert halted.reached.wait(30)
    second = Task(x.copy_from, np.full(count, 2, np.int32))
    assert second.waits()
    halted.go.set()
    first.result()
    second.result()
    assert is_whole(x.numpy(), 2)


def test_a_copy_to_the_device_waits_for_one_to_the_host_on_its_stream(halt):
    x, stream = ints(0, N), cyrt.Stream()
    out = np.zeros(N, np.int32)
    halted = halt(TO_HOST)
    read = Task(x.copy_to, out, stream)
    assert halted.reached.wait(30)
    write = Task(x.copy_from, np.ones(N, np.int32), stream)
    assert write.waits()
    halted.go.set()
    read.result()
    write.result()
    assert is_whole(out, 0)
    assert is_whole(x.numpy(), 1)


def test_reads_beside_a_copy_to_the_host_do_not_wait(halt):
    x = ints(3, N)
    stream = cyrt.Stream()
    halted = halt(TO_HOST)
    copy = Task(x.numpy)
    assert halted.reached.wait(30)

    def read():
        with stream:
            return (x + 1).numpy(), x.numpy()

    plus, same = Task(read).result()
    halted.go.set()
    assert is_whole(plus, 4)
    assert is_whole(same, 3)
    assert is_whole(copy.result(), 3)


def test_the_stream_is_not_held_between_chunks(halt):
    x, y, stream = ints(3, N), ints(0, N), cyrt.Stream()
    out = np.zeros(N, np.int32)
    halted = halt(TO_HOST)
    copy = Task(x.copy_to, out, stream)
    assert halted.reached.wait(30)

    def other():
        with stream:
            cyrt.add(y, 1, out=y)
            stream.synchronize()

    Task(other).result()
    halted.go.set()
    copy.result()
    assert is_whole(out, 3)


def test_the_end_of_a_copy_waits_for_room_in_the_streams_queue(halt):
    """Other threads have filled it meanwhile. A call that finds the queue full blocks, with the
    GIL."""
    x, gate, stream = ints(0, N), Gate(), cyrt.Stream()
    halted = halt()
    copy = Task(x.copy_from, np.ones(N, np.int32), stream)
    assert halted.reached.wait(30)
    with stream:
        gate.wait()
    event = cyrt.Event()
    fill = Task(lambda: [event.record(stream) for _ in range(800)])
    assert fill.waits()
    halted.go.set()
    assert copy.waits()
    gate.open()
    copy.result()
    fill.result()
    assert is_whole(x.numpy(), 1)


@pytest.mark.parametrize("count", [64, 1 << 20])
@pytest.mark.parametrize("direction", [TO_HOST, TO_DEVICE])
def test_memory_freed_during_a_copy_has_its_next_owner_after_it(direction, count, halt):
    """Small blocks are cut from slabs, large ones are the driver's."""
    size = 4 * max(count, N)
    stream = cyrt.Stream()
    with stream:
        x = cyrt.Buffer(size)
        x.fill(1)
    cyrt.synchronize()
    halted = halt(direction)
    host = np.full(size, 9, np.uint8)
    copy = Task(x.copy_to if direction == TO_HOST else x.copy_from, host, stream)
    assert halted.reached.wait(30)
    x.free()

    def take():
        with stream:
            y = cyrt.Buffer(size)
            y.fill(7)
            stream.synchronize()
        return y

    owner = Task(take)
    owner.waits()  # large memory is the driver's, which the copy keeps waiting
    halted.go.set()
    y = owner.result()
    with pytest.raises(ValueError, match="freed by another thread"):
        copy.result()
    found = np.zeros(size, np.uint8)
    y.copy_to(found)
    assert is_whole(found, 7)
    assert direction == TO_DEVICE or not (host == 7).any()


@pytest.mark.parametrize("direction", [TO_HOST, TO_DEVICE])
def test_a_trim_waits_for_a_copy(direction, halt, replaced):
    freed = []

    def free(original, address):
        freed.append(address)
        return original(address)

    replaced("cuMemFree", [c_uint64], free)
    x = cyrt.Buffer(4 << 20)
    x.fill(1)
    cyrt.synchronize()
    halted = halt(direction)
    host = np.zeros(4 << 20, np.uint8)
    copy = Task(x.copy_to if direction == TO_HOST else x.copy_from, host)
    assert halted.reached.wait(30)
    x.free()
    trim = Task(cyrt.trim_memory)
    assert trim.waits()
    assert halted.addresses[direction == TO_HOST] not in freed
    halted.go.set()
    trim.result()
    with pytest.raises(ValueError, match="freed by another thread"):
        copy.result()


def test_memory_is_exported_after_a_copy_to_it(halt):
    x = ints(0, N)
    halted = halt()
    copy = Task(x.copy_from, np.ones(N, np.int32))
    assert halted.reached.wait(30)
    exports = Task(lambda: x.__cuda_array_interface__)
    assert exports.waits()
    halted.go.set()
    copy.result()
    assert exports.result()["data"][0]


def test_another_name_of_the_memory(halt):
    x = ints(0, N)
    name = cyrt.pointer(x.__cuda_array_interface__["data"][0], 4 * N, owner=x)
    halted = halt(TO_HOST)
    copy = Task(x.numpy)
    assert halted.reached.wait(30)
    fill = Task(name.fill, np.int32(1))
    assert fill.waits()
    halted.go.set()
    assert is_whole(copy.result(), 0)
    fill.result()
    assert is_whole(x.numpy(), 1)


@pytest.mark.parametrize("direction", [TO_HOST, TO_DEVICE])
def test_a_copy_that_fails_leaves_the_memory_usable(direction, halt):
    x = ints(0, N)
    halted = halt(direction, result=NOT_SUPPORTED)
    copy = Task(*((x.numpy,) if direction == TO_HOST else (x.copy_from, np.zeros(N, np.int32))))
    assert halted.reached.wait(30)
    write = Task(add_one, x)
    assert write.waits()
    halted.go.set()
    with pytest.raises(cyrt.CudaError, match="NOT_SUPPORTED"):
        copy.result()
    write.result()
    assert is_whole(x.numpy(), 1)


@asynchronous
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("direction", [TO_HOST, TO_DEVICE])
def test_ctrl_c_ends_the_wait_for_the_work_before(direction, gate):
    """The copy has not happened then, and the memory is free for others."""
    x = ints(0, N)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        gate.write(x, 4, N)
        event = cyrt.Event()
        event.record()
        host = np.full(N, 8, np.int32)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            (x.copy_to if direction == TO_HOST else x.copy_from)(host)
        assert time.monotonic() - begun < 5
        assert not event.done  # the kernel waits still
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    gate.open()
    assert (host == 8).all()
    Task(add_one, x).result()
    assert is_whole(x.numpy(), 5)


@asynchronous
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("direction", [TO_HOST, TO_DEVICE])
def test_a_signal_handler_may_use_the_memory_while_a_copy_waits(direction, gate):
    x = ints(0, N)

    def compute(*_):
        cyrt.add(x, 1, out=x)
        gate.open()

    before = signal.signal(signal.SIGALRM, compute)
    try:
        gate.write(x, 4, N)
        cyrt.commit()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        if direction == TO_HOST:
            assert is_whole(x.numpy(), 5)
        else:
            x.copy_from(np.full(N, 8, np.int32))
            assert is_whole(x.numpy(), 8)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@asynchronous
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("direction", [TO_HOST, TO_DEVICE])
def test_the_device_may_wait_for_a_thread_that_waits_for_the_memory(direction, gate, replaced):
    """A copy that waits for the device lets others pass now and then."""
    waiting = threading.Event()

    def query(original, stream):
        waiting.set()
        return original(stream)

    x, host = ints(0, N), np.full(N, 8, np.int32)
    gate.write(x, 4, N)
    cyrt.commit()
    replaced("cuStreamQuery", [c_void_p], query)
    copy = Task(*((x.numpy,) if direction == TO_HOST else (x.copy_from, host)))
    assert waiting.wait(30)

    def write():
        cyrt.add(x, 1, out=x)
        gate.open()

    Task(write).result()
    found = copy.result()
    if direction == TO_HOST:
        assert is_whole(found, 4, 5)
        assert is_whole(x.numpy(), 5)
    else:
        assert is_whole(x.numpy(), 8, 9)


@asynchronous
@pytest.mark.usefixtures("unchecked")
def test_the_device_may_wait_for_a_thread_that_waits_for_several_copies(gate, replaced):
    """Each lets others pass for as long as it has kept them waiting, so the times soon overlap."""
    threads = set()

    def query(original, stream):
        threads.add(threading.get_ident())
        return original(stream)

    x = ints(0, N)
    gate.write(x, 4, N)
    cyrt.commit()
    replaced("cuStreamQuery", [c_void_p], query)
    copies = []
    for _ in range(3):
        copies.append(Task(x.numpy))
        while copies[-1].thread.ident not in threads:
            time.sleep(0.001)
        time.sleep(0.03)

    def write():
        cyrt.add(x, 1, out=x)
        gate.open()

    begun = time.monotonic()
    Task(write).result()
    seconds = time.monotonic() - begun
    for copy in copies:
        assert is_whole(copy.result(), 4, 5)
    assert is_whole(x.numpy(), 5)
    assert seconds < 15


@pytest.mark.parametrize("chunks", [2, 4, 8])
def test_copies_beside_threads_that_write(chunks):
    """All copies are whole, and come to an end though the memory is always in use."""
    count = chunks * CHUNK // 4
    x, stop = ints(0, count), threading.Event()

    def write():
        while not stop.is_set():
            cyrt.add(x, 1, out=x)

    writers = [Task(write) for _ in range(3)]
    try:
        for value in range(0, 400, 100):
            assert is_one_number(Task(x.numpy).result())
            Task(x.copy_from, np.full(count, value, np.int32)).result()
    finally:
        stop.set()
    for each in writers:
        each.result()
    assert is_one_number(x.numpy())


@asynchronous
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("direction", [TO_HOST, TO_DEVICE])
def test_a_copy_beside_threads_whose_kernels_are_slow(direction):
    """Each kernel takes longer than the copy waits between two checks for signals."""
    slow = cyrt.Kernel(SLOW, "slow")
    x, stop = ints(0, N), threading.Event()

    def write():
        with cyrt.Stream() as stream:
            while not stop.is_set():
                slow[1, 64](x, N)
                stream.synchronize()

    writers = [Task(write) for _ in range(3)]
    try:
        copy = Task(*((x.numpy,) if direction == TO_HOST else (x.copy_from, np.ones(N, np.int32))))
        found = copy.result()
    finally:
        stop.set()
    for each in writers:
        each.result()
    assert direction == TO_DEVICE or is_one_number(found)
    assert is_one_number(x.numpy())


SLOW = """
extern "C" __global__ void slow(int* x, int n) {
    unsigned long long now, end;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(end));
    end += 30000000;
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now < end);
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] += 1;
}
"""


def is_one_number(found):
    return (found == found[0]).all()


@pytest.mark.parametrize("direction", [TO_HOST, TO_DEVICE])
def test_later_operations_wait_for_nothing_more(direction, replaced):
    """The block belongs to the copy's stream again."""
    x = ints(0, N)
    if direction == TO_HOST:
        x.numpy()
    else:
        x.copy_from(np.ones(N, np.int32))
    waits = []

    def wait(original, *arguments):
        waits.append(arguments)
        return original(*arguments)

    replaced("cuStreamWaitEvent", [c_void_p, c_void_p, c_uint], wait)
    cyrt.add(x, 1, out=x)
    y = x + 1
    cyrt.synchronize()
    assert not waits
    assert is_whole(y.numpy(), 2 if direction == TO_HOST else 3)


def test_an_encoders_copies_are_whole(halt):
    x, out = ints(0, N), np.zeros(N, np.int32)
    halted = halt(TO_HOST)

    def copy():
        with cyrt.CommandEncoder() as encoder:
            encoder.add_memcpy(out, x)

    task = Task(copy)
    assert halted.reached.wait(30)
    write = Task(add_one, x)
    assert write.waits()
    halted.go.set()
    task.result()
    write.result()
    assert is_whole(out, 0)


@pytest.mark.parametrize("megabytes", [1, 5, 16, 17, 40])
def test_chunks_of_the_true_size(megabytes):
    transfer._set_chunk_size(4 << 20)
    count = (megabytes << 20) // 4 + 3
    host = np.arange(count, dtype=np.int32)
    x = cyrt.asarray(host)
    cyrt.add(x, 1, out=x)
    assert np.array_equal(x.numpy(), host + 1)
    x[3:].copy_from(host[3:])
    cyrt.add(x, 2, out=x)
    assert np.array_equal(x[5:].numpy(), host[5:] + 2)


@pytest.mark.parametrize("size", [0, -1, 1 << 30])
def test_the_size_of_a_chunk_has_limits(size):
    with pytest.raises((ValueError, OverflowError)):
        transfer._set_chunk_size(size)


PROGRAM = """
import ctypes, os, threading
import numpy as np
import cyrt
from cyrt.driver import table
from cyrt.runtime import transfer
transfer._set_chunk_size(1024)
prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t,
                             ctypes.c_void_p)
reached, go, count = threading.Event(), threading.Event(), [0]

@prototype
def copy(*arguments):
    count[0] += 1
    if count[0] == 3:
        reached.set()
        go.wait(20)
    return original(*arguments)

x = cyrt.zeros(8192, dtype=cyrt.uint8)
cyrt.synchronize()
original = prototype(table.replace("cuMemcpyDtoHAsync",
                                   ctypes.cast(copy, ctypes.c_void_p).value))
errors = []

def read():
    try:
        x.numpy()
    except BaseException as error:
        errors.append(error)

thread = threading.Thread(target=read)
thread.start()
assert reached.wait(20)
"""


@pytest.mark.usefixtures("only_emulated")
def test_a_reset_during_a_copy(python):
    done = python(
        PROGRAM
        + """
reset = threading.Thread(target=cyrt.Device(0).reset)
reset.start()
go.set()
reset.join(20)
thread.join(20)
assert not reset.is_alive() and not thread.is_alive()
assert not errors or "reset" in str(errors[0]), errors
y = cyrt.ones(8192, dtype=cyrt.uint8)
assert (y.numpy() == 1).all()
"""
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("only_emulated")
def test_a_fault_during_a_copy(python):
    """Who waits for the memory gets the fault's error."""
    done = python(
        PROGRAM
        + """
waiting = threading.Thread(target=lambda: add())
def add():
    try:
        cyrt.add(x, 1, out=x)
    except BaseException as error:
        errors.append(error)
waiting.start()
bad = cyrt.Kernel('extern "C" __global__ void bad(int* x) { *(int*)16 = *x; }', "bad")
with cyrt.Stream():
    bad[1, 1](cyrt.zeros(1, dtype=cyrt.int32))
    try:
        cyrt.synchronize()
    except cyrt.CudaError:
        pass
go.set()
thread.join(20)
waiting.join(20)
assert not thread.is_alive() and not waiting.is_alive()
assert errors and all(isinstance(each, cyrt.CudaError) for each in errors), errors
cyrt.Device(0).reset()
assert (cyrt.ones(8192).numpy() == 1).all()
"""
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork")
def test_a_child_forked_during_a_copy(python):
    done = python(
        PROGRAM
        + """
import faulthandler, time
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(10, exit=True)
    for use in (x.numpy, lambda: cyrt.add(x, 1, out=x), cyrt.trim_memory):
        try:
            use()
        except Exception as error:
            assert "fork" in str(error), error
        else:
            os._exit(3)
    del x
    os._exit(0)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
go.set()
thread.join(20)
assert not errors
"""
    )
    assert done.returncode == 0, done.stderr


class Calls:
    """The driver calls, as they come, that put a copy to the device or an order on a stream."""

    def __init__(self, replaced):
        self.made = []
        for name, types, at in (
            (*TO_DEVICE, 3),
            ("cuEventRecord", [c_void_p, c_void_p], 1),
            ("cuStreamWaitEvent", [c_void_p, c_void_p, c_uint], 0),
        ):
            replaced(name, types, self.noting(name, at))

    def noting(self, name, at):
        def call(original, *arguments):
            event = arguments[1 - at] if name != TO_DEVICE[0] else None
            self.made.append((name, arguments[at], event))
            return original(*arguments)

        return call

    def last(self, name):
        return max(i for i, call in enumerate(self.made) if call[0] == name)


@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_later_work_on_the_stream_comes_after_a_copy_to_the_device(whose, replaced, driver):
    """The stream waits for the copy's own one. On another library's stream, an event after the wait
    is what others wait for."""
    handle = c_void_p()
    assert driver.cuStreamCreate(ctypes.byref(handle), 1) == 0
    stream = cyrt.Stream() if whose == "ours" else cyrt.Stream.wrap(handle.value)
    x = ints(0, N)
    calls = Calls(replaced)
    x.copy_from(np.ones(N, np.int32), stream)
    copy, wait = calls.last(TO_DEVICE[0]), calls.last("cuStreamWaitEvent")
    assert copy < wait
    own = calls.made[copy][1]
    _, waiting, event = calls.made[wait]
    assert waiting == stream.handle
    assert ("cuEventRecord", own, event) in calls.made[copy:wait]
    after = [call[1] for call in calls.made[wait:] if call[0] == "cuEventRecord"]
    assert after == ([] if whose == "ours" else [stream.handle])
    assert is_whole(x.numpy(), 1)
    stream.synchronize()
    del stream  # a wrapped handle is used until then
    assert driver.cuStreamDestroy_v2(handle) == 0


@pytest.mark.usefixtures("batched")
def test_the_stream_is_captured_when_a_copy_to_the_device_ends(halt, driver):
    """What is put on it then does not run, and cannot wait for what does."""
    x, y = ints(0, N), ints(0, N)
    address = y.__cuda_array_interface__["data"][0]
    with cyrt.CommandEncoder() as encoder:
        halted = halt()
        copy = Task(x.copy_from, np.ones(N, np.int32), encoder.stream)
        assert halted.reached.wait(30)
        with encoder.capture(writes=[y]) as stream:
            halted.go.set()
            copy.result()
            fill = c_uint64(address), c_ubyte(1), c_size_t(4 * N), c_void_p(stream.handle)
            assert driver.cuMemsetD8Async(*fill) == 0
    assert is_whole(x.numpy(), 1)
    assert is_whole(y.numpy(), 0x01010101)
