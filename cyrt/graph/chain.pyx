"""Chains of kernels: one set of executable graphs for every topology seen for the first time."""

from libc.string cimport memset

from cyrt.driver.cuda cimport CUDA_SUCCESS
from cyrt.graph.direct cimport launch_nodes
from cyrt.graph.executable cimport Executable, destroy, instantiate, launch, replace
from cyrt.graph.recording cimport CLUSTER, COOPERATIVE, KERNEL, Recording
from cyrt.runtime.device cimport leave, verify
from cyrt.runtime.device import reset_hooks
from cyrt.runtime.state cimport StreamState

cdef enum:
    LENGTHS = 8             # 1, 2, 4 ... 128: above 200 a patched exec slows for good (measured)

# By the address of the stream's state.
_chains = {}


cdef class Chains:
    """The chains of one stream."""
    cdef StreamState* stream
    cdef Executable[LENGTHS] links
    cdef list owners        # per link: the functions that it was set to

    def __cinit__(self):
        memset(self.links, 0, sizeof(self.links))
        self.owners = [None] * LENGTHS

    def __dealloc__(self):
        cdef int i
        for i in range(LENGTHS):
            if self.links[i].exec != NULL:
                destroy(&self.links[i])


@reset_hooks.append
def _reset(int ordinal):
    for key, chains in list(_chains.items()):
        if (<Chains>chains).stream.ordinal == ordinal:
            del _chains[key]


cdef bint can_run(const Recording* recording) noexcept:
    cdef int i
    for i in range(recording.num_nodes):
        if recording.nodes[i].kind != KERNEL \
                or recording.nodes[i].flags & (CLUSTER | COOPERATIVE):
            return False
    return True


cdef int run_link(Chains chains, int length, Recording* recording, int first) except -1:
    cdef Executable* link = &chains.links[length]
    cdef int i, count = 1 << length, entered
    if link.exec == NULL or replace(link, recording, first) != CUDA_SUCCESS:
        destroy(link)               # a kernel that a node of it cannot be set to
        return launch_nodes(chains.stream, recording, first, count)
    chains.owners[length] = [
        <object>recording.nodes[i].owner for i in range(first, first + count)]
    entered = verify(chains.stream.ordinal, chains.stream.epoch, b"cuGraphLaunch")
    return leave(chains.stream.ordinal, entered, launch(link), b"cuGraphLaunch")


cdef int run(StreamState* stream, Recording* recording) except -1:
    cdef Chains chains = _chains.get(<size_t>stream)
    cdef int first, length, left = recording.num_nodes
    if chains is None:
        chains = Chains()
        chains.stream = stream
        _chains[<size_t>stream] = chains
    # What can fail comes before the first launch: no batch runs by half.
    for length in range(LENGTHS - 1, -1, -1):
        if left >> length and chains.links[length].exec == NULL:
            instantiate(&chains.links[length], stream, recording, 0, 1 << length, True)
        left -= (left >> length) << length
    first = 0
    for length in range(LENGTHS - 1, -1, -1):
        while recording.num_nodes - first >= 1 << length:
            run_link(chains, length, recording, first)
            first += 1 << length
    return 0
