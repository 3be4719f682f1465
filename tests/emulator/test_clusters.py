"""Clusters of blocks: their registers, barrier and shared memory; what of them is refused."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_uint, c_void_p

import graph_abi
import numpy as np
import pytest
from graph_abi import Attribute, Graph, refused

import cyrt

pytestmark = pytest.mark.usefixtures("only_emulated")

INVALID_VALUE, INVALID_CLUSTER_SIZE = 1, 912
CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
MUST_BE_SET, WIDTH, NON_PORTABLE = 10, 11, 14  # CU_FUNC_ATTRIBUTE_...
CLUSTER_LAUNCH = 120  # CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH

SOURCE = r"""
#define READ(v, name) asm volatile("mov.u32 %0, %%" name ";" : "=r"(v))
#define SYNC asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" \
                          ::: "memory")
__device__ unsigned near(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ unsigned mapped(const void* p, unsigned rank) {
    unsigned out;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(near(p)), "r"(rank));
    return out;
}
extern "C" {
__global__ void registers(unsigned* out) {
    unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z), e, v[15];
#define TRIPLE(i, name) READ(v[i], name ".x"); READ(v[i + 1], name ".y"); READ(v[i + 2], name ".z")
    TRIPLE(0, "clusterid"); TRIPLE(3, "nclusterid"); TRIPLE(6, "cluster_ctaid");
    TRIPLE(9, "cluster_nctaid");
    READ(v[12], "cluster_ctarank");
    READ(v[13], "cluster_nctarank");
    asm volatile("{.reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p;}"
                 : "=r"(e));
    v[14] = e;
    for (int i = 0; i < 15; ++i) out[15 * b + i] = v[i];
}
// Each block shows its values to the next of its cluster.
__global__ void neighbours(unsigned* out) {
    __shared__ unsigned own[32];
    unsigned rank, ranks, seen;
    READ(rank, "cluster_ctarank");
    READ(ranks, "cluster_nctarank");
    own[threadIdx.x] = 100 * blockIdx.x + threadIdx.x;
    SYNC;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(seen)
                 : "r"(mapped(own + threadIdx.x, (rank + 1) % ranks)));
    out[blockIdx.x * 32 + threadIdx.x] = seen;
    SYNC;
}
// All threads of the cluster count in the first block's memory, by generic addresses.
__global__ void counter(unsigned* out) {
    __shared__ unsigned count;
    unsigned long long address, rank;
    if (threadIdx.x == 0) count = 0;
    SYNC;
    asm volatile("mapa.u64 %0, %1, 0;" : "=l"(address) : "l"(&count));
    atomicAdd((unsigned*)address, 1);
    asm volatile("{.reg .b32 r; getctarank.u64 r, %1; cvt.u64.u32 %0, r;}"
                 : "=l"(rank) : "l"(address));
    SYNC;
    if (threadIdx.x == 0) out[blockIdx.x] = count + 1000 * (unsigned)rank;
    SYNC;
}
// The last block arrives at a barrier in the memory of the first, which waits for it.
__global__ void remote_arrival(unsigned* out) {
    __shared__ unsigned long long barrier;
    unsigned rank, done = 0;
    READ(rank, "cluster_ctarank");
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: "r"(near(&barrier)));
    SYNC;
    if (rank == 1)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                     :: "r"(mapped(&barrier, 0)));
    while (rank == 0 && !done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared.b64 p, [%1],"
                     " 0; selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(near(&barrier)));
    out[rank * 32 + threadIdx.x] = done;
    SYNC;
}
// Half of the threads leave, some of them after they arrived; the barrier is for those left.
__global__ void leaving(unsigned* out) {
    if (threadIdx.x < 8) return;
    asm volatile("barrier.cluster.arrive;");
    if (threadIdx.x < 16) return;
    asm volatile("barrier.cluster.wait;");
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;");
    out[blockIdx.x * 32 + threadIdx.x] = 7;
}
}"""


@pytest.fixture(scope="module")
def module(emulated):
    return cyrt.Module(SOURCE) if emulated else None


def launch(module, name, grid, block, count, cluster):
    out = cyrt.Buffer(4 * count)
    out.fill(0)
    with cyrt.CommandEncoder() as encoder:
        encoder.add_kernel(module[name], grid, block, (out,), cluster=cluster, writes=[out])
    found = np.empty(count, np.uint32)
    out.copy_to(found)
    return found


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [
        ((4, 6, 2), (2, 3, 1)),
        ((4, 6, 2), (1, 2, 2)),
        ((8, 1, 1), (8, 1, 1)),
        ((3, 1, 1), (1, 1, 1)),
        ((3, 2, 1), None),
    ],
)
def test_registers(module, grid, cluster):
    found = launch(module, "registers", grid, 1, 15 * int(np.prod(grid)), cluster)
    found = found.reshape(*reversed(grid), 15)
    size = np.array(cluster or (1, 1, 1))
    for z, y, x in np.ndindex(*reversed(grid)):
        at = np.array([x, y, z])
        inside = at % size
        rank = inside[0] + size[0] * (inside[1] + size[1] * inside[2])
        assert found[z, y, x].tolist() == [
            *at // size,
            *np.array(grid) // size,
            *inside,
            *size,
            rank,
            size.prod(),
            cluster is not None,
        ]


@pytest.mark.parametrize("cluster", [1, 2, 4, 8])
def test_shared_memory_of_another_block(module, cluster):
    found = launch(module, "neighbours", 16, 32, 16 * 32, cluster).reshape(16, 32)
    block = np.arange(16)
    seen = block // cluster * cluster + (block + 1) % cluster
    np.testing.assert_array_equal(found, 100 * seen[:, None] + np.arange(32))


@pytest.mark.parametrize("threads", [32, 70])
def test_atomics_in_another_block(module, threads):
    found = launch(module, "counter", 12, threads, 12, 4)
    assert found[::4].tolist() == [4 * threads] * 3  # the counters of the blocks of rank 0
    assert (found < 1000).all()  # getctarank gave 0 in every block


def test_arrival_in_another_block(module):
    assert launch(module, "remote_arrival", 2, 32, 64, 2).tolist() == [1] * 32 + [0] * 32


def test_threads_that_leave_count_no_more(module):
    found = launch(module, "leaving", 4, 32, 128, 2).reshape(4, 32)
    assert (found[:, 16:] == 7).all()
    assert (found[:, :16] == 0).all()


# --- faults -------------------------------------------------------------------------------------

FAULT = r'''
import cyrt
module = cyrt.Module(r"""SOURCE
extern "C" __global__ void faulty(unsigned* out) {
    __shared__ unsigned own[8];
    unsigned rank, v = 0;
    READ(rank, "cluster_ctarank");
    if (threadIdx.x == 0 && blockIdx.x < 99) own[0] = 1;
    BODY
    out[0] = v + own[0];
}""")
out = cyrt.Buffer(64)
try:
    with cyrt.CommandEncoder() as encoder:
        encoder.add_kernel(module["faulty"], 2, 32, (out,), cluster=2, writes=[out])
    cyrt.synchronize()
except cyrt.CudaError as error:
    print(error.name, error)
'''
LOAD = 'asm volatile("ld.shared%s.u32 %%0, [%%1];" : "=r"(v) : "r"(mapped(own + %s, %s)));'


@pytest.mark.parametrize(
    ("body", "name", "text"),
    [
        (
            "SYNC; " + LOAD % ("::cluster", 0, 2),
            "ILLEGAL_ADDRESS",
            "of the shared memory of block 2 of the cluster, which has 2 blocks",
        ),
        ("SYNC; " + LOAD % ("::cluster", 8, "1 - rank"), "ILLEGAL_ADDRESS", "which has 32 bytes"),
        ("SYNC; " + LOAD % ("", 0, "1 - rank"), "ILLEGAL_ADDRESS", "that reaches its own"),
        (
            "SYNC; if (rank == 0) return; SYNC; " + LOAD % ("::cluster", 0, 0),
            "ILLEGAL_ADDRESS",
            "of block 0 of the cluster, which has ended",
        ),
        ('asm volatile("barrier.cluster.wait;");', "ILLEGAL_INSTRUCTION", "no arrive before it"),
        (
            'asm volatile("barrier.cluster.arrive; barrier.cluster.arrive;");',
            "ILLEGAL_INSTRUCTION",
            "no wait after the last one",
        ),
        (
            'if (rank == 0) SYNC; else asm volatile("bar.sync 3, 64;");',
            "LAUNCH_TIMEOUT",
            "waits for the cluster's barrier",
        ),
    ],
)
def test_faults(python, body, name, text):
    done = python(FAULT.replace("SOURCE", SOURCE).replace("BODY", body))
    assert done.returncode == 0, done.stderr
    assert f"CUDA_ERROR_{name}" in done.stdout
    assert "kernel faulty, block (" in done.stdout
    assert text in done.stdout


def test_unwritten_memory_of_another_block(python):
    body = "SYNC; " + LOAD % ("::cluster", 3, "1 - rank") + " SYNC;"
    done = python(FAULT.replace("SOURCE", SOURCE).replace("BODY", body), CYRT_CHECK="1")
    assert "nobody has written" in done.stdout


# --- the driver's ABI ---------------------------------------------------------------------------


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", c_int), ("pad", ctypes.c_char * 4), ("value", Attribute)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("count", c_uint),
    ]


def config(grid, cluster=None, block=(32, 1, 1), stream=None):
    attribute = LaunchAttribute(CLUSTER)
    attribute.value.dims[:3] = cluster or (0, 0, 0)
    out = LaunchConfig(grid, block, 0, stream, ctypes.addressof(attribute), cluster is not None)
    out.kept = attribute
    return out


PTX = b""".version 8.0
.target sm_90
.address_size 64
""" + b"\n".join(
    b""".visible .entry %s(.param .u64 p) %s
{
    .reg .b32 %%r<2>; .reg .b64 %%l<2>;
    ld.param.u64 %%l1, [p];
    mov.u32 %%r1, %%cluster_nctarank;
    st.global.u32 [%%l1], %%r1;
    ret;
}"""
    % pair
    for pair in [
        (b"plain", b""),
        (b"pairs", b".explicitcluster .reqnctapercluster 2, 1, 1"),
        (b"some", b".explicitcluster"),
        (b"upto4", b".maxclusterrank 4"),
    ]
)


@pytest.fixture
def kernels(driver):
    handle = c_void_p(driver.make("cuModuleLoadData", PTX))
    names = ("plain", "pairs", "some", "upto4")
    found = {name: driver.make("cuModuleGetFunction", handle, name.encode()) for name in names}
    driver.kernels.update(found)
    yield found
    for name in names:
        del driver.kernels[name]
    driver("cuModuleUnload", handle)


def launch_ex(driver, kernel, shape, address):
    return driver.call(
        "cuLaunchKernelEx", byref(shape), c_void_p(kernel), driver.arguments(address), None
    )


def test_grids_that_count_clusters(driver):
    """.blocksareclusters: a grid of 3 has 6 blocks in clusters of 2; limits hold for blocks."""
    code = PTX[: PTX.index(b".visible")] + (
        b".visible .entry k(.param .u64 p) .blocksareclusters .reqntid 32, 1, 1"
        b" .reqnctapercluster 2, 1, 1\n{\n.reg .b32 %r; .reg .b64 %l; ld.param.u64 %l, [p];"
        b" mov.u32 %r, %nctaid.x; red.global.add.u32 [%l], 1; st.global.u32 [%l + 4], %r; ret;\n}"
    )
    handle = c_void_p(driver.make("cuModuleLoadData", code))
    kernel = driver.make("cuModuleGetFunction", handle, b"k")
    driver.kernels["k"] = kernel
    for cluster in (None, (2, 1, 1)):
        data = driver.memory([0, 0])
        assert launch_ex(driver, kernel, config((3, 1, 1), cluster), data) == 0
        driver("cuCtxSynchronize")
        assert driver.read(data, 2).tolist() == [6 * 32, 6]
    for shape, code in (
        (config((3, 1, 1), (3, 1, 1)), INVALID_CLUSTER_SIZE),
        (config((3, 1, 1), block=(64, 1, 1)), INVALID_VALUE),
        (config((1 << 30, 1, 1)), INVALID_VALUE),
    ):
        assert launch_ex(driver, kernel, shape, data) == code
    del driver.kernels["k"]
    driver("cuModuleUnload", handle)


@pytest.mark.parametrize("directives", [".reqntid 32", ".reqnctapercluster 2, 1, 1", ""])
def test_grids_that_count_clusters_need_sizes(driver, directives):
    code = PTX.replace(b"(.param .u64 p) \n", b"(.param .u64 p) .blocksareclusters "
                       + directives.encode() + b"\n", 1)  # fmt: skip
    with pytest.raises(cyrt.CompileError, match=".blocksareclusters without .reqntid and"):
        cyrt.Module(code)


# Each as a GPU of compute capability 9.0 answers (driver 580).
@pytest.mark.parametrize(
    ("name", "grid", "cluster", "code", "ran"),
    [
        ("plain", 8, None, 0, 1),
        ("plain", 8, (0, 0, 0), 0, 1),
        ("plain", 8, (8, 1, 1), 0, 8),
        ("plain", 9, (3, 1, 1), 0, 3),
        ("plain", 7, (2, 1, 1), INVALID_CLUSTER_SIZE, 0),
        ("plain", 9, (9, 1, 1), INVALID_CLUSTER_SIZE, 0),
        ("plain", 8, (0, 2, 1), INVALID_CLUSTER_SIZE, 0),
        ("plain", 8, (2, 0, 0), INVALID_CLUSTER_SIZE, 0),
        ("plain", 8, (1 << 31, 1 << 31, 4), INVALID_CLUSTER_SIZE, 0),
        ("pairs", 8, None, 0, 2),
        ("pairs", 8, (2, 1, 1), 0, 2),
        ("pairs", 7, None, INVALID_CLUSTER_SIZE, 0),
        ("pairs", 8, (4, 1, 1), INVALID_CLUSTER_SIZE, 0),
        ("some", 8, None, INVALID_CLUSTER_SIZE, 0),
        ("some", 8, (2, 1, 1), 0, 2),
        ("upto4", 8, (4, 1, 1), 0, 4),
        ("upto4", 8, (8, 1, 1), INVALID_CLUSTER_SIZE, 0),
    ],
)
def test_what_is_refused(driver, kernels, name, grid, cluster, code, ran):
    data = driver.memory([0])
    assert launch_ex(driver, kernels[name], config((grid, 1, 1), cluster), data) == code
    driver("cuCtxSynchronize")
    assert driver.read(data, 1)[0] == ran


def test_sizes_that_are_not_portable(driver, kernels):
    data = driver.memory([0])
    kernel = c_void_p(kernels["plain"])
    value = c_int()
    shape = config((16, 1, 1), (16, 1, 1))
    assert launch_ex(driver, kernels["plain"], shape, data) == INVALID_CLUSTER_SIZE
    driver("cuFuncSetAttribute", kernel, NON_PORTABLE, 1)
    driver("cuFuncGetAttribute", byref(value), NON_PORTABLE, kernel)
    assert value.value == 1
    assert launch_ex(driver, kernels["plain"], shape, data) == 0
    driver("cuOccupancyMaxPotentialClusterSize", byref(value), kernel, byref(shape))
    assert value.value == 16
    shape = config((17, 1, 1), (17, 1, 1))
    assert launch_ex(driver, kernels["plain"], shape, data) == INVALID_CLUSTER_SIZE
    driver("cuCtxSynchronize")


def test_attributes_of_functions(driver, kernels):
    def values(name):
        out = []
        for attribute in range(MUST_BE_SET, NON_PORTABLE + 1):
            value = c_int(-7)
            driver("cuFuncGetAttribute", byref(value), attribute, c_void_p(kernels[name]))
            out.append(value.value)
        return out

    assert values("plain") == [0, 0, 0, 0, 0]
    assert values("pairs") == [1, 2, 1, 1, 0]
    assert values("some") == [1, 0, 0, 0, 0]
    with refused(INVALID_VALUE):
        driver("cuFuncSetAttribute", c_void_p(kernels["pairs"]), WIDTH, 4)
    with refused(INVALID_VALUE):
        driver("cuFuncSetAttribute", c_void_p(kernels["plain"]), MUST_BE_SET, 1)
    for axis, size in enumerate((4, 1, 1)):
        driver("cuFuncSetAttribute", c_void_p(kernels["plain"]), WIDTH + axis, size)
    data = driver.memory([0])
    assert launch_ex(driver, kernels["plain"], config((8, 1, 1)), data) == 0
    driver("cuCtxSynchronize")
    assert driver.read(data, 1)[0] == 4


def test_device_and_occupancy(driver, kernels):
    value = c_int()
    driver("cuDeviceGetAttribute", byref(value), CLUSTER_LAUNCH, 0)
    assert value.value == 1
    driver(
        "cuOccupancyMaxActiveClusters",
        byref(value),
        c_void_p(kernels["plain"]),
        byref(config((8, 1, 1), (4, 1, 1), (1024, 1, 1))),
    )
    blocks = c_int()
    driver(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        byref(blocks),
        c_void_p(kernels["plain"]),
        1024,
        graph_abi.c_size_t(0),
    )
    assert value.value == 8 * blocks.value // 4
    with refused(INVALID_CLUSTER_SIZE):
        driver(
            "cuOccupancyMaxActiveClusters",
            byref(value),
            c_void_p(kernels["plain"]),
            byref(config((8, 1, 1), (3, 1, 1))),
        )


def add_node(driver, graph, name, data, grid, cluster):
    node = c_void_p(graph.kernel(name, data, grid=grid))
    if cluster:
        value = Attribute()
        value.dims[:3] = cluster, 1, 1
        driver("cuGraphKernelNodeSetAttribute", node, CLUSTER, byref(value))
    return node


def test_nodes(driver, stream, kernels):
    data = driver.memory([0])
    graph = Graph(driver)
    node = add_node(driver, graph, "plain", data, 8, 2)
    for dims in ((3, 1, 1), (16, 1, 1), (0, 2, 1)):
        value = Attribute()
        value.dims[:3] = dims
        with refused(INVALID_CLUSTER_SIZE):
            driver("cuGraphKernelNodeSetAttribute", node, CLUSTER, byref(value))
    driver("cuGraphKernelNodeGetAttribute", node, CLUSTER, byref(value))
    assert list(value.dims[:3]) == [2, 1, 1]
    exec_ = graph.instantiate()
    graph_abi.run(driver, exec_, stream)
    assert driver.read(data, 1)[0] == 2
    odd = driver.params("plain", data, grid=7)
    with refused(INVALID_CLUSTER_SIZE):
        driver("cuGraphKernelNodeSetParams", node, byref(odd))
    with refused(INVALID_CLUSTER_SIZE):
        driver("cuGraphExecKernelNodeSetParams", exec_, node, byref(odd))


def test_capture(driver, stream, kernels):
    data = driver.memory([0])
    driver("cuStreamBeginCapture", stream, 1)
    assert (
        launch_ex(driver, kernels["plain"], config((8, 1, 1), (4, 1, 1), stream=stream.value), data)
        == 0
    )
    captured = c_void_p()
    driver("cuStreamEndCapture", stream, byref(captured))
    graph = Graph(driver, captured.value)
    (node,) = graph.nodes()
    value = Attribute()
    driver("cuGraphKernelNodeGetAttribute", c_void_p(node), CLUSTER, byref(value))
    assert list(value.dims[:3]) == [4, 1, 1]
    graph_abi.run(driver, graph.instantiate(), stream)
    assert driver.read(data, 1)[0] == 4


@pytest.mark.parametrize("whole", [False, True])
def test_updates_keep_the_old_dimensions(driver, stream, kernels, whole):
    """As drivers do: an executable graph keeps a kernel's cluster, and says nothing of it."""
    data = driver.memory([0])

    def make(grid, cluster):
        graph = Graph(driver)
        add_node(driver, graph, "plain", data, grid, cluster)
        return graph

    if whole:
        exec_ = make(8, 4).instantiate()
        info = graph_abi.UpdateInfo()

        def update(graph):
            return driver.call("cuGraphExecUpdate", exec_, graph.handle, byref(info))
    else:
        outer = Graph(driver)
        child = c_void_p(outer.add("cuGraphAddChildGraphNode", (), make(8, 4).handle))
        exec_ = outer.instantiate()

        def update(graph):
            return driver.call("cuGraphExecChildGraphNodeSetParams", exec_, child, graph.handle)

    for grid, cluster in ((8, 2), (8, None), (4, 1)):
        assert update(make(grid, cluster)) == 0
        graph_abi.run(driver, exec_, stream)
        assert driver.read(data, 1)[0] == 4
    assert update(make(6, 2)) == (910 if whole else INVALID_VALUE)


