"""A commit that signals, finalizers and other threads meet half-way."""

from __future__ import annotations

import gc
import os
import signal
import threading
import weakref
from ctypes import c_void_p

import pytest
from outside import until

import cyrt

pytestmark = pytest.mark.usefixtures("batched")
IN_FLIGHT = 64


@pytest.fixture
def handle(request):
    """Calls a function when SIGALRM comes, in 0.05 s."""

    def set_up(function):
        before = signal.signal(signal.SIGALRM, function)
        request.addfinalizer(lambda: signal.signal(signal.SIGALRM, before))
        request.addfinalizer(lambda: signal.setitimer(signal.ITIMER_REAL, 0))
        signal.setitimer(signal.ITIMER_REAL, 0.05)

    return set_up


def fill_the_queue(count, gate):
    (count + 1).numpy()  # loads the kernel: a driver may not do so while another one waits
    gate.wait()
    for _ in range(IN_FLIGHT):
        count += 1
        cyrt.commit()


def test_ctrl_c_while_a_commit_waits_for_room(gate, handle):
    def interrupt(*_):
        raise KeyboardInterrupt

    with cyrt.Stream():
        count = cyrt.zeros(100)
        count.numpy()
        fill_the_queue(count, gate)
        kept = cyrt.full(100, 7.0)
        count += 1
        handle(interrupt)
        with pytest.raises(KeyboardInterrupt):
            cyrt.commit()
        recorded = cyrt.current_encoder().num_ops
        gate.open()
        assert recorded == 2
        assert (kept.numpy() == 7).all()
        assert (count.numpy() == IN_FLIGHT + 1).all()


def test_a_signal_handler_reads_what_was_computed(gate, handle):
    """Its operations come after those of the commit that it interrupts, and are launched."""
    seen = []

    def report(*_):
        gate.open()
        seen.append(float(count[0]))
        seen.append(float(cyrt.full(100, 5.0)[3]))

    with cyrt.Stream():
        count = cyrt.zeros(100)
        count.numpy()
        fill_the_queue(count, gate)
        count += 1
        handle(report)
        cyrt.commit()
        assert seen == [IN_FLIGHT + 1, 5]
        assert (count.numpy() == IN_FLIGHT + 1).all()


def test_another_thread_launches_what_a_commit_is_about_to(gate, handle):
    """Both find the recording; it is launched once, and neither returns before that."""
    done = []

    def launch_elsewhere(*_):
        gate.open()
        thread = threading.Thread(target=lambda: done.append(cyrt.synchronize()))
        thread.start()
        thread.join(30)

    with cyrt.Stream():
        count = cyrt.zeros(100)
        count.numpy()
        fill_the_queue(count, gate)
        count += 1
        commits = cyrt.current_encoder().stats()["commits"]
        handle(launch_elsewhere)
        cyrt.commit()
        assert done == [None]
        assert cyrt.current_encoder().stats()["commits"] == commits + 1
        assert (count.numpy() == IN_FLIGHT + 1).all()


def test_a_finalizer_reads_what_it_computed():
    """The collector runs wherever an object is made, inside a commit, too."""
    found = []

    class Ends:
        def __init__(self):
            self.circle = self

        def __del__(self):
            found.append(float((cyrt.full(777, 5.0) + 1)[3]))

    y = cyrt.zeros(100)
    thresholds = gc.get_threshold()
    gc.set_threshold(5, 2, 2)
    try:
        for i in range(300):
            Ends()
            for _ in range(i % 7):
                y = y + 1
            if i % 2:
                cyrt.commit()
    finally:
        gc.set_threshold(*thresholds)
    # While another thread, such as the compiler's, runs finalizers, a collection returns at once.
    assert until(lambda: gc.collect() >= 0 and len(found) == 300)
    assert set(found) == {6.0}
    assert (y.numpy() == sum(i % 7 for i in range(300))).all()


def test_nothing_is_launched_from_inside_a_call_of_the_drivers(replaced):
    """A profiler's callback, say: what it records is the next batch's, and waiting is refused."""
    errors = []

    def launch(original, executable, stream):
        if not y:
            y.append(x + 1)
            try:
                cyrt.commit()
            except RuntimeError as error:
                errors.append(str(error))
        return original(executable, stream)

    with cyrt.Stream():
        x, y = cyrt.full(100, 3.0), []
        x.numpy()
        x += 1
        replaced("cuGraphLaunch", [c_void_p] * 2, launch)
        cyrt.commit()
        assert len(errors) == 1
        assert "inside a call of the driver" in errors[0]
        assert (y[0].numpy() == 5).all()


class Thing:
    pass


@pytest.mark.parametrize(
    ("name", "calls"), [("cuGraphLaunch", 1), *[("cuEventRecord", calls) for calls in (1, 2)]]
)
def test_ctrl_c_inside_a_launch(interrupt, name, calls):
    """The batch runs, and all that belongs to it is done when the interruption comes."""
    heard = []
    with cyrt.CommandEncoder() as encoder, encoder.stream:
        x, y = cyrt.zeros(100), cyrt.zeros(100)
        (x + 1).numpy()
        for i in range(10):
            x += 1
            thing = Thing()
            ended = weakref.ref(thing)
            encoder.keep(thing)
            del thing
            encoder.add_completed_handler(lambda i=i: heard.append(i))
            interrupt(name, calls)
            with pytest.raises(KeyboardInterrupt):
                encoder.commit()
            assert interrupt.came(name)
            assert encoder.num_ops == 0
            y += 1  # the next batch
            encoder.synchronize()
            assert ended() is None
        until(lambda: len(heard) == 10)
        assert heard == list(range(10))
        assert (x.numpy() == 10).all()
        assert (y.numpy() == 10).all()


