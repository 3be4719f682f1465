"""The cache of plans: what it holds, what it lets go, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')", reason="of plans; CYRT_GRAPHS=0 has none"
)


def test_eviction_in_flight(python):
    done = python(
        r"""
        import numpy as np, cyrt
        kernel = cyrt.Kernel(r'''
            extern "C" __global__ void slow(int* x, int a, int spins) {
                int v = *x;
                for (long long begin = clock64(); clock64() - begin < spins;) {}
                *x = 3 * (v % 1000) + a;
            }''', "slow")
        spins = 100_000
        buffers = [cyrt.Buffer(4) for _ in range(6)]
        values = np.zeros(6, np.int32)
        for buffer in buffers:
            buffer.fill(0)
        encoder = cyrt.CommandEncoder()
        with encoder.stream:
            for round in range(2):
                for shape in range(0, 64, 2):
                    for _ in range(2):          # a chain, then a graph that the next one evicts
                        for bit in range(6):
                            i = bit if shape >> bit & 1 else 0
                            kernel[1, 1](buffers[i], bit, spins)
                            values[i] = 3 * (values[i] % 1000) + bit
                        encoder.commit()
            flying = not encoder.stream.done
        found = np.zeros(1, np.int32)
        for buffer, value in zip(buffers, values):
            buffer.copy_to(found)
            assert found[0] == value
        stats = encoder.stats()
        assert flying and stats["plans"] == 1, (flying, stats)
        assert stats["evictions"] == 64, stats      # the first one was of the fills
        """,
        CYRT_GRAPH_CACHE_SIZE="1",
    )
    assert done.returncode == 0, done.stderr


THRASH = r"""
import warnings
import numpy as np, cyrt
kernel = cyrt.Kernel('extern "C" __global__ void inc(int* x) { *x += 1; }', "inc")
a, b = cyrt.Buffer(4), cyrt.Buffer(4)
a.fill(0); b.fill(0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter(FILTER)
    for _ in range(ROUNDS):
        for length in range(1, 17):
            for _ in range(TIMES):
                for i in range(length):
                    kernel[1, 1](a if i % 3 else b)
                cyrt.commit()
found = np.zeros(1, np.int32)
total = 0
for buffer in (a, b):
    buffer.copy_to(found)
    total += int(found[0])
assert total == ROUNDS * TIMES * 136, total
assert all(w.category is RuntimeWarning and "more topologies in turn" in str(w.message)
           and w.filename == "<string>" for w in caught), caught
print(len(caught))
"""


@pytest.mark.parametrize(
    ("rounds", "times", "size", "filters", "warned"),
    [
        (2, 1, "16", "always", 0),
        (1, 1, "8", "always", 0),
        (3, 1, "8", "always", 1),
        (3, 1, "8", "error", 0),
        (3, 40, "8", "always", 0),
    ],
    ids=["enough", "new", "thrashing", "an error", "now and then"],
)
def test_thrashing_warns_once(python, rounds, times, size, filters, warned):
    done = python(
        f"FILTER, ROUNDS, TIMES = {filters!r}, {rounds}, {times}\n" + THRASH,
        CYRT_GRAPH_CACHE_SIZE=size,
    )
    assert (done.returncode, done.stdout) == (0, f"{warned}\n"), done.stderr
    assert ("more topologies in turn" in done.stderr) == (filters == "error")


LIMITS = r"""
import numpy as np, cyrt
kernel = cyrt.Kernel('extern "C" __global__ void inc(int* x) { *x += 1; }', "inc")
x = cyrt.Buffer(4)
x.fill(0)
encoder = cyrt.CommandEncoder()

def batch(length):
    '''1 where the cache had it.'''
    before = encoder.stats()["hits"]
    for _ in range(length):
        encoder.add_kernel(kernel, 1, 1, (x,))
    encoder.commit()
    return encoder.stats()["hits"] - before
"""


def test_what_was_used_longest_ago_goes_first(python):
    done = python(
        LIMITS
        + r"""
a, b, c, d = 1, 2, 3, 4
assert [batch(n) for n in (a, b, c, a, b, c, a)] == [0, 0, 0, 1, 1, 1, 1]
assert [batch(n) for n in (d, a, c, d)] == [0, 1, 1, 1]         # d evicts b
assert [batch(n) for n in (b, c, d, b, a)] == [0, 1, 1, 1, 0]   # b evicts a
assert (encoder.stats()["plans"], encoder.stats()["evictions"]) == (3, 4)   # the fill's first
""",
        CYRT_GRAPH_CACHE_SIZE="3",
    )
    assert done.returncode == 0, done.stderr


def test_as_many_bytes_as_allowed(python):
    """Chains, which serve all topologies, count: 31 nodes up to a batch of 31, and then 63."""
    done = python(
        LIMITS
        + r"""
for _ in range(3):
    for length in range(1, 25):
        for _ in range(3):
            batch(length)
        assert encoder.stats()["bytes_held"] <= 1_000_000, encoder.stats()
assert batch(1) + batch(1) + batch(2) + batch(2) >= 2
assert batch(1) == batch(2) == batch(1) == 1
assert encoder.stats()["evictions"] < 72 + 4, encoder.stats()
assert batch(60) + batch(60) == 1           # alone above the limit: kept while it is used
assert encoder.stats()["plans"] == 1
assert batch(60) == 1 and batch(1) == 0
""",
        CYRT_GRAPH_CACHE_BYTES="1000000",
        CYRT_CHECK="0",
    )
    assert done.returncode == 0, done.stderr


def test_a_limit_below_what_chains_take(python):
    done = python(
        LIMITS
        + r"""
assert [batch(n) for n in (20, 20, 20, 30, 30, 20)] == [0, 1, 1, 0, 1, 0]
assert encoder.stats()["plans"] == 1
""",
        CYRT_GRAPH_CACHE_BYTES="100000",
    )
    assert done.returncode == 0, done.stderr


def test_a_plan_that_is_being_launched_stays(python):
    """Another thread commits while a launch waits, with the GIL released, for the driver."""
    done = python(
        LIMITS
        + r"""
import ctypes
from cyrt.driver import table

y, other = cyrt.Buffer(4), cyrt.CommandEncoder()
y.fill(0)
cyrt.synchronize()
PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2)
meanwhile = []

