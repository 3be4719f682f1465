# C-level functions only: see direct.pxd.
"""Direct launches: operations that are put on a stream at once, without a graph."""

from libc.stdlib cimport free, malloc
from libc.string cimport memset

from cyrt.driver.capture_mode cimport relax, restore
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu, is_sticky
from cyrt.graph.executable cimport (
    MOST_ATTRIBUTES, Outcome, instantiate_graph, set_attributes,
)
from cyrt.graph.loss cimport inherit, mark_lost, make_losses, mark_losses, refuse
from cyrt.graph.pattern cimport Pattern, lay
from cyrt.graph.recording cimport (
    CLUSTER, COOPERATIVE, COPY, EMPTY, KERNEL, TEMPLATE, Geometry, Node, Recording, param_room,
)
from cyrt.runtime.device cimport enter_quietly, leave_quietly
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.pacing cimport pace_turn
from cyrt.runtime.state cimport StreamState

cdef enum:
    STACK_PARAMS = 64


cdef CUresult launch_kernel_directly(StreamState* stream, LoadedFunction function,
                                     const Geometry* geometry, const char* params,
                                     unsigned int flags, const unsigned int* cluster) noexcept:
    cdef void* stack[STACK_PARAMS]
    cdef void** pointers = stack
    cdef CUresult result
    cdef int i
    if function.layout.count > STACK_PARAMS:
        pointers = <void**>malloc(function.layout.count * sizeof(void*))
        if pointers == NULL:
            return CUDA_ERROR_OUT_OF_MEMORY
    for i in range(function.layout.count):
        pointers[i] = <void*>(params + function.layout.offsets[i])
    with nogil:
        if flags & (COOPERATIVE | CLUSTER):
            result = launch_kernel(stream, function.handle, flags, cluster, geometry, pointers)
        else:
            result = cu.cuLaunchKernel(
                function.handle, geometry.grid[0], geometry.grid[1], geometry.grid[2],
                geometry.block[0], geometry.block[1], geometry.block[2], geometry.smem,
                stream.handle, pointers, NULL)
    stream.put += 1
    if pointers != stack:
        free(pointers)
    return result


cdef void configure(CUlaunchConfig* config, StreamState* stream, const Geometry* geometry,
                    CUlaunchAttribute* attributes) noexcept nogil:
    memset(config, 0, sizeof(CUlaunchConfig))
    config.gridDimX, config.gridDimY, config.gridDimZ = \
        geometry.grid[0], geometry.grid[1], geometry.grid[2]
    config.blockDimX, config.blockDimY, config.blockDimZ = \
        geometry.block[0], geometry.block[1], geometry.block[2]
    config.sharedMemBytes = geometry.smem
    config.hStream = stream.handle
    config.attrs = attributes


cdef CUresult launch_kernel(StreamState* stream, CUfunction function, unsigned int flags,
                            const unsigned int* cluster, const Geometry* geometry,
                            void** pointers) noexcept nogil:
    cdef CUlaunchConfig config
    cdef CUlaunchAttribute[MOST_ATTRIBUTES] attributes
    configure(&config, stream, geometry, attributes)
    config.numAttrs = set_attributes(attributes, flags, cluster)
    return cu.cuLaunchKernelEx(&config, function, pointers, NULL)


cdef CUresult launch_pattern(StreamState* stream, const Pattern* pattern, const Geometry* geometry,
                             const unsigned long long* operands, void** pointers) noexcept nogil:
    cdef CUlaunchConfig config
    # A launch takes the kernel of a library in the place of a function.
    cdef CUfunction function = pattern.function if pattern.function != NULL \
        else <CUfunction>pattern.kernel
    configure(&config, stream, geometry, pattern.attributes)
    config.numAttrs = pattern.num_attributes
    lay(pattern, operands, pointers)
    if pattern.packed:
        return cu.cuLaunchKernelEx(&config, function, NULL, pointers)
    return cu.cuLaunchKernelEx(&config, function, pointers, NULL)


cdef CUresult launch_child(StreamState* stream, CUgraph graph,
                           const char** call) noexcept nogil:
    cdef CUgraphExec executable
    cdef CUstreamCaptureMode before = relax()
    cdef CUresult result
    call[0] = b"cuGraphInstantiateWithFlags"
    result = instantiate_graph(&executable, graph)
    if result == CUDA_SUCCESS:
        call[0] = b"cuGraphLaunch"
        result = cu.cuGraphLaunch(executable, stream.handle)
        cu.cuGraphExecDestroy(executable)
    restore(before)
    return result


cdef CUresult launch_node(StreamState* stream, Recording* recording, int i, void** pointers,
                          const char** call) noexcept:
    cdef Node* node = &recording.nodes[i]
    cdef const unsigned long long* words
    cdef CUresult result = CUDA_SUCCESS
    cdef int parameter
    words = <const unsigned long long*>(recording.blob + node.params)
    with nogil:
        if node.kind == KERNEL:
            call[0] = b"cuLaunchKernel"
            for parameter in range(node.layout.count):
                pointers[parameter] = recording.blob + node.params + node.layout.offsets[parameter]
            result = launch_kernel(stream, node.function, node.flags, node.cluster,
                                   &recording.geometry[i], pointers)
        elif node.kind == TEMPLATE:
            call[0] = b"cuLaunchKernel"
            result = launch_pattern(stream, <const Pattern*>node.layout, &recording.geometry[i],
                                    words, pointers)
        elif node.kind == COPY:
            call[0] = b"cuMemcpyAsync"
            result = cu.cuMemcpyAsync(words[0], words[1], words[2], stream.handle)
        elif node.kind != EMPTY:
            result = launch_child(stream, <CUgraph>words[0], call)
    return result


cdef unsigned int launch_nodes(StreamState* stream, Recording* recording, int first, void* where,
                               Outcome* outcome) noexcept:
    cdef void** pointers = <void**>malloc(param_room(recording))
    cdef unsigned int number, first_error = 0
    cdef CUresult result
    cdef int i, entered = enter_quietly(stream.ordinal, stream.epoch)
    if pointers == NULL or not make_losses(recording) or entered < 0:
        outcome.call = b"cuLaunchKernel"
        outcome.result = CUDA_ERROR_OUT_OF_MEMORY if entered >= 0 \
            else CUDA_ERROR_CONTEXT_IS_DESTROYED
    else:
        outcome.result = CUDA_SUCCESS
        for i in range(first, recording.num_nodes):
            inherit(recording, i, NULL)
            if recording.losses[i]:
                continue
            pace_turn(stream)
            result = launch_node(stream, recording, i, pointers, &outcome.call)
            stream.put += 1
            if result == CUDA_SUCCESS:
                continue
            if is_sticky(result):
                outcome.result = result
                break
            number = refuse(recording, i, result, outcome.call, where)
            mark_lost(recording, i, number)
            if first_error == 0:
                first_error = number
        mark_losses(recording)
    leave_quietly(entered)
    free(pointers)
    return first_error
