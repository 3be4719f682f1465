"""Captures of streams by other libraries, as `torch.cuda.graph` makes them: kernels on their arrays
become parts of the graph, and nothing that cyrt does on any thread ends the capture."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
from ctypes import c_size_t, c_void_p

import numpy as np
import pytest
from gates import Gate
from outside import SOURCE, Library, until
from producers import Tensor

import cyrt

N = 256
GLOBAL = 0  # the mode of the capture
NON_BLOCKING = 1


@pytest.fixture(scope="module")
def library():
    return Library()


@pytest.fixture(scope="module")
def module():
    module = cyrt.Module(SOURCE)
    for name in ("add", "axpb"):
        x = cyrt.zeros(N)
        module[name][1, N](*([x, x, x, N] if name == "add" else [x, 1.0, 0.0, N]))
    cyrt.synchronize()
    return module


class Captured:
    """A graph that the library has captured, and what it runs as."""

    def __init__(self, library):
        self.library, self.graph, self.exec = library, c_void_p(), c_void_p()

    def instantiate(self):
        with self.library:
            self.library(
                "cuGraphInstantiateWithFlags",
                ctypes.byref(self.exec),
                self.graph,
                ctypes.c_ulonglong(0),
            )
            self.library("cuGraphDestroy", self.graph)

    def launch(self):
        with self.library:
            self.library("cuGraphLaunch", self.exec, c_void_p(Tensor.stream))

    def destroy(self):
        with self.library:
            self.library("cuStreamSynchronize", c_void_p(Tensor.stream))
            self.library("cuGraphExecDestroy", self.exec)

    @property
    def nodes(self):
        count = c_size_t()
        self.library("cuGraphGetNodes", self.graph, None, ctypes.byref(count))
        return count.value


@pytest.fixture
def stream(library):
    """A stream of the library's own, which is its current one."""
    handle = c_void_p()
    with library:
        library("cuStreamCreate", ctypes.byref(handle), NON_BLOCKING)
    Tensor.stream = handle.value
    yield handle
    Tensor.stream = 0


@pytest.fixture
def capturing(library, stream):
    """Capture what the block puts on the library's current stream."""

    @contextlib.contextmanager
    def capture(valid=True):
        gc.collect()  # tensors that end write their memory on the stream
        captured = Captured(library)
        with library:
            library("cuStreamBeginCapture_v2", stream, GLOBAL)
        try:
            yield captured
        finally:
            result = library.driver.cuStreamEndCapture(stream, ctypes.byref(captured.graph))
        assert (result == 0) == valid, result

    return capture


def tensors(library, count=2):
    found = [Tensor(library) for _ in range(count)]
    library("cuStreamSynchronize", c_void_p(Tensor.stream))
    return found


def test_kernels_become_nodes_of_the_graph(module, library, capturing):
    x, y = tensors(library)
    with capturing() as captured:
        module["axpb"][1, N](x, 1.0, 3.0, N)
        library.launch(Tensor.stream, x.address, 2.0, 0.0)
        module["add"][1, N](x, x, y, N)
    assert captured.nodes == 3
    captured.instantiate()
    assert (x.values() == 0).all()
    for i in range(3):
        captured.launch()
        expected = {0: 6.0, 1: 18.0, 2: 42.0}[i]
        assert (x.values() == expected).all()
        assert (y.values() == 2 * expected).all()
    captured.destroy()


@pytest.mark.parametrize("block", ["batch", "concurrent", "stream", "encoder"])
def test_kernels_in_blocks_become_nodes_too(module, library, capturing, block):
    (x,) = tensors(library, 1)
    own = cyrt.Stream()
    blocks = {"batch": cyrt.batch, "concurrent": cyrt.concurrent, "stream": lambda: own}
    with capturing() as captured:
        if block == "encoder":
            cyrt.current_encoder().add_kernel(module["axpb"], 1, N, (x, 1.0, 3.0, N))
        else:
            with blocks[block]():
                module["axpb"][1, N](x, 1.0, 3.0, N)
    captured.instantiate()
    captured.launch()
    assert (x.values() == 3).all()
    captured.destroy()


def test_elementwise_functions_and_products_on_tensors(library, capturing):
    x, y = tensors(library)
    z = Tensor(library, (16, 16))
    cyrt.add(x, 1.0, out=y)  # loads the kernels
    cyrt.matmul(z, z)
    cyrt.synchronize()
    library.memset(Tensor.stream, y.address, 0)
    with capturing() as captured:
        cyrt.add(x, 1.0, out=y)
        cyrt.add(y, y, out=y)
        product = cyrt.matmul(z, z)
    captured.instantiate()
    captured.launch()
    assert (y.values() == 2).all()
    assert (product.numpy() == 0).all()
    captured.destroy()


