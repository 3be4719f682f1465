# C-level functions only: see boundary.pxd.
"""A batch ends at its limit, or where the program's round or a loop inside it begins."""

from libc.stdlib cimport free, realloc

from cyrt.driver.cuda cimport CUfunction
from cyrt.graph.recording cimport Operation, Recording
from cyrt.graph.rounds cimport (
    MOST_EXTRA, Extra, fill_expected, find_period, free_trace, mix, new_trace, trace_batch,
    trace_commit,
)

cdef enum:
    EVIDENCE = 8            # batches in a row
    FEW = 50                # a batch patches few of its nodes: one in so many
    SOME = 8                # or one in so many, where the search found no better round
    SEARCH = 32768          # operations
    TRIAL = 1024            # operations that a round has to settle in, before a longer one is tried
    MOST_DIFFERING = 8      # operations, until a round is no longer believed in
    NEVER = 1 << 30         # operations
    BEYOND = 8              # operations that a batch may have beyond its limit: groups are joined

cdef unsigned int last_round = 0


cdef void set_limit(Boundary* boundary, int max_ops) noexcept:
    boundary.max_ops = max_ops
    plan_batch(boundary)


cdef void plan_batch(Boundary* boundary) noexcept:
    """Set the fewest operations of the batch that begins, and which of the round's it is."""
    cdef int half = (boundary.max_ops + 1) // 2
    cdef int at, part, parts
    boundary.extra.count = 0
    boundary.expected = NULL
    boundary.complete = NEVER
    if boundary.max_ops == 1:
        boundary.complete = boundary.min_ops = 1
        return
    if boundary.period == 0:        # where operations seldom return, more room to meet one
        boundary.min_ops = half if boundary.seldom else half + half // 2
        return
    parts = (boundary.length + boundary.max_ops - 1) // boundary.max_ops
    part = (boundary.length + parts - 1) // parts
    at = <int>((boundary.position - boundary.origin) % boundary.length)
    boundary.key = at - at % part
    boundary.resumes = at % part != 0
    boundary.min_ops = min(part - at % part, boundary.length - at)
    boundary.complete = boundary.min_ops
    boundary.expected = boundary.functions + at % boundary.period


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
    """A commit that the program asked for."""
    boundary.commit = boundary.position
    if boundary.trace != NULL:
        trace_commit(boundary.trace)


cdef void look_for_round(Boundary* boundary) noexcept:
    global last_round
    cdef int period = find_period(boundary.trace)
    cdef unsigned long long since = boundary.position - boundary.commit
    cdef int count = period + boundary.max_ops + BEYOND
    cdef CUfunction* functions
    if period <= boundary.period:           # a longer one may show only later
        return
    functions = <CUfunction*>realloc(boundary.functions, count * sizeof(CUfunction))
    if functions == NULL:
        return
    if since >= <unsigned long long>period:
        since = 0
    fill_expected(boundary.trace, functions, period, <int>since, count)
    last_round += 1
    boundary.round = last_round
    boundary.functions = functions
    boundary.period = boundary.trace.period = period
    boundary.length = period * max(1, boundary.max_ops // period)
    boundary.trace.differing = 0
    boundary.trace.next_look = boundary.trace.count + TRIAL
    boundary.origin = boundary.position - since


cdef void begin(Boundary* boundary, const Operation* first, bint cut_off) noexcept:
    if cut_off:
        boundary.lost = 0 if boundary.found else boundary.lost + 1
        if boundary.lost == EVIDENCE:
            boundary.seldom = True
    elif not boundary.completed:
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
    plan_batch(boundary)


cdef bint note_other(Boundary* boundary, int node) noexcept:
    cdef Extra* extra = &boundary.extra
    if extra.count == MOST_EXTRA:           # another program, or other kernels from now on
        boundary.expected = NULL
        extra.count = 0
        return False
    extra.nodes[extra.count] = node
    extra.count += 1
    boundary.expected -= 1
    if boundary.min_ops < boundary.max_ops:
        boundary.min_ops += 1
        boundary.complete = boundary.min_ops
    return True


cdef void adopt(Boundary* boundary, const Recording* recording) noexcept:
    """The round runs what the batch ran instead."""
    cdef int at = <int>((boundary.position - boundary.origin) % boundary.period)
    cdef int i
    for i in range(recording.num_nodes):
        boundary.functions[(at + i) % boundary.period] = recording.nodes[i].function
    for i in range(boundary.period, boundary.period + boundary.max_ops + BEYOND):
        boundary.functions[i] = boundary.functions[i - boundary.period]


cdef void advance(Boundary* boundary, const Recording* recording) noexcept:
    if boundary.max_ops == 1 or recording.num_nodes == 0:
        return
    if boundary.period and boundary.expected == NULL:
        adopt(boundary, recording)
    boundary.last_position = boundary.position
    boundary.last_extra = boundary.extra
    boundary.position += recording.num_nodes - boundary.extra.count
    boundary.completed = recording.num_nodes >= boundary.complete
    boundary.restarts = 0
    if boundary.period and not boundary.completed and boundary.period < boundary.length:
        boundary.restarts = boundary.length // boundary.period
        boundary.origin += (boundary.position - boundary.origin) // boundary.period \
            * boundary.period
    plan_batch(boundary)


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
            drop_trace(boundary)
    if boundary.trace != NULL:
        boundary.searched = boundary.trace.count > SEARCH
        trace_batch(boundary.trace, recording, boundary.last_position, &boundary.last_extra)
        if boundary.period and boundary.trace.differing > MOST_DIFFERING:
            boundary.trace.period = 0
            lose_round(boundary)


cdef void drop_trace(Boundary* boundary) noexcept:
    free_trace(boundary.trace)
    boundary.trace = NULL


cdef void forget(Boundary* boundary) noexcept:
    drop_trace(boundary)
    free(boundary.functions)
    boundary.functions = NULL
    boundary.period = 0
