"""Executable graphs by topology: cached, patched where they differ, launched."""

from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from cyrt import settings
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu
from cyrt.graph.recording cimport (
    CHILD, CLUSTER, COOPERATIVE, COPY, EMPTY, KERNEL, Geometry, Node, Recording,
)
from cyrt.runtime.device cimport contexts, enter, enter_quietly, leave, leave_quietly, verify
from cyrt.runtime.device import reset_hooks
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport StreamState

cdef enum:
    STACK_PARAMS = 64
    NODE_BYTES = 10_000         # of host and device memory that a node of an exec takes (measured)

# Every plan by (stream, hash, hash, nodes), and a list from the one used longest ago to the last.
_plans = {}
cdef Plan oldest = None
cdef Plan newest = None
cdef size_t held_bytes = 0
cdef unsigned long long clock = 0
cdef str strategy = None        # CYRT_GRAPH_UPDATE, read at first use


def held():
    """(plans, bytes) that the cache holds."""
    return len(_plans), held_bytes


cdef int unlink(Plan plan) except -1:
    global oldest, newest
    if plan.older is not None:
        plan.older.newer = plan.newer
    elif oldest is plan:
        oldest = plan.newer
    if plan.newer is not None:
        plan.newer.older = plan.older
    elif newest is plan:
        newest = plan.older
    plan.older = plan.newer = None
    return 0


cdef int link(Plan plan) except -1:
    global oldest, newest
    plan.older = newest
    if newest is not None:
        newest.newer = plan
    newest = plan
    if oldest is None:
        oldest = plan
    return 0


cdef int evict(Plan keep, PlanStats* stats) except -1:
    """Drop plans used longest ago until count and bytes are within their limits."""
    cdef Plan plan
    cdef Py_ssize_t most = settings.get("CYRT_GRAPH_CACHE_SIZE")
    cdef size_t most_bytes = settings.get("CYRT_GRAPH_CACHE_BYTES")
    while oldest is not keep and (len(_plans) > most or held_bytes > most_bytes):
        plan = oldest
        unlink(plan)
        del _plans[plan.key]
        plan.drop()
        stats.evictions += 1
    return 0


@reset_hooks.append
def _reset(int ordinal):
    for key, plan in list(_plans.items()):
        if (<Plan>plan).stream.ordinal == ordinal:
            unlink(<Plan>plan)
            del _plans[key]
            (<Plan>plan).drop()


cdef Plan find(StreamState* stream, Recording* recording, PlanStats* stats):
    cdef object key = (<size_t>stream, recording.hash[0], recording.hash[1], recording.num_nodes)
    cdef Plan plan = _plans.get(key)
    if plan is not None:
        if (plan.topology_words == recording.topology_words
                and plan.blob_bytes == recording.blob_bytes
                and memcmp(plan.topology, recording.topology,
                           recording.topology_words * sizeof(unsigned int)) == 0):
            if plan is not newest:
                unlink(plan)
                link(plan)
            stats.hits += 1
            return plan
        unlink(plan)            # two topologies of one hash: the later one takes the place
        del _plans[key]
        plan.drop()
    stats.misses += 1
    plan = new_plan(stream, recording)
    plan.key = key
    _plans[key] = plan
    link(plan)
    evict(plan, stats)
    return plan


cdef Plan new_plan(StreamState* stream, Recording* recording):
    cdef Plan plan = Plan.__new__(Plan)
    cdef Node* node
    cdef int i, e, last
    plan.stream = stream
    plan.topology_words = recording.topology_words
    plan.blob_bytes = recording.blob_bytes
    plan.num_nodes = recording.num_nodes
    plan.topology = <unsigned int*>malloc(recording.topology_words * sizeof(unsigned int))
    if plan.topology == NULL:
        raise MemoryError()
    memcpy(plan.topology, recording.topology, recording.topology_words * sizeof(unsigned int))
    plan.owners, plan.edges = [], []
    plan.names = node_names(recording)
    for i in range(recording.num_nodes):
        node = &recording.nodes[i]
        if node.owner != NULL:
            plan.owners.append(<object>node.owner)
        last = recording.nodes[i + 1].first_edge if i + 1 < recording.num_nodes \
            else recording.num_edges
        for e in range(node.first_edge, last):
            plan.edges.append((recording.edges[e].source, i, bool(recording.edges[e].programmatic)))
    plan.patched = []
    return plan


