"""Where batches end, and which executable graph of a plan serves them."""

from __future__ import annotations

import ctypes
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
by_node = pytest.mark.skipif(
    settings.get("CYRT_GRAPH_UPDATE") != "node", reason="counts what is patched, node by node"
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
        assert cells.encoder.num_ops == 1 + i % 8
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


@by_node
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


@by_node
def test_a_plan_has_a_graph_for_each_set_of_addresses(module):
    """Addresses that were never launched are patched; those that come again have a graph."""
    cells = Cells(cyrt.CommandEncoder(), module["next"], 41)
    encoder = cells.encoder

    def batch(i):
        cells.next(i, 1)
        cells.next(i, 2)
        cells.next(i, 3, grid=2)
        encoder.commit()
        return encoder.last_plan()

    for _ in range(3):
        for i in range(40):
            batch(i)
    found = cells.changes(lambda: [batch(i) for i in (2, 0, 1, *range(3, 40))])
    assert found["hits"] == 40
    assert found["patched"] == found["instantiations"] == 0
    assert len(encoder.last_plan().graphs) == 40
    assert batch(40).patched == [0, 1, 2]  # over the one used longest ago, 2's
    assert all(batch(i).patched == [] for i in (0, 1, *range(3, 41)))
    found = cells.changes(lambda: batch(2))  # it comes again
    assert (found["patched"], found["instantiations"]) == (0, 1)
    assert len(encoder.last_plan().graphs) == 41
    cells.check()


@by_node
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
        assert len(encoder.last_plan().graphs) == 8, encoder.last_plan()
        assert rounds(2) > 0
        for cell in cells:
            held = bytearray(4)
            cell.copy_to(held)
            assert int.from_bytes(held, "little") == 30
        """,
        CYRT_GRAPH_CACHE_BYTES="800K",
    )
    assert done.returncode == 0, done.stderr


@by_node
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
    assert len(plan.graphs) == 3
    cells.check()


@by_node
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


@by_node
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
    assert len(plan.graphs) == 1
    cells.check()


@by_node
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
    before = len(cells.encoder.last_plan().graphs)
    for i in range(8):
        batch(i)
    assert len(cells.encoder.last_plan().graphs) == before == 1
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
    [graph] = cells.encoder.last_plan().graphs
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
