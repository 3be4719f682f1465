"""Fusion: batches that keep coming back run as fewer kernels, with the same results.

Each program runs fused and with ``CYRT_FUSE=0``; its results are compared bit for bit.
"""

from __future__ import annotations

import errno
import functools
import gc
import json
import os
import random
import re
import threading
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from outside import until
from threads import run_in_threads

import cyrt
from cyrt.builtin import background
from cyrt.graph import fusion
from cyrt.graph.history import num_comparisons

pytestmark = pytest.mark.usefixtures("batched", "pooled")
N = 256
AFTER = 3  # launches after which a batch is compiled
# The most comparisons of a search, for the last of which no operations have paid yet: 1,024
# multiples of a period of one operation, with 2,048 operations.
LAST_SEARCH = 1024 * 2048
ROUNDS = 24  # until every batch of a loop was launched so often


@pytest.fixture(scope="module")
def streams():
    """All streams: a new one would else have the plans of one that has ended."""
    return []


@pytest.fixture
def stream(setting, streams):
    """Make a stream current whose batches are fused, or are not."""

    def make(fuse=True, after=AFTER):
        setting(CYRT_FUSE=str(int(fuse)), CYRT_FUSE_AFTER=str(after))
        streams.append(cyrt.Stream())
        return streams[-1]

    fusion.set_timed(False)  # a plan that is timed runs plain every other time
    yield make
    background.wait()
    fusion.set_timed(None)


@pytest.fixture
def gate(monkeypatch):
    """Hot batches are not compiled before this event is set."""
    from cyrt.builtin.fusion import batches

    gate, fuse = threading.Event(), batches.fuse
    monkeypatch.setattr(batches, "fuse", lambda each: gate.wait(60) and fuse(each))
    yield gate
    gate.set()


class Loop:
    """A step that is repeated: it takes what it returned before, and each round is a batch."""

    def __init__(self, step, *start):
        self.step, self.state = step, start
        self.encoder = cyrt.current_encoder()
        self.found = []

    def run(self, rounds=ROUNDS):
        for _ in range(rounds):
            self.state = self.step(*self.state)
            cyrt.commit()

    def settle(self):
        """Repeat it until it is compiled, and return the stats."""
        self.run()
        assert background.wait()
        return self.encoder.stats()

    def run_fused(self, rounds=4):
        """Run rounds, all of them fused."""
        before = self.encoder.stats()["fused_plans"]
        self.run(rounds)
        assert self.encoder.stats()["fused_plans"] == before + rounds

    def run_plain(self, rounds=4):
        """Run rounds, none of them fused."""
        before = self.encoder.stats()["fused_plans"]
        self.run(rounds)
        assert self.encoder.stats()["fused_plans"] == before


def as_bytes(arrays):
    return [np.array(each).tobytes() for each in arrays]


@pytest.fixture
def compare(stream):
    """Run a program, which takes a function that settles a loop, fused and plain."""

    def run(program):
        with stream():
            fused = as_bytes(program(lambda loop: loop.settle()))
        with stream(fuse=False):
            plain = as_bytes(program(lambda loop: loop.run()))
        assert fused == plain

    return run


def chain(x, b):
    for _ in range(6):
        x = x * 0.5 + b
    return x, b


def start():
    return cyrt.arange(N, dtype=cyrt.float32), cyrt.ones(N)


def test_a_chain_becomes_one_kernel(stream):
    with stream():
        loop = Loop(chain, *start())
        loop.settle()
        before = loop.encoder.stats()
        loop.run_fused()
        after = loop.encoder.stats()
        assert after["fused_nodes"] - before["fused_nodes"] == 4 * 12
        assert after["bytes_saved"] > before["bytes_saved"]
        assert after["launches"] - before["launches"] == 4
        assert after["operations"] - before["operations"] == 4 * 12
        fused = loop.state[0].numpy()
    with stream(fuse=False):
        plain = Loop(chain, *start())
        plain.run(ROUNDS + 4)
        assert plain.encoder.stats()["fused_plans"] == 0
        np.testing.assert_array_equal(plain.state[0].numpy(), fused)


# -- liveness --------------------------------------------------------------------------------------


def run_until_settled(encoder, run):
    """Run a loop's parts until what they launch often is compiled, and return what the last one
    adds to the counts."""
    for _ in range(4):
        run()
        assert background.wait()
    before = encoder.stats()
    run()
    after = encoder.stats()
    return {key: after[key] - before[key] for key in after}


