"""An operation that raises has not happened; one that returns has, whatever its batch meets."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import signal
import threading
from ctypes import c_int, c_size_t, c_void_p

import numpy as np
import pytest
from gates import Gate
from outside import until
from whole_rounds import Round

import cyrt
from cyrt.driver import table
from cyrt.graph import commit, template
from cyrt.ops.scatter import combine_by_key

pytestmark = pytest.mark.usefixtures("batched")
IN_FLIGHT = 64
NOT_SUPPORTED = 801
SHAPE = 16, 16
SOURCE = r"""
extern "C" __global__ void twice(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 2 * x[i] + 1;
}
"""


def grid():
    return np.arange(256, dtype=np.float32).reshape(SHAPE)


class State:
    """Arrays of a program, and what makes its random numbers."""

    def __init__(self):
        self.x = cyrt.asarray(grid())
        self.y = cyrt.asarray(grid() + 1)
        self.w = cyrt.asarray(np.eye(16, dtype=np.float32)[::-1].copy())
        self.row = cyrt.asarray(np.full(16, -1, np.float32))
        self.index = cyrt.asarray(np.array([3, 5, 7]))
        self.many = cyrt.asarray(np.arange(4000) % 16)  # more than one block combines at once
        self.buffer = cyrt.Buffer(1024)
        self.buffer.fill(1)
        self.random = cyrt.random.default_rng(3)
        self.kernel = cyrt.Module(SOURCE)["twice"]

    def values(self):
        held = np.empty(1024, np.uint8)
        self.buffer.copy_to(held)
        arrays = [each.numpy() for each in (self.x, self.y, self.w, self.row)]
        return np.concatenate([each.ravel() for each in (*arrays, held)])


def elementwise(s):
    s.x = s.x * 3


def in_place(s):
    s.x += 1


def reduction(s):
    cyrt.sum(s.x, axis=0, out=s.row)


def product(s):
    cyrt.matmul(s.x, s.w, out=s.y)


def kernel(s):
    s.kernel[8, 32](s.x, 256)


def copy(s):
    s.y[:] = s.x


def copy_of_buffers(s):
    s.x.copy_from(s.y)


def copy_to_the_device(s):
    s.x.copy_from(grid() + 9)


def fill(s):
    s.buffer.fill(7)


def random(s):
    s.x = s.random.normal(size=SHAPE)


def taken(s):
    s.x = cyrt.concatenate([s.x[s.index], s.x[:13]])


def put(s):
    s.x[s.index] = s.y[s.index]


def combined(s):
    cyrt.add.at(s.x, s.many, 1)


def masked(s):
    s.x[s.x > 20] = -5


def sort(s):
    s.x = cyrt.sort(-s.x)


@pytest.fixture
def call(library):
    """A call of a library that increases the values twice, by two kernels."""

    def increase(stream, addresses):
        for _ in range(2):
            library.put(stream, "increase", [c_size_t(addresses[0]), c_int(128)])

    def library_call(s):
        template.record_call([1], increase, [s.buffer], [0])

    return library_call


KINDS = (
    elementwise,
    in_place,
    reduction,
    product,
    kernel,
    copy,
    copy_of_buffers,
    copy_to_the_device,
    fill,
    random,
    taken,
    put,
    combined,
    masked,
    sort,
    None,  # the fixture `call`
)


@pytest.fixture(params=KINDS, ids=lambda kind: "library_call" if kind is None else kind.__name__)
def operation(request):
    return request.param or request.getfixturevalue("call")


@pytest.fixture
def states(operation):
    """A state, the values before the operation, and those after it."""

    def set_up():
        model, state = State(), State()  # the first one loads the kernels
        before = model.values()
        operation(model)
        after = model.values()
        assert (before != after).any()
        return state, before, after

    return set_up


def check_retry(operation, state, before, after):
    """The values are as before an operation that has raised, and change once if it is repeated."""
    np.testing.assert_array_equal(state.values(), before)
    operation(state)
    np.testing.assert_array_equal(state.values(), after)


# --- Ctrl-C ---


def interrupt_in_full_queue(limit, operation, states, interrupt):
    """Interrupt the operation, which completes a batch, in its wait for room, and repeat it. Return
    False, with nothing checked, if the gate's kernel has ended too early."""
    gate, encoder = Gate(), cyrt.CommandEncoder(max_ops=limit)
    recorded = limit - 1
    with encoder.stream:
        state, before, after = states()
        count = cyrt.zeros(64)

        def launch(batches):
            nonlocal count
            for _ in range(batches):
                count += 1
                encoder.commit()

        launch(3)  # What the driver builds may wait for the device, so it is built before.
        encoder.synchronize()
        gate.wait()
        encoder.commit()
        launch(IN_FLIGHT - 1)
        for _ in range(recorded):
            count += 1
        assert encoder.num_ops == recorded
        try:
            interrupt("cuEventQuery")
            operation(state)
            assert gate.expired
        except KeyboardInterrupt:
            pass
        finally:
            expired = gate.expired
            gate.open()
        if expired:
            return False
        assert interrupt.came("cuEventQuery")
        check_retry(operation, state, before, after)
        assert (count.numpy() == 3 + IN_FLIGHT - 1 + recorded).all()
        return True


