# Chains, which run a topology that was never seen before.
#
# INVARIANTS
# - Instantiating a graph costs more than running it (1.8 to 8 us a node, against 1 us; measured),
#   and most topologies that are seen once are never seen again. So the first time, executable
#   graphs that are chains of 1, 2, 4 ... kernels run the nodes in the recorded order, which keeps
#   every edge. All topologies share these chains: each node is set to the next kernel (0.15 us).
# - A chain runs only kernels without attributes, since an update does not carry attributes.

from cyrt.graph.executable cimport Executable, Outcome
from cyrt.graph.recording cimport Recording
from cyrt.runtime.state cimport StreamState

cdef enum:
    LENGTHS = 8             # 1, 2, 4 ... 128: above 200 nodes a patched exec stays slow (measured)

# The chains of one stream.
cdef class Chains:
    cdef StreamState* stream
    cdef Executable[LENGTHS] links
    cdef list owners        # for each link, the functions of the plan that it ran last

# Return whether chains can run all nodes of the recording.
cdef bint can_run(const Recording* recording) noexcept
# Return the chains of a stream; the first use creates them.
cdef Chains chains_of(StreamState* stream)
# Run the nodes in the recorded order. The function runs no Python code.
cdef void run(Chains chains, Recording* recording, Outcome* outcome) noexcept
# Keep the functions of the nodes that ran: the chains' nodes use them until they are set again.
cdef int keep_owners(Chains chains, list owners) except -1
# Drop the chains of a device that was reset.
cdef int forget_chains(int ordinal) except -1