def test_geometry_whose_product_overflows(driver, kernels):
    """2^31 * 2^31 * 4 threads are 0 in 64 bits."""
    data = driver.memory([0])
    huge = (1 << 31, 1 << 31, 4)
    kernel = c_void_p(kernels["plain"])
    params = driver.params("plain", data)
    graph = Graph(driver)
    node = c_void_p(graph.kernel("plain", data))
    exec_ = graph.instantiate()
    params.block[:] = huge
    for grid, block in (((1, 1, 1), huge), (huge, (1, 1, 1)), ((1, 65536, 1), (1, 1, 1))):
        shape = config(grid, None, block)
        with refused(INVALID_VALUE):
            driver(
                "cuLaunchKernel",
                kernel,
                *map(c_uint, grid),
                *map(c_uint, block),
                0,
                None,
                driver.arguments(data),
                None,
            )
        assert launch_ex(driver, kernel.value, shape, data) == INVALID_VALUE
        params.grid[:], params.block[:] = grid, block
        for call in (
            (
                "cuGraphAddKernelNode",
                byref(c_void_p()),
                graph.handle,
                None,
                graph_abi.c_size_t(0),
                byref(params),
            ),
            ("cuGraphKernelNodeSetParams", node, byref(params)),
            ("cuGraphExecKernelNodeSetParams", exec_, node, byref(params)),
        ):
            with refused(INVALID_VALUE):
                driver(*call)
    value = c_int()
    for threads in (0, -1):
        with refused(INVALID_VALUE):
            driver(
                "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                byref(value),
                kernel,
                threads,
                graph_abi.c_size_t(0),
            )
    driver(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        byref(value),
        kernel,
        (1 << 31) - 1,
        graph_abi.c_size_t(0),
    )
    assert value.value == 0
    with refused(INVALID_VALUE):
        driver(
            "cuOccupancyMaxActiveClusters",
            byref(value),
            kernel,
            byref(config((1, 1, 1), None, huge)),
        )
