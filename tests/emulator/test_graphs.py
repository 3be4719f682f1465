"""Graphs by the driver's ABI: their nodes, their edges, what may be changed."""

from __future__ import annotations

import ctypes
import time
from ctypes import c_int, c_size_t, c_uint, c_uint64, c_void_p

import graph_abi
import numpy as np
import pytest
from graph_abi import PROGRAMMATIC, Attribute, EdgeData, Graph, UpdateInfo, handles, refused, run

pytestmark = pytest.mark.usefixtures("only_emulated")

INVALID_VALUE, LOSSY_QUERY, NOT_SUPPORTED, UPDATE_FAILURE = 1, 402, 801, 910
INVALID_CLUSTER_SIZE = 912
COUNT = np.arange(32, dtype=np.int32)


# --- running --------------------------------------------------------------------------------------


def test_nodes_run_in_the_order_of_their_edges(driver, stream):
    data = driver.memory(COUNT)
    graph = Graph(driver)
    copied = driver.memory(np.zeros(32))
    cleared = graph.memset(data, 3)
    added = graph.kernel("add", data, data, 4, after=[cleared])
    scaled = graph.kernel("scale", data, 10, after=[added])
    graph.copy(copied, data, after=[scaled])
    exec_ = graph.instantiate()
    for _ in range(4):  # each order in turn
        run(driver, exec_, stream)
        assert (driver.read(copied) == 70).all()


@pytest.mark.usefixtures("unchecked")
def test_a_missing_edge_shows(driver, stream):
    data = driver.memory(COUNT)
    graph = Graph(driver)
    graph.kernel("add", data, data, 1)
    graph.kernel("scale", data, 2)
    exec_ = graph.instantiate()
    seen = set()
    for _ in range(2):
        driver("cuMemsetD32Async", c_uint64(data), 1, c_size_t(32), stream)
        run(driver, exec_, stream)
        seen.add(int(driver.read(data)[0]))
    assert seen == {3, 4}


def test_child_graphs_are_copies_and_keep_their_place(driver, stream):
    data = driver.memory(COUNT)
    inner = Graph(driver)
    step = inner.kernel("scale", data, 2)
    outer = Graph(driver)
    first = outer.memset(data, 5)
    child = outer.add("cuGraphAddChildGraphNode", [first], inner.handle)
    outer.kernel("add", data, data, 1, after=[child])
    driver(
        "cuGraphKernelNodeSetParams",
        c_void_p(step),
        ctypes.byref(driver.params("scale", data, 100)),
    )
    exec_ = outer.instantiate()
    for _ in range(2):
        run(driver, exec_, stream)
        assert (driver.read(data) == 11).all()
    inside = c_void_p()
    driver("cuGraphChildGraphNodeGetGraph", c_void_p(child), ctypes.byref(inside))
    with refused(INVALID_VALUE):
        driver("cuGraphDestroy", inside)
    copy = c_void_p()
    with refused(NOT_SUPPORTED):  # it is a child already; a copy of it is not
        outer.add("cuGraphAddChildGraphNode", [], inside)
    driver("cuGraphClone", ctypes.byref(copy), inside)
    Graph(driver).add("cuGraphAddChildGraphNode", [], copy)
    driver("cuGraphExecChildGraphNodeSetParams", exec_, c_void_p(child), inner.handle)
    run(driver, exec_, stream)
    assert (driver.read(data) == 501).all()


def test_host_functions_and_events(driver, stream):
    data, calls = driver.memory(COUNT), []
    call = ctypes.CFUNCTYPE(None, c_void_p)(lambda data: calls.append(data))
    graph, event = Graph(driver), driver.event()
    params = (c_void_p * 2)(ctypes.cast(call, c_void_p), 7)
    host = graph.add("cuGraphAddHostNode", [graph.memset(data, 9)], params)
    graph.add("cuGraphAddEventRecordNode", [host], event)
    driver("cuGraphLaunch", graph.instantiate(), stream)
    driver("cuEventSynchronize", event)
    assert calls == [7]
    assert (driver.read(data) == 9).all()


