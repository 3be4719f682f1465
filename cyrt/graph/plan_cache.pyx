"""The cache of plans: finds the plan of a topology, and evicts those used longest ago."""

import warnings
from logging import DEBUG

from cpython.exc cimport PyErr_SetInterrupt

from cyrt import settings
from cyrt.driver.cuda cimport CUDA_SUCCESS, CUresult
from cyrt.graph cimport chain, executable as executables, plan as plans
from cyrt.graph.chain cimport Chains
from cyrt.graph.executable cimport Execs, held_bytes
from cyrt.graph.plan cimport Plan, PlanStats, clock, has_topology, most_bytes, new_plan
from cyrt.graph.recording cimport Recording
from cyrt.logger import logger
from cyrt.runtime.captures cimport release_ended
from cyrt.runtime.ending cimport destroy_unused, destroy_when_idle
from cyrt.runtime.module cimport Code, num_dropped
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.waiting cimport wait_all

cdef enum:
    RESERVED = 8            # one in so many bytes and plans of the limits is for evicted plans

# The plans by (stream, nodes, hash), the chains by stream, and a linked list of all execs from the
# least to the most recently used.
cdef dict _plans = {}
cdef dict _chains = {}
cdef dict _fused = {}           # the fused plans, by a number of their own
cdef Execs oldest = None
cdef Execs newest = None
cdef Py_ssize_t most_plans = 0  # CYRT_GRAPH_CACHE_SIZE; 0 until the settings are read
cdef bint chains = False        # whether chains run a topology the first time
# The keys of evicted plans, and the number of recent misses on them: the cache is too small if
# evicted topologies are used again.
cdef dict _evicted = {}
cdef Py_ssize_t num_returned = 0
cdef unsigned long long counted_from = 0    # the clock when counting began
# `_retired` holds the plans and chains that have left the cache and are not destroyed yet, the
# oldest first. `_awaited_devices` holds the devices that will destroy theirs when they are idle.
cdef dict _retired = {}
_awaited_devices = set()
cdef size_t retired_bytes = 0


def cache_size():
    """Return (plans, bytes): the number of plans in the cache and the bytes of all execs."""
    return len(_plans), held_bytes


def list_plans():
    """Return the plans in the cache, in the order in which they were added."""
    return list(_plans.values())


def list_fused_plans():
    """Return the fused plans in the cache, in the order in which they were added."""
    return list(_fused.values())


def forget():
    """Drop the plans and chains that are not being launched. For tests: a new stream may have the
    plans of one that has ended."""
    # A list of items could run finalizers that add some.
    for execs in all_execs():
        if not (<Execs>execs).busy and remove(<Execs>execs):
            retire(<Execs>execs)


cdef int read_cache_settings() except -1:
    global most_plans, chains
    plans.most_bytes = settings.get("CYRT_GRAPH_CACHE_BYTES")
    # A chain orders more nodes than the edges do. CYRT_CHECK has to see the order of the edges.
    chains = not settings.get("CYRT_CHECK")
    most_plans = settings.get("CYRT_GRAPH_CACHE_SIZE")
    return 0


cdef int unlink(Execs execs) except -1:
    global oldest, newest
    if execs.older is not None:
        execs.older.newer = execs.newer
    elif oldest is execs:
        oldest = execs.newer
    if execs.newer is not None:
        execs.newer.older = execs.older
    elif newest is execs:
        newest = execs.older
    execs.older = execs.newer = None
    return 0


cdef int link(Execs execs) except -1:
    global oldest, newest
    execs.older = newest
    if newest is not None:
        newest.newer = execs
    newest = execs
    if oldest is None:
        oldest = execs
    return 0


cdef int note_use(Execs execs) except -1:
    if execs is not newest:
        unlink(execs)
        link(execs)
    return 0


cdef list all_execs():
    return list(_plans.values()) + list(_chains.values()) + list(_fused.values())


cdef dict dict_of(Execs execs):
    return _plans if isinstance(execs, Plan) else _chains if isinstance(execs, Chains) else _fused


cdef bint remove(Execs execs) except -1:
    """Remove execs from the cache. Return whether another thread has not done so."""
    cdef dict known = dict_of(execs)
    if known.get(execs.key) is not execs:
        return False
    unlink(execs)
    del known[execs.key]
    execs.cached = False
    return True


cdef bint exceeds_bytes() noexcept:
    return held_bytes - retired_bytes > most_bytes - most_bytes // RESERVED


