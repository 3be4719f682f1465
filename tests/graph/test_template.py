"""Calls of other libraries, learned once and recorded as kernels."""

from __future__ import annotations

import ctypes
import gc
import struct
import weakref
from ctypes import c_int, c_uint, c_uint64, c_void_p
from pathlib import Path

import numpy as np
import pytest
from calls import CLUSTER, PRIORITY, Calls, KernelNodeParams, N, Packed, Vectors, record
from outside import only_batches, only_graphs

import cyrt
from cyrt.graph import template

pytestmark = pytest.mark.usefixtures("fresh_templates")

CALLS = {
    "separate parameters": lambda library: library.add,
    "one packed buffer": lambda library: library.scaled,
    "pointers in a struct": lambda library: library.nested,
}
WANTED = {
    "separate parameters": lambda a, b: a + b,
    "one packed buffer": lambda a, b: a + 2 * b,
    "pointers in a struct": lambda a, b: 3 * (a + b),
}


def addresses(vectors):
    return tuple(each.ptr for each in vectors.all)


@pytest.mark.parametrize("what", CALLS)
def test_a_call_is_learned_once_and_right_everywhere(library, what):
    call, before = CALLS[what](library), library.count
    for seed in range(6):
        vectors = Vectors(seed, spare=seed)
        learned = record(call, vectors)
        assert learned.reason is None
        np.testing.assert_array_equal(vectors.result(), WANTED[what](*vectors.host))
    assert library.count == before + 3
    assert template.count_templates() == 1


@only_graphs
@pytest.mark.parametrize("what", CALLS)
def test_nodes_are_what_a_capture_at_these_addresses_is(library, what):
    call = CALLS[what](library)
    for seed in range(3):
        vectors = Vectors(seed, spare=seed)
        cyrt.commit()
        for _ in range(2):  # the first batch of a topology runs as a chain
            record(call, vectors)
            cyrt.commit()
        handles = cyrt.current_encoder().last_plan()._graphs
        wanted = library.captured(call, addresses(vectors))
        assert library.launches(handles[0]) == wanted
        cyrt.synchronize()
        template.forget()


@only_graphs
def test_patched_nodes_are_fresh_nodes(library, replaced):
    seen = {"cuGraphAddKernelNode": [], "cuGraphExecKernelNodeSetParams": []}

    def spy(name, at):
        def call(original, *arguments):
            params = ctypes.cast(arguments[at], ctypes.POINTER(KernelNodeParams)).contents
            seen[name].append(library.node_params(params))
            return original(*arguments)

        return call

    sets = [Vectors(seed, spare=seed) for seed in range(4)]
    record(library.scaled, sets[0])
    cyrt.synchronize()
    pointers = [c_void_p] * 3
    add = [c_void_p, c_void_p, c_void_p, ctypes.c_size_t, c_void_p]
    replaced("cuGraphExecKernelNodeSetParams", pointers, spy("cuGraphExecKernelNodeSetParams", 2))
    replaced("cuGraphAddKernelNode", add, spy("cuGraphAddKernelNode", 4))
    for vectors in sets + sets[::-1]:
        record(library.scaled, vectors)
        cyrt.commit()
    cyrt.synchronize()
    wanted = {library.captured(library.scaled, addresses(each))[0][4] for each in sets}
    found = [params for each in seen.values() for params in each]
    assert set(found) <= wanted
    assert len(found) >= 3


def test_several_kernels_and_a_memset_are_kernels_in_order(library):
    before = library.count
    for seed in range(4):
        vectors = Vectors(seed, spare=seed)
        learned = record(library.chain, vectors, workspace=4096)
        a, b = vectors.host
        np.testing.assert_array_equal(vectors.result(), a + 2 * b + 1)
    assert library.count == before + 3
    assert learned.names[1:] == ["increase", "scaled", "add"]
    assert learned.names[0] == "cyrt_copy_uint32"


@pytest.mark.parametrize(("begin", "size", "width"), [(0, 64, 32), (2, 30, 16), (4, 15, 8)])
def test_a_memset_fills_the_widest_elements(library, begin, size, width):
    def call(stream, where):
        library.memset(stream, where[2] + begin, 0x5A, size)

    vectors = Vectors()
    assert record(call, vectors).names == [f"cyrt_copy_uint{width}"]
    wanted = np.zeros(4 * N, np.uint8)
    wanted[begin : begin + size] = 0x5A
    np.testing.assert_array_equal(vectors.result().view(np.uint8), wanted)


