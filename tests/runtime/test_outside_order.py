"""Order of memory that others use, too: handed out by cyrt, or theirs."""

from __future__ import annotations

import ctypes
import textwrap
import threading
import time
from ctypes import c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

import gates
import numpy as np
import pytest
from gates import Gate
from order_programs import N, asynchronous, ends, graphs, in_thread, ints

import cyrt
from cyrt.jit import compiler


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


class TheirKernel:
    """Another library's kernel, which writes when the gate opens."""

    def __init__(self, driver, gate):
        self.driver, self.gate = driver, gate
        module, self.function = c_void_p(), c_void_p()
        code = compiler.compile(gates.SOURCE, arch="compute_90").code
        assert driver.cuModuleLoadData(ctypes.byref(module), code) == 0
        name = b"write_late"
        assert driver.cuModuleGetFunction(ctypes.byref(self.function), module, name) == 0

    def write(self, stream, address, value, n):
        values = c_uint64(self.gate.memory.ptr), c_uint64(address), c_int(value), c_int(n)
        pointers = (c_void_p * 4)(*[ctypes.addressof(value) for value in values])
        sizes = [c_uint(1)] * 6
        stream = c_void_p(stream)
        code = self.driver.cuLaunchKernel(self.function, *sizes, c_uint(0), stream, pointers, None)
        assert code == 0


@asynchronous
@pytest.mark.parametrize("waited", [False, True])
@pytest.mark.parametrize("whose", ["cyrt's", "theirs"])
def test_undeclared_memory_comes_after_others_on_a_stream_that_cyrt_never_used(
    gate, driver, whose, waited
):
    """They have the handle: what they put there is waited for, also behind a wait of cyrt's."""
    kernel = cyrt.Kernel(
        """
        struct Pair { const int* x; int* y; };
        extern "C" __global__ void copy(Pair p) { *p.y = *p.x; }
        """,
        "copy",
    )
    x, y, late = ints(0, 1), ints(0, 1), TheirKernel(driver, gate)
    pair = np.array([x.ptr, y.ptr], np.uint64).tobytes()
    handle = c_void_p()
    assert driver.cuStreamCreate(ctypes.byref(handle), 1) == 0
    # No other test has streams of this priority, which it would leave to this one.
    stream = cyrt.Stream.wrap(handle.value) if whose == "theirs" else cyrt.Stream(priority=-2)
    cyrt.synchronize()
    if waited:
        stream.synchronize()
    timer = gate.open_in(0.2)
    late.write(stream.handle, x.ptr, 7, 1)
    kernel[1, 1](pair)
    assert int(y[0]) == 7
    timer.join()
    cyrt.synchronize()
    stream.synchronize()
    del stream  # a wrapped handle is used until then
    assert driver.cuStreamDestroy_v2(handle) == 0


@asynchronous
def test_an_undeclared_kernel_that_has_ended_delays_nothing(gate):
    """Other streams do not wait for what came after it on its stream."""
    kernel = cyrt.Kernel(
        "struct Pair { int* x; int value; };"
        'extern "C" __global__ void put(Pair p) { *p.x = p.value; }',
        "put",
    )
    x, later, found = ints(0, 1), cyrt.Stream(), []
    with cyrt.Stream() as own:  # no test has exported its handle, which others would wait for
        kernel[1, 1](np.array([x.ptr, 7], np.uint64).tobytes())
        own.synchronize()
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
