"""Replay: what comes instead of the expected operation, at each step of a script.

Every program runs with replay, without it, and with ``CYRT_REPLAY=verify``. Results, operations,
launches, the names and edges of each batch, and the reasons of the commits are the same.
"""

from __future__ import annotations

import contextlib
import gc
import re
import signal
import textwrap
import threading
from ctypes import c_uint64, c_void_p

import numpy as np
import pytest
from batch_log import Log, logged
from calls import Vectors
from calls import record as record_call
from gates import Gate
from outside import until
from whole_rounds import Round as WholeRound

import cyrt
from cyrt import linalg, tape
from cyrt.builtin import background
from cyrt.graph import commit as commits
from cyrt.graph import plan_cache

pytestmark = pytest.mark.usefixtures("batched")
N = 64
SOURCE = r"""
extern "C" {
__global__ void add(const float* x, const float* b, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + b[i];
}
__global__ void subtract(const float* x, const float* b, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] - b[i];
}
__global__ void deep(float** x, int n) { if (threadIdx.x < n) x[0][threadIdx.x] += 1.0f; }
__global__ void relay(const float* x, float* y, int n) {
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * x[i] + y[i];
}
}
"""
MODES = "0", "1", "verify"
SETTLING = 8  # rounds until a round is replayed
COUNTS = ["operations", "commits", "early_loads", "repoints", "launches"]
COUNTS += ["chained", "patched", "instantiations"]


@pytest.fixture(scope="module")
def module():
    return cyrt.Module(SOURCE)


@pytest.fixture(scope="module")
def relay():
    return cyrt.Kernel(SOURCE, "relay", pdl=True)


@pytest.fixture(scope="module")
def streams():
    """All streams: a new one would else have the plans of one that has ended."""
    return []


@pytest.fixture
def in_each_mode(setting, streams):
    """Run a program on a new stream in each mode, and compare.

    The program takes the stream's encoder and returns arrays. A first run compiles its kernels.
    Without `patches`, the counts that depend on addresses are not compared; without `timeless`, no
    batches are, since what the commits meet depends on how long the device takes.
    """

    def run_once(program, mode):
        # When a fused plan is ready, and what it patches, is no part of what is compared.
        setting(CYRT_REPLAY=mode, CYRT_FUSE="0")
        cyrt.synchronize()
        gc.collect()
        cyrt.trim_memory()
        streams.append(cyrt.Stream())
        with streams[-1]:
            encoder = cyrt.current_encoder()
            with logged() as batches:
                found = [np.array(each) for each in program(encoder)]
            stats = encoder.stats()
        return found, batches, stats

    def run(program, *, patches=True, timeless=True):
        run_once(program, "0")
        found, batches, stats = run_once(program, "0")
        assert stats["replayed"] == 0
        for mode in MODES[1:]:
            other = run_once(program, mode)
            for one, two in zip(found, other[0], strict=True):
                np.testing.assert_array_equal(one, two)
            if not timeless:
                continue
            assert other[1] == batches
            for key in COUNTS if patches else COUNTS[:4]:
                assert other[2][key] == stats[key], key

    return run


class Round:
    """A round of operations of each kind, at any step of which something else can come."""

    STEPS = 9

    def __init__(self, module, relay, encoder, second):
        self.module, self.relay, self.encoder = module, relay, encoder
        self.both = cyrt.arange(2 * N, dtype=cyrt.float32) / 64
        self.b, self.other = self.both[:N], self.both[N:]
        self.x, self.y, self.z, self.v = (cyrt.zeros(N) for _ in range(4))
        self.kept, self.found = [], []
        self.second = second
        cyrt.synchronize()

    def run(self, at=None, surprise=None):
        """Run a round; `surprise` is called before the step `at`, and may do another one."""
        self.t = self.x
        self.at = at
        for i in range(self.STEPS):
            if i != at or not surprise(self):
                self.step(i)
        if at == self.STEPS:
            surprise(self)
        self.x = self.t
        del self.t

    def step(self, i):
        if i in (0, 4):
            self.t = self.t + self.b
        elif i in (1, 8):
            self.t = self.t * 0.5
        elif i == 2:
            self.module["add"][1, N](self.t, self.b, self.y, N)
        elif i == 3:
            self.z[...] = self.y
        elif i == 5:
            self.v += self.t.sum()
        elif i == 6:
            self.relay[1, N](self.t, self.v, N)
        else:
            self.v.fill(0)

    def results(self):
        self.found = [np.array(each) for each in self.found]
        return [self.x, self.y, self.z, self.v, self.both, *self.kept, *self.found]


SURPRISES = {}


def surprise(function):
    SURPRISES[function.__name__.replace("_", " ")] = function
    return function


@surprise
def another_operation(p):
    p.t = p.t - p.b
    return True


@surprise
def another_address(p):
    """A view of the same block."""
    p.t = p.t + p.other
    return True


@surprise
def an_unaligned_address(p):
    p.t = p.t + p.both[1 : N + 1]
    return True


@surprise
def another_scalar(p):
    p.t = p.t * 0.25
    return True


@surprise
def another_type_of_scalar(p):
    p.t = p.t * np.float32(0.5)
    return True


@surprise
def a_type_that_promotes(p):
    p.t = (p.t * np.float64(0.5)).astype(cyrt.float32)
    return True


@surprise
def another_shape(p):
    p.t[:16] += p.b[:16]
    return True


