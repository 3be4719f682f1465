"""Child graphs: copies of graphs of other libraries."""

cimport cython
from libc.stdlib cimport free
from libc.string cimport memset

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu
from cyrt.runtime.allocation cimport allocate_zeroed
from cyrt.runtime.device cimport enter, enter_quietly, leave, leave_quietly
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream_state cimport mark

cdef unsigned long long last_serial = 0
cdef unsigned long long last_shape = 0
# The number of each shape, by its description. The dict is cleared when it has too many entries.
_shapes = {}

cdef enum:
    MOST_SHAPES = 4096

# The attributes of a kernel node (cuda.h, CUlaunchAttributeID).
cdef CUkernelNodeAttrID[NUM_ATTRIBUTES] ATTRIBUTES = [
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_PRIORITY, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
    # From CUDA 13 on, whose header may not be there: scheduling for NVLink, and portable clusters.
    <CUkernelNodeAttrID>16, <CUkernelNodeAttrID>17]


@cython.no_gc_clear
cdef class ChildGraph(Runnable):
    """A graph that an encoder runs as one node."""

    def __dealloc__(self):
        cdef int entered
        if self.graph != NULL:
            entered = enter_quietly(self.ordinal, self.epoch)
            if entered >= 0:
                cu.cuGraphDestroy(self.graph)
            leave_quietly(entered)


cdef list attributes_of(CUgraphNode node):
    cdef CUkernelNodeAttrValue value
    cdef list found = []
    for attribute in ATTRIBUTES:
        memset(&value, 0, sizeof(value))
        if cu.cuGraphKernelNodeGetAttribute(node, attribute, &value) == CUDA_SUCCESS:
            found.append((<char*>&value)[:sizeof(value)])
        else:
            found.append(None)      # the driver or the device has no such attribute
    return found


cdef CUresult describe_node(CUgraphNode node, list found) except *:
    cdef CUgraphNodeType kind
    cdef CUgraph inner = NULL
    cdef CUresult result = cu.cuGraphNodeGetType(node, &kind)
    found.append(<int>kind)
    if result == CUDA_SUCCESS and kind == CU_GRAPH_NODE_TYPE_KERNEL:
        found.extend(attributes_of(node))
    elif result == CUDA_SUCCESS and kind == CU_GRAPH_NODE_TYPE_GRAPH:
        result = cu.cuGraphChildGraphNodeGetGraph(node, &inner)
        if result == CUDA_SUCCESS:
            result = describe(inner, found)
    return result


cdef CUresult describe_edges(CUgraph graph, dict numbers, list found) except *:
    cdef CUgraphNode* ends = NULL
    cdef CUgraphEdgeData* data = NULL
    cdef size_t i, count = 0
    cdef CUresult result
    if cu.cuGraphGetTypedEdges == NULL:     # no edge types, and an update fails if edges differ
        return CUDA_SUCCESS
    result = cu.cuGraphGetTypedEdges(graph, NULL, NULL, NULL, &count)
    if result != CUDA_SUCCESS or count == 0:
        return result
    try:
        ends = <CUgraphNode*>allocate_zeroed(2 * count * sizeof(CUgraphNode))
        data = <CUgraphEdgeData*>allocate_zeroed(count * sizeof(CUgraphEdgeData))
        result = cu.cuGraphGetTypedEdges(graph, ends, ends + count, data, &count)
        found.append(tuple(sorted(
            (numbers[<size_t>ends[i]], numbers[<size_t>ends[count + i]], data[i].from_port,
             data[i].to_port, data[i].type) for i in range(count))))
    finally:
        free(ends)
        free(data)
    return result


