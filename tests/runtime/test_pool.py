"""Which blocks the pool hands out, and how much it holds."""

from __future__ import annotations

import ctypes
import gc
import threading
from pathlib import Path

import numpy as np
import pytest
from gates import Gate
from rounds import adam
from rounds.adam import Adam
from threads import run_in_threads

import cyrt
from cyrt import settings
from cyrt.runtime.module import loading

pytestmark = pytest.mark.usefixtures("pooled")

SLAB = 4 << 20


@pytest.fixture
def emptied():
    """The pool with nothing free but what its slabs in use hold. Free parts of large blocks whose
    other parts are in use, by what earlier tests left, are taken meanwhile."""
    gc.collect()
    cyrt.synchronize()  # memory in use by work in flight is not given back
    cyrt.trim_memory()
    held, reserved = [], cyrt.memory_stats()["reserved"]
    while cyrt.memory_stats()["reserved"] == reserved:
        held.append(cyrt.Buffer(SLAB))
    held.pop()
    cyrt.trim_memory()
    yield cyrt.memory_stats()
    held.clear()


def most_reserved(emptied, peak):
    """Return the bytes that the pool may have reserved after large blocks were in use, `peak` bytes
    at once: a tenth more than those and what was in use before, and some slabs."""
    return emptied["reserved"] + peak + (emptied["reserved"] + peak) / 10 + 3 * SLAB


def address(buffer):
    """Without handing it out, which would change where the memory goes."""
    return repr(buffer).partition(" at ")[2]


def test_the_lowest_free_block_comes_first(python):
    """The block of an allocation depends on what is free, not on the order of the frees. A new
    process has no stream whose sequences have blocks."""
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
    assert after["reserved"] <= most_reserved(emptied, largest)
    assert after["driver_allocations"] - emptied["driver_allocations"] <= 12


def test_sizes_that_take_turns_receive_blocks_of_their_own(emptied):
    """The larger block is too large for the smaller size, but cannot be split: without blocks of
    both sizes each allocation calls the driver."""
    sizes = 16 << 17, 21 << 17
    with cyrt.Stream():

        def run(rounds):
            for _ in range(rounds):
                for size in sizes:
                    cyrt.Buffer(size)

        run(20)
        before = cyrt.memory_stats()
        run(50)
        after = cyrt.memory_stats()
    assert after["driver_allocations"] == before["driver_allocations"]
    assert after["reserved"] <= emptied["reserved"] + sum(sizes) + SLAB