def test_own_arrays_are_kept_by_the_graph(module, library, capturing, pooled):
    (y,) = tensors(library, 1)
    cyrt.commit()
    before = cyrt.memory_stats()["in_use"]
    x = cyrt.full(N, 5.0)
    cyrt.synchronize()
    with capturing() as captured:
        module["add"][1, N](x, x, y, N)
    captured.instantiate()
    address = x.ptr
    del x
    others = [cyrt.full(N, 7.0) for _ in range(50)]
    assert address not in [other.ptr for other in others]
    del others
    captured.launch()
    assert (y.values() == 10).all()
    assert cyrt.memory_stats()["in_use"] > before
    captured.destroy()

    def is_released():
        cyrt.commit()
        return cyrt.memory_stats()["in_use"] == before

    assert until(is_released)


def test_freed_memory_is_not_reused_while_a_graph_has_it(module, library, capturing, pooled):
    (y,) = tensors(library, 1)
    x = cyrt.Buffer(4 * N)
    x.fill(0)
    cyrt.synchronize()
    with capturing() as captured:
        module["add"][1, N](x, x, y, N)
    captured.instantiate()
    address = x.ptr
    x.free()
    assert address not in [each.ptr for each in [cyrt.Buffer(4 * N) for _ in range(50)]]
    captured.launch()
    assert (y.values() == 0).all()
    captured.destroy()


def test_code_is_kept_by_the_graph(library, capturing):
    (x,) = tensors(library, 1)
    module = cyrt.Module(SOURCE.replace("a * x[i] + b", "a * x[i] + b + 1"))
    module["axpb"][1, N](cyrt.zeros(N), 1.0, 0.0, N)
    cyrt.synchronize()
    with capturing() as captured:
        module["axpb"][1, N](x, 1.0, 1.0, N)
    captured.instantiate()
    del module
    gc.collect()
    cyrt.synchronize()
    captured.launch()
    assert (x.values() == 2).all()
    captured.destroy()


def test_own_work_that_runs_is_waited_for(module, library, capturing):
    """The graph may run on a stream that waits for nothing of cyrt's."""
    gate = Gate()
    (y,) = tensors(library, 1)
    x = cyrt.zeros(N, "int32")
    gate.write(x, 3, N)
    cyrt.commit()
    timer = gate.open_in(0.05)
    copy = cyrt.Kernel(
        'extern "C" __global__ void copy(const int* x, float* y, int n)'
        "{ if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }",
        "copy",
    )
    with capturing() as captured:
        copy[1, N](x, y, N)
        assert gate.flag[0] == 1
    timer.join()
    captured.instantiate()
    captured.launch()
    assert (y.values() == 3).all()
    captured.destroy()


def test_recorded_work_on_the_memory_is_refused(module, library, capturing, batched):
    x, y = tensors(library)
    own = cyrt.zeros(N)
    cyrt.synchronize()
    own += 1
    with capturing() as captured:
        with pytest.raises(RuntimeError, match=r"cyrt\.commit\(\) before the capture"):
            module["add"][1, N](own, own, y, N)
        module["add"][1, N](x, x, y, N)
    assert captured.nodes == 1
    assert (own.numpy() == 1).all()


def test_replayed_work_on_memory_that_was_copied_to_is_refused(
    module, library, capturing, batched, pooled
):
    """Another stream has used the memory, and the copy, which is not recorded, has followed."""
    x, y = tensors(library)
    a, own = cyrt.zeros(N), cyrt.zeros(N)
    with cyrt.Stream():
        for i in range(9):
            if i:
                with cyrt.Stream():
                    own += 1
                own.copy_from(np.full(N, i, np.float32))
            a += 1
            own += 1
            if i == 8:
                break
            a += 1
            cyrt.commit()
        with capturing() as captured:
            with pytest.raises(RuntimeError, match=r"cyrt\.commit\(\) before the capture"):
                module["add"][1, N](own, own, y, N)
            module["add"][1, N](x, x, y, N)
        assert captured.nodes == 1
        assert (own.numpy() == 9).all()
        assert (a.numpy() == 17).all()


def test_a_batch_that_was_recorded_before_waits_for_the_end(module, library, capturing, batched):
    x, y = tensors(library)
    encoder = cyrt.CommandEncoder()
    encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 3.0, N))
    with capturing() as captured:
        with pytest.raises(RuntimeError, match="captures the stream"):
            encoder.commit()
        with pytest.raises(RuntimeError, match="before the capture"):
            module["add"][1, N](y, y, y, N)
    encoder.commit()
    assert (x.values() == 3).all()
    assert captured.nodes == 0


