"""The history of a recorder: its last operations, in which the round of the program is found."""

from libc.limits cimport UINT_MAX
from libc.stdlib cimport free, malloc

from cyrt.driver.cuda cimport CUfunction
from cyrt.graph.recording cimport Node, Recording, Use, use_end
from cyrt.runtime.state cimport OVERWRITE, READ, Block

cdef enum:
    SURE = 256                  # operations, at least, whose kept results are compared
    LONGEST_KEPT = 1024         # most operations of a round that only lives and commits show
    COMPARED = 2 * LONGEST_KEPT     # operations, at most, whose lives are compared
    OFTEN = 3                   # results that lived for long, on average, at a position of a round

cdef unsigned long long comparisons = 0
cdef unsigned long long last_first = 0      # no two histories have the same numbers


def num_comparisons():
    """Return how many operations all searches have compared. For tests."""
    return comparisons


# A history that is not used: searches follow one another, and its steps have a megabyte.
cdef History* unused = NULL


cdef History* new_history() noexcept:
    global last_first, unused
    cdef History* history = unused
    unused = NULL
    if history == NULL:
        history = <History*>malloc(sizeof(History))
        if history == NULL:
            return NULL
        history.steps = <HistoryStep*>malloc(LENGTH * sizeof(HistoryStep))
        if history.steps == NULL:
            free(history)
            return NULL
    history.count = history.base = history.judged = 0
    last_first += <unsigned long long>1 << 40
    history.first = last_first
    return history


cdef void free_history(History* history) noexcept:
    global unused
    if history == NULL:
        return
    if unused == NULL:
        unused = history
        return
    free(history.steps)
    free(history)


cdef inline unsigned long long mix(unsigned long long h, unsigned long long word) noexcept:
    h = (h ^ word) * 0x9e3779b97f4a7c15u
    return h ^ (h >> 29)


cdef inline void note_life(HistoryStep* step, unsigned long long after, bint committed) noexcept:
    """Store whether a result is alive after so many operations."""
    if step.result == NULL:
        return
    if step.result.generation == step.generation:
        step.lived = <unsigned int>after
    else:
        step.died = min(step.died, <unsigned int>after + committed)


cdef void find_kept_results(History* history, int nodes, bint committed, bint lives) noexcept:
    """Store which results of the batch before are still alive after so many more operations."""
    cdef HistoryStep* step
    while history.judged < history.count:
        step = step_at(history, history.judged)
        step.kept = step.result != NULL and step.result.generation == step.generation
        if lives:
            note_life(step, history.count + nodes - history.judged, committed)
        history.judged += 1


cdef void append_batch(History* history, const Recording* recording, bint committed,
                       bint lives) noexcept:
    cdef const Node* node
    cdef const Use* use
    cdef const Use* end
    cdef HistoryStep* step
    cdef Block* block
    cdef unsigned long long since, now, h
    cdef bint known
    cdef int i
    find_kept_results(history, recording.num_nodes, committed, lives)
    for i in range(recording.num_nodes):
        node = &recording.nodes[i]
        step = step_at(history, history.count)
        step.function = node.function
        step.result = NULL
        step.committed = step.kept = False
        step.longest = step.lived = 0
        step.died = UINT_MAX
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
    for i in range(recording.num_nodes if lives else 0):
        note_life(step_at(history, history.judged + i), recording.num_nodes - i, committed)
    if committed:
        append_commit(history)


cdef void append_commit(History* history) noexcept:
    if history.count:
        step_at(history, history.count - 1).committed = True


cdef inline bint are_alike(const History* history, unsigned long long last, int period,
                           unsigned long long start) noexcept:
    """Compare an operation with the one a period before; `start` is the first that is compared."""
    cdef unsigned long long before = last - period
    cdef const HistoryStep* a = step_at(history, last)
    cdef const HistoryStep* b = step_at(history, before)
    if a.hash and a.hash == b.hash:
        return True
    return a.function == b.function and (b.hash == 0 or b.longest > before - start)


cdef int shortest_period(const History* history, int least, int equal) noexcept:
    """Return the shortest period from `least` on; 0: there is none."""
    global comparisons
    cdef int known = <int>min(history.count - history.base, <unsigned long long>LENGTH)
    cdef int i, period, differing = 0
    cdef unsigned long long start, last = history.count - 1
    cdef CUfunction differed = step_at(history, last).function
    for period in range(least, min(<int>LONGEST, known - equal) + 1):
        start = history.count - equal - period
        comparisons += 1
        # The operation that differed for the period before often differs for this one, too. To
        # compare the kernels alone is fastest.
        if step_at(history, last - differing - period).function != differed \
                or not are_alike(history, last - differing, period, start):
            continue
        for i in range(equal):
            if not are_alike(history, last - i, period, start):
                differing = i
                differed = step_at(history, last - i).function
                comparisons += i
                break
        else:
            comparisons += equal
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


cdef bint events_repeat(const History* history, int period, int length, bint commits) noexcept:
    """Return whether, at this period, the program commits, or else keeps results."""
    global comparisons
    cdef const HistoryStep* a
    cdef const HistoryStep* b
    cdef int i
    for i in range(1, length + 1):
        comparisons += 1
        a = step_at(history, history.judged - i)
        b = step_at(history, history.judged - i - period)
        if a.committed != b.committed if commits else a.kept != b.kept:
            return False
    return True


cdef void find_youngest(const History* history, int period, int count,
                        unsigned int* youngest) noexcept:
    """Store after how few operations a result died, of all those that are some periods apart."""
    global comparisons
    cdef int i
    for i in range(period):
        youngest[i] = UINT_MAX
    for i in range(count):
        youngest[i % period] = min(youngest[i % period],
                                   step_at(history, history.count - 1 - i).died)
    comparisons += count


cdef bint lives_repeat(const History* history, int period, int multiple, int count,
                       const unsigned int* youngest) noexcept:
    """Return whether all results some multiples apart may have lived equally long, and most of
    those that lived for longer than others are such multiples apart."""
    global comparisons
    cdef unsigned int[LONGEST_KEPT] lived, died     # the most, and the least, of these results
    cdef const HistoryStep* step
    cdef int i, position, num_long = 0, num_positions = 0
    for i in range(multiple):
        lived[i], died[i] = 0, UINT_MAX
    for i in range(count):
        comparisons += 1
        step = step_at(history, history.count - 1 - i)
        position = i % multiple
        if step.lived >= youngest[i % period]:
            num_long += 1
            num_positions += lived[position] < youngest[i % period]
        lived[position] = max(lived[position], step.lived)
        died[position] = min(died[position], step.died)
        if lived[position] >= died[position]:
            return False
    return num_long != 0 and num_long >= OFTEN * num_positions


cdef int find_multiple(const History* history, int period, bint lives) noexcept:
    cdef unsigned int[LONGEST_KEPT] youngest
    cdef int multiple = period, length, found = 0
    cdef int known = <int>min(history.judged, LENGTH - (history.count - history.judged))
    cdef int compared = <int>min(history.count - history.base, <unsigned long long>COMPARED)
    if lives and period <= LONGEST_KEPT:
        find_youngest(history, period, compared, youngest)
    while multiple <= LONGEST_KEPT:
        length = max(multiple, <int>SURE)
        if length + multiple > known:
            break
        if events_repeat(history, multiple, length, False) and not (
                lives and not lives_repeat(history, period, multiple, compared, youngest)):
            if length + 2 * multiple <= known \
                    and events_repeat(history, multiple, length + multiple, True):
                return multiple
            if found == 0:
                found = multiple
        multiple += period
    return found