def test_such_blocks_exceed_the_peak_by_a_part_of_the_memory_at_most(python):
    """Many sizes, each of which is often wanted."""
    done = python(
        """
        import cyrt
        MB, most = 1 << 20, 0
        large = cyrt.Buffer(32 * MB)
        begun = cyrt.memory_stats()["reserved"]
        del large
        for size in range(8, 33):
            for _ in range(20):
                for nbytes in (size * MB, size * MB // 2):
                    cyrt.Buffer(nbytes)
            most = max(most, cyrt.memory_stats()["reserved"] - begun)
        assert 8 * MB < most <= 16 * MB, most / MB
        assert cyrt.trim_memory() == begun + most
        for size in range(32, 7, -1):  # The trim has also reset which sizes were often wanted.
            cyrt.Buffer(size * MB)
        assert cyrt.memory_stats()["reserved"] <= begun + begun / 10
        """,
        CYRT_MEMORY_LIMIT="1G",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_large_array_that_grows_leaves_no_trail(emptied):
    with cyrt.Stream():
        x = cyrt.zeros(1 << 18)
        for _ in range(40):
            x = cyrt.concatenate([x, cyrt.ones(1 << 16)])
        cyrt.synchronize()
        after = cyrt.memory_stats()
    assert x.size == (1 << 18) + 40 * (1 << 16)
    # While it grows both lengths are there.
    assert after["reserved"] <= most_reserved(emptied, 2.2 * x.nbytes)


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
        state = [cyrt.zeros(200_000) for _ in range(12)]  # the sites lose what is gone
        for _ in range(20):
            for i in range(12):
                state[i] = state[i] + 1
            cyrt.commit()
        assert all(float(x[-1]) == 20 for x in state)


def test_memory_that_no_operation_used_is_freed_between_batches(python):
    """It is a site's, so it is not the sequence's last entry: the batch has no entry in it yet."""
    done = python(
        """
        import cyrt
        with cyrt.Stream():
            encoder = cyrt.current_encoder()
            x, b = cyrt.ones(64), cyrt.ones(64)
            kept, unused = [], []
            for i in range(200):
                for _ in range(5):
                    x = x + b
                    if encoder.num_ops == 0:
                        unused.clear()
                unused.append(cyrt.empty(64))
                kept = kept[-29:] + [x * 0.5]
            assert (x.numpy() == 1001).all()
        """
    )
    assert done.returncode == 0, done.stderr


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
    """Also where sequences have the blocks of a round."""
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


def test_in_use_is_what_was_asked_for(emptied):
    kept = [cyrt.Buffer(1000), cyrt.zeros(3), cyrt.Buffer(0), cyrt.Buffer(5 << 20), cyrt.Buffer(9)]
    during = cyrt.memory_stats()
    assert during["in_use"] - emptied["in_use"] == 1000 + 12 + 0 + (5 << 20) + 9
    assert during["peak"] >= during["in_use"]
    assert during["cached"] == during["reserved"] - during["in_use"]
    kept[0] = kept[2] = None  # a block of another size class may serve the next one
    kept.append(cyrt.Buffer(700))
    during = cyrt.memory_stats()
    assert during["in_use"] - emptied["in_use"] == 12 + (5 << 20) + 9 + 700
    kept.clear()
    after = cyrt.memory_stats()
    assert after["in_use"] == emptied["in_use"]
    assert after["cached"] == after["reserved"] - after["in_use"]
    assert after["peak"] >= during["in_use"]
    cyrt.trim_memory()
    assert cyrt.memory_stats()["peak"] == after["in_use"]


SCARCE = """
import cyrt
MB = 1 << 20
"""
LIMITS = pytest.mark.parametrize("variable", ["CYRT_MEMORY_LIMIT", "CYRT_EMULATED_MEMORY"])


@pytest.fixture
def scarce(python, emulated):
    """Run a program that has 64 MB of memory; assert that it ends well."""

    def run(program, variable="CYRT_MEMORY_LIMIT"):
        if variable == "CYRT_EMULATED_MEMORY" and not emulated:
            pytest.skip("sets the memory of the emulated device")
        done = python(SCARCE + program, **{variable: "64M"})
        assert done.returncode == 0, done.stdout + done.stderr

    return run


@LIMITS
def test_a_small_array_does_not_keep_a_large_block(scarce, variable):
    scarce(
        """
big = cyrt.zeros(58 * MB, dtype="uint8")
cyrt.synchronize()
for _ in range(3):
    del big
    kept = [cyrt.zeros(7 * MB, dtype="uint8") for _ in range(8)]
    assert cyrt.memory_stats()["in_use"] == 56 * MB
    del kept
    big = cyrt.zeros(58 * MB, dtype="uint8")
""",
        variable,
    )


def test_arrays_that_stay_leave_no_holes(scarce):
    scarce(
        """
big = cyrt.Buffer(58 * MB)
big.fill(1)
del big
kept = [cyrt.Buffer(7 * MB) for _ in range(8)]
del kept[::2]                                   # every other one
kept.append(cyrt.Buffer(28 * MB))
"""
    )


def test_parts_that_stay_keep_a_quarter_of_the_memory_at_most(scarce):
    """Each array that stays comes after one that does not, and is little more than half of it, so
    that the other half is too small for those that follow."""
    scarce(
        """
kept = []
for size in (3, 4, 5, 6, 7, 8):
    x = cyrt.Buffer(2 * (size - 1) * MB)
    x.fill(1)
    del x
    kept.append(cyrt.Buffer(size * MB))
    kept[-1].fill(size)
# 33 MB are in use: what is left of three quarters is to be had at once
large = cyrt.Buffer(15 * MB)
large.fill(0)
for x in kept:
    found = bytearray(x.nbytes)
    x.copy_to(found)
    assert found == bytes([x.nbytes // MB]) * x.nbytes
"""
    )


@LIMITS
def test_small_arrays_receive_what_larger_ones_freed(scarce, variable):
    """Every slab is in use, and half of the memory is free."""
    scarce(
        """
def fill():
    kept = []
    try:
        while True:
            kept.append(cyrt.Buffer(500 << 10))
    except cyrt.OutOfMemoryError:
        return kept


kept = fill()
for x in kept:
    x.fill(1)
del kept[::2], x
for nbytes in (512, 100 << 10, 400 << 10):
    with cyrt.Stream():                 # it has no free memory of its own
        small = [cyrt.Buffer(nbytes) for _ in range(10)]
        for x in small:
            x.fill(2)
    small += [cyrt.Buffer(nbytes) for _ in range(10)]
    for x in small:
        x.fill(2)
    del small, x
for x in kept:
    found = bytearray(x.nbytes)
    x.copy_to(found)
    assert found == bytes([1]) * x.nbytes
""",
        variable,
    )


def test_small_arrays_receive_parts_of_large_blocks(scarce):
    """A part that stays keeps the other one from being given back."""
    scarce(
        """
big = cyrt.Buffer(16 * MB)
rest = cyrt.Buffer(48 * MB)
del big
part = cyrt.Buffer(8 * MB)
part.fill(1)
small = [cyrt.Buffer(1000) for _ in range(8)]
for i, x in enumerate(small):
    x.fill(i)
for i, x in enumerate(small):
    found = bytearray(1000)
    x.copy_to(found)
    assert found == bytes([i]) * 1000
del small, x
part = [part, cyrt.Buffer(8 * MB)]              # the parts are joined
"""
    )


def test_rounds_of_small_arrays_in_large_blocks(scarce):
    """A round's sequences and sites have no large block."""
    scarce(
        """
big = cyrt.Buffer(16 * MB)
rest = cyrt.Buffer(48 * MB)
del big
part = cyrt.Buffer(8 * MB)
kept = None
for i in range(60):
    x = cyrt.full(100, i, dtype="int32")
    y = x + 1
    kept = y * 2
    if i % 3 == 0:
        assert (kept.numpy() == 2 * i + 2).all()
del x, y, kept
cyrt.synchronize()
assert cyrt.memory_stats()["in_use"] == 56 * MB
part = [part, cyrt.Buffer(8 * MB)]
"""
    )


@LIMITS
def test_arrays_in_cycles_are_collected_before_memory_runs_out(scarce, variable):
    scarce(
        """
import gc
gc.disable()
for _ in range(4):
    cycle = [cyrt.Buffer(40 * MB)]
    cycle.append(cycle)
    del cycle
""",
        variable,
    )


@pytest.mark.usefixtures("only_emulated")
def test_modules_are_collected_before_memory_runs_out(scarce):
    """A module and its kernels are a cycle."""
    scarce(
        """
import gc
gc.disable()
x = cyrt.zeros(4, dtype="int32")
for i in range(4):
    module = cyrt.Module(f'''__device__ int many[10 << 20];
        extern "C" __global__ void k{i}(int* x) {{ x[0] += {i}; x[1] = many[5]; }}''')
    module[f"k{i}"][1, 1](x)
    cyrt.commit()
    del module
assert x.numpy()[0] == 6
""",
        "CYRT_EMULATED_MEMORY",
    )


@pytest.mark.usefixtures("only_emulated")
def test_memory_that_is_being_freed_is_waited_for(python):
    """Without the pool, memory goes back to the driver when a kernel that uses it has ended."""
    done = python(
        """
import cyrt
from gates import Gate
gate = Gate()
x = cyrt.Buffer(40 << 20)
gate.write(x, 1, 1)
cyrt.commit()
del x
gate.open_in(0.3)
y = cyrt.Buffer(40 << 20)
""",
        folders=[Path(__file__).parents[1]],
        CYRT_POOL="0",
        CYRT_GRAPHS="0",
        CYRT_EMULATED_MEMORY="64M",
    )
    assert done.returncode == 0, done.stderr


def number(buffer):
    return int(address(buffer).rstrip(">"), 16)


def edges(encoder, count):
    """The edges of the last plan, which has `count` nodes."""
    plan = encoder.last_plan()
    assert len(plan.names) == count
    return {(source, target) for source, target, _ in plan.edges}


@pytest.mark.usefixtures("emptied", "batched")
def test_parts_are_ordered_after_the_whole_and_the_whole_after_its_parts():
    with cyrt.CommandEncoder() as encoder, encoder.stream:
        for _ in range(2):
            whole = cyrt.Buffer(16 << 20)
            start = number(whole)
            whole.fill(1)
            del whole
            parts = [cyrt.Buffer(4 << 20) for _ in range(3)]
            assert [(number(x) - start) >> 20 for x in parts] == [0, 4, 8]
            for i, part in enumerate(parts):
                part.fill(i + 2)
            del parts, part
            whole = cyrt.Buffer(16 << 20)
            assert number(whole) == start
            whole.fill(9)
            encoder.commit()
            assert edges(encoder, 5) >= {(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)}
            assert not edges(encoder, 5) & {(1, 2), (1, 3), (2, 3)}  # parts are independent
            del whole


def test_parts_of_several_streams(emptied):
    """One stream writes a part that another one has split off, and frees it; the whole is given
    back, or serves again."""
    first, second = cyrt.Stream(), cyrt.Stream()
    values = bytearray(4 << 20)
    for number in range(4):
        with first:
            whole = cyrt.Buffer(16 << 20)
            whole.fill(1)
            del whole
            parts = [cyrt.Buffer(4 << 20) for _ in range(4)]
        with second:
            for part in parts[::2]:
                part.fill(number)
        with first:
            for part in parts[1::2]:
                part.fill(100 + number)
        for i, part in enumerate(parts):
            part.copy_to(values)
            assert values == bytes([number + 100 * (i % 2)]) * (4 << 20)
        del parts, part
        if number % 2:
            cyrt.trim_memory()
            assert cyrt.memory_stats()["reserved"] <= emptied["reserved"]
    assert cyrt.memory_stats()["in_use"] == emptied["in_use"]


def test_parts_in_use_keep_their_neighbours(emptied):
    whole = cyrt.Buffer(16 << 20)
    whole.fill(1)
    del whole
    part = cyrt.Buffer(4 << 20)
    part.fill(5)
    cyrt.trim_memory()
    assert cyrt.memory_stats()["reserved"] - emptied["reserved"] == 16 << 20
    rest = cyrt.Buffer(12 << 20)  # what is left of the block
    rest.fill(6)
    assert cyrt.memory_stats()["reserved"] - emptied["reserved"] == 16 << 20
    for buffer, value in ((part, 5), (rest, 6)):
        found = bytearray(buffer.nbytes)
        buffer.copy_to(found)
        assert found == bytes([value]) * buffer.nbytes
    del part, rest, buffer
    assert cyrt.trim_memory() == 16 << 20


@pytest.mark.usefixtures("batched")
def test_a_program_of_large_arrays_whose_sizes_take_turns_settles(emptied):
    """Each round has the addresses of the round before, and asks the driver for nothing."""
    with cyrt.CommandEncoder() as encoder, encoder.stream:

        def run():
            x = cyrt.ones(3 << 20)  # 12 MB
            for count in (5, 2, 7, 1, 4, 3):
                y = cyrt.full(count << 18, float(count))
                x[: count << 18] += y
            encoder.commit()
            return x

        for _ in range(8):
            x = run()
        allocations, before = cyrt.memory_stats()["driver_allocations"], encoder.stats()
        for _ in range(4):
            x = run()
        after = encoder.stats()
        assert cyrt.memory_stats()["driver_allocations"] == allocations
        assert after["patched"] == before["patched"]
        assert x[:: 1 << 18].tolist() == [23, 22, 20, 17, 13, 8, 8, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("streams", [1, 2])
def test_random_allocations(python, streams):
    """No two of them overlap, none that fits is refused, and all memory can be joined again."""
    done = python(
        f"""
        import random_allocations
        random_allocations.check({streams})
        """,
        folders=[Path(__file__).parent],
        CYRT_MEMORY_LIMIT="64M",
    )
    assert done.returncode == 0, done.stdout + done.stderr


SIZE_AND_ADDRESS = [ctypes.c_void_p, ctypes.c_size_t]


@pytest.fixture
def limit(monkeypatch, emptied):
    """Set CYRT_MEMORY_LIMIT so that the pool may take so many bytes more than it has."""

    def set_limit(nbytes):
        most, get = emptied["reserved"] + nbytes, settings.get
        monkeypatch.setattr(
            settings, "get", lambda name: most if name == "CYRT_MEMORY_LIMIT" else get(name)
        )

    return set_limit


def hold_first(replaced, call, types):
    """The first call of a driver's function waits for another thread's call, for a second at most.
    Return the list of the calls' sizes."""
    sizes, others = [], threading.Event()

    def hold(original, *arguments):
        sizes.append(arguments[1])
        if len(sizes) == 1:
            others.wait(1)
        else:
            others.set()
        return original(*arguments)

    replaced(call, types, hold)
    return sizes


def test_the_limit_holds_for_threads(limit, replaced):
    """Two of three threads find that a third one is about to have the memory."""
    limit(64 << 20)
    hold_first(replaced, "cuMemAlloc", SIZE_AND_ADDRESS)
    kept = []
    errors = run_in_threads(*[lambda: kept.append(cyrt.Buffer(40 << 20))] * 3)
    stats = cyrt.memory_stats()
    assert stats["reserved"] <= stats["limit"]
    assert len(kept) == 1
    assert [type(error) for error in errors] == [cyrt.OutOfMemoryError] * 2


def test_threads_that_need_a_slab_share_it(emptied, replaced):
    """All eight need a block of a class that has none."""
    sizes = hold_first(replaced, "cuMemAlloc", SIZE_AND_ADDRESS)
    kept = []
    assert run_in_threads(*[lambda: kept.append(cyrt.Buffer(917_504))] * 8) == []
    assert sizes == [SLAB] * len(sizes)
    assert len(sizes) <= 2
    kept += [cyrt.Buffer(131_072) for _ in range(8)]  # what is left of each slab
    assert len(sizes) <= 2


def test_every_slab_is_cut_to_its_end(emptied):
    before = cyrt.memory_stats()["driver_allocations"]
    kept = [cyrt.Buffer(917_504) for _ in range(12)]  # 4 each leave 512 KB of a slab
    made = cyrt.memory_stats()["driver_allocations"] - before
    kept += [cyrt.Buffer(524_288) for _ in range(made)]
    assert cyrt.memory_stats()["driver_allocations"] - before == made


@pytest.mark.parametrize("when", ["before", "during"])
def test_an_allocation_beside_another_threads_trim(limit, replaced, when):
    """The memory that the allocation needs was freed before that trim began, which is about to give
    it back, or during it."""
    limit(42 << 20)
    inside, done = threading.Event(), threading.Event()
    x, y = cyrt.Buffer(40 << 20), cyrt.Buffer(1 << 20)
    x.fill(1)
    y.fill(1)
    cyrt.synchronize()

    def free(original, address):
        inside.set()
        done.wait(1)  # until the allocation has ended, or waits for this trim
        return original(address)

    replaced("cuMemFree", [ctypes.c_void_p], free)
    if when == "before":
        del x
    else:
        del y
    thread = threading.Thread(target=cyrt.trim_memory)
    thread.start()
    assert inside.wait(30)
    if when == "during":
        del x
    kept = [cyrt.Buffer(500 << 10) for _ in range(12)]
    done.set()
    thread.join()
    assert len(kept) == 12


class Ends:
    def __init__(self, function):
        self.function = function

    def __del__(self):
        self.function()


def test_a_trim_does_not_wait_for_one_that_waits_for_its_thread(emptied):
    """A finalizer in the first trim needs code that another thread loads, which trims as well. That
    trim frees what the first one has taken out of the pool."""
    needs, freed = threading.Event(), []
    gate, x = Gate(), cyrt.Buffer(40 << 20)

    def load():
        needs.set()
        with loading:
            pass

    def first():
        with cyrt.Stream():
            cyrt.current_encoder().keep(Ends(load))
            gate.wait()
            gate.open_in(0.2)  # so that the object ends when the memory has left the pool
            cyrt.trim_memory()

    def second():
        with loading:
            thread.start()
            assert needs.wait(30)
            freed.append(cyrt.trim_memory())

    del x
    thread = threading.Thread(target=first, daemon=True)
    other = threading.Thread(target=second, daemon=True)
    other.start()
    for each in (other, thread):
        each.join(30)
        assert not each.is_alive()
    assert freed[0] >= 40 << 20
    assert cyrt.memory_stats()["reserved"] <= emptied["reserved"]


@pytest.mark.usefixtures("batched")
@pytest.mark.parametrize("nbytes", [40 << 20, 128 << 10])
@pytest.mark.parametrize("trim", [1, 2])
def test_memory_that_is_freed_during_an_allocations_trim(
    limit, replaced, monkeypatch, trim, nbytes
):
    """The trim has nothing to give back; what another thread frees while it waits is found. Between
    the first trim and the second one the garbage collector runs."""
    limit(42 << 20)
    gate, held = Gate(), [cyrt.Buffer(nbytes) for _ in range((40 << 20) // nbytes)]
    for each in held:
        each.fill(1)
    del each
    cyrt.synchronize()
    cyrt.trim_memory()
    recorded, timers, collect = [], [], gc.collect

    def busy():
        gate.wait()
        cyrt.commit()
        timers.append(gate.open_in(0.1))

    def record(original, event, stream):
        if timers:
            recorded.append(event)
        return original(event, stream)

    def query(original, event):
        if recorded:  # the trim waits
            held.clear()
        return original(event)

    def collect_and_wait():
        collect()
        if not timers:
            busy()

    monkeypatch.setattr(gc, "collect", collect_and_wait)
    replaced("cuEventRecord", [ctypes.c_void_p] * 2, record)
    replaced("cuEventQuery", [ctypes.c_void_p], query)
    if trim == 1:
        busy()
    kept = [cyrt.Buffer(500 << 10) for _ in range(12)]
    assert len(kept) == 12
    assert not held
    timers[0].join()


def test_a_trim_returns_what_it_gave_back(emptied, replaced):
    """Not what another thread allocates while the driver frees it."""
    x, others = cyrt.Buffer(24 << 20), []
    x.fill(1)
    cyrt.synchronize()

    def free(original, address):
        if not others:
            others.append(cyrt.Buffer(32 << 20))
        return original(address)

    replaced("cuMemFree", [ctypes.c_void_p], free)
    del x
    assert cyrt.trim_memory() == 24 << 20
    assert cyrt.memory_stats()["in_use"] - emptied["in_use"] == 32 << 20


@pytest.mark.usefixtures("only_emulated")
def test_pinned_memory_that_is_not_needed_any_more_is_given_back(replaced):
    """Page-locked memory of dropped objects is freed, once its work has ended, before a new
    allocation fails."""
    cyrt.synchronize()
    gate = Gate()
    dropped, calls = cyrt.PinnedBuffer(1 << 20), []

    def allocate(original, address, size, flags):
        calls.append("allocate")
        return original(address, size, flags) if "free" in calls else 2

    def free(original, address):
        calls.append("free")
        return original(address)

    gate.write(dropped, 5, 16)
    cyrt.commit()
    del dropped
    replaced("cuMemHostAlloc", [*SIZE_AND_ADDRESS, ctypes.c_uint], allocate)
    replaced("cuMemFreeHost", [ctypes.c_void_p], free)
    timer = gate.open_in(0.1)
    kept = cyrt.PinnedBuffer(3 << 20)
    assert kept.nbytes == 3 << 20
    assert calls == ["allocate", "free", "allocate"]
    timer.join()


@pytest.mark.usefixtures("only_emulated")
def test_a_copy_waits_for_page_locked_memory_that_was_dropped(python):
    done = python(
        """
        import ctypes
        import cyrt
        from cyrt.driver import table
        from gates import Gate

        def replace(name, *types):
            def decorate(function):
                prototype = ctypes.CFUNCTYPE(ctypes.c_int, *types)
                kept.append(prototype(lambda *arguments: function(original, *arguments)))
                address = ctypes.cast(kept[-1], ctypes.c_void_p).value
                original = prototype(table.replace(name, address))
            return decorate

        gate, dropped, kept, calls = Gate(), cyrt.PinnedBuffer(1 << 20), [], []
        gate.write(dropped, 5, 16)
        cyrt.commit()
        del dropped

        @replace("cuMemHostAlloc", ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint)
        def allocate(original, *arguments):
            calls.append("allocate")
            return original(*arguments) if "free" in calls else 2

        @replace("cuMemFreeHost", ctypes.c_void_p)
        def free(original, address):
            calls.append("free")
            return original(address)

        timer = gate.open_in(0.1)
        x, back = cyrt.Buffer(1 << 20), bytearray(1 << 20)
        x.copy_from(bytes([7]) * (1 << 20))
        assert calls[:3] == ["allocate", "free", "allocate"], calls
        x.copy_to(back)
        assert back == bytes([7]) * (1 << 20)
        timer.join()
        """,
        folders=(Path(__file__).parents[1],),
    )
    assert done.returncode == 0, done.stderr
