"""What batches become of when the driver refuses, fails, or gets too little information."""

from __future__ import annotations

import ctypes
import gc
import sys
import textwrap
import weakref
from ctypes import c_char_p, c_int, c_size_t, c_ubyte, c_uint64, c_void_p
from itertools import pairwise

import numpy as np
import pytest

import cyrt
from cyrt import settings
from cyrt.driver import table

pytestmark = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')",
    reason="faults of graphs; CYRT_GRAPHS=0 has none",
)

chains = pytest.mark.skipif(
    settings.get("CYRT_CHECK"), reason="a topology runs as a chain the first time"
)

SOURCE = r"""
extern "C" __global__ void set(float* x, const float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = a * x[i] + y[i];
}
"""
EARLY = r"""
extern "C" __global__ void early(float* x, const float* y, float a, int n) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = a * x[i] + y[i];
}
"""
N = 64
UPDATE_FAILURE, OUT_OF_MEMORY, NOT_SUPPORTED, NOT_READY = 910, 2, 801, 600
INSTANTIATE = "cuGraphInstantiateWithFlags", [c_void_p, c_void_p, c_uint64]
SET_KERNEL = "cuGraphExecKernelNodeSetParams", [c_void_p] * 3
LAUNCH = "cuGraphLaunch", [c_void_p] * 2
RECORD_EVENT = "cuEventRecord", [c_void_p] * 2


@pytest.fixture  # a function of its own, so topologies that no other test has used
def kernel():
    return cyrt.Module(SOURCE)["set"]


@pytest.fixture
def encoder():
    """An encoder that recorded nothing before, current on this thread."""
    streams = []
    while True:
        streams.append(cyrt.Stream())  # perhaps one that was used and has ended
        with streams[-1]:
            found = cyrt.current_encoder()
            if not found.stats()["operations"]:
                yield found
                return


