# C-level functions only: see rounds.pxd.
"""The round of a program: the operations after which it begins to repeat itself."""

from libc.stdlib cimport calloc, free

from cyrt.driver.cuda cimport CUfunction
from cyrt.graph.recording cimport Node, Recording, Use, use_end
from cyrt.runtime.state cimport OVERWRITE, READ, Block

cdef enum:
    LENGTH = 16384              # operations that are stored, a power of two
    LONGEST = 8192              # most operations of a round
    EQUAL = 128                 # operations, at least, that must equal those a period before
    FIRST_LOOK = 320            # operations before the first search
    LONGEST_KEPT = 1024         # most operations of a round that only kept results and commits show


cdef Trace* new_trace() noexcept:
    cdef Trace* trace = <Trace*>calloc(1, sizeof(Trace))
    if trace != NULL:
        trace.steps = <Step*>calloc(LENGTH, sizeof(Step))
        trace.hashes = <unsigned long long*>calloc(2 * LENGTH, sizeof(unsigned long long))
        if trace.steps == NULL or trace.hashes == NULL:
            free_trace(trace)
            return NULL
    return trace


cdef void free_trace(Trace* trace) noexcept:
    if trace != NULL:
        free(trace.steps)
        free(trace.hashes)
        free(trace)


cdef inline const unsigned long long* last_hash(const Trace* trace) noexcept:
    """Return the address of the last operation's hash, which those of the earlier ones precede."""
    return &trace.hashes[LENGTH + (trace.count - 1) % LENGTH]


cdef inline Step* step_at(const Trace* trace, unsigned long long number) noexcept:
    return &trace.steps[number % LENGTH]


cdef void find_kept_results(Trace* trace) noexcept:
    """Store which results of the batch before are still alive."""
    cdef Step* step
    while trace.judged < trace.count:
        step = step_at(trace, trace.judged)
        step.kept = step.result != NULL and step.result.generation == step.generation
        trace.judged += 1


cdef void trace_batch(Trace* trace, const Recording* recording, unsigned long long first,
                      const Extra* extra) noexcept:
    cdef const Node* node
    cdef const Use* use
    cdef const Use* end
    cdef Step* step
    cdef Block* block
    cdef unsigned long long since, start, h, now = first
    cdef unsigned int longest
    cdef int i, extras = 0
    if trace.count == 0:
        trace.start = first
    start = trace.start
    if extra.count:             # one of them may have been confused with an operation of the round
        trace.unlike = trace.count + recording.num_nodes
    find_kept_results(trace)
    for i in range(recording.num_nodes):
        if extras < extra.count and extra.nodes[extras] == i:
            extras += 1
            continue
        node = &recording.nodes[i]
        step = step_at(trace, trace.count)
        step.function = node.function
        step.result = NULL
        step.committed = False
        h = mix(<unsigned long long>node.kind, <size_t>node.function)
        longest = 0
        now += 1
        use = &recording.uses[node.first_use]
        end = &recording.uses[use_end(recording, i)]
        while use != end:
            block = use.block
            if use.access != READ:
                step.result = block
                step.generation = use.generation
            if use.access != OVERWRITE:
                # Memory that is new, or whose last use is another stream's or precedes the trace,
                # has no such distance.
                since = now - block.last_use if start < block.last_use <= now \
                    and block.last_generation == use.generation else 0
                if since > LONGEST:
                    since = LONGEST + 1
                elif since > longest:
                    longest = <unsigned int>since
                h = mix(h, since << 2 | <unsigned long long>use.access)
            block.last_use, block.last_generation = now, use.generation
            use += 1
        step.longest = longest
        trace.hashes[trace.count % LENGTH] = trace.hashes[LENGTH + trace.count % LENGTH] = h
        trace.count += 1
        # The operands of the first round were last used before the trace began.
        if trace.period and trace.count > trace.unlike + 2 * <unsigned long long>trace.period \
                and h != last_hash(trace)[-trace.period]:
            trace.differing += 1


cdef bint repeats(const Trace* trace, int period, int length, int* differing) noexcept:
    """Return whether each of the last `length` operations equals the one a period before; else set
    `differing` to the number of operations after one that does not. That one is compared first,
    since it often differs again when the next period is tried: else a run of equal operations would
    be compared for each of them."""
    cdef const unsigned long long* last = last_hash(trace)
    cdef int i
    if differing[0] < length and last[-differing[0]] != last[-differing[0] - period]:
        return False
    for i in range(length):
        if last[-i] != last[-i - period]:
            differing[0] = i
            return False
    return True


