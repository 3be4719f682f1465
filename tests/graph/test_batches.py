"""Where batches end, and which executable graph of a plan serves them."""

from __future__ import annotations

import ctypes
import itertools
import threading
from ctypes import c_int, c_size_t, c_uint, c_void_p

import numpy as np
import pytest

import cyrt
from cyrt import settings
from cyrt.driver import table

pytestmark = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')",
    reason="counts batches; CYRT_GRAPHS=0 has none",
)

SOURCE = r"""
extern "C" __global__ void next(int* x, int a, int b, int c) {
    if (threadIdx.x == 0 && blockIdx.x == 0) *x = 3 * (*x % 9999) + a + b + c;
}
extern "C" __global__ void shared(int* x, int n) {
    extern __shared__ int line[];
    line[n - 1] = n;
    *x = 3 * (*x % 9999) + line[n - 1];
}
"""


@pytest.fixture
def module():
    """Its kernels are nobody else's: no plan knows them yet."""
    return cyrt.Module(SOURCE)


class Cells:
    """Ints on the device, and what Python says they are."""

    def __init__(self, encoder, kernel, count):
        self.encoder, self.kernel = encoder, kernel
        self.buffers, self.values = [cyrt.Buffer(4) for _ in range(count)], [0] * count
        for buffer in self.buffers:
            buffer.fill(0)
        cyrt.synchronize()

    def next(self, i, a=0, b=0, c=0, *, grid=1):
        self.encoder.add_kernel(self.kernel, grid, 1, (self.buffers[i], a, b, c))
        self.values[i] = 3 * (self.values[i] % 9999) + a + b + c

    def check(self):
        found = np.zeros(1, np.int32)
        with self.encoder.stream:
            for buffer, value in zip(self.buffers, self.values, strict=True):
                buffer.copy_to(found)
                assert found[0] == value
        self.encoder.close()

    def changes(self, work):
        before = self.encoder.stats()
        work()
        after = self.encoder.stats()
        return {key: after[key] - before[key] for key in before}


# --- where batches end ---


def test_a_batch_is_no_longer_than_its_limit(module):
    cells = Cells(cyrt.CommandEncoder(max_ops=8), module["next"], 1)
    for i in range(40):
        cells.next(0, i, grid=1 + i)  # no loop comes round
        assert cells.encoder.num_ops == (1 + i) % 8
    cells.check()