@pytest.mark.parametrize("limit", [1, 3])
def test_ctrl_c_while_an_operation_waits_for_room(operation, states, interrupt, limit):
    if limit == 1 and operation is copy_to_the_device:
        pytest.skip("it is no batch, and waits for none")
    interrupt.replace("cuEventQuery")  # compiles a library, while nothing waits
    assert any(interrupt_in_full_queue(limit, operation, states, interrupt) for _ in range(3))


# --- a launch that is refused ---


@pytest.fixture
def round():
    round = Round()
    with round.stream:
        yield round


@pytest.fixture
def refuse(replaced):
    """Refuses the next graph, and one of the kernels that are then launched one by one."""
    state = {"armed": False}

    def launch_graph(original, *arguments):
        return NOT_SUPPORTED if state["armed"] else original(*arguments)

    def launch_kernel(original, *arguments):
        if state["armed"] and next(state["count"]) == state["refused"]:
            state["armed"] = False
            return NOT_SUPPORTED
        return original(*arguments)

    replaced("cuGraphLaunch", [c_void_p] * 2, launch_graph)
    replaced("cuLaunchKernelEx", [c_void_p] * 4, launch_kernel)

    def set_up(kernel):
        state.update(armed=True, refused=kernel, count=itertools.count())
        return lambda: not state["armed"]

    return set_up


@pytest.fixture
def failed(round, refuse):
    """The round, after a batch whose first operation was refused at the end of the last one."""

    def set_up():
        round.run_to_end(but=1)
        done = refuse(0)
        round.run(1)  # raises nothing
        assert done()
        assert round.encoder.num_ops == 0
        return round

    return set_up


def raises():
    return pytest.raises(cyrt.CudaError, match="cuLaunchKernel failed: CUDA_ERROR_NOT_SUPPORTED")


def test_an_operation_raises_the_error_of_an_earlier_one(operation, states, failed):
    state, before, after = states()
    cyrt.synchronize()
    failed()
    with raises():
        operation(state)
    check_retry(operation, state, before, after)


READERS = {
    "commit": lambda round: cyrt.commit(),
    "commit of the encoder": lambda round: round.encoder.commit(),
    "synchronize": lambda round: cyrt.synchronize(),
    "wait for the stream": lambda round: round.stream.synchronize(),
    "read of another array": lambda round: round.arrays[7].numpy(),
    "a number": lambda round: round.arrays[7][0].item(),
    "an operation": lambda round: round.arrays[7] + 1,
}


@pytest.mark.parametrize("reader", READERS)
def test_the_error_is_raised_once(failed, reader):
    round = failed()
    with raises():
        READERS[reader](round)
    for each in READERS.values():
        each(round)
    for _ in range(3):
        round.run_to_end()


def test_a_capture_raises_the_error_before_it_begins(failed):
    """At the end of its block what was captured would be lost."""
    round = failed()
    begun = []
    with raises(), round.encoder.capture():
        begun.append(True)
    assert not begun


def test_the_end_of_the_encoder_tells_the_error(refuse, monkeypatch):
    told = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: told.append(unraisable.exc_value))
    round = Round()
    with round.stream:
        round.run_to_end(but=1)
        done = refuse(0)
        round.run(1)  # raises nothing
        assert done()
        assert round.encoder.num_ops == 0
        del round
        gc.collect()
        (error,) = told
    assert "cuLaunchKernel failed: CUDA_ERROR_NOT_SUPPORTED" in str(error)


class Sent(BaseException):
    """What another thread sends to one."""


