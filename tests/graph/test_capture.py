"""Other libraries' work as one node: captured from a stream, or given as a graph."""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_size_t, c_void_p

import numpy as np
import pytest
from outside import Library, N, Tensor, edges, host, only_batches, zeros

import cyrt


@pytest.fixture(scope="module")
def library():
    return Library()


@pytest.fixture
def x():
    return zeros()


def works(encoder, module):
    y = zeros()
    encoder.add_kernel(module["axpb"], 1, N, (y, 1.0, 3.0, N))
    return bool((host(y) == 3).all())


def test_what_others_launch_becomes_a_node(module, library, encoder, x):
    address = x.ptr
    for i in range(1, 6):
        encoder.add_kernel(module["axpb"], 1, N, (x, 0.0, float(i), N))
        with encoder.capture(writes=[x]) as stream:
            assert stream == encoder.stream
            library.launch(stream.handle, address, 2.0, 1.0)
            library.launch(stream.handle, address, 2.0, 0.0)
        encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 0.5, N))
        assert (host(x) == 4 * i + 2.5).all()


def test_what_was_captured_runs_once_and_not_before_the_block_ends(library, encoder, x):
    address = x.ptr
    with encoder.capture(writes=[x]) as stream:
        library.launch(stream.handle, address, 1.0, 1.0)
        with cyrt.Stream():
            assert (host(x) == 0).all()  # on another stream: nothing has run
    assert (host(x) == 1).all()
    encoder.commit()
    assert (host(x) == 1).all()


@only_batches
def test_reads_and_writes_order_it(module, library, encoder):
    a, b, c = zeros(), zeros(), zeros()
    address = b.ptr
    other = cyrt.pointer(address, b.nbytes)  # named by another name than the kernels use
    encoder.commit()

    def captured(**named):
        with encoder.capture(**named) as stream:
            library.launch(stream.handle, address, 1.0, 1.0)
        return encoder.num_ops - 1

    assert captured(writes=[other]) == 0
    encoder.add_kernel(module["axpb"], 1, N, (a, 1.0, 1.0, N))  # 1
    encoder.add_kernel(module["add"], 1, N, (b, a, c, N))  # 2: after both
    encoder.add_graph(library.filling(address, 0), writes=(b,))  # 3: after 2
    encoder.add_kernel(module["axpb"], 1, N, (a, 1.0, 1.0, N))  # 4: after 1 and 2
    encoder.add_graph(library.filling(address, 0))  # 5: after everything
    encoder.add_kernel(module["axpb"], 1, N, (c, 1.0, 1.0, N))  # 6: after 5
    encoder.commit()
    found = set(edges(encoder))
    assert {(0, 2), (1, 2), (2, 3), (3, 5), (4, 5), (5, 6)} <= found
    assert (0, 1) not in found
    assert (3, 4) not in found
    assert (host(c) == 3).all()
    assert (host(b) == 0).all()
    assert (host(a) == 2).all()


def test_an_exception_discards_it(module, library, encoder, x):
    address = x.ptr
    encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))

    def fail(stream):
        library.launch(stream.handle, address, 1.0, 100.0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), encoder.capture() as stream:
        fail(stream)
    assert (host(x) == 1).all()
    assert works(encoder, module)


def test_an_empty_one_is_an_error(module, encoder):
    with (
        pytest.raises(RuntimeError, match=r"nothing was put on encoder\.stream"),
        encoder.capture(),
    ):
        pass
    assert works(encoder, module)


def test_one_that_another_library_invalidated(module, library, encoder, x):
    address = x.ptr

    def invalidate(stream, error=None):
        library.launch(stream.handle, address, 1.0, 100.0)
        with library:
            assert library.driver.cuStreamSynchronize(c_void_p(stream.handle)) != 0
        if error is not None:
            raise error

    with (
        pytest.raises(cyrt.CudaError, match="cuStreamEndCapture") as caught,
        encoder.capture() as stream,
    ):
        invalidate(stream)
    assert caught.value.name == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
    with pytest.raises(ZeroDivisionError), encoder.capture() as stream:
        invalidate(stream, ZeroDivisionError)
    assert (host(x) == 0).all()
    assert works(encoder, module)