@surprise
def another_grid(p):
    p.module["add"][2, N // 4](p.t, p.b, p.y, N)
    return True


@surprise
def another_kernel(p):
    p.module["subtract"][1, N](p.t, p.b, p.y, N)
    return True


@surprise
def another_number_in_a_kernel(p):
    p.module["add"][1, N](p.t, p.b, p.y, N - 1)
    return True


@surprise
def another_type_of_number_in_a_kernel(p):
    p.module["add"][1, N](p.t, p.b, p.y, np.int32(N))
    return True


@surprise
def another_address_in_a_kernel(p):
    p.module["add"][1, N](p.t, p.other, p.y, N)
    return True


@surprise
def a_kernel_with_an_attribute(p):
    p.encoder.add_kernel(p.module["add"], 1, N, (p.t, p.b, p.y, N), cooperative=True)
    return True


@surprise
def a_kernel_with_declared_memory(p):
    p.module["add"][1, N](p.t, p.b, p.y, N, reads=[p.z])
    return True


@surprise
def an_argument_that_does_not_fit(p):
    for values in ((p.t, p.b, p.y, 2**31), (p.other, p.b, "y", N), (p.b, p.t, p.y, 0.5)):
        with contextlib.suppress(TypeError, ValueError):
            p.module["add"][1, N](*values)


@surprise
def another_block_of_memory(p):
    p.module["add"][1, N](p.t, p.b, p.z, N)
    return True


@surprise
def one_more(p):
    p.v += p.b


@surprise
def one_less(p):
    return True


@surprise
def many_more(p):
    for _ in range(150):
        p.v += p.b


@surprise
def a_free_that_did_not_come(p):
    p.late = p.t


@surprise
def results_that_are_kept(p):
    p.kept += [p.t, p.t + 1]


@surprise
def a_free_and_an_allocation(p):
    del p.z
    p.z = cyrt.zeros(N)


@surprise
def an_exported_address(p):
    p.found.append(p.y.ptr and 1)


@surprise
def an_exported_operand(p):
    p.found.append(p.both.ptr and 1)


@surprise
def an_exported_result(p):
    p.found.append(p.t.ptr and 1)


@surprise
def an_exported_handle(p):
    p.found.append(p.encoder.stream.handle and 1)


@surprise
def a_capsule(p):
    p.capsule = p.v.__dlpack__()


@surprise
def memory_of_others(p):
    p.view = cyrt.pointer(p.y.ptr, p.y.nbytes)
    p.module["add"][1, N](p.b, p.b, p.view, N)


@surprise
def an_exception(p):
    with contextlib.suppress(ValueError):
        p.t = p.t + p.b[:3]
    with contextlib.suppress(TypeError):
        p.module["add"][1, N](p.t, p.b)


@surprise
def a_commit(p):
    cyrt.commit()


@surprise
def two_commits(p):
    cyrt.commit()
    cyrt.commit()


@surprise
def a_wait(p):
    cyrt.synchronize()


@surprise
def a_read(p):
    p.found.append(p.v.numpy())


@surprise
def an_event(p):
    cyrt.Event().record()


@surprise
def a_write_from_the_host(p):
    p.v[...] = np.arange(N, dtype=np.float32)


@surprise
def a_signal_handler_that_records(p):
    def record(*_):
        p.v += p.b

    handled(p, record)


@surprise
def a_signal_handler_that_commits(p):
    def record(*_):
        p.v += p.b
        cyrt.commit()

    handled(p, record)


def handled(p, handler):
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


class Ends:
    def __init__(self, function):
        self.function = function

    def __del__(self):
        self.function()


@surprise
def a_finalizer_that_records(p):
    def record():
        p.v += p.b

    Ends(record)


@surprise
def a_finalizer_in_the_commit(p):
    """The batch's end drops the object."""

    def record():
        p.z += p.b

    p.encoder.keep(Ends(record))
    cyrt.commit()
    cyrt.synchronize()


@surprise
def another_stream_that_reads(p):
    with p.second:
        p.kept.append(p.v + 1)


@surprise
def another_stream_that_writes(p):
    with p.second:
        p.v += 1


@surprise
def another_stream_that_reads_what_is_read(p):
    with p.second:
        p.kept.append(p.b + 1)


@surprise
def another_stream_that_writes_what_is_read(p):
    with p.second:
        p.both += 1


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


@surprise
def another_thread_that_writes(p):
    def write():
        p.v += 1
        cyrt.commit()

    in_thread(write)


@surprise
def another_thread_on_the_stream(p):
    stream = p.encoder.stream

    def write():
        with stream:
            p.v += p.b

    in_thread(write)


@surprise
def trimmed_memory(p):
    cyrt.trim_memory()


@surprise
def out_of_memory(p):
    with contextlib.suppress(cyrt.OutOfMemoryError, MemoryError):
        cyrt.empty(1 << 46)


@surprise
def a_block_of_operations(p):
    with cyrt.batch():
        p.v += p.b
        p.z += p.b


@surprise
def operations_without_order(p):
    with cyrt.concurrent():
        p.module["add"][1, N](p.b, p.b, p.y, N)
        p.module["add"][1, N](p.b, p.b, p.v, N)


@surprise
def the_same_operation_without_order(p):
    with cyrt.concurrent():
        p.step(p.at)
    return True


@surprise
def an_empty_block_without_order(p):
    with cyrt.concurrent():
        pass


@surprise
def a_capture(p):
    with p.encoder.capture(reads=[p.b], writes=[p.v]) as stream:
        p.library.launch(stream.handle, p.v.ptr, 2.0, 1.0, N)


@surprise
def a_handler_that_records(p):
    """It has recorded before the program goes on."""
    called = []

    def record():
        with p.encoder.stream:
            p.z += p.b
        called.append(1)

    p.encoder.add_completed_handler(record)
    cyrt.commit()
    cyrt.synchronize()
    until(lambda: called)
    cyrt.synchronize()


@surprise
def a_kept_object(p):
    p.encoder.keep(object())


@surprise
def large_blocks_that_are_split_and_joined(p):
    sizes = (5 << 20, 1 << 20, 2 << 20, 3 << 20)
    for size in sizes:
        large = cyrt.Buffer(size)
        large.fill(0)
        del large
    p.found.append(len(sizes))


@surprise
def dropped_code(p):
    own = cyrt.Kernel(SOURCE, "add", define={"OWN": len(p.kept)})
    own[1, N](p.b, p.b, p.y, N)


STEPS = 0, 4, Round.STEPS - 1, Round.STEPS
CASES = [(what, at) for what in SURPRISES for at in STEPS]
CASES += [(what, 2) for what in SURPRISES if re.search("grid|kernel|fit|block of", what)]
# Memory that others know is not replayed.
ONCE = "an exported address", "an exported operand", "a capsule", "memory of others", "a capture"


class Surprised:
    """A program that is replayed, is surprised in one round, and is replayed again."""

    def __init__(self, make, at, what, commit, rounds):
        self.make, self.at, self.what, self.commit, self.rounds = make, at, what, commit, rounds
        self.replayed = {}

    def run(self, program):
        for _ in range(self.rounds):
            program.run()
            if self.commit:
                cyrt.commit()

    def __call__(self, encoder):
        program = self.make(encoder)
        self.run(program)
        self.before = encoder.stats()
        for _ in range(2):
            program.run(self.at, self.what)
            if self.commit:
                cyrt.commit()
            self.run(program)
        self.middle = encoder.stats()
        self.run(program)
        self.after = encoder.stats()
        return program.results()


def check_surprise(in_each_mode, what, make, at, commit):
    program = Surprised(make, at, SURPRISES[what], commit, SETTLING if commit else 120)
    # Whether memory comes back from other streams depends on whether the device has done its work.
    in_each_mode(
        program,
        patches=not re.search("stream|thread|exported result", what),
        timeless=what != "a finalizer in the commit",
    )
    before, middle, after = program.before, program.middle, program.after
    assert before["replayed"] > 0
    if what not in ONCE:
        operations = after["operations"] - middle["operations"]
        assert after["replayed"] - middle["replayed"] >= operations // 2


@pytest.fixture
def make(module, relay, library, streams, pooled):
    def make(encoder):
        streams.append(cyrt.Stream())
        program = Round(module, relay, encoder, streams[-1])
        program.library = library
        return program

    return make


@pytest.mark.parametrize(("what", "at"), CASES)
def test_a_surprise(in_each_mode, make, what, at):
    check_surprise(in_each_mode, what, make, at, True)


@pytest.mark.parametrize("what", SURPRISES)
def test_a_surprise_in_a_long_batch(in_each_mode, make, what):
    check_surprise(in_each_mode, what, make, 4, False)


class Reader:
    """A chain of operations that read what another stream has written."""

    STEPS = 8

    def __init__(self, module, writer, third):
        self.add, self.writer, self.third = module["add"], writer, third
        self.x, self.expected, self.value = cyrt.zeros(N), 0.0, 1.0
        with writer:
            self.b = cyrt.ones(N)

    def run(self, at=None, surprise=None):
        for i in range(self.STEPS):
            if i == at:
                surprise(self)
            if i % 2:
                self.add[1, N](self.x, self.b, self.x, N)
            else:
                self.x = self.x + self.b
            self.expected += self.value

    def write(self, stream):
        with stream:
            self.b += 1
        self.value += 1

    def read(self, stream):
        with stream:
            self.other = self.b * 2

    def make_again(self):
        del self.b
        with self.writer:
            self.b = cyrt.full(N, 3.0)
        self.value = 3.0

    def copy(self, stream):
        with stream:
            self.b.copy_from(np.full(N, 5, np.float32))
        self.value = 5.0


READS_OF_OTHERS = {
    "a write of the writer": lambda p, own: p.write(p.writer),
    "a write of a third stream": lambda p, own: p.write(p.third),
    "a write of its own": lambda p, own: p.write(own),
    "a read of the writer": lambda p, own: p.read(p.writer),
    "a read of a third stream": lambda p, own: p.read(p.third),
    "a read of all, and a write": lambda p, own: (p.read(p.third), p.read(own), p.write(p.writer)),
    "other memory": lambda p, own: p.make_again(),
    "a copy of the writer": lambda p, own: p.copy(p.writer),
    "a copy of its own": lambda p, own: p.copy(own),
    "a commit of the writer": lambda p, own: (p.write(p.writer), p.writer.synchronize()),
}


@pytest.mark.parametrize("at", [0, 3])
@pytest.mark.parametrize("what", READS_OF_OTHERS)
def test_memory_that_another_stream_has_written(in_each_mode, module, streams, pooled, what, at):
    def program(encoder):
        streams.extend([cyrt.Stream(), cyrt.Stream()])
        p, replayed = Reader(module, *streams[-2:]), []
        for i in range(2 * SETTLING + 1):
            before = encoder.stats()["replayed"]
            if i == SETTLING:
                p.run(at, lambda p: READS_OF_OTHERS[what](p, encoder.stream))
            else:
                p.run()
            cyrt.commit()
            replayed.append(encoder.stats()["replayed"] - before)
        program.replayed = replayed[SETTLING - 1]
        assert (p.x.numpy() == p.expected).all()
        return [p.x, p.b]

    in_each_mode(program, patches=False, timeless=False)
    assert program.replayed == Reader.STEPS


class OfEncoder:
    """A chain of kernels, which are recorded by ``encoder.add_kernel``."""

    STEPS = 8

    def __init__(self, module, second):
        self.add, self.subtract = module["add"], module["subtract"]
        self.both, self.b, self.other = cyrt.zeros(2 * N), cyrt.ones(N), cyrt.ones(N) * 3
        self.x, self.second = self.both[:N], second
        cyrt.synchronize()

    def run(self, encoder, at=None, surprise=None):
        for i in range(self.STEPS):
            if i != at or not surprise(self, encoder):
                self.step(encoder)

    def step(self, encoder, kernel=None, grid=1, b=None, x=None, n=N, **keywords):
        x = self.x if x is None else x
        b = self.b if b is None else b
        encoder.add_kernel(kernel or self.add, grid, N, (x, b, x, n), **keywords)

    def use_elsewhere(self):
        cyrt.commit()
        with self.second:
            self.b += 1


# What comes instead of a step, or before it if it returns None.
OF_ENCODER = {
    "another kernel": lambda p, e: p.step(e, p.subtract) or True,
    "another number": lambda p, e: p.step(e, n=N // 2) or True,
    "another type of number": lambda p, e: p.step(e, n=np.int64(N)) or True,
    "another grid": lambda p, e: p.step(e, grid=(1, 2)) or True,
    "shared memory": lambda p, e: p.step(e, smem=16) or True,
    "another operand": lambda p, e: p.step(e, b=p.other) or True,
    "another view of the block": lambda p, e: p.step(e, x=p.both[N:]) or True,
    "named memory": lambda p, e: p.step(e, reads=[p.b, p.x], writes=[p.x]) or True,
    "a fill": lambda p, e: e.add_memset(p.x, 0) or True,
    "one more": lambda p, e: p.step(e),
    "one less": lambda p, e: True,
    "a commit": lambda p, e: e.commit(),
    "another stream": lambda p, e: p.use_elsewhere(),
}


@pytest.mark.parametrize("often", ["one", "one a round"])
@pytest.mark.parametrize("what", OF_ENCODER)
def test_an_encoder_that_the_program_makes(in_each_mode, module, streams, pooled, often, what):
    """One for all rounds, or a new one for each, which goes on with the scripts of the last one."""

    def program(_):
        streams.append(cyrt.Stream())
        p = OfEncoder(module, streams[-1])
        stream = cyrt.Stream()
        program.replayed = 0
        with contextlib.ExitStack() as blocks:
            encoder = None
            for i in range(2 * SETTLING + 1):
                at = 3 if i == SETTLING else None
                if often != "one" or encoder is None:
                    encoder = blocks.enter_context(cyrt.CommandEncoder(stream))
                before = encoder.stats()["replayed"]
                p.run(encoder, at, OF_ENCODER[what])
                if often == "one":
                    encoder.commit()
                else:
                    encoder.close()
                replayed = encoder.stats()["replayed"] - before
                if i in (SETTLING - 1, 2 * SETTLING):
                    program.replayed += replayed
        p.second.synchronize()
        return [p.both, p.b]

    in_each_mode(program, patches=False, timeless=what != "another stream")
    assert program.replayed == 2 * OfEncoder.STEPS


def test_encoders_of_new_streams_and_other_limits(setting, module, streams, pooled):
    """A Stream takes over the state of one that has ended. Other limits end batches elsewhere."""
    setting(CYRT_REPLAY="1")
    p, priority = OfEncoder(module, None), -1

    def run(**limits):
        with cyrt.CommandEncoder(cyrt.Stream(priority=priority), **limits) as encoder:
            p.run(encoder)
        return encoder.stats()["replayed"]

    cyrt.synchronize()
    gc.collect()
    for _ in range(SETTLING):
        replayed = run()
    assert replayed == OfEncoder.STEPS
    assert [run(max_ops=OfEncoder.STEPS - 1), run(max_mb=7), run(graphs=False)] == [0, 0, 0]
    for _ in range(SETTLING):
        replayed = run()
    assert replayed == OfEncoder.STEPS
    cyrt.trim_memory()
    assert run() == 0
    for _ in range(SETTLING):
        run()
    setting(CYRT_REPLAY="0")
    assert run() == 0
    assert (p.x.numpy() == (3 * SETTLING + 5) * OfEncoder.STEPS).all()


def test_an_encoder_does_not_follow_the_round_of_another():
    """A batch of the new one ends at its limit, not where batches of the last one ended."""
    round = WholeRound()
    with round.stream:
        round.run_to_end()
        round.encoder.close()
        round.encoder = cyrt.CommandEncoder(round.stream, max_ops=64)
        for i in range(1, 64):
            round.run(1)
            assert round.encoder.num_ops == i
        round.check()


@pytest.mark.parametrize("again", [False, True], ids=["no other encoder", "another encoder"])
def test_an_argument_that_closes_the_encoder(module, streams, pooled, again):
    """The operation is refused, although it is the next one of the stream's script."""
    streams.append(cyrt.Stream())
    p, stream, encoders = OfEncoder(module, None), streams[-1], []

    class Closing:
        def __index__(self):
            encoders[-1].close()
            if again:
                encoders.append(cyrt.CommandEncoder(stream))
                p.step(encoders[-1])
            return 1

    for _ in range(SETTLING):
        encoders.append(cyrt.CommandEncoder(stream))
        p.run(encoders[-1])
        encoders[-1].close()
    assert encoders[-1].stats()["replayed"] == OfEncoder.STEPS
    encoders.append(cyrt.CommandEncoder(stream))
    p.step(encoders[-1])
    with pytest.raises(RuntimeError, match="the CommandEncoder was closed"):
        p.step(encoders[-1], grid=Closing())
    encoders[-1].close()
    assert (p.x.numpy() == SETTLING * OfEncoder.STEPS + 1 + again).all()


# --- what a script must not be ---


def test_memory_in_the_place_of_other_memory(in_each_mode, module):
    """The second Buffer is described where the first one was: no edge leads from one to the other,
    but one leads from the first use of the same Buffer to the next."""

    def program(encoder):
        y = cyrt.zeros(N)

        def batch(renew):
            pinned = cyrt.PinnedBuffer(4 * N)
            module["add"][1, N](y, y, pinned, N)
            if renew:
                del pinned
                pinned = cyrt.PinnedBuffer(4 * N)
            module["add"][1, N](y, y, pinned, N)
            for _ in range(8):
                module["add"][1, N](y, y, y, N)
            cyrt.commit()
            cyrt.synchronize()

        for renew in (True,) * 6 + (False,) * 6 + (True, False) * 3:
            batch(renew)
        return [y]

    in_each_mode(program, patches=False)  # the driver gives other addresses


def test_another_size_in_the_same_blocks(in_each_mode):
    """Only the key of the call tells that fewer elements are written."""

    def program(encoder):
        x, b, y, z = cyrt.ones(N), cyrt.ones(N), cyrt.zeros(N), cyrt.zeros(N)
        for i in range(SETTLING + 2):
            n = N // 4 if i == SETTLING else N // 2
            y.fill(i)
            for at in range(10):
                cyrt.add(x[:n], b[:n], out=y[:n] if at == 5 else z[:n])
            cyrt.commit()
            yield y.copy()
            cyrt.commit()

    in_each_mode(program)


@pytest.mark.parametrize("what", ["another access", "no declaration"])
def test_other_words_about_the_memory_of_a_kernel(in_each_mode, module, what):
    """The kernel is called with the same memory."""

    def program(encoder):
        x, y, z, w = (cyrt.ones(N) for _ in range(4))
        table = cyrt.zeros(1, dtype=cyrt.int64)
        cyrt.synchronize()

        def call(differs):
            if what == "another access":
                use = {"writes": [z]} if differs else {"reads": [z]}
                module["add"][1, N](x, x, y, N, **use)
            else:
                module["deep"][1, 1](table, 0, **({} if differs else {"reads": []}))

        for i in range(SETTLING + 4):
            for k in range(5):
                module["add"][1, N](x, z, w, N)
                call(i == SETTLING and k == 3)
            cyrt.commit()
        program.replayed = encoder.stats()["replayed"]
        return [y, z, w]

    in_each_mode(program)
    assert program.replayed > 0


def test_sizes_and_rounds_by_turns(in_each_mode):
    """One of two scripts is played first, and the other one goes on with its operations."""

    def program(encoder):
        rng, found = np.random.default_rng(5), []
        x, b, y, z = cyrt.ones(N), cyrt.ones(N), cyrt.zeros(N), cyrt.zeros(N)
        for i in range(80):
            which, n = int(rng.integers(2)), N // int(rng.choice((1, 2, 4)))
            y.fill(i)
            for k in range(5):
                cyrt.add(x[:n], b[:n], out=y[:n] if k == 2 else z[:n])
            for _ in range(5):
                cyrt.add(x, b, out=(z, y)[which])
                cyrt.multiply(z, b, out=z)
            cyrt.commit()
            if i % 3 == 2:
                found.append(y.numpy())
        program.replayed = encoder.stats()["replayed"]
        return [*found, z]

    in_each_mode(program)
    assert program.replayed > 0


DESCRIBED = {
    "part": lambda x, y, k: x[1:-1, k % 2 : 14 + k % 2] + y[1:-1, 1:-1],
    "order": lambda x, y, k: x[1:-1, 1:-1] - y[1:-1, 1:-1] if k % 2 else y[1:, 1:] - x[1:, 1:],
    "layout": lambda x, y, k: (x.T if k % 2 else x)[1:-1, 1:-1] + y[1:-1, 1:-1],
    "number": lambda x, y, k: x[1:-1, 1:-1] * (2.0 + k),
    "row": lambda x, y, k: x[:, 1:-1] + y[k % 2, 1:-1],
    "axis": lambda x, y, k: x.sum(axis=k % 2),
    "sum": lambda x, y, k: (x if k % 2 else y).sum(axis=1),
    "divisor": lambda x, y, k: x.mean(axis=1) if k % 2 else x.sum(axis=1),
    "factor": lambda x, y, k: x @ (y if k % 2 else y.T),
    "few rows": lambda x, y, k: x[k % 2] @ y,
    "odd size": lambda x, y, k: x.reshape(-1)[: 251 - k % 2] + y.reshape(-1)[: 251 - k % 2],
    "target": lambda x, y, k: cyrt.add(x, 1, out=y[:, ::-1]) if k % 2 else cyrt.add(x, 1, out=y),
}


@pytest.mark.parametrize("turns", [1, 5], ids=["each time", "for some rounds"])
@pytest.mark.parametrize("what", DESCRIBED)
def test_a_call_whose_words_differ(in_each_mode, what, turns):
    """A front end has described its call, and comes with another one on the same memory."""

    def program(encoder):
        x, y = cyrt.arange(256, dtype=cyrt.float32).reshape(16, 16), cyrt.ones((16, 16))
        kept, found = cyrt.zeros(16), []
        for i in range(60):
            k = 0 if i < 20 else i // turns
            for _ in range(3):
                value = DESCRIBED[what](x, y, k)
                kept[:] = kept + value.reshape(-1)[:16]
            cyrt.commit()
            if i % 7 == 6:
                found.append(kept.numpy())
        program.replayed = encoder.stats()["replayed"]
        return [*found, value]

    in_each_mode(program)
    assert program.replayed > 0


def test_a_block_that_was_split(in_each_mode, module, pooled):
    """The parts' edges follow from the uses of the whole: in a batch that begins with the parts
    there are none."""

    def program(encoder):
        y, places = cyrt.ones(N), set()
        cyrt.synchronize()

        def use(buffer):
            module["add"][1, N](y, y, buffer, N)

        def batch(split):
            if split:
                first = cyrt.Buffer(8 << 20)
                use(first)
                del first
            first = cyrt.Buffer(2 << 20)
            if not split:
                use(first)
            use(first)
            second = cyrt.Buffer(6 << 20)  # the rest
            use(second)
            places.add((repr(first), repr(second)))
            cyrt.commit()
            del first, second
            cyrt.synchronize()

        # After 16 batches, a part's size receives blocks of its own.
        for split in (True,) * 5 + (False,) * 5 + (True, False) * 3:
            batch(split)
        assert len(places) == 1
        return [y]

    in_each_mode(program)


def test_an_operation_behind_the_last_one(in_each_mode):
    """It is the next one of an older recording, the arrays of which the script has now."""

    def program(encoder):
        arrays, one = [cyrt.zeros(N) for _ in range(13)], cyrt.ones(N)
        cyrt.synchronize()

        def run(*steps):
            for i in steps:
                cyrt.add(arrays[i], one, out=arrays[i + 1])

        for i in range(4 * SETTLING):
            run(*range(8))
            if i < 2 or i % 7 == 6:
                run(*range(8, 12))
            if i < 2:  # this is no script
                with cyrt.concurrent():
                    run(0, 2)
            cyrt.commit()
        return arrays

    in_each_mode(program)


def test_large_results(in_each_mode, pooled):
    """Some of them are kept, so that the next ones are other memory."""

    def program(encoder):
        x, b, kept = cyrt.zeros(1 << 18), cyrt.ones(1 << 18), []
        cyrt.synchronize()
        for i in range(4 * SETTLING):
            for k in range(4):
                x = x + b
                y = x * 0.5
                if i in (SETTLING, SETTLING + 3) and k == 1:
                    kept.append(y)
                if i == 3 * SETTLING and k == 2:  # a lower block is free now
                    del kept[0]
            cyrt.commit()
        program.replayed = encoder.stats()["replayed"]
        return [x, *kept]

    in_each_mode(program, patches=False)
    assert program.replayed > 0


def transform_by_turns(x, i):
    return [cyrt.fft.fft(x[i % 2]) for _ in range(2)]


def transform_and_keep(x, i):
    x[0] = cyrt.fft.fft(x[0], norm="ortho")
    return x[0]


def compute_with_temporaries(x, i):
    return [(each * 0.5 + each) * 0.5 for each in x]


@pytest.mark.parametrize(
    "compute", [transform_by_turns, transform_and_keep, compute_with_temporaries]
)
def test_results_in_the_memory_of_a_larger_one(in_each_mode, pooled, compute):
    """A batch in which a block is split or joined is not replayed: so sizes for which that happens
    often receive blocks of their own."""

    def program(encoder):
        whole = cyrt.Buffer(5 << 20)
        x = [
            cyrt.full(shape, 1, dtype="complex64")
            for shape in ((8, 1 << 14), (20, 1 << 13), 1 << 18)
        ]
        del whole
        for i in range(30 + 4 * SETTLING):
            if i == 30 + 2 * SETTLING:
                before = encoder.stats()
            found = compute(x, i)
            cyrt.commit()
        after = encoder.stats()
        operations, replayed = (after[key] - before[key] for key in ("operations", "replayed"))
        program.share = replayed / operations
        return found if isinstance(found, list) else [found]

    in_each_mode(program, patches=False)
    assert program.share == 1


@pytest.mark.parametrize("size", [N, 1 << 18])
def test_the_memory_in_use(setting, pooled, size):
    """It is counted when a result is replayed, and when it is dropped."""
    found = []
    for mode in MODES:
        setting(CYRT_REPLAY=mode)
        with cyrt.Stream():
            gc.collect()
            before = cyrt.memory_stats()["in_use"]
            x, b = cyrt.zeros(size), cyrt.ones(size)
            found.append([])
            for _ in range(2 * SETTLING):
                for _ in range(4):
                    x = x + b
                    y = x * 0.5
                    found[-1].append(cyrt.memory_stats()["in_use"] - before)
                cyrt.commit()
            del x, b, y
            assert cyrt.memory_stats()["in_use"] == before
    assert found[0] == found[1] == found[2]


# --- what closes the short way of calls ---

CALLS = {
    "a kernel": "add[1, 64](arrays[i], ones[i], arrays[i + 1], 64)",
    "an operation with out=": "cyrt.add(arrays[i], ones[i], out=arrays[i + 1])",
    "an operation": "arrays[i + 1] = arrays[i] + ones[i]",
    "an operation with a number": "arrays[i + 1] = arrays[i] + 1",
}
BEGINNING = f"""
import ctypes
import os
import sys
import cyrt
from cyrt import tape
from cyrt.driver import table
add = cyrt.Module({SOURCE!r})["add"]
fail = cyrt.Kernel('extern "C" __global__ void fail() {{ asm("trap;"); }}', "fail")
ones = [cyrt.ones(64) for _ in range(12)]
sets = [[cyrt.zeros(64) for _ in range(13)] for _ in range(2)]

def run(arrays, *steps):
    for i in steps:
        CALL

def repeat():
    for _ in range(20):
        for arrays in sets:
            run(arrays, *range(12))
            cyrt.commit()

def tell():
    try:
        run(sets[1], 5)
    except Exception as error:
        print(type(error).__name__, getattr(error, "name", None))
    else:
        print("nothing was raised")

repeat()
stats = cyrt.current_encoder().stats()
assert stats["replayed"] > (100 if os.environ["CYRT_REPLAY"] != "0" else -1)
"""
ENDINGS = {
    "a fork": """
        run(sets[1], *range(5))
        pid = os.fork()
        if pid == 0:
            tell()
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(pid, 0)
        """,
    "the end of the interpreter": """
        run(sets[1], *range(5))
        table.close()
        tell()
        """,
    "a fault": """
        run(sets[1], *range(5))
        try:
            with cyrt.Stream() as other:
                fail[1, 1]()
                other.synchronize()
        except cyrt.CudaError:
            tell()
        """,
    "a launch that fails": """
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        launching = []

        @prototype
        def launch(*arguments):
            if not launching:
                return original(*arguments)
            launching.clear()
            run(sets[1], *range(5))
            return 700

        place = ctypes.cast(launch, ctypes.c_void_p).value
        original = prototype(table.replace("cuGraphLaunch", place, 0))
        launching.append(1)
        run(sets[0], *range(12))
        tell()
        """,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("what", ENDINGS)
def test_what_ends_the_use_of_the_device(python, only_emulated, pooled, what, call):
    """The next call tells of it, replayed or not."""
    program = BEGINNING.replace("CALL", CALLS[call]) + textwrap.dedent(ENDINGS[what])
    limit = "12" if what == "a launch that fails" else "128"
    found = [
        python(program, CYRT_REPLAY=mode, CYRT_MAX_OPS_PER_GRAPH=limit, CYRT_CHECK="0")
        for mode in MODES
    ]
    assert [each.stdout for each in found] == [found[0].stdout] * len(found)
    kind = "CudaError" if what in ("a fault", "a launch that fails") else "RuntimeError"
    assert kind in found[0].stdout, found[0].stderr


EVENTS = {}


def event(function):
    EVENTS[function.__name__.replace("_", " ")] = function
    return function


@event
def an_export(p):
    p.found.append(p.ones[5].ptr and 1)


@event
def an_export_of_the_result(p):
    p.found.append(p.arrays[6].ptr and 1)


@event
def a_copy_of_another_stream_from_the_host(p):
    with p.second:
        p.gate.wait()
        cyrt.commit()
        p.ones[5].copy_from(p.host, blocking=False)


@event
def a_copy_of_another_stream_to_the_host(p):
    with p.second:
        p.gate.wait()
        cyrt.commit()
        p.arrays[6].copy_to(p.host, blocking=False)


@event
def a_use_of_another_stream_before_a_copy(p):
    """The copy makes this stream the home again, and is no part of a recording."""
    with p.second:
        p.found.append(p.ones[5] + 1)
    p.ones[5].copy_from(p.host, blocking=False)
    p.run(5)
    with p.second:
        p.ones[5].fill(7)
        cyrt.commit()
    p.second.synchronize()
    p.next = 6


class Operands:
    """Each step has operands of its own."""

    STEPS = 12

    def __init__(self, add, second, gate):
        self.add, self.second, self.gate = add, second, gate
        self.ones = [cyrt.ones(N) for _ in range(self.STEPS)]
        self.arrays = [cyrt.zeros(N) for _ in range(self.STEPS)]
        self.host = cyrt.PinnedBuffer(4 * N)
        np.frombuffer(self.host, np.float32)[:] = 3
        self.found = []
        cyrt.synchronize()

    def run(self, *steps):
        for i in steps:
            self.add(self.arrays[i], self.ones[i], self.arrays[(i + 1) % self.STEPS])


def adder(module, call):
    kernel = module["add"][1, N]

    def add(x, b, y):
        if call == "a kernel":
            kernel(x, b, y, N)
        else:
            cyrt.add(x, b, out=y)

    return add


@pytest.mark.parametrize("call", ["a kernel", "an operation"])
@pytest.mark.parametrize("what", EVENTS)
def test_what_happens_to_an_operand(in_each_mode, module, streams, pooled, unchecked, what, call):
    """In the middle of a batch that is replayed, which has not used it yet."""

    def program(encoder):
        streams.append(cyrt.Stream())
        p = Operands(adder(module, call), streams[-1], Gate())
        for _ in range(SETTLING):
            p.run(*range(p.STEPS))
            cyrt.commit()
        program.replayed = encoder.stats()["replayed"]
        p.next = 5
        p.run(*range(5))
        EVENTS[what](p)
        p.run(*range(p.next, p.STEPS))
        cyrt.commit()
        until(lambda: encoder.stream.done, 0.2)  # it waits for the other stream
        p.gate.open()
        cyrt.synchronize()
        p.second.synchronize()
        return [*p.arrays, *p.ones, *p.found, np.frombuffer(p.host, np.float32).copy()]

    in_each_mode(program, patches=False)
    assert program.replayed > 0


@pytest.mark.parametrize("call", ["a kernel", "an operation"])
def test_an_operand_that_a_copy_has_brought_back(module, setting, pooled, unchecked, call):
    """Another stream has used it. Whoever looks for its uses finds the one that was replayed."""
    setting(CYRT_REPLAY="1")
    second = cyrt.Stream()
    with cyrt.Stream():
        encoder, p = cyrt.current_encoder(), Operands(adder(module, call), second, None)
        for _ in range(SETTLING):
            p.run(*range(p.STEPS))
            cyrt.commit()
        assert encoder.stats()["replayed"] > 0
        with second:
            p.found.append(p.ones[5] + 1)
        second.synchronize()
        p.ones[5].copy_from(p.host, blocking=False)
        p.run(*range(8))
        assert encoder.num_ops == 8
        with second:
            assert p.ones[5].ptr
            assert encoder.num_ops == 0
        assert (p.arrays[6].numpy() == p.arrays[5].numpy() + 3).all()


def test_memory_of_another_size_in_the_place_of_a_result(python, pooled):
    """What describes the result's memory describes smaller memory since a trim."""
    done = python(
        """
        import contextlib
        import cyrt
        N = 917_504 // 4  # four of a slab, from which small memory is cut
        with cyrt.Stream():
            encoder = cyrt.current_encoder()
            x, b, *others = [cyrt.ones(N) for _ in range(4)]

            def batch():
                global x
                x *= 0.5
                y = x + b
                cyrt.commit()
                return y

            for _ in range(8):
                batch()
            replayed = encoder.stats()["replayed"]
            assert replayed > 0
            cyrt.synchronize()
            with contextlib.suppress(cyrt.OutOfMemoryError):
                cyrt.Buffer(1 << 45)
            small = [cyrt.ones(n) for n in range(1500, 15000, 1500)]
            cyrt.commit()
            small.clear()
            assert (batch().numpy() == 1 + 0.5 ** 9).all()
            assert all((each.numpy() == 1).all() for each in [b, *others])
        """,
        CYRT_REPLAY="1",
    )
    assert done.returncode == 0, done.stderr


def test_a_handler_goes_on_with_a_script(settled):
    """Behind an operation that another thread has recorded since the handler began. The end of the
    handler launches all of them."""
    program, gate = settled(), Gate()
    stream, begun, go, left = program.encoder.stream, *(threading.Event() for _ in range(3))

    def go_on():
        begun.set()
        assert go.wait(30)
        stream.__enter__()  # the end of a block would launch what it has recorded
        program.run(6)

    def leave():
        stream.__exit__(None, None, None)
        left.set()

    gate.wait()
    program.encoder.add_completed_handler(go_on)
    cyrt.commit()
    program.run(*range(5))
    gate.open()
    assert begun.wait(30)
    program.run(5)
    assert program.encoder.num_ops == 6
    go.set()
    assert until(lambda: program.encoder.num_ops == 0)
    program.encoder.add_completed_handler(leave)
    cyrt.commit()
    assert left.wait(30)
    program.check_replay()


# --- launches ---


@pytest.fixture
def settled(module, setting):
    """A function that returns a program on a stream of its own that is being replayed."""
    with contextlib.ExitStack() as blocks:

        def settle(mode="1"):
            setting(CYRT_REPLAY=mode)
            blocks.enter_context(cyrt.Stream())
            program = Chain(module)
            for _ in range(SETTLING):
                program.run()
                cyrt.commit()
            assert program.changes(program.run, cyrt.commit)["replayed"] == Chain.STEPS
            return program

        yield settle


class Chain:
    """Each step adds 1 to the next array, which depends on the one before."""

    STEPS = 12

    def __init__(self, module):
        self.add, self.encoder = module["add"], cyrt.current_encoder()
        self.one = cyrt.ones(N)
        self.arrays = [cyrt.zeros(N) for _ in range(self.STEPS + 1)]
        self.rounds = 0
        cyrt.synchronize()

    def run(self, *steps):
        for i in steps or range(self.STEPS):
            self.add[1, N](self.arrays[i], self.one, self.arrays[i + 1], N)

    def changes(self, *functions):
        before = self.encoder.stats()
        for function in functions:
            function()
        after = self.encoder.stats()
        return {key: after[key] - before[key] for key in before}

    def check(self):
        for i, array in enumerate(self.arrays):
            assert (array.numpy() == i).all()

    def check_replay(self):
        """It begins again."""
        for _ in range(SETTLING):
            self.run()
            cyrt.commit()
        assert self.changes(self.run, cyrt.commit)["replayed"] == self.STEPS
        self.check()


NOT_SUPPORTED = 801


def in_launch(replaced, function, result=None):
    """Call the function inside the next launch of a graph."""
    left = [function]

    def launch(original, *arguments):
        if left:
            left.pop()()
            if result is not None:
                return result
        return original(*arguments)

    replaced("cuGraphLaunch", [c_void_p] * 2, launch)
    return left


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("steps", [1, 5, Chain.STEPS])
def test_what_is_replayed_while_a_batch_is_lost(settled, module, replaced, mode, steps):
    """By another thread, before the driver has refused the batch: what depends on it is lost."""
    program = settled(mode)
    lost, first = cyrt.zeros(N), cyrt.full(N, 7.0)
    cyrt.synchronize()
    begun, go_on = threading.Event(), threading.Event()
    refusing = [True]

    def fail(original, *arguments):
        if threading.current_thread() is worker:
            if not begun.is_set():
                begun.set()
                assert go_on.wait(30)
            return NOT_SUPPORTED if refusing else original(*arguments)
        return original(*arguments)

    def work():
        with program.encoder.stream:
            with contextlib.suppress(cyrt.CudaError):
                cyrt.commit()
            refusing.clear()  # the block's end launches what was replayed

    worker = threading.Thread(target=work)
    replaced("cuGraphLaunch", [c_void_p] * 2, fail)
    replaced("cuLaunchKernelEx", [c_void_p] * 4, fail)
    module["add"][1, N](first, first, lost, N)
    module["add"][1, N](lost, first, program.arrays[0], N)
    worker.start()
    assert begun.wait(30)
    program.run(*range(steps))
    go_on.set()
    worker.join(30)
    cyrt.commit()
    for i, array in enumerate(program.arrays):
        if i <= steps:
            with pytest.raises(cyrt.CudaError, match="NOT_SUPPORTED"):
                array.numpy()
        else:
            assert (array.numpy() == i).all()
    for array in lost, *program.arrays:
        array.fill(0)
    program.check_replay()


@pytest.mark.parametrize("mode", MODES[1:])
def test_a_commit_that_waits_for_its_turn(settled, replaced, mode):
    """It looks at its script again when the turn of another thread has ended."""
    program = settled(mode)
    cyrt.synchronize()
    begun, go_on = threading.Event(), threading.Event()

    def launch(original, *arguments):
        if threading.current_thread() is worker:
            begun.set()
            assert go_on.wait(30)
        return original(*arguments)

    def work():
        with program.encoder.stream:
            program.arrays[0].fill(0)
            cyrt.commit()

    def let_go():
        until(lambda: False, 0.05)
        go_on.set()

    replaced("cuGraphLaunch", [c_void_p] * 2, launch)
    worker = threading.Thread(target=work)
    for _ in range(3):  # its graph is there
        work()
    cyrt.synchronize()
    for _ in range(SETTLING):
        program.run()
        cyrt.commit()
    worker.start()
    assert begun.wait(30)
    program.run()
    opener = threading.Thread(target=let_go)
    opener.start()
    found = program.changes(cyrt.commit)
    opener.join()
    worker.join(30)
    assert found["replayed"] == Chain.STEPS
    program.check_replay()


@pytest.mark.parametrize("steps", [1, 5, Chain.STEPS])
@pytest.mark.parametrize("kernel", [0, 4])
def test_a_refused_launch(settled, replaced, steps, kernel):
    program = settled()
    number = iter(range(1000))
    refusing = [True]

    def launch_graph(original, *arguments):
        return NOT_SUPPORTED if refusing else original(*arguments)

    def launch_kernel(original, *arguments):
        return NOT_SUPPORTED if refusing and next(number) == kernel else original(*arguments)

    for array in program.arrays[1:]:
        array.fill(0)
    cyrt.synchronize()
    replaced("cuGraphLaunch", [c_void_p] * 2, launch_graph)
    replaced("cuLaunchKernelEx", [c_void_p] * 4, launch_kernel)
    program.run(*range(steps))
    if kernel < steps:
        with pytest.raises(cyrt.CudaError, match="the kernel add"):
            cyrt.commit()
    else:
        cyrt.commit()
    refusing.clear()
    for i, array in enumerate(program.arrays):
        if kernel < i <= steps:
            with pytest.raises(cyrt.CudaError, match="the kernel add"):
                array.numpy()
        else:
            assert (array.numpy() == (i if i <= steps else 0)).all()
    for array in program.arrays:
        array.fill(0)
    program.check_replay()


@pytest.mark.parametrize("when", ["before", "in the middle"])
def test_poison_of_another_stream(settled, replaced, when):
    """Nothing is replayed while memory is lost."""
    program = settled()
    lost = cyrt.zeros(N)
    cyrt.synchronize()
    refusing = [False]

    def refuse(original, *arguments):
        return NOT_SUPPORTED if refusing[0] else original(*arguments)

    def lose():
        with cyrt.Stream():
            program.add[1, N](program.one, program.one, lost, N)
            refusing[0] = True
            with pytest.raises(cyrt.CudaError):
                cyrt.commit()
        refusing[0] = False

    replaced("cuGraphLaunch", [c_void_p] * 2, refuse)
    replaced("cuLaunchKernelEx", [c_void_p] * 4, refuse)
    middle = 0 if when == "before" else 6
    if middle:
        program.run(*range(middle))
    lose()
    program.run(*range(middle, 8))
    program.add[1, N](lost, program.one, program.arrays[9], N)
    program.run(9)
    cyrt.commit()
    for i, array in enumerate(program.arrays):
        if i in (9, 10):
            with pytest.raises(cyrt.CudaError):
                array.numpy()
        else:
            assert (array.numpy() == i).all()
    lost.fill(0)
    for array in program.arrays:
        array.fill(0)
    program.check_replay()


@pytest.mark.parametrize(("name", "calls"), [("cuGraphLaunch", 1), ("cuEventRecord", 1)])
@pytest.mark.parametrize("steps", [1, 5, Chain.STEPS])
def test_ctrl_c_inside_a_launch(settled, interrupt, name, calls, steps):
    program = settled()
    for array in program.arrays[1:]:
        array.fill(0)
    cyrt.synchronize()
    program.run(*range(steps))
    interrupt(name, calls)
    with pytest.raises(KeyboardInterrupt):
        cyrt.commit()
    assert interrupt.came(name)
    assert program.encoder.num_ops == 0
    for i, array in enumerate(program.arrays):
        assert (array.numpy() == (i if i <= steps else 0)).all()
    program.check_replay()


@pytest.mark.parametrize("steps", [1, 5, Chain.STEPS])
def test_an_exception_between_operations(settled, steps):
    program = settled()

    def interrupted():
        program.run(*range(steps))
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert program.encoder.num_ops == steps
    assert repr(program.encoder) == f"<cyrt.CommandEncoder with {steps} operations recorded>"
    if steps < Chain.STEPS:
        program.run(*range(steps, Chain.STEPS))
    found = program.changes(cyrt.commit)
    assert found["replayed"] == Chain.STEPS
    program.check_replay()


@pytest.mark.parametrize("steps", [1, 5, Chain.STEPS])
def test_what_a_finalizer_adds_inside_a_commit(settled, steps):
    """After the commit has looked at what there is: the tracer is called before the launch."""
    program = settled()
    extra = cyrt.zeros(N)
    cyrt.synchronize()

    class Tracer(Log):
        def begin_commit(self, *arguments):
            if left:
                left.pop()()
            return super().begin_commit(*arguments)

    def add():
        program.add[1, N](program.arrays[steps], program.one, extra, N)

    def add_and_commit():
        add()
        cyrt.commit()

    def commit_and_free():
        """The script that is being looked at is not busy any more."""
        cyrt.commit()
        cyrt.trim_memory()

    for function in add, add_and_commit, cyrt.commit, cyrt.trim_memory, commit_and_free:
        left = [function]
        program.run(*range(steps))
        tracer = Tracer()
        commits.set_tracer(tracer)
        try:
            cyrt.commit()
        finally:
            commits.set_tracer(None)
        assert program.encoder.num_ops == 0
        if "add" in function.__name__:
            assert (extra.numpy() == steps + 1).all()
            extra.fill(0)
        program.check_replay()


@pytest.mark.parametrize("steps", [1, 5, Chain.STEPS])
def test_what_another_thread_records_inside_a_launch(settled, replaced, steps):
    """It is the next batch's, which another script serves, or none."""
    program = settled()
    begun, go_on = threading.Event(), threading.Event()

    def launch(original, *arguments):
        if threading.current_thread() is worker and not begun.is_set():
            begun.set()
            assert go_on.wait(30)
        return original(*arguments)

    def work():
        with program.encoder.stream:
            cyrt.commit()

    replaced("cuGraphLaunch", [c_void_p] * 2, launch)
    program.run()
    worker = threading.Thread(target=work)
    worker.start()
    assert begun.wait(30)
    program.run(*range(steps))
    assert program.encoder.num_ops == steps
    go_on.set()
    worker.join(30)
    cyrt.commit()
    program.check_replay()


def test_a_device_reset(python, only_emulated, pooled):
    done = python(
        f"""
        import cyrt
        SOURCE = {SOURCE!r}
        def program(rounds):
            add = cyrt.Module(SOURCE)["add"]
            x, y = cyrt.ones(64), cyrt.zeros(64)
            encoder = cyrt.current_encoder()
            for _ in range(rounds):
                for _ in range(10):
                    add[1, 64](x, y, y, 64)
                    z = y * 2
                cyrt.commit()
            return encoder, z, add, x, y
        for steps in (0, 1, 5, 10):
            encoder, z, add, x, y = program(10)
            assert encoder.stats()["replayed"] > 0
            for _ in range(steps):
                add[1, 64](x, y, y, 64)
                z = y * 2
            cyrt.Device().reset()
            del z, add, x, y
            z = program(10)[1]
            assert (z.numpy() == 200).all(), z
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "environment",
    [
        {"CYRT_GRAPH_CACHE_SIZE": "1"},
        {"CYRT_LAUNCH_BLOCKING": "1"},
        {"CYRT_CHECK": "1"},
        {"CYRT_POOL": "0"},
        {"CYRT_PDL": "0"},
        {"CYRT_EARLY_LOADS": "0"},
        {"CYRT_MAX_OPS_PER_GRAPH": "7"},
        {"CYRT_GRAPHS": "0"},
    ],
    ids=lambda environment: "=".join(*environment.items()),
)
def test_under_other_settings(python, environment):
    program = """
        import os
        import sys
        import cyrt
        import numpy as np
        with cyrt.Stream():
            encoder = cyrt.current_encoder()
            x, b, w = cyrt.ones(64), cyrt.ones(64), cyrt.ones((64, 64)) / 64
            log = []
            for i in range(40):
                for k in range(9):
                    x = x + b
                    y = (x * 0.5).sum()
                    if i == 20 and k == 4:
                        x += y
                    z = (w @ x.reshape(64, 1)).reshape(64)
                    x = x + z / 2 ** 10
                if i % 2:
                    cyrt.commit()
                    plan = encoder.last_plan()
                    log.append((plan.names, plan.edges) if plan else None)
            stats = encoder.stats()
            print(x.numpy().tobytes().hex(), stats["operations"])
            print(stats["replayed"], file=sys.stderr)
            # Without the pool a GPU's addresses differ each time, and how many nodes are patched
            # decides where batches end.
            if cyrt.Device(0).emulated or {"CYRT_POOL", "CYRT_CHECK"}.isdisjoint(os.environ):
                names = "commits", "launches", "early_loads", "patched"
                print(log, [stats[name] for name in names])
    """
    found = [python(program, **environment, CYRT_REPLAY=mode) for mode in MODES]
    assert [each.returncode for each in found] == [0, 0, 0], [each.stderr for each in found]
    assert found[1].stdout == found[0].stdout
    assert found[2].stdout == found[0].stdout
    replayed = [int(each.stderr.splitlines()[-1]) for each in found]
    none = {
        "CYRT_CHECK",
        "CYRT_POOL",
        "CYRT_GRAPHS",
    }  # no memory comes again, or there are no graphs
    assert [each > 0 for each in replayed] == [False] + 2 * [none.isdisjoint(environment)]


def test_calls_are_replayed_one_at_a_time(python, pooled):
    """CYRT_LAUNCH_BLOCKING=1: a call returns when its kernel has ended, and raises its error."""
    program = f"""
        import os
        import cyrt
        add = cyrt.Module({SOURCE!r})["add"]
        fail = cyrt.Kernel(
            'extern "C" __global__ void fail(int n) {{ if (n) asm volatile("trap;"); }}', "fail")
        with cyrt.Stream() as stream:
            encoder = cyrt.current_encoder()
            x, y, z = cyrt.zeros(64), cyrt.ones(64), cyrt.zeros(64)
            for i in range(12):
                for call in (
                    lambda: add[1, 64](x, y, x, 64),
                    lambda: cyrt.multiply(x, 0.5, out=z),
                    lambda: fail[1, 1](0),
                ):
                    call()
                    assert stream.done and encoder.num_ops == 0
            assert (x.numpy() == 12).all() and (z.numpy() == 6).all()
            replayed = encoder.stats()["replayed"]
            assert replayed >= 24 or os.environ["CYRT_REPLAY"] == "0", replayed
            try:
                fail[1, 1](1)
            except cyrt.CudaError as error:
                print("raised by the call", error.name)
    """
    for mode in MODES:
        done = python(program, CYRT_LAUNCH_BLOCKING="1", CYRT_REPLAY=mode, CYRT_CHECK="0")
        assert done.stdout.startswith("raised by the call"), done.stdout + done.stderr


class Silent:
    """An NVTX that shows nothing."""

    @staticmethod
    def push_range(text, domain):
        pass

    @staticmethod
    def pop_range(domain):
        pass


@pytest.mark.parametrize("commit", [True, False], ids=["a commit a round", "no commit"])
@pytest.mark.parametrize("way", ["a tracer", "a profile", "NVTX", "a profile of some rounds"])
def test_traces_change_nothing_about_when_replay_begins(
    setting, monkeypatch, module, tmp_path, pooled, streams, way, commit
):
    setting(CYRT_REPLAY="1", CYRT_FUSE="0")

    first, rounds = 3 * ("some" in way), 40 if commit else 160

    def counts(trace):
        """Return how many operations have been replayed after each round."""
        plan_cache.forget()
        cyrt.synchronize()
        gc.collect()
        cyrt.trim_memory()
        streams.append(cyrt.Stream())
        found = []
        with streams[-1]:
            encoder = cyrt.current_encoder()
            x, y, z = (cyrt.ones(N) for _ in range(3))
            for block, part in ((contextlib.nullcontext(), first), (trace, rounds - first)):
                cyrt.synchronize()  # as a profile does before it begins
                with block:
                    for _ in range(part):
                        for _ in range(5):
                            x = x + y
                            module["add"][1, N](x, y, z, N)
                            z *= 0.5
                        if commit:
                            cyrt.commit()
                        found.append(encoder.stats()["replayed"])
            assert (x.numpy() == 1 + 5 * rounds).all()
        return found

    counts(contextlib.nullcontext())
    wanted = counts(contextlib.nullcontext())
    assert wanted[-1] > wanted[-20] > 0
    trace = contextlib.nullcontext()
    if way == "a tracer":
        trace = logged()
    elif way == "NVTX":
        monkeypatch.setattr(commits, "nvtx", Silent)
    else:
        trace = cyrt.profile(tmp_path / "trace.json")
    assert counts(trace) == wanted


# --- what else is replayed ---


def test_calls_of_libraries(in_each_mode, library, fresh_templates, pooled):
    """Templates of one kernel and of several, with a workspace, at other addresses and in another
    order from time to time."""

    def program(encoder):
        vectors = [Vectors(seed, spare=seed) for seed in range(3)]
        calls = [(library.scaled, (1,)), (library.add, (2,))]
        for i in range(24):
            for k in range(4):
                chosen = vectors[2 if i in (12, 18) and k == 2 else k % 2]
                for call, key in reversed(calls) if i in (14, 20) and k == 1 else calls:
                    record_call(call, chosen, key)
                record_call(library.chain, chosen, (3,), workspace=4096)
            cyrt.commit()
        program.replayed = encoder.stats()["replayed"]
        return [each.result() for each in vectors]

    in_each_mode(program)
    assert program.replayed > 0


def test_programmatic_edges_and_early_loads(in_each_mode, relay, pooled):
    def program(encoder):
        arrays = [cyrt.ones(N) for _ in range(5)]
        w, b = cyrt.ones((N, N), dtype=cyrt.float16), cyrt.ones(N, dtype=cyrt.float16)
        for i in range(24):
            for k in range(4):
                relay[1, N](arrays[k], arrays[k + 1], N)
                if i == 15 and k == 2:
                    encoder.stream.handle  # noqa: B018
                x = cyrt.nn.linear(cyrt.ones((1, N), dtype=cyrt.float16), w, b) / 64
                relay[1, N](arrays[k + 1], arrays[k], N)
            cyrt.commit()
            if i % 8 == 4:
                w[0, 0] = i
        program.replayed = encoder.stats()["replayed"]
        return [*arrays, x]

    in_each_mode(program)
    assert program.replayed > 0


def test_handlers_that_record_beside_replay(in_each_mode, module, pooled):
    """Each batch has one, which records on the batch's stream, or on a stream of its own."""

    def program(encoder):
        x, b, y, z = cyrt.zeros(N), cyrt.ones(N), cyrt.zeros(N), cyrt.zeros(N)
        other, called = cyrt.Stream(), []
        cyrt.synchronize()

        def record():
            with other:
                z.__iadd__(b)
            if len(called) % 3 == 2:
                with encoder.stream:
                    y.__iadd__(b)
            called.append(1)

        for _ in range(6 * SETTLING):
            for _ in range(4):
                module["add"][1, N](x, b, x, N)
                cyrt.add(x, b, out=x)
            encoder.add_completed_handler(record)
            cyrt.commit()
        cyrt.synchronize()
        assert until(lambda: len(called) == 6 * SETTLING)
        other.synchronize()
        cyrt.synchronize()
        program.replayed = encoder.stats()["replayed"]
        return [x, y, z]

    # When handlers are called depends on how long the device takes.
    in_each_mode(program, patches=False, timeless=False)
    assert program.replayed > 0


def test_rounds_inside_batch(in_each_mode, module, pooled):
    """Blocks of one round, of a part of one, and of several."""

    def program(encoder):
        x, b, y = cyrt.zeros(N), cyrt.ones(N), cyrt.zeros(N)
        cyrt.synchronize()

        def run(rounds):
            for _ in range(rounds):
                for _ in range(4):
                    module["add"][1, N](x, b, x, N)
                    y.__iadd__(x * 0.5)

        replayed = []
        for i in range(4 * SETTLING):
            with cyrt.batch():
                run(1 if i % 10 else 2)
            if i % 7 == 6:
                with contextlib.suppress(ZeroDivisionError), cyrt.batch():
                    run(1)
                    raise ZeroDivisionError
            replayed.append(encoder.stats()["replayed"])
        program.replayed = replayed
        return [x, y]

    in_each_mode(program)
    assert program.replayed[-1] > program.replayed[-SETTLING] > 0


def test_two_streams_by_turns_on_what_both_read(in_each_mode, streams, pooled):
    """Now and then one of them writes it."""

    def program(encoder):
        streams.append(cyrt.Stream())
        both, shared = [encoder.stream, streams[-1]], cyrt.ones(N)
        results = [cyrt.zeros(N), cyrt.zeros(N)]
        cyrt.synchronize()
        for i in range(40):
            for k, stream in enumerate(both):
                with stream:
                    for _ in range(5):
                        results[k] = results[k] + shared
                        results[k] *= 0.5
                    if i % 10 == 5 + k:
                        shared += 1
        program.replayed = encoder.stats()["replayed"]
        return results

    in_each_mode(program, patches=False)  # memory comes back when a stream's work has ended
    assert program.replayed > 0


def test_scripts_keep_no_module(replaced, setting, streams):
    unloaded = []

    def unload(original, handle):
        unloaded.append(handle)
        return original(handle)

    setting(CYRT_REPLAY="1")
    cyrt.synchronize()
    gc.collect()
    replaced("cuModuleUnload", [c_void_p], unload)
    streams.append(cyrt.Stream())
    with streams[-1]:
        encoder, own = cyrt.current_encoder(), cyrt.Kernel(SOURCE, "add", define={"OWN": 7})
        x, y = cyrt.ones(N), cyrt.zeros(N)
        for _ in range(2 * SETTLING):
            for _ in range(5):
                own[1, N](x, y, y, N)
                y *= 0.5
            cyrt.commit()
        assert encoder.stats()["replayed"] > 0
        cyrt.synchronize()
        assert unloaded == []
        own[1, N](x, y, y, N)  # it is being replayed
        del own
        gc.collect()
        background.wait()  # a batch that is searched for what can be fused holds its code
        for _ in range(3):
            x + y
            cyrt.commit()
            cyrt.synchronize()
        assert len(unloaded) == 1
        other = cyrt.Kernel(SOURCE, "add", define={"OWN": 8})
        before = y.numpy().copy()
        other[1, N](x, y, y, N)
        y *= 0.5
        assert (y.numpy() == (before + 1) / 2).all()


def test_a_trim_frees_the_scripts(settled):
    program = settled()
    cyrt.trim_memory()
    assert program.changes(program.run, cyrt.commit)["replayed"] == 0
    program.check_replay()


def test_a_trim_keeps_the_script_that_is_replayed(settled, replaced, pooled):
    """Other threads may record while it gives back memory."""
    program, half = settled(), Chain.STEPS // 2
    x = cyrt.Buffer(8 << 20)
    x.fill(1)
    cyrt.synchronize()
    begun = []

    def free(original, address):
        if not begun:
            begun.append(address)
            program.run(*range(half))
        return original(address)

    def rest():
        program.run(*range(half, Chain.STEPS))
        cyrt.commit()

    replaced("cuMemFree", [c_uint64], free)
    del x
    found = program.changes(cyrt.trim_memory, rest)
    assert len(begun) == 1
    assert found["replayed"] == Chain.STEPS
    program.check_replay()


@pytest.mark.parametrize("lengths", [(8, 8), (5, 8), (8, 5, 3)], ids=str)
def test_rounds_by_turns(in_each_mode, module, lengths):
    """They begin in the same way, and each has a script of its own, also one that begins another.
    An operation before the difference has another parameter each time."""

    def program(encoder):
        x, y = cyrt.ones(N), cyrt.zeros(N)

        def run(i):
            nonlocal y
            which = i % len(lengths)
            for k in range(lengths[which]):
                module["add"][1, N](x, y, y, N - i % 7 if k == 2 else N)
                if k > 3 and which:
                    y *= 0.5
                elif k > 3:
                    y -= x
            cyrt.commit()

        for i in range(60):
            run(i)
        before = encoder.stats()
        for i in range(60):
            run(i)
        after = encoder.stats()
        program.replayed, program.operations = (
            after[key] - before[key] for key in ("replayed", "operations")
        )
        return [y]

    in_each_mode(program)
    assert program.replayed == program.operations


def _launch(module, encoder, x, y):
    module["add"][1, N](x, x, y, N)


def _add_kernel(module, encoder, x, y):
    encoder.add_kernel(module["add"], 1, N, (x, x, y, N))


def _compute(module, encoder, x, y):
    cyrt.add(x, x, out=y)


def _compute_with_a_number(module, encoder, x, y):
    y *= 0.5


def _compute_in_a_part(module, encoder, x, y):
    y[1:] += x[1:]


def _step(module, encoder, x, y):
    optimizer = cyrt.optim.sgd(0.5)
    optimizer.update(x, optimizer.init(y), y)


@pytest.mark.parametrize("inside", [True, False], ids=["open", "closed"])
@pytest.mark.parametrize(
    "write",
    [_launch, _add_kernel, _compute, _compute_with_a_number, _compute_in_a_part, _step],
    ids=lambda write: write.__name__,
)
def test_a_write_that_is_replayed_raises_the_version(setting, module, write, inside):
    """That is so while a tape is open, and as long as one that is closed is kept."""
    setting(CYRT_REPLAY="1", CYRT_FUSE="0")
    versions = []

    def run(t):
        for _ in range(30):
            a = x + x
            before = tape.versions_of(y)
            write(module, encoder, x, y)
            versions.append((before, tape.versions_of(y)))
            a = a + x
            cyrt.commit()
        return t * t

    with cyrt.Stream():
        encoder = cyrt.current_encoder()
        x, y, t = cyrt.ones(N), cyrt.ones(N), cyrt.asarray(3.0)
        if inside:
            assert cyrt.grad(run)(t).item() == 6.0
        else:
            _, pull = cyrt.vjp(lambda t: t * t, t)
            run(t)
            assert pull(cyrt.ones(()))[0].item() == 6.0
        stats = encoder.stats()
    assert all(after > before for before, after in versions)
    assert stats["replayed"] > stats["operations"] // 2


def test_a_replayed_call_of_a_library_makes_a_value_stale(
    setting, library, fresh_templates, pooled
):
    """It writes what the gradient of an operation before it needs."""
    setting(CYRT_REPLAY="1", CYRT_FUSE="0")
    with cyrt.Stream():
        encoder = cyrt.current_encoder()
        vectors = Vectors()
        shape = vectors.host[0].shape
        x, weight = cyrt.ones(shape), cyrt.asarray(vectors.out, dtype="float32", shape=shape)

        def run(x):
            y = x * weight
            record_call(library.scaled, vectors)  # writes the weight
            return cyrt.sum(y + 1)

        for _ in range(2 * SETTLING):
            with pytest.raises(RuntimeError, match="needs a value that was written in place"):
                cyrt.grad(run)(x)
            cyrt.commit()
        assert encoder.stats()["replayed"] > 0


# Calls of linear algebra and Fourier transforms that differ in one thing.
MATRIX = np.eye(4, dtype=np.float32) * 8 + np.arange(16, dtype=np.float32).reshape(4, 4) / 16
OTHER_CALLS = {
    "the inverse transform": ("x", cyrt.fft.fft, cyrt.fft.ifft),
    "another norm": ("x", cyrt.fft.fft, lambda x: cyrt.fft.fft(x, norm="ortho")),
    "another axis": ("x", cyrt.fft.fft, lambda x: cyrt.fft.fft(x, axis=0)),
    "strides": ("x", cyrt.fft.fft, lambda x: cyrt.fft.fft(x.T)),
    "several axes": ("x", cyrt.fft.fft2, cyrt.fft.ifft2),
    "the other triangle": ("x", linalg.cholesky, lambda x: linalg.cholesky(x, upper=True)),
    "the other half": ("x", linalg.eigvalsh, lambda x: linalg.eigvalsh(x, "U")),
    "the transpose": (
        "xb",
        linalg.solve_triangular,
        lambda x, b: linalg.solve_triangular(x, b, trans=1),
    ),
    "a diagonal of ones": (
        "xb",
        linalg.solve_triangular,
        lambda x, b: linalg.solve_triangular(x, b, unit_diagonal=True),
    ),
    "another function": ("xb", linalg.solve_triangular, linalg.solve),
    "other operands": ("xb", linalg.solve, lambda x, b: linalg.solve(b, x)),
    "results of two": ("x", linalg.qr, linalg.lu_factor),
}


@pytest.mark.parametrize("what", OTHER_CALLS)
def test_a_call_that_differs_in_one_thing(in_each_mode, pooled, what):
    names, usual, other = OTHER_CALLS[what]
    operands = {"x": MATRIX, "b": MATRIX[::-1].copy()}
    replayed = []

    def program(encoder):
        arrays = [cyrt.asarray(operands[name]) for name in names]
        found = []

        def values(result):
            found.extend(map(np.array, result if isinstance(result, tuple) else [result]))

        cyrt.synchronize()
        for _ in range(2):
            for _ in range(SETTLING):
                usual(*arrays)
                usual(*arrays)
                cyrt.commit()
            values(other(*arrays))
            usual(*arrays)
            values(other(*arrays))
            values(usual(*arrays))
        replayed.append(encoder.stats()["replayed"])
        return found

    in_each_mode(program, patches=False)
    assert replayed[0] == 0
    assert min(replayed[2:]) > 0
