"""Operations that the driver refuses when they are launched."""

from __future__ import annotations

import gc
import threading
import weakref
from ctypes import c_uint, c_void_p

import numpy as np
import pytest
from outside import until

import cyrt

pytestmark = pytest.mark.usefixtures("batched")
NOT_SUPPORTED = 801
N = 64
SOURCE = r"""
extern "C" {
__global__ void put(int* x, int value) { x[threadIdx.x] = value; }
__global__ void add(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x] + 1; }
}
"""


@pytest.fixture(scope="module")
def module():
    return cyrt.Module(SOURCE)


@pytest.fixture(autouse=True)
def stream():
    with cyrt.Stream() as stream:
        yield stream


@pytest.fixture
def refuse(replaced):
    """Refuses graphs, and some of the kernels that are then launched one by one."""
    state = {"graphs": False, "kernels": ()}

    def launch_graph(original, *arguments):
        return NOT_SUPPORTED if state["graphs"] else original(*arguments)

    def launch_kernel(original, *arguments):
        refused = state["graphs"] and next(state["count"]) in state["kernels"]
        return NOT_SUPPORTED if refused else original(*arguments)

    replaced("cuGraphLaunch", [c_void_p] * 2, launch_graph)
    replaced("cuLaunchKernelEx", [c_void_p] * 4, launch_kernel)

    def set_up(*kernels):
        cyrt.synchronize()  # what other streams recorded counts no kernels
        state.update(graphs=True, kernels=kernels, count=iter(range(10_000)))

    yield set_up
    state["graphs"] = False


def ints(value=0):
    array = cyrt.full(N, value, dtype=cyrt.int32)
    array.numpy()
    return array


def lost(array):
    with pytest.raises(cyrt.CudaError, match="cuLaunchKernel failed: CUDA_ERROR_NOT_SUPPORTED"):
        array.numpy()


def commit_fails():
    with pytest.raises(cyrt.CudaError, match="CUDA_ERROR_NOT_SUPPORTED") as caught:
        cyrt.commit()
    return str(caught.value)


def test_the_rest_of_the_batch_runs_in_order(module, refuse):
    x, y, z = ints(), ints(), ints()
    refuse(1)
    module["put"][1, N](x, 1)  # 0
    module["put"][1, N](y, 2)  # 1: refused
    module["add"][1, N](x, z)  # 2
    module["put"][1, N](x, 3)  # 3
    message = commit_fails()
    assert "the kernel put, grid (1, 1, 1), block (64, 1, 1)" in message
    assert (x.numpy() == 3).all()
    assert (z.numpy() == 2).all()
    lost(y)
    lost(y)  # each time


def test_what_depends_on_it_is_lost_too(module, refuse):
    x, y, z, u = ints(), ints(), ints(), ints()
    refuse(0)
    module["put"][1, N](x, 1)  # refused
    module["add"][1, N](x, y)
    module["add"][1, N](u, z)
    commit_fails()
    w = y + 1  # the operation of a later batch
    for array in (x, y, w):
        lost(array)
    assert (z.numpy() == 1).all()


def test_values_that_nobody_holds_any_more(refuse):
    """A chain's temporaries are freed, and given to others, while it is recorded."""
    # Other tests' memory in the pool could make an allocation trim it, which commits.
    cyrt.trim_memory()
    x = cyrt.ones(N)
    large = cyrt.ones(1 << 19)  # 2 MB: reused at once
    cyrt.synchronize()
    refuse(0)
    y = (x + 1) * 2 + 3
    z = (x - 1) * 2 + 3
    commit_fails()
    lost(y)
    assert (z.numpy() == 3).all()
    refuse(0)
    y = (large + 1) * 2 + 3
    z = (large - 1) * 2 + 3
    commit_fails()
    lost(y)
    assert (z.numpy() == 3).all()


@pytest.mark.parametrize(
    "overwrite",
    [
        lambda x: x.__setitem__(..., 5),
        lambda x: x.fill(5),
        lambda x: x.__setitem__(..., cyrt.full(N, 5, dtype=cyrt.int32)),
        lambda x: cyrt.add(cyrt.full(N, 2, dtype=cyrt.int32), 3, out=x),
        lambda x: cyrt.sum(cyrt.full((N, 5), 1, dtype=cyrt.int32), axis=1, out=x),
    ],
    ids=["number", "fill", "array", "out", "reduction"],
)
def test_what_is_overwritten_wholly_is_whole_again(module, refuse, overwrite):
    x = ints()
    refuse(0)
    module["put"][1, N](x, 1)
    commit_fails()
    lost(x)
    overwrite(x)
    assert (x.numpy() == 5).all()


def test_host_memory_makes_it_whole_again(module, refuse):
    buffer = cyrt.Buffer(4 * N)
    buffer.fill(0)
    cyrt.synchronize()
    refuse(0)
    module["put"][1, N](buffer, 1)
    commit_fails()
    with pytest.raises(cyrt.CudaError):
        buffer.copy_to(np.zeros(N, np.int32))
    with pytest.raises(cyrt.CudaError):
        buffer[4:].copy_from(np.zeros(N - 1, np.int32))
    buffer.copy_from(np.full(N, 7, np.int32))
    out = np.zeros(N, np.int32)
    buffer.copy_to(out)
    assert (out == 7).all()