cdef list node_names(Recording* recording):
    return [node_name(&recording.nodes[i]) for i in range(recording.num_nodes)]


cdef str node_name(Node* node):
    if node.kind == KERNEL:
        return (<LoadedFunction>node.owner).name
    return {<int>COPY: "copy", <int>EMPTY: "empty", <int>CHILD: "graph"}[<int>node.kind]


cdef class Plan:
    """The executable graphs of one topology."""

    def __dealloc__(self):
        self.drop()
        free(self.topology)

    cdef void drop(self) noexcept:
        global held_bytes
        cdef int i, entered
        if self.num_variants == 0:
            return
        entered = enter_quietly(self.stream.ordinal, self.stream.epoch)
        for i in range(self.num_variants):
            free_variant(&self.variants[i], entered >= 0)
        leave_quietly(entered)
        self.num_variants = 0
        held_bytes -= self.bytes
        self.bytes = 0


cdef void free_variant(Variant* variant, bint call) noexcept:
    if call:
        if variant.exec != NULL:
            cu.cuGraphExecDestroy(variant.exec)
        if variant.graph != NULL:
            cu.cuGraphDestroy(variant.graph)
    free(variant.nodes)
    free(variant.geometry)
    free(variant.blob)
    memset(variant, 0, sizeof(Variant))


cdef int fill_kernel(CUDA_KERNEL_NODE_PARAMS_v2* params, Node* node, const Geometry* geometry,
                     char* blob, void** pointers) noexcept:
    cdef int i
    memset(params, 0, sizeof(CUDA_KERNEL_NODE_PARAMS_v2))
    params.func = node.function
    params.gridDimX, params.gridDimY, params.gridDimZ = \
        geometry.grid[0], geometry.grid[1], geometry.grid[2]
    params.blockDimX, params.blockDimY, params.blockDimZ = \
        geometry.block[0], geometry.block[1], geometry.block[2]
    params.sharedMemBytes = geometry.smem
    for i in range(node.layout.count):
        pointers[i] = blob + node.params + node.layout.offsets[i]
    params.kernelParams = pointers
    return 0


cdef void fill_copy(CUDA_MEMCPY3D_v2* params, const char* blob) noexcept:
    cdef const unsigned long long* words = <const unsigned long long*>blob
    memset(params, 0, sizeof(CUDA_MEMCPY3D_v2))
    params.dstMemoryType = params.srcMemoryType = CU_MEMORYTYPE_UNIFIED
    params.dstDevice, params.srcDevice = words[0], words[1]
    params.WidthInBytes = words[2]
    params.Height = params.Depth = 1


cdef void** pointer_room(Recording* recording) except NULL:
    """Room for the parameter pointers of any one node."""
    cdef int i, most = 1
    cdef void** room
    for i in range(recording.num_nodes):
        if recording.nodes[i].layout != NULL and recording.nodes[i].layout.count > most:
            most = recording.nodes[i].layout.count
    room = <void**>malloc(most * sizeof(void*))
    if room == NULL:
        raise MemoryError()
    return room