def add_often(state, length):
    """Run iterations of that many equal operations, whose first operand lives to the end."""
    x, b = state
    state[0] = None  # else the result of the last call lives to the end of this one
    for _ in range(1800 // length):
        y = x
        for _ in range(length):
            y = y + b
        x = y
    state[0] = x


@pytest.mark.parametrize(("length", "most"), [(12, 120), (50, 100), (100, 100)])
def test_a_loop_without_commits_is_fused(stream, length, most):
    """All operations are alike, and only a result that lives for an iteration tells its length."""
    results = []
    for fuse in (True, False):
        with stream(fuse=fuse):
            state = list(start())
            found = run_until_settled(
                cyrt.current_encoder(), functools.partial(add_often, state, length)
            )
            results.append(state[0].tobytes())
        if fuse:
            assert found["fused_plans"] == found["launches"] == 1800 // most
            assert found["replayed"] == found["operations"] == 1800
    assert results[0] == results[1]


def blend_often(state):
    """Run iterations of 6 equal parts, each a round of 5 operations: 25 of them fit in a batch."""
    for _ in range(72):
        x, y = state
        for _ in range(6):
            low = y * 0.5
            x = (x - low) * 0.5
            y = low + 1
            x = x + y
        state[:] = x, y


def test_one_fused_plan_tells_that_batches_end_elsewhere(stream, monkeypatch):
    """The batches of a loop are several scripts of one plan. The first of them is compiled, and the
    others wait for the compiler."""
    from cyrt.builtin.fusion import batches

    compiled, fuse = threading.Event(), batches.fuse

    def fuse_one(each):
        if not compiled.is_set():
            try:
                fuse(each)
            finally:
                compiled.set()

    monkeypatch.setattr(batches, "fuse", fuse_one)
    with stream():
        encoder, state = cyrt.current_encoder(), [cyrt.ones((8, 32)), cyrt.ones((8, 1))]
        while not compiled.is_set():
            blend_often(state)
        for _ in range(10):
            blend_often(state)
        before = encoder.stats()["launches"]
        blend_often(state)
        assert encoder.stats()["launches"] - before == 18


def test_a_loop_that_keeps_more_values_later_is_fused_anew(stream):
    """First an intermediate result is dead when its batch is launched, then it is alive."""
    with stream():
        encoder, (x, b), values = cyrt.current_encoder(), start(), []

        def run(rounds, alive):
            nonlocal x
            before = encoder.stats()["fused_plans"]
            for i in range(rounds):
                y = x * 0.5
                x = y + b
                if not alive:
                    del y
                cyrt.commit()
                if alive:
                    if i == rounds - 1:
                        values.append(y.numpy() + 1)
                    del y
            assert background.wait()
            return encoder.stats()["fused_plans"] - before

        for alive in (False, True):
            run(2 * ROUNDS, alive)
            assert run(4, alive) == 4
        np.testing.assert_array_equal(values[-1], x.numpy())


def test_results_that_are_written_anyway_move_no_batch(stream):
    """A product takes the weights that live for an iteration, so all kernels write them."""
    with stream():
        x, w = cyrt.ones((8, 8)), cyrt.ones((8, 8))

        def run():
            nonlocal w
            for _ in range(72):
                v = w
                for _ in range(10):
                    v = ((x @ v) * 0.125 + 0.5) * 0.5
                w = v

        found = run_until_settled(cyrt.current_encoder(), run)
        assert found["fused_plans"] == found["launches"]
        assert found["operations"] > 120 * found["launches"]


def test_searches_compare_few_operations(stream):
    """Iterations of any length, whose results no round shows: each search compares nearly all
    multiples with nearly all operations."""
    with stream():
        rng = random.Random(5)
        x, b = start()
        before = num_comparisons()
        for _ in range(8):
            for _ in range(100):
                y = x
                for _ in range(rng.randint(15, 45)):
                    y = y + b
                x = y
            background.wait()
        operations = cyrt.current_encoder().stats()["operations"]
        compared = num_comparisons() - before
        assert LAST_SEARCH / 4 < compared <= 64 * operations + LAST_SEARCH


def test_results_that_nobody_keeps_are_computed_by_one_kernel(stream):
    """Programs that measure a function drop what it returns."""
    with stream():
        x, b = start()
        encoder = cyrt.current_encoder()
        y = None

        def run(rounds, keep):
            nonlocal y
            for _ in range(rounds):
                y, _ = chain(x, b)
                if not keep:
                    y = None
                cyrt.commit()

        run(ROUNDS, False)
        assert background.wait()
        before = encoder.stats()
        run(4, False)
        after = encoder.stats()
        assert after["fused_plans"] - before["fused_plans"] == 4
        assert after["fused_nodes"] - before["fused_nodes"] == 4 * 12
        run(1, True)  # it is written for the first time
        found = y.numpy()
        run(2 * ROUNDS, True)
        assert background.wait()
        before = encoder.stats()["fused_plans"]
        run(4, True)
        assert encoder.stats()["fused_plans"] == before + 4
        fused = y.numpy()
    with stream(fuse=False):
        expected = chain(x, b)[0].numpy()
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(fused, expected)


def test_a_value_that_lives_longer_has_its_contents(stream):
    kept = []
    keeping = False

    def step(x, b):
        y = x * 0.5 + b
        z = y * 2 - b
        if keeping:
            kept.append(y)
        return z * 0.25, b

    with stream():
        loop = Loop(step, *start())
        loop.settle()
        loop.run_fused()
        x, b = (np.array(each) for each in loop.state)
        keeping = True
        loop.run_plain(1)
        np.testing.assert_array_equal(kept[0], x * np.float32(0.5) + b)


def test_a_view_that_lives_longer_has_its_contents(stream):
    kept = []
    keeping = False

    def step(x, b):
        y = x * 0.5 + b
        if keeping:
            kept.append(y[3:7])
        z = y * 2 - b
        del y
        return z * 0.25, b

    with stream():
        loop = Loop(step, *start())
        loop.settle()
        loop.run_fused()
        x, b = (np.array(each) for each in loop.state)
        keeping = True
        loop.run_plain(1)
        np.testing.assert_array_equal(kept[0], (x * np.float32(0.5) + b)[3:7])


def test_a_value_whose_memory_another_array_had_is_read(compare):
    """A batch uses memory again that holds no value any more; later it reads the value there."""
    n = 300_000  # blocks of 1 MB and more are reused within a batch

    def program(settle):
        reusing = True

        def step(count, x, *_):
            y = x + count
            z = (y - 1) * 2
            if reusing:
                del y
                y = cyrt.empty(n)
            y[:16] = 7
            return count + 1, x, z, cyrt.sort(y[:16] if reusing else y[16:32])

        loop = Loop(step, 0, cyrt.arange(n, dtype=cyrt.float32))
        settle(loop)
        loop.run(4)
        reusing = False
        loop.run(4)
        return loop.state[1:]

    compare(program)


@pytest.mark.parametrize("how", ["read", "wait", "export", "event", "pointer"])
def test_an_observer_in_the_middle_finds_the_value(stream, how):
    found = []
    observing = False

    def step(x, b):
        y = x * 0.5 + b
        if observing:
            if how == "read":
                found.append(y.numpy())
            elif how == "wait":
                cyrt.synchronize()
                found.append(y.numpy())
            elif how == "event":
                cyrt.Event().record()
                found.append(y.numpy())
            elif how == "export":
                capsule = y.__dlpack__()
                found.append(y.numpy())
                del capsule
            else:
                assert y.ptr
                found.append(y.numpy())
        z = y * 2 - b
        return z * 0.25, b

    with stream():
        loop = Loop(step, *start())
        loop.settle()
        loop.run_fused()
        x, b = (np.array(each) for each in loop.state)
        observing = True
        loop.run(1)
        y = x * np.float32(0.5) + b
        np.testing.assert_array_equal(found[0], y)
        np.testing.assert_array_equal(loop.state[0], (y * 2 - b) * np.float32(0.25))
        observing = False
        loop.settle()
        loop.run_fused()


def test_an_exception_in_the_middle_loses_nothing(stream):
    failing = False

    def step(x, b):
        y = x * 0.5 + b
        if failing:
            raise KeyError(y)
        return y * 2 - b, b

    with stream():
        loop = Loop(step, *start())
        loop.settle()
        loop.run_fused()
        x, b = (np.array(each) for each in loop.state)
        failing = True
        with pytest.raises(KeyError) as raised:
            loop.run(1)
        np.testing.assert_array_equal(raised.value.args[0], x * np.float32(0.5) + b)
        del raised
        failing = False
        loop.settle()
        loop.run_fused()


def test_a_handler_reads_what_it_keeps(stream):
    found = []

    def step(x, b):
        y = x * 0.5 + b
        z = y * 2 - b
        cyrt.current_encoder().add_completed_handler(lambda: found.append(z.numpy()))
        return z * 0.25, b

    with stream():
        loop = Loop(step, *start())
        loop.settle()
        loop.run(4)
        cyrt.synchronize()
        assert until(lambda: len(found) == ROUNDS + 4)
    with stream(fuse=False):
        x, b = (np.array(each) for each in start())
        for each in found:
            z = (x * np.float32(0.5) + b) * 2 - b
            np.testing.assert_array_equal(each, z)
            x = z * np.float32(0.25)


# -- aliasing --------------------------------------------------------------------------------------


def test_chains_in_place(compare):
    def step(x, b):
        x += b
        x *= 0.5
        x -= 1
        b += x
        b *= 0.25
        return x, b

    def program(settle):
        loop = Loop(step, *start())
        settle(loop)
        loop.run(4)
        return loop.state

    compare(program)


@pytest.mark.parametrize("case", ["shifted", "reversed", "broadcast", "reinterpreted", "halves"])
@pytest.mark.parametrize("first", ["read", "write"])
def test_other_elements_of_a_block_that_is_written(compare, case, first):
    def other(x):
        return {
            "shifted": lambda: x[1:],
            "reversed": lambda: x[::-1],
            "broadcast": lambda: x[:1],
            "reinterpreted": lambda: x.view(cyrt.int32),
            "halves": lambda: x[: N // 2],
        }[case]()

    def step(x, b):
        if first == "write":
            x += 1
            x *= 0.5
        y = other(x) + 1
        y = y * 2
        if first == "read":
            x += 1
            x *= 0.5
        return x, b, y

    def program(settle):
        loop = Loop(lambda x, b, y: step(x, b), *start(), None)
        settle(loop)
        loop.run(4)
        return loop.state

    compare(program)


def test_large_blocks_that_two_values_share(compare):
    """Blocks of 1 MB and more are reused within a batch."""

    def step(x, b):
        for _ in range(3):
            y = x + b
            y = y * 0.5
            x = y - 1
            del y
        return x, b

    def program(settle):
        n = 300_000
        loop = Loop(step, cyrt.arange(n, dtype=cyrt.float32), cyrt.ones(n))
        settle(loop)
        loop.run(4)
        return loop.state

    compare(program)


def test_a_node_between_keeps_its_place(compare):
    """A path that leaves the operations of a kernel and comes back: these are two kernels."""

    def step(x, b):
        y = x * 0.5 + b
        total = y.sum()
        z = y * total
        z = z - b
        return z / (total + 1), b

    def program(settle):
        loop = Loop(step, *start())
        settle(loop)
        loop.run(4)
        return loop.state

    compare(program)


def test_independent_operations_are_one_launch(stream):
    def step(*arrays):
        return tuple(each * 0.5 + 1 for each in arrays)

    with stream():
        loop = Loop(step, *(cyrt.arange(10 * i + 16, dtype=cyrt.float32) for i in range(12)))
        loop.settle()
        before = loop.encoder.stats()["fused_nodes"]
        loop.run_fused(1)
        assert loop.encoder.stats()["fused_nodes"] == before + 24
        found = as_bytes(loop.state)
    with stream(fuse=False):
        plain = Loop(step, *(cyrt.arange(10 * i + 16, dtype=cyrt.float32) for i in range(12)))
        plain.run(ROUNDS + 1)
        assert as_bytes(plain.state) == found


# -- products --------------------------------------------------------------------------------------

# The kernel that the operations join: the shapes of the operands, and whether the second one lies
# along the summed dimension.
PRODUCTS = {
    "small": ("cyrt_matmul_float32_small", (64, 70), (70, 100), False),
    "large": ("cyrt_matmul_float32", (400, 40), (40, 1000), False),
    "rows": ("cyrt_matmul_float32_rows", (300, 100), (100,), False),
    "columns": ("cyrt_matmul_float32_columns", (100,), (100, 300), False),
    "parts": ("cyrt_matmul_float32_parts", (64, 512), (512, 64), False),
    "batch": ("cyrt_matmul_float32_small", (5, 40, 30), (5, 30, 24), False),
    "skinny": ("cyrt_matmul_float32_skinny_16x16", (12, 16), (16, 2000), True),
    "skinny narrow": ("cyrt_matmul_float32_skinny_across_16x8", (12, 256), (256, 128), False),
    "skinny batch": ("cyrt_matmul_float32_skinny_across_8x32", (3, 4, 16), (3, 16, 720), False),
    "ring": ("cyrt_matmul_float16_skinny_8x16", (7, 96), (96, 300), True),
    "ring across": ("cyrt_matmul_bfloat16_skinny_across_64x32", (40, 96), (96, 304), False),
    "integers": ("cyrt_matmul_uint32_small", (40, 30), (30, 50), False),
}


def _count(kernel, names):
    """The kernels whose names begin so: a device of many multiprocessors has smaller tiles."""
    return sum(each.startswith(kernel) for each in names)


@pytest.mark.usefixtures("own_products")
@pytest.mark.parametrize("case", PRODUCTS)
def test_operations_join_the_product_before_them(compare, rng, case):
    kernel, one, other, along = PRODUCTS[case]
    name = kernel.split("_")[2].replace("uint", "int")
    values = [rng.integers(-9, 9, shape).astype("float32") for shape in (one, other, other[-1:])]

    def program(settle):
        x, y, row = (cyrt.asarray(each, dtype=name) for each in values)
        if along:
            y = cyrt.asarray(values[1].T, dtype=name).T
        if y.ndim == 1:
            row = row[:1]
        whole = x @ y + 1

        def step(z):
            twice = whole * 2  # does not follow from the product
            z = x @ y
            z = (z + row) * twice
            return (cyrt.where(whole > 0, z, -z),)

        loop = Loop(step, whole)
        settle(loop)
        loop.run(4)
        nodes = loop.encoder.last_plan().fusion
        if nodes is not None:
            joined = [each.operations for each in nodes.nodes if each.operations]
            assert len(joined) == 1
            assert _count(kernel, joined[0]) == 1
            assert len(joined[0]) == 7
        return loop.state

    compare(program)


@pytest.mark.usefixtures("own_products")
@pytest.mark.parametrize("case", [each for each in PRODUCTS if each != "large"])
def test_independent_products_are_one_launch(compare, rng, case):
    """Each is computed by its own blocks of the launch, with what follows from it."""
    kernel, one, other, along = PRODUCTS[case]
    name = kernel.split("_")[2].replace("uint", "int")
    numbers = [rng.integers(-9, 9, shape).astype("float32") for shape in (one,) * 4 + (other,)]

    def program(settle):
        *all_x, y = (cyrt.asarray(each, dtype=name) for each in numbers)
        if along:
            y = cyrt.asarray(numbers[-1].T, dtype=name).T

        def step(*state):
            return tuple(x @ y + z for x, z in zip(all_x, state, strict=True))

        loop = Loop(step, *(cyrt.zeros_like(x @ y) for x in all_x))
        settle(loop)
        loop.run(4)
        nodes = loop.encoder.last_plan().fusion
        if nodes is not None:
            found = [_count(kernel, each.operations) for each in nodes.nodes]
            assert [each for each in found if each] == [4]
        return loop.state

    compare(program)


@pytest.mark.usefixtures("own_products")
def test_products_of_many_blocks_are_several_launches(compare, rng):
    """What follows from the first of them does not wait for the last."""
    numbers = [rng.integers(-9, 9, shape).astype("float32") for shape in ((2000, 16), (16, 60))]

    def program(settle):
        x, y = map(cyrt.asarray, numbers)

        def step(*state):
            return tuple(x @ y + z for z in state)

        loop = Loop(step, *(cyrt.full((2000, 60), i) for i in range(5)))
        settle(loop)
        loop.run(2)
        nodes = loop.encoder.last_plan().fusion
        if nodes is not None:
            found = [_count("cyrt_matmul", each.operations) for each in nodes.nodes]
            assert [each for each in found if each] == [4, 1]  # each product has 126 blocks
        return loop.state

    compare(program)


def test_what_a_product_reads_is_not_written_with_it(compare):
    """An operation behind it that writes an operand of the product is a kernel of its own."""

    def program(settle):
        columns_moved = cyrt.roll(cyrt.eye(48), 1, axis=1)

        def step(x, b):
            z = x @ columns_moved
            z = z + b
            x[...] = z - 0.5  # not while other threads read x
            return x, b

        loop = Loop(step, cyrt.arange(48 * 48.0).reshape(48, 48), cyrt.ones(48))
        settle(loop)
        loop.run(4)
        return loop.state

    compare(program)


def test_a_product_that_is_kept_is_written(stream, rng):
    with stream():
        x, y = (cyrt.asarray(rng.standard_normal((40, 40)).astype(np.float32)) for _ in range(2))
        kept = []

        def step(_):
            z = x @ y
            kept[:] = [z] if len(kept) == 7 else []
            return (z * 2 + 1,)

        loop = Loop(step, x)
        loop.settle()
        loop.run_fused(3)
        kept[:] = [None] * 7
        loop.run_plain(1)
        np.testing.assert_array_equal(kept[0].numpy() * 2 + 1, loop.state[0].numpy())
        np.testing.assert_array_equal(kept[0].numpy(), (x @ y).numpy())


def test_operands_of_a_product_that_change_are_patched(stream, rng):
    values = rng.standard_normal((6, 64, 64)).astype(np.float32)
    found = []
    for fuse in True, False:
        with stream(fuse=fuse):
            matrices = cyrt.asarray(values)
            fixed = matrices[5]

            def step(count, total, matrices=matrices, fixed=fixed):
                return count + 1, total + matrices[count % 5] @ fixed * 0.5

            loop = Loop(step, 0, cyrt.zeros((64, 64)))
            before = loop.settle()["fused_plans"]
            loop.run(2 * ROUNDS)
            after = loop.encoder.stats()["fused_plans"]
            assert after >= before + 5 if fuse else after == 0
            found.append(loop.state[1].tobytes())
    assert found[0] == found[1]


def test_small_transpositions_are_copies(compare):
    def step(x, b):
        y = x.T.copy()
        return (y * 0.5 + b).T.copy() - 1, b

    def program(settle):
        n = 40
        loop = Loop(step, cyrt.arange(n * n, dtype=cyrt.float32).reshape(n, n), cyrt.ones(n))
        settle(loop)
        loop.run(4)
        fusion = loop.encoder.last_plan().fusion
        if fusion is not None:
            assert sum(len(each.operations) for each in fusion.nodes) >= 4, fusion.nodes
        return loop.state

    compare(program)


# -- what varies -----------------------------------------------------------------------------------


def test_numbers_that_change_each_time(stream):
    numbers = iter(range(10_000))

    def step(x, b):
        y = x * 0.5 + b
        y = y + float(next(numbers))
        return y * 0.25 - b, b

    with stream():
        loop = Loop(step, *start())
        loop.settle()
        loop.run_fused(8)
        fused = loop.state[0].numpy()
    numbers = iter(range(10_000))
    with stream(fuse=False):
        plain = Loop(step, *start())
        plain.run(ROUNDS + 8)
        np.testing.assert_array_equal(plain.state[0].numpy(), fused)


def slices(data, others, places):
    """A loop whose operations read slices of arrays, at other places each time."""

    def step(x):
        i, j = next(places)
        y = data[16 * i : 16 * i + 64] * 0.5
        z = others[16 * j : 16 * j + 64] + y
        x = x * 0.25 + z * data[16 * i : 16 * i + 64]
        return (x - y,)

    return Loop(step, cyrt.zeros(64))


@pytest.mark.parametrize("same", [False, True])
def test_addresses_that_change_each_time(compare, same):
    """Two operands whose places were equal when the batch was compiled may differ later."""

    def program(settle):
        data = cyrt.arange(1024, dtype=cyrt.float32)
        others = data if same else cyrt.arange(1024, dtype=cyrt.float32) * 3
        places = iter([(i % 7, i % 7 if i < ROUNDS else i % 5) for i in range(2 * ROUNDS)])
        loop = slices(data, others, places)
        settle(loop)
        loop.run(8)
        return loop.state

    compare(program)


def test_addresses_that_change_are_patched(stream):
    with stream():
        data = cyrt.arange(1024, dtype=cyrt.float32)
        places = ((i % 7, i % 5) for i in range(1000))
        loop = slices(data, cyrt.arange(1024, dtype=cyrt.float32) * 3, places)
        before = loop.settle()["fused_plans"]
        loop.run(2 * ROUNDS)
        # Which places of the memory equal each other when it is compiled decides how many are.
        assert loop.encoder.stats()["fused_plans"] >= before + 5


def test_memory_that_is_written_stays_where_it_is(compare):
    """A slice that is written moves to where another operand of the kernel is read."""

    def program(settle):
        data = cyrt.arange(1024, dtype=cyrt.float32)
        places = iter([64] * ROUNDS + [0, 16, 32, 64])

        def step(x):
            i = next(places)
            y = data[:64] * 0.5
            data[i : i + 64] += y
            return (x + y * data[i : i + 64],)

        loop = Loop(step, cyrt.zeros(64))
        settle(loop)
        loop.run(4)
        return [*loop.state, data]

    compare(program)


@pytest.mark.parametrize("size", [1, 256])
@pytest.mark.parametrize("place", [4, 1])
def test_bytes_that_are_viewed_as_numbers(compare, rng, size, place):
    """A copy in a kernel of larger elements reads as many bytes at a time only where it may."""
    contents = rng.integers(0, 256, 2048).astype(np.uint8)

    def program(settle):
        data, found = cyrt.asarray(contents), []
        places = iter([place] * ROUNDS + [4, 5, 6, 8, 1])

        def step(ones):
            at = next(places)
            x = data[at : at + 4 * size].copy().view(cyrt.float32) * ones
            found.append((x * 2).numpy())
            return (ones,)

        loop = Loop(step, cyrt.ones(size))
        settle(loop)
        loop.run(5)
        return found[ROUNDS:]

    compare(program)


def test_memory_that_is_split_before_it_is_compiled(stream, gate):
    """What a kernel wrote stays where it is, also if that is another block's memory by then."""
    cyrt.synchronize()
    cyrt.trim_memory()
    # A part is more than the memory by which the pool may grow, a tenth of what is in use.
    n = max(2_000_000, cyrt.memory_stats()["in_use"] // 8)
    found = []
    for fuse in True, False:
        with stream(fuse=fuse):
            encoder, x = cyrt.current_encoder(), cyrt.arange(n, dtype=cyrt.float32)

            def step(place, number, x=x):
                y = x * number
                half = y[:64] * 0.5
                y[place : place + 64] += half
                result = cyrt.sort(y[place : place + 64])
                del y, half
                cyrt.commit()
                return result.tobytes()

            for number in range(ROUNDS):
                step(n - n // 4, number)
            allocations = cyrt.memory_stats()["driver_allocations"]
            part = cyrt.empty(n // 2)
            assert cyrt.memory_stats()["driver_allocations"] == allocations
            gate.set()
            assert background.wait()
            del part
            for number in range(4):
                step(n - n // 4, number)
            assert (encoder.stats()["fused_plans"] > 0) is fuse
            found.append([step(16 * number, number) for number in range(1, 5)])
    assert found[0] == found[1]


def test_shapes_by_turns_share_a_kernel(stream, monkeypatch):
    from cyrt.builtin.fusion import batches

    compiled, compile = [], batches.compile
    monkeypatch.setattr(batches, "compile", lambda *args: compiled.append(1) or compile(*args))
    monkeypatch.setattr(batches, "_functions", {})
    arrays = [(cyrt.ones(size), cyrt.ones(size) / 3) for size in (64, 96, 128)]

    def run(loops):
        for _ in range(ROUNDS):
            for loop in loops:
                loop.run(1)

    with stream():
        loops = [Loop(chain, *each) for each in arrays]
        run(loops)
        assert background.wait()
        for loop in loops:
            loop.run_fused(1)
        assert len(compiled) == 1
        found = [as_bytes(loop.state) for loop in loops]
    with stream(fuse=False):
        plain = [Loop(chain, *each) for each in arrays]
        run(plain)
        for loop in plain:
            loop.run(1)
        assert [as_bytes(loop.state) for loop in plain] == found


def test_an_array_of_another_size_runs_as_recorded(compare):
    def program(settle):
        loop = Loop(chain, *start())
        settle(loop)
        loop.run(2)
        x, b = loop.state
        loop.state = x[:100], b[:100]
        loop.run(2)
        found = loop.state
        loop.state = x, b
        loop.run(4)
        return [*found, *loop.state]

    compare(program)


def test_operations_that_come_between_run_as_recorded(compare):
    extra = False

    def step(x, b):
        x = x * 0.5
        if extra:
            x = x + x
        return x + b, b

    def program(settle):
        nonlocal extra
        loop = Loop(step, *start())
        settle(loop)
        extra = True
        loop.run(2)
        extra = False
        loop.run(4)
        return loop.state

    compare(program)


def test_runs_that_are_refused_are_not_tried_again(stream, monkeypatch):
    """The values of these operations do not fit into the registers of a thread."""
    from cyrt.builtin.fusion import Run

    tried, add = [], Run.add
    monkeypatch.setattr(Run, "add", lambda *args: tried.append(1) or add(*args))
    with stream():
        arrays = [cyrt.full(64, i, dtype=cyrt.complex128) for i in range(40)]

        def step(x):
            products = [x * each for each in arrays]
            sums = [x + each for each in arrays]
            for one, other in zip(reversed(products), sums, strict=True):
                x = one - other
            return (x,)

        loop = Loop(step, arrays[1])
        before = loop.encoder.stats()
        after = loop.settle()
        loop.run_fused()
    assert len(tried) <= 4 * 121 * (after["hot_plans"] - before["hot_plans"])


# -- what goes wrong -------------------------------------------------------------------------------


def test_what_cannot_be_compiled_runs_as_recorded(stream, monkeypatch):
    from cyrt.builtin.fusion import batches

    def refuse(*args):
        raise cyrt.CompileError("nvrtcCompileProgram", 6, "NVRTC_ERROR_COMPILATION", "injected")

    monkeypatch.setattr(batches, "compile", refuse)
    monkeypatch.setattr(batches, "_functions", {})
    monkeypatch.setattr(background, "_reported", False)
    with stream():
        loop = Loop(chain, *start())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loop.settle()
        loop.run_plain()
        assert [each.category for each in caught] == [RuntimeWarning]
        assert "injected" in str(caught[0].message)
        outcome = loop.encoder.last_plan().fusion.outcome
        assert outcome.startswith("12 operations are not fused: not compiled: ")
        assert "injected" in outcome
        found = as_bytes(loop.state)
    with stream(fuse=False):
        plain = Loop(chain, *start())
        plain.run(ROUNDS + 4)
        assert as_bytes(plain.state) == found


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_cache_that_cannot_be_written(stream, monkeypatch, error):
    """A full disk, or a folder that is read-only: kernels are compiled, and not kept."""
    from cyrt.builtin.fusion import batches
    from cyrt.jit.cache import Cache

    def refuse(self, name, data):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(Cache, "get", lambda self, key: None)
    monkeypatch.setattr(Cache, "_put", refuse)
    monkeypatch.setattr(batches, "_functions", {})
    with stream():
        loop = Loop(chain, *start())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loop.settle()
        assert all(os.strerror(error) in str(each.message) for each in caught)
        loop.run_fused()
        found = as_bytes(loop.state)
    with stream(fuse=False):
        plain = Loop(chain, *start())
        plain.run(ROUNDS + 4)
        assert as_bytes(plain.state) == found


def test_what_was_launched_last_is_compiled_first(stream, gate, monkeypatch):
    """The batches of a loop that has ended wait until those of the next one are compiled."""
    from cyrt.builtin.fusion import batches

    compiled = []
    complete = batches.fuse
    monkeypatch.setattr(
        batches, "fuse", lambda each: compiled.append(len(each.names)) or complete(each)
    )
    with stream():
        Loop(lambda x: (x * 2 + 1,), cyrt.ones(N)).run()
        assert until(lambda: compiled)  # the first one waits at the gate
        Loop(lambda x: (x * 2 + 1 - x,), cyrt.ones(N)).run()
        Loop(lambda x: ((x * 2 + 1 - x) / 3,), cyrt.ones(N)).run()
        gate.set()
        assert background.wait()
    first, *others = compiled
    assert first == 2
    assert {3, 4} <= set(others)
    assert others == sorted(others, reverse=True)


@pytest.mark.parametrize("call", ["cuGraphInstantiateWithFlags", "cuGraphLaunch"])
def test_a_fused_plan_that_the_driver_refuses_is_dropped(stream, replaced, gate, call):
    """The first launch that is fused is refused, after plans of all sets of blocks are compiled."""
    from ctypes import c_uint64, c_void_p

    types = [c_void_p, c_void_p] + [c_uint64] * (call != "cuGraphLaunch")
    refused, armed = [], False

    def refuse_once(original, *arguments):
        if armed and not refused:
            refused.append(call)
            return 801
        return original(*arguments)

    with stream():
        replaced(call, types, refuse_once)
        loop = Loop(chain, *start())
        before = loop.encoder.stats()
        loop.run()
        loop.run_plain(1)
        gate.set()
        assert background.wait()
        armed = True
        loop.run_plain(1)
        assert refused == [call]
        after = loop.encoder.stats()
        assert after["rejected_plans"] == before["rejected_plans"] + 1
        assert "the driver refuses the graph" in loop.encoder.last_plan().fusion.outcome or (
            after["hot_plans"] > before["hot_plans"] + 1
        )
        sets = after["hot_plans"] - before["hot_plans"]
        loop.run(2 * sets)
        assert loop.encoder.stats()["fused_plans"] == 2 * (sets - 1)
        found = as_bytes(loop.state)
    with stream(fuse=False):
        plain = Loop(chain, *start())
        plain.run(ROUNDS + 2 + 2 * sets)
        assert as_bytes(plain.state) == found


@pytest.mark.parametrize(("time", "kept"), [(0.9, True), (0.98, False)])
def test_a_fused_plan_that_is_not_faster_is_dropped(stream, replaced, time, kept):
    from ctypes import POINTER, c_float, c_void_p

    asked = []

    def elapsed(original, milliseconds, start, end):
        """The least time of the fused plan is `time`, that of the plain one 1."""
        milliseconds[0] = (time if len(asked) % 2 == 0 else 1.0) + (len(asked) < 4)
        asked.append(end)
        return 0

    replaced("cuEventElapsedTime", [POINTER(c_float), c_void_p, c_void_p], elapsed)
    fusion.set_timed(True)
    try:
        with stream():
            loop = Loop(chain, *start())
            before = loop.settle()["fused_plans"]
            for _ in range(20):
                loop.run(6)
                cyrt.synchronize()  # a plan is judged when its timed launches have ended
            assert 0 < loop.encoder.stats()["fused_plans"] - before < 120
            assert asked
            assert len(asked) % 10 == 0
            (loop.run_fused if kept else loop.run_plain)()
            batch = loop.encoder.last_plan().fusion
            assert batch.rejected is not kept
            assert batch.outcome.startswith(
                f"12 operations {'run' if kept else 'are not fused'} as 1, compiled in "
            )
            assert batch.outcome.endswith(f": {1000 * time:.1f} µs, before 1000.0 µs")
            found = as_bytes(loop.state)
    finally:
        fusion.set_timed(False)
    with stream(fuse=False):
        plain = Loop(chain, *start())
        plain.run(ROUNDS + 30)
        assert as_bytes(plain.state) == found


def test_what_becomes_of_a_batch_is_told(stream, caplog):
    def scan(x):
        return (cyrt.cumulative_sum(x),)

    caplog.set_level("DEBUG", logger="cyrt")
    with stream():
        loop = Loop(chain, *start())
        before = loop.encoder.stats()
        assert loop.encoder.last_plan() is None or loop.encoder.last_plan().fusion is None
        after = loop.settle()
        loop.run(1)
        batch = loop.encoder.last_plan().fusion
        assert re.fullmatch(r"12 operations run as 1, compiled in [\d.]+ s", batch.outcome)
        assert batch.outcome in repr(batch)
        assert not batch.rejected
        assert after["hot_plans"] > before["hot_plans"]
        assert after["rejected_plans"] == before["rejected_plans"]
        assert any(f"{batch.outcome}; " in each for each in caplog.messages)
        caplog.clear()
        loop = Loop(lambda x: scan(*scan(x)), cyrt.zeros(16))
        after = loop.settle()
        batch = loop.encoder.last_plan().fusion
        assert batch.rejected
        assert re.fullmatch(
            r"2 operations are not fused: no two of them can be one kernel "
            r"\(2 × cyrt_\w+: neither elementwise, nor a reduction along rows, nor a product\)",
            batch.outcome,
        )
        assert any(batch.outcome in each for each in caplog.messages)
        assert after["rejected_plans"] > before["rejected_plans"]


def test_a_profile_names_fused_kernels(stream, tmp_path):
    file = tmp_path / "profile.json"
    with stream():
        loop = Loop(chain, *start())
        loop.settle()
        with cyrt.profile(file):
            loop.run_fused(2)
    commits = [
        each["args"]
        for each in json.loads(file.read_text())["traceEvents"]
        if each["ph"] == "X" and each["name"] == "commit"
    ]
    assert len(commits) == 2
    for each in commits:
        assert each["operations"] == 12
        assert re.fullmatch(r"cyrt_fused_12_multiply_add_\w+: 12 operations", each["fused"])


def test_operations_that_are_lost(stream, replaced):
    """When the driver refuses the fused graph, the plain one, and then one of its kernels, what
    depends on that raises, and a new beginning finds the same values as ever."""
    from ctypes import c_void_p

    refusing, kernels = False, []

    def refuse_graph(original, *arguments):
        return 801 if refusing else original(*arguments)

    def refuse_fourth(original, *arguments):
        kernels.append(refusing)
        return 801 if sum(kernels) == 4 else original(*arguments)

    replaced("cuGraphLaunch", [c_void_p] * 2, refuse_graph)
    replaced("cuLaunchKernelEx", [c_void_p] * 4, refuse_fourth)
    with stream():
        loop = Loop(chain, *start())
        loop.settle()
        loop.run_fused()
        refusing = True
        with pytest.raises(cyrt.CudaError, match="CUDA_ERROR_NOT_SUPPORTED"):
            loop.run(1)
        refusing = False
        loop.state = loop.step(*loop.state)
        loop.run()
        with pytest.raises(cyrt.CudaError, match="CUDA_ERROR_NOT_SUPPORTED"):
            loop.state[0].numpy()
        assert sum(kernels) == 4  # all others depend on it
        loop.state = start()
        loop.run(4)
        found = as_bytes(loop.state)
    with stream(fuse=False):
        plain = Loop(chain, *start())
        plain.run(4)
        assert as_bytes(plain.state) == found


@pytest.mark.parametrize("variable", ["CYRT_CHECK", "CYRT_LAUNCH_BLOCKING"])
def test_modes_that_look_at_single_operations_fuse_nothing(python, variable):
    ended = python(
        PROGRAM.format(number=5) + "    run(30)\n"
        "    assert background.wait()\n"
        "    run(4)\n"
        "    print(cyrt.current_encoder().stats()['hot_plans'])\n",
        CYRT_FUSE="1",
        CYRT_FUSE_AFTER="2",
        **{variable: "1"},
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0\n", "")


def test_evicted_plans(stream):
    from cyrt.graph import plan_cache

    with stream():
        loop = Loop(chain, *start())
        loop.settle()
        loop.run_fused()
        cyrt.synchronize()
        plan_cache.forget()
        loop.run_plain(2)
        loop.run()
        found = as_bytes(loop.state)
    with stream(fuse=False):
        plain = Loop(chain, *start())
        plain.run(2 * ROUNDS + 6)
        assert as_bytes(plain.state) == found


def test_a_kernel_of_the_program_that_ends(stream):
    source = (
        r'extern "C" __global__ void twice(const float* x, float* y, int n) {'
        " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }"
    )
    with stream():
        kernels = [cyrt.Kernel(source, "twice")]

        def step(x, b):
            y = x * 0.25 + b
            z = cyrt.empty(N)
            kernels[0][1, N](y, z, N)
            return z - b, b

        other = Loop(chain, *start())
        other.settle()
        other.run_fused()
        loop = Loop(step, *start())
        loop.settle()
        loop.run_fused()
        cyrt.synchronize()
        held = loop.encoder.stats()["bytes_held"]
        kernels.clear()
        gc.collect()
        cyrt.commit()
        cyrt.synchronize()
        assert held - other.encoder.stats()["bytes_held"] > 10_000  # plain and fused
        other.settle()
        other.run_fused()


def test_two_threads(stream):
    found, fused = {}, []

    def run(number, made):
        with made:
            x, b = start()
            loop = Loop(chain, x + number, b)
            for _ in range(6):
                loop.run(20)
            assert background.wait()
            loop.run(20)
            found[number] = loop.state[0].numpy()
            fused.append(loop.encoder.stats()["fused_plans"])

    assert run_in_threads(*(partial(run, i, stream()) for i in range(2))) == []
    assert min(fused) > 0
    with stream(fuse=False):
        for number in range(2):
            x, b = start()
            loop = Loop(chain, x + number, b)
            loop.run(140)
            np.testing.assert_array_equal(loop.state[0].numpy(), found[number])


@pytest.mark.parametrize("value", ["0", "-1", "99999999999", "soon", "1.5"])
def test_nonsense_is_refused_by_name(setting, value):
    setting(CYRT_FUSE_AFTER=value)
    with pytest.raises(ValueError, match=f"CYRT_FUSE_AFTER='{value}'"), cyrt.Stream():
        cyrt.zeros(3)


PROGRAM = """
    import os, sys, time
    import cyrt
    from cyrt.builtin import background, fusion
    from cyrt.builtin.fusion import batches

    x, b = cyrt.arange(256, dtype=cyrt.float32), cyrt.ones(256)
    def run(rounds):
        global x
        for _ in range(rounds):
            x = x * 0.5 + b
            for _ in range({number} + 1):
                x = cyrt.sqrt(x * x + 1)
            cyrt.commit()
"""


@pytest.mark.parametrize("status", [0, 3])
def test_a_process_that_ends_while_it_compiles(python, status):
    """NVRTC's exit functions would crash while it compiles."""
    for number in range(6):
        ended = python(
            PROGRAM.format(number=number)
            + f"""
    run(12)
    time.sleep({0.04 * number})
    print(background.is_compiling())
    sys.exit({status})
""",
            CYRT_FUSE="1",
            CYRT_FUSE_AFTER="2",
            CYRT_CACHE="0",
        )
        assert ended.returncode == status, ended.stderr
        assert ended.stdout == "True\n" or (number and ended.stdout == "False\n")
        assert ended.stderr == ""


def test_a_process_that_is_forked_while_it_compiles(python):
    ended = python(
        PROGRAM.format(number=5)
        + """
    run(12)
    child = os.fork()
    if child == 0:
        try:
            run(12)
        except RuntimeError as error:
            os._exit(7 if "fork" in str(error) else 8)
        os._exit(9)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    assert background.wait()
    run(12)
    print(cyrt.current_encoder().stats()["fused_plans"] > 0)
""",
        CYRT_FUSE="1",
        CYRT_FUSE_AFTER="2",
        CYRT_CACHE="0",
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["7", "True"]


# -- random programs -------------------------------------------------------------------------------
SLOTS, SIZE = 4, 48
slot = st.integers(0, SLOTS - 1)
number = st.sampled_from([0.5, -1.0, 3.0])
INTEGER = ["floor_divide", "remainder", "bitwise_left_shift", "bitwise_right_shift", "bitwise_xor"]
#: Infinity, NaNs with a payload, zeros of both signs, subnormal and ordinary numbers.
SPECIAL = np.array(
    [0x7F800000, 0x7FC12345, 0xFFC54321, 0x80000000, 0, 1, 0x807FFFFF, 0x3F800001], np.uint32
).view(np.float32)
step = st.one_of(
    st.tuples(st.just("binary"), slot, slot, slot, st.sampled_from(["add", "multiply", "maximum"])),
    st.tuples(st.just("binary"), slot, slot, slot, st.sampled_from(["subtract", "minimum"])),
    st.tuples(st.just("number"), slot, slot, number),
    st.tuples(st.just("varying"), slot, slot),
    st.tuples(st.just("unary"), slot, slot, st.sampled_from(["abs", "negative", "sign"])),
    st.tuples(st.just("in place"), slot, slot),
    st.tuples(st.just("part"), slot, slot, st.sampled_from([0.0, 8.0, 24.0])),
    st.tuples(st.just("shifted"), slot, slot),
    st.tuples(st.just("column"), slot, slot),
    st.tuples(st.just("transposed"), slot, slot),
    st.tuples(st.just("product"), slot, slot, slot),
    st.tuples(st.just("where"), slot, slot, slot),
    st.tuples(st.just("cast"), slot, slot, st.sampled_from(["int32", "float16"])),
    st.tuples(st.just("integer"), slot, slot, slot, st.sampled_from(INTEGER)),
    st.tuples(st.just("complex"), slot, slot, slot),
    st.tuples(st.just("double"), slot, slot, slot),
    st.tuples(st.just("compare"), slot, slot, slot),
    st.tuples(st.just("by turns"), slot, slot),
    st.tuples(st.just("sum"), slot, slot),
    st.tuples(st.just("keep"), slot),
    st.tuples(st.just("keep sometimes"), slot),
    st.tuples(st.just("read sometimes"), slot),
)


def run_steps(steps, rounds):
    """Run a random program; return all that it keeps and reads, and its arrays."""
    shape = 6, SIZE // 6
    arrays = [cyrt.arange(SIZE, dtype=cyrt.float32).reshape(shape) / (i + 1) for i in range(SLOTS)]
    for i, each in enumerate(arrays):
        each[i] = cyrt.asarray(SPECIAL)
    kept, found = [], []
    for count in range(rounds):
        kept = kept[-3:]
        for name, *slots in steps:
            target = slots[0]
            operands = [arrays[each] for each in slots[1:] if isinstance(each, int)]
            if name == "binary":
                arrays[target] = getattr(cyrt, slots[3])(operands[0], operands[1])
            elif name == "number":
                arrays[target] = operands[0] * slots[2]
            elif name == "varying":
                arrays[target] = operands[0] + count
            elif name == "unary":
                arrays[target] = getattr(cyrt, slots[2])(operands[0])
            elif name == "in place":
                arrays[target] += operands[0]
            elif name == "part":
                start = int(slots[2])
                arrays[target].reshape(-1)[start : start + 16] *= operands[0].reshape(-1)[:16]
            elif name == "shifted":
                arrays[target] = cyrt.concat([operands[0][1:], operands[0][:1]]) * 0.5
            elif name == "column":
                arrays[target] = arrays[target] - operands[0][:, :1]
            elif name == "transposed":
                arrays[target] = operands[0].T.reshape(shape) + 1
            elif name == "product":
                z = (operands[0] @ operands[1].T) @ arrays[target]
                arrays[target] = cyrt.abs(z * 1e-3) - operands[1]
            elif name == "where":
                arrays[target] = cyrt.where(operands[0] > 0, operands[1], arrays[target])
            elif name == "cast":
                arrays[target] = operands[0].astype(slots[2]).astype("float32") * 0.25
            elif name == "integer":
                one, other = (each.astype("int32") for each in operands)
                arrays[target] = getattr(cyrt, slots[3])(one, other & 7).astype("float32")
            elif name == "complex":
                z = (operands[0] + operands[1] * 1j).conj() - arrays[target]
                arrays[target] = z.real + z.imag
            elif name == "double":
                x = operands[0].astype("float64") / operands[1]
                arrays[target] = (x * 0.1 + arrays[target]).astype("float32")
            elif name == "compare":
                arrays[target] = (operands[0] < operands[1]) * arrays[target]
            elif name == "by turns":
                rows = 3 + count % 2
                arrays[target][:rows] = operands[0][:rows] * 0.5 - 1
            elif name == "sum":
                arrays[target] = operands[0] - operands[0].sum(axis=1, keepdims=True)
            elif name == "keep" or (name == "keep sometimes" and count % 7 == 6):
                kept.append(arrays[target])
            elif name == "read sometimes" and count % 9 == 8:
                found.append(arrays[target].tobytes())
        for i, each in enumerate(arrays):
            arrays[i] = cyrt.clip(each, -1e6, 1e6)
        cyrt.commit()
        if count == rounds - 8:
            background.wait()
    return found + as_bytes([*kept, *arrays])


@settings(
    max_examples=int(os.environ.get("CYRT_TEST_EXAMPLES", "12")),
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(step, min_size=2, max_size=12))
def test_random_programs(stream, steps):
    with stream():
        fused = run_steps(steps, 40)
        counted.append(cyrt.current_encoder().stats()["fused_plans"])
    with stream(fuse=False):
        plain = run_steps(steps, 40)
    assert fused == plain


counted = []  # fused plans that were launched in each of the random programs


def test_random_programs_are_fused():
    if counted:
        assert sum(map(bool, counted)) > len(counted) // 4
