"""The driver's queue of a stream is bounded, and a callback at its head may need the GIL.

A call that finds the queue full blocks until there is room: with the GIL held it blocks for ever.
The programs here run in processes of their own, which a hang does not outlive.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent

# What is put on `side` and `late` waits until `opened` is set.
BEGIN = """
    import ctypes, threading, time
    import numpy as np, cyrt
    from graph.outside import SOURCE, Library, N, host, zeros

    ROOM = 1024                     # commands that the emulated device's queue takes
    module, library = cyrt.Module(SOURCE), Library()
    side, late = cyrt.Stream(), cyrt.Stream()
    x, y, z = zeros(), zeros(), zeros()
    opened, called = threading.Event(), []
    hold = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: called.append(opened.wait(30)))

    def block(stream):
        with library:
            library("cuLaunchHostFunc", ctypes.c_void_p(stream.handle), hold, None)

    def launch(count, target):
        for _ in range(count):
            module["axpb"][1, N](target, 1.0, 1.0, N)

    def in_thread(function):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join(0.5)            # it ended, or waits for room
        return thread

    with side:                      # all that is needed is loaded
        module["add"][1, N](y, y, x, N)
        launch(1, x)
    module["deep"][1, 1](cyrt.Buffer(8), 0)
    cyrt.synchronize()
    pinned = cyrt.PinnedBuffer(4 * N)
    with side:
        launch(1, pinned)
        cyrt.Buffer(1 << 21).free()
    cyrt.synchronize()
"""
# Another thread fills the queue of `side` to its last place, as far as it is let.
FILL = """
    def fill():
        with side:
            launch(ROOM - 1, x)

    expected = ROOM
    block(side)
    block(late)
    filling = in_thread(fill)
    threading.Timer(0.5, opened.set).start()
"""
END = """
    assert opened.wait(30)
    filling.join()
    cyrt.synchronize()
    assert (host(x) == expected).all()
    assert called == [True, True]
    print("ended")
"""
# Each puts a command on `side` that cannot be put there without the GIL.
ACTS = {
    "memory is used on another stream": "launch(1, x); expected += 1",
    "the stream is waited for": "side.synchronize()",
    "all streams are waited for": "cyrt.synchronize()",
    "the stream waits for an event": "cyrt.Event().record(late).wait(side)",
    "the stream waits for another one": "side.wait(late)",
    "another one waits for the stream": "late.wait(side)",
    "memory is freed that it reads": "y.free()",
    "memory is handed out": "assert x.ptr",
    "an undeclared kernel is launched": "module['deep'][1, 1](cyrt.Buffer(8), 0)",
    "memory of its bins is taken": "memory = cyrt.Buffer(1 << 21)",
    "pinned memory is dropped": "del pinned",
}


@pytest.fixture
def ends(python):
    def run(*parts):
        program = "".join(textwrap.dedent(part) for part in parts)
        ended = python(
            program,
            folders=[TESTS],
            CYRT_GRAPHS="0",
            CYRT_POOL="1",
            CYRT_CHECK="0",
            CYRT_LAUNCH_BLOCKING="0",
        )
        assert ended.stdout == "ended\n", ended.stderr

    return run


@pytest.mark.parametrize("act", ACTS)
def test_a_full_queue_whose_head_needs_the_gil(ends, act):
    ends(BEGIN, FILL, ACTS[act] + "\n", END)


def test_a_queue_that_one_batch_fills(ends):
    """Its turn lasts as long as its operations are launched one by one."""
    ends(
        BEGIN,
        """
        def fill():
            with cyrt.CommandEncoder(side, graphs=False, max_ops=4096) as encoder:
                for _ in range(3000):
                    encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))

        with side:
            launch(1, y)
        with late:
            module["add"][1, N](y, y, z, N)
        cyrt.synchronize()
        block(side)
        block(late)
        filling = in_thread(fill)
        threading.Timer(0.5, opened.set).start()
        expected = 3001
        y.free()                        # `side` wrote it, and would wait for the reader
        """,
        END,
    )


def test_many_commands_run_in_order(ends):
    """Room is waited for again and again, by two threads on two streams."""
    ends(
        BEGIN,
        """
        def work(stream):
            with stream:
                for _ in range(20):
                    launch(200, x)
                    launch(150, mine[stream])

        mine = {side: zeros(), late: zeros()}
        filling = in_thread(lambda: work(late))
        work(side)
        filling.join()
        expected = 8001
        assert all((host(each) == 3000).all() for each in mine.values())
        called, opened = [True, True], threading.Event()
        opened.set()
        """,
        END,
    )