def test_changes_act_on_later_launches_only(driver, stream):
    flag, data = driver.memory([0]), driver.memory(COUNT)
    graph = Graph(driver)
    wait = graph.kernel("spin", flag, block=1)
    node = graph.kernel("add", data, data, 1, after=[wait])
    exec_ = graph.instantiate()
    driver("cuGraphLaunch", exec_, stream)
    assert driver.call("cuStreamQuery", stream) == 600
    driver(
        "cuGraphExecKernelNodeSetParams",
        exec_,
        c_void_p(node),
        ctypes.byref(driver.params("add", data, data, 100)),
    )
    driver("cuGraphLaunch", exec_, stream)
    driver("cuGraphExecDestroy", exec_)
    driver("cuGraphDestroy", graph.handle)
    other = driver.stream()
    driver("cuMemsetD32Async", c_uint64(flag), 1, c_size_t(1), other)
    driver("cuStreamSynchronize", stream)
    assert (driver.read(data) == COUNT + 101).all()


def test_one_launch_of_an_executable_graph_at_a_time(driver):
    flag, data = driver.memory([0]), driver.memory(COUNT)
    graph = Graph(driver)
    graph.kernel("add", data, data, 1, after=[graph.kernel("spin", flag, block=1)])
    exec_, streams = graph.instantiate(), [driver.stream(), driver.stream()]
    for stream in streams:
        driver("cuGraphLaunch", exec_, stream)
    assert driver.call("cuStreamQuery", streams[1]) == 600
    driver("cuMemsetD32Async", c_uint64(flag), 1, c_size_t(1), driver.stream())
    driver("cuStreamSynchronize", streams[1])
    assert (driver.read(data) == COUNT + 2).all()


def test_disabled_nodes_do_nothing(driver, stream):
    data = driver.memory(COUNT)
    graph = Graph(driver)
    node = graph.kernel("scale", data, 2, after=[graph.kernel("add", data, data, 1)])
    exec_, enabled = graph.instantiate(), c_uint()
    driver("cuGraphNodeSetEnabled", exec_, c_void_p(node), 0)
    driver("cuGraphNodeGetEnabled", exec_, c_void_p(node), ctypes.byref(enabled))
    run(driver, exec_, stream)
    assert enabled.value == 0
    assert (driver.read(data) == COUNT + 1).all()
    empty = graph.empty()
    with refused(INVALID_VALUE):
        driver("cuGraphNodeSetEnabled", graph.instantiate(), c_void_p(empty), 0)


def test_work_needs_no_current_context(driver, stream):
    data = driver.memory(COUNT)
    graph, event = Graph(driver), driver.event()
    graph.kernel("add", data, data, 1)
    exec_ = graph.instantiate()
    driver("cuCtxSetCurrent", None)
    driver("cuGraphLaunch", exec_, stream)
    driver.launch(stream, "add", data, data, 1)
    driver("cuMemsetD32Async", c_uint64(data + 124), 0, c_size_t(1), stream)
    driver("cuEventRecord", event, stream)
    driver("cuStreamWaitEvent", stream, event, 0)
    driver("cuStreamSynchronize", stream)
    assert driver.call("cuStreamQuery", stream) == 0
    assert driver.call("cuMemAlloc", ctypes.byref(c_void_p()), c_size_t(4)) == 201
    assert driver.call("cuGraphLaunch", exec_, None) == 201
    driver("cuCtxSetCurrent", c_void_p(driver.context))
    assert driver.read(data).tolist() == [*range(2, 33), 0]


# --- structure ------------------------------------------------------------------------------------


def test_edges_can_be_added_removed_and_asked_for(driver):
    graph = Graph(driver)
    a, b, c = (graph.empty() for _ in range(3))
    graph.edge(a, b)
    graph.edge(a, c)
    assert graph.edges() == {(a, b): 0, (a, c): 0}
    assert graph.nodes() == [a, b, c]
    assert graph.nodes("cuGraphGetRootNodes") == [a]
    found, count = handles([1, 1, 1, 1]), c_size_t(4)
    driver("cuGraphNodeGetDependentNodes", c_void_p(a), found, None, ctypes.byref(count))
    assert (list(found), count.value) == ([b, c, None, None], 2)
    driver("cuGraphRemoveDependencies", graph.handle, handles([a]), handles([b]), None, c_size_t(1))
    driver("cuGraphDestroyNode", c_void_p(c))
    assert graph.edges() == {}
    assert graph.nodes() == [a, b]