cdef int evict(PlanStats* stats) except -1:
    cdef Execs execs, newer
    if len(_plans) <= most_plans and not _retired and not exceeds_bytes():
        return 0
    cdef Py_ssize_t before = stats.evictions
    execs = oldest
    while execs is not None and (len(_plans) > most_plans or exceeds_bytes()):
        newer = execs.newer
        if execs is not newest and not execs.busy \
                and (exceeds_bytes() or isinstance(execs, Plan)):
            remove(execs)
            if isinstance(execs, Plan):
                stats.evictions += 1
                note_evicted(execs.key, most_plans)
            retire(execs)       # may unload modules, and let other threads run
            newer = oldest
        execs = newer
    while _retired and (held_bytes > most_bytes or len(_retired) > most_plans // RESERVED):
        drop_retired(next(iter(_retired)))
    if stats.evictions != before:
        log_evictions(stats.evictions - before)
    return 0


cdef bint runs_dropped(list code) noexcept:
    for each in code:
        if each is not None and (
                runs_dropped(<list>each) if isinstance(each, list) else (<Code>each).dropped):
            return True
    return False


cdef int look_for_dropped() except -1:
    global num_seen
    cdef unsigned long long number = num_dropped
    cdef Execs execs = oldest
    cdef Execs newer
    cdef bint complete = True
    cdef int count = 0
    while execs is not None:
        newer = execs.newer
        if runs_dropped(execs.code):
            if execs.busy:
                complete = False
            else:
                remove(execs)
                retire(execs)
                count += 1
                newer = oldest
        execs = newer
    if complete:
        num_seen = number
    return count


cdef int retire(Execs execs) except -1:
    """Destroy what has left the cache, now if its device is idle, else later."""
    global retired_bytes
    cdef int ordinal = execs.stream.ordinal
    if execs.held() == 0:
        execs.drop()
        return 0
    _retired[execs] = True
    retired_bytes += execs.held()
    if ordinal in _awaited_devices:
        destroy_unused()
    else:
        _awaited_devices.add(ordinal)
        destroy_when_idle(ordinal, execs.stream.epoch, end_retired, ordinal)
    return 0


cdef CUresult end_retired(size_t ordinal) noexcept nogil:
    with gil:
        drop_all_retired(ordinal)
    return CUDA_SUCCESS


cdef int drop_all_retired(int ordinal) except -1:
    _awaited_devices.discard(ordinal)
    for execs in list(_retired):
        if (<Execs>execs).stream.ordinal == ordinal:
            drop_retired(execs)
    return 0


cdef int drop_retired(Execs execs) except -1:
    global retired_bytes
    if _retired.pop(execs, False):      # else another thread dropped it
        retired_bytes -= execs.held()
        execs.drop()
    return 0


cdef bint release_plans(int ordinal) except -1:
    cdef Execs execs
    release_ended()
    if drop_unreachable() or any([(<Execs>each).stream.ordinal == ordinal for each in _retired]):
        drop_all_retired(ordinal)
        wait_all(ordinal)           # then modules are unloaded, too
        return True
    execs = oldest
    while execs is not None and (execs.busy or execs.stream.ordinal != ordinal):
        execs = execs.newer
    if execs is None:
        return False
    remove(execs)
    execs.drop()
    return True


cdef void log_evictions(Py_ssize_t count) noexcept:
    """Log evictions. Whatever a handler of the program's raises, the batch still runs."""
    try:
        if logger.isEnabledFor(DEBUG):
            logger.debug("%d graphs were evicted, %d are kept", count, len(_plans))
    except KeyboardInterrupt:
        PyErr_SetInterrupt()        # interrupts the code that runs next instead


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
    # A list of items could run finalizers that add some.
    for execs in all_execs():
        if (<Execs>execs).stream.ordinal == ordinal:
            if remove(<Execs>execs) and (<Execs>execs).busy == 0:
                (<Execs>execs).drop()
    drop_all_retired(ordinal)
    return 0


cdef Chains chains_of(StreamState* stream):
    """Return the chains of a stream; the first use creates them."""
    cdef Chains found = _chains.get(<size_t>stream)
    if found is None:
        found = Chains()        # finalizers may run that create some, too
        found.stream, found.key = stream, <size_t>stream
        if found.key in _chains:
            return _chains[found.key]
        _chains[found.key] = found
        link(found)
    return found


cdef int take_chains(Plan plan) except -1:
    """Let the plan's first launch run chains."""
    cdef Chains found = chains_of(plan.stream)
    if plan.chains is None:
        plan.chains = found
        found.busy += 1
        note_use(found)
    return 0


cdef void release(Plan plan) noexcept:
    plan.busy -= 1
    if plan.busy == 0 and plan.chains is not None:
        plan.chains.busy -= 1
        plan.chains = None


cdef bint add_fused(Execs execs) except -1:
    if runs_dropped(execs.code):
        return False
    execs.key = id(execs)
    _fused[execs.key] = execs
    execs.cached = True
    link(execs)
    return True


cdef int remove_fused(Execs execs) except -1:
    if remove(execs) and not execs.busy:
        retire(execs)
    return 0


cdef Plan find(StreamState* stream, Recording* recording, PlanStats* stats):
    cdef tuple key
    cdef Plan plan, made
    if recording.repeats and recording.plan != NULL and (<Plan>recording.plan).cached:
        plan = <Plan>recording.plan         # a script, all of which was replayed
        if recording.fusion != NULL and (<Execs>recording.fusion).cached:
            note_use(<Execs>recording.fusion)
        stats.hits += 1
        plan.busy += 1
        note_use(plan)
        return plan
    key = (<size_t>stream, recording.num_nodes, executables.hash_of(
        recording.topology, recording.topology_words * sizeof(unsigned int)))
    if most_plans == 0:
        read_cache_settings()
    plan = _plans.get(key)
    if plan is None or not has_topology(plan, recording):
        if _evicted:
            count_returning_topology(key)
        made = new_plan(stream, recording)
        if made is None:
            return None
        made.key = key
        # Finalizers may have run before this line, and launched the recording or added the plan.
        if recording.num_nodes != key[1] or not has_topology(made, recording):
            return None
        plan = _plans.get(key)
    if plan is not None and has_topology(plan, recording):
        stats.hits += 1
        plan.busy += 1
    else:
        stats.misses += 1
        if plan is not None:    # two topologies have one hash: the new one replaces the old one
            remove(plan)
            if plan.busy == 0:
                retire(plan)
        plan = made
        plan.busy += 1
        _plans[key] = plan
        plan.cached = True
        link(plan)
        evict(stats)
    if plan.launches == 0 and chains and chain.can_run(recording):
        take_chains(plan)
    note_use(plan)
    return plan