def test_what_interrupts_the_commit_at_an_operations_end_on_another_thread(monkeypatch):
    """The operation has happened, and its call returns before the exception is raised."""
    left, steps, encoder = [1], [], cyrt.CommandEncoder(max_ops=4)

    class Ranges:
        def push_range(self, *arguments, **keywords):
            if left and steps:
                left.pop()
                raise Sent

        def pop_range(self, **keywords):
            pass

    def work():
        try:
            with encoder.stream:
                for _ in range(100):
                    steps.append("begun")
                    cyrt.add(x, 1, out=x)
                    steps.append("done")
        except Sent:
            steps.append("interrupted")

    x = cyrt.zeros(16)
    cyrt.synchronize()
    monkeypatch.setattr(commit, "nvtx", Ranges())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert not left
    assert steps[-1] == "interrupted"
    assert (x.numpy() == steps.count("begun")).all()
    encoder.close()


def test_the_exit_tells_the_error(python):
    """A launch that was refused at the end of the program's last operation."""
    done = python(
        """
        import ctypes
        import cyrt
        from cyrt.driver import table
        from whole_rounds import Round

        PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
        refuse = PROTOTYPE(lambda *arguments: 801)
        round = Round()
        with round.stream:
            round.run_to_end(but=1)
            for name in "cuGraphLaunch", "cuLaunchKernelEx":
                table.replace(name, ctypes.cast(refuse, ctypes.c_void_p).value)
            round.run(1)
            assert round.encoder.num_ops == 0
            print("done", flush=True)
            raise SystemExit
        """,
        folders=[os.path.dirname(__file__)],
    )
    assert done.stdout == "done\n", done.stderr
    assert done.returncode == 1
    assert done.stderr.count("cuLaunchKernel failed: CUDA_ERROR_NOT_SUPPORTED") == 1


@pytest.fixture
def elsewhere():
    """Call a function on another thread, whose current stream is the same; return its error.

    The thread leaves the stream later, which launches what is recorded.
    """
    threads = []

    def call(stream, function):
        errors, done = [], threading.Event()

        def run():
            with stream:
                try:
                    function()
                except Exception as error:
                    errors.append(error)
                done.set()

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        assert done.wait(30)
        return errors[0] if errors else None

    yield call
    for thread in threads:
        thread.join(30)


@pytest.mark.parametrize("reader", [each for each in READERS if "encoder" not in each])
def test_another_thread_raises_the_error(failed, elsewhere, reader):
    """Whoever comes first to the stream; it is raised once."""
    round = failed()
    error = elsewhere(round.stream, lambda: READERS[reader](round))
    assert isinstance(error, cyrt.CudaError)
    assert "cuLaunchKernel failed: CUDA_ERROR_NOT_SUPPORTED" in str(error)
    for each in READERS.values():
        each(round)
    round.run_to_end()


# --- nothing comes between two kernels of one operation ---


@pytest.fixture
def filled(setting):
    """Run the operation once, and fill the batch of a new stream's own encoder so that the
    operation's last kernels have no room."""
    setting(CYRT_MAX_OPS_PER_GRAPH="64")

    def fill(stream, operation, *arguments, left):
        x = cyrt.zeros(64)
        encoder = cyrt.current_encoder()
        with cyrt.batch():
            operation(*arguments)
            kernels = encoder.num_ops
        stream.synchronize()
        assert kernels >= left
        block = cyrt.batch()  # no round ends a batch inside
        block.__enter__()
        for _ in range(64 - (kernels - left)):
            cyrt.add(x, 1, out=x)
        return encoder, x, block

    return fill


@pytest.fixture
def combination():
    """Integers, which are combined in two launches, and the sums. Checking mode, which reads the
    keys of `add.at`, does not read these."""
    key = np.arange(4000, dtype=np.uint32) % 16
    x = cyrt.zeros(16, dtype="int32")
    cyrt.multiply(x, 2, out=x)  # loads the kernel
    cyrt.synchronize()
    ones = cyrt.ones(4000, dtype="int32")
    return x, ("add", x, cyrt.asarray(key), ones), np.bincount(key)