cdef void trace_commit(Trace* trace) noexcept:
    if trace.count:
        step_at(trace, trace.count - 1).committed = True
        trace.commit = trace.count


cdef void fill_expected(const Trace* trace, CUfunction* functions, int period, int since,
                  int count) noexcept:
    cdef int i
    for i in range(count):
        functions[i] = step_at(trace, trace.count - period
                               + (period - since + i) % period).function


cdef int operations_since_commit(const Trace* trace) noexcept:
    """Return how many operations were stored since the program's last commit, or LENGTH."""
    return <int>min(trace.count - trace.commit, <unsigned long long>LENGTH) if trace.commit \
        else LENGTH


cdef bint commits_repeat(const Trace* trace, int period, int length) noexcept:
    cdef int i
    for i in range(1, length + 1):
        if step_at(trace, trace.count - i).committed \
                != step_at(trace, trace.count - i - period).committed:
            return False
    return True


cdef int commit_distance(const Trace* trace, int period) noexcept:
    cdef int since = operations_since_commit(trace), apart = 1
    if trace.count < 2 * <unsigned long long>period:
        return 0
    while apart < period - since and not step_at(trace, trace.commit - 1 - apart).committed:
        apart += 1
    return apart if since <= apart < period - since and period % apart == 0 \
        and commits_repeat(trace, apart, period) else 0


cdef bint repeats_for(const Trace* trace, int period, int length) noexcept:
    cdef int differing = 0
    return <unsigned long long>(length + period) <= min(trace.count, <unsigned long long>LENGTH) \
        and repeats(trace, period, length, &differing)


cdef bint commits_repeat_for(const Trace* trace, int period, int length) noexcept:
    return operations_since_commit(trace) < length and commits_repeat(trace, period, length)


cdef bint kept_results_repeat(const Trace* trace, int period, int length) noexcept:
    cdef int i
    for i in range(1, length + 1):
        if step_at(trace, trace.judged - i).kept != step_at(trace, trace.judged - i - period).kept:
            return False
    return True


cdef int shortest_period(const Trace* trace, int least) noexcept:
    cdef int period = least, length, differing = 0
    cdef int known = <int>min(trace.count, <unsigned long long>LENGTH)
    cdef int most = min(<int>LONGEST, known - EQUAL)
    cdef const unsigned long long* last = last_hash(trace)
    while period <= most:
        if last[-period] == last[0]:        # seldom
            length = max(period, <int>EQUAL)
            if length + period <= known and repeats(trace, period, length, &differing):
                return period
        period += 1
    return 0


cdef int longest_use(const Trace* trace, int length) noexcept:
    cdef unsigned int longest = 0
    cdef int i
    for i in range(1, length + 1):
        longest = max(longest, step_at(trace, trace.count - i).longest)
    return <int>longest


cdef int find_period(Trace* trace) noexcept:
    cdef int period, longer, multiple, length, since, kept = 0
    cdef int known = <int>min(trace.judged, <unsigned long long>LENGTH - EQUAL)
    if trace.count < trace.next_look or trace.count < FIRST_LOOK:
        return 0
    trace.next_look = trace.count + min(trace.count // 8, <unsigned long long>LENGTH // 4)
    longer = shortest_period(trace, 1)
    period = 0
    while longer > period:              # more operations are compared then, too
        period = longer
        longer = shortest_period(trace, max(period, longest_use(trace, max(period, <int>EQUAL))))
    if period == 0:
        return 0
    since = operations_since_commit(trace)
    multiple = period
    while multiple <= LONGEST_KEPT:
        length = max(multiple, 2 * <int>EQUAL)
        if length + multiple > known:
            break
        # Once `kept` is found, only multiples count at which the last commit repeats.
        if (kept == 0 or since >= length + multiple
                or step_at(trace, trace.count - 1 - since - multiple).committed) \
                and kept_results_repeat(trace, multiple, length):
            # Two commits may have that distance by chance.
            if length + 2 * multiple <= known \
                    and commits_repeat(trace, multiple, length + multiple):
                return multiple
            if kept == 0:
                kept = multiple
        multiple += period
    return kept if kept else period
