"""Executable graphs: the driver calls that build, patch and launch them."""

from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

cdef extern from *:
    """
    static inline unsigned long long cyrt_fold(unsigned long long a, unsigned long long b) {
        unsigned __int128 product = (unsigned __int128)a * b;
        return (unsigned long long)product ^ (unsigned long long)(product >> 64);
    }
    /* Mix 16 bytes into a hash. */
    static inline unsigned long long cyrt_mix(unsigned long long h, const char* bytes) {
        unsigned long long words[2];
        memcpy(words, bytes, 16);
        return cyrt_fold(words[0] ^ 0x9e3779b97f4a7c15ull, words[1] ^ h);
    }

    /* Hash 64 bytes at a time, since a batch has thousands: the four products of such a step do not
       wait for one another. */
    static unsigned long long cyrt_hash(const char* bytes, size_t count) {
        unsigned long long a = count, b = 1, c = 2, d = 3;
        char rest[16] = {0};
        for (; count >= 64; bytes += 64, count -= 64) {
            a = cyrt_mix(a, bytes);
            b = cyrt_mix(b, bytes + 16);
            c = cyrt_mix(c, bytes + 32);
            d = cyrt_mix(d, bytes + 48);
        }
        for (; count >= 16; bytes += 16, count -= 16) a = cyrt_mix(a, bytes);
        memcpy(rest, bytes, count);
        a = cyrt_mix(a, rest);
        return cyrt_fold(a ^ 0xbf58476d1ce4e5b9ull, b ^ 0x94d049bb133111ebull) ^ cyrt_fold(
            c ^ 0x94d049bb133111ebull, d ^ 0xbf58476d1ce4e5b9ull);
    }
    """
    unsigned long long cyrt_hash(const char* bytes, size_t count) noexcept

from cyrt.driver.capture_mode cimport relax, restore
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu
from cyrt.graph.pattern cimport Pattern, lay
from cyrt.graph.recording cimport (
    CHILD, CLUSTER, COOPERATIVE, COPY, KERNEL, TEMPLATE, Geometry, Node, Recording, edge_end,
    param_room,
)
from cyrt.runtime.device cimport contexts, enter_quietly, leave_quietly
from cyrt.runtime.state cimport StreamState

cdef enum:
    NODE_BYTES = 10_000         # host and device memory that a node of an exec occupies (measured)
    # No graph is instantiated where fewer bytes of the device are free. An instantiation that runs
    # out of memory damages the driver's heap, and some calls later the process ends, in
    # cuGraphInstantiate or cuGraphExecDestroy (580.159). 100 independent nodes take 10 MB.
    LEAST_FREE = 32 << 20


cdef size_t bytes_of(int num_nodes) noexcept:
    return num_nodes * <size_t>NODE_BYTES


cdef class Execs:
    cdef size_t held(self) noexcept:
        return 0

    cdef void drop(self) noexcept:
        pass


cdef void destroy(Executable* target) noexcept:
    global held_bytes
    cdef CUstreamCaptureMode before
    cdef int entered
    if target.exec != NULL or target.graph != NULL:
        entered = enter_quietly(target.stream.ordinal, target.stream.epoch)
        if entered >= 0:
            with nogil:         # the call may wait for work in flight
                before = relax()
                if target.exec != NULL:
                    cu.cuGraphExecDestroy(target.exec)
                if target.graph != NULL:
                    cu.cuGraphDestroy(target.graph)
                restore(before)
        leave_quietly(entered)
    if target.exec != NULL:
        held_bytes -= bytes_of(target.num_nodes)
    free(target.nodes)
    free(target.geometry)
    free(target.blob)
    free(target.replaced)
    memset(target, 0, sizeof(Executable))


cdef void fill_kernel(CUDA_KERNEL_NODE_PARAMS_v2* params, Node* node, const Geometry* geometry,
                      char* blob, void** pointers) noexcept nogil:
    cdef const Pattern* pattern
    cdef int i
    memset(params, 0, sizeof(CUDA_KERNEL_NODE_PARAMS_v2))
    params.gridDimX, params.gridDimY, params.gridDimZ = \
        geometry.grid[0], geometry.grid[1], geometry.grid[2]
    params.blockDimX, params.blockDimY, params.blockDimZ = \
        geometry.block[0], geometry.block[1], geometry.block[2]
    params.sharedMemBytes = geometry.smem
    if node.kind == TEMPLATE:
        pattern = <const Pattern*>node.layout
        params.func, params.kern = pattern.function, pattern.kernel
        params.ctx = pattern.context
        lay(pattern, <const unsigned long long*>(blob + node.params), pointers)
        if pattern.packed:
            params.extra = pointers
        else:
            params.kernelParams = pointers
        return
    params.func = node.function
    for i in range(node.layout.count):
        pointers[i] = blob + node.params + node.layout.offsets[i]
    params.kernelParams = pointers