@PROTOTYPE
def launch(graph, stream):
    while meanwhile:
        meanwhile.pop()()
    return original(graph, stream)

original = PROTOTYPE(table.replace("cuGraphLaunch", ctypes.cast(launch, ctypes.c_void_p).value))

def commit_other():
    other.add_kernel(kernel, 1, 1, (y,))
    other.commit()

for _ in range(4):
    meanwhile.append(commit_other)
    batch(2)
encoder.synchronize()
other.synchronize()
assert other.stats()["commits"] == 4
found = np.zeros(1, np.int32)
for buffer, value in ((x, 8), (y, 4)):
    buffer.copy_to(found)
    assert found[0] == value
""",
        CYRT_GRAPH_CACHE_SIZE="1",
    )
    assert done.returncode == 0, done.stderr


BESIDE_WORK = (
    LIMITS
    + r"""
import ctypes, threading
from graph.outside import Library
from cyrt.driver import table

PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
destroyed = []

@PROTOTYPE
def destroy(graph):
    destroyed.append(graph)
    return original(graph)

original = PROTOTYPE(
    table.replace("cuGraphExecDestroy", ctypes.cast(destroy, ctypes.c_void_p).value))
for length in range(1, 6):      # their launch loads what it needs
    batch(length), batch(length)
cyrt.synchronize()
encoder.synchronize()

