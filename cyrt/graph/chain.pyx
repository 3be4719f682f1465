"""Chains of kernels: one set of executable graphs for every topology seen for the first time."""

from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from cyrt.driver.cuda cimport CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS
from cyrt.graph.executable cimport (
    Executable, Execs, Outcome, bytes_of, destroy, instantiate, launch, pointer_room, replace,
)
from cyrt.graph.pattern cimport Pattern
from cyrt.graph.recording cimport CLUSTER, COOPERATIVE, KERNEL, TEMPLATE, Node, Recording


cdef class Chains(Execs):
    """The chains of one stream."""

    def __cinit__(self):
        memset(self.links, 0, sizeof(self.links))
        self.code = [None] * LENGTHS

    def __dealloc__(self):
        self.drop()

    cdef size_t held(self) noexcept:
        cdef size_t found = 0
        cdef int i
        for i in range(LENGTHS):
            if self.links[i].exec != NULL:
                found += bytes_of(self.links[i].num_nodes)
        return found

    cdef void drop(self) noexcept:
        cdef Executable[LENGTHS] links
        cdef int i
        memcpy(links, self.links, sizeof(links))
        memset(self.links, 0, sizeof(links))
        for i in range(LENGTHS):
            if links[i].exec != NULL:
                destroy(&links[i])
        self.code = None


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
                link, chains.stream, recording, 1 << length, True, outcome):
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
                outcome.result = launch(link, NULL)
            if outcome.result != CUDA_SUCCESS:
                destroy(link)           # a node cannot be set to its kernel
                return
            outcome.launched += 1 << length


cdef int keep_code(Chains chains, list code, int launched) except -1:
    cdef int length, left = len(code)
    for length in range(LENGTHS - 1, -1, -1):
        if left >> length and launched > 0:
            chains.code[length] = code
        launched -= (left >> length) << length
        left -= (left >> length) << length
    return 0
