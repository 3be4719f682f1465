"""Launches on a stream at once, with no graph."""

from libc.stdlib cimport free, malloc
from libc.string cimport memset

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu
from cyrt.graph.recording cimport (
    CLUSTER, COOPERATIVE, COPY, EMPTY, KERNEL, Geometry, Node, Recording, most_params,
)
from cyrt.runtime.device cimport enter, leave, verify
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport StreamState

cdef enum:
    STACK_PARAMS = 64


cdef int launch_now(StreamState* stream, LoadedFunction function, const Geometry* geometry,
                    const char* params) except -1:
    cdef void* stack[STACK_PARAMS]
    cdef void** pointers = stack
    cdef CUresult result
    cdef int i, entered
    if function.layout.count > STACK_PARAMS:
        pointers = <void**>malloc(function.layout.count * sizeof(void*))
        if pointers == NULL:
            raise MemoryError()
    for i in range(function.layout.count):
        pointers[i] = <void*>(params + function.layout.offsets[i])
    if stream.owned:
        entered = verify(stream.ordinal, stream.epoch, b"cuLaunchKernel")
    else:
        entered = enter(stream.ordinal, stream.epoch, b"cuLaunchKernel")
    with nogil:
        result = cu.cuLaunchKernel(
            function.handle, geometry.grid[0], geometry.grid[1], geometry.grid[2],
            geometry.block[0], geometry.block[1], geometry.block[2], geometry.smem,
            stream.handle, pointers, NULL)
    if pointers != stack:
        free(pointers)
    return leave(stream.ordinal, entered, result, b"cuLaunchKernel")


cdef CUresult launch_kernel(StreamState* stream, Node* node, const Geometry* geometry, char* blob,
                            void** pointers) noexcept nogil:
    cdef CUlaunchConfig config
    cdef CUlaunchAttribute[2] attributes
    cdef int i
    for i in range(node.layout.count):
        pointers[i] = blob + node.params + node.layout.offsets[i]
    memset(&config, 0, sizeof(config))
    memset(attributes, 0, sizeof(attributes))
    config.gridDimX, config.gridDimY, config.gridDimZ = \
        geometry.grid[0], geometry.grid[1], geometry.grid[2]
    config.blockDimX, config.blockDimY, config.blockDimZ = \
        geometry.block[0], geometry.block[1], geometry.block[2]
    config.sharedMemBytes = geometry.smem
    config.hStream = stream.handle
    config.attrs = attributes
    if node.flags & COOPERATIVE:
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attributes[config.numAttrs].value.cooperative = 1
        config.numAttrs += 1
    if node.flags & CLUSTER:
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attributes[config.numAttrs].value.clusterDim.x = node.cluster[0]
        attributes[config.numAttrs].value.clusterDim.y = node.cluster[1]
        attributes[config.numAttrs].value.clusterDim.z = node.cluster[2]
        config.numAttrs += 1
    return cu.cuLaunchKernelEx(&config, node.function, pointers, NULL)


cdef CUresult launch_child(StreamState* stream, CUgraph graph) noexcept nogil:
    cdef CUgraphExec executable
    cdef CUresult result = cu.cuGraphInstantiateWithFlags(&executable, graph, 0)
    if result == CUDA_SUCCESS:
        result = cu.cuGraphLaunch(executable, stream.handle)
        cu.cuGraphExecDestroy(executable)
    return result


cdef int launch_nodes(StreamState* stream, Recording* recording, int first, int count) except -1:
    cdef void** pointers = <void**>malloc(most_params(recording) * sizeof(void*))
    cdef CUresult result = CUDA_SUCCESS
    cdef const unsigned long long* words
    cdef Node* node
    cdef int i, entered
    if pointers == NULL:
        raise MemoryError()
    entered = enter(stream.ordinal, stream.epoch, b"cuLaunchKernel")
    with nogil:
        for i in range(first, first + count):
            node = &recording.nodes[i]
            words = <const unsigned long long*>(recording.blob + node.params)
            if node.kind == KERNEL:
                result = launch_kernel(stream, node, &recording.geometry[i], recording.blob,
                                       pointers)
            elif node.kind == COPY:
                result = cu.cuMemcpyAsync(words[0], words[1], words[2], stream.handle)
            elif node.kind != EMPTY:
                result = launch_child(stream, <CUgraph>words[0])
            if result != CUDA_SUCCESS:
                break
    free(pointers)
    return leave(stream.ordinal, entered, result, b"cuLaunchKernel")
