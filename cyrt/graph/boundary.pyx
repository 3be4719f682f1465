# C-level functions only: see boundary.pxd.
"""Boundaries: a batch ends at its limit, or where the program's round or a loop in it begins."""

from libc.stdlib cimport free, realloc

from cyrt.driver.cuda cimport CUfunction
from cyrt.graph.recording cimport Operation, Recording
from cyrt.graph.rounds cimport (
    MOST_EXTRA, Extra, commit_distance, commits_repeat_for, fill_expected, find_period, free_trace,
    mix, new_trace, repeats_for, trace_batch, trace_commit,
)

cdef enum:
    EVIDENCE = 8            # consecutive batches at the limit: operations repeat seldom
    FEW = 50                # few nodes of a batch are patched: at most 1/FEW
    SOME = 8                # or at most 1/SOME, if a long search has found no better round
    SEARCH = 32768          # operations that make a search long
    SEARCH_ROUNDS = 8       # rounds of which a search for a longer round is at least as long
    LONGEST_PAUSE = 16 * SEARCH
    TRIAL = 1024            # operations with a new round before a longer one is searched for
    MOST_DIFFERING = 8      # operations that may differ before a round is given up
    NEVER = 1 << 30         # more operations than any batch has
    BEYOND = 8              # nodes that a batch may have beyond its limit, since groups are joined
    DOUBTED = 512           # operations that another round takes to replace one that is in doubt
    OFTEN = 4               # batches of known topologies that outweigh one of a new one
    MANY = 8 * OFTEN        # `new_topologies` from which boundaries do not repeat

cdef unsigned int last_round = 0


cdef void set_limit(Boundary* boundary, int max_ops) noexcept:
    boundary.max_ops = max_ops
    plan_batch(boundary)


cdef void plan_batch(Boundary* boundary) noexcept:
    """Set the minimum of the batch that begins, and its position in the round."""
    cdef int half = (boundary.max_ops + 1) // 2
    cdef int at, within
    boundary.extra.count = 0
    boundary.expected = NULL
    boundary.shortened = False
    boundary.complete = boundary.planned = NEVER
    if boundary.max_ops == 1:
        boundary.complete = boundary.min_ops = 1
        return
    if boundary.period == 0:        # if operations repeat seldom, more room to meet one
        boundary.min_ops = half if boundary.seldom else half + half // 2
        return
    at = <int>((boundary.position - boundary.origin) % boundary.length)
    within = at % boundary.part
    boundary.key = at - within
    boundary.resumes = within != 0
    boundary.min_ops = min(boundary.part - within, boundary.length - at)
    boundary.complete = boundary.planned = boundary.min_ops
    if boundary.belief != DOUBTFUL:
        boundary.expected = boundary.functions + at % boundary.period


cdef unsigned long long operation_hash(const Operation* operation) noexcept:
    cdef unsigned long long h = mix(<unsigned long long>operation.kind, operation.serial)
    cdef int i
    if operation.geometry != NULL:
        for i in range(3):
            h = mix(h, operation.geometry.grid[i] | <unsigned long long>operation.geometry.block[i]
                    << 32)
    return h


cdef bint began_batch(Boundary* boundary, unsigned long long h) noexcept:
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
    repeats = h == boundary.previous        # among equal consecutive operations none is special
    boundary.previous = h
    if nodes < boundary.min_ops and not full:
        return False
    boundary.found = began_batch(boundary, h)
    if full or nodes >= boundary.max_ops:
        return True
    boundary.found = boundary.found and not repeats
    return boundary.found


cdef void remember(Boundary* boundary, const Operation* first) noexcept:
    # One batch at the limit shows a change, and its end means nothing. The end of a second counts.
    if boundary.num_beginnings == 0 or boundary.lost > 1:
        boundary.beginnings[boundary.num_beginnings % BEGINNINGS] = operation_hash(first)
        boundary.num_beginnings += 1
        if boundary.num_beginnings == 2 * BEGINNINGS:
            boundary.num_beginnings = BEGINNINGS


cdef void note_commit(Boundary* boundary) noexcept:
    """Store that the program asked for a commit here."""
    boundary.commit = boundary.position
    if boundary.trace != NULL:
        trace_commit(boundary.trace)


cdef bint replaces_round(const Boundary* boundary, int period) noexcept:
    """Return whether a period that was found replaces the known one."""
    cdef int known = boundary.period
    if period == 0 or period == known:
        return False
    if period < known and known % period == 0:      # both are periods: a commit shows the shorter
        return commits_repeat_for(boundary.trace, period, known)
    # A loop in a long round, or in an evaluation, repeats itself, too, but not for so long.
    if boundary.belief != CERTAIN:
        if period > known and boundary.calm >= <unsigned long long>TRIAL:
            return False            # it contains the known one, which needs no patches
        return repeats_for(boundary.trace, period, DOUBTED)
    return period > known or repeats_for(boundary.trace, period, known)