opened, busy = threading.Event(), cyrt.Stream()
hold = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: opened.wait(60))
library = Library()
with library:
    library("cuLaunchHostFunc", ctypes.c_void_p(busy.handle), hold, None)
"""
)


def test_evicted_graphs_are_destroyed_once_the_device_is_idle(python):
    """Another stream waits for Python code, for which the driver may wait to destroy a graph, or to
    instantiate one after some hundreds of nodes."""
    done = python(
        BESIDE_WORK
        + r"""
before = len(destroyed)
evicted = encoder.stats()["evictions"]
length, evictions = 6, 0
while evictions < 2:            # as many as may wait
    assert length < 20 and not opened.is_set()
    batch(length), batch(length)
    evictions = encoder.stats()["evictions"] - evicted
    length += 1
assert len(destroyed) == before
opened.set()
busy.synchronize()
encoder.synchronize()
batch(length)                   # evicts one more
chains = not cyrt.settings.get("CYRT_CHECK")     # the first plan, of the fill, has run one
assert len(destroyed) == before + 3 - chains
""",
        folders=(TESTS,),
        CYRT_GRAPH_CACHE_SIZE="16",
    )
    assert done.returncode == 0, done.stderr


def test_graphs_to_be_destroyed_have_a_bound(python):
    done = python(
        BESIDE_WORK
        + r"""
threading.Timer(2, opened.set).start()      # needs the GIL, while the driver may wait for it
before, most = len(destroyed), 0
for length in range(1, 41):
    batch(length), batch(length)
    most = max(most, encoder.stats()["bytes_held"])
assert len(destroyed) > before + 20, (before, destroyed)
assert 1_750_000 < most <= 2_000_000 + 40 * 10_000, most
encoder.synchronize()
found = np.zeros(1, np.int32)
x.copy_to(found)
assert found[0] == 2 * (15 + sum(range(1, 41)))
opened.wait()
busy.synchronize()
""",
        folders=(TESTS,),
        CYRT_GRAPH_CACHE_BYTES="2000000",
    )
    assert done.returncode == 0, done.stderr


BESIDE_REFUSALS = (
    LIMITS
    + r"""
import ctypes
from cyrt.driver import table

OUT_OF_MEMORY = 2
calls = []
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
DESTROY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

@ALLOCATE
def allocate(address, size):
    calls.append("allocate")
    if calls.count("destroy") < NEEDED:
        return OUT_OF_MEMORY
    return original_allocate(address, size)

@DESTROY
def destroy(graph):
    calls.append("destroy")
    return original_destroy(graph)

for length in (2, 3, 4, 5, 2):
    batch(length), batch(length)        # a chain, then a graph
encoder.synchronize()
original_allocate = ALLOCATE(
    table.replace("cuMemAlloc", ctypes.cast(allocate, ctypes.c_void_p).value))
original_destroy = DESTROY(
    table.replace("cuGraphExecDestroy", ctypes.cast(destroy, ctypes.c_void_p).value))
"""
)


def test_plans_are_given_back_before_memory_runs_out(python):
    """Those used longest ago first, and not more than the memory needs."""
    done = python(
        "NEEDED = 3\n"  # the chain of the fills, and two plans
        + BESIDE_REFUSALS
        + r"""
y = cyrt.Buffer(64 << 20)
assert calls.count("destroy") == 3, calls
assert calls[-2:] == ["destroy", "allocate"]
assert [batch(n) for n in (2, 5, 3, 4)] == [1, 1, 0, 0]
""",
        CYRT_CHECK="0",
    )
    assert done.returncode == 0, done.stderr


def test_no_plan_is_given_back_for_the_limit(python):
    done = python(
        "NEEDED = 0\n"
        + BESIDE_REFUSALS
        + r"""
try:
    cyrt.Buffer(65 << 20)
except cyrt.OutOfMemoryError as error:
    assert "CYRT_MEMORY_LIMIT is 67,108,864 bytes" in str(error), error