cdef CUresult describe(CUgraph graph, list found) except *:
    """Append the properties of a graph that an update does not carry to the list `found`."""
    cdef CUgraphNode* nodes
    cdef size_t i, count = 0
    cdef dict numbers = {}
    cdef CUresult result = cu.cuGraphGetNodes(graph, NULL, &count)
    nodes = <CUgraphNode*>allocate_zeroed(count * sizeof(CUgraphNode))
    try:
        if result == CUDA_SUCCESS and count:
            result = cu.cuGraphGetNodes(graph, nodes, &count)
        found.append(count)
        for i in range(count):
            numbers[<size_t>nodes[i]] = i
            if result == CUDA_SUCCESS:
                result = describe_node(nodes[i], found)
    finally:
        free(nodes)
    return result if result != CUDA_SUCCESS else describe_edges(graph, numbers, found)


cdef unsigned long long number_of(tuple shape) except? 0:
    """Return the number of a shape. Two shapes never have one number."""
    global last_shape
    if shape not in _shapes:
        if len(_shapes) >= MOST_SHAPES:
            _shapes.clear()
        last_shape += 1
        _shapes[shape] = last_shape
    return _shapes[shape]


cdef ChildGraph copy_graph(int ordinal, unsigned int epoch, CUgraph graph):
    global last_serial
    cdef ChildGraph child = ChildGraph()
    cdef CUgraph parent = NULL
    cdef CUgraphNode node
    cdef CUresult result
    cdef list shape = []
    cdef const char* call = b"cuGraphClone"
    cdef int entered = enter(ordinal, epoch, call)
    child.ordinal, child.epoch = ordinal, epoch
    with nogil:             # copying a kernel node may load the kernel's code
        result = cu.cuGraphClone(&child.graph, graph)
        if result == CUDA_SUCCESS:
            result = cu.cuGraphGetNodes(child.graph, NULL, &child.num_nodes)
        if result == CUDA_SUCCESS:      # raises here, not at the commit, if it cannot be a child
            call = b"cuGraphAddChildGraphNode"
            result = cu.cuGraphCreate(&parent, 0)
        if result == CUDA_SUCCESS:
            result = cu.cuGraphAddChildGraphNode(&node, parent, NULL, 0, child.graph)
            cu.cuGraphDestroy(parent)
    if result == CUDA_SUCCESS:
        call = b"cuGraphGetNodes"
        try:
            result = describe(child.graph, shape)
        except BaseException:
            leave_quietly(entered)
            raise
    leave(ordinal, entered, result, call)
    child.shape = number_of(tuple(shape))
    last_serial += 1
    child.serial = last_serial
    return child


cdef int begin_capture(StreamState* stream, CUstreamCaptureMode mode) except -1:
    cdef int entered = enter(stream.ordinal, stream.epoch, b"cuStreamBeginCapture")
    mark(stream)        # waits for the stream during the capture wait for this marker
    leave(stream.ordinal, entered, cu.cuStreamBeginCapture(stream.handle, mode),
          b"cuStreamBeginCapture")
    stream.capturing = True
    return 0


cdef CUgraph take_graph(StreamState* stream) except NULL:
    cdef CUgraph graph = NULL
    cdef CUresult result
    cdef int entered = enter(stream.ordinal, stream.epoch, b"cuStreamEndCapture")
    stream.capturing = False
    result = cu.cuStreamEndCapture(stream.handle, &graph)
    leave(stream.ordinal, entered, result, b"cuStreamEndCapture")
    return graph


cdef ChildGraph end_capture(StreamState* stream):
    cdef CUgraph graph = take_graph(stream)
    try:
        return copy_graph(stream.ordinal, stream.epoch, graph)
    finally:
        cu.cuGraphDestroy(graph)


cdef CUresult discard_capture(StreamState* stream) noexcept:
    cdef CUgraph graph = NULL
    cdef CUresult result = CUDA_ERROR_CONTEXT_IS_DESTROYED
    cdef int entered = enter_quietly(stream.ordinal, stream.epoch)
    stream.capturing = False
    if entered >= 0:
        result = cu.cuStreamEndCapture(stream.handle, &graph)
        if graph != NULL:
            cu.cuGraphDestroy(graph)
    leave_quietly(entered)
    return result