@only_batches
def test_a_graph_of_them_has_no_memset(library):
    vectors = Vectors()
    cyrt.commit()
    for _ in range(2):
        record(library.chain, vectors, workspace=4096)
        cyrt.commit()
    plan = cyrt.current_encoder().last_plan()
    assert [node.kind for node in plan.nodes] == ["kernel"] * 4
    assert {(0, 1), (1, 2), (2, 3)} <= {(source, target) for source, target, _ in plan.edges}


def test_what_a_call_forks_runs_at_once(library):
    """`out = a + b`; then on one stream `out + 2`, on the other `a + b + 1`; then both together."""
    others, event = library.streams(2)

    def call(stream, where):
        a, b, out, workspace = where
        library.put(stream, "add", [*map(c_uint64, (a, b, out)), c_int(N)])
        with library.forked(stream, others, event):
            for _ in range(2):
                library.put(others[0].value, "increase", [c_uint64(out), c_int(N)])
            library.put(others[1].value, "add", [*map(c_uint64, (a, b, workspace)), c_int(N)])
            library.put(others[1].value, "increase", [c_uint64(workspace), c_int(N)])
        library.put(stream, "add", [*map(c_uint64, (out, workspace, out)), c_int(N)])

    for seed in range(3):
        vectors = Vectors(seed, spare=seed)
        learned = record(call, vectors, workspace=4096)
        assert (learned.reason, learned.num_tokens) == (None, 2)
        a, b = vectors.host
        np.testing.assert_array_equal(vectors.result(), 2 * (a + b) + 3)
    cyrt.commit()
    for _ in range(2):
        record(call, vectors, workspace=4096)
        record(library.scaled, vectors)  # waits for all of it
        cyrt.commit()
    plan = cyrt.current_encoder().last_plan()
    if plan and len(plan.nodes) == 7:  # one batch; CYRT_GRAPHS=0 has no plan
        forked = [(0, 1), (0, 3), (1, 2), (3, 4), (2, 5), (4, 5), (5, 6)]
        assert {(source, target) for source, target, _ in plan.edges} == set(forked)


@only_graphs
def test_a_branch_waits_only_for_where_it_begins(library):
    """The second kernel forks; the third and the fourth run at once."""
    others, event = library.streams(1)

    def call(stream, where):
        a, b, out, workspace = where
        library.put(stream, "add", [*map(c_uint64, (a, b, out)), c_int(N)])
        library.put(stream, "increase", [c_uint64(out), c_int(N)])
        with library.forked(stream, others, event):
            library.put(stream, "increase", [c_uint64(out), c_int(N)])
            library.put(others[0].value, "add", [*map(c_uint64, (a, b, workspace)), c_int(N)])
        library.put(stream, "add", [*map(c_uint64, (out, workspace, out)), c_int(N)])

    vectors = Vectors()
    cyrt.commit()
    for _ in range(2):
        learned = record(call, vectors, workspace=4096)
        cyrt.commit()
    a, b = vectors.host
    np.testing.assert_array_equal(vectors.result(), 2 * (a + b) + 2)
    assert (learned.reason, learned.num_tokens) == (None, 3)
    edges = {(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)}
    plan = cyrt.current_encoder().last_plan()
    assert {(source, target) for source, target, _ in plan.edges} == edges


def test_padding_that_varies_is_none_of_the_parameters(library):
    count = iter(range(1, 100))

    def call(stream, where):
        library.scaled(stream, where, padding=bytes([next(count)] * 7))

    vectors = Vectors()
    assert record(call, vectors).reason is None
    np.testing.assert_array_equal(vectors.result(), vectors.host[0] + 2 * vectors.host[1])
    assert next(count) == 5, "three captures, and one at equal addresses"


def test_padding_of_a_separate_struct(library):
    count = iter(range(1, 100))

    def call(stream, where):
        library.nested(stream, where, padding=bytes([next(count)] * 4))

    vectors = Vectors()
    assert record(call, vectors).reason is None
    np.testing.assert_array_equal(vectors.result(), 3 * (vectors.host[0] + vectors.host[1]))