@pytest.mark.parametrize("wrong", ["twice", "self", "foreign", "destroyed", "missing"])
def test_wrong_edges_change_nothing(driver, wrong):
    graph, other = Graph(driver), Graph(driver)
    a, b, c = (graph.empty() for _ in range(3))
    graph.edge(a, b)
    gone = graph.empty()
    driver("cuGraphDestroyNode", c_void_p(gone))
    second = {
        "twice": (a, b),
        "self": (a, a),
        "foreign": (a, other.empty()),
        "destroyed": (gone, b),
        "missing": (b, c),
    }[wrong]
    pairs = [(a, b), (b, c)] if wrong == "missing" else [(a, c), second]
    call = "cuGraphRemoveDependencies" if wrong == "missing" else "cuGraphAddDependencies"
    with refused(INVALID_VALUE):
        driver(
            call,
            graph.handle,
            handles([p[0] for p in pairs]),
            handles([p[1] for p in pairs]),
            None,
            c_size_t(2),
        )
    assert graph.edges() == {(a, b): 0}
    with refused(INVALID_VALUE):
        graph.empty(after=[a, second[1], second[1]])
    assert len(graph.nodes()) == 3


def test_cycles_are_found_when_instantiated(driver):
    graph = Graph(driver)
    a, b = graph.empty(), graph.empty()
    graph.edge(a, b)
    graph.edge(b, a)
    params, out = graph_abi.InstantiateParams(), c_void_p()
    code = driver.call(
        "cuGraphInstantiateWithParams", ctypes.byref(out), graph.handle, ctypes.byref(params)
    )
    assert (code, params.result) == (INVALID_VALUE, 2)
    assert params.node in (a, b)


def test_all_edges_of_a_call_are_of_the_first_ones_kind(driver):
    data = driver.memory(COUNT)
    graph = Graph(driver)
    a, b, c = (graph.kernel("scale", data, 1) for _ in range(3))
    kinds = (EdgeData * 2)(PROGRAMMATIC, EdgeData())
    driver(
        "cuGraphAddDependencies", graph.handle, handles([a, b]), handles([b, c]), kinds, c_size_t(2)
    )
    assert graph.edges() == {(a, b): 1, (b, c): 1}
    count = c_size_t(2)
    with refused(LOSSY_QUERY):
        driver(
            "cuGraphGetEdges",
            graph.handle,
            handles([0, 0]),
            handles([0, 0]),
            ctypes.byref(count),
            version=12000,
        )


@pytest.mark.parametrize("data", [(1, 0, 0), (0, 0, 1), (3, 0, 1), (1, 1, 1), (1, 0, 2)])
def test_ports_and_types_must_fit(driver, data):
    memory = driver.memory(COUNT)
    graph = Graph(driver)
    a, b = graph.kernel("scale", memory, 1), graph.kernel("scale", memory, 1)
    with refused(INVALID_VALUE):
        graph.edge(a, b, EdgeData(*data))
    with refused(INVALID_VALUE):
        graph.edge(a, graph.empty(), PROGRAMMATIC)


def test_clones_know_their_originals(driver):
    graph = Graph(driver)
    a = graph.empty()
    b = graph.empty(after=[a])
    clone = Graph(driver, driver.make("cuGraphClone", graph.handle))
    twins = [driver.make("cuGraphNodeFindInClone", c_void_p(node), clone.handle) for node in (a, b)]
    assert clone.edges() == {tuple(twins): 0}
    assert clone.nodes() == twins
    with refused(INVALID_VALUE):
        driver.make("cuGraphNodeFindInClone", c_void_p(twins[0]), clone.handle)


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_kernel_parameters_come_back(driver, packed):
    data = driver.memory(COUNT)
    graph = Graph(driver)
    params = driver.params("add", data, data, 5)
    if packed:
        block = np.array([data, data, 5], np.uint64)
        size = c_size_t(20)
        extra = handles([1, block.ctypes.data, 2, ctypes.addressof(size), 0])
        params.kernelParams, params.extra = None, ctypes.addressof(extra)
    node = c_void_p(graph.add("cuGraphAddKernelNode", (), ctypes.byref(params)))
    shown = graph_abi.KernelParams()
    driver("cuGraphKernelNodeGetParams", node, ctypes.byref(shown))
    assert (shown.func, shown.ctx) == (driver.kernels["add"], driver.context)
    assert (list(shown.grid), list(shown.block)) == ([1, 1, 1], [32, 1, 1])
    if packed:
        assert shown.kernelParams is None
        buffer = (c_void_p * 5).from_address(shown.extra)
        assert ctypes.string_at(buffer[1], 20) == block.tobytes()[:20]
    else:
        pointers = (c_void_p * 3).from_address(shown.kernelParams)
        assert c_uint64.from_address(pointers[1]).value == data
        assert c_int.from_address(pointers[2]).value == 5
    shown.grid[0] = 0
    with refused(INVALID_VALUE):
        driver("cuGraphKernelNodeSetParams", node, ctypes.byref(shown))