def test_memory_may_be_allocated_in_one(library, encoder):
    """Libraries fill their pools whenever they like."""
    made = []
    with encoder.capture(writes=made) as stream:
        tensor = Tensor(library)
        library.launch(stream.handle, tensor.address, 0.0, 9.0)
        made.append(tensor)
    encoder.commit()
    assert (tensor.values() == 9).all()


def test_nothing_is_recorded_or_waited_for_in_one(module, library, encoder, x):
    address = x.ptr
    event = cyrt.Event()
    with encoder.capture(writes=[x]) as stream:
        library.launch(stream.handle, address, 1.0, 1.0)
        for refused in (
            lambda: encoder.capture().__enter__(),
            lambda: encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N)),
            lambda: encoder.add_memset(x, 0),
            lambda: encoder.add_memcpy(x, np.zeros(N, np.float32)),
            lambda: encoder.add_memcpy(np.zeros(N, np.float32), x),
            lambda: encoder.add_memcpy(x, zeros()),
            lambda: encoder.add_graph(library.filling(address, 1)),
            encoder.synchronize,
            encoder.close,
            stream.synchronize,
            lambda: cyrt.Stream().wait(stream),
        ):
            with pytest.raises(RuntimeError, match="capture"):
                refused()
        encoder.commit()
    encoder.record(event)
    event.synchronize()
    assert (host(x) == 1).all()


def test_not_inside_concurrent(encoder):
    with (
        encoder.concurrent(),
        pytest.raises(RuntimeError, match=r"not inside concurrent"),
        encoder.capture(),
    ):
        pass


def test_keep_and_handlers_inside_one_belong_to_its_batch(library, encoder, x):
    """More rounds than batches are in flight: a mark that was captured is never reached."""
    address, calls, rounds = x.ptr, [], 100
    for i in range(rounds):
        with encoder.capture(writes=[x]) as stream:
            encoder.keep(object())
            encoder.add_completed_handler(lambda: calls.append(1))
            library.memset(stream.handle, address, i)
            assert not calls[i:]
    encoder.synchronize()
    assert (host(x).view(np.uint8) == rounds - 1).all()


def test_another_thread_may_ask_for_the_memory_meanwhile(library, encoder, x):
    address = x.ptr
    failures = []

    def ask():
        try:
            host(x)
        except BaseException as error:
            failures.append(error)

    with encoder.capture(writes=[x]) as stream:
        library.launch(stream.handle, address, 1.0, 1.0)
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert not failures
    assert (host(x) == 1).all()


def test_an_abandoned_one_is_discarded(module, library, encoder, x):
    address = x.ptr
    block = encoder.capture()
    library.launch(block.__enter__().handle, address, 1.0, 100.0)
    del block
    assert (host(x) == 0).all()
    assert works(encoder, module)


@pytest.mark.parametrize("named", [5, "x", [1], [None], [b"bytes"]])
def test_bad_names_are_refused_before_it_begins(module, encoder, named):
    for kind in ("reads", "writes"):
        with pytest.raises(TypeError, match=f"{kind}: expected "), encoder.capture(**{kind: named}):
            raise AssertionError
    assert works(encoder, module)


def test_the_same_graph_twice_and_gone_after_it_was_added(library, encoder):
    a, b = zeros(), zeros()
    graph = library.graph()
    library.add_memset(graph, a.ptr, 1)
    encoder.add_graph(graph.value, writes=[a])
    encoder.add_graph(graph.value, writes=[a])
    library.add_memset(graph, b.ptr, 2)  # changed: only the third has it
    encoder.add_graph(graph.value, writes=[a, b])
    library("cuGraphDestroy", graph)
    assert (host(b).view(np.uint8) == 2).all()
    assert (host(a).view(np.uint8) == 1).all()


