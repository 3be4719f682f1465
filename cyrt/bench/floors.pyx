"""Floors: the same work as a C loop over the driver's own functions."""

from libc.string cimport memset

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu
from cyrt.kernels.kernel cimport Kernel
from cyrt.runtime.device cimport current_ordinal, enter, leave
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.stream cimport current_state, flush

cdef extern from *:
    """
    #include <time.h>
    static inline double cyrt_floor_now(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec + t.tv_nsec * 1e-9;
    }
    """
    double cyrt_floor_now() noexcept nogil


def launch_loop(Kernel kernel not None, unsigned int grid, unsigned int block, x, b, y, int n,
                int rounds):
    """Seconds that `rounds` raw launches of ``kernel(x, b, y, n)`` take the host.

    The context is current and the arguments lie ready, as in the tightest program in C.
    """
    cdef int ordinal = current_ordinal()
    cdef LoadedFunction function = kernel.load(ordinal)
    cdef CUstream stream = current_state(ordinal).handle
    cdef unsigned int epoch = current_state(ordinal).epoch
    cdef CUdeviceptr px = x.ptr, pb = b.ptr, py = y.ptr
    cdef void* params[4]
    cdef CUresult result = CUDA_SUCCESS
    cdef double begin, end
    cdef int _i
    cdef int entered
    flush(current_state(ordinal))
    entered = enter(ordinal, epoch, b"cuLaunchKernel")
    params[0], params[1], params[2], params[3] = &px, &pb, &py, &n
    with nogil:
        begin = cyrt_floor_now()
        for _i in range(rounds):
            result = cu.cuLaunchKernel(function.handle, grid, 1, 1, block, 1, 1, 0, stream, params,
                                       NULL)
            if result != CUDA_SUCCESS:
                break
        end = cyrt_floor_now()
    leave(ordinal, entered, result, b"cuLaunchKernel")
    return end - begin


def replay(Kernel kernel not None, unsigned int grid, unsigned int block, x, b, y, int n,
           int nodes, int rounds):
    """Host and wall seconds of replaying a ready graph: a chain of ``kernel(x, b, y, n)``.

    The edges are programmatic where the kernel was made with ``pdl=True``.

    Returns
    -------
    tuple of float
        For all rounds together.
    """
    cdef int ordinal = current_ordinal()
    cdef LoadedFunction function = kernel.load(ordinal)
    cdef CUstream stream
    cdef CUdeviceptr px = x.ptr, pb = b.ptr, py = y.ptr
    cdef void* params[4]
    cdef CUDA_KERNEL_NODE_PARAMS_v2 node
    cdef CUgraphNode[1000] handles
    cdef CUgraphEdgeData data
    cdef CUgraph graph = NULL
    cdef CUgraphExec executable = NULL
    cdef CUresult result
    cdef double begin, host, wall
    cdef int i, _round, entered
    flush(current_state(ordinal))
    stream = current_state(ordinal).handle
    if not 1 <= nodes <= 1000:
        raise ValueError(f"nodes: expected 1 to 1000, got {nodes}")
    params[0], params[1], params[2], params[3] = &px, &pb, &py, &n
    memset(&node, 0, sizeof(node))
    memset(&data, 0, sizeof(data))
    data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
    data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
    node.func = function.handle
    node.gridDimX, node.gridDimY, node.gridDimZ = grid, 1, 1
    node.blockDimX, node.blockDimY, node.blockDimZ = block, 1, 1
    node.kernelParams = params
    entered = enter(ordinal, current_state(ordinal).epoch, b"cuGraphCreate")
    result = cu.cuGraphCreate(&graph, 0)
    for i in range(nodes):
        if result == CUDA_SUCCESS:
            result = cu.cuGraphAddKernelNode(&handles[i], graph, NULL, 0, &node)
        if result == CUDA_SUCCESS and i:
            if function.programmatic:
                result = cu.cuGraphAddTypedDependencies(graph, &handles[i - 1], &handles[i], &data,
                                                        1)
            else:
                result = cu.cuGraphAddDependencies(graph, &handles[i - 1], &handles[i], 1)
    if result == CUDA_SUCCESS:
        result = cu.cuGraphInstantiateWithFlags(&executable, graph, 0)
    if result == CUDA_SUCCESS:
        result = cu.cuGraphLaunch(executable, stream)
        cu.cuStreamSynchronize(stream)
    host = wall = 0
    with nogil:
        begin = cyrt_floor_now()
        for _round in range(rounds):
            if result == CUDA_SUCCESS:
                result = cu.cuGraphLaunch(executable, stream)
        host = cyrt_floor_now() - begin
        if result == CUDA_SUCCESS:
            result = cu.cuStreamSynchronize(stream)
        wall = cyrt_floor_now() - begin
    cu.cuGraphExecDestroy(executable)
    cu.cuGraphDestroy(graph)
    leave(ordinal, entered, result, b"cuGraphLaunch")
    return host, wall