@pytest.mark.parametrize(
    ("attribute", "dims", "code"),
    [
        (4, (1, 1, 1), 0),
        (4, (2, 1, 1), INVALID_CLUSTER_SIZE),
        (2, (1,), 0),
        (8, (-3,), 0),
        (6, (1,), INVALID_VALUE),
        (99, (0,), INVALID_VALUE),
    ],
)
def test_kernel_attributes(driver, attribute, dims, code):
    data = driver.memory(COUNT)
    graph = Graph(driver)
    a, b = (c_void_p(graph.kernel("scale", data, 1)) for _ in range(2))
    value, shown = Attribute(), Attribute()
    for i, part in enumerate(dims):
        value.dims[i] = part & 0xFFFFFFFF
    assert driver.call("cuGraphKernelNodeSetAttribute", a, attribute, ctypes.byref(value)) == code
    if code:
        return
    driver("cuGraphKernelNodeCopyAttributes", b, a)
    driver("cuGraphKernelNodeGetAttribute", b, attribute, ctypes.byref(shown))
    assert bytes(shown) == bytes(value)


def test_geometry_is_checked(driver):
    data = driver.memory(COUNT)
    graph = Graph(driver)
    for shape in ({"block": 2048}, {"grid": 0}, {"block": 0}):
        with refused(INVALID_VALUE):
            graph.kernel("scale", data, 1, **shape)
    for size in (0, 1 << 40):
        with refused(INVALID_VALUE):
            graph.memset(data, 1, width=size)
        with refused(INVALID_VALUE):
            graph.copy(data, data, size)
    assert graph.nodes() == []


class NodeParams(ctypes.Structure):
    _fields_ = [
        ("type", c_int),
        ("reserved", c_int * 3),
        ("body", c_uint64 * 29),
        ("reserved2", c_uint64),
    ]


def node_params(kind, body):
    params = NodeParams(kind)
    ctypes.memmove(params.body, ctypes.addressof(body), ctypes.sizeof(body))
    params.kept = body
    return params


def test_nodes_of_any_kind(driver, stream):
    data, copied = driver.memory(COUNT), driver.memory(COUNT)
    graph = Graph(driver)
    copy = np.array([0, driver.context], np.uint64)
    copy = (ctypes.c_ubyte * 216)(*copy.tobytes(), *bytes(graph_abi.copy_params(copied, data, 128)))
    fill = (ctypes.c_ubyte * 48)(*bytes(graph_abi.MemsetParams(data, 0, 4, 4, 32, 1)))
    nodes = []
    for kind, body in ((2, fill), (0, driver.params("scale", data, 3)), (1, copy), (5, c_uint64())):
        params = node_params(kind, body)
        nodes.append(
            driver.make(
                "cuGraphAddNode",
                graph.handle,
                handles(nodes[-1:]),
                None,
                c_size_t(len(nodes[-1:])),
                ctypes.byref(params),
            )
        )
    exec_ = graph.instantiate()
    kernel = node_params(0, driver.params("scale", data, 5))
    driver("cuGraphExecNodeSetParams", exec_, c_void_p(nodes[1]), ctypes.byref(kernel))
    run(driver, exec_, stream)
    assert (driver.read(copied) == 20).all()
    kind = c_int()
    for node, expected in zip(nodes, (2, 0, 1, 5), strict=True):
        driver("cuGraphNodeGetType", c_void_p(node), ctypes.byref(kind))
        assert kind.value == expected
    with refused(INVALID_VALUE):
        driver("cuGraphExecNodeSetParams", exec_, c_void_p(nodes[0]), ctypes.byref(kernel))
    with refused(NOT_SUPPORTED):  # a conditional node
        driver.make(
            "cuGraphAddNode", graph.handle, None, None, c_size_t(0), ctypes.byref(NodeParams(13))
        )


def test_a_graph_as_text(driver, tmp_path):
    data = driver.memory(COUNT)
    graph = Graph(driver)
    graph.memset(data, 1, after=[graph.kernel("scale", data, 1)])
    driver("cuGraphDebugDotPrint", graph.handle, str(tmp_path / "graph.dot").encode(), 0)
    text = (tmp_path / "graph.dot").read_text()
    assert all(word in text for word in ("digraph", "KERNEL", "scale", "MEMSET", " -> "))


