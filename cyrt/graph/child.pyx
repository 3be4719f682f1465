"""Child graphs: copies of graphs made elsewhere."""

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu
from cyrt.runtime.device cimport enter, enter_quietly, leave, leave_quietly
from cyrt.runtime.state cimport StreamState

cdef unsigned long long last_serial = 0


cdef class ChildGraph:
    """A graph that an encoder runs as one node."""

    def __dealloc__(self):
        cdef int entered
        if self.graph != NULL:
            entered = enter_quietly(self.ordinal, self.epoch)
            if entered >= 0:
                cu.cuGraphDestroy(self.graph)
            leave_quietly(entered)


cdef ChildGraph copy_graph(int ordinal, unsigned int epoch, CUgraph graph):
    global last_serial
    cdef ChildGraph child = ChildGraph()
    cdef CUgraph parent = NULL
    cdef CUgraphNode node
    cdef CUresult result
    cdef const char* call = b"cuGraphClone"
    cdef int entered = enter(ordinal, epoch, call)
    child.ordinal, child.epoch = ordinal, epoch
    result = cu.cuGraphClone(&child.graph, graph)
    if result == CUDA_SUCCESS:
        result = cu.cuGraphGetNodes(child.graph, NULL, &child.num_nodes)
    if result == CUDA_SUCCESS:          # told here, not at the commit, where it can be no child
        call = b"cuGraphAddChildGraphNode"
        result = cu.cuGraphCreate(&parent, 0)
    if result == CUDA_SUCCESS:
        result = cu.cuGraphAddChildGraphNode(&node, parent, NULL, 0, child.graph)
        cu.cuGraphDestroy(parent)
    leave(ordinal, entered, result, call)
    last_serial += 1
    child.serial = last_serial
    return child


cdef int begin_capture(StreamState* stream) except -1:
    cdef int entered = enter(stream.ordinal, stream.epoch, b"cuStreamBeginCapture")
    leave(stream.ordinal, entered,
          cu.cuStreamBeginCapture(stream.handle, CU_STREAM_CAPTURE_MODE_RELAXED),
          b"cuStreamBeginCapture")
    stream.capturing = True
    return 0


cdef ChildGraph end_capture(StreamState* stream):
    cdef CUgraph graph = NULL
    cdef CUresult result
    cdef int entered = enter(stream.ordinal, stream.epoch, b"cuStreamEndCapture")
    stream.capturing = False
    result = cu.cuStreamEndCapture(stream.handle, &graph)
    leave(stream.ordinal, entered, result, b"cuStreamEndCapture")
    try:
        return copy_graph(stream.ordinal, stream.epoch, graph)
    finally:
        cu.cuGraphDestroy(graph)


cdef void discard_capture(StreamState* stream) noexcept:
    cdef CUgraph graph = NULL
    cdef int entered = enter_quietly(stream.ordinal, stream.epoch)
    stream.capturing = False
    if entered >= 0:
        cu.cuStreamEndCapture(stream.handle, &graph)
        if graph != NULL:
            cu.cuGraphDestroy(graph)
    leave_quietly(entered)
