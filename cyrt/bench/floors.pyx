"""Floors: a chain of one kernel as the tightest program in C runs it.

Everything that a program in C prepares is prepared: the context is current, the arguments are
packed, and the CUfunction is loaded.
"""

from libc.string cimport memset

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu
from cyrt.kernels.kernel cimport Kernel
from cyrt.runtime.device cimport current_ordinal, enter, leave
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.stream_state cimport flush

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

cdef enum:
    MOST_NODES = 1000
    MOST_RANGES = 32        # the emulated device's launches have no more


cdef class Floor:
    """Dependent launches of ``kernel(x, b, x, n)``, outside of any recording.

    Parameters
    ----------
    kernel : Kernel
        ``void(const T* x, const T* b, T* y, int n)``.
    grid, block : int
        One dimension each.
    x, b : Buffer
        Nothing else may use them during this object's life: the export of their addresses may
        change how operations on them are recorded.
    n : int
    other : Kernel, optional
        A kernel with the same parameters and result, which every second node of a graph runs.
    """

    cdef LoadedFunction function, other
    cdef object buffers
    cdef unsigned int grid, block, epoch
    cdef int ordinal, n
    cdef CUstream stream
    cdef CUdeviceptr x, b
    cdef void* params[5]
    cdef unsigned long long[MOST_RANGES][2] ranges

    def __init__(self, Kernel kernel not None, unsigned int grid, unsigned int block, x, b, int n,
                 Kernel other=None):
        self.ordinal = current_ordinal()
        self.function = kernel.load(self.ordinal)
        self.other = self.function if other is None else other.load(self.ordinal)
        self.buffers = x, b
        self.grid, self.block, self.n = grid, block, n
        self.x, self.b = x.ptr, b.ptr
        flush(current_state(self.ordinal), b"launches of the driver are measured")
        self.stream = current_state(self.ordinal).handle
        self.epoch = current_state(self.ordinal).epoch
        self.params[0], self.params[1] = &self.x, &self.b
        self.params[2], self.params[3] = &self.x, &self.n
        # The emulated device takes them behind the parameters: all memory may be used.
        assert kernel.num_ranges <= MOST_RANGES
        memset(self.ranges, 0, sizeof(self.ranges))
        self.ranges[0][1] = ~0ull
        self.params[4] = self.ranges

    @property
    def programmatic(self):
        """Whether the edges of its graphs are programmatic: the loaded image qualifies."""
        return bool(self.function.programmatic)

    def launch(self, int count):
        """Host and wall seconds of a loop of `count` calls of ``cuLaunchKernel``."""
        cdef CUresult result = CUDA_SUCCESS
        cdef double begin, host, wall
        cdef int _i, entered
        entered = enter(self.ordinal, self.epoch, b"cuLaunchKernel")
        with nogil:
            begin = cyrt_floor_now()
            for _i in range(count):
                result = cu.cuLaunchKernel(self.function.handle, self.grid, 1, 1, self.block, 1, 1,
                                           0, self.stream, self.params, NULL)
                if result != CUDA_SUCCESS:
                    break
            host = cyrt_floor_now() - begin
            if result == CUDA_SUCCESS:
                result = cu.cuStreamSynchronize(self.stream)
            wall = cyrt_floor_now() - begin
        leave(self.ordinal, entered, result, b"cuLaunchKernel")
        return host, wall

    def replay(self, int nodes, int rounds):
        """Host and wall seconds of `rounds` launches of a ready graph, after one that is not timed.

        The graph is a chain of `nodes`, so each element grows by ``b * nodes * (rounds + 1)``.
        """
        cdef CUgraphNode[MOST_NODES] handles
        cdef CUgraph graph = NULL
        cdef CUgraphExec executable = NULL
        cdef CUresult result
        cdef double begin = 0, host = 0, wall = 0
        cdef int _i, entered
        check_nodes(nodes)
        entered = enter(self.ordinal, self.epoch, b"cuGraphLaunch")
        result = self.run_once(&graph, handles, &executable, nodes)
        with nogil:
            begin = cyrt_floor_now()
            for _i in range(rounds):
                if result == CUDA_SUCCESS:
                    result = cu.cuGraphLaunch(executable, self.stream)
            host = cyrt_floor_now() - begin
            if result == CUDA_SUCCESS:
                result = cu.cuStreamSynchronize(self.stream)
            wall = cyrt_floor_now() - begin
        destroy(graph, executable)
        leave(self.ordinal, entered, result, b"cuGraphLaunch")
        return host, wall

    def cold(self, int nodes):
        """Host seconds of a fresh graph's parts: nodes, edges, instantiation, first launch.

        The graph is a chain of `nodes`; it has run and is destroyed when this returns.
        """
        cdef CUgraphNode[MOST_NODES] handles
        cdef CUgraph graph = NULL
        cdef CUgraphExec executable = NULL
        cdef CUresult result
        cdef double[5] times
        cdef int entered
        check_nodes(nodes)
        entered = enter(self.ordinal, self.epoch, b"cuGraphInstantiateWithFlags")
        times[0] = cyrt_floor_now()
        result = self.add_nodes(&graph, handles, nodes)
        times[1] = cyrt_floor_now()
        if result == CUDA_SUCCESS:
            result = self.add_edges(graph, handles, nodes)
        times[2] = cyrt_floor_now()
        if result == CUDA_SUCCESS:
            result = cu.cuGraphInstantiateWithFlags(&executable, graph, 0)
        times[3] = cyrt_floor_now()
        if result == CUDA_SUCCESS:
            result = cu.cuGraphLaunch(executable, self.stream)
        times[4] = cyrt_floor_now()
        if result == CUDA_SUCCESS:
            result = cu.cuStreamSynchronize(self.stream)
        destroy(graph, executable)
        leave(self.ordinal, entered, result, b"cuGraphInstantiateWithFlags")
        return (times[1] - times[0], times[2] - times[1], times[3] - times[2],
                times[4] - times[3])

    def update(self, int nodes):
        """Host seconds of making a ready graph's exec another's: node by node, and as a whole.

        Every node is changed; each time includes the launch after it. The graph is a chain of
        `nodes`, which has run three times when this returns.
        """
        cdef CUgraphNode[MOST_NODES] handles, fresh_handles
        cdef CUgraph graph = NULL, fresh = NULL
        cdef CUgraphExec executable = NULL
        cdef CUgraphExecUpdateResultInfo info
        cdef CUDA_KERNEL_NODE_PARAMS_v2 node
        cdef CUresult result
        cdef double begin, patched, updated
        cdef int i, entered
        check_nodes(nodes)
        entered = enter(self.ordinal, self.epoch, b"cuGraphExecUpdate")
        result = self.run_once(&graph, handles, &executable, nodes)
        self.fill(&node)
        node.blockDimX //= 2
        node.gridDimX *= 2
        begin = cyrt_floor_now()
        for i in range(nodes):
            node.func = self.other.handle if i % 2 else self.function.handle
            if result == CUDA_SUCCESS:
                result = cu.cuGraphExecKernelNodeSetParams(executable, handles[i], &node)
        if result == CUDA_SUCCESS:
            result = cu.cuGraphLaunch(executable, self.stream)
        patched = cyrt_floor_now() - begin
        cu.cuStreamSynchronize(self.stream)
        begin = cyrt_floor_now()
        if result == CUDA_SUCCESS:
            result = self.add_nodes(&fresh, fresh_handles, nodes)
        if result == CUDA_SUCCESS:
            result = self.add_edges(fresh, fresh_handles, nodes)
        if result == CUDA_SUCCESS:
            result = cu.cuGraphExecUpdate(executable, fresh, &info)
        destroy(fresh, NULL)
        if result == CUDA_SUCCESS:
            result = cu.cuGraphLaunch(executable, self.stream)
        updated = cyrt_floor_now() - begin
        cu.cuStreamSynchronize(self.stream)
        destroy(graph, executable)
        leave(self.ordinal, entered, result, b"cuGraphExecUpdate")
        return patched, updated

    cdef void fill(self, CUDA_KERNEL_NODE_PARAMS_v2* node) noexcept:
        memset(node, 0, sizeof(node[0]))
        node.gridDimX, node.gridDimY, node.gridDimZ = self.grid, 1, 1
        node.blockDimX, node.blockDimY, node.blockDimZ = self.block, 1, 1
        node.kernelParams = self.params

    cdef CUresult run_once(self, CUgraph* graph, CUgraphNode* handles, CUgraphExec* executable,
                           int nodes) noexcept:
        """Make a ready graph, and launch it once."""
        cdef CUresult result = self.add_nodes(graph, handles, nodes)
        if result == CUDA_SUCCESS:
            result = self.add_edges(graph[0], handles, nodes)
        if result == CUDA_SUCCESS:
            result = cu.cuGraphInstantiateWithFlags(executable, graph[0], 0)
        if result == CUDA_SUCCESS:
            result = cu.cuGraphLaunch(executable[0], self.stream)
        if result == CUDA_SUCCESS:
            result = cu.cuStreamSynchronize(self.stream)
        return result

    cdef CUresult add_nodes(self, CUgraph* graph, CUgraphNode* handles, int nodes) noexcept:
        cdef CUDA_KERNEL_NODE_PARAMS_v2 node
        cdef CUresult result = cu.cuGraphCreate(graph, 0)
        cdef int i
        self.fill(&node)
        for i in range(nodes):
            node.func = self.other.handle if i % 2 else self.function.handle
            if result == CUDA_SUCCESS:
                result = cu.cuGraphAddKernelNode(&handles[i], graph[0], NULL, 0, &node)
        return result

    cdef CUresult add_edges(self, CUgraph graph, CUgraphNode* handles, int nodes) noexcept:
        """Add the edges from each node to the next by one call."""
        cdef CUgraphEdgeData[MOST_NODES] data
        cdef int i
        if not self.function.programmatic:
            return cu.cuGraphAddDependencies(graph, handles, handles + 1, nodes - 1)
        memset(data, 0, sizeof(data))
        for i in range(nodes - 1):
            data[i].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
            data[i].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
        return cu.cuGraphAddTypedDependencies(graph, handles, handles + 1, data, nodes - 1)


cdef int check_nodes(int nodes) except -1:
    if not 2 <= nodes <= MOST_NODES:
        raise ValueError(f"nodes: expected 2 to {<int>MOST_NODES}, got {nodes}")
    return 0


cdef void destroy(CUgraph graph, CUgraphExec executable) noexcept:
    if executable != NULL:
        cu.cuGraphExecDestroy(executable)
    if graph != NULL:
        cu.cuGraphDestroy(graph)