# --- updates --------------------------------------------------------------------------------------


def update(driver, exec_, graph):
    info = UpdateInfo()
    code = driver.call("cuGraphExecUpdate", exec_, graph.handle, ctypes.byref(info))
    assert code == (UPDATE_FAILURE if info.result else 0)
    return info


def chain(driver, data, value=1, *, last="add", extra=(), height=1):
    graph = Graph(driver)
    clear = graph.memset(data, value, width=4, height=height, pitch=64)
    node = graph.kernel("scale", data, value, after=[clear])
    if last == "add":
        graph.kernel("add", data, data, value, after=[node])
    elif last == "add without its edge":
        graph.kernel("add", data, data, value)
    else:
        graph.memset(data, value, after=[node])
    for _ in extra:
        graph.empty()
    return graph


def test_a_whole_update(driver, stream):
    data, other = driver.memory(COUNT), driver.memory(COUNT)
    exec_ = chain(driver, data).instantiate()
    assert update(driver, exec_, chain(driver, other, 3)).result == 0
    run(driver, exec_, stream)
    assert (driver.read(other)[:4] == 12).all()
    assert (driver.read(data) == COUNT).all()


@pytest.mark.parametrize(
    ("change", "result"),
    [
        ({"last": "add without its edge"}, 2),
        ({"extra": [1]}, 2),
        ({"last": "memset"}, 3),
        ({"height": 2}, 5),
    ],
)
def test_what_an_update_refuses(driver, stream, change, result):
    data = driver.memory(COUNT)
    exec_ = chain(driver, data, 2).instantiate()
    assert update(driver, exec_, chain(driver, data, 7, **change)).result == result
    run(driver, exec_, stream)  # nothing of it has been taken over
    assert (driver.read(data)[:4] == 6).all()


def test_operands_stay_where_they_were(driver):
    host = np.zeros(32, np.int32)
    pinned = driver.make("cuMemAllocHost", c_size_t(128))
    data = driver.memory(COUNT)
    graph = Graph(driver)
    node = c_void_p(graph.copy(data, data))
    exec_ = graph.instantiate()
    for source, kind in ((host.ctypes.data, 1), (pinned, 1), (pinned, 4)):
        with refused(INVALID_VALUE):
            driver(
                "cuGraphExecMemcpyNodeSetParams",
                exec_,
                node,
                ctypes.byref(graph_abi.copy_params(data, source, 128, (2, kind))),
                None,
            )
    driver(
        "cuGraphExecMemcpyNodeSetParams",
        exec_,
        node,
        ctypes.byref(graph_abi.copy_params(data, data + 64, 64)),
        None,
    )
    fill = c_void_p(graph.memset(data, 1))
    with refused(INVALID_VALUE):  # not there when it was instantiated
        driver(
            "cuGraphExecMemsetNodeSetParams",
            exec_,
            fill,
            ctypes.byref(graph_abi.MemsetParams(data, 0, 1, 4, 8, 1)),
            None,
        )


def test_cooperative_stays_cooperative(driver):
    data = driver.memory(COUNT)
    graphs = [Graph(driver), Graph(driver)]
    nodes = [c_void_p(graph.kernel("scale", data, 1)) for graph in graphs]
    exec_ = graphs[0].instantiate()
    value = Attribute()
    value.value = 1
    driver("cuGraphKernelNodeSetAttribute", nodes[1], 2, ctypes.byref(value))
    info = update(driver, exec_, graphs[1])
    assert (info.result, info.node) == (8, nodes[1].value)


# --- speed ----------------------------------------------------------------------------------------


def test_a_launch_of_a_hundred_nodes_is_quick(driver, stream):
    data = driver.memory(COUNT)
    graph, node = Graph(driver), None
    for _ in range(100):
        node = graph.kernel("scale", data, 1, after=[node] if node else [])
    exec_ = graph.instantiate()
    run(driver, exec_, stream, 10)
    seconds = []
    for _ in range(50):
        begun = time.perf_counter()
        driver("cuGraphLaunch", exec_, stream)
        seconds.append(time.perf_counter() - begun)
    assert min(seconds) < 1e-3  # the call, not the work, where no other program takes the processor
    driver("cuStreamSynchronize", stream)
