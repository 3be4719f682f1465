"""What threads of random programs share: refusals, and memory checked beside NumPy."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import os
import signal
import sys
import time
import traceback
from ctypes import c_void_p

import numpy as np

import cyrt
from cyrt.driver import table

SIZE = 64
NOT_SUPPORTED = 801
MARK = 48  # bytes of shared memory of the launches that may be refused
CHILD_SECONDS = 20  # a forked child that takes longer hangs
TRIES = 200  # reads that others' refusals may interrupt before one succeeds


class Refusals:
    """The driver refuses every `period`-th graph, and every other marked kernel."""

    active = None

    def __init__(self, period: int):
        self.graphs, self.kernels, self.period = itertools.count(1), itertools.count(1), period
        self.refused, self.process = 0, os.getpid()
        self.prototypes = {
            "cuGraphLaunch": (2, self.launch_graph),
            "cuLaunchKernelEx": (4, self.launch_kernel),
        }

    def launch_graph(self, executable, stream):
        if os.getpid() != self.process:
            os._exit(2)  # a forked child calls the driver
        if next(self.graphs) % self.period == 0:
            return NOT_SUPPORTED
        return self.originals["cuGraphLaunch"](executable, stream)

    def launch_kernel(self, config, *arguments):
        # gridDim, blockDim, sharedMemBytes
        smem = ctypes.cast(config, ctypes.POINTER(ctypes.c_uint))[6]
        if smem == MARK and next(self.kernels) % 2:
            self.refused += 1
            return NOT_SUPPORTED
        return self.originals["cuLaunchKernelEx"](config, *arguments)

    def __enter__(self):
        self.callbacks, self.originals, self.before = [], {}, {}
        for name, (count, function) in self.prototypes.items():
            prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[c_void_p] * count)
            self.callbacks.append(prototype(function))
            address = ctypes.cast(self.callbacks[-1], c_void_p).value
            self.before[name] = table.replace(name, address)
            self.originals[name] = prototype(self.before[name])
        Refusals.active = self
        return self

    def __exit__(self, *exc):
        Refusals.active = None
        for name, address in self.before.items():
            table.replace(name, address)


def inside_driver() -> bool:
    """Whether this code interrupts a call of the driver's, where nothing can be launched."""
    codes = {Refusals.launch_graph.__code__, Refusals.launch_kernel.__code__}
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


def is_refusal(error: BaseException) -> bool:
    return (
        Refusals.active is not None
        and isinstance(error, cyrt.CudaError)
        and error.code == NOT_SUPPORTED
    )


def is_inside_driver(error: BaseException) -> bool:
    """Whether the error says that the code interrupts a call of the driver's.

    The collector may run while ctypes converts the arguments of such a call, before its Python code
    begins: `inside_driver` cannot see that.
    """
    return (
        Refusals.active is not None
        and isinstance(error, RuntimeError)
        and "inside a call of the driver's" in str(error)
    )


@contextlib.contextmanager
def ignore_refusals():
    """Ignore a refusal, which any call that launches a batch may raise."""
    try:
        yield
    except cyrt.CudaError as error:
        if not is_refusal(error):
            raise


def read(memory) -> np.ndarray:
    if isinstance(memory, cyrt.Array):
        return memory.numpy()
    found = np.empty(memory.nbytes // 4, np.uint32)
    memory.copy_to(found)
    return found


def persistent_read(memory):
    """Its values; None where they are lost. A refusal of another operation is raised once."""
    for _ in range(TRIES):
        with ignore_refusals():
            return read(memory)
    return None


def end_child(call) -> None:
    """End a forked child: nothing can be used there, and objects end without the driver."""
    status = 1
    try:
        for use in (cyrt.synchronize, call):
            told = ""
            try:
                use()
            except RuntimeError as error:
                told = str(error)
            assert "fork" in told, f"a forked child used the device: {told}"
        gc.collect()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def await_child(child: int) -> None:
    end = time.monotonic() + CHILD_SECONDS
    done, status = os.waitpid(child, os.WNOHANG)
    while not done and time.monotonic() < end:
        time.sleep(0.001)
        done, status = os.waitpid(child, os.WNOHANG)
    if not done:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert done, "a forked child hangs"
    assert status == 0, f"a forked child ended with the status {status:#x}"


class Foreign:
    """Another library's view of memory."""

    def __init__(self, address: int, owner):
        self.owner = owner
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (SIZE,),
            "typestr": "<u4",
            "data": (address, False),
        }


class Shared:
    """Memory that everybody adds to. `outside`: its address was handed out."""

    def __init__(self, name: str, device: int, outside: bool):
        self.name, self.device, self.outside = f"{name} of device {device}", device, outside
        self.sure, self.maybe = [], []  # what was added; what an interrupted call added or not
        with cyrt.Device(device):
            self.own = cyrt.zeros(SIZE, dtype=cyrt.uint32)
            if outside:
                self.address = self.own.ptr
                self.table = cyrt.Buffer(8)
                self.table.copy_from(np.array([self.address], np.uint64))
            self.stream = cyrt.Stream()
            cyrt.synchronize()

    def add(self, number: int, action) -> None:
        try:
            action()
        except RuntimeError as error:
            self.maybe.append(number)
            if not is_refusal(error):
                raise
        else:
            self.sure.append(number)

    def check_whole(self, found) -> None:
        """Whoever reads finds whole operations."""
        assert (found == found[0]).all(), f"parts of {self.name}: {found}"

    def check(self) -> None:
        found = persistent_read(self.own)
        assert found is not None, f"{self.name} is lost"
        self.check_whole(found)
        rest, sums = int(found[0]) - sum(self.sure), {0}
        for number in self.maybe:
            sums |= {total + number for total in sums}
        assert rest in sums, (
            f"{self.name}: {found[0]}, expected {sum(self.sure)} and some of {self.maybe}"
        )


class Pair:
    """The same values in both libraries. `doubtful`: a refused operation may have lost them."""

    def __init__(self, host: np.ndarray, own, doubtful: bool = False):
        self.host, self.own, self.doubtful = host, own, doubtful
        self.steps = []  # each change, with the values before it

    @property
    def is_array(self) -> bool:
        return isinstance(self.own, cyrt.Array)

    def check(self) -> None:
        found = persistent_read(self.own)
        if found is None:
            assert self.doubtful, f"lost, with no refused operation before it: {self.history()}"
        else:
            self.compare(found)

    def compare(self, found: np.ndarray) -> None:
        np.testing.assert_array_equal(found, self.host, err_msg=self.history(found))

    def history(self, found: np.ndarray | None = None) -> str:
        """The changes so far; those before which the values were the ones found are marked."""
        return ", ".join(
            step + (" (found the values before it)" if np.array_equal(found, before) else "")
            for step, before in self.steps
        )