class Vector:
    """A Buffer, and what NumPy says it holds."""

    def __init__(self, value):
        self.array = np.full(N, value, np.float32)
        self.buffer = cyrt.Buffer(self.array.nbytes)
        self.buffer.copy_from(self.array)

    def set(self, kernel, other, a):
        kernel[N // 32, 32](self.buffer, other.buffer, np.float32(a), N)
        self.array = np.float32(a) * self.array + other.array

    def check(self):
        found = np.empty(N, np.float32)
        self.buffer.copy_to(found)
        np.testing.assert_array_equal(found, self.array)


def once(code, after=0):
    """Refuses one call: the one that follows `after` others."""
    calls = iter([0] * after + [code])
    return lambda original, *arguments: next(calls, 0) or original(*arguments)


def changes(encoder, work):
    before = encoder.stats()
    work()
    after = encoder.stats()
    return {key: after[key] - before[key] for key in before}


@pytest.fixture
def held():
    """The bytes that all plans hold."""
    return lambda: cyrt.current_encoder().stats()["bytes_held"]


# --- updates refused ---


@pytest.mark.parametrize("refused", range(3))
def test_a_refused_update_builds_anew(kernel, encoder, replaced, refused):
    def batch(vectors):
        for x, y in pairwise(vectors):
            x.set(kernel, y, 2)
        encoder.commit()

    first, second = ([Vector(v) for v in range(4)] for _ in range(2))
    for _ in range(3):
        batch(first)
    replaced(*SET_KERNEL, once(UPDATE_FAILURE, after=refused))
    found = changes(encoder, lambda: batch(second))
    assert (found["hits"], found["instantiations"], found["patched"]) == (1, 1, 0)
    assert len(encoder.last_plan()._graphs) == 1
    found = changes(encoder, lambda: [batch(second), batch(second)])
    assert found["instantiations"] == found["patched"] == 0
    for vector in first + second:
        vector.check()


@chains
def test_a_refused_graph_leaves_the_plans_others(kernel, encoder, replaced):
    pairs = [(Vector(i), Vector(1)) for i in range(9)]

    def batch(i):
        pairs[i][0].set(kernel, pairs[i][1], 1)
        encoder.commit()

    for _ in range(3):
        for i in range(8):
            batch(i)
    batch(0)  # whose graph was built last
    assert len(encoder.last_plan()._graphs) == 8
    replaced(*SET_KERNEL, once(UPDATE_FAILURE))
    assert changes(encoder, lambda: batch(8))["instantiations"] == 1  # over 1's, the first
    assert len(encoder.last_plan()._graphs) == 8
    found = changes(encoder, lambda: [batch(i) for i in (0, 2, 3, 4, 5, 6, 7, 8)])
    assert found["instantiations"] == found["patched"] == 0
    for x, _ in pairs:
        x.check()


@chains
@pytest.mark.parametrize("refused", range(7))
def test_a_chain_that_is_refused_runs_each_operation_once(kernel, encoder, replaced, refused):
    def batch(odd):  # links of 4, 2 and 1
        for i in range(7):
            (x if i != odd else y).set(kernel, z, i)
        encoder.commit()

    x, y, z = (Vector(v) for v in (1, 2, 3))
    batch(7)
    replaced(*SET_KERNEL, once(UPDATE_FAILURE, after=refused))
    found = changes(encoder, lambda: batch(refused))
    assert (found["misses"], found["chained"], found["instantiations"]) == (1, 1, 0)
    for vector in (x, y, z):
        vector.check()
    batch(-2)
    x.check()


# --- calls that fail ---


@pytest.mark.parametrize("launches", [0, pytest.param(1, marks=chains)], ids=["first", "second"])
def test_instantiation_without_memory(kernel, encoder, replaced, held, launches):
    def batch():
        for _ in range(5):
            x.set(kernel, y, 1)
        encoder.commit()

    x, y = Vector(1), Vector(2)
    cyrt.commit()
    for _ in range(launches):
        batch()
    living = set()

    def create(original, graph, flags):
        code = original(graph, flags)
        living.add(ctypes.cast(graph, ctypes.POINTER(c_void_p))[0])
        return code

    def destroy(original, graph):
        living.discard(graph)
        return original(graph)

    replaced("cuGraphCreate", [c_void_p, c_int], create)
    replaced("cuGraphDestroy", [c_void_p], destroy)
    replaced(*INSTANTIATE, once(OUT_OF_MEMORY))
    before = held()
    batch()  # one by one: nothing is lost
    assert (encoder.num_ops, living) == (0, set())
    assert held() <= before  # less where a cache that earlier tests filled has made room
    x.check()
    for _ in range(3):
        batch()
    x.check()


def test_no_graph_is_instantiated_where_memory_is_short(kernel, encoder, replaced):
    """An instantiation that runs out of memory would damage the driver's heap."""
    free, instantiated = (1 << 20), []

    def get_info(original, available, total):
        result = original(available, total)
        ctypes.cast(available, ctypes.POINTER(c_size_t))[0] = free
        return result

    def instantiate(original, *arguments):
        instantiated.append(arguments)
        return original(*arguments)

    x, y = Vector(1), Vector(2)

    def batches():
        for _ in range(3):
            x.set(kernel, y, 2)
            x.set(kernel, y, 3)
            encoder.commit()
        x.check()

    replaced("cuMemGetInfo", [c_void_p, c_void_p], get_info)
    replaced(*INSTANTIATE, instantiate)
    batches()
    assert instantiated == []
    free = 1 << 30
    batches()
    assert instantiated != []


def test_a_launch_that_fails(kernel, encoder, replaced):
    def batch(x):
        x.set(kernel, y, 3)
        x.set(kernel, y, 5)
        encoder.commit()

    x, y, z = Vector(1), Vector(2), Vector(3)
    for _ in range(3):
        batch(x)
    batch(z)
    replaced(*LAUNCH, once(NOT_SUPPORTED))
    batch(x)  # one by one: nothing is lost
    found = changes(encoder, lambda: batch(x))
    assert (found["hits"], found["launches"], found["instantiations"]) == (1, 1, 0)
    for vector in (x, y, z):
        vector.check()


def test_a_mark_that_fails(kernel, encoder, replaced):
    """The batch was launched: what is kept for it lives until it has ended, which is waited for."""
    x, y = Vector(1), Vector(2)
    kept = Vector(3)
    seen = weakref.ref(kept)
    cyrt.commit()
    replaced(*RECORD_EVENT, once(NOT_SUPPORTED))
    x.set(kernel, y, 2)
    encoder.keep(kept)
    del kept
    with pytest.raises(cyrt.CudaError, match="cuEventRecord failed: CUDA_ERROR_NOT_SUPPORTED"):
        encoder.commit()
    gc.collect()
    assert seen() is None
    x.set(kernel, y, 2)
    encoder.synchronize()
    x.check()


def test_a_mark_that_cannot_be_made(kernel, replaced):
    encoder = cyrt.CommandEncoder()
    with encoder.stream:
        x, y = Vector(1), Vector(2)
        cyrt.commit()
        replaced("cuEventCreate", [c_void_p, c_int], once(OUT_OF_MEMORY))
        x.set(kernel, y, 2)
        with pytest.raises(cyrt.OutOfMemoryError, match="cuEventCreate"):
            encoder.commit()
        assert encoder.num_ops == 1  # the next commit launches it
        x.set(kernel, y, 2)
        x.check()


# --- edges ---


DROPPED = r"""
import ctypes
import numpy as np
import cyrt
from cyrt.driver import table

drop = -1
PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_size_t)

@PROTOTYPE
def all_but_one(graph, sources, targets, count):
    ends = [list(ctypes.cast(p, ctypes.POINTER(ctypes.c_void_p))[:count])
            for p in (sources, targets)]
    for each in ends:
        if drop >= 0:
            del each[drop]
    return original(graph, *[(ctypes.c_void_p * len(each))(*each) for each in ends], len(ends[0]))

def program():
    '''A write that is read twice, written over, and written again.'''
    module = cyrt.Module(SOURCE)
    a, b, c, d = (cyrt.Buffer(4 * 32) for _ in range(4))
    for buffer in (a, b, c, d):
        buffer.fill(np.float32(1))
    cyrt.synchronize()
    for target, source in ((a, b), (c, a), (d, a), (a, b), (a, b)):
        module["copy"][1, 32](target, source)
    cyrt.commit()
    edges = cyrt.current_encoder().last_plan().edges
    cyrt.synchronize()
    return edges

original = PROTOTYPE(table.replace(
    "cuGraphAddDependencies", ctypes.cast(all_but_one, ctypes.c_void_p).value))
edges = program()
assert sorted(edge[:2] for edge in edges) == [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)], edges
for drop in range(len(edges)):
    try:
        program()
    except cyrt.CudaError as error:
        assert "no path of edges" in str(error), error
        cyrt.Device().reset()
    else:
        raise AssertionError(f"nobody saw that {edges[drop]} is missing")
drop = -1
program()
"""


@pytest.mark.usefixtures("only_emulated")
def test_a_missing_edge_is_reported(python):
    source = (
        'extern "C" __global__ void copy(float* x, const float* y)'
        " { x[threadIdx.x] = y[threadIdx.x]; }"
    )
    done = python(f"SOURCE = {source!r}\n" + DROPPED, CYRT_CHECK="1")
    assert done.returncode == 0, done.stderr


class EdgeData(ctypes.Structure):
    _fields_ = [
        ("from_port", c_ubyte),
        ("to_port", c_ubyte),
        ("type", c_ubyte),
        ("reserved", c_ubyte * 5),
    ]


def edges_of(graph):
    """The driver's ``(source, target, programmatic)`` of each edge, by the nodes' places."""
    driver = ctypes.CDLL(table.driver_info()[0])
    count = c_size_t(0)
    assert driver.cuGraphGetNodes(c_void_p(graph), None, ctypes.byref(count)) == 0
    nodes = (c_void_p * count.value)()
    assert driver.cuGraphGetNodes(c_void_p(graph), nodes, ctypes.byref(count)) == 0
    place = {node: i for i, node in enumerate(nodes)}
    edges = driver.cuGraphGetEdges_v2
    assert edges(c_void_p(graph), None, None, None, ctypes.byref(count)) == 0
    sources, targets = (c_void_p * count.value)(), (c_void_p * count.value)()
    data = (EdgeData * count.value)()
    assert edges(c_void_p(graph), sources, targets, data, ctypes.byref(count)) == 0
    return sorted(
        (place[s], place[t], d.type == 1) for s, t, d in zip(sources, targets, data, strict=True)
    )


def test_the_driver_has_the_plans_edges(kernel, encoder):
    early = cyrt.Kernel(EARLY, "early", pdl=True)
    a, b, c, d = (Vector(v) for v in range(4))
    for _ in range(2):  # the second is no chain
        a.set(early, b, 2)  # 0
        c.set(early, a, 2)  # 1: programmatic
        d.set(kernel, a, 2)  # 2
        a.set(early, c, 2)  # 3: after 1 programmatic, after 2 not, so after 0
        d.set(kernel, a, 2)  # 4
        encoder.commit()
    plan = encoder.last_plan()
    [graph] = plan._graphs
    early_edges = (
        {(0, 1), (1, 3)}
        if settings.get("CYRT_PDL") and cyrt.Device().compute_capability >= (9, 0)
        else set()
    )
    assert (
        sorted(plan.edges)
        == edges_of(graph)
        == [(*edge, edge in early_edges) for edge in ((0, 1), (0, 2), (1, 3), (2, 3), (3, 4))]
    )
    for vector in (a, b, c, d):
        vector.check()


# --- others, meanwhile ---


def test_a_module_at_anothers_address(encoder, replaced):
    """A driver gives the handle of what was unloaded to what is loaded next."""
    handle, function = 0xA11A5, None

    def get_function(original, out, module, name):
        nonlocal function
        code = original(out, module, name)
        cell = ctypes.cast(out, ctypes.POINTER(c_void_p))
        function, cell[0] = cell[0], handle
        return code

    def call(original, *arguments):
        return original(*[function if a == handle else a for a in arguments])

    def call_with_params(original, *arguments):
        cell = ctypes.cast(arguments[-1], ctypes.POINTER(c_void_p))
        cell[0] = function if cell[0] == handle else cell[0]
        return original(*arguments)

    replaced("cuModuleGetFunction", [c_void_p] * 3, get_function)
    replaced("cuFuncGetAttribute", [c_void_p, c_int, c_void_p], call)
    replaced("cuFuncGetParamInfo", [c_void_p, c_size_t, c_void_p, c_void_p], call)
    if cyrt.Device().emulated:
        replaced("cyrtEmuSetRanges", [c_void_p, c_size_t, c_char_p], call)
    replaced("cuLaunchKernelEx", [c_void_p] * 4, call)
    replaced("cuGraphAddKernelNode", [c_void_p] * 3 + [c_size_t, c_void_p], call_with_params)
    replaced(*SET_KERNEL, call_with_params)
    x, y = Vector(1), Vector(2)
    for a in range(6):
        kernel = cyrt.Kernel(SOURCE.replace("a *", f"{a} + a *"), "set")
        for _ in range(3):
            expected = a + 2 * x.array + y.array
            x.set(kernel, y, 2)
            x.array = expected
            encoder.commit()
        x.check()
        del kernel
        gc.collect()


def test_what_is_recorded_inside_a_commit_comes_after_it(kernel, encoder, replaced):
    def launch(original, *arguments):
        if meanwhile:
            x.array = np.float32(2) * x.array + y.array  # the batch under way
            x.set(kernel, meanwhile.pop(), 3)
            try:
                encoder.commit()
            except RuntimeError as error:
                refused.append(str(error))
        return original(*arguments)

    x, y, meanwhile, refused = Vector(1), Vector(2), [Vector(3)], []
    kernel[N // 32, 32](x.buffer, y.buffer, np.float32(2), N)
    replaced(*LAUNCH, launch)
    encoder.commit()
    assert encoder.num_ops == 1
    assert len(refused) == 1
    assert "from inside a call of the driver's" in refused[0]
    x.check()


def test_no_more_than_64_batches_are_in_flight(kernel, encoder, replaced):
    def query(original, event):
        nonlocal running
        running -= 1
        return NOT_READY if running >= 0 else original(event)

    x, y = Vector(0), Vector(1)
    encoder.synchronize()
    running = 1 << 30
    replaced("cuEventQuery", [c_void_p], query)
    for _ in range(64):
        x.set(kernel, y, 1)
        encoder.commit()
    assert running > (1 << 30) - 200  # nobody waited
    running = 300
    x.set(kernel, y, 1)
    encoder.commit()
    assert running < 0
    x.check()


def test_memory_freed_inside_a_commit(kernel, replaced):
    """A finalizer that runs there frees what the batch reads: nobody else gets it before that."""
    mine, other = cyrt.Stream(), cyrt.Stream()
    with other:
        read = [Vector(5)]
    x = Vector(0)
    address = repr(read[0].buffer)

    def launch(original, *arguments):
        if read:
            read.clear()
            with other:
                fresh.append(Vector(9))
                other.synchronize()
        return original(*arguments)

    fresh = []
    replaced(*LAUNCH, launch)
    with mine:
        x.set(kernel, read[0], 1)
        cyrt.commit()
        x.check()
    assert repr(fresh[0].buffer) != address


def test_a_commit_at_every_collection(python):
    """A finalizer may launch what is recorded, wherever Python makes an object."""
    done = python(
        r"""
        import gc
        import numpy as np, cyrt

        class Foreign:
            def __init__(self, address):
                self.__cuda_array_interface__ = {
                    "version": 3, "shape": (4,), "typestr": "|u1", "data": (address, False)}

        kernel = cyrt.Kernel(
            'extern "C" __global__ void mix(int* x, const int* y) { *x = 3 * (*x % 99) + *y; }',
            "mix")
        buffers, values = [cyrt.Buffer(4) for _ in range(4)], np.zeros(4, np.int32)
        for buffer in buffers:
            buffer.fill(0)
        one = cyrt.Buffer(4)
        one.fill(np.int32(1))
        views = [Foreign(buffer.ptr) for buffer in buffers]
        cyrt.synchronize()
        encoder = cyrt.current_encoder()
        hoard = [[] for _ in range(100)]
        gc.callbacks.append(lambda phase, info: encoder.commit())
        with cyrt.batch():
            for i in range(800):
                gc.set_threshold(1 + i % 37)
                for _ in range(4):
                    hoard.append([])            # no list is left over to be used again
                kernel[1, 1](views[i // 7 % 4], one)
                values[i // 7 % 4] = 3 * (values[i // 7 % 4] % 99) + 1
        gc.callbacks.clear()
        found = np.zeros(1, np.int32)
        for buffer, value in zip(buffers, values):
            buffer.copy_to(found)
            assert found[0] == value
        """,
        CYRT_CHECK="1",  # no chains, which need no edges
    )
    assert done.returncode == 0, (done.returncode, done.stderr)


# The collector runs at the n-th new object of a call that uses outside memory. What it calls uses
# such memory on another stream, which waits for all that is recorded for such memory.
OUTSIDE = r"""
    import gc
    import cyrt

    add = cyrt.Kernel('extern "C" __global__ void add(int* x, int y) { *x += y; }', "add")
    arrays = [cyrt.zeros(1, dtype=cyrt.int32) for _ in range(2)]
    views = [cyrt.pointer(each.ptr, 4) for each in arrays]
    other = cyrt.Stream()
    cyrt.synchronize()
    hoard, counts = [], [0, 0]

    def add_on_another_stream(phase, info):
        global came
        if phase == "start" and not came:
            came = True
            with other:
                add[1, 1](views[1], 1)
            counts[1] += 1

    for n in range(1, 9):
        with cyrt.batch():
            came = False
            # Each list and each tuple that is made next is a new object.
            hoard.append(([[] for _ in range(200)], [(i,) for i in range(200)]))
            gc.disable()
            gc.collect()
            gc.callbacks.append(add_on_another_stream)
            gc.set_threshold(n)
            gc.enable()
            add[1, 1](views[0], 1)
            gc.disable()
            gc.callbacks.clear()
            counts[0] += 1
    assert [int(x[0]) for x in arrays] == counts
    print(counts[1])
"""


def test_a_collection_while_outside_memory_is_noted(python):
    done = python(OUTSIDE, seconds=60)
    assert done.returncode == 0, done.stderr
    if sys.version_info < (3, 12):  # later ones run no collector inside a call
        assert int(done.stdout) > 1


# A batch is copied into lists: the collector runs as any object is made.
COPYING = r"""
    import gc
    import numpy as np, cyrt

    add = cyrt.Kernel('extern "C" __global__ void add(int* x, int value) { *x += value; }', "add")
    x, encoder = cyrt.Buffer(4), cyrt.current_encoder()
    x.fill(np.int32(0))
    expected, hoard = 0, []
    if outside:
        address = x.ptr

    def record(count):
        global expected
        for _ in range(count):
            add[1, 1](cyrt.pointer(address, 4) if outside else x, 1)
            expected += 1

    class Ends:
        def __init__(self, left):
            self.itself, self.left = self, left

        def __del__(self):
            if self.left:
                act()
                if self.left % 2:       # no list is left over: one that is made is a new object
                    hoard.extend([] for _ in range(100))
                Ends(self.left - 1)     # the next object's making runs this again

    cyrt.synchronize()
    for act in encoder.synchronize, lambda: record(30):
        for i in range(40):
            with cyrt.batch():
                gc.disable()
                record(3 + i)
                Ends(i)
                gc.set_threshold(1)
                gc.enable()
            gc.disable()
            encoder.commit()
            gc.collect()
    found = np.zeros(1, np.int32)
    x.copy_to(found)
    print(int(found[0]) == expected)
"""


@pytest.mark.parametrize("outside", [False, True])
def test_a_batch_that_changes_while_it_is_copied(python, outside):
    done = python(f"outside = {outside}\n" + textwrap.dedent(COPYING), PYTHONMALLOC="debug")
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


# The collector runs at the commit's n-th new object. What it calls launches the recording, which
# becomes a script, and frees all scripts.
FREEING = r"""
    import gc
    import cyrt

    add = cyrt.Kernel(
        'extern "C" __global__ void add(const int* x, const int* y, int* z) { *z = *x + *y; }',
        "add")
    encoder, other = cyrt.current_encoder(), cyrt.Stream()
    arrays = [cyrt.zeros(1, dtype=cyrt.int32) for _ in range(13)]
    one = cyrt.ones(1, dtype=cyrt.int32)
    with other:
        scratch = cyrt.zeros(1, dtype=cyrt.int32)
    cyrt.synchronize()
    hoard, counted = [], 0

    def run():
        for x, y in zip(arrays, arrays[1:]):
            add[1, 1](x, one, y)

    def leave_nothing_over():
        # Each list and each tuple that is made next is a new object.
        hoard.append(([[] for _ in range(200)], [(i,) for i in range(200)]))
        hoard.append([(i, i, i) for i in range(200)])

    def free(phase, info):
        global came
        if phase == "start" and not came:
            came = True
            leave_nothing_over()
            cyrt.commit()
            for _ in range(3):
                run()
                cyrt.commit()
            cyrt.trim_memory()

    for n in range(1, 6):
        gc.disable()
        for _ in range(20):
            run()
            cyrt.commit()
        with other:                     # its graph is the only one that is kept
            for _ in range(2):
                add[1, 1](scratch, scratch, scratch)
            cyrt.commit()
        run()
        leave_nothing_over()
        came = False
        gc.collect()
        gc.callbacks.append(free)
        gc.set_threshold(n)
        gc.enable()
        cyrt.commit()
        gc.disable()
        gc.callbacks.clear()
        assert [int(x[0]) for x in arrays] == list(range(13))
        counted += came
    print(counted)
"""


def test_a_recording_is_not_freed_while_a_commit_reads_it(python):
    done = python(FREEING, CYRT_GRAPH_CACHE_SIZE="1", MALLOC_PERTURB_="165")
    assert done.returncode == 0, done.stderr
    if sys.version_info < (3, 12):  # later ones run no collector inside a call
        assert int(done.stdout) > 2