def test_ctrl_c_inside_a_launch_leaks_nothing(interrupt, pooled):
    """The recording is cleared, and used again."""

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def interrupted(count):
        nonlocal x
        for _ in range(count):
            # Inside the block, a round that has been found launches nothing before the commit.
            with cyrt.batch():
                for _ in range(100):
                    x = x + 1
                encoder.add_completed_handler(Thing)
                interrupt("cuGraphLaunch")
                with pytest.raises(KeyboardInterrupt):
                    encoder.commit()
            encoder.synchronize()

    with cyrt.CommandEncoder() as encoder, encoder.stream:
        x = cyrt.zeros(4)
        x.numpy()
        interrupted(50)
        before = resident()
        interrupted(300)
        assert resident() - before < 4 << 20  # a recording has 36 KB
        assert (x.numpy() == 35000).all()


# --- blocks ---


class View:
    """Another library's array over the memory of `x`."""

    def __init__(self, x):
        self.owner = x
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": x.shape,
            "typestr": "<f4",
            "data": (x.ptr, False),
        }


def begins_with_a_launch(encoder):
    cyrt.ones(100)
    return cyrt.batch()


BEGINNINGS = {
    "batch": ("cuGraphLaunch", begins_with_a_launch),
    "capture": ("cuStreamBeginCapture", lambda encoder: encoder.capture()),
}


def check_ended(encoder, x):
    """Whoever is inside `concurrent()` cannot begin another one, and nobody computes in a capture.
    Outside `batch()` work on memory that others know is launched at once."""
    with cyrt.concurrent():
        x += 1
    view = cyrt.asarray(View(x))
    view += 1
    assert encoder.num_ops == 0


def look_for_signals():
    for _ in range(1000):
        pass


@pytest.mark.parametrize("block", BEGINNINGS)
def test_ctrl_c_at_the_beginning_of_a_block(interrupt, block, fresh_stream):
    """Who keeps the exception keeps the frames; the block has ended all the same."""
    name, begin = BEGINNINGS[block]
    encoder, x = cyrt.current_encoder(), cyrt.zeros(100)
    check_ended(encoder, x)
    interrupt.replace(name)  # compiles a library, while nothing is recorded
    opened = begin(encoder)
    interrupt(name)
    with pytest.raises(KeyboardInterrupt) as kept, opened:
        look_for_signals()
    assert interrupt.came(name)
    check_ended(encoder, x)
    assert (x.numpy() == 4).all()
    del kept


def test_ctrl_c_before_the_end_of_a_block(interrupt):
    """The signal comes inside the last operation, after which the block's end is called."""

    def add_inside():
        nonlocal view
        with cyrt.concurrent():
            interrupt("cuGraphLaunch")
            view += 1
        look_for_signals()

    with cyrt.Stream():
        encoder, x = cyrt.current_encoder(), cyrt.zeros(100)
        check_ended(encoder, x)
        view = cyrt.asarray(View(x))
        encoder.synchronize()
        with pytest.raises(KeyboardInterrupt) as kept:
            add_inside()
        assert interrupt.came("cuGraphLaunch")
        check_ended(encoder, x)
        assert (x.numpy() == 5).all()
        del kept


def test_a_block_decorates_a_function():
    """Each call is a block of its own, also inside another one, and raises what it raises."""
    with cyrt.Stream():
        x = cyrt.zeros(100)

        @cyrt.batch()
        def add(depth):
            nonlocal x
            x = x + 1
            if depth:
                add(depth - 1)
            elif len(seen) % 2:
                raise StopIteration(7)
            seen.append(cyrt.current_encoder().num_ops)

        seen = []
        add(2)
        with pytest.raises(StopIteration, match="7"):
            add(0)
        assert seen == [1, 0, 0]
        assert (x.numpy() == 4).all()
        block = cyrt.batch()
        with block, pytest.raises(RuntimeError, match="a block begins once"):
            block.__enter__()
        block = cyrt.batch()
        with pytest.raises(RuntimeError, match="a block ends after it has begun"):
            block.__exit__(None, None, None)
        with block:
            pass


def test_a_signal_leaves_no_work_on_others_memory_behind(gate, handle):
    """The operation is recorded when it meets the legacy stream's queue full: it is launched."""
    times = []

    def interrupt(*_):
        times.append(gate.open_in(0.1))
        raise KeyboardInterrupt

    def add():
        cyrt.add(view, 1, out=view)
        look_for_signals()

    def fill():
        for _ in range(700):
            cyrt.Event().record(legacy)

    with cyrt.Stream():
        encoder, x = cyrt.current_encoder(), cyrt.zeros(100)
        view = cyrt.asarray(View(x))
        view += 1
        x.numpy()
        legacy = cyrt.Stream.wrap(1)
        with legacy:
            gate.wait()
        thread = threading.Thread(target=fill)
        thread.start()
        thread.join(1)
        assert thread.is_alive()
        handle(interrupt)
        with pytest.raises(KeyboardInterrupt):
            add()
        recorded = encoder.num_ops
        thread.join()
        assert len(times) == 1
        assert recorded == 0
        assert (x.numpy() == 2).all()