cdef CUresult add_node(Variant* variant, Recording* recording, int i, void** pointers,
                       CUcontext context) noexcept:
    cdef Node* node = &recording.nodes[i]
    cdef CUDA_KERNEL_NODE_PARAMS_v2 kernel
    cdef CUDA_MEMCPY3D_v2 copy
    cdef CUkernelNodeAttrValue value
    cdef CUresult result
    if node.kind == KERNEL:
        fill_kernel(&kernel, node, &recording.geometry[i], recording.blob, pointers)
        result = cu.cuGraphAddKernelNode(&variant.nodes[i], variant.graph, NULL, 0, &kernel)
        if result == CUDA_SUCCESS and node.flags & COOPERATIVE:
            memset(&value, 0, sizeof(value))
            value.cooperative = 1
            result = cu.cuGraphKernelNodeSetAttribute(
                variant.nodes[i], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value)
        if result == CUDA_SUCCESS and node.flags & CLUSTER:
            memset(&value, 0, sizeof(value))
            value.clusterDim.x = node.cluster[0]
            value.clusterDim.y = node.cluster[1]
            value.clusterDim.z = node.cluster[2]
            result = cu.cuGraphKernelNodeSetAttribute(
                variant.nodes[i], CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value)
        return result
    if node.kind == COPY:
        fill_copy(&copy, recording.blob + node.params)
        return cu.cuGraphAddMemcpyNode(&variant.nodes[i], variant.graph, NULL, 0, &copy, context)
    if node.kind == CHILD:
        return cu.cuGraphAddChildGraphNode(
            &variant.nodes[i], variant.graph, NULL, 0,
            (<CUgraph*>(recording.blob + node.params))[0])
    return cu.cuGraphAddEmptyNode(&variant.nodes[i], variant.graph, NULL, 0)


cdef CUresult add_edges(Variant* variant, Recording* recording) noexcept:
    """One call for each type: a driver gives all edges of a call the first one's (measured)."""
    cdef int count = recording.num_edges
    cdef CUgraphNode* ends
    cdef CUgraphEdgeData* data
    cdef CUresult result = CUDA_SUCCESS
    cdef int kind, i, e, last, found
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
            last = recording.nodes[i + 1].first_edge if i + 1 < recording.num_nodes else count
            for e in range(recording.nodes[i].first_edge, last):
                if recording.edges[e].programmatic == kind:
                    ends[found] = variant.nodes[recording.edges[e].source]
                    ends[count + found] = variant.nodes[i]
                    if kind:
                        data[found].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
                        data[found].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
                    found += 1
        if found and result == CUDA_SUCCESS:
            if kind:
                result = cu.cuGraphAddTypedDependencies(variant.graph, ends, ends + count, data,
                                                        found)
            else:
                result = cu.cuGraphAddDependencies(variant.graph, ends, ends + count, found)
    free(ends)
    free(data)
    return result


cdef int build_graph(Variant* variant, Plan plan, Recording* recording) except -1:
    """The CUgraph of a recording, not instantiated."""
    cdef StreamState* stream = plan.stream
    cdef void** pointers = pointer_room(recording)
    cdef CUresult result
    cdef int entered, i
    cdef const char* call = b"cuGraphCreate"
    memset(variant, 0, sizeof(Variant))
    variant.nodes = <CUgraphNode*>malloc(recording.num_nodes * sizeof(CUgraphNode))
    if variant.nodes == NULL:
        free(pointers)
        raise MemoryError()
    entered = enter(stream.ordinal, stream.epoch, call)
    result = cu.cuGraphCreate(&variant.graph, 0)
    for i in range(recording.num_nodes):
        if result == CUDA_SUCCESS:
            call = b"cuGraphAddNode"
            result = add_node(variant, recording, i, pointers, contexts[stream.ordinal].handle)
    free(pointers)
    if result == CUDA_SUCCESS:
        call = b"cuGraphAddDependencies"
        result = add_edges(variant, recording)
    if result != CUDA_SUCCESS:
        free_variant(variant, True)
    return leave(stream.ordinal, entered, result, call)