def test_one_that_another_graph_owns_is_copied(library, encoder, x):
    inner, outer, node, owned = library.graph(), library.graph(), c_void_p(), c_void_p()
    library.add_memset(inner, x.ptr, 7)
    library("cuGraphAddChildGraphNode", ctypes.byref(node), outer, None, c_size_t(0), inner)
    library("cuGraphChildGraphNodeGetGraph", node, ctypes.byref(owned))

    class Handle:  # as cuda.core's graphs give theirs
        handle = owned.value

    encoder.add_graph(Handle(), writes=[x])
    library("cuGraphDestroy", outer)
    encoder.synchronize()
    assert (host(x).view(np.uint8) == 7).all()


def test_graphs_of_one_size_and_other_content_are_told_apart(library, encoder):
    """The topology is the same: the exec is patched, or built again where that is refused."""
    a, b = zeros(), zeros()
    for i in range(1, 8):
        graph = library.graph()
        library.add_memset(graph, (a if i % 2 else b).ptr, i, nbytes=4 * N // i)
        encoder.add_graph(graph.value, writes=[a, b])
        encoder.commit()
        library("cuGraphDestroy", graph)
    for buffer, last in ((a, 7), (b, 6)):
        got = host(buffer).view(np.uint8)
        assert (got[: 4 * N // last] == last).all()
        assert got[4 * N // last] == last - 2


@pytest.mark.parametrize(
    ("child", "error"),
    [
        ("graph", TypeError),
        (None, TypeError),
        (object(), TypeError),
        (0, ValueError),
        (-1, ValueError),
        (1 << 64, ValueError),
    ],
)
def test_what_is_no_graph(encoder, child, error):
    with pytest.raises(error, match="add_graph"):
        encoder.add_graph(child)


@pytest.mark.usefixtures("only_emulated")
def test_a_handle_that_the_driver_refuses(module, library, encoder):
    with pytest.raises(cyrt.CudaError, match=r"cuGraphClone.*\nadd_graph: 0x3039 is not a CUgraph"):
        encoder.add_graph(12345)
    gone = library.graph()
    library("cuGraphDestroy", gone)
    with pytest.raises(cyrt.CudaError, match="cuGraphClone"):
        encoder.add_graph(gone.value)
    assert works(encoder, module)


def test_bad_names_of_a_graph(library, encoder, x):
    graph = library.filling(x.ptr, 1)
    for named in (5, [5], np.zeros(3)):
        with pytest.raises(TypeError, match="writes: expected"):
            encoder.add_graph(graph, writes=named)
    freed = zeros()
    freed.free()
    with pytest.raises(ValueError, match="freed"):
        encoder.add_graph(graph, reads=[freed])
    encoder.synchronize()
    assert encoder.num_ops == 0
    assert (host(x) == 0).all()


def test_a_list_that_changes_while_it_is_read(module, encoder, library):
    """Its objects' own code runs meanwhile."""
    x = zeros()
    named = []
    tensor = Tensor(library)

    class Growing:
        @property
        def __cuda_array_interface__(self):
            named.extend([x] * 10_000)
            return tensor.__cuda_array_interface__

    named.append(Growing())
    encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N), reads=named)
    encoder.add_graph(library.filling(x.ptr, 0), writes=[Growing()])
    assert (host(x) == 0).all()


@pytest.mark.parametrize("where", ["argument", "scalar", "reads"])
def test_a_buffer_freed_by_an_arguments_own_code(module, encoder, library, where):
    tensor, x = Tensor(library), zeros()
    y = x[:]

    class Freeing:
        @property
        def __cuda_array_interface__(self):
            x.free()
            return tensor.__cuda_array_interface__

        def __index__(self):
            x.free()
            return N

    args, reads = {
        "argument": ((x, y, Freeing(), N), None),
        "scalar": ((x, y, y, Freeing()), None),
        "reads": ((x, y, x, N), [x, Freeing()]),
    }[where]
    with pytest.raises(ValueError, match="freed"):
        encoder.add_kernel(module["add"], 1, N, args, reads=reads)
    assert encoder.num_ops == 0