@pytest.mark.parametrize("left", [1, 2])
def test_another_thread_records_while_the_full_batch_is_launched(
    filled, combination, replaced, elsewhere, left
):
    """With room for one of two kernels the batch has both, and is launched at their end; without
    room it is launched before both."""
    found = []

    def launch(original, *arguments):
        if not found and encoder.num_ops == 0:
            found.append(elsewhere(stream, lambda: cyrt.multiply(x, 2, out=x)))
            found.append(encoder.num_ops)
        return original(*arguments)

    with cyrt.Stream() as stream:
        x, arguments, sums = combination
        encoder, count, block = filled(stream, combine_by_key, *arguments, left=left)
        replaced("cuGraphLaunch", [c_void_p] * 2, launch)
        combine_by_key(*arguments)
        assert encoder.num_ops == (1 if left == 1 else 3)
        cyrt.add(count, 1, out=count)
        assert found == [None, 1]
        assert encoder.num_ops == (2 if left == 1 else 4)
        block.__exit__(None, None, None)
        np.testing.assert_array_equal(x.numpy(), (4 if left == 1 else 3) * sums)
        assert (count.numpy() == count.numpy()[0]).all()


@pytest.mark.parametrize("left", [1, 2])
def test_a_signal_handler_records_while_the_full_batch_waits(filled, combination, replaced, left):
    """The next launch waits for another thread's turn. Without room for the operation, that is
    its own wait, which the handler ends: it has not happened."""
    launching, go, seen = threading.Event(), threading.Event(), []

    def launch(original, *arguments):
        if threading.current_thread() is thread:
            # What the handler raises is not to be raised in here, in the main thread's launch.
            table.replace("cuGraphLaunch", ctypes.cast(original, c_void_p).value)
            launching.set()
            go.wait(30)
        return original(*arguments)

    def handle(*_):
        if encoder.num_ops < 64:
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            return
        seen.append(encoder.num_ops)
        go.set()
        cyrt.multiply(x, 2, out=x)
        raise KeyboardInterrupt

    def commit():
        with stream:
            cyrt.commit()

    with cyrt.Stream() as stream:
        x, arguments, sums = combination
        encoder, count, block = filled(stream, combine_by_key, *arguments, left=left)
        recorded, thread = encoder.num_ops, threading.Thread(target=commit)
        replaced("cuGraphLaunch", [c_void_p] * 2, launch)
        thread.start()
        assert launching.wait(30)
        for _ in range(recorded):
            cyrt.add(count, 1, out=count)
        before = signal.signal(signal.SIGALRM, handle)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            with pytest.raises(KeyboardInterrupt):
                combine(arguments, seen)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            go.set()
        thread.join(30)
        assert seen == ([65] if left == 1 else [64])
        block.__exit__(None, None, None)
        np.testing.assert_array_equal(x.numpy(), (4 if left == 1 else 2) * sums)
        assert (count.numpy() == 2 * recorded).all()


def combine(arguments, seen):
    combine_by_key(*arguments)
    until(lambda: seen)  # looks for signals


@pytest.mark.parametrize("before", range(6))
def test_a_signal_handler_launches_while_the_queue_is_full(combination, gate, before):
    """Without graphs each kernel is launched at once: only the first one waits for room."""
    doubled = []

    def handle(*_):
        if not doubled and done == calls[-1]:  # the same call as 0.05 s ago
            doubled.append(done)
            timer.append(gate.open_in(0.1))
            cyrt.multiply(x, 2, out=x)
        calls.append(done)

    x, arguments, sums = combination
    done, calls, timer = 0, [-1], []
    with cyrt.CommandEncoder(graphs=False) as encoder, encoder.stream:
        gate.wait()
        late = gate.open_in(2)
        for _ in range(before):
            cyrt.multiply(x, 1, out=x)
        handler = signal.signal(signal.SIGALRM, handle)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
            for done in range(240):  # noqa: B007
                combine_by_key(*arguments)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            late.cancel()
        found = x.numpy()
    assert (found % sums == 0).all()
    assert (found // sums == found[0] // sums[0]).all()


# --- a batch that cannot be launched at once ---


def test_the_next_operation_launches_what_was_left(round, replaced):
    """Inside a call of the driver's nothing can be launched: the turn is under way."""

    def launch(original, *arguments):
        if not left:
            left.append(round.step)
            round.run(1)
            round.run_to_end()  # raises nothing
            left.append(round.encoder.num_ops)
        return original(*arguments)

    left = []
    round.run_to_end(but=1)
    replaced("cuGraphLaunch", [c_void_p] * 2, launch)
    round.run(1)
    assert left[1] == round.encoder.num_ops > 1
    batches = round.encoder.stats()["commits"]
    round.run(1)
    assert round.encoder.num_ops == 1
    assert round.encoder.stats()["commits"] == batches + 1
    round.run_to_end()
    assert round.encoder.num_ops == 0  # batches end where they did
    round.check()