cdef void fill_copy(CUDA_MEMCPY3D_v2* params, const char* blob) noexcept nogil:
    cdef const unsigned long long* words = <const unsigned long long*>blob
    memset(params, 0, sizeof(CUDA_MEMCPY3D_v2))
    params.dstMemoryType = params.srcMemoryType = CU_MEMORYTYPE_UNIFIED
    params.dstDevice, params.srcDevice = words[0], words[1]
    params.WidthInBytes = words[2]
    params.Height = params.Depth = 1


cdef void** pointer_room(Recording* recording) noexcept nogil:
    return <void**>malloc(param_room(recording))


cdef int set_attributes(CUlaunchAttribute* attributes, unsigned int flags,
                        const unsigned int* cluster) noexcept nogil:
    cdef int count = 0
    if flags & (COOPERATIVE | CLUSTER):
        memset(attributes, 0, MOST_ATTRIBUTES * sizeof(CUlaunchAttribute))
    if flags & COOPERATIVE:
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attributes[count].value.cooperative = 1
        count += 1
    if flags & CLUSTER:
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attributes[count].value.clusterDim.x = cluster[0]
        attributes[count].value.clusterDim.y = cluster[1]
        attributes[count].value.clusterDim.z = cluster[2]
        count += 1
    return count


cdef CUresult add_kernel(CUgraphNode* added, CUgraph graph, Node* node, const Geometry* geometry,
                         char* blob, void** pointers, const char** call) noexcept nogil:
    cdef const Pattern* pattern = <const Pattern*>node.layout
    cdef CUDA_KERNEL_NODE_PARAMS_v2 kernel
    cdef CUlaunchAttribute[MOST_ATTRIBUTES] own
    cdef const CUlaunchAttribute* attributes = own
    cdef CUresult result
    cdef int i, count
    fill_kernel(&kernel, node, geometry, blob, pointers)
    call[0] = b"cuGraphAddKernelNode"
    result = cu.cuGraphAddKernelNode(added, graph, NULL, 0, &kernel)
    if node.kind == TEMPLATE:
        attributes, count = pattern.attributes, pattern.num_attributes
    else:
        count = set_attributes(own, node.flags, node.cluster)
    for i in range(count):
        if result == CUDA_SUCCESS:
            call[0] = b"cuGraphKernelNodeSetAttribute"
            result = cu.cuGraphKernelNodeSetAttribute(
                added[0], attributes[i].id, &attributes[i].value)
    return result


cdef CUresult add_node(CUgraphNode* added, CUgraph graph, Recording* recording, int i,
                       void** pointers, CUcontext context, const char** call) noexcept nogil:
    cdef Node* node = &recording.nodes[i]
    cdef CUDA_MEMCPY3D_v2 copy
    if node.kind == KERNEL or node.kind == TEMPLATE:
        return add_kernel(added, graph, node, &recording.geometry[i], recording.blob, pointers,
                          call)
    if node.kind == COPY:
        fill_copy(&copy, recording.blob + node.params)
        call[0] = b"cuGraphAddMemcpyNode"
        return cu.cuGraphAddMemcpyNode(added, graph, NULL, 0, &copy, context)
    if node.kind == CHILD:
        call[0] = b"cuGraphAddChildGraphNode"
        return cu.cuGraphAddChildGraphNode(added, graph, NULL, 0,
                                           (<CUgraph*>(recording.blob + node.params))[0])
    call[0] = b"cuGraphAddEmptyNode"
    return cu.cuGraphAddEmptyNode(added, graph, NULL, 0)


cdef CUresult add_edges(Executable* target, Recording* recording) noexcept nogil:
    """Add the edges in one call for each type, since a driver gives all edges of a call the type of
    the first one (measured)."""
    cdef int count = recording.num_edges
    cdef CUgraphNode* ends
    cdef CUgraphEdgeData* data
    cdef CUresult result = CUDA_SUCCESS
    cdef int kind, i, e, found
    if count == 0:
        return CUDA_SUCCESS
    ends = <CUgraphNode*>malloc(2 * count * sizeof(CUgraphNode))
    data = <CUgraphEdgeData*>calloc(count, sizeof(CUgraphEdgeData))
    if ends == NULL or data == NULL:
        free(ends)
        free(data)
        return CUDA_ERROR_OUT_OF_MEMORY
    for kind in range(2):
        found = 0
        for i in range(recording.num_nodes):
            for e in range(recording.nodes[i].first_edge, edge_end(recording, i)):
                if recording.edges[e].programmatic == kind:
                    ends[found] = target.nodes[recording.edges[e].source]
                    ends[count + found] = target.nodes[i]
                    if kind:
                        data[found].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
                        data[found].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
                    found += 1
        if found and result == CUDA_SUCCESS:
            if kind:
                result = cu.cuGraphAddTypedDependencies(target.graph, ends, ends + count, data,
                                                        found)
            else:
                result = cu.cuGraphAddDependencies(target.graph, ends, ends + count, found)
    free(ends)
    free(data)
    return result


