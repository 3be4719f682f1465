"""Kernels and calls that were dropped leave the cache with the plans that ran them."""

from __future__ import annotations

import gc
import weakref
from ctypes import c_size_t, c_uint64, c_void_p

import pytest
from calls import Vectors, record
from gates import Gate
from outside import N, host, zeros

import cyrt
from cyrt.graph import template

SOURCE = """
__device__ char big[1 << 20];
extern "C" __global__ void plus(float* x) { x[threadIdx.x] += 1 + big[5]; }
"""

pytestmark = pytest.mark.usefixtures("batched")


@pytest.fixture
def ended(replaced):
    """Which graphs and modules were destroyed, in that order."""
    gc.collect()
    cyrt.commit()
    cyrt.synchronize()
    calls = []
    for name in ("cuGraphExecDestroy", "cuModuleUnload"):

        def call(original, handle, name=name):
            calls.append(name)
            return original(handle)

        replaced(name, [c_void_p], call)
    return calls


@pytest.fixture
def other():
    """Another stream's encoder, whose commits have nothing to do with the kernels."""
    with cyrt.CommandEncoder() as encoder:
        for _ in range(3):  # then its graph is there
            commit_other(encoder)
        encoder.synchronize()
        yield encoder


def commit_other(other):
    other.add_memset(cyrt.Buffer(16), 1)
    other.commit()


@pytest.mark.parametrize("times", [1, 3], ids=["a chain", "a graph"])
def test_a_module_is_unloaded_after_the_graphs_that_ran_it(encoder, other, ended, times):
    x, kernel = zeros(), cyrt.Kernel(SOURCE, "plus")
    for _ in range(times):
        encoder.add_kernel(kernel, 1, N, (x,))
        encoder.add_kernel(kernel, 1, N, (x,))
        encoder.commit()
    encoder.synchronize()
    plan = encoder.last_plan()
    before = plan.names, plan.nodes, plan.edges, plan.to_dot()
    plans = encoder.stats()["plans"]
    assert "cuModuleUnload" not in ended
    del kernel
    gc.collect()
    assert ended == []
    commit_other(other)
    cyrt.synchronize()
    assert ended.count("cuModuleUnload") == 1
    assert ended[-1] == "cuModuleUnload"
    assert "cuGraphExecDestroy" in ended
    assert encoder.stats()["plans"] == plans - 1
    assert plan._graphs == []
    assert (plan.names, plan.nodes, plan.edges, plan.to_dot()) == before
    assert (host(x) == 2 * times).all()


def test_not_before_the_device_is_idle(encoder, other, ended, unchecked):
    x, kernel, gate = zeros(), cyrt.Kernel(SOURCE, "plus"), Gate()
    for _ in range(3):
        encoder.add_kernel(kernel, 1, N, (x,))
        encoder.commit()
    encoder.synchronize()
    del ended[:]
    with cyrt.Stream():
        gate.wait()
        cyrt.commit()
    plans = encoder.stats()["plans"]
    del kernel
    gc.collect()
    commit_other(other)
    assert encoder.stats()["plans"] == plans - 1
    assert ended == []
    gate.open()
    cyrt.synchronize()
    assert ended.count("cuModuleUnload") == 1


def test_one_that_is_dropped_while_it_is_recorded(encoder, other, ended):
    x, kernel = zeros(), cyrt.Kernel(SOURCE, "plus")
    encoder.add_kernel(kernel, 1, N, (x,))
    del kernel
    gc.collect()
    commit_other(other)
    encoder.synchronize()
    assert "cuModuleUnload" not in ended
    for _ in range(2):  # the first one ends while the batch is launched
        commit_other(other)
    cyrt.synchronize()
    assert ended.count("cuModuleUnload") == 1
    assert (host(x) == 1).all()


def test_other_plans_stay(encoder, other):
    """Kernels of cyrt's own are never dropped, and those of other modules not with this one."""
    x, kernel, kept = zeros(), cyrt.Kernel(SOURCE, "plus"), cyrt.Kernel(SOURCE, "plus")
    array = cyrt.zeros(8)
    for _ in range(3):
        for each in (kernel, kept):
            encoder.add_kernel(each, 1, N, (x,))
            encoder.commit()
        with encoder.stream:
            array += 1
            encoder.commit()
    del kernel
    gc.collect()
    commit_other(other)
    before = encoder.stats()
    encoder.add_kernel(kept, 1, N, (x,))
    encoder.commit()
    with encoder.stream:
        array += 1
        encoder.commit()
    after = encoder.stats()
    assert after["hits"] == before["hits"] + 2
    assert after["misses"] == before["misses"]
    assert after["evictions"] == before["evictions"]