cdef CUgraphExec add_variant(Plan plan, Recording* recording, PlanStats* stats) except NULL:
    global held_bytes
    cdef StreamState* stream = plan.stream
    cdef Variant* variant = &plan.variants[plan.num_variants]
    cdef CUresult result
    cdef int entered
    build_graph(variant, plan, recording)
    variant.geometry = <Geometry*>malloc(recording.num_nodes * sizeof(Geometry))
    variant.blob = <char*>malloc(max(<size_t>1, recording.blob_bytes))
    if variant.geometry == NULL or variant.blob == NULL:
        free_variant(variant, True)
        raise MemoryError()
    entered = enter(stream.ordinal, stream.epoch, b"cuGraphInstantiate")
    result = cu.cuGraphInstantiateWithFlags(&variant.exec, variant.graph, 0)
    if result != CUDA_SUCCESS:
        free_variant(variant, True)
    leave(stream.ordinal, entered, result, b"cuGraphInstantiate")
    hold(variant, recording)
    variant.used = clock
    plan.num_variants += 1
    plan.bytes += plan.num_nodes * NODE_BYTES
    held_bytes += plan.num_nodes * NODE_BYTES
    plan.patched = []
    stats.instantiations += 1
    return variant.exec


cdef int drop_variant(Plan plan, Variant* variant) except -1:
    global held_bytes
    cdef int entered = enter_quietly(plan.stream.ordinal, plan.stream.epoch)
    free_variant(variant, entered >= 0)
    leave_quietly(entered)
    plan.num_variants -= 1
    variant[0] = plan.variants[plan.num_variants]
    memset(&plan.variants[plan.num_variants], 0, sizeof(Variant))
    plan.bytes -= plan.num_nodes * NODE_BYTES
    held_bytes -= plan.num_nodes * NODE_BYTES
    return 0


cdef void hold(Variant* variant, Recording* recording) noexcept:
    """Note what the exec holds now."""
    memcpy(variant.geometry, recording.geometry, recording.num_nodes * sizeof(Geometry))
    memcpy(variant.blob, recording.blob, recording.blob_bytes)


cdef bint equal(Variant* variant, Recording* recording) noexcept:
    return (memcmp(variant.blob, recording.blob, recording.blob_bytes) == 0
            and memcmp(variant.geometry, recording.geometry,
                       recording.num_nodes * sizeof(Geometry)) == 0)


cdef CUresult patch_nodes(Plan plan, Variant* variant, Recording* recording, void** pointers,
                          CUcontext context) except *:
    """Set the parameters of the nodes that differ; the first refusal where there is one."""
    cdef CUDA_KERNEL_NODE_PARAMS_v2 kernel
    cdef CUDA_MEMCPY3D_v2 copy
    cdef CUresult result
    cdef Node* node
    cdef int i
    plan.patched = []
    for i in range(recording.num_nodes):
        node = &recording.nodes[i]
        if (memcmp(variant.blob + node.params, recording.blob + node.params, node.param_bytes) == 0
                and memcmp(&variant.geometry[i], &recording.geometry[i], sizeof(Geometry)) == 0):
            continue
        if node.kind == KERNEL:
            fill_kernel(&kernel, node, &recording.geometry[i], recording.blob, pointers)
            result = cu.cuGraphExecKernelNodeSetParams(variant.exec, variant.nodes[i], &kernel)
        elif node.kind == COPY:
            fill_copy(&copy, recording.blob + node.params)
            result = cu.cuGraphExecMemcpyNodeSetParams(variant.exec, variant.nodes[i], &copy,
                                                       context)
        else:
            result = cu.cuGraphExecChildGraphNodeSetParams(
                variant.exec, variant.nodes[i], (<CUgraph*>(recording.blob + node.params))[0])
        if result != CUDA_SUCCESS:
            return result
        plan.patched.append(i)
    return CUDA_SUCCESS


cdef CUresult update_whole(Plan plan, Variant* variant, Recording* recording) except *:
    """The other strategy: a new graph, and cuGraphExecUpdate."""
    cdef Variant fresh
    cdef CUgraphExecUpdateResultInfo info
    cdef CUresult result
    cdef int entered
    memset(&fresh, 0, sizeof(fresh))
    build_graph(&fresh, plan, recording)
    entered = enter(plan.stream.ordinal, plan.stream.epoch, b"cuGraphExecUpdate")
    result = cu.cuGraphExecUpdate(variant.exec, fresh.graph, &info)
    if result == CUDA_SUCCESS:
        cu.cuGraphDestroy(variant.graph)
        variant.graph, fresh.graph = fresh.graph, NULL
        variant.nodes, fresh.nodes = fresh.nodes, variant.nodes
        plan.patched = list(range(recording.num_nodes))
    free_variant(&fresh, True)
    leave_quietly(entered)
    return result


