"""Which blocks the pool hands out, and how much it holds."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import cyrt
from cyrt.bench.rounds import adam
from cyrt.bench.rounds.adam import Adam

pytestmark = pytest.mark.usefixtures("pooled")

SLAB = 4 << 20


@pytest.fixture
def emptied():
    """The pool with nothing free but what its slabs in use hold."""
    gc.collect()
    cyrt.trim_memory()
    return cyrt.memory_stats()


def address(buffer):
    """Without handing it out, which would change where the memory goes."""
    return repr(buffer).partition(" at ")[2]


def test_the_lowest_free_block_comes_first(python):
    """The block of an allocation depends on what is free, not on the order of the frees. A new
    process has no stream whose places ask for the blocks that they had."""
    done = python(
        """
        import numpy as np
        import cyrt
        address = lambda buffer: repr(buffer).partition(" at ")[2]
        rng = np.random.default_rng(7)
        blocks = [cyrt.Buffer(5000) for _ in range(300)]
        addresses = [address(b) for b in blocks]
        for _ in range(3):
            freed = sorted(rng.permutation(300)[:100])
            for i in rng.permutation(freed):
                blocks[i] = None
            for i in freed:
                blocks[i] = cyrt.Buffer(5000)
            assert [address(b) for b in blocks] == addresses
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("count", [1, 63, 64, 65, 4095, 4097])
def test_as_many_blocks_as_a_program_wants(count):
    """A class's slots grow, in use and free."""
    with cyrt.Stream():
        for _ in range(2):
            blocks = [cyrt.Buffer(100) for _ in range(count)]
            for i in (0, count // 2, count - 1):
                blocks[i].fill(i % 251)
            for i in (0, count // 2, count - 1):
                held = bytearray(100)
                blocks[i].copy_to(held)
                assert held == bytes([i % 251]) * 100
            assert len({repr(b) for b in blocks}) == count
            del blocks


def test_small_blocks_hold_twice_their_peak_at_most(emptied):
    """Batches whose results live for any time, no two alike."""
    rng = np.random.default_rng(5)
    with cyrt.Stream():
        state = [cyrt.zeros(2048) for _ in range(64)]
        for _ in range(30):
            for i in rng.integers(0, 64, 100):
                state[i] = state[i] + 1
            cyrt.commit()
        after = cyrt.memory_stats()
    # In use at once: the state, and what is freed but not reused until a batch of 128 ends.
    most = (64 + 128 + 1) * 8192
    assert after["reserved"] - emptied["reserved"] <= 2 * most + 2 * SLAB


def test_large_blocks_hold_little_more_than_their_peak():
    """Sizes that alternate, one at a time, all use the room of the largest."""
    with cyrt.Stream():
        many = [cyrt.Buffer(9 << 20) for _ in range(8)]  # trimming forgets this peak
        del many
    gc.collect()
    cyrt.trim_memory()
    emptied = cyrt.memory_stats()
    largest = 0
    with cyrt.Stream():
        for _ in range(10):
            for size in (5, 9, 3, 17, 12, 30, 7, 21):
                x = cyrt.Buffer(size << 20)
                x.fill(1)
                largest = max(largest, x.nbytes)
                del x
        after = cyrt.memory_stats()
    assert after["reserved"] - emptied["in_use"] <= 1.1 * largest + 3 * SLAB
    assert after["driver_allocations"] - emptied["driver_allocations"] <= 12


def test_a_large_array_that_grows_leaves_no_trail(emptied):
    with cyrt.Stream():
        x = cyrt.zeros(1 << 18)
        for _ in range(40):
            x = cyrt.concatenate([x, cyrt.ones(1 << 16)])
        cyrt.synchronize()
        after = cyrt.memory_stats()
    assert x.size == (1 << 18) + 40 * (1 << 16)
    # While it grows both lengths are there.
    assert after["reserved"] - emptied["in_use"] <= 1.1 * 2.2 * 4 * x.size + 3 * SLAB


def test_sizes_that_alternate_keep_memory_flat():
    """100,000 rounds in which each size is freed and another one wanted."""
    sizes = [500, 3000, 700, 9000, 20000, 1200, 66000, 512]
    with cyrt.Stream():

        def soak(rounds):
            for i in range(rounds):
                a = cyrt.Buffer(sizes[i % 8])
                b = cyrt.Buffer(sizes[(3 * i + 1) % 8])
                del a
                c = cyrt.Buffer(sizes[(5 * i + 2) % 8])
                del b, c

        soak(1000)
        before = cyrt.memory_stats()
        soak(100_000)
        after = cyrt.memory_stats()
    assert after["reserved"] == before["reserved"]
    assert after["in_use"] == before["in_use"]


def test_streams_that_pass_blocks_on_keep_memory_flat():
    """What one stream makes another one frees, and neither is ever idle for long."""
    first, second = cyrt.Stream(), cyrt.Stream()

    def pass_on(rounds):
        for _ in range(rounds):
            with first:
                x = [cyrt.full(3000, 1) for _ in range(8)]
            with second:
                for each in x:
                    each += 1
                del x, each
                cyrt.commit()
            with first:
                cyrt.commit()

    pass_on(30)
    before = cyrt.memory_stats()
    pass_on(300)
    after = cyrt.memory_stats()
    assert after["reserved"] == before["reserved"]
    assert after["in_use"] == before["in_use"]


@pytest.mark.usefixtures("batched")
def test_streams_that_end_leave_nothing_kept():
    """A program settles on stream after stream; each keeps blocks for its rounds, which serve the
    next one."""

    def program(stream):
        with stream:
            state = [cyrt.zeros(1024) for _ in range(20)]
            for _ in range(12):
                for i in range(20):
                    state[i] = state[i] * 0.5 + 1
            cyrt.synchronize()

    for _ in range(3):
        program(cyrt.Stream())
    before = cyrt.memory_stats()
    for _ in range(20):
        program(cyrt.Stream())
    assert cyrt.memory_stats()["reserved"] == before["reserved"]


def test_trim_takes_what_is_kept_for_a_round(emptied):
    with cyrt.Stream():
        state = [cyrt.zeros(200_000) for _ in range(12)]
        for _ in range(20):
            for i in range(12):
                state[i] = state[i] * 0.5 + 1
            cyrt.commit()
        assert all(abs(float(x[0]) - 2) < 1e-4 for x in state)
        del state
        cyrt.trim_memory()
        assert cyrt.memory_stats()["reserved"] <= emptied["reserved"] + SLAB
        state = [cyrt.zeros(200_000) for _ in range(12)]  # the places forget what is gone
        for _ in range(20):
            for i in range(12):
                state[i] = state[i] + 1
            cyrt.commit()
        assert all(float(x[-1]) == 20 for x in state)


def test_memory_runs_out_with_blocks_kept(python):
    done = python(
        """
        import cyrt
        state = [cyrt.zeros(60_000) for _ in range(40)]
        for _ in range(20):
            for i in range(40):
                state[i] = state[i] * 0.5 + 1
            cyrt.commit()
        try:
            cyrt.Buffer(100 << 20)
        except cyrt.OutOfMemoryError:
            pass
        else:
            raise AssertionError
        values = [float(x[7]) for x in state]
        assert all(abs(value - 2) < 1e-4 for value in values), values
        del state
        cyrt.Buffer(60 << 20)           # what was kept is given back
        """,
        CYRT_MEMORY_LIMIT="72M",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("batched")
def test_a_concurrent_block_is_given_no_address_twice():
    """Also where the round's places ask for what they had."""
    with cyrt.Stream():
        x = cyrt.ones(1000)
        for _ in range(30):
            with cyrt.concurrent():
                parts = [x + i for i in range(20)]
            total = sum(float(p[0]) for p in parts)
            assert total == 20 + sum(range(20))
            cyrt.commit()


def test_a_program_of_rounds_without_the_pool(python):
    done = python(
        """
        import cyrt
        state = [cyrt.zeros(1000) for _ in range(10)]
        for _ in range(60):
            for i in range(10):
                state[i] = state[i] + 1
        assert all(float(x[3]) == 60 for x in state)
        del state
        cyrt.synchronize()
        assert cyrt.memory_stats()["reserved"] == 0, cyrt.memory_stats()
        """,
        CYRT_POOL="0",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("batched")
class CrossedAdam(Adam):
    """Steps of Adam; in some, another stream writes to moments of the batch and replaces them."""

    def __init__(self, other):
        super().__init__(50, kept=True)
        self.other, self.crossed = other, False
        self.g = CrossedGradients(self.g, self)

    def cross(self, i):
        with self.other:
            self.m[i] += 1
            self.m[i] = cyrt.zeros(adam.N)
            self.other.synchronize()


class CrossedGradients(list):
    def __init__(self, gradients, program):
        super().__init__(gradients)
        self.program = program

    def __iter__(self):
        for i, gradient in enumerate(super().__iter__()):
            if self.program.crossed and i in (4, 14, 24):
                self.program.cross(i - 1)
            yield gradient


def test_a_block_of_a_place_that_another_stream_frees_is_allocated_once():
    """The place of the freed block keeps blocks already, from the rounds before."""
    first, second = cyrt.Stream(), cyrt.Stream()
    program = CrossedAdam(second)
    held = []
    with first:
        for _ in range(60):
            program.run()
    for _ in range(4):
        with first:
            program.crossed = True
            program.run()
            program.crossed = False
            program.run()
        first.synchronize()
        second.synchronize()
        with second:
            held += [cyrt.full(adam.N, float(len(held) + i)) for i in range(60)]
        assert [int(x[0]) for x in held] == list(range(len(held)))


def test_a_block_that_another_stream_frees_is_given_once():
    """A result of the round goes to another stream, which writes to it and frees it before the
    batch ends that its place belongs to."""
    first, second = cyrt.Stream(), cyrt.Stream()
    with first:
        state = [cyrt.zeros(1024) for _ in range(100)]
    for number in range(60):
        with first:
            for i in range(100):
                state[i] = state[i] * 0.5 + 1
                if i % 40 == 4:
                    passed = state[i] + 1
                    with second:
                        passed += number
                        del passed
                        cyrt.commit()
    cyrt.synchronize()
    blocks = []
    for stream in (first, second):
        with stream:
            blocks += [cyrt.Buffer(4096) for _ in range(300)]
    assert len({address(b) for b in blocks}) == len(blocks)
    assert all(abs(float(x[0]) - 2) < 1e-4 for x in state)
