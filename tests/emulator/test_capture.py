"""Stream capture by the driver's ABI."""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_int, c_size_t, c_uint, c_uint64, c_void_p

import numpy as np
import pytest
from graph_abi import Graph, Refused, handles, refused, run

pytestmark = pytest.mark.usefixtures("only_emulated")

INVALID_VALUE, ILLEGAL_STATE = 1, 401
(
    UNSUPPORTED,
    INVALIDATED,
    MERGE,
    UNMATCHED,
    UNJOINED,
    ISOLATION,
    IMPLICIT,
    CAPTURED_EVENT,
    WRONG_THREAD,
) = range(900, 909)
GLOBAL, THREAD_LOCAL, RELAXED = range(3)
COUNT = np.arange(32, dtype=np.int32)


def begin(driver, stream, mode=THREAD_LOCAL):
    driver("cuStreamBeginCapture", stream, mode)


def finish(driver, stream):
    """The capture's graph; Refused where there is none."""
    out = c_void_p(1)
    try:
        driver("cuStreamEndCapture", stream, ctypes.byref(out))
    except Refused as error:
        if error.code not in (UNMATCHED, WRONG_THREAD):
            assert not out
        raise
    return Graph(driver, out.value)


def test_a_fork_and_join_is_captured(driver, stream):
    data, other = driver.memory(COUNT), driver.memory(COUNT)
    side, fork, join = driver.stream(), driver.event(), driver.event()
    host = np.full(32, 5, np.int32)
    begin(driver, stream)
    driver("cuMemcpyHtoDAsync", c_uint64(data), c_void_p(host.ctypes.data), c_size_t(128), stream)
    driver("cuEventRecord", fork, stream)
    driver("cuStreamWaitEvent", side, fork, 0)
    driver("cuMemcpyDtoDAsync", c_uint64(other), c_uint64(data), c_size_t(128), side)
    driver("cuEventRecord", join, side)
    driver("cuStreamWaitEvent", stream, join, 0)
    driver.launch(stream, "add", data, other, 1)
    graph = finish(driver, stream)
    assert (driver.read(data) == COUNT).all()  # nothing has run
    nodes = graph.nodes()
    assert graph.edges() == {
        (nodes[0], nodes[1]): 0,
        (nodes[0], nodes[2]): 0,
        (nodes[1], nodes[2]): 0,
    }
    exec_ = graph.instantiate()
    host[:] = 8
    run(driver, exec_, stream)
    assert (driver.read(data) == 9).all()
    with refused(CAPTURED_EVENT):
        driver("cuEventQuery", fork)


def test_programmatic_launches_become_programmatic_edges(driver, stream):
    data = driver.memory(COUNT)

    class Config(ctypes.Structure):
        _fields_ = [
            ("grid", c_uint * 3),
            ("block", c_uint * 3),
            ("shared", c_uint),
            ("stream", c_void_p),
            ("attributes", c_void_p),
            ("count", c_uint),
        ]

    attribute = (c_uint64 * 9)(6, 1)
    config = Config((1, 1, 1), (32, 1, 1), 0, stream.value, ctypes.addressof(attribute), 1)

    def launch():
        driver(
            "cuLaunchKernelEx",
            ctypes.byref(config),
            c_void_p(driver.kernels["scale"]),
            driver.arguments(data, 2),
            None,
        )

    launch()  # outside a capture: in the stream's order
    driver("cuStreamSynchronize", stream)
    begin(driver, stream)
    driver("cuMemsetD32Async", c_uint64(data), 3, c_size_t(32), stream)
    launch()
    launch()
    graph = finish(driver, stream)
    a, b, c = graph.nodes()
    assert graph.edges() == {(a, b): 0, (b, c): 1}
    run(driver, graph.instantiate(), stream)
    assert (driver.read(data) == 12).all()


def test_what_a_capture_tells_of_itself(driver, stream):
    data = driver.memory(COUNT)
    status, ident, graph, count = c_int(), c_uint64(), c_void_p(), c_size_t()
    nodes = ctypes.POINTER(c_void_p)()

    def ask():
        driver(
            "cuStreamGetCaptureInfo",
            stream,
            *map(ctypes.byref, (status, ident, graph, nodes, count)),
            version=12000,
        )
        return status.value

    assert ask() == 0
    begin(driver, stream)
    driver.launch(stream, "scale", data, 2)
    assert ask() == 1
    captured = Graph(driver, graph.value)
    assert [nodes[i] for i in range(count.value)] == captured.nodes()
    for call in ("cuGraphDestroy", "cuGraphDestroyNode"):
        with refused(INVALID_VALUE):
            driver(call, captured.handle if call == "cuGraphDestroy" else c_void_p(nodes[0]))
    mine = captured.kernel("add", data, data, 1, after=captured.nodes())
    driver("cuStreamUpdateCaptureDependencies", stream, handles([mine]), None, c_size_t(1), 1)
    driver.launch(stream, "scale", data, 10)
    run(driver, finish(driver, stream).instantiate(), stream)
    assert (driver.read(data) == (COUNT * 2 + 1) * 10).all()
    with refused(ILLEGAL_STATE):
        driver("cuStreamUpdateCaptureDependencies", stream, None, None, c_size_t(0), 0)


