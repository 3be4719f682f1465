"""The thread that compiles fused kernels, for which nothing waits.

INVARIANTS
- One batch is compiled at a time: of the waiting batches, the one that was launched last. So a
  batch of a loop that has ended does not delay the batches of the next loop.
- Only the compiler runs with low priority, in a thread of its own: a thread of low priority that
  held the GIL would make the program wait while other processes run.
- The end of the process waits for none of these threads. NVRTC would crash if its exit functions
  ran while it compiles, so the process then ends without them (see cyrt/leaving).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from cyrt.driver import table
from cyrt.driver.errors import CompileError
from cyrt.logger import logger

# Batches to be compiled. It may be filled by a signal handler that interrupts another `put`.
_queue: SimpleQueue[Any] = SimpleQueue()
_thread: threading.Thread | None = None
_lock = threading.Lock()
_submitted = _done = 0
_reported = False
_LOWEST = 19  # the lowest priority, as a nice value of Linux
_T = TypeVar("_T")


def submit(fusion: Any) -> None:
    """Compile a batch later; the first call starts the thread."""
    global _thread, _submitted
    if not table.is_open():  # a forked child, or the interpreter exits
        return
    _submitted += 1
    _queue.put(fusion)
    if _thread is None and _lock.acquire(blocking=False):
        try:
            if _thread is None:
                thread = threading.Thread(target=_run, name="cyrt fusion", daemon=True)
                thread.start()
                _thread = thread
        except RuntimeError:  # no thread can be started, now or at exit
            pass
        finally:
            _lock.release()


def wait(seconds: float = 300.0) -> bool:
    """Wait until all batches that were submitted are compiled. For tests."""
    end = time.monotonic() + seconds
    while _done < _submitted and time.monotonic() < end:
        time.sleep(0.001)
    return _done >= _submitted


def is_compiling() -> bool:
    """Return whether a batch is being compiled, or will be."""
    return _done < _submitted


def at_low_priority(function: Callable[..., _T], *args: Any) -> _T:
    """Call a function that releases the GIL most of the time, and return what it returns."""
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            with contextlib.suppress(AttributeError, OSError):  # Linux's threads have priorities
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST)
            results.append(function(*args))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="cyrt compiler", daemon=True)
    thread.start()
    thread.join()
    for error in errors:
        raise error
    return results[0]


def _next(waiting: list[Any]) -> Any:
    """Take the batch that was launched last from those that wait; wait for one if none does."""
    if not waiting:
        waiting.append(_queue.get())
    with contextlib.suppress(Empty):
        while True:
            waiting.append(_queue.get_nowait())
    return waiting.pop(max(range(len(waiting)), key=lambda i: waiting[i].used))


def _run() -> None:
    global _done
    waiting: list[Any] = []
    while True:
        fusion = _next(waiting)
        try:
            if table.is_open() and fusion.wanted:
                from cyrt.builtin.fusion.batches import fuse

                fuse(fusion)
        except BaseException as error:
            fusion.reject(f"not compiled: {error}")
            if _has_compiler(error) and table.is_open() and fusion.wanted:
                _report(error)
        finally:
            fusion.release()
            _done += 1
            del fusion


def _has_compiler(error: BaseException) -> bool:
    """Return False if the error says that NVRTC is missing, which `info` reports; else True."""
    return not (isinstance(error, CompileError) and error.name == "NVRTC_NOT_FOUND")


def _report(error: BaseException) -> None:
    """Tell once that batches cannot be compiled: they run as they were recorded."""
    global _reported
    logger.info("a batch is not compiled: %s", error, exc_info=error)
    if not _reported:
        _reported = True
        # A filter may turn it into an error.
        with contextlib.suppress(Exception):
            warnings.warn(
                "operations of batches that are launched often cannot be compiled into one kernel, "
                f"and run as they were recorded: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
