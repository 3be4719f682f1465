"""Random programs of several threads, checked against NumPy and against sums that are known.

``python tests/thread_programs.py --first 100 --count 50 --kind refused`` runs 50 of them. Each
thread computes with memory of its own beside NumPy. All threads add to shared memory, in ways that
commute. Meanwhile the collector ends objects whose ``__del__`` computes, completed handlers
compute, and signals interrupt the main thread. In programs of the kind "refused" the driver refuses
some graphs, and some of the kernels that are launched one by one instead: what these would have
written is right or raises the refusal, and everything else is right. Programs of the kind "devices"
use all devices.

A deadlock ends the process, with each thread's stack.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import gc
import itertools
import random
import signal
import sys
import threading
import time
import traceback
from ctypes import c_void_p

import numpy as np
from graph.outside import Library

import cyrt
from cyrt import settings
from cyrt.driver import table

KINDS = ("plain", "refused", "devices")
SIZE = 64
LARGE = 1 << 18  # elements of a block that is reused at once
BLOCK = 64
NOT_SUPPORTED = 801
MARK = 48  # bytes of shared memory of the launches that may be refused
TRIES = 200  # reads that others' refusals may interrupt before one succeeds
SECONDS = 60  # for a program, before it is a deadlock

SOURCE = r"""
typedef unsigned int u32;
extern "C" {
__global__ void axpb(u32* x, u32 a, u32 b, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = a * x[i] + b;
}
__global__ void mix(const u32* x, u32* y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 3 * x[i] + 5 * y[i] + 1;
}
__global__ void deep(u32** x, u32 b, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[0][i] += b;
}
}
"""


class Refusals:
    """The driver refuses every `period`-th graph, and every other marked kernel."""

    active = None

    def __init__(self, period: int):
        self.graphs, self.kernels, self.period = itertools.count(1), itertools.count(1), period
        self.refused = 0
        self.prototypes = {
            "cuGraphLaunch": (2, self.launch_graph),
            "cuLaunchKernelEx": (4, self.launch_kernel),
        }

    def launch_graph(self, executable, stream):
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
def told():
    """A refusal may be told to whoever launches a batch, at any call."""
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
    """Its values; None where they are lost. A refusal of another operation is told once."""
    for _ in range(TRIES):
        with told():
            return read(memory)
    return None


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


class Program:
    """What the threads of one program share."""

    def __init__(self, kind: str, seed: int):
        self.rng = random.Random(f"{kind} {seed}")
        self.kind, self.name = kind, f"{kind} program {seed}"
        self.failures, self.handlers, self.called = [], [], []
        self.devices = cyrt.Device.count() if kind == "devices" else 1
        self.shared = [
            Shared(name, device, outside)
            for device in range(self.devices)
            for name, outside in (("memory", False), ("outside memory", True))
        ]
        self.batched = settings.get("CYRT_GRAPHS") and not settings.get("CYRT_LAUNCH_BLOCKING")

    def fail(self, what: str) -> None:
        self.failures.append(f"{self.name}, {what}: {traceback.format_exc()}")

    def compute(self, what: str, number: int) -> None:
        """What finalizers, handlers and signals do, on whatever thread they come."""
        try:
            shared = self.shared[number % len(self.shared)]
            with cyrt.Device(shared.device), told():
                found = persistent_read((cyrt.full(SIZE, number, dtype=cyrt.uint32) + 1) * 2)
                assert found is not None
                assert (found == 2 * number + 2).all(), found
                shared.add(number, lambda: cyrt.add(shared.own, number, out=shared.own))
                if number % 3 == 0:
                    found = persistent_read(shared.own)
                    shared.check_whole(found)
        except BaseException as error:
            if not is_inside_driver(error):
                self.fail(what)

    def report_unraisable(self, unraisable) -> None:
        if not is_refusal(unraisable.exc_value):
            lines = traceback.format_exception(unraisable.exc_value)
            self.failures.append(f"{self.name}, in {unraisable.object}: {''.join(lines)}")

    def interrupt(self, *_) -> None:
        """A signal on the main thread; the next one comes a while after it."""
        if not inside_driver():
            self.compute("signal handler", self.signals.randint(1, 9))
        if self.interrupting:
            signal.setitimer(signal.ITIMER_REAL, self.signals.uniform(0.001, 0.02))

    def run(self) -> None:
        workers = [Worker(self, i, self.rng.getrandbits(32)) for i in range(self.rng.randint(2, 8))]
        threads = [threading.Thread(target=worker.run) for worker in workers[1:]]
        self.signals = random.Random(self.rng.getrandbits(32))
        self.interrupting = self.rng.random() < 0.7
        gc.set_threshold(self.rng.choice((20, 70, 300)), 3, 3)
        before = signal.signal(signal.SIGALRM, self.interrupt)
        sys.unraisablehook = self.report_unraisable
        refusals = (
            Refusals(self.rng.choice((1, 2, 5)))
            if self.kind == "refused" and self.batched
            else contextlib.nullcontext()
        )
        try:
            with refusals:
                for thread in threads:
                    thread.start()
                if self.interrupting:
                    signal.setitimer(signal.ITIMER_REAL, 0.005)
                workers[0].run()
                for thread in threads:
                    thread.join()
                self.interrupting = False
                signal.setitimer(signal.ITIMER_REAL, 0)
                self.check(workers)
        finally:
            self.interrupting = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            sys.unraisablehook = sys.__unraisablehook__
            gc.set_threshold(700, 10, 10)
        if self.failures:
            raise AssertionError("\n".join(self.failures))

    def check(self, workers) -> None:
        try:
            gc.collect()
            for device in range(self.devices):
                with cyrt.Device(device):
                    for _ in range(TRIES):
                        with told():
                            cyrt.synchronize()
                            break
            end = time.monotonic() + 20
            while (
                len(self.called) < len(self.handlers)
                and not self.failures
                and time.monotonic() < end
            ):
                time.sleep(0.0005)
            assert sorted(self.called) == sorted(self.handlers), "handlers"
            for worker in workers:
                if worker.finished:
                    worker.check_all()
                worker.streams.clear()
            if not self.failures:  # a call that failed may have done its work or not
                for shared in self.shared:
                    shared.check()
        except BaseException:
            self.fail("at its end")


def choice_name(streams: list, choice) -> str:
    return ("stream 0", "stream 1", "encoder", "default stream", "shared stream")[
        streams.index(choice)
    ]


class Ends:
    """In a circle: the collector ends it, on whatever thread it runs."""

    numbers = itertools.count()

    def __init__(self, program: Program, number: int, held):
        self.program, self.number, self.held = program, number, held
        self.circle = self

    def __del__(self):
        if inside_driver():  # later, then
            Ends(self.program, self.number, self.held)
        else:
            self.program.compute("finalizer", self.number)


class Worker:
    """One thread's steps."""

    def __init__(self, program: Program, index: int, seed: int):
        self.program, self.index, self.rng = program, index, random.Random(seed)
        self.finished = False
        self.pairs = [[] for _ in range(program.devices)]
        self.streams = [[] for _ in range(program.devices)]
        self.encoders = []
        self.device = 0
        self.done = []
        self.steps = [
            getattr(self, name) for name, weight in WEIGHTS.items() for _ in range(weight)
        ]

    def run(self) -> None:
        try:
            for device in range(self.program.devices):
                with cyrt.Device(device):
                    self.encoders.append(cyrt.CommandEncoder())
                    self.streams[device] = [cyrt.Stream(), cyrt.Stream(), self.encoders[-1].stream]
                    self.device = device
                    for _ in range(3):
                        self.fresh()
            for _ in range(self.rng.randint(2, 6)):
                self.block()
            if self.rng.random() < 0.5:  # else the thread's end launches what is left
                self.check_all()
            for encoder in self.encoders:
                with told():
                    encoder.close()
            self.finished = True
        except BaseException:
            self.program.fail(f"thread {self.index} after {self.done[-6:]}")

    def block(self) -> None:
        """Some steps on one device, and mostly on a stream of the thread's own or a shared one."""
        self.device = self.rng.randrange(self.program.devices)
        streams = [
            *self.streams[self.device],
            contextlib.nullcontext(),
            next(s.stream for s in self.program.shared if s.device == self.device),
        ]
        choice = self.rng.choice(streams)
        # Groups and captures are the stream's: they are for those of the thread's own.
        self.alone = choice is not streams[-1]
        with told(), cyrt.Device(self.device), choice:
            for _ in range(self.rng.randint(3, 15)):
                step = self.rng.choice(self.steps)
                self.done.append(f"{step.__name__} on {choice_name(streams, choice)}")
                with told():
                    step()

    # What the steps use.

    @property
    def mine(self) -> list[Pair]:
        return self.pairs[self.device]

    def pick(self, arrays: bool = False) -> Pair:
        found = [pair for pair in self.mine if pair.is_array or not arrays]
        return self.rng.choice(found) if found else self.fresh(arrays)

    def number(self) -> int:
        return self.rng.randint(1, 9)

    def append(self, host, own, doubtful=False) -> Pair:
        self.mine.append(Pair(host, own, doubtful))
        if len(self.mine) > 8:
            self.mine.pop(self.rng.randrange(8))  # freed with its operations recorded
        return self.mine[-1]

    def change(self, pair: Pair, after: np.ndarray, action, doubtful=None) -> None:
        """An operation in place. A call that raises did it or did not."""
        before = pair.host
        pair.steps.append((self.done[-1], before))
        try:
            action()
        except cyrt.CudaError as error:
            if not is_refusal(error):
                raise
            pair.steps[-1] = f"{self.done[-1]}, which raised,", before
            pair.doubtful |= bool(doubtful)
            found = persistent_read(pair.own)
            if found is None:
                assert pair.doubtful, f"lost, with no refused operation before it: {pair.history()}"
                self.mine.remove(pair)
                return
            pair.host = after if (found == after).all() else before
            pair.compare(found)
        else:
            pair.steps[-1] = self.done[-1], before  # with the numbers by now
            pair.host = after
            if doubtful is not None:
                pair.doubtful = doubtful

    def check_all(self) -> None:
        for device, pairs in enumerate(self.pairs):
            with cyrt.Device(device):
                for pair in pairs:
                    pair.check()

    def launch(self, name: str, *arguments, marked: bool = False) -> None:
        kernel = MODULE[name]
        self.done[-1] += f" {name}{arguments[1:-1]}"
        if marked:
            kernel[1, BLOCK, MARK](*arguments)
        else:
            kernel[1, BLOCK](*arguments)

    # The steps.

    def fresh(self, array=None) -> Pair:
        host = np.array([self.rng.randrange(1 << 32) for _ in range(SIZE)], np.uint32)
        is_array = array or self.rng.random() < 0.7
        for _ in range(TRIES):
            with told():
                if is_array:
                    return self.append(host, cyrt.asarray(host))
                own = cyrt.Buffer(host.nbytes)
                own.copy_from(host)
                return self.append(host, own)
        raise AssertionError(f"each of {TRIES} copies was refused")

    def chain(self) -> None:
        """Temporaries are freed with their operations recorded."""
        a, b, k = self.pick(arrays=True), self.pick(arrays=True), self.number()
        host = (a.host + b.host) * np.uint32(k) - b.host
        self.append(host, (a.own + b.own) * k - b.own, a.doubtful or b.doubtful)

    def in_place(self) -> None:
        a, b = self.pick(arrays=True), self.pick(arrays=True)
        own, k = a.own, self.rng.randrange(SIZE)
        after = a.host.copy()
        after[k:] += b.host[k:]
        self.change(
            a, after, lambda: cyrt.add(own[k:], b.own[k:], out=own[k:]), a.doubtful or b.doubtful
        )

    def kernel(self) -> None:
        x, a, b = self.pick(), self.number(), self.number()
        self.change(
            x,
            np.uint32(a) * x.host + np.uint32(b),
            lambda: self.launch("axpb", x.own, a, b, SIZE),
            x.doubtful,
        )

    def refusable(self) -> None:
        x, a, b = self.pick(), self.number(), self.number()
        self.change(
            x,
            np.uint32(a) * x.host + np.uint32(b),
            lambda: self.launch("axpb", x.own, a, b, SIZE, marked=True),
            x.doubtful or Refusals.active is not None,
        )

    def mix(self) -> None:
        x, y = self.pick(), self.pick()
        if x is not y:
            self.change(
                y,
                np.uint32(3) * x.host + np.uint32(5) * y.host + np.uint32(1),
                lambda: self.launch("mix", x.own, y.own, SIZE),
                x.doubtful or y.doubtful,
            )

    def fill(self) -> None:
        x, k = self.pick(), self.number()
        self.change(x, np.full(SIZE, k, np.uint32), lambda: x.own.fill(np.uint32(k)), False)

    def write(self) -> None:
        x = self.pick()
        host = np.array([self.rng.randrange(99) for _ in range(SIZE)], np.uint32)
        source = host.copy()
        self.change(
            x,
            host,
            lambda: (
                x.own.copy_from(source)
                if not x.is_array
                else x.own.__setitem__(..., cyrt.asarray(source))
            ),
            False,
        )
        source[:] = 0  # staged at the call

    def copy(self) -> None:
        x, y = self.pick(), self.pick()
        if x is not y and not x.is_array:
            self.change(x, y.host.copy(), lambda: x.own.copy_from(y.own), y.doubtful)

    def peer_copy(self) -> None:
        """Between devices, where there are several."""
        other = self.rng.randrange(self.program.devices)
        pair = self.pick()
        if not self.pairs[other]:
            return
        source = self.rng.choice(self.pairs[other])
        if not pair.is_array and source is not pair:
            self.change(
                pair, source.host.copy(), lambda: pair.own.copy_from(source.own), source.doubtful
            )

    def look(self) -> None:
        self.pick().check()

    def large(self) -> None:
        """Blocks of this size are reused at once."""
        k = self.number()
        x = cyrt.full(LARGE, k, dtype=cyrt.uint32)
        x = (x + 1) * 2
        x = x - k
        found = persistent_read(x[LARGE - 9 :])
        assert found is not None
        assert (found == k + 2).all()

    def event(self) -> None:
        first, second = self.rng.choices(self.streams[self.device], k=2)
        mark = cyrt.Event(self.device)
        mark.record(first)
        mark.wait(second)
        if self.rng.random() < 0.3:
            mark.synchronize()
            assert mark.done

    def stream(self) -> None:
        """A short-lived stream, which comes after another."""
        with cyrt.Stream() as stream:
            stream.wait(self.rng.choice(self.streams[self.device]))
            self.kernel()

    def commit(self) -> None:
        cyrt.commit()

    def synchronize(self) -> None:
        cyrt.synchronize()

    def trim(self) -> None:
        cyrt.trim_memory(self.device)

    def encoder(self) -> None:
        """A short-lived one; handlers compute once its batch has ended."""
        x, a, k = self.pick(), self.number(), self.number()
        program, number = self.program, len(self.program.handlers)
        key = (self.index, len(self.done), number)

        def handler():
            program.compute("handler", k)
            program.called.append(key)

        encoder = cyrt.CommandEncoder()
        self.change(
            x,
            np.uint32(a) * x.host + np.uint32(k),
            lambda: encoder.add_kernel(MODULE["axpb"], 1, BLOCK, (x.own, a, k, SIZE)),
            x.doubtful,
        )
        encoder.keep(Ends(program, k, None))
        program.handlers.append(key)
        encoder.add_completed_handler(handler)
        if self.rng.random() < 0.5:
            with told():
                encoder.commit()
        if self.rng.random() < 0.7 or Refusals.active is not None:
            with told():
                encoder.close()
        else:
            circle = [encoder]  # the collector closes it, on whatever thread it runs
            circle.append(circle)

    def group(self) -> None:
        if not self.alone:
            return
        pairs = self.rng.sample(self.mine, min(len(self.mine), 5))
        with cyrt.concurrent():
            for pair in pairs:
                k = self.number()
                self.change_in_group(pair, k)

    def change_in_group(self, pair: Pair, k: int) -> None:
        after = pair.host * np.uint32(k) + np.uint32(1)
        self.change(pair, after, lambda: self.launch("axpb", pair.own, k, 1, SIZE), pair.doubtful)

    def batch(self) -> None:
        """Other names of memory, side by side with its own."""
        if not self.alone:
            return
        pair = self.pick()
        with cyrt.batch():
            for _ in range(self.rng.randint(1, 5)):
                self.outside(pair)
                if pair not in self.mine:
                    return  # lost
                k = self.number()
                self.change(
                    pair,
                    pair.host + np.uint32(k),
                    lambda k=k: self.launch("axpb", pair.own, 1, k, SIZE),
                    pair.doubtful,
                )

    def capture(self) -> None:
        if self.device or not LIBRARY:  # its stand-in of a library knows one device
            return
        x = self.pick()
        k = self.number()

        def action():
            address = x.own.ptr
            with cyrt.CommandEncoder() as encoder:
                with encoder.capture(writes=[x.own]) as stream:
                    LIBRARY[0].memset(stream.handle, address, k, 4 * SIZE)
                if self.rng.random() < 0.5:
                    encoder.commit()

        self.change(
            x,
            np.full(4 * SIZE, k, np.uint8).view(np.uint32),
            action,
            x.doubtful or Refusals.active is not None,
        )

    def outside(self, pair=None) -> None:
        """By another name than its own."""
        x, k = pair or self.pick(), self.number()
        way = self.rng.choice(("pointer", "interface", "dlpack"))
        self.done[-1] += f" by {way}"

        def action():
            if way == "dlpack" and x.is_array:
                view = cyrt.from_dlpack(x.own)
                cyrt.add(view, k, out=view)
                return
            name = (
                Foreign(x.own.ptr, x.own)
                if way == "interface"
                else cyrt.pointer(x.own.ptr, 4 * SIZE, self.device, owner=x.own)
            )
            self.launch("axpb", name, 1, k, SIZE)

        self.change(x, x.host + np.uint32(k), action, x.doubtful)
        if pair is None:
            with told():
                cyrt.commit()  # a CommandEncoder leaves that to its user

    def add_shared(self) -> None:
        k = self.number()
        shared = self.rng.choice([s for s in self.program.shared if s.device == self.device])
        own = shared.own
        ways = ["array", "temporary", "kernel", "stream", "encoder"]
        if shared.outside:
            ways += ["pointer", "interface", "undeclared"]
        way = self.rng.choice(ways)
        self.done[-1] += f" by {way}"

        def action():
            if way == "array":
                cyrt.add(own, k, out=own)
            elif way == "temporary":
                cyrt.add(own, cyrt.full(SIZE, k, dtype=cyrt.uint32), out=own)
            elif way == "kernel":
                self.launch("axpb", own, 1, k, SIZE)
            elif way == "stream":
                with shared.stream:
                    self.launch("axpb", own, 1, k, SIZE)
            elif way == "encoder":
                self.encoders[self.device].add_kernel(MODULE["axpb"], 1, BLOCK, (own, 1, k, SIZE))
            elif way == "pointer":
                self.launch("axpb", cyrt.pointer(shared.address, 4 * SIZE, self.device), 1, k, SIZE)
            elif way == "interface":
                self.launch("axpb", Foreign(shared.address, own), 1, k, SIZE)
            else:
                self.launch("deep", shared.table, k, SIZE)

        shared.add(k, action)

    def look_shared(self) -> None:
        shared = self.rng.choice([s for s in self.program.shared if s.device == self.device])
        found = persistent_read(shared.own if self.rng.random() < 0.5 else shared.own.copy())
        assert found is not None, f"{shared.name} is lost"
        shared.check_whole(found)

    def circle(self) -> None:
        Ends(self.program, self.number(), self.pick().own)


WEIGHTS = {
    "fresh": 3,
    "chain": 5,
    "in_place": 4,
    "kernel": 4,
    "refusable": 2,
    "mix": 4,
    "fill": 2,
    "write": 2,
    "copy": 2,
    "peer_copy": 2,
    "look": 3,
    "large": 1,
    "event": 2,
    "stream": 1,
    "commit": 2,
    "synchronize": 1,
    "trim": 1,
    "encoder": 3,
    "group": 2,
    "batch": 2,
    "capture": 2,
    "outside": 2,
    "add_shared": 10,
    "look_shared": 3,
    "circle": 4,
}
MODULE = None
LIBRARY = []


def main() -> None:
    global MODULE
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, default="plain")
    options = parser.parse_args()
    MODULE = cyrt.Module(SOURCE)
    LIBRARY.append(Library())
    sys.setswitchinterval(1e-5)
    failed = 0
    for seed in range(options.first, options.first + options.count):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            Program(options.kind, seed).run()
        except AssertionError as error:
            failed += 1
            print(error, flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"{options.count} programs of the kind {options.kind} ran, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