cdef CUresult build(Executable* target, StreamState* stream, Recording* recording, int count,
                    bint chained, CUcontext context, const char** call) noexcept nogil:
    """Build the CUgraph without instantiating it. The caller makes the context current."""
    cdef void** pointers = pointer_room(recording)
    cdef CUresult result
    cdef int i
    memset(target, 0, sizeof(Executable))
    target.stream = stream
    target.num_nodes = count
    target.nodes = <CUgraphNode*>malloc(count * sizeof(CUgraphNode))
    call[0] = b"cuGraphCreate"
    if target.nodes == NULL or pointers == NULL:
        result = CUDA_ERROR_OUT_OF_MEMORY
    else:
        result = cu.cuGraphCreate(&target.graph, 0)
    for i in range(count):
        if result == CUDA_SUCCESS:
            result = add_node(&target.nodes[i], target.graph, recording, i, pointers, context,
                              call)
    free(pointers)
    if result == CUDA_SUCCESS:
        call[0] = b"cuGraphAddDependencies"
        if not chained:
            result = add_edges(target, recording)
        elif count > 1:
            result = cu.cuGraphAddDependencies(target.graph, target.nodes, target.nodes + 1,
                                               count - 1)
    return result


cdef CUresult instantiate_graph(CUgraphExec* exec, CUgraph graph) noexcept nogil:
    cdef size_t available, total
    cdef CUstreamCaptureMode before = relax()
    cdef CUresult result = cu.cuMemGetInfo(&available, &total)
    if result == CUDA_SUCCESS and available < LEAST_FREE:
        result = CUDA_ERROR_OUT_OF_MEMORY
    if result == CUDA_SUCCESS:
        result = cu.cuGraphInstantiateWithFlags(exec, graph, 0)
    restore(before)
    return result


cdef bint instantiate(Executable* target, StreamState* stream, Recording* recording, int count,
                      bint chained, Outcome* outcome) noexcept:
    global held_bytes
    cdef CUcontext context
    cdef int entered = enter_quietly(stream.ordinal, stream.epoch)
    if entered < 0:
        outcome.result = CUDA_ERROR_CONTEXT_IS_DESTROYED
        outcome.call = b"cuGraphInstantiateWithFlags"
        return False
    context = contexts[stream.ordinal].handle
    with nogil:
        outcome.result = build(target, stream, recording, count, chained, context,
                               &outcome.call)
    if outcome.result == CUDA_SUCCESS and not chained:
        target.blob_bytes = recording.blob_bytes
        target.geometry = <Geometry*>malloc(count * sizeof(Geometry))
        target.blob = <char*>malloc(max(<size_t>1, recording.blob_bytes))
        if target.geometry == NULL or target.blob == NULL:
            outcome.result = CUDA_ERROR_OUT_OF_MEMORY
        else:
            memcpy(target.geometry, recording.geometry, count * sizeof(Geometry))
            memcpy(target.blob, recording.blob, recording.blob_bytes)
    if outcome.result == CUDA_SUCCESS:
        outcome.call = b"cuGraphInstantiateWithFlags"
        with nogil:
            outcome.result = instantiate_graph(&target.exec, target.graph)
        if outcome.result == CUDA_SUCCESS:
            held_bytes += bytes_of(count)
        else:
            target.exec = NULL
    leave_quietly(entered)
    if outcome.result != CUDA_SUCCESS:
        destroy(target)
        return False
    return True


cdef void hold_node(Executable* target, const Recording* recording, int i) noexcept:
    """Store the parameters and geometry that the node runs now. The bytes between parameters are
    zero and stay so."""
    cdef const Node* node = &recording.nodes[i]
    target.geometry[i] = recording.geometry[i]
    memcpy(target.blob + node.params, recording.blob + node.params, node.param_bytes)


cdef unsigned long long hash_of(const void* bytes, size_t count) noexcept:
    return cyrt_hash(<const char*>bytes, count)


cdef inline unsigned int params_hash(const char* blob, const Node* node) noexcept:
    return <unsigned int>cyrt_hash(blob + node.params, node.param_bytes)