def test_what_needs_an_order_with_the_stream_is_refused(library, capturing, stream):
    (x,) = tensors(library, 1)
    wrapped = cyrt.Stream.wrap(stream.value)
    y = cyrt.zeros(N)
    cyrt.synchronize()
    with capturing() as captured:
        for call in (
            lambda: cyrt.asarray(x),
            wrapped.synchronize,
            lambda: wrapped.done,
            wrapped.__enter__,
            lambda: cyrt.Stream().wait(wrapped),
            lambda: wrapped.wait(cyrt.Stream()),
        ):
            with pytest.raises(RuntimeError, match="capture"):
                call()
        cyrt.synchronize()
        y.__dlpack__(stream=stream.value)
    captured.instantiate()
    captured.launch()
    captured.destroy()


def everything(module, host):
    """What calls the driver."""
    large = cyrt.zeros(5_000_000)
    cyrt.trim_memory()
    x = cyrt.asarray(host)
    for _ in range(3):
        x = x * 1.5 + 1
    cyrt.commit()
    begin, end = cyrt.Event(timing=True), cyrt.Event(timing=True)
    begin.record()
    x += 1
    end.record()
    assert begin.elapsed_time(end) >= 0
    assert end.done
    stream = cyrt.Stream()
    with stream:
        y = x + 1
        assert not stream.done or stream.done
    cyrt.PinnedBuffer(1 << 16)
    cyrt.synchronize()
    for _ in range(200):
        x = x + 1.0
        cyrt.commit()
    fresh = cyrt.Module(f"// {host[0]} {threading.get_ident()}\n" + SOURCE)
    fresh["axpb"][1, N](x, 1.0, 0.0, N)
    done = threading.Event()
    cyrt.current_encoder().add_completed_handler(done.set)
    cyrt.commit()
    assert done.wait(20)
    assert x.numpy().shape == (N,)
    del fresh, large, y
    gc.collect()
    cyrt.synchronize()
    cyrt.memory_stats()
    cyrt.trim_memory()


@pytest.mark.parametrize("where", ["this thread", "another thread"])
def test_nothing_ends_the_capture(module, library, capturing, where):
    (x,) = tensors(library, 1)
    errors = []

    def work():
        try:
            everything(module, np.arange(N, dtype=np.float32))
        except BaseException as error:
            errors.append(error)

    with capturing() as captured:
        module["axpb"][1, N](x, 1.0, 3.0, N)
        if where == "this thread":
            work()
        else:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        module["axpb"][1, N](x, 1.0, 4.0, N)
    if errors:
        raise errors[0]
    assert captured.nodes == 2
    captured.instantiate()
    captured.launch()
    assert (x.values() == 7).all()
    captured.destroy()


def test_calls_of_others_are_still_refused(module, library, capturing):
    """The driver's check for the program's own calls is as before."""
    (x,) = tensors(library, 1)
    address = ctypes.c_uint64()
    with capturing(valid=False):
        module["axpb"][1, N](x, 1.0, 3.0, N)
        cyrt.zeros(5_000_000)
        with library:
            assert library.driver.cuMemAlloc_v2(ctypes.byref(address), c_size_t(64)) != 0
    module["axpb"][1, N](x, 1.0, 3.0, N)
    assert (x.values() == 3).all()


def test_an_invalid_capture_is_named(module, library, capturing):
    (x,) = tensors(library, 1)
    with capturing(valid=False):
        with library:
            library.driver.cuStreamSynchronize(c_void_p(Tensor.stream))
        with pytest.raises(RuntimeError, match="invalid"):
            module["axpb"][1, N](x, 1.0, 3.0, N)
    module["axpb"][1, N](x, 1.0, 3.0, N)
    assert (x.values() == 3).all()


def test_an_array_and_its_graph_end_in_any_order(module, library, capturing):
    for first in ("graph", "array"):
        (y,) = tensors(library, 1)
        x = cyrt.full(N, 2.0)
        cyrt.synchronize()
        with capturing() as captured:
            module["add"][1, N](x, x, y, N)
            module["add"][1, N](y, x, y, N)
        captured.instantiate()
        captured.launch()
        assert (y.values() == 6).all()
        if first == "graph":
            captured.destroy()
            cyrt.commit()
            assert (x.numpy() == 2).all()
        del x
        if first == "array":
            captured.launch()
            captured.destroy()
        cyrt.commit()
        cyrt.synchronize()