cdef CUgraphExec lay(Plan plan, Recording* recording, PlanStats* stats) except NULL:
    global clock, held_bytes, strategy
    cdef Variant* variant
    cdef Variant* last_used = NULL
    cdef void** pointers
    cdef CUresult result
    cdef int i, entered
    clock += 1
    for i in range(plan.num_variants):
        variant = &plan.variants[i]
        if equal(variant, recording):
            variant.used = clock
            plan.misses = 0
            if plan.patched:
                plan.patched = []
            return variant.exec
        if last_used == NULL or variant.used < last_used.used:
            last_used = variant
    if strategy is None:
        strategy = settings.get("CYRT_GRAPH_UPDATE")
    plan.misses += 1
    # A loop that alternates between sets of addresses gets an exec for each.
    if last_used == NULL or (strategy == "node" and plan.num_variants < MAX_VARIANTS
                             and plan.misses > plan.num_variants):
        return add_variant(plan, recording, stats)
    if strategy == "none":
        drop_variant(plan, last_used)
        return add_variant(plan, recording, stats)
    if strategy == "exec":
        result = update_whole(plan, last_used, recording)
    else:
        pointers = pointer_room(recording)
        entered = enter(plan.stream.ordinal, plan.stream.epoch, b"cuGraphExecKernelNodeSetParams")
        result = patch_nodes(plan, last_used, recording, pointers,
                             contexts[plan.stream.ordinal].handle)
        leave_quietly(entered)
        free(pointers)
    if result != CUDA_SUCCESS:          # refused: a new exec takes its place
        drop_variant(plan, last_used)
        return add_variant(plan, recording, stats)
    stats.patched += len(plan.patched)
    hold(last_used, recording)
    last_used.used = clock
    return last_used.exec


cdef CUresult launch_kernel(StreamState* stream, Node* node, const Geometry* geometry, char* blob,
                            void** pointers) noexcept nogil:
    cdef CUlaunchConfig config
    cdef CUlaunchAttribute[2] attributes
    cdef int i
    for i in range(node.layout.count):
        pointers[i] = blob + node.params + node.layout.offsets[i]
    if not node.flags & (COOPERATIVE | CLUSTER):
        return cu.cuLaunchKernel(
            node.function, geometry.grid[0], geometry.grid[1], geometry.grid[2],
            geometry.block[0], geometry.block[1], geometry.block[2], geometry.smem,
            stream.handle, pointers, NULL)
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


cdef int launch_directly(StreamState* stream, Recording* recording) except -1:
    cdef void** pointers = pointer_room(recording)
    cdef CUresult result = CUDA_SUCCESS
    cdef CUgraphExec exec
    cdef const unsigned long long* words
    cdef Node* node
    cdef int i, entered
    entered = enter(stream.ordinal, stream.epoch, b"cuLaunchKernel")
    for i in range(recording.num_nodes):
        node = &recording.nodes[i]
        if result != CUDA_SUCCESS or node.kind == EMPTY:
            continue
        if node.kind == KERNEL:
            with nogil:
                result = launch_kernel(stream, node, &recording.geometry[i], recording.blob,
                                       pointers)
        elif node.kind == COPY:
            words = <const unsigned long long*>(recording.blob + node.params)
            result = cu.cuMemcpyAsync(words[0], words[1], words[2], stream.handle)
        else:
            result = cu.cuGraphInstantiateWithFlags(
                &exec, (<CUgraph*>(recording.blob + node.params))[0], 0)
            if result == CUDA_SUCCESS:
                result = cu.cuGraphLaunch(exec, stream.handle)
                cu.cuGraphExecDestroy(exec)
    free(pointers)
    return leave(stream.ordinal, entered, result, b"cuLaunchKernel")
