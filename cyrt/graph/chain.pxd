# How a topology runs that was never seen before.
#
# INVARIANTS
# - Instantiating costs more than running (1.8 to 8 us a node beside 1, measured), and most
#   topologies that are seen once are never seen again. So the first time the nodes run in their
#   order, which keeps every edge, through execs that are chains of 1, 2, 4 ... kernels and serve
#   all topologies: each node is set to whatever kernel comes (0.15 us).
# - Only kernels without attributes: an update does not carry those.

from cyrt.graph.recording cimport Recording
from cyrt.runtime.state cimport StreamState

cdef bint can_run(const Recording* recording) noexcept
cdef int run(StreamState* stream, Recording* recording) except -1
