# Chains, which run a topology that was never seen before.
#
# INVARIANTS
# - Instantiating a graph costs more than running it (1.8 to 8 us a node, against 1 us; measured),
#   and most topologies that are seen once are never seen again. So the first time, executable
#   graphs that are chains of 1, 2, 4 ... kernels run the nodes in the recorded order, which keeps
#   every edge. All topologies share these chains: each node is set to the next kernel (0.15 us).
# - A chain runs only kernels without attributes, since an update does not carry attributes.

from cyrt.graph.executable cimport Executable, Execs, Outcome
from cyrt.graph.recording cimport Recording
from cyrt.runtime.state cimport StreamState

cdef enum:
    LENGTHS = 8             # 1, 2, 4 ... 128: above 200 nodes a patched exec stays slow (measured)

# The chains of one stream. `code` holds, for each link, that of the plan that it ran last.
cdef class Chains(Execs):
    cdef Executable[LENGTHS] links

# Return whether chains can run all nodes of the recording.
cdef bint can_run(const Recording* recording) noexcept
# Run the nodes in the recorded order. The function runs no Python code.
cdef void run(Chains chains, Recording* recording, Outcome* outcome) noexcept
# Keep the code of the nodes that ran, the first `launched` ones: the chains' nodes use it until
# they are set again.
cdef int keep_code(Chains chains, list code, int launched) except -1