else:
    raise AssertionError
assert calls == []
assert [batch(n) for n in (2, 3, 4, 5)] == [1, 1, 1, 1]
""",
        CYRT_MEMORY_LIMIT="64M",
    )
    assert done.returncode == 0, done.stderr


def test_memory_runs_out_when_no_plan_is_left(python):
    done = python(
        "NEEDED = 1000\n"
        + BESIDE_REFUSALS
        + r"""
try:
    cyrt.Buffer(64 << 20)
except cyrt.OutOfMemoryError:
    pass
else:
    raise AssertionError
assert calls.count("destroy") == 4 + 3 + 1, calls       # plans; chains of 1, 2, 4; of the fills
assert encoder.stats()["plans"] == 0
assert [batch(n) for n in (2, 3, 2)] == [0, 0, 1]
""",
        CYRT_CHECK="0",
    )
    assert done.returncode == 0, done.stderr


def test_chains_are_evicted_too(python):
    """Each stream has chains, which fill the cache; the plans of another stream stay in it."""
    done = python(
        r"""
        import cyrt
        x = cyrt.zeros(8)
        encoder = cyrt.current_encoder()

        def add(y, times):
            for _ in range(times):
                y += 1
            cyrt.commit()

        def misses():
            before = encoder.stats()["misses"]
            for i in range(12):
                add(x, 5 + i % 3)
            return encoder.stats()["misses"] - before

        cyrt.synchronize()
        misses()
        assert misses() == 0
        streams = [cyrt.Stream() for _ in range(40)]
        for stream in streams:
            with stream:
                add(cyrt.zeros(8), 31)
                cyrt.synchronize()
        assert misses() <= 3
        assert misses() == 0
        assert encoder.stats()["bytes_held"] <= 2_000_000, encoder.stats()
        for stream in streams:          # their chains are made again
            with stream:
                y = cyrt.zeros(8)
                add(y, 30)
                add(y, 29)
                assert (y.numpy() == 59).all()
        assert (x.numpy() == 4 * 12 * 6).all(), x.numpy()
        """,
        CYRT_GRAPH_CACHE_BYTES="2000000",
        CYRT_CHECK="0",
    )
    assert done.returncode == 0, done.stderr


def test_a_plan_is_read_while_its_graphs_are_destroyed(python):
    """Another thread may hold it, and the driver's call releases the GIL."""
    done = python(
        LIMITS
        + r"""
import ctypes
from cyrt.driver import table

PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
seen = []

@PROTOTYPE
def destroy(graph):
    result = original(graph)
    seen.append((plan._graphs, plan.nodes, plan.to_dot(), repr(plan)))
    return result

y = [cyrt.Buffer(4) for _ in range(3)]
for i in range(30):         # a topology with several graphs
    encoder.add_kernel(kernel, 1 + i % 3, 1, (y[i % 3],))
    encoder.add_kernel(kernel, 1, 1, (y[i % 3],))
    encoder.commit()
encoder.synchronize()
plan = encoder.last_plan()
before = plan.nodes, plan.to_dot()
assert len(plan._graphs) == 3 and plan.nodes[0].grid == (3, 1, 1), plan
original = PROTOTYPE(
    table.replace("cuGraphExecDestroy", ctypes.cast(destroy, ctypes.c_void_p).value))
for _ in range(3):
    batch(3)
    encoder.synchronize()
table.replace("cuGraphExecDestroy", ctypes.cast(original, ctypes.c_void_p).value)
assert len(seen) >= 3, seen
for graphs, nodes, dot, text in seen:
    assert graphs == [], graphs
    assert (nodes, dot) == before, nodes
    assert text.endswith("launched 30 times, 0 executable graphs>"), text
""",
        CYRT_GRAPH_CACHE_SIZE="1",
        CYRT_CHECK="0",
        MALLOC_PERTURB_="165",
    )
    assert done.returncode == 0, done.stderr
