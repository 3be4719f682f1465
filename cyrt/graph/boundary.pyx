# C-level functions only: see boundary.pxd.
"""A batch ends at its limit, or where the program's round or a loop inside it begins."""

from cyrt.graph.recording cimport Operation, Recording
from cyrt.graph.rounds cimport find_period, free_trace, mix, new_trace, trace_batch

cdef enum:
    EVIDENCE = 8            # batches in a row
    FEW = 50                # a batch patches few of its nodes: one in so many
    SOME = 8                # or one in so many, where the search found no better round
    SEARCH = 32768          # operations
    TRIAL = 1024            # operations that a round has to settle in, before a longer one is tried
    MOST_DIFFERING = 8      # operations, until a round is no longer believed in

cdef unsigned int last_round = 0


cdef void set_limit(Boundary* boundary, int max_ops) noexcept:
    boundary.max_ops = max_ops
    plan_batch(boundary)


cdef void plan_batch(Boundary* boundary) noexcept:
    """Set the fewest operations of the batch that begins, and its number within the round."""
    cdef int half = (boundary.max_ops + 1) // 2
    cdef unsigned long long offset = boundary.position - boundary.origin
    cdef int at, length, parts
    if boundary.period == 0:        # where operations seldom return, more room to meet one
        boundary.min_ops = half if boundary.seldom else half + half // 2
    elif boundary.period <= boundary.max_ops:
        length = boundary.max_ops // boundary.period * boundary.period
        boundary.min_ops = length - <int>(offset % length)
        boundary.key = boundary.batches if boundary.batches <= boundary.most_batches else 0
    else:
        parts = (boundary.period + boundary.max_ops - 1) // boundary.max_ops
        length = (boundary.period + parts - 1) // parts
        at = <int>(offset % boundary.period)
        boundary.min_ops = min(length - at % length, boundary.period - at)
        boundary.key = at


cdef unsigned long long operation_hash(const Operation* operation) noexcept:
    cdef unsigned long long h = mix(<unsigned long long>operation.kind, operation.serial)
    cdef int i
    if operation.geometry != NULL:
        for i in range(3):
            h = mix(h, operation.geometry.grid[i] | <unsigned long long>operation.geometry.block[i]
                    << 32)
    return h


cdef bint remembered(Boundary* boundary, unsigned long long h) noexcept:
    cdef int i
    for i in range(min(boundary.num_beginnings, BEGINNINGS)):
        if boundary.beginnings[i] == h:
            return True
    return False


cdef bint ends_before(Boundary* boundary, int nodes, bint full, const Operation* next) noexcept:
    cdef unsigned long long h
    cdef bint repeats
    if boundary.period:
        return full or nodes >= boundary.min_ops
    h = operation_hash(next)
    repeats = h == boundary.previous        # in a run of equal operations none is special
    boundary.previous = h
    if nodes < boundary.min_ops and not full:
        return False
    boundary.found = remembered(boundary, h)
    if full or nodes >= boundary.max_ops:
        return True
    boundary.found = boundary.found and not repeats
    return boundary.found


cdef void remember(Boundary* boundary, const Operation* first) noexcept:
    # One batch that ran into the limit tells of a change, and where it ended nothing; two do.
    if boundary.num_beginnings == 0 or boundary.lost > 1:
        boundary.beginnings[boundary.num_beginnings % BEGINNINGS] = operation_hash(first)
        boundary.num_beginnings += 1
        if boundary.num_beginnings == 2 * BEGINNINGS:
            boundary.num_beginnings = BEGINNINGS


cdef void note_commit(Boundary* boundary) noexcept:
    """A commit that the program asked for. Where such come regularly, once a round or less often,
    rounds begin there; a single one, as before a result is read, moves nothing."""
    cdef unsigned long long since = boundary.position - boundary.commit
    if boundary.period and boundary.batches == boundary.most_batches \
            and since >= <unsigned long long>(boundary.period - boundary.period // 8):
        boundary.origin = boundary.position
    boundary.most_batches = boundary.batches
    boundary.batches = 0
    boundary.commit = boundary.position


cdef void look_for_round(Boundary* boundary) noexcept:
    global last_round
    cdef int period = find_period(boundary.trace)
    if period <= boundary.period:           # a longer one may show only later
        return
    last_round += 1
    boundary.round = last_round
    boundary.period = boundary.trace.period = period
    boundary.trace.differing = 0
    boundary.trace.next_look = boundary.trace.count + TRIAL
    boundary.origin = boundary.commit \
        if boundary.position - boundary.commit < <unsigned long long>period else boundary.position


cdef void begin(Boundary* boundary, const Operation* first, bint cut_off) noexcept:
    if cut_off:
        boundary.batches += 1
        boundary.lost = 0 if boundary.found else boundary.lost + 1
        if boundary.lost == EVIDENCE:
            boundary.seldom = True
    else:
        note_commit(boundary)
    if boundary.trace != NULL and boundary.calm == 0:
        look_for_round(boundary)
    if boundary.period == 0:
        remember(boundary, first)
    plan_batch(boundary)


cdef void lose_round(Boundary* boundary) noexcept:
    boundary.round = 0
    boundary.period = boundary.lost = boundary.num_beginnings = 0
    boundary.seldom = False


cdef void learn(Boundary* boundary, const Recording* recording,
                unsigned long long patched) noexcept:
    cdef unsigned long long nodes = recording.num_nodes
    if boundary.max_ops == 1:
        return
    if boundary.period == 0 and boundary.lost >= EVIDENCE:
        patched = nodes                 # topologies do not come round, either
    if patched * (SOME if boundary.searched else FEW) > nodes:
        boundary.calm = 0
        if boundary.trace == NULL:
            boundary.searched = False
            boundary.trace = new_trace()
            if boundary.trace != NULL:
                boundary.trace.period = boundary.period
    elif boundary.trace != NULL:
        boundary.calm += nodes
        if boundary.calm > <unsigned long long>(2 * max(boundary.period, <int>TRIAL)):
            forget(boundary)
    if boundary.trace != NULL:
        boundary.searched = boundary.trace.count > SEARCH
        trace_batch(boundary.trace, recording, boundary.position)
        if boundary.period and boundary.trace.differing > MOST_DIFFERING:
            boundary.trace.period = 0
            lose_round(boundary)
    boundary.position += nodes


cdef void forget(Boundary* boundary) noexcept:
    free_trace(boundary.trace)
    boundary.trace = NULL