cdef bint confirms_round(const Boundary* boundary, int period) noexcept:
    """Return whether a period that was found shows that the program has the known one, too."""
    cdef int known = boundary.period
    return period == known or (period > 0 and known % period == 0
                               and repeats_for(boundary.trace, period, max(known, <int>DOUBTED)))


cdef void look_for_round(Boundary* boundary) noexcept:
    global last_round
    cdef int period = find_period(boundary.trace)
    if replaces_round(boundary, period):
        if not set_round(boundary, period):
            return
        last_round += 1
        boundary.round = last_round
        boundary.trace.differing = 0
        boundary.trace.next_look = boundary.trace.count + TRIAL
    elif boundary.doubts and confirms_round(boundary, period) \
            and set_round(boundary, boundary.period):
        boundary.confirmed = True
    else:
        return
    end_doubt(boundary)


cdef void end_doubt(Boundary* boundary) noexcept:
    boundary.belief, boundary.doubts = CERTAIN, 0
    plan_batch(boundary)


cdef bint set_round(Boundary* boundary, int period) noexcept:
    """Store what the last operations ran as what a round runs. Return False if there were too few,
    or there is no memory. A round began at the program's last commit: after an evaluation, the
    program goes on there."""
    cdef unsigned long long since = (boundary.position - boundary.commit) % period
    cdef int count = period + boundary.max_ops + BEYOND
    cdef int parts, apart
    cdef CUfunction* functions
    if boundary.trace.count < <unsigned long long>period:
        return False
    functions = <CUfunction*>realloc(boundary.functions, count * sizeof(CUfunction))
    if functions == NULL:
        return False
    fill_expected(boundary.trace, functions, period, <int>since, count)
    boundary.functions = functions
    boundary.period = boundary.trace.period = period
    boundary.length = period * max(1, boundary.max_ops // period)
    parts = (boundary.length + boundary.max_ops - 1) // boundary.max_ops
    boundary.part = (boundary.length + parts - 1) // parts
    apart = commit_distance(boundary.trace, period)
    if 0 < apart <= boundary.max_ops < period:
        boundary.part = boundary.max_ops // apart * apart
    boundary.origin = boundary.position - since
    return True


cdef void begin(Boundary* boundary, const Operation* first, bint cut_off) noexcept:
    boundary.confirmed = False
    if cut_off:
        boundary.lost = 0 if boundary.found else boundary.lost + 1
        if boundary.lost == EVIDENCE:
            boundary.seldom = True
            plan_batch(boundary)
    elif not boundary.completed:
        note_commit(boundary)
    # The first trial comes before a search.
    if boundary.trace != NULL and boundary.patched and not (
            boundary.belief == TRIED and boundary.doubts == 1):
        look_for_round(boundary)
    if boundary.period == 0:
        remember(boundary, first)


cdef void go_to_limit(Boundary* boundary) noexcept:
    boundary.complete = NEVER
    boundary.min_ops = boundary.max_ops


cdef void restart(Boundary* boundary) noexcept:
    plan_batch(boundary)


cdef void lose_round(Boundary* boundary) noexcept:
    boundary.round = 0
    boundary.period = boundary.lost = boundary.num_beginnings = 0
    boundary.seldom = False
    end_doubt(boundary)


cdef void end_with_round(Boundary* boundary, int node) noexcept:
    """End a batch of several short rounds with the one that this extra node is in."""
    cdef int at = <int>((boundary.position - boundary.origin) % boundary.length)
    cdef int end = ((at + node - boundary.extra.count) // boundary.period + 1) * boundary.period
    # With an extra operation in each batch, all of them would be short.
    if end < boundary.length and (boundary.last_extra.count == 0
                                  or 2 * (end - at) >= boundary.max_ops):
        boundary.shortened = True
        boundary.min_ops = boundary.complete = boundary.planned = end - at + boundary.extra.count


cdef bint note_other(Boundary* boundary, int node) noexcept:
    cdef Extra* extra = &boundary.extra
    if boundary.belief == TRIED or extra.count == MOST_EXTRA:
        # Another program runs, or the round has changed.
        boundary.expected = NULL
        extra.count = 0
        return False
    if boundary.period < boundary.length and not boundary.shortened:
        end_with_round(boundary, node)
    extra.nodes[extra.count] = node
    extra.count += 1
    boundary.expected -= 1
    if boundary.min_ops < boundary.max_ops:
        boundary.min_ops += 1
        boundary.complete = boundary.planned = boundary.min_ops
    return True


cdef void try_round(Boundary* boundary) noexcept:
    boundary.belief = TRIED
    boundary.origin = boundary.position


cdef void doubt(Boundary* boundary) noexcept:
    boundary.doubts += boundary.doubts < 2 and boundary.belief != DOUBTFUL
    # A commit ended a batch that is not complete; `note_empty_commit` sees one behind a whole one.
    if boundary.completed:
        boundary.belief = DOUBTFUL
    else:
        try_round(boundary)
    boundary.pause = boundary.pause_end = 0


cdef bint note_empty_commit(Boundary* boundary) noexcept:
    if boundary.belief != DOUBTFUL:
        return False
    note_commit(boundary)
    try_round(boundary)
    plan_batch(boundary)
    return True


cdef void advance(Boundary* boundary, const Recording* recording) noexcept:
    cdef bint at_limit
    boundary.mismatched = False
    if boundary.max_ops == 1 or recording.num_nodes == 0:
        return
    boundary.last_position = boundary.position
    boundary.last_extra = boundary.extra
    boundary.position += recording.num_nodes - boundary.extra.count
    at_limit = boundary.period and boundary.complete == NEVER \
        and recording.num_nodes >= boundary.max_ops
    boundary.completed = at_limit or recording.num_nodes >= boundary.complete \
        or recording.num_nodes == boundary.planned
    boundary.restarts = 0
    if boundary.period and boundary.expected == NULL:
        boundary.mismatched = True
        doubt(boundary)
    elif boundary.completed and not boundary.shortened:
        if boundary.belief == TRIED:
            boundary.belief, boundary.doubts = CERTAIN, 0
    elif boundary.period and boundary.period < boundary.length:
        boundary.restarts = boundary.length // boundary.period
        boundary.origin += (boundary.position - boundary.origin) // boundary.period \
            * boundary.period
    plan_batch(boundary)
    if at_limit and boundary.resumes:
        boundary.key = (boundary.position - boundary.origin) % boundary.length
        boundary.resumes = False


cdef bint shows_addresses(Boundary* boundary, bint new_topology) noexcept:
    """Return whether the patched nodes of a batch count. Those of a new topology show nothing about
    addresses; but if there are many, boundaries do not repeat."""
    if new_topology:
        boundary.new_topologies = min(boundary.new_topologies + OFTEN, 2 * <unsigned int>MANY)
        return boundary.trace != NULL or boundary.new_topologies >= MANY
    boundary.new_topologies -= boundary.new_topologies > 0
    return True


cdef void start_trace(Boundary* boundary) noexcept:
    boundary.searched = False
    boundary.calm = 0
    boundary.trace = new_trace()
    if boundary.trace != NULL:
        boundary.trace.period = boundary.period


cdef void learn(Boundary* boundary, const Recording* recording, unsigned long long patched,
                bint new_topology) noexcept:
    cdef unsigned long long nodes = recording.num_nodes
    if boundary.max_ops == 1:
        return
    if not shows_addresses(boundary, new_topology):
        patched = 0
    if boundary.period == 0 and boundary.lost >= EVIDENCE:
        patched = nodes                 # topologies do not repeat, either
    boundary.patched = patched * (SOME if boundary.searched else FEW) > nodes
    if boundary.patched:
        # Another program's patches show little about the round.
        boundary.calm -= boundary.calm if boundary.belief == CERTAIN else min(boundary.calm, nodes)
        if boundary.trace == NULL and boundary.position >= boundary.pause_end:
            start_trace(boundary)
    elif boundary.trace != NULL:
        boundary.calm += nodes
        if boundary.calm > <unsigned long long>(2 * max(boundary.period, <int>TRIAL)):
            boundary.pause = 0
            if boundary.doubts:         # until nodes are patched there is no other search
                boundary.doubts = 2
            drop_trace(boundary)
    elif boundary.mismatched and boundary.doubts == 1:
        boundary.patched = True
        start_trace(boundary)
    if boundary.trace != NULL:
        if boundary.mismatched:
            boundary.trace.unlike = boundary.trace.count + nodes
        trace_batch(boundary.trace, recording, boundary.last_position, &boundary.last_extra)
        if boundary.period and boundary.trace.differing > MOST_DIFFERING:
            boundary.trace.period = 0
            lose_round(boundary)
        boundary.searched = boundary.trace.count > SEARCH
        if boundary.searched and boundary.trace.count > <unsigned long long>(
                SEARCH_ROUNDS * boundary.period):
            pause_search(boundary)


cdef void pause_search(Boundary* boundary) noexcept:
    if boundary.doubts:
        lose_round(boundary)
    boundary.pause = min(2 * max(boundary.pause, boundary.trace.count),
                         <unsigned long long>LONGEST_PAUSE)
    drop_trace(boundary)
    boundary.pause_end = boundary.position + boundary.pause


cdef void drop_trace(Boundary* boundary) noexcept:
    free_trace(boundary.trace)
    boundary.trace = NULL


cdef void forget(Boundary* boundary) noexcept:
    drop_trace(boundary)
    free(boundary.functions)
    boundary.functions = NULL
    lose_round(boundary)
