"""Chains of kernels: one set of executable graphs for every topology seen for the first time."""

from libc.stdlib cimport free
from libc.string cimport memset

from cyrt.driver.cuda cimport CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS
from cyrt.graph.executable cimport (
    Executable, Outcome, destroy, instantiate, launch, pointer_room, replace,
)
from cyrt.graph.pattern cimport Pattern
from cyrt.graph.recording cimport CLUSTER, COOPERATIVE, KERNEL, TEMPLATE, Node, Recording
from cyrt.runtime.state cimport StreamState

# The chains by the address of the stream's state.
_chains = {}


cdef class Chains:
    """The chains of one stream."""

    def __cinit__(self):
        memset(self.links, 0, sizeof(self.links))
        self.owners = [None] * LENGTHS

    def __dealloc__(self):
        cdef int i
        for i in range(LENGTHS):
            if self.links[i].exec != NULL:
                destroy(&self.links[i])


cdef int forget_chains(int ordinal) except -1:
    for chains in list(_chains.values()):   # a list of items could run finalizers that add some
        if (<Chains>chains).stream.ordinal == ordinal:
            del _chains[<size_t>(<Chains>chains).stream]
    return 0


cdef Chains chains_of(StreamState* stream):
    cdef Chains chains = _chains.get(<size_t>stream)
    if chains is None:
        chains = Chains()
        chains.stream = stream
        _chains[<size_t>stream] = chains
    return chains


cdef bint can_run(const Recording* recording) noexcept:
    cdef const Node* node
    cdef int i
    for i in range(recording.num_nodes):
        node = &recording.nodes[i]
        if node.kind == KERNEL and not node.flags & (CLUSTER | COOPERATIVE):
            continue
        # A node keeps the attributes that it was added with.
        if node.kind != TEMPLATE or (<const Pattern*>node.layout).num_attributes:
            return False
    return True


cdef void run(Chains chains, Recording* recording, Outcome* outcome) noexcept:
    cdef Executable* link
    cdef void** pointers
    cdef int length, left = recording.num_nodes
    outcome.call = b"cuGraphLaunch"
    # The calls that may run out of memory come before the first launch.
    for length in range(LENGTHS - 1, -1, -1):
        link = &chains.links[length]
        if left >> length and link.exec == NULL and not instantiate(
                link, chains.stream, recording, 0, 1 << length, True, outcome):
            return
        left -= (left >> length) << length
    pointers = pointer_room(recording)
    if pointers == NULL:
        outcome.result = CUDA_ERROR_OUT_OF_MEMORY
        return
    run_links(chains, recording, pointers, outcome)
    free(pointers)


cdef void run_links(Chains chains, Recording* recording, void** pointers,
                    Outcome* outcome) noexcept:
    cdef Executable* link
    cdef int length
    for length in range(LENGTHS - 1, -1, -1):
        link = &chains.links[length]
        while recording.num_nodes - outcome.launched >= 1 << length:
            outcome.result = replace(link, recording, outcome.launched, pointers)
            if outcome.result == CUDA_SUCCESS:
                outcome.result = launch(link)
            if outcome.result != CUDA_SUCCESS:
                destroy(link)           # a node cannot be set to its kernel
                return
            outcome.launched += 1 << length


cdef int keep_owners(Chains chains, list owners) except -1:
    cdef int length, left = len(owners)
    for length in range(LENGTHS - 1, -1, -1):
        if left >> length:
            chains.owners[length] = owners
        left -= (left >> length) << length
    return 0
