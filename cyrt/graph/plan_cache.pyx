"""The cache of plans: finds the plan of a topology, and evicts those used longest ago."""

import warnings

from cyrt import settings
from cyrt.driver.cuda cimport CUDA_SUCCESS, CUresult
from cyrt.graph cimport chain, executable as executables
from cyrt.graph.executable cimport held_bytes
from cyrt.graph.plan cimport (
    Plan, PlanStats, by_node, clock, has_topology, most_bytes, new_plan, read_settings,
)
from cyrt.graph.recording cimport Recording
from cyrt.runtime.ending cimport destroy_unused, destroy_when_idle
from cyrt.runtime.state cimport StreamState

cdef enum:
    RESERVED = 8            # one in so many bytes and plans of the limits is for evicted plans

# All plans by (stream, nodes, hash), and a linked list from the least to the most recently
# used one.
_plans = {}
cdef Plan oldest = None
cdef Plan newest = None
cdef Py_ssize_t most_plans = 0  # CYRT_GRAPH_CACHE_SIZE; 0 until the settings are read
cdef bint chains = False        # whether chains run a topology the first time
# The keys of evicted plans, and the number of recent misses on them: the cache is too small if
# evicted topologies are used again.
_evicted = {}
cdef Py_ssize_t num_returned = 0
cdef unsigned long long counted_from = 0    # the clock when counting began
# Evicted plans whose execs are not destroyed yet, oldest first, and the devices that have some.
_retired = {}
_awaited_devices = set()
cdef size_t retired_bytes = 0


def cache_size():
    """Return (plans, bytes): the number of plans in the cache and the bytes of all execs."""
    return len(_plans), held_bytes


def list_plans():
    """Return the plans in the cache, in the order in which they were added."""
    return list(_plans.values())


cdef int read_cache_settings() except -1:
    global most_plans, chains
    read_settings()
    # A chain orders more nodes than the edges do. CYRT_CHECK has to see the order of the edges.
    chains = by_node and not settings.get("CYRT_CHECK")
    most_plans = settings.get("CYRT_GRAPH_CACHE_SIZE")
    return 0


cdef int unlink(Plan plan) except -1:
    global oldest, newest
    if plan.older is not None:
        plan.older.newer = plan.newer
    elif oldest is plan:
        oldest = plan.newer
    if plan.newer is not None:
        plan.newer.older = plan.older
    elif newest is plan:
        newest = plan.older
    plan.older = plan.newer = None
    return 0


cdef int link(Plan plan) except -1:
    global oldest, newest
    plan.older = newest
    if newest is not None:
        newest.newer = plan
    newest = plan
    if oldest is None:
        oldest = plan
    return 0


cdef bint exceeds_limits() noexcept:
    return (len(_plans) > most_plans
            or held_bytes - retired_bytes > most_bytes - most_bytes // RESERVED)


cdef int evict(PlanStats* stats) except -1:
    cdef Plan plan
    cdef Plan newer
    plan = oldest
    while plan is not None and exceeds_limits():
        newer = plan.newer
        if plan is not newest and not plan.busy:
            unlink(plan)
            del _plans[plan.key]
            stats.evictions += 1
            note_evicted(plan.key, most_plans)
            retire(plan)        # may unload modules, and let other threads run
            newer = oldest
        plan = newer
    while _retired and (held_bytes > most_bytes or len(_retired) > most_plans // RESERVED):
        drop_retired(next(iter(_retired)))
    return 0


cdef int retire(Plan plan) except -1:
    """Destroy the execs of an evicted plan, now if its device is idle, else later."""
    global retired_bytes
    cdef int ordinal = plan.stream.ordinal
    if plan.num_variants == 0:
        return 0
    _retired[plan] = True
    retired_bytes += plan.exec_bytes()
    if ordinal in _awaited_devices:
        destroy_unused()
    else:
        _awaited_devices.add(ordinal)
        destroy_when_idle(ordinal, plan.stream.epoch, end_retired, ordinal)
    return 0


cdef CUresult end_retired(size_t ordinal) noexcept nogil:
    with gil:
        drop_all_retired(ordinal)
    return CUDA_SUCCESS


cdef int drop_all_retired(int ordinal) except -1:
    _awaited_devices.discard(ordinal)
    for plan in list(_retired):
        if (<Plan>plan).stream.ordinal == ordinal:
            drop_retired(plan)
    return 0


cdef int drop_retired(Plan plan) except -1:
    global retired_bytes
    if _retired.pop(plan, False):       # else another thread dropped it
        retired_bytes -= plan.exec_bytes()
        plan.drop()
    return 0


cdef bint release_plans(int ordinal) except -1:
    cdef Plan plan = oldest
    for retired in _retired:
        if (<Plan>retired).stream.ordinal == ordinal:
            drop_all_retired(ordinal)
            return True
    while plan is not None and (plan.busy or plan.stream.ordinal != ordinal):
        plan = plan.newer
    if plan is None:
        return False
    unlink(plan)
    del _plans[plan.key]
    plan.drop()
    return True


cdef int note_evicted(tuple key, Py_ssize_t most) except -1:
    _evicted[key] = None
    if len(_evicted) > 4 * most:
        del _evicted[next(iter(_evicted))]
    return 0


cdef void count_returning_topology(tuple key) noexcept:
    """Warn once of topologies that are often used again after their eviction. If a filter turns the
    warning into an error, the batch still runs."""
    global num_returned, counted_from
    cdef Py_ssize_t most = settings.get("CYRT_GRAPH_CACHE_SIZE")
    if num_returned < 0 or key not in _evicted:
        return
    if clock - counted_from > <unsigned long long>(4 * most):
        num_returned, counted_from = 0, clock
    num_returned += 1
    if num_returned > most:
        num_returned = -1
        warnings.warn(
            f"the program uses more topologies in turn than the {len(_plans)} graphs that are "
            "kept: they are built again and again. CYRT_GRAPH_CACHE_SIZE and "
            "CYRT_GRAPH_CACHE_BYTES keep more.", RuntimeWarning, stacklevel=1)


cdef int forget_plans(int ordinal) except -1:
    for plan in list(_plans.values()):      # a list of items could run finalizers that add some
        if (<Plan>plan).stream.ordinal == ordinal:
            unlink(<Plan>plan)
            _plans.pop((<Plan>plan).key, None)
            if (<Plan>plan).busy == 0:
                (<Plan>plan).drop()
    drop_all_retired(ordinal)
    return 0


cdef Plan find(StreamState* stream, Recording* recording, PlanStats* stats):
    cdef tuple key = (<size_t>stream, recording.num_nodes, executables.hash_of(
        recording.topology, recording.topology_words * sizeof(unsigned int)))
    cdef Plan plan, made
    if most_plans == 0:
        read_cache_settings()
    plan = _plans.get(key)
    if plan is None or not has_topology(plan, recording):
        if _evicted:
            count_returning_topology(key)
        made = new_plan(stream, recording)
        made.key = key
        if chains and chain.can_run(recording):
            made.chains = chain.chains_of(stream)
        # Finalizers may have run before this line, and launched the recording or added the plan.
        if recording.num_nodes != key[1] or not has_topology(made, recording):
            return None
        plan = _plans.get(key)
    if plan is not None and has_topology(plan, recording):
        if plan is not newest:
            unlink(plan)
            link(plan)
        stats.hits += 1
        plan.busy += 1
        return plan
    stats.misses += 1
    if plan is not None:        # two topologies have one hash: the new one replaces the old one
        unlink(plan)
    _plans[key] = made
    link(made)
    made.busy = 1
    evict(stats)
    return made
