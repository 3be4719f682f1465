"""Random programs of several threads, checked against NumPy and against sums that are known.

``python tests/thread_programs.py --first 100 --count 50 --kind refused`` runs 50 of them. Each
thread computes with memory of its own beside NumPy. All threads add to shared memory, in ways that
commute. Meanwhile the collector ends objects whose ``__del__`` computes, completed handlers
compute, and signals interrupt the main thread. In programs of the kind "refused" the driver refuses
some graphs, and some of the kernels that are launched one by one instead: what these would have
written is right or raises the refusal, and everything else is right. Programs of the kind "devices"
use all devices. Those of the kind "limited" have little memory, of which they use many sizes. In
most programs copies between host and device have several chunks. Handlers compute on streams on
which threads have `batch()` and `concurrent()` blocks open. Forked children end at once, without
the driver.

A deadlock ends the process, with each thread's stack.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import os
import random
import signal
import sys
import threading
import time
import traceback
import warnings

from graph.outside import Library
from thread_memory import (
    SIZE,
    TRIES,
    Refusals,
    Shared,
    ignore_refusals,
    inside_driver,
    is_inside_driver,
    is_refusal,
    persistent_read,
)
from thread_workers import LIMIT, MOST_FORKS, MOST_SIZED, SOURCE, Worker

import cyrt
from cyrt import settings
from cyrt.runtime import transfer

KINDS = ("plain", "refused", "devices", "limited")
SECONDS = 300  # a program that takes longer is a deadlock


class Program:
    """What the threads of one program share."""

    def __init__(self, kind: str, seed: int, module: cyrt.Module, library: Library):
        self.module, self.library = module, library
        self.rng = random.Random(f"{kind} {seed}")
        self.kind, self.name = kind, f"{kind} program {seed}"
        self.failures, self.handlers, self.called = [], [], []
        self.room, self.forks, self.lock = MOST_SIZED, MOST_FORKS, threading.Lock()
        self.devices = cyrt.Device.count() if kind == "devices" else 1
        self.shared = [
            Shared(name, device, outside)
            for device in range(self.devices)
            for name, outside in (("memory", False), ("outside memory", True))
        ]
        self.batched = settings.get("CYRT_GRAPHS") and not settings.get("CYRT_LAUNCH_BLOCKING")

    def take_room(self, nbytes: int) -> bool:
        """Whether memory of any size may have so many bytes more; the caller gives them back."""
        with self.lock:
            if nbytes > self.room:
                return False
            self.room -= nbytes
            return True

    def give_room(self, nbytes: int) -> None:
        with self.lock:
            self.room += nbytes

    def take_fork(self) -> bool:
        """Whether one more child may be forked."""
        with self.lock:
            self.forks -= 1
            return self.forks >= 0

    def fail(self, what: str) -> None:
        self.failures.append(f"{self.name}, {what}: {traceback.format_exc()}")

    def compute(self, what: str, number: int) -> None:
        """What finalizers, handlers and signals do, on whatever thread they come."""
        try:
            shared = self.shared[number % len(self.shared)]
            with cyrt.Device(shared.device), ignore_refusals():
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
        chunk = transfer._set_chunk_size(self.rng.choice((16, 40, 100, 1 << 22)))
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
            transfer._set_chunk_size(chunk)
        if self.failures:
            raise AssertionError("\n".join(self.failures))

    def check(self, workers) -> None:
        try:
            gc.collect()
            for device in range(self.devices):
                with cyrt.Device(device):
                    for _ in range(TRIES):
                        with ignore_refusals():
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, default="plain")
    options = parser.parse_args()
    if options.kind == "limited":
        os.environ["CYRT_MEMORY_LIMIT"] = str(LIMIT)
    # Python 3.12 warns of forks beside threads.
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    module, library = cyrt.Module(SOURCE), Library()
    sys.setswitchinterval(1e-5)
    failed = 0
    for seed in range(options.first, options.first + options.count):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            Program(options.kind, seed, module, library).run()
        except AssertionError as error:
            failed += 1
            print(error, flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"{options.count} programs of the kind {options.kind} ran, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