def test_a_part_that_is_overwritten_is_not_the_whole(module, refuse):
    x = ints()
    refuse(0)
    module["put"][1, N](x, 1)
    commit_fails()
    x[:5] = 3
    lost(x)
    module["put"][1, N](x, 2)  # may read it: it is not launched
    lost(x)


def test_memory_that_is_allocated_again_is_whole(module, refuse, pooled):
    buffer = cyrt.Buffer(4 * N)
    buffer.fill(0)
    cyrt.synchronize()
    address = repr(buffer).split(" at ")[1]
    refuse(0)
    module["put"][1, N](buffer, 1)
    commit_fails()
    del buffer
    again = cyrt.Buffer(4 * N)
    assert repr(again).split(" at ")[1] == address
    module["put"][1, N](again, 4)
    out = np.zeros(N, np.int32)
    again.copy_to(out)
    assert (out == 4).all()


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.ptr,
        lambda x: x.__dlpack__(),
        lambda x: x.__cuda_array_interface__,
        lambda x: float(x[0]),
        lambda x: x.tolist(),
    ],
    ids=["ptr", "dlpack", "interface", "item", "list"],
)
def test_it_is_not_handed_out(module, refuse, ask):
    x = ints()
    refuse(0)
    module["put"][1, N](x, 1)
    commit_fails()
    with pytest.raises(cyrt.CudaError, match="the kernel put"):
        ask(x)


