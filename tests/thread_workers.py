"""The threads of random programs: their steps, and how often each is chosen."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
from typing import TYPE_CHECKING

import numpy as np
from thread_memory import (
    MARK,
    SIZE,
    TRIES,
    Foreign,
    Pair,
    Refusals,
    await_child,
    end_child,
    ignore_refusals,
    inside_driver,
    is_refusal,
    persistent_read,
)

import cyrt

if TYPE_CHECKING:
    from thread_programs import Program

LARGE = 1 << 18  # elements of a block that is reused at once
MB = 1 << 20
END = 256  # bytes that are written at both ends of memory of any size
LIMIT = 128 * MB  # the pool's limit of programs of the kind "limited"
# What all threads hold at once of memory of any size. It fits in the limit by the pool's rule:
# blocks are at most 1.25 * 1.125 times as large, a quarter of the limit is in parts, and there are
# slabs of 4 MB for what is small.
MOST_SIZED = 36 * MB
LEAST_SIZED = 2 * MB  # what a smaller one counts as
BLOCK = 64
MOST_FORKS = 2  # a program's: each takes as long as many other steps

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
    "sized": 2,
    "event": 2,
    "stream": 1,
    "commit": 2,
    "synchronize": 1,
    "trim": 1,
    "encoder": 3,
    "group": 2,
    "batch": 2,
    "steps_in_batch": 2,
    "fork": 1,
    "capture": 2,
    "outside": 2,
    "add_shared": 10,
    "look_shared": 3,
    "circle": 4,
}


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
        self.sizes = []  # memory of any size, with its number
        weights = WEIGHTS | ({"sized": 30} if program.kind == "limited" else {})
        self.steps = [
            getattr(self, name) for name, weight in weights.items() for _ in range(weight)
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
                with ignore_refusals():
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
        with ignore_refusals(), cyrt.Device(self.device), choice:
            for _ in range(self.rng.randint(3, 15)):
                step = self.rng.choice(self.steps)
                self.done.append(f"{step.__name__} on {choice_name(streams, choice)}")
                with ignore_refusals():
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
        while self.sizes:
            self.check_sized()
        for device, pairs in enumerate(self.pairs):
            with cyrt.Device(device):
                for pair in pairs:
                    pair.check()

    def launch(self, name: str, *arguments, marked: bool = False) -> None:
        kernel = self.program.module[name]
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
            with ignore_refusals():
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
        if not self.program.take_room(4 * MB):
            return
        try:
            self.compute_large(self.number())
        finally:
            self.program.give_room(4 * MB)

    def compute_large(self, k: int) -> None:
        x = cyrt.full(LARGE, k, dtype=cyrt.uint32)
        x = (x + 1) * 2
        x = x - k
        found = persistent_read(x[LARGE - 9 :])
        assert found is not None
        assert (found == k + 2).all()

    def sized(self) -> None:
        """Memory of 1 KB to 16 MB. What the limit has room for is never refused."""
        if self.sizes and self.rng.random() < 0.5:
            self.check_sized()
        if self.program.kind == "limited" and self.rng.random() < 0.1:
            with contextlib.suppress(cyrt.OutOfMemoryError):
                raise AssertionError(f"more than the limit: {cyrt.Buffer(LIMIT + 1)}")
        nbytes, number = 4 * int(2 ** self.rng.uniform(8, 22)), self.rng.randrange(1 << 31)
        self.done[-1] += f" {nbytes:,}"
        if not self.program.take_room(max(nbytes, LEAST_SIZED)):
            return
        own = None
        try:
            own = cyrt.Buffer(nbytes, self.device)
            own[:END].fill(np.uint32(number))
            own[nbytes - END :].fill(np.uint32(number + 1))
            self.sizes.append((own, number))
        except cyrt.CudaError as error:
            del own
            self.program.give_room(max(nbytes, LEAST_SIZED))
            if not is_refusal(error):
                raise

    def check_sized(self) -> None:
        """Read the ends of one of them, and free it."""
        own, number = self.sizes.pop(self.rng.randrange(len(self.sizes)))
        nbytes = own.nbytes
        for view, value in ((own[:END], number), (own[nbytes - END :], number + 1)):
            found = persistent_read(view)
            assert found is not None or Refusals.active is not None, f"{nbytes:,} bytes are lost"
            assert found is None or (found == value).all(), f"{nbytes:,} bytes: {found}, {value}"
        del own, view
        self.program.give_room(max(nbytes, LEAST_SIZED))

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
        program, number, device = self.program, len(self.program.handlers), self.device
        key = (self.index, len(self.done), number)

        # Perhaps a stream on which other threads have blocks open.
        streams = [shared.stream for shared in program.shared if shared.device == device]
        stream = self.rng.choice([contextlib.nullcontext(), *streams])

        def handler():
            with cyrt.Device(device), ignore_refusals(), stream:
                program.compute("handler", k)
            program.called.append(key)

        encoder = cyrt.CommandEncoder()
        self.change(
            x,
            np.uint32(a) * x.host + np.uint32(k),
            lambda: encoder.add_kernel(self.program.module["axpb"], 1, BLOCK, (x.own, a, k, SIZE)),
            x.doubtful,
        )
        encoder.keep(Ends(program, k, None))
        program.handlers.append(key)
        encoder.add_completed_handler(handler)
        if self.rng.random() < 0.5:
            with ignore_refusals():
                encoder.commit()
        if self.rng.random() < 0.7 or Refusals.active is not None:
            with ignore_refusals():
                encoder.close()
        else:
            circle = [encoder]  # the collector closes it, on whatever thread it runs
            circle.append(circle)

    def group(self) -> None:
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

    def steps_in_batch(self) -> None:
        """Whatever they need launches what is recorded; the rest is launched at the block's end."""
        with cyrt.batch():
            for _ in range(self.rng.randint(1, 6)):
                step = self.rng.choice(self.steps)
                self.done.append(f"{step.__name__} in batch()")
                with ignore_refusals():
                    step()

    def fork(self) -> None:
        """A child that ends at once."""
        if not self.program.take_fork():
            return
        x = self.pick()
        child = os.fork()
        if child == 0:
            end_child(lambda: x.own.fill(np.uint32(1)))
        await_child(child)

    def capture(self) -> None:
        if self.device:  # the stand-in of a library knows one device
            return
        x = self.pick()
        k = self.number()

        def action():
            address = x.own.ptr
            with cyrt.CommandEncoder() as encoder:
                with encoder.capture(writes=[x.own]) as stream:
                    self.program.library.memset(stream.handle, address, k, 4 * SIZE)
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
            with ignore_refusals():
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
                self.encoders[self.device].add_kernel(
                    self.program.module["axpb"], 1, BLOCK, (own, 1, k, SIZE)
                )
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