def test_a_batch_touches_no_more_than_its_limit(module):
    """Each block counts once, and each batch begins at nothing."""
    encoder = cyrt.CommandEncoder(max_mb=1)
    blocks = [cyrt.Buffer(600 << 10) for _ in range(4)]
    for block in blocks:
        block.fill(0)
    cyrt.synchronize()
    lengths = []
    for i in range(16):
        encoder.add_kernel(module["next"], 1, 1, (blocks[i // 4], i, 0, 0))
        lengths.append(encoder.num_ops)
    assert lengths == [1, 2, 3, 4, 5, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3]
    encoder.close()


def test_a_loop_over_many_buffers_patches_nothing(module):
    cells = Cells(cyrt.CommandEncoder(max_ops=16), module["next"], 23)

    def loop(rounds):
        for i in range(23 * rounds):
            cells.next(i % 23, 1)

    loop(30)
    found = cells.changes(lambda: loop(30))
    assert found["commits"] >= 30
    assert found["patched"] == found["instantiations"] == 0
    cells.check()


# --- plans ---


def test_a_plan_has_a_graph_for_each_set_of_addresses(module):
    """Addresses that were never launched are patched; those that come again have a graph,
    unless there are more than 32 such sets."""
    cells = Cells(cyrt.CommandEncoder(), module["next"], 31)
    encoder = cells.encoder

    def batch(i):
        cells.next(i, 1)
        cells.next(i, 2)
        cells.next(i, 3, grid=2)
        encoder.commit()
        return encoder.last_plan()

    for _ in range(3):
        for i in range(30):
            batch(i)
    found = cells.changes(lambda: [batch(i) for i in (2, 0, 1, *range(3, 30))])
    assert found["hits"] == 30
    assert found["patched"] == found["instantiations"] == 0
    assert len(encoder.last_plan()._graphs) == 30
    assert batch(30).patched == [0, 1, 2]  # over the one used longest ago, 2's
    assert all(batch(i).patched == [] for i in (0, 1, *range(3, 31)))
    found = cells.changes(lambda: batch(2))  # it comes again
    assert (found["patched"], found["instantiations"]) == (0, 1)
    assert len(encoder.last_plan()._graphs) == 31
    cells.check()


def test_a_small_cache_has_room_for_eight_graphs_of_a_plan(python):
    """More than that, and less than half of the cache."""
    done = python(
        """
        import cyrt
        kernel = cyrt.Kernel('extern "C" __global__ void next(int* x) { *x += 1; }', "next")
        encoder = cyrt.CommandEncoder()
        cells = [cyrt.Buffer(4) for _ in range(12)]
        for cell in cells:
            cell.fill(0)
        cyrt.synchronize()

        def rounds(count):
            before = encoder.stats()["patched"]
            for _ in range(count):
                for cell in cells:
                    for _ in range(5):
                        encoder.add_kernel(kernel, 1, 1, (cell,))
                    encoder.commit()
            return encoder.stats()["patched"] - before

        rounds(4)
        assert len(encoder.last_plan()._graphs) == 8, encoder.last_plan()
        assert rounds(2) > 0
        for cell in cells:
            held = bytearray(4)
            cell.copy_to(held)
            assert int.from_bytes(held, "little") == 30
        """,
        CYRT_GRAPH_CACHE_BYTES="800K",
    )
    assert done.returncode == 0, done.stderr


def test_sizes_that_return_have_a_graph_each(module):
    """Patching a grid is dear: a graph of equal geometry is patched first."""
    cells = Cells(cyrt.CommandEncoder(), module["next"], 2)
    encoder = cells.encoder

    def batch(value, grid):
        cells.next(0, value, grid=grid)
        cells.next(1, value, grid=1)
        encoder.commit()
        return encoder.last_plan()

    for value in range(40):
        batch(value, 1 + value % 3)
    for value in range(40, 60):
        plan = batch(value, 1 + value % 3)
        assert plan.patched == [0, 1]
        assert [node.grid[0] for node in plan.nodes] == [1 + value % 3, 1]
    assert len(plan._graphs) == 3
    cells.check()


def test_no_grid_is_patched_where_a_graph_has_it(module, replaced):
    """In an order that does not make the graph used longest ago the right one."""
    cells = Cells(cyrt.CommandEncoder(), module["next"], 1)
    grids = {}

    def note(original, exec_, node, params):
        grid = ctypes.cast(params + 8, ctypes.POINTER(ctypes.c_uint))[0]
        grids.setdefault(exec_, set()).add(grid)
        return original(exec_, node, params)

    def batch(value, grid):
        cells.next(0, value, grid=grid)
        cells.encoder.commit()

    for value in range(30):
        batch(value, 1 + value % 3)
    replaced("cuGraphExecKernelNodeSetParams", [ctypes.c_void_p] * 3, note, 12000)
    for value in range(30, 60):
        batch(value, (1, 1, 2, 1, 3, 3, 2)[value % 7])
    assert sorted(map(sorted, grids.values())) == [[1], [2], [3]]
    cells.check()


def test_a_run_of_equal_operations_is_not_cut(module):
    cells = Cells(cyrt.CommandEncoder(max_ops=128), module["next"], 1)

    def batches():
        for i in range(10):
            for _ in range(100):
                cells.next(0, i)
            cells.encoder.commit()

    batches()
    assert cells.changes(batches)["commits"] == 10
    cells.check()


def test_only_what_differs_is_patched(module):
    cells = Cells(cyrt.CommandEncoder(), module["next"], 2)

    def batch(*values, grid=1):
        for i, value in enumerate(values):
            cells.next(0, value, grid=grid if i == 1 else 1)
        cells.encoder.commit()
        return cells.encoder.last_plan()

    for _ in range(3):
        batch(1, 2, 3)
    plan = batch(1, 7, 3)
    assert plan.patched == [1]
    assert batch(1, 7, 3).patched == []
    assert batch(1, 7, 3, grid=5).patched == [1]
    assert plan.nodes[1].grid == (5, 1, 1)
    assert len(plan._graphs) == 1
    cells.check()


def test_what_lies_between_parameters_is_no_difference(module):
    """Batches of other shapes leave their bytes where the next recording's padding is."""
    cells = Cells(cyrt.CommandEncoder(), module["next"], 1)
    other = cyrt.Kernel(
        """
        extern "C" __global__ void eight(int* x, long a, long b, long c, long d) {}
        """,
        "eight",
    )

    def batch(i):
        for _ in range(2):  # the two sets of arrays in turn
            for _ in range(3):
                cells.encoder.add_kernel(other, 1, 1, (cells.buffers[0], *[~i] * 4))
            cells.encoder.commit()
        for value in range(3):
            cells.next(0, value)
        cells.encoder.commit()

    for i in range(4):
        batch(i)
    before = len(cells.encoder.last_plan()._graphs)
    for i in range(8):
        batch(i)
    assert len(cells.encoder.last_plan()._graphs) == before == 1
    cells.check()


def test_shared_memory_follows_the_recording(module):
    cells = Cells(cyrt.CommandEncoder(), module["shared"], 1)
    for count in (4, 4, 4, 4, 400, 40, 4000):
        for _ in range(2):
            cells.encoder.add_kernel(cells.kernel, 1, 1, (cells.buffers[0], count), smem=4 * count)
            cells.values[0] = 3 * (cells.values[0] % 9999) + count
        cells.encoder.commit()
    cells.check()


def test_a_first_batch_longer_than_any_chain(module):
    cells = Cells(cyrt.CommandEncoder(max_ops=1000), module["next"], 2)
    for i in range(430):
        cells.next(i % 7 == 0, i)
    assert cells.encoder.num_ops == 430
    cells.encoder.commit()
    cells.check()


def attribute(graph, which):
    """The first int of an attribute of the graph's one kernel node, as the driver has it."""
    driver = ctypes.CDLL(table.driver_info()[0])
    count, node, value = c_size_t(1), c_void_p(), (c_int * 16)()
    assert driver.cuGraphGetNodes(c_void_p(graph), ctypes.byref(node), ctypes.byref(count)) == 0
    assert driver.cuGraphKernelNodeGetAttribute(node, which, value) == 0
    return value[0]


@pytest.mark.parametrize(
    ("given", "which"),
    [
        ({"cooperative": True}, 2),
        ({"cluster": 1}, 4),
        pytest.param({"cluster": 2}, 4, marks=pytest.mark.gpu),
        pytest.param({"cluster": 4}, 4, marks=pytest.mark.gpu),
    ],
)
def test_attributes(module, given, which):
    """They are on the nodes; an update carries none of them, so none runs as a chain."""
    cells = Cells(cyrt.CommandEncoder(), module["next"], 1)
    if "cluster" in given and cyrt.Device().compute_capability < (9, 0):
        pytest.skip("clusters begin with compute capability 9.0")

    def batch(**attributes):
        cells.encoder.add_kernel(cells.kernel, 8, 1, (cells.buffers[0], 1, 2, 3), **attributes)
        cells.values[0] = 3 * (cells.values[0] % 9999) + 6
        cells.encoder.commit()

    for others in ({}, {"cluster": 8}, {}):
        if given.get("cluster", 1) > 1 or not others:
            batch(**others)
    found = cells.changes(lambda: [batch(**given), batch(**given)])
    assert (found["misses"], found["chained"], found["instantiations"]) == (1, 0, 1)
    [graph] = cells.encoder.last_plan()._graphs
    assert attribute(graph, which) == next(iter(given.values()))
    cells.check()


@pytest.mark.parametrize(
    ("given", "which"),
    [
        ({"cooperative": True}, 2),
        ({"cluster": 1}, 4),
        pytest.param({"cluster": 4}, 4, marks=pytest.mark.gpu),
    ],
)
def test_attributes_with_no_graph(module, replaced, given, which):
    class Config(ctypes.Structure):
        _fields_ = [
            ("sizes", c_uint * 7),
            ("stream", c_void_p),
            ("attributes", ctypes.POINTER(c_uint)),
            ("count", c_uint),
        ]

    def launch(original, config, *arguments):
        attributes = ctypes.cast(config, ctypes.POINTER(Config))[0]
        seen.append((attributes.count, attributes.attributes[0], attributes.attributes[2]))
        return original(config, *arguments)

    seen = []
    replaced("cuLaunchKernelEx", [c_void_p] * 4, launch)
    cells = Cells(cyrt.CommandEncoder(graphs=False), module["next"], 1)
    cells.encoder.add_kernel(cells.kernel, 4, 1, (cells.buffers[0], 1, 2, 3), **given)
    cells.values[0] = 6
    cells.check()
    assert seen == [(1, which, next(iter(given.values())))]


# --- inside batch() ---

LIMIT = settings.get("CYRT_MAX_OPS_PER_GRAPH")


class Steps:
    """A round of 350 operations, on arrays of NumPy's or cyrt's."""

    def __init__(self, xp, first):
        self.xp, self.number, self.first = xp, 0, first
        self.xs = [xp.ones(64, dtype=xp.float32) for _ in range(50)]
        self.ms = [xp.zeros(64, dtype=xp.float32) for _ in range(50)]

    def step(self):
        i, k = divmod(self.number % 350, 7)
        if k == 0:
            self.g = self.xs[i] * 2
        elif k == 1:
            self.h = self.ms[i] * 0.5
        elif k == 2:
            self.ms[i] = self.h + self.g
        elif k == 3:
            self.g = self.xp.sqrt(self.ms[i])
        elif k == 4:
            # A number that no graph holds yet: only while some are patched a round is looked for.
            self.g = self.g + (self.first + self.number)
        elif k == 5:
            self.h = self.ms[i] / self.g
        else:
            self.xs[i] = self.xs[i] + self.h
        self.number += 1


class Program(Steps):
    """The round is known: batches end after 117 of its operations, and after 234."""

    made = itertools.count(1)

    def __init__(self):
        super().__init__(cyrt, 20_000 * next(self.made))
        began = []
        while began != [0, 117, 234]:
            assert self.number < 40 * 350
            began = self.run(350)
            cyrt.commit()

    def run(self, count):
        """Run operations. Return the numbers of those that began a batch."""
        encoder, began, before = cyrt.current_encoder(), [], 0
        for i in range(count):
            self.step()
            recorded = encoder.num_ops
            # 0: the operation ended its batch.
            if recorded == 1 or (recorded == 0 and before == 0):
                began.append(i)
            before = recorded
        return began

    def check(self):
        wanted = Steps(np, self.first)
        while wanted.number < self.number:
            wanted.step()
        for found, array in zip(self.xs, wanted.xs, strict=True):
            np.testing.assert_array_equal(found.numpy(), array)


@pytest.fixture
def program(pooled, batched):
    with cyrt.Stream():
        yield Program()


def batches_of(work):
    encoder = cyrt.current_encoder()
    before = encoder.stats()["commits"]
    work()
    return encoder.stats()["commits"] - before


needs_rounds = pytest.mark.skipif(
    LIMIT != 128, reason="counts batches of 128 operations: CYRT_MAX_OPS_PER_GRAPH"
)


@needs_rounds
@pytest.mark.parametrize("before", [0, 1, 60, 116, 117, 118, 230, 234, 300])
@pytest.mark.parametrize("count", [1, 2, 60, 117, LIMIT - 1, LIMIT])
def test_a_block_of_up_to_the_limit_is_one_batch(program, before, count):
    """Wherever the program's round ends inside of it."""
    program.run(before)

    def block():
        with cyrt.batch() as encoder:
            assert encoder.num_ops == 0
            assert program.run(count) == [0]

    launched = cyrt.current_encoder().num_ops > 0  # what was recorded before
    assert batches_of(block) == 1 + launched
    assert batches_of(block) == 1
    program.check()


@needs_rounds
def test_a_longer_block_is_cut_at_the_limit_and_then_as_elsewhere(program):
    with cyrt.batch():
        assert program.run(350) == [0, LIMIT, 234]
    assert program.run(350) == [0, 117, 234]
    program.check()


@needs_rounds
def test_a_block_that_is_interrupted_goes_on_to_the_limit(program):
    with cyrt.batch() as encoder:
        assert program.run(60) == [0]
        encoder.commit()
        assert program.run(150) == [0, LIMIT]
        program.xs[0].numpy()
        program.run(1)
    program.check()


@needs_rounds
def test_a_loop_ends_no_batch_in_a_block(pooled, batched):
    """Outside, a batch is as many loops as fit."""
    with cyrt.Stream():
        encoder = cyrt.current_encoder()
        x, y = cyrt.zeros(8), cyrt.zeros((3, 5))

        def loop():
            cyrt.add(y, 1, out=y)
            for _ in range(9):
                cyrt.add(x, 1, out=x)

        for _ in range(100):
            loop()
        lengths = set()
        for _ in range(30):
            before = encoder.num_ops
            loop()
            if encoder.num_ops < before:
                lengths.add(before + 10 - encoder.num_ops)
        assert lengths == {120}
        for count in (11, 12):

            def block(count=count):
                with cyrt.batch():
                    for _ in range(count):
                        loop()

            cyrt.commit()
            assert batches_of(block) == 1
        with cyrt.batch():
            for _ in range(13):
                loop()
            assert encoder.num_ops == 130 - LIMIT


@needs_rounds
def test_the_memory_of_a_batch_ends_it_in_a_block(pooled, batched):
    encoder = cyrt.CommandEncoder(max_mb=1)
    blocks = [cyrt.zeros(100 << 10) for _ in range(12)]
    lengths = []
    with encoder.stream, cyrt.batch():
        for block in blocks:
            cyrt.add(block, 1, out=block)
            lengths.append(encoder.num_ops)
    encoder.close()
    assert lengths == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]


@needs_rounds
def test_another_threads_block_changes_no_boundary(program):
    """Batches end with the round, as if the block were not there."""
    stream, inside, go_on = cyrt.stream(), threading.Event(), threading.Event()

    def hold():
        with stream, cyrt.batch():
            inside.set()
            go_on.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(30)
    assert program.run(350) == [0, 117, 234]
    go_on.set()
    thread.join()
    program.check()


@needs_rounds
@pytest.mark.parametrize("length", [100, 128, 250, 700])
def test_a_program_of_blocks_settles(pooled, batched, length):
    """What follows the batch that the limit ended has the same addresses every round."""
    with cyrt.Stream():
        encoder = cyrt.current_encoder()
        arrays = [cyrt.zeros(64 + i) for i in range(length // 2)]
        kept = []

        def rounds(count):
            before = encoder.stats()
            for _ in range(count):
                with cyrt.batch():
                    for i, x in enumerate(arrays):
                        arrays[i] = x + 1
                        kept.append(x * 2)
                        del kept[:-23]
            after = encoder.stats()
            return {key: after[key] - before[key] for key in after}

        rounds(60)
        found = rounds(10)
        assert found["patched"] == found["misses"] == 0
        assert found["commits"] == 10 * -(-length // LIMIT)
        assert all((x.numpy() == 70).all() for x in arrays)
