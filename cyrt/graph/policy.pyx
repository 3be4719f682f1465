# C-level functions, but for a class of tests: see policy.pxd.
"""The policy: at which operations batches end, and which results need memory of their own."""

from libc.stdlib cimport calloc, free
from libc.string cimport memset

from cyrt.driver.cuda cimport CUfunction
from cyrt.graph cimport history as histories, recording as recordings
from cyrt.graph.history cimport (
    LONGEST, History, HistoryStep, append_batch, append_commit, find_multiple, find_period,
    free_history, new_history, step_at,
)
from cyrt.graph.recording cimport Operation, Recording, Use, use_end
from cyrt.runtime.allocation cimport allocate_zeroed
from cyrt.runtime.sequences cimport begin_sequences, free_sites, has_site, new_sites, set_site
from cyrt.runtime.state cimport OVERWRITE, READ, Block, StreamState

cdef enum:
    FEW = 50                # few nodes of a batch are patched: at most 1/FEW
    RESTLESS = 6            # the value of `restless` from which on a round is searched for
    MOST_RESTLESS = 2 * RESTLESS
    YOUNG = 3               # launches of a topology after which its addresses should have settled
    EQUAL = 128             # operations, at first, that must equal those a period before
    MOST_EQUAL = 4096       # operations, at most: their number doubles if a round does not last
    SURE = 16               # operations that must match where a known round may go on
    SEARCH = 32768          # operations that make a search long
    COMPARISONS = 64        # by searches that compare lives, for each operation that is launched
    LONGEST_PAUSE = 16 * SEARCH
    TURNS = 4               # launches that a Trace compares: a plan has several executable graphs
    BEYOND = 8              # nodes that a batch may have beyond its limit, since groups are joined


cdef void set_limit(Policy* policy, StreamState* stream, int max_ops) noexcept:
    policy.stream = stream
    policy.max_ops = max_ops
    policy.equal = EQUAL
    policy.restless = 1             # a history begins
    plan_batch(policy)


cdef int find_cut(const Round* round, int position) noexcept:
    """Return the first cut that is not before the position."""
    cdef int i = 0
    while round.cuts[i] < position:
        i += 1
    return round.cuts[i]


cdef bint is_within(const Round* round, int position) noexcept:
    """Return whether no batch of the round begins at the position."""
    return position != 0 and find_cut(round, position) != position


cdef void plan_batch(Policy* policy) noexcept:
    policy.first = policy.num_extra = policy.unlike = 0
    policy.complete = policy.max_ops
    policy.expected = NULL
    policy.trying = policy.state == SEARCHING and policy.known[0] != NULL
    if policy.state == FOLLOWING:
        policy.expected = policy.round.kernels + policy.start
        policy.complete = min(policy.max_ops,
                              find_cut(policy.round, policy.start + 1) - policy.start)


cdef void free_round(Round* round) noexcept:
    if round.sites != NULL:
        free_sites(round.sites)
    free(round.kernels)
    free(round.cuts)
    free(round)


cdef void remove_known(Policy* policy, const Round* round) noexcept:
    """Take a round out of the known ones, whose trials end."""
    cdef int i, kept = 0
    for i in range(KNOWN):
        if policy.known[i] != round:
            policy.known[kept] = policy.known[i]
            kept += 1
    for i in range(kept, KNOWN):
        policy.known[i] = NULL
    memset(policy.matching, 0, sizeof(policy.matching))


cdef void follow(Policy* policy, Round* round, int position, int nodes) noexcept:
    """Follow a round. The batch has that many nodes, and the next one is the round's operation at
    the position."""
    cdef int i
    if policy.round != NULL:
        policy.round.entry = policy.left
    remove_known(policy, round)
    if policy.known[KNOWN - 1] != NULL:
        free_round(policy.known[KNOWN - 1])
    for i in range(KNOWN - 1, 0, -1):
        policy.known[i] = policy.known[i - 1]
    policy.known[0] = policy.round = round
    policy.state = FOLLOWING
    policy.stream.site = NULL       # until the next batch begins
    policy.trying = False
    policy.doubts = policy.num_extra = 0
    policy.first = nodes
    policy.start = position - nodes
    policy.expected = round.kernels + policy.start
    policy.complete = min(policy.max_ops, nodes + find_cut(round, position) - position)


cdef void stop_following(Policy* policy) noexcept:
    policy.state = SEARCHING
    policy.round = NULL
    policy.stream.site = NULL
    policy.start = 0
    policy.resumes = False
    policy.doubts = policy.num_extra = 0
    policy.expected = NULL
    policy.complete = policy.max_ops
    policy.trying = policy.known[0] != NULL