class TestOtherNamesOfTheMemory:
    """Memory by its address: each of its names is lost with the others."""

    @pytest.fixture
    def x(self):
        return ints(7)

    def refused(self, module, refuse, target):
        refuse(0)
        with pytest.raises(cyrt.CudaError, match="CUDA_ERROR_NOT_SUPPORTED"):
            self.write(module, target)

    def write(self, module, target):
        module["put"][1, N](target, 1)
        cyrt.commit()  # memory by its address was launched already

    def read(self, buffer):
        found = np.zeros(buffer.nbytes // 4, np.int32)
        buffer.copy_to(found)
        return found

    def test_its_owner_gets_the_error(self, module, refuse, x):
        name = cyrt.pointer(x.ptr, x.nbytes)
        self.refused(module, refuse, name)
        del name
        lost(x)
        lost(x + 1)

    def test_those_that_overlap_get_the_error(self, module, refuse):
        y = cyrt.zeros(2 * N, dtype=cyrt.int32)
        first, inside, second = (
            cyrt.pointer(y.ptr + start, nbytes)
            for start, nbytes in ((0, 4 * N), (64, 64), (4 * N, 4 * N))
        )
        self.refused(module, refuse, first)
        lost(y)
        with pytest.raises(cyrt.CudaError):
            self.read(inside)
        assert (self.read(second) == 0).all()

    def test_a_name_that_is_made_later_gets_the_error(self, module, refuse, x):
        address = x.ptr
        self.refused(module, refuse, x)
        name = cyrt.pointer(address, x.nbytes)
        with pytest.raises(cyrt.CudaError):
            self.read(name)

    def test_the_owner_makes_them_whole_again(self, module, refuse, x):
        name = cyrt.pointer(x.ptr, x.nbytes)
        self.refused(module, refuse, name)
        x[...] = 5
        assert (self.read(name) == 5).all()
        assert (x.numpy() == 5).all()

    def test_a_part_is_not_the_whole(self, module, refuse, x):
        name = cyrt.pointer(x.ptr, x.nbytes)
        part = cyrt.pointer(x.ptr, 64)
        self.refused(module, refuse, name)
        part.fill(0)
        assert (self.read(part) == 0).all()
        lost(x)

    def test_inside_one_batch(self, module, refuse, x):
        y, z = ints(), ints()
        address = x.ptr
        refuse(0)

        def batch():
            with cyrt.batch():
                module["put"][1, N](cyrt.pointer(address, x.nbytes), 1)  # refused
                module["add"][1, N](cyrt.pointer(address, x.nbytes), y)
                module["put"][1, N](z, 3)

        with pytest.raises(cyrt.CudaError, match="CUDA_ERROR_NOT_SUPPORTED"):
            batch()
        lost(x)
        lost(y)
        assert (z.numpy() == 3).all()


def test_what_is_recorded_while_the_batch_is_launched(module, replaced, stream):
    """By another thread, before the driver has refused anything."""
    x, y, z = ints(), ints(), ints()
    begun, go_on, errors = threading.Event(), threading.Event(), []

    def launch_kernel(original, *arguments):
        if threading.current_thread() is worker and not begun.is_set():
            begun.set()
            go_on.wait(30)
            return NOT_SUPPORTED
        return original(*arguments)

    def commit():
        with stream:
            errors.append(commit_fails())

    worker = threading.Thread(target=commit)
    replaced("cuGraphLaunch", [c_void_p] * 2, lambda original, *arguments: NOT_SUPPORTED)
    replaced("cuLaunchKernelEx", [c_void_p] * 4, launch_kernel)
    module["add"][1, N](x, y)  # refused
    module["add"][1, N](y, z)
    worker.start()
    assert begun.wait(30)
    u = y + 1
    del y  # its loss is known by then to its recording only
    v = x + 1
    z[...] = 5
    go_on.set()
    worker.join(30)
    assert errors
    lost(u)
    assert (v.numpy() == 1).all()
    assert (z.numpy() == 5).all()


def test_another_stream_gets_the_error(module, refuse):
    x = ints()
    refuse(0)
    module["put"][1, N](x, 1)
    with cyrt.Stream(), pytest.raises(cyrt.CudaError, match="the kernel put"):
        x + 1  # launches the other stream's recording
    with cyrt.Stream():
        y = x + 1
    lost(y)


def test_a_copy_that_is_refused(replaced):
    x, y = cyrt.Buffer(4 * N), cyrt.Buffer(4 * N)
    x.fill(1)
    y.fill(2)
    cyrt.synchronize()
    replaced("cuGraphLaunch", [c_void_p] * 2, lambda original, *arguments: NOT_SUPPORTED)
    replaced("cuMemcpyAsync", [c_void_p] * 4, lambda original, *arguments: NOT_SUPPORTED)
    y.copy_from(x)
    with pytest.raises(cyrt.CudaError, match="a copy"):
        cyrt.commit()
    with pytest.raises(cyrt.CudaError, match="a copy"):
        y.copy_to(np.zeros(N, np.int32))


@pytest.mark.parametrize(("errors", "launched"), [(2, True), (1000, False)])
def test_a_closed_encoder_launches_its_rest(module, replaced, monkeypatch, errors, launched):
    """Though attempts to launch it fail; if all fail, a message says that it is lost."""
    messages = []
    monkeypatch.setattr("sys.unraisablehook", lambda each: messages.append(str(each.exc_value)))
    z = ints()
    encoder = cyrt.CommandEncoder()
    encoder.add_kernel(module["put"], 1, N, (z, 3))
    left = iter(range(errors))

    def create_event(original, *arguments):
        return original(*arguments) if next(left, None) is None else NOT_SUPPORTED

    replaced("cuEventCreate", [c_void_p, c_uint], create_event)
    with pytest.raises(cyrt.CudaError, match="cuEventCreate failed"):
        encoder.close()
    list(left)
    assert "cuEventCreate failed" in messages[0]
    assert (z.numpy() == (3 if launched else 0)).all()
    assert messages[1:] == [] if launched else messages[-1].endswith("lost with their results: 1")


def test_a_result_that_dies_inside_the_launch_that_loses_it(refuse, replaced, pooled):
    """Its memory is whole again before the error of the launch is kept."""
    x = ints(1)
    kept = [x + 1 for _ in range(3)]
    cyrt.synchronize()
    del kept[0], kept[0]  # The next ones are released without further checks.
    dies = []

    def record_event(original, *arguments):
        dies.clear()
        return original(*arguments)

    refuse(0)
    dies.append(x + 1)
    replaced("cuEventRecord", [c_void_p] * 2, record_event)
    commit_fails()
    for each in [cyrt.empty(N, dtype=cyrt.int32) for _ in range(8)]:
        each.numpy()


def test_handlers_are_called(module, refuse):
    called = []
    x = ints()
    refuse(0)
    module["put"][1, N](x, 1)
    cyrt.current_encoder().add_completed_handler(lambda: called.append(1))
    commit_fails()
    until(lambda: called)


def test_refusals_leave_nothing_behind(module, refuse):
    """Numbers of errors are used again, and modules can go."""
    own = cyrt.Kernel('extern "C" __global__ void put(int* x, int value) { *x = value; }', "put")
    seen = weakref.ref(own)
    for _ in range(50):
        x = ints()
        refuse(0)
        own[1, 1](x, 1)
        commit_fails()
        lost(x)
    del own, x
    refuse()
    for _ in range(80):
        ints() + 1
        cyrt.commit()
    gc.collect()
    assert seen() is None


def test_the_line_is_named_where_it_is_known(python):
    done = python(
        """
        import ctypes, cyrt
        from cyrt.driver import table
        k = cyrt.Kernel('extern "C" __global__ void put(int* x) { *x = 1; }', "put")
        x = cyrt.Buffer(4)
        calls = []
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
        refused = prototype(lambda *_: 801)
        graph = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2)(lambda *_: 801)
        table.replace("cuGraphLaunch", ctypes.cast(graph, ctypes.c_void_p).value)
        table.replace("cuLaunchKernelEx", ctypes.cast(refused, ctypes.c_void_p).value)
        try:
            k[1, 1](x)
        except cyrt.CudaError as error:
            assert "recorded at <string>:13" in str(error), error
        else:
            raise AssertionError
        """,
        CYRT_LAUNCH_BLOCKING="1",
    )
    assert done.returncode == 0, done.stderr
