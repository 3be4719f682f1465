# The cache of plans by stream and topology, and of the chains by stream.
#
# INVARIANTS
# - A hit is exact: after equal hashes the integers are compared.
# - A plan or chains that are being launched are not evicted. The execs of what is evicted are
#   destroyed while the device is idle, since the driver may wait for its work to destroy one (seen
#   on an H200). Plans and chains are evicted before the cache's limit of bytes is reached, so that
#   there is room for these execs. Beyond that limit, or if an eighth as many as plans are kept wait
#   already, the oldest are destroyed in any case. The driver is called without the GIL, which that
#   work may need.
# - The serial number of a kernel that has ended is in no later topology, so what runs that kernel
#   leaves the cache in the same way, at the next commit of any stream. The code is released after
#   the execs, and a module is unloaded with the last reference to it: see runtime/ending.
# - Before out of memory is raised, what has left the cache is destroyed, the code with it, and
#   after that the plans and chains used longest ago, one at a time, until the memory suffices.

from cyrt.graph.executable cimport Execs
from cyrt.graph.plan cimport Plan, PlanStats
from cyrt.graph.recording cimport Recording
from cyrt.runtime.module cimport num_dropped
from cyrt.runtime.state cimport StreamState

# Return the plan of the recording's topology, or a new empty plan, with the chains for its first
# launch. It is busy until the caller calls `release`. Return None if a finalizer has launched the
# recording meanwhile.
cdef Plan find(StreamState* stream, Recording* recording, PlanStats* stats)
cdef void release(Plan plan) noexcept
# Keep a fused plan. Return False if it runs a kernel that has ended.
cdef bint add_fused(Execs execs) except -1
# Drop a fused plan that nothing launches any more.
cdef int remove_fused(Execs execs) except -1
# Drop the plans and chains used longest ago until count and bytes are within their limits.
cdef int evict(PlanStats* stats) except -1
# Drop those that run a kernel that has ended, and return how many these were.
cdef inline int drop_unreachable() except -1:
    return look_for_dropped() if num_dropped != num_seen else 0
cdef unsigned long long num_seen    # the kernels that had ended at the last look
cdef int look_for_dropped() except -1
# Drop the plans and chains of a device that was reset.
cdef int forget_plans(int ordinal) except -1
# Destroy what has left the cache of the device; if there is nothing, the plan or chains used
# longest ago that are not being launched. Return whether there was something.
cdef bint release_plans(int ordinal) except -1