cdef void lose_round(Policy* policy) noexcept:
    cdef Round* round = policy.round
    round.entry = policy.left
    policy.next_search = 0
    if round.followed < 2 * <unsigned long long>round.length:
        policy.equal = min(2 * policy.equal, <int>MOST_EQUAL)
        remove_known(policy, round)
        free_round(round)
    stop_following(policy)


cdef bint continue_trial(Policy* policy, int known, int trial, CUfunction function) noexcept:
    """Compare the operation with a round's next one in a trial. Return whether enough operations
    have matched."""
    cdef const Round* round = policy.known[known]
    cdef int entry = 0 if trial else round.entry
    cdef int* matching = &policy.matching[known][trial]
    if function != round.kernels[(entry + matching[0]) % round.length]:
        matching[0] = 0
        if function != round.kernels[entry]:
            return False
    matching[0] += 1
    return matching[0] >= min(<int>SURE, round.period) and (
        policy.state == SEARCHING or policy.num_extra >= SURE // 2)


cdef bint try_known(Policy* policy, int node, CUfunction function) noexcept:
    """Return whether a known round is followed from now on."""
    cdef Round* round
    cdef int i, trial, position
    for i in range(KNOWN):
        round = policy.known[i]
        if round == NULL:
            break
        if round == policy.round:
            continue
        for trial in range(1 if round.entry == 0 else 0, 2):
            if continue_trial(policy, i, trial, function):
                position = policy.matching[i][trial] + (0 if trial else round.entry)
                follow(policy, round, (position - 1) % round.length + 1, node + 1)
                return True
    return False


cdef void end_with_round(Policy* policy, int node) noexcept:
    """End a batch of several short rounds with the one that this extra node is in, unless it
    becomes short and follows another such batch."""
    cdef int period = policy.round.period
    cdef int nodes = ((policy.start + node) // period + 1) * period - policy.start + 1
    if 2 * nodes >= policy.max_ops or not policy.was_extended:
        policy.complete = min(policy.complete, nodes)


cdef void note_operation(Policy* policy, int node, CUfunction function) noexcept:
    if policy.trying and try_known(policy, node, function):
        return
    # An operation of several kernels may continue after the limit: see the recorder.
    if policy.state == SEARCHING or node >= policy.max_ops or function == policy.expected[node]:
        return
    if policy.doubts == ON_TRIAL:
        stop_following(policy)
        return
    if policy.num_extra == 0:
        if policy.doubts == 0:
            policy.left = (policy.start + node) % policy.round.length
        policy.trying = policy.known[1] != NULL
        if policy.trying and try_known(policy, node, function):
            return
    policy.extra[policy.num_extra] = node
    policy.num_extra += 1
    if policy.doubts + policy.num_extra > MOST_EXTRA:
        policy.unlike = node + 1
        lose_round(policy)
        return
    policy.expected -= 1
    policy.stream.position -= 1
    policy.complete = min(policy.complete + 1, policy.max_ops)
    if policy.round.period < policy.round.length and policy.num_extra == 1:
        end_with_round(policy, node)


cdef void find_sites(Policy* policy, const Recording* recording) noexcept:
    """Store which results of the round outlive the batch."""
    cdef const Use* use
    cdef bint outlives
    cdef int i, node, extra = 0, position = policy.start + policy.first
    for node in range(policy.first, recording.num_nodes):
        if extra < policy.num_extra and policy.extra[extra] == node:
            extra += 1
            continue
        if position >= policy.round.length:
            break
        outlives = False
        for i in range(recording.nodes[node].first_use, use_end(recording, node)):
            use = &recording.uses[i]
            outlives = outlives or (use.access != READ and use.block.generation == use.generation)
        set_site(policy.round.sites, position, outlives)
        position += 1


cdef void append_history(Policy* policy, const Recording* recording, bint early) noexcept:
    cdef History* history
    if policy.history == NULL:
        if (policy.restless == 0 and policy.unfit == 0) or policy.operations < policy.pause_end:
            return
        policy.history = new_history()
        policy.next_search = 0
    history = policy.history
    if history == NULL:             # there is no memory: batches repeat less often
        return
    if policy.state == FOLLOWING and policy.restless:
        find_sites(policy, recording)
    if policy.unlike:
        history.base = history.count + policy.unlike
    append_batch(history, recording, early, policy.fuses)


cdef void try_last(Policy* policy) noexcept:
    """Follow the last round again after a commit, until an operation is not the expected one."""
    if policy.known[0] != NULL:
        follow(policy, policy.known[0], policy.known[0].entry, 0)
        policy.left = policy.start
        policy.resumes = is_within(policy.round, policy.start)
        policy.doubts = ON_TRIAL


cdef void go_on(Policy* policy, int nodes, bint early) noexcept:
    """Set the position of the next batch."""
    cdef Round* round = policy.round
    cdef int expected = nodes - policy.first - policy.num_extra
    cdef int position = policy.start + nodes - policy.num_extra
    round.followed += expected
    if round.followed >= 4 * <unsigned long long>round.length:
        policy.equal = EQUAL
    policy.doubts += policy.num_extra
    if expected >= policy.doubts:
        policy.doubts = 0
    policy.was_extended = policy.num_extra > 0
    if round.period < round.length and (early or policy.was_extended):
        policy.start = position % round.period
        policy.resumes = False
    else:
        policy.start = position % round.length
        policy.resumes = is_within(round, policy.start)


cdef void advance(Policy* policy, const Recording* recording) noexcept:
    cdef bint early = recording.num_nodes < policy.complete
    policy.ended_early = early
    if policy.max_ops == 1 or recording.num_nodes == 0:
        return
    append_history(policy, recording, early)
    policy.operations += recording.num_nodes
    if policy.state == FOLLOWING:
        go_on(policy, recording.num_nodes, early)
    elif early:
        try_last(policy)
    plan_batch(policy)


cdef void note_commit(Policy* policy) noexcept:
    if policy.history != NULL:
        append_commit(policy.history)
    if policy.state == SEARCHING:
        try_last(policy)
    elif policy.round.period < policy.round.length:
        policy.start %= policy.round.period
        policy.resumes = False
    plan_batch(policy)


cdef bint used_this_memory(Policy* policy, const Recording* recording) noexcept:
    """Return whether one of the last such batches had the same kernels on the same memory."""
    cdef unsigned long long h = recording.num_nodes
    cdef int i
    for i in range(recording.num_nodes):
        h = (h ^ <size_t>recording.nodes[i].function) * 0x9e3779b97f4a7c15u
    for i in range(recording.num_uses):
        h = (h ^ <size_t>recording.uses[i].block) * 0x9e3779b97f4a7c15u
        h ^= h >> 29
    for i in range(MEMORIES):
        if policy.memories[i] == h:
            return True
    policy.memories[policy.next_memory] = h
    policy.next_memory = (policy.next_memory + 1) % MEMORIES
    return False


cdef void pause_search(Policy* policy) noexcept:
    policy.pause = min(max(2 * policy.pause, <unsigned long long>SEARCH),
                       <unsigned long long>LONGEST_PAUSE)
    policy.pause_end = policy.operations + policy.pause
    drop_history(policy)


cdef void drop_history(Policy* policy) noexcept:
    free_history(policy.history)
    policy.history = NULL


cdef bint learn(Policy* policy, const Recording* recording, unsigned long long patched,
                unsigned long long launches, bint unfit) noexcept:
    if policy.max_ops == 1:
        return False
    if unfit:
        policy.unfit = min(policy.unfit + 2, <int>MOST_RESTLESS)
    else:
        policy.unfit = max(policy.unfit - 1, 0)
    if launches and (patched * FEW <= <unsigned long long>recording.num_nodes
                     or (policy.state == FOLLOWING and used_this_memory(policy, recording))):
        policy.restless = max(policy.restless - 1, 0)
    elif launches >= YOUNG or (launches == 0 and not policy.ended_early):
        policy.restless += 1 if policy.state == FOLLOWING and launches == 0 else 2
        policy.restless = min(policy.restless, <int>MOST_RESTLESS)
    if policy.restless == 0 and policy.unfit == 0:
        policy.pause = policy.pause_end = 0
        drop_history(policy)
    if policy.history == NULL or (policy.restless < RESTLESS and not compares_lives(policy)):
        return False
    if policy.history.count > SEARCH:
        pause_search(policy)
        return False
    return policy.history.count >= policy.next_search


cdef bint compares_lives(const Policy* policy) noexcept:
    """Return whether the next search compares lives: the last one that did is paid for."""
    return policy.unfit >= RESTLESS and policy.operations >= policy.paid


cdef bint search(Policy* policy) noexcept:
    cdef History* history = policy.history
    cdef unsigned long long count = history.count
    cdef unsigned long long before = histories.comparisons
    cdef bint lives = compares_lives(policy)
    cdef int period, known, multiple = 0
    policy.next_search = count + min(count // 8, <unsigned long long>LONGEST // 4)
    known = policy.round.period if policy.state == FOLLOWING else 0
    # A loop in a long round repeats itself, too, but not for as long as the round.
    period = find_period(history, max(policy.equal, known))
    if lives:
        multiple = find_multiple(history, period, True) if period else 0
        policy.paid = policy.operations + (histories.comparisons - before) // COMPARISONS
    if period == 0 or (known and known % period == 0):
        period = known
    if period and multiple == 0 and policy.restless >= RESTLESS:
        multiple = find_multiple(history, period, False) or period
    return multiple != 0 and multiple != known and choose(policy, multiple)


cdef void complete_kept(History* history, int period) noexcept:
    """Set `kept` of the last batch's results, which have not outlived another one yet."""
    cdef unsigned long long i
    for i in range(history.judged, history.count):
        if i >= history.base + period:
            step_at(history, i).kept = step_at(history, i - period).kept
        else:
            step_at(history, i).kept = step_at(history, i).result != NULL \
                and step_at(history, i).result.generation == step_at(history, i).generation


cdef int operations_since_commit(const History* history, int period) noexcept:
    """Return the number of operations since the program's last commit, which begins a round."""
    cdef int since = 0
    while since < period and not step_at(history, history.count - 1 - since).committed:
        since += 1
    return since % period


cdef bint commits_repeat(const History* history, int period) noexcept:
    """Return whether the commits in the round are, as far as is known, those in the one before."""
    cdef unsigned long long known = history.count - history.base
    cdef int i
    if known < <unsigned long long>period:
        return False
    for i in range(1, <int>min(known - period, <unsigned long long>period) + 1):
        if step_at(history, history.count - i).committed \
                != step_at(history, history.count - i - period).committed:
            return False
    return True


cdef inline const HistoryStep* step_of(const History* history, int period, int since,
                                       int position) noexcept:
    """Return the last operation at a position in a round that began so many operations ago."""
    position %= period
    return step_at(history, history.count - since + position - (period if position >= since else 0))


cdef void set_cuts(Round* round, const History* history, int since, bint at_commits,
                   int limit) noexcept:
    """Cut a round that began so many operations ago."""
    cdef int at = 0, end, i, parts, part, count = 0
    while at < round.length:
        end = 0                     # the last commit within the limit, or else the next one
        for i in range(at + 1, round.length + 1):
            if end and i > at + limit:
                break
            if i == round.length or (
                    at_commits and step_of(history, round.period, since, i - 1).committed):
                end = i
        parts = (end - at + limit - 1) // limit
        part = (end - at + parts - 1) // parts
        for i in range(1, parts):
            round.cuts[count] = at + part * i
            count += 1
        round.cuts[count] = end
        count += 1
        at = end


cdef Round* new_round(Policy* policy, int period, int since) noexcept:
    """Return the round of that period that began so many operations ago; NULL: there is no
    memory."""
    cdef History* history = policy.history
    cdef Round* round = <Round*>calloc(1, sizeof(Round))
    cdef int i, room
    if round == NULL:
        return NULL
    round.period = period
    round.length = period * max(1, policy.max_ops // period)
    room = round.length + policy.max_ops + BEYOND
    round.kernels = <CUfunction*>calloc(room, sizeof(CUfunction))
    round.cuts = <int*>calloc(round.length, sizeof(int))
    round.sites = new_sites(policy.stream)
    if round.kernels == NULL or round.cuts == NULL or round.sites == NULL:
        free_round(round)
        return NULL
    for i in range(room):
        round.kernels[i] = step_of(history, period, since, i).function
    for i in range(round.length):
        set_site(round.sites, i, step_of(history, period, since, i).kept)
    set_cuts(round, history, since, period > policy.max_ops and commits_repeat(history, period),
             policy.max_ops)
    return round


cdef int rotation(const Round* round, const Round* other) noexcept:
    """Return the position at which the round's operations are those of the other one; -1: they
    are others."""
    cdef int start, i
    if round.period != other.period:
        return -1
    for start in range(round.period):
        for i in range(round.period):
            if round.kernels[(start + i) % round.period] != other.kernels[i]:
                break
        else:
            return start
    return -1


cdef bint choose(Policy* policy, int period) noexcept:
    """Follow the round of that period, or a known one that has the same operations."""
    cdef History* history = policy.history
    cdef int i, start, since = operations_since_commit(history, period)
    cdef Round* round
    cdef Round* old = policy.round
    complete_kept(history, period)
    round = new_round(policy, period, since)
    if round == NULL:
        return False
    if old != NULL and period % old.period == 0:    # the new one contains it
        policy.round = NULL
        remove_known(policy, old)
        free_round(old)
    for i in range(KNOWN):
        start = rotation(policy.known[i], round) if policy.known[i] != NULL else -1
        if start >= 0:
            free_round(round)
            round = policy.known[i]
            since = (since + start) % period
            break
    policy.pause = policy.pause_end = 0
    policy.restless = max(policy.restless, RESTLESS - 1)    # until its sites are found
    follow(policy, round, since, 0)
    policy.resumes = is_within(round, since)
    plan_batch(policy)
    return True


cdef void forget(Policy* policy) noexcept:
    cdef Round* round
    policy.state = SEARCHING
    policy.round = NULL
    while policy.known[0] != NULL:
        round = policy.known[0]
        remove_known(policy, round)
        free_round(round)
    drop_history(policy)


cdef class Trace:
    """Operations that the policy cuts into batches, without a driver, a stream or memory. For
    tests.

    Parameters
    ----------
    max_ops : int
        The most operations of a batch.
    num_blocks : int
        Number of blocks of memory that the operations use.

    Attributes
    ----------
    batches : list
        For each batch that has ended the numbers of its kernels, the blocks of each of these, and
        how many of them have other blocks than at the most similar of their last launches.
    resumes : bool
        True if the batch is the rest of one that a commit ended early.
    """

    cdef Policy policy
    cdef StreamState state
    cdef Recording* recording
    cdef Block* blocks
    cdef int num_blocks
    cdef dict launched          # the blocks of each topology at its launches
    cdef list kernels, uses     # those of the batch that has not ended
    cdef readonly list batches

    def __cinit__(self, int max_ops, int num_blocks):
        self.recording = recordings.new_recording()
        self.blocks = <Block*>allocate_zeroed(num_blocks * sizeof(Block))
        self.num_blocks = num_blocks
        self.launched, self.kernels, self.uses, self.batches = {}, [], [], []
        set_limit(&self.policy, &self.state, max_ops)

    def __dealloc__(self):
        forget(&self.policy)
        recordings.destroy(self.recording)
        free(self.blocks)

    def record(self, int kernel, tuple reads, int written):
        """Record a kernel that reads blocks, and overwrites one."""
        cdef Operation operation
        cdef Use* uses
        cdef int i, node = self.recording.num_nodes
        cdef tuple blocks = (*reads, written)
        if not all(0 <= each < self.num_blocks for each in blocks):
            raise IndexError(f"expected blocks below {self.num_blocks}, got {blocks}")
        memset(&operation, 0, sizeof(Operation))
        operation.function = <CUfunction><size_t>(kernel + 1)
        recordings.reserve(self.recording, 0, 0)
        uses = recordings.reserve_uses(self.recording, len(blocks))
        for i in range(len(blocks)):
            uses[i].block = &self.blocks[blocks[i]]
            uses[i].access = READ if i < len(reads) else OVERWRITE
            uses[i].generation = uses[i].block.generation
        recordings.append(self.recording, &operation, len(blocks))
        self.kernels.append(kernel)
        self.uses.append(blocks)
        self.state.nodes = node + 1
        if self.policy.trying or (self.policy.expected != NULL
                                  and operation.function != self.policy.expected[node]):
            note_operation(&self.policy, node, operation.function)
        if node + 1 >= self.policy.complete:
            self.launch()

    @property
    def resumes(self):
        return self.policy.resumes

    def site(self):
        """Return the number of the site of the next operation's result; 0: it has none, and is the
        next one in its sequence."""
        return self.state.site.number if has_site(&self.state) else 0

    def free(self, int block):
        """Free a block: an operation that uses it from now on uses other memory."""
        self.blocks[block].generation += 1

    def commit(self):
        """End the batch as a commit of the program does."""
        if self.recording.num_nodes:
            self.launch()
        else:
            note_commit(&self.policy)
            self.begin()

    cdef void begin(self) noexcept:
        begin_sequences(&self.state,
                        self.policy.round.sites if self.policy.state == FOLLOWING else NULL,
                        self.policy.start, self.policy.resumes)

    cdef int launch(self) except -1:
        cdef tuple kernels = tuple(self.kernels), uses = tuple(self.uses), last
        cdef list earlier = self.launched.setdefault(kernels, [])
        cdef unsigned long long launches = len(earlier)
        cdef int patched = min([sum([one != other for one, other in zip(uses, last)])
                                for last in earlier[-TURNS:]], default=self.recording.num_nodes)
        earlier.append(uses)
        self.batches.append((kernels, uses, patched))
        self.kernels, self.uses = [], []
        advance(&self.policy, self.recording)
        if learn(&self.policy, self.recording, patched, launches, False):
            search(&self.policy)
        recordings.clear(self.recording)
        self.begin()
        return 0