def test_addresses_with_an_offset(library):
    def call(stream, where):
        library.scaled(stream, where, n=N - 4, offset=16)

    vectors = Vectors()
    assert record(call, vectors).reason is None
    a, b = vectors.host
    np.testing.assert_array_equal(vectors.result()[4:], (a + 2 * b)[4:])
    assert (vectors.result()[:4] == 0).all()


def test_attributes_are_carried(library):
    if not cyrt.Device(0).attribute("CLUSTER_LAUNCH"):
        pytest.skip("the device has no clusters")

    def call(stream, where):
        library.put(
            stream,
            "ranks",
            [c_uint64(where[2])],
            grid=8,
            attributes=[(CLUSTER, (4, 1, 1)), (PRIORITY, (0,))],
        )

    vectors = Vectors()
    for _ in range(3):
        assert record(call, vectors).reason is None
    assert vectors.result()[:8].tolist() == [40, 41, 42, 43] * 2


@only_graphs
def test_attributes_of_nodes_are_those_of_a_capture(library):
    if not cyrt.Device(0).attribute("CLUSTER_LAUNCH"):
        pytest.skip("the device has no clusters")

    def call(stream, where):
        attributes = [(CLUSTER, (2, 1, 1)), (PRIORITY, (-1,))]
        library.put(stream, "ranks", [c_uint64(where[2])], grid=8, attributes=attributes)

    vectors = Vectors()
    cyrt.commit()
    record(call, vectors)
    cyrt.commit()
    plan = cyrt.current_encoder().last_plan()
    assert [node.cluster for node in plan.nodes] == [(2, 1, 1)]
    assert library.launches(plan._graphs[0]) == library.captured(call, addresses(vectors))


def test_a_kernel_of_a_library_is_no_function(library):
    kernel = library.kernel("add")

    def call(stream, where):
        library.add(stream, where, kernel=kernel)

    for seed in range(3):
        vectors = Vectors(seed)
        learned = record(call, vectors)
        assert learned.reason is None
        np.testing.assert_array_equal(vectors.result(), vectors.host[0] + vectors.host[1])
    assert learned.names == ["add"]


def test_a_node_that_has_a_kernel_and_no_function(library, replaced):
    """As drivers describe the launch of a library's kernel."""
    kernel = library.kernel("nested")

    def describe(original, node, address):
        result = original(node, address)
        params = ctypes.cast(address, ctypes.POINTER(KernelNodeParams)).contents
        params.func, params.kern, params.ctx = None, kernel.value, library.context.value
        return result

    replaced("cuGraphKernelNodeGetParams", [c_void_p] * 2, describe)
    for seed in range(4):
        vectors = Vectors(seed, spare=seed)
        learned = record(library.nested, vectors)
        assert learned.reason is None
        np.testing.assert_array_equal(vectors.result(), 3 * (vectors.host[0] + vectors.host[1]))
    assert learned.names == ["nested"]


def test_a_call_is_prepared_before_each_capture(library):
    class Call:
        prepared = 0

        def prepare(self):
            Call.prepared += 1

        def __call__(self, stream, where):
            library.add(stream, where)

    record(Call(), Vectors())
    assert Call.prepared == 3


