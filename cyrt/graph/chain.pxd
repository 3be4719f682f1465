# How a topology runs that was never seen before.
#
# INVARIANTS
# - Instantiating costs more than running (1.8 to 8 us a node beside 1, measured), and most
#   topologies that are seen once are never seen again. So the first time the nodes run in their
#   order, which keeps every edge, through execs that are chains of 1, 2, 4 ... kernels and serve
#   all topologies: each node is set to whatever kernel comes (0.15 us).
# - Only kernels without attributes: an update does not carry those.

from cyrt.graph.executable cimport Executable, Outcome
from cyrt.graph.recording cimport Recording
from cyrt.runtime.state cimport StreamState

cdef enum:
    LENGTHS = 8             # 1, 2, 4 ... 128: above 200 a patched exec slows for good (measured)

# The chains of one stream.
cdef class Chains:
    cdef StreamState* stream
    cdef Executable[LENGTHS] links
    cdef list owners        # per link: the functions of the plan that it ran last

cdef bint can_run(const Recording* recording) noexcept
cdef Chains chains_of(StreamState* stream)
# Runs the nodes in their order. Runs no Python code.
cdef void run(Chains chains, Recording* recording, Outcome* outcome) noexcept
# Keeps the functions of the nodes that ran: the chains' nodes name them until they are set anew.
cdef int keep_owners(Chains chains, list owners) except -1
# Drops those of a device that was reset.
cdef int forget_chains(int ordinal) except -1