cdef void summarise(const Recording* recording, Contents* contents) noexcept:
    cdef int i
    contents.geometry = cyrt_hash(<const char*>recording.geometry,
                                  recording.num_nodes * sizeof(Geometry))
    contents.hash = contents.geometry ^ cyrt_hash(recording.blob, recording.blob_bytes)
    for i in range(SAMPLES):
        contents.samples[i] = params_hash(
            recording.blob, &recording.nodes[i * recording.num_nodes // SAMPLES])


cdef bint equal_params(Executable* target, Recording* recording) noexcept:
    return memcmp(target.blob, recording.blob, target.blob_bytes) == 0


cdef bint equal_geometry(Executable* target, Recording* recording) noexcept:
    return memcmp(target.geometry, recording.geometry, target.num_nodes * sizeof(Geometry)) == 0


cdef CUresult set_node(Executable* target, int i, Recording* recording, int from_node,
                       void** pointers, CUcontext context) noexcept nogil:
    cdef CUDA_KERNEL_NODE_PARAMS_v2 kernel
    cdef CUDA_MEMCPY3D_v2 copy
    cdef Node* node = &recording.nodes[from_node]
    if node.kind == KERNEL or node.kind == TEMPLATE:
        fill_kernel(&kernel, node, &recording.geometry[from_node], recording.blob, pointers)
        return cu.cuGraphExecKernelNodeSetParams(target.exec, target.nodes[i], &kernel)
    if node.kind == COPY:
        fill_copy(&copy, recording.blob + node.params)
        return cu.cuGraphExecMemcpyNodeSetParams(target.exec, target.nodes[i], &copy, context)
    if node.kind == CHILD:
        return cu.cuGraphExecChildGraphNodeSetParams(
            target.exec, target.nodes[i], (<CUgraph*>(recording.blob + node.params))[0])
    return CUDA_SUCCESS


cdef int find_differing(const Executable* target, const Recording* recording, char* differing,
                        int* returning) noexcept:
    cdef int i, count = 0
    returning[0] = 0
    for i in range(target.num_nodes):
        differing[i] = not node_equals(target, recording, i)
        if differing[i]:
            count += 1
            returning[0] += target.replaced != NULL and target.replaced[i] == params_hash(
                recording.blob, &recording.nodes[i])
    return count


cdef CUresult patch(Executable* target, Recording* recording, const char* differing) noexcept:
    cdef void** pointers = pointer_room(recording)
    cdef StreamState* stream = target.stream
    cdef CUcontext context = contexts[stream.ordinal].handle
    cdef CUresult result = CUDA_SUCCESS
    cdef int i, entered
    if target.replaced == NULL:
        target.replaced = <unsigned int*>calloc(target.num_nodes, sizeof(unsigned int))
    if pointers == NULL or target.replaced == NULL:
        free(pointers)
        return CUDA_ERROR_OUT_OF_MEMORY
    entered = enter_quietly(stream.ordinal, stream.epoch)
    for i in range(target.num_nodes):
        if not differing[i]:
            continue
        if recording.nodes[i].kind == CHILD:    # its kernels may be others, whose code is loaded
            with nogil:
                result = set_node(target, i, recording, i, pointers, context)
        else:
            result = set_node(target, i, recording, i, pointers, context)
        if result != CUDA_SUCCESS:
            break
        target.replaced[i] = params_hash(target.blob, &recording.nodes[i])
        hold_node(target, recording, i)
    leave_quietly(entered)
    free(pointers)
    return result


cdef bint node_equals(const Executable* target, const Recording* recording, int i) noexcept:
    """Return whether the exec runs the node with the recorded parameters and geometry."""
    cdef const Node* node = &recording.nodes[i]
    return (memcmp(target.blob + node.params, recording.blob + node.params, node.param_bytes) == 0
            and memcmp(&target.geometry[i], &recording.geometry[i], sizeof(Geometry)) == 0)


cdef int count_differing(const Executable* target, const Recording* recording, int most) noexcept:
    cdef int i, count = 0
    for i in range(target.num_nodes):
        count += not node_equals(target, recording, i)
        if count > most:
            break
    return count


cdef CUresult replace(Executable* target, Recording* recording, int first,
                      void** pointers) noexcept:
    cdef StreamState* stream = target.stream
    cdef CUcontext context = contexts[stream.ordinal].handle
    cdef CUresult result = CUDA_SUCCESS
    cdef int i, entered = enter_quietly(stream.ordinal, stream.epoch)
    with nogil:
        for i in range(target.num_nodes):
            result = set_node(target, i, recording, first + i, pointers, context)
            if result != CUDA_SUCCESS:
                break
    leave_quietly(entered)
    return result


cdef CUresult launch(Executable* target, const CUevent* around) noexcept:
    cdef CUresult result
    # The GIL is not taken between the three calls: waiting for it would be part of the time.
    with nogil:
        if around != NULL:
            cu.cuEventRecord(around[0], target.stream.handle)
        result = cu.cuGraphLaunch(target.exec, target.stream.handle)
        if around != NULL:
            cu.cuEventRecord(around[1], target.stream.handle)
    target.stream.put += 1 if around == NULL else 3
    return result
