# C-level functions only: see history.pxd.
"""The history of a recorder: its last operations, in which the round of the program is found."""

from libc.stdlib cimport calloc, free

from cyrt.driver.cuda cimport CUfunction
from cyrt.graph.recording cimport Node, Recording, Use, use_end
from cyrt.runtime.state cimport OVERWRITE, READ, Block

cdef enum:
    SURE = 256                  # operations, at least, whose kept results are compared
    LONGEST_KEPT = 1024         # most operations of a round that only kept results and commits show

cdef unsigned long long last_first = 0      # no two histories have the same numbers


cdef History* new_history() noexcept:
    global last_first
    cdef History* history = <History*>calloc(1, sizeof(History))
    if history == NULL:
        return NULL
    history.steps = <Step*>calloc(LENGTH, sizeof(Step))
    if history.steps == NULL:
        free(history)
        return NULL
    last_first += <unsigned long long>1 << 40
    history.first = last_first
    return history


cdef void free_history(History* history) noexcept:
    if history != NULL:
        free(history.steps)
        free(history)


cdef inline unsigned long long mix(unsigned long long h, unsigned long long word) noexcept:
    h = (h ^ word) * 0x9e3779b97f4a7c15u
    return h ^ (h >> 29)


cdef void find_kept_results(History* history) noexcept:
    """Store which results of the batch before are still alive."""
    cdef Step* step
    while history.judged < history.count:
        step = step_at(history, history.judged)
        step.kept = step.result != NULL and step.result.generation == step.generation
        history.judged += 1


cdef void append_batch(History* history, const Recording* recording) noexcept:
    cdef const Node* node
    cdef const Use* use
    cdef const Use* end
    cdef Step* step
    cdef Block* block
    cdef unsigned long long since, now, h
    cdef bint known
    cdef int i
    find_kept_results(history)
    for i in range(recording.num_nodes):
        node = &recording.nodes[i]
        step = step_at(history, history.count)
        step.function = node.function
        step.result = NULL
        step.committed = step.kept = False
        step.longest = 0
        h = mix(<unsigned long long>node.kind, <size_t>node.function)
        known = True
        history.count += 1
        now = history.first + history.count
        use = &recording.uses[node.first_use]
        end = &recording.uses[use_end(recording, i)]
        while use != end:
            block = use.block
            if use.access != READ:
                step.result = block
                step.generation = use.generation
            if use.access != OVERWRITE:
                if not history.first < block.last_use <= now \
                        or block.last_generation != use.generation:
                    known = False       # it is new, or was used last before the history began
                else:
                    since = min(now - block.last_use, <unsigned long long>LONGEST + 1)
                    if step.longest < since <= LONGEST:
                        step.longest = <unsigned int>since
                    h = mix(h, since << 2 | <unsigned long long>use.access)
            block.last_use, block.last_generation = now, use.generation
            use += 1
        step.hash = h if known else 0


cdef void append_commit(History* history) noexcept:
    if history.count:
        step_at(history, history.count - 1).committed = True


cdef inline bint are_alike(const History* history, unsigned long long last, int period,
                           unsigned long long start) noexcept:
    """Compare an operation with the one a period before; `start` is the first that is compared."""
    cdef unsigned long long before = last - period
    cdef const Step* a = step_at(history, last)
    cdef const Step* b = step_at(history, before)
    if a.hash and a.hash == b.hash:
        return True
    return a.function == b.function and (b.hash == 0 or b.longest > before - start)


cdef int shortest_period(const History* history, int least, int equal) noexcept:
    """Return the shortest period from `least` on; 0: there is none."""
    cdef int known = <int>min(history.count - history.base, <unsigned long long>LENGTH)
    cdef int i, period, differing = 0
    cdef unsigned long long start, last = history.count - 1
    cdef CUfunction differed = step_at(history, last).function
    for period in range(least, min(<int>LONGEST, known - equal) + 1):
        start = history.count - equal - period
        # The operation that differed for the period before often differs for this one, too. To
        # compare the kernels alone is fastest.
        if step_at(history, last - differing - period).function != differed \
                or not are_alike(history, last - differing, period, start):
            continue
        for i in range(equal):
            if not are_alike(history, last - i, period, start):
                differing = i
                differed = step_at(history, last - i).function
                break
        else:
            return period
    return 0


cdef int find_period(const History* history, int equal) noexcept:
    cdef int i, period = 0, longest = 1
    while longest > period:
        period = shortest_period(history, longest, equal)
        if period == 0:
            return 0
        for i in range(1, equal + 1):
            longest = max(longest, <int>step_at(history, history.count - i).longest)
    return period


cdef bint kept_results_repeat(const History* history, int period, int length) noexcept:
    cdef int i
    for i in range(1, length + 1):
        if step_at(history, history.judged - i).kept \
                != step_at(history, history.judged - i - period).kept:
            return False
    return True


cdef bint commits_repeat(const History* history, int period, int length) noexcept:
    cdef int i
    for i in range(1, length + 1):
        if step_at(history, history.judged - i).committed \
                != step_at(history, history.judged - i - period).committed:
            return False
    return True


cdef int find_multiple(const History* history, int period) noexcept:
    cdef int multiple = period, length, found = 0
    cdef int known = <int>min(history.judged, LENGTH - (history.count - history.judged))
    while multiple <= LONGEST_KEPT:
        length = max(multiple, <int>SURE)
        if length + multiple > known:
            break
        if kept_results_repeat(history, multiple, length):
            if length + 2 * multiple <= known \
                    and commits_repeat(history, multiple, length + multiple):
                return multiple
            if found == 0:
                found = multiple
        multiple += period
    return found if found else period