def test_capture_to_a_graph_and_of_a_graph(driver, stream):
    data = driver.memory(COUNT)
    inner, outer = Graph(driver), Graph(driver)
    inner.kernel("scale", data, 3)
    exec_ = inner.instantiate()
    first = outer.memset(data, 1)
    driver(
        "cuStreamBeginCaptureToGraph",
        stream,
        outer.handle,
        handles([first]),
        None,
        c_size_t(1),
        RELAXED,
    )
    driver("cuGraphLaunch", exec_, stream)
    driver.launch(stream, "add", data, data, 4)
    assert finish(driver, stream).handle.value == outer.handle.value
    run(driver, outer.instantiate(), stream)
    assert (driver.read(data) == 7).all()


FORBIDDEN = {
    "synchronize": (lambda d, s: d("cuStreamSynchronize", s), UNSUPPORTED),
    "query": (lambda d, s: d("cuStreamQuery", s), UNSUPPORTED),
    "context": (lambda d, s: d("cuCtxSynchronize"), UNSUPPORTED),
    "allocate": (lambda d, s: d.memory([0]), UNSUPPORTED),
    "foreign event": (lambda d, s: d("cuStreamWaitEvent", s, d.event(), 0), ISOLATION),
    "callback": (lambda d, s: d("cuStreamAddCallback", s, s, None, 0), UNSUPPORTED),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_forbidden_calls_end_a_capture(driver, stream, what):
    call, code = FORBIDDEN[what]
    data = driver.memory(COUNT)
    begin(driver, stream)
    driver.launch(stream, "scale", data, 2)
    with refused(code):
        call(driver, stream)
    with refused(INVALIDATED):
        driver.launch(stream, "scale", data, 2)
    with refused(INVALIDATED):
        finish(driver, stream)
    run(driver, Graph(driver).instantiate(), stream)  # the stream can be used again


def test_captures_are_joined_once_and_where_they_began(driver, stream):
    data, side, event = driver.memory(COUNT), driver.stream(), driver.event()
    with refused(UNSUPPORTED):
        begin(driver, None)
    begin(driver, stream)
    with refused(ILLEGAL_STATE):
        begin(driver, stream)
    driver("cuEventRecord", event, stream)
    driver("cuStreamWaitEvent", side, event, 0)
    driver.launch(side, "scale", data, 2)
    with refused(UNMATCHED):
        finish(driver, side)
    with refused(UNJOINED):
        finish(driver, stream)
    with refused(ILLEGAL_STATE):
        finish(driver, stream)
    begin(driver, stream)
    begin(driver, side)
    driver("cuEventRecord", event, stream)
    with refused(MERGE):
        driver("cuStreamWaitEvent", side, event, 0)
    for each in (stream, side):
        with refused(INVALIDATED):
            finish(driver, each)


def test_the_legacy_stream_is_barred(driver):
    blocking = c_void_p(driver.make("cuStreamCreate", 0))
    data = driver.memory(COUNT)
    begin(driver, blocking)
    with refused(IMPLICIT):
        driver("cuStreamIsCapturing", None, ctypes.byref(c_int()))
    with refused(IMPLICIT):
        driver.launch(None, "scale", data, 2)
    with refused(INVALIDATED):
        finish(driver, blocking)


@pytest.mark.parametrize(
    ("mode", "own", "allowed"),
    [
        (GLOBAL, GLOBAL, False),
        (GLOBAL, THREAD_LOCAL, True),
        (THREAD_LOCAL, GLOBAL, True),
        (RELAXED, GLOBAL, True),
    ],
)
def test_other_threads_and_captures(driver, stream, mode, own, allowed):
    results = []

    def other():
        driver("cuCtxSetCurrent", c_void_p(driver.context))
        driver("cuThreadExchangeStreamCaptureMode", ctypes.byref(c_int(own)))
        out = c_void_p()
        results.append(driver.call("cuMemAlloc", ctypes.byref(out), c_size_t(4)))
        results.append(driver.call("cuStreamEndCapture", stream, ctypes.byref(out)))

    begin(driver, stream, mode)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    ends = 0 if mode == RELAXED else WRONG_THREAD
    assert results == [0 if allowed else UNSUPPORTED, ends]
    if ends and allowed:
        finish(driver, stream)
    elif ends:
        with refused(INVALIDATED):
            finish(driver, stream)