def test_a_kernel_that_the_driver_refused(encoder, other, ended, replaced):
    """Its error has the kernel's name, and nothing else of it."""
    x, kernel = zeros(), cyrt.Kernel(SOURCE, "plus")
    refused = []

    def refuse(original, *arguments):
        if refused:
            return refused[0]
        return original(*arguments)

    replaced("cuGraphLaunch", [c_void_p] * 2, refuse)
    replaced("cuLaunchKernelEx", [c_void_p] * 4, refuse)
    encoder.add_kernel(kernel, 1, N, (x,))
    refused.append(801)  # CUDA_ERROR_NOT_SUPPORTED
    with pytest.raises(cyrt.CudaError, match="is the kernel plus, "):
        encoder.commit()
    del refused[:], kernel
    gc.collect()
    for _ in range(2):
        commit_other(other)
    cyrt.synchronize()
    assert ended.count("cuModuleUnload") == 1
    with pytest.raises(cyrt.CudaError, match="is the kernel plus, "):
        host(x)


class Held:
    """The object that makes a library's call, and that keeps its code loaded."""

    def __init__(self, function):
        self.function = function

    def __call__(self, stream, addresses):
        self.function(stream, addresses)


@pytest.mark.parametrize("opaque", [False, True], ids=["a template", "a child graph"])
def test_the_object_of_a_librarys_call(library, other, opaque, fresh_templates):
    """Once its template has left the store, no plan keeps it."""

    def call(stream, addresses):
        library.add(stream, addresses)
        if opaque:  # a node that is no kernel
            a, _, out = addresses[:3]
            with library:
                library(
                    "cuMemcpyDtoDAsync_v2",
                    c_uint64(out),
                    c_uint64(a),
                    c_size_t(64),
                    c_void_p(stream),
                )

    vectors, held = Vectors(), Held(call)
    gone = weakref.ref(held)
    for _ in range(3):
        made = record(held, vectors)
        cyrt.commit()
    cyrt.synchronize()
    assert (made.reason is not None) == opaque
    del made, held
    gc.collect()
    assert gone() is not None
    template.forget()
    gc.collect()
    commit_other(other)
    cyrt.synchronize()
    gc.collect()
    assert gone() is None


def test_a_kernel_that_ends_while_its_plan_is_in_use(encoder, other, ended, replaced):
    """The commit has launched the batch and dropped what it recorded, and has not ended."""
    x, kernel = zeros(), cyrt.Kernel(SOURCE, "plus")
    launched, found = [], []

    def launch(original, *arguments):
        launched.append(True)
        return original(*arguments)

    def query(original, event):
        nonlocal kernel
        if launched and kernel is not None:
            kernel = None
            gc.collect()
            commit_other(other)
            found.append(encoder.stats()["plans"])
        return original(event)

    encoder.add_kernel(kernel, 1, N, (x,))
    before = encoder.stats()["plans"]
    replaced("cuGraphLaunch", [c_void_p] * 2, launch)
    replaced("cuEventQuery", [c_void_p], query)
    encoder.commit()
    assert found == [before + 1]
    assert "cuModuleUnload" not in ended
    commit_other(other)
    assert encoder.stats()["plans"] == before
    cyrt.synchronize()
    assert ended.count("cuModuleUnload") == 1
    assert (host(x) == 1).all()


def test_many_modules_one_after_the_other(python):
    """Each has a variable of 64 MB; the device has room for seven."""
    done = python(
        """
        import gc
        import cyrt

        x = cyrt.zeros(4)
        for n in range(10):
            module = cyrt.Module(
                '__device__ char big[64 << 20]; extern "C" __global__ void k(float* x)'
                '{ x[0] = %d + big[5]; }' % n)
            module["k"][1, 1](x)
            assert x.numpy()[0] == n
            del module
            gc.collect()
        """,
        CYRT_DEVICE="emulated",
        CYRT_EMULATED_MEMORY="512M",
        CYRT_CHECK="0",
    )
    assert done.returncode == 0, done.stderr


def test_before_out_of_memory_is_raised(python):
    """What was dropped is unloaded though nothing was committed since; then idle plans go."""
    done = python(
        """
        import gc
        import cyrt

        def module(n):
            return cyrt.Module(
                '__device__ char big[200 << 20]; extern "C" __global__ void k(float* x)'
                '{ x[0] = %d + big[5]; }' % n)

        def memory(n):
            return cyrt.Buffer(300 << 20)

        x = cyrt.zeros(4)
        for n, allocate in enumerate((module, module, memory, module)):
            dropped = [module(n) for _ in range(2)]
            for each in dropped:
                each["k"][1, 1](x)
            assert x.numpy()[0] == n
            before = cyrt.current_encoder().stats()["commits"]
            del dropped, each
            gc.collect()
            made = allocate(n)
            assert cyrt.current_encoder().stats()["commits"] == before
            del made
            gc.collect()
        """,
        CYRT_DEVICE="emulated",
        CYRT_EMULATED_MEMORY="512M",
        CYRT_CHECK="0",
    )
    assert done.returncode == 0, done.stderr