def test_a_call_is_prepared_during_the_capture_of_another_library(library):
    stream, graph, memory = c_void_p(), c_void_p(), c_uint64()

    class Call:
        def prepare(self):
            if not memory:
                library("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(64))

        def __call__(self, stream, where):
            library.add(stream, where)

    vectors = Vectors()
    with library:
        library("cuStreamCreate", ctypes.byref(stream), 1)
        library("cuStreamBeginCapture_v2", stream, 0)  # an allocation of any thread ends it
    record(Call(), vectors, key=(294,))
    with library:
        library("cuStreamEndCapture", stream, ctypes.byref(graph))
        library("cuGraphDestroy", graph)
        library("cuStreamDestroy_v2", stream)
        library("cuMemFree_v2", memory)
    np.testing.assert_array_equal(vectors.result(), vectors.host[0] + vectors.host[1])


def test_a_large_call_is_learned_in_the_memory_of_its_workspace(python):
    """Else the first call would allocate twice as much, or free the one to allocate the other."""
    done = python(
        """
        import cyrt
        from calls import Calls, Vectors, record

        with cyrt.Stream():
            library, vectors = Calls(), Vectors()
            before = cyrt.memory_stats()["driver_allocations"]
            assert record(library.chain, vectors, workspace=8 << 20).reason is None
            print(cyrt.memory_stats()["driver_allocations"] - before)
        """,
        folders=[Path(__file__).parent],
        CYRT_POOL="1",
        CYRT_CHECK="0",
    )
    assert done.stdout.split() == ["1"], done.stderr


def test_two_parameters_that_look_like_an_address(library):
    own = Vectors(7)
    low, high = own.b.ptr & 0xFFFF_FFFF, own.b.ptr >> 32

    def call(stream, where):
        operands = [c_uint64(where[0]), c_uint64(where[2]), c_uint(low), c_uint(high)]
        library.put(stream, "flagged", operands)

    for seed in range(2):
        vectors = Vectors(seed, spare=seed)
        assert record(call, vectors).reason is None
        np.testing.assert_array_equal(vectors.result(), vectors.host[0] + 1)


@pytest.mark.parametrize("offset", [0, 32])
def test_half_an_address_that_the_kernel_has_in_whole(library, offset):
    """What an earlier call left in the padding before or after a value."""

    def call(stream, where):
        low = struct.pack("<I", where[1] + offset & 0xFFFF_FFFF)
        a, b, out = (each + offset for each in where)
        packed = Packed(a, b"\1", b"", N - 8, b, out, 2.0)
        ctypes.memmove(ctypes.addressof(packed) + Packed.tail.offset, low, 4)  # it may have zeros
        library.put(stream, "scaled", packed)

    for seed in range(3):
        vectors = Vectors(seed, spare=seed)
        assert record(call, vectors, key=(offset,)).reason is None
        a, b = vectors.host
        part = np.s_[offset // 4 : N - 8 + offset // 4]
        np.testing.assert_array_equal(vectors.result()[part], (a + 2 * b)[part])
        params = library.captured(call, addresses(vectors))[0][4]
        assert struct.pack("<I", vectors.all[1].ptr + offset & 0xFFFF_FFFF) in params


@pytest.mark.usefixtures("batched")
def test_a_call_lives_as_long_as_its_kernels(library):
    """A library may unload code that it has compiled for a call with the call's object, which must
    not be while a batch that will be launched has its kernels."""

    class Call:
        def __call__(self, stream, where):
            library.add(stream, where)

    vectors, call = Vectors(), Call()
    gone = weakref.ref(call)
    record(call, vectors)
    del call
    template.forget()
    gc.collect()
    assert gone() is not None
    np.testing.assert_array_equal(vectors.result(), sum(vectors.host))


@only_batches
@pytest.mark.usefixtures("only_emulated")
def test_a_template_after_its_module_is_gone(library):
    own = Calls()
    vectors, other = Vectors(), Vectors(3)
    record(own.add, vectors)
    cyrt.synchronize()
    with own:
        own("cuModuleUnload", own.module)
    record(own.add, vectors)
    with pytest.raises(cyrt.CudaError, match="The operation refused is the kernel add"):
        cyrt.synchronize()
    with pytest.raises(cyrt.CudaError):
        vectors.result()
    record(library.add, other, key=(2,))
    np.testing.assert_array_equal(other.result(), other.host[0] + other.host[1])


def test_operands_of_outside_memory(library):
    vectors = Vectors()
    outside = cyrt.pointer(vectors.out.ptr, vectors.out.nbytes)
    learned = template.record_call(
        (1,), library.chain, [*vectors.all[:2], outside], (2,), workspace=4096
    )
    assert learned.reason is None
    a, b = vectors.host
    np.testing.assert_array_equal(vectors.result(), a + 2 * b + 1)


@only_batches
def test_inside_concurrent_they_are_ordered(library):
    vectors = Vectors()
    record(library.chain, vectors, workspace=4096)
    cyrt.commit()
    with cyrt.concurrent():
        record(library.chain, vectors, workspace=4096)
    cyrt.commit()
    plan = cyrt.current_encoder().last_plan()
    assert {(0, 1), (1, 2), (2, 3)} <= {(source, target) for source, target, _ in plan.edges}
    a, b = vectors.host
    np.testing.assert_array_equal(vectors.result(), a + 2 * b + 1)


def test_a_freed_operand_is_refused(library):
    vectors = Vectors()
    record(library.add, vectors)
    whole = cyrt.Buffer(4 * N)
    vectors.out = whole
    whole.free()
    with pytest.raises(ValueError, match="freed"):
        record(library.add, vectors)
