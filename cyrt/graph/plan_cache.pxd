# The cache of plans by stream and topology.
#
# INVARIANTS
# - A hit is exact: after equal hashes the integers are compared.
# - A plan that is being launched is not evicted. The execs of one that is evicted are destroyed
#   while the device is idle, since the driver may wait for its work to destroy one (seen on an
#   H200). Plans are evicted before the cache's limit of bytes is reached, so that there is room for
#   these execs. Beyond that limit, or if an eighth as many plans as are kept wait already, the
#   oldest are destroyed in any case. The driver is called without the GIL, which that work may
#   need.
# - Before out of memory is raised, evicted plans are destroyed, and after them the plans used
#   longest ago, one at a time, until the memory suffices.

from cyrt.graph.plan cimport Plan, PlanStats
from cyrt.graph.recording cimport Recording
from cyrt.runtime.state cimport StreamState

# Return the plan of the recording's topology, or a new empty plan, and add 1 to its `busy`; the
# caller subtracts it again. Return None if a finalizer has launched the recording meanwhile.
cdef Plan find(StreamState* stream, Recording* recording, PlanStats* stats)
# Drop the plans used longest ago until count and bytes are within their limits.
cdef int evict(PlanStats* stats) except -1
# Drop the plans of a device that was reset.
cdef int forget_plans(int ordinal) except -1
# Destroy the device's evicted plans; if there is none, the plan used longest ago that is not being
# launched. Return whether there was one.
cdef bint release_plans(int ordinal) except -1
