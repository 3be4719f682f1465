"""Recording operations for a stream, and launching them as graphs."""

import threading
from collections import deque

from cpython.exc cimport PyErr_CheckSignals, PyErr_SetInterrupt
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from libc.string cimport memcpy

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

from cyrt import settings
from cyrt.driver.frames import outside_line
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport READY, check, cu, disturbances, faulted, is_emulated, process
from cyrt.graph cimport (
    direct as directly, fusion as fusions, hazards, policy as policies, recording as recordings,
    replay as replays,
)
from cyrt.graph import commit as _commit, completion as _completion
from cyrt.graph.commit cimport (
    IN_FLIGHT, begin_batch, block_of, commit, commit_at_end, commit_now, is_continued,
    is_unfinished, make_room, new_epoch, now, num_recorded, raise_failure, release_all_ended,
    stop_replay, tracing,
)
from cyrt.graph.commit import encoders
from cyrt.graph.completion cimport handling
from cyrt.graph.early cimport allow_early_load, may_load_early
from cyrt.graph.loss cimport inherit
from cyrt.graph.plan_cache cimport drop_unreachable
from cyrt.graph.ranges cimport resolve
from cyrt.graph.recording cimport (
    COPY, EMPTY, KERNEL, LAUNCH, TEMPLATE, Node, Recording, Tensors,
)
from cyrt.graph.replay cimport Replay
from cyrt.graph.replay_call cimport (
    admit_calls, geometry_of, is_quiet, is_same_use, next_call, num_uses_of, params_of,
    replay_copied, uses_of,
)
from cyrt.graph.scope cimport Scope, innermost
from cyrt.runtime.captures cimport (
    Kept, keep_block, keep_object, kept_by, refuse_recorded, release_ended, settle,
)
from cyrt.runtime.device cimport (
    contexts, current_ordinal, enter_quietly, leave_quietly, verify,
)
from cyrt.runtime.order cimport (
    end_direct, flush_outside, has_exported_memory, order_behind, order_outside, order_undeclared,
    refuse_freed, use,
)
from cyrt.runtime.outside cimport is_outside
from cyrt.runtime.pacing cimport pace_turn, wait_for_room
from cyrt.runtime.poison cimport mark_valid, poison, poisoned, refuse_poisoned
from cyrt.runtime.state cimport (
    FOREIGN_MEMORY, OVERWRITE, READ, Access, Block, StreamState,
)
from cyrt.runtime.stream cimport flush_current, report_unraisable
from cyrt.runtime.stream_state cimport is_captured, refuse_captured
from cyrt.runtime.taping cimport num_tapes
from cyrt.runtime.waiting cimport wait_all, wait_state
from cyrt.runtime.submission cimport (
    end_submission, priority_thread, release_priority, request_priority, try_submission,
    wait_for_turn, yield_to_priority_thread,
)

cdef enum:
    MOST_FAILURES = 16          # attempts to launch what a detached encoder recorded

# The class CommandEncoder; kernels/seam sets it.
encoder_class = None
# The Scripts that ended encoders have left, by the address of the stream's state.
cdef dict left_scripts = {}


cdef class Scripts:
    """The scripts of an ended encoder, and the settings that they depend on."""
    cdef Replay replay
    cdef int max_ops
    cdef size_t max_bytes
    cdef bint early_loads
    cdef unsigned int fuse_after

    def __dealloc__(self):
        if process == READY:
            fusions.abandon_all(self.replay.scripts)
        replays.forget(&self.replay)


cdef Recorder encoder_of(StreamState* state):
    cdef Recorder encoder
    if state.encoder != NULL:
        return <Recorder>state.encoder
    encoder = encoder_class.__new__(encoder_class)
    prepare(encoder, state, None, 0)
    if state.encoder == NULL:       # no finalizer has created one meanwhile
        record_for(encoder, state)
        encoders[<size_t>state] = encoder
    return <Recorder>state.encoder


cdef int attach(Recorder self, StreamState* state, graphs, int max_ops) except -1:
    cdef Scripts left
    if state.explained:
        raise RuntimeError("a function that is explained makes no CommandEncoder for its stream")
    prepare(self, state, graphs, max_ops)
    while state.encoder != NULL:        # the new one replaces it
        if (<Recorder>state.encoder).stream_ is not None:
            raise ValueError("another CommandEncoder was made for the stream")
        detach(<Recorder>state.encoder)
        PyErr_CheckSignals()            # Ctrl-C has ended its wait
    left = left_scripts.pop(<size_t>state, None)
    if left is not None and self.replay.enabled and has_settings(self, left):
        replays.exchange_scripts(&self.replay, &left.replay)
    record_for(self, state)
    return 0                            # If the scripts were not taken, they are dropped now.


cdef bint is_fused() except -1:
    """Return whether batches are fused. On the emulated device a launch costs what its threads
    compute: less than the compiler does, unless one asks for it."""
    fuse = settings.get("CYRT_FUSE")
    return not is_emulated() if fuse is None else fuse


cdef int prepare(Recorder self, StreamState* state, graphs, int max_ops) except -1:
    self.graphs = settings.get("CYRT_GRAPHS") if graphs is None else graphs
    self.blocking = settings.get("CYRT_LAUNCH_BLOCKING")
    policies.set_limit(&self.policy, state, 1 if self.blocking or not self.graphs or state.thread
                       else max_ops or settings.get("CYRT_MAX_OPS_PER_GRAPH"))
    self.direct = not self.graphs and not self.blocking
    self.early_loads = settings.get("CYRT_EARLY_LOADS")
    self.replay.enabled = settings.get("CYRT_REPLAY") != "0"
    self.fuse_after = settings.get("CYRT_FUSE_AFTER")
    if not is_fused():
        self.fuse_after = 0
    self.policy.fuses = self.fuse_after != 0
    self.replay.verified = settings.get("CYRT_REPLAY") == "verify"
    if self.max_bytes == 0:
        self.max_bytes = <size_t>settings.get("CYRT_MAX_MB_PER_GRAPH") << 20
    if settings.get("CYRT_NVTX") and _commit.nvtx is None:
        import nvtx
        _commit.nvtx = nvtx
    self.in_flight = deque()
    self.launched = [None] * IN_FLIGHT
    self.thread = threading.get_ident()
    return 0


cdef bint has_settings(Recorder self, Scripts left) noexcept:
    return (self.policy.max_ops == left.max_ops and self.max_bytes == left.max_bytes
            and self.early_loads == left.early_loads and self.fuse_after == left.fuse_after)


cdef void leave_scripts(Recorder self) noexcept:
    """Leave the scripts to the next encoder that the program makes for the stream."""
    cdef StreamState* state = self.state
    cdef Scripts left
    if self.stream_ is None or self.policy.max_ops == 1 or self.replay.scripts == NULL \
            or self.replay.script != NULL or self.replay.num_readers or faulted[state.ordinal] \
            or contexts[state.ordinal].epoch != state.epoch:
        return
    try:
        left = Scripts.__new__(Scripts)     # The collector does not run: it has no references.
        left.max_ops, left.max_bytes = self.policy.max_ops, self.max_bytes
        left.early_loads, left.fuse_after = self.early_loads, self.fuse_after
        replays.exchange_scripts(&left.replay, &self.replay)
        left_scripts[<size_t>state] = left
    except MemoryError:
        pass


cdef int forget_left_scripts(int ordinal) except -1:
    # A reset has emptied the list of the device's states, but the states stay allocated.
    for address in list(left_scripts):
        if (<StreamState*><size_t>address).ordinal == ordinal:
            left_scripts.pop(address, None)         # may run finalizers
    return 0


cdef void record_for(Recorder self, StreamState* state) noexcept:
    """Make the recorder record for the stream from now on."""
    state.recording_epoch = new_epoch()
    state.encoder = <void*>self
    self.state = state
    if self.policy.max_ops > 1:
        begin_batch(self)


cdef bint launch_rest(Recorder self) noexcept:
    """Launch what is recorded, and wait for it. Return False if Ctrl-C ended the wait, or another
    thread has detached the encoder meanwhile."""
    cdef StreamState* state = self.state
    cdef int failures = 0
    # Other threads may record while this one waits, so repeat until nothing is left. An error may
    # be that of another stream, whose operations had to be launched first: each is raised once.
    while state.encoder == <void*>self and failures < MOST_FAILURES and (
            state.pending or state.submitting or state.failed or self.in_flight):
        try:
            commit(state, b"the encoder ends")
            if self.in_flight:
                wait_state(state)   # objects kept for batches live until these have ended
        except KeyboardInterrupt:
            PyErr_SetInterrupt()        # the code that runs next is interrupted instead
            if state.encoder == <void*>self:
                encoders[<size_t>state] = self      # the stream keeps it, and nothing is lost
            return False
        except BaseException as error:
            # After a fault the next use of the device raises the error; a reset has ended all work.
            if faulted[state.ordinal] or contexts[state.ordinal].epoch != state.epoch:
                break
            report_unraisable(error)
            failures += 1
    if state.encoder == <void*>self and state.pending and failures == MOST_FAILURES:
        report_unraisable(RuntimeError(
            "operations that were recorded for the stream could not be launched, and are lost with "
            f"their results: {num_recorded(self)}"))
    return state.encoder == <void*>self


cdef void detach(Recorder self) noexcept:
    cdef StreamState* state = self.state
    cdef int i, entered
    if process != READY:            # the interpreter exits, or this is a forked child
        self.closed = True
        return
    if not launch_rest(self):
        return
    entered = enter_quietly(state.ordinal, state.epoch)
    for i in range(IN_FLIGHT):
        if self.marks[i] != NULL and entered >= 0:
            cu.cuEventDestroy(self.marks[i])
        self.marks[i] = NULL
    leave_quietly(entered)
    self.ended = self.batches
    encoders.pop(<size_t>state, None)
    state.encoder = NULL
    state.pending = state.grouping = state.failed = False
    state.recording_epoch = new_epoch()
    state.nodes = -1
    state.site = NULL
    self.closed = True
    leave_scripts(self)
    self.in_flight = None           # finalizers run when the stream is consistent


cdef int join_group(Recorder self) except -1:
    """Append an empty node that waits for the group; all later operations wait for that node."""
    cdef Recording* recording = self.recording
    cdef Operation join = Operation(EMPTY, 0, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, 0,
                                      NULL)
    if recording.num_nodes > recording.group:
        recordings.reserve(recording, 0, 0)
        recordings.add_barrier(recording)
        recordings.append(recording, &join, 0)
    recording.group = recording.num_nodes
    return 0


cdef int leave_group(Recorder self, void* scope) except -1:
    if self.group_scope != scope:
        return 0
    try:
        if self.recording.group >= 0:
            join_group(self)
    except MemoryError:
        self.joined = True      # the next operation waits for the group instead
    self.recording.group = -1
    self.group_scope = NULL
    return 0


cdef int choose_group(Recorder self, bint alone) except -1:
    """Join the open group if the caller is not in its block, or the operation is ordered against
    all others. Begin a group if the caller is in a `concurrent()` block."""
    cdef void* scope = innermost(self, True)
    if scope != self.group_scope:
        leave_group(self, self.group_scope)
        self.group_scope = scope
        if scope != NULL:
            self.recording.group = self.recording.num_nodes
    elif alone and scope != NULL:
        join_group(self)
    return 0


cdef bint is_deferred(Recorder self) noexcept:
    return self.deferred or (self.batches_open and innermost(self, False) != NULL)


cdef bint goes_to_limit(Recorder self) noexcept:
    """Return whether the caller's batch ends at a limit only: the caller is in a `batch()` block in
    which none was reached yet."""
    cdef void* scope = innermost(self, False) if self.batches_open else NULL
    return scope != NULL and (<Scope>scope).limits == self.limits


cdef bint at_limit(Recorder self) noexcept:
    """Return whether the batch has reached a limit, and count those that have."""
    cdef bint reached = self.bytes >= self.max_bytes \
        or num_recorded(self) >= self.policy.max_ops
    self.limits += reached
    return reached


cdef const char* why_it_ends(Recorder self) noexcept:
    """Return the reason of the commit of a batch that is complete."""
    if self.bytes >= self.max_bytes:
        return b"the batch uses as much memory as CYRT_MAX_MB_PER_GRAPH allows"
    if num_recorded(self) >= self.policy.max_ops:
        return b"the batch has the most operations"
    return b"a part of the program's round is complete"


cdef int cut(Recorder self) except -1:
    """Commit if the batch ends before the operation that comes."""
    cdef int nodes = num_recorded(self)
    cdef bint full = self.bytes >= self.max_bytes
    # If it is complete, the commit at the end of the operation before would have had to wait.
    if nodes and (full or nodes >= self.policy.complete) and (
            at_limit(self) or not goes_to_limit(self)):
        commit(self.state, why_it_ends(self))
    if tracing and num_recorded(self) == 0:
        self.timing.begun = now()
    return 0


cdef inline int note_foreign(Recorder self, list foreign) except -1:
    """Keep the Buffers of outside memory alive, since the recording uses it. This creates no
    object: the collector could run, and a finalizer could commit."""
    self.state.outside = True
    if self.foreign is None:
        self.foreign, self.spare_foreign = self.spare_foreign, None
        self.foreign.extend(foreign)
    elif PyList_GET_SIZE(foreign) > 1 \
            or PyList_GET_ITEM(foreign, 0) != PyList_GET_ITEM(
                self.foreign, PyList_GET_SIZE(self.foreign) - 1):
        self.foreign.extend(foreign)
    return 0


cdef int add_foreign(Recorder self, list foreign, Use* uses, int num_uses) except -1:
    """Keep the Buffers of outside memory alive, and find the memory's hazards by address.

    The exported variables of a module have many addresses: an operation that uses them waits for
    all earlier operations, and all later operations wait for it.
    """
    cdef Block* block
    cdef int i
    note_foreign(self, foreign)
    for i in range(num_uses):
        block = uses[i].block
        if block.hazard.epoch == self.state.recording_epoch and block.kind == FOREIGN_MEMORY \
                and not self.ranges.joined:
            pass                # it stores the hazards of its range already
        elif is_outside(block) and block.address == 0:
            self.joined = True
        elif is_outside(block):
            uses[i].block = resolve(&self.ranges, block, &self.joined)
            self.recording.once = self.recording.once or uses[i].block != block
    return 0


cdef inline bint has_ranges(Recorder self, const Use* uses, int num_uses) except -1:
    """Note the addresses of the tensors among the uses. Return whether each block stores the
    hazards of its own memory, and none of them overlaps another one."""
    cdef Block* block
    cdef int i
    for i in range(num_uses):
        block = uses[i].block
        if block.kind == FOREIGN_MEMORY and (
                block.hazard.epoch != self.state.recording_epoch or self.ranges.joined) \
                and resolve(&self.ranges, block, &self.joined) != block:
            return False
    return not self.joined


cdef int order(Recorder self, const Use* uses, int num_uses, bint opaque) except -1:
    """Check once what the operation waits for. Return 1 if all of that is launched and the stream
    waits for it; 0: call again."""
    cdef StreamState* state = self.state
    cdef int i
    if state.behind and order_behind(state) == 0:
        return 0
    if opaque and order_undeclared(state) == 0:
        return 0
    for i in range(num_uses):
        if uses[i].block.kind != FOREIGN_MEMORY \
                and use(uses[i].block, state, uses[i].access) == 0:     # else the launch orders it
            return 0
    return 1


cdef int order_again(Recorder self, const Use* uses, int num_uses, bint opaque) except -1:
    """Repeat `order`, which returned 0, until nothing had to be launched. If another thread keeps
    using the memory, request priority, so that it lets this thread go first."""
    cdef int looks = 1
    try:
        while order(self, uses, num_uses, opaque) == 0:
            looks += 1
            if looks > 1:
                request_priority()
    finally:
        if looks > 1:
            release_priority()
    return 0


cdef int check_owners(Recorder self, const Use* uses, int num_uses) except -1:
    """Raise if other threads, which could run, have freed the memory or closed the encoder."""
    cdef int i
    if self.state.encoder != <void*>self:
        raise RuntimeError("the CommandEncoder was closed while the operation was recorded")
    for i in range(num_uses):
        if uses[i].generation != uses[i].block.generation:
            refuse_freed()
    return 0


cdef bint spread_poison(const Use* uses, int num_uses) noexcept:
    """Return whether a kernel uses lost memory. It is then not launched, and what it would have
    written is marked as lost, too."""
    cdef unsigned int number = 0
    cdef int i
    for i in range(num_uses):
        if uses[i].access != OVERWRITE and uses[i].block.poison:
            number = uses[i].block.poison
            break
    for i in range(num_uses):
        if number and uses[i].access != READ:
            poison(uses[i].block, number, uses[i].block.generation)
    return number != 0


cdef void mark_overwritten(const Use* uses, int num_uses) noexcept:
    """Mark what a kernel that was launched overwrites as valid."""
    cdef int i
    for i in range(num_uses):
        if uses[i].access == OVERWRITE and uses[i].generation == uses[i].block.generation:
            mark_valid(uses[i].block)


cdef list make_ready(Recorder self, const Use* uses, int num_uses, list foreign, bint opaque):
    """Launch the batch if it ends before the operation that comes, and order what is not ordered
    yet. Other threads may run. Return `foreign`."""
    cdef StreamState* state = self.state
    cdef str where = outside_line() if self.blocking else None
    cdef bint continued = is_continued(self)
    if priority_thread and not continued:
        yield_to_priority_thread(state)
    if foreign is not None and captured_stream(foreign) != NULL:
        refuse_captured(captured_stream(foreign))
    if opaque and foreign is None and has_exported_memory[state.ordinal]:
        foreign = [None]        # it may use exported memory
    while True:
        if continued:       # the batch does not end here, and nothing may come between
            pass
        elif foreign is not None and not is_deferred(self):
            # Earlier nodes may use that memory: a commit puts them first.
            commit(state, b"an operation on other libraries' memory comes")
        else:
            cut(self)
        if not continued and (
                num_recorded(self) + 1 >= self.policy.complete
                or (foreign is not None and not is_deferred(self))):
            make_room(self)
        if order(self, uses, num_uses, opaque) == 0:
            order_again(self, uses, num_uses, opaque)
        if foreign is not None and self.spare_foreign is None:
            self.spare_foreign = []     # The collector may run, and a finalizer may record.
        # Other threads that waited, too, may have filled the batch meanwhile.
        elif continued or num_recorded(self) < self.policy.max_ops or state.capturing:
            break
    check_owners(self, uses, num_uses)
    self.where = where
    return foreign


cdef void mark_pending(Recorder self) noexcept:
    self.state.pending = True
    self.state.idle = False
    if handling and handling == PyThread_get_thread_ident():
        self.handled = self.state.recording_epoch


cdef int commit_if_complete(Recorder self, list foreign) except -1:
    if is_unfinished(self) or num_recorded(self) == 0:
        return 0
    if foreign is not None and not is_deferred(self):
        return commit_now(self, b"other libraries use the memory")
    if num_recorded(self) < self.policy.complete:
        return 0
    if not at_limit(self) and goes_to_limit(self):
        policies.go_to_limit(&self.policy)
    elif self.policy.max_ops == 1:
        return commit_now(self, b"operations are launched one at a time")
    else:
        commit_at_end(self, why_it_ends(self))
    return 0


cdef int add_node(Recorder self, const Operation* operation, Use* uses, int num_uses,
                  list foreign, bint opaque) except -1:
    """Append the operation to the recording, and return its node."""
    cdef StreamState* state = self.state
    cdef Recording* recording
    cdef Use* stored
    cdef int i, edges, node
    if self.replay.script != NULL:
        stop_replay(self)
    recording = self.recording
    stored = recordings.reserve_uses(recording, num_uses)
    for i in range(num_uses):       # faster than memcpy: they are few
        stored[i] = uses[i]
    if foreign is not None:
        add_foreign(self, foreign, uses, num_uses)
        recording.once = recording.once or operation.tensors == NULL
        if operation.tensors != NULL:
            recordings.reserve_tensors(&self.tensors, operation.tensors.count)
    if state.grouping:
        choose_group(self, opaque or self.joined)
    edges = hazards.prepare(uses, num_uses, state, &self.bytes)
    recordings.reserve(recording, operation.param_bytes, edges)
    hazards.depend(recording, uses, num_uses)
    if opaque or self.joined:
        recordings.add_barrier(recording)
        self.joined = False
    node = recordings.append(recording, operation, num_uses)
    if operation.tensors != NULL:
        recordings.keep_tensors(&self.tensors, operation.tensors)
    if poisoned:
        inherit(recording, node, self.launching)
    # Kernels of a group have no order among them; operations of arrays, and copies, have one.
    if recording.group < 0 or operation.kind == COPY or operation.kind == TEMPLATE or (
            operation.kind == KERNEL and (<LoadedFunction>operation.owner).ordered):
        hazards.note(uses, num_uses, node)
    if operation.early != NULL and self.early_loads \
            and may_load_early(recording, state, uses, operation.early):
        allow_early_load(recording, operation.early.word)
        self.num_early_loads += 1
    return node


cdef int replay_or_add(Recorder self, const Operation* operation, Use* uses, int num_uses,
                       list foreign, bint opaque) except -1:
    """Replay or append the operation, which is ordered, and return its node."""
    cdef bint replayed, replaying = self.replay.script != NULL
    if (replaying or (self.replay.scripts != NULL and self.recording.num_nodes == 0)) \
            and not (opaque or poisoned or self.state.grouping or self.joined) \
            and (foreign is None or (operation.tensors != NULL
                                     and has_ranges(self, uses, num_uses))):
        if foreign is not None:
            note_foreign(self, foreign)
            recordings.reserve_tensors(&self.tensors, operation.tensors.count)
        hazards.prepare(uses, num_uses, self.state, &self.bytes)
        if replaying:
            replayed = replays.play(&self.replay, self.state, operation, uses, num_uses, True,
                                    &self.bytes, &self.num_early_loads) \
                or replays.go_on(&self.replay, self.state, operation, uses, num_uses,
                                 &self.bytes, &self.num_early_loads)
        else:
            replayed = replays.begin(&self.replay, self.state, operation, uses, num_uses,
                                     &self.bytes, &self.num_early_loads)
        if replayed:
            if foreign is not None:
                recordings.keep_tensors(&self.tensors, operation.tensors)
            return self.replay.played - 1
    return add_node(self, operation, uses, num_uses, foreign, opaque)


cdef bint replay_unordered(Recorder self, const Operation* operation, const Use* uses,
                           int num_uses, list foreign, bint opaque) noexcept:
    """Replay the operation if it is the next one of the script, and has nothing to be ordered
    behind."""
    return (self.replay.played + 1 < self.policy.complete and foreign is None and not opaque
            and is_quiet(self) and replays.play(
                &self.replay, self.state, operation, uses, num_uses, False, &self.bytes,
                &self.num_early_loads))


cdef int list_operation(Recorder self, const Operation* operation) except -1:
    cdef tuple grid = None, block = None
    cdef unsigned int smem = 0
    if operation.geometry != NULL:
        grid = operation.geometry.grid[0], operation.geometry.grid[1], operation.geometry.grid[2]
        block = operation.geometry.block[0], operation.geometry.block[1], \
            operation.geometry.block[2]
        smem = operation.geometry.smem
    self.listed.append((
        <int>operation.kind, None if operation.owner == NULL else <object>operation.owner, grid,
        block, smem, (<const char*>operation.params)[:operation.param_bytes]))
    return 0


cdef int record(Recorder self, const Operation* operation, Use* uses, int num_uses,
                list foreign, bint opaque) except -1:
    cdef StreamState* state = self.state
    cdef Block* block
    cdef bint ready
    cdef int i, node = num_recorded(self)
    if self.replay.played == 0 or not replay_unordered(self, operation, uses, num_uses, foreign,
                                                       opaque):
        if self.listed is not None:
            return list_operation(self, operation)
        # Most operations change only their own recording.
        ready = not (opaque or priority_thread or state.behind or foreign is not None
                     or node == 0 or node + 1 >= self.policy.complete
                     or self.bytes >= self.max_bytes)
        if state.failed and not is_continued(self):
            raise_failure(self)
        verify(state.ordinal, state.epoch, b"cuLaunchKernel")
        if state.capturing:
            refuse_captured(state)
        for i in range(num_uses):
            block = uses[i].block
            uses[i].generation = block.generation
            ready = ready and hazards.is_ordered(block, state, uses[i].access)
        if not ready:
            foreign = make_ready(self, uses, num_uses, foreign, opaque)
            if state.capturing:
                refuse_captured(state)
        # From here on no other thread and no finalizer can commit.
        node = replay_or_add(self, operation, uses, num_uses, foreign, opaque)
    if self.policy.trying or (
            self.policy.expected != NULL and node < self.policy.max_ops
            and operation.function != self.policy.expected[node]):
        policies.note_operation(&self.policy, node, operation.function)
        replays.refuse_calls(&self.replay)
    if self.replay.script != NULL and (self.replay.next == NULL
                                       or self.replay.disturbances != disturbances):
        admit_calls(self)
    state.nodes = node + 1
    if num_tapes:
        hazards.note_writes(uses, num_uses)
    mark_pending(self)
    self.operations += 1
    if node + 1 >= self.policy.complete or foreign is not None:
        commit_if_complete(self, foreign)
    return 0


cdef int take_turn(Recorder self, Use* uses, int num_uses, bint opaque, bint outside,
                   const char* reason) except -1:
    """Begin the stream's turn for work that is put on it directly, behind all that it uses. Return
    whether it uses lost memory: then the turn has ended, and what it would have written is lost.
    `outside`: the stream is another library's, which does not capture it now."""
    cdef StreamState* state = self.state
    cdef bint continued = is_continued(self), asked = outside
    cdef int i
    if num_tapes:
        hazards.note_writes(uses, num_uses)
    for i in range(num_uses):
        uses[i].generation = uses[i].block.generation
    while True:
        if state.failed and not continued:
            raise_failure(self)
        verify(state.ordinal, state.epoch, b"cuLaunchKernel")
        if state.capturing or not asked:        # asking is a call of the driver
            refuse_captured(state)
        asked = False
        if priority_thread and not continued:
            yield_to_priority_thread(state)
        if order(self, uses, num_uses, opaque) == 0:
            order_again(self, uses, num_uses, opaque)
        check_owners(self, uses, num_uses)
        if state.pending:
            commit(state, reason)
        elif not continued and wait_for_room(state) == 0:
            continue
        elif outside and flush_outside(state, state.ordinal) == 0:
            continue
        elif try_submission(state):
            break
        else:
            wait_for_turn(state)
    if poisoned and spread_poison(uses, num_uses):
        end_submission(state)
        return 1
    if continued:       # it has waited for no room
        pace_turn(state)
    return 0


cdef int launch_directly(Recorder self, LoadedFunction function, const Geometry* geometry,
                         const char* params, Use* uses, int num_uses, bint opaque,
                         bint outside) except -1:
    """Launch a kernel directly on the stream, without a graph. `outside`: it uses memory of the
    library that the stream belongs to."""
    cdef StreamState* state = self.state
    cdef CUresult result = CUDA_SUCCESS
    cdef int entered
    if take_turn(self, uses, num_uses, opaque, outside,
                 b"a kernel comes that is launched without a graph"):
        return 0
    entered = -1 if state.owned else enter_quietly(state.ordinal, state.epoch)
    if outside:
        result = order_outside(state, state.ordinal)
    if result == CUDA_SUCCESS:
        result = directly.launch_kernel_directly(state, function, geometry, params, 0, NULL)
    if poisoned and result == CUDA_SUCCESS:
        mark_overwritten(uses, num_uses)
    end_direct(state)
    leave_quietly(entered)
    self.operations += 1
    return check(result, b"cuLaunchKernel", state.ordinal)


cdef bint allows_calls(Recorder self) noexcept:
    return not (self.state.capturing or is_captured(self.state)
                or (self.state.grouping and innermost(self, True) != NULL))


cdef int call_library(Recorder self, LibraryCall function, void* call, unsigned int commands,
                      Use* uses, int num_uses) except? -1:
    cdef StreamState* state = self.state
    cdef int entered, status = -1
    if take_turn(self, uses, num_uses, False, False, b"a library is called between batches"):
        return 0
    entered = enter_quietly(state.ordinal, state.epoch)
    if entered >= 0:
        with nogil:
            status = function(call)
        state.put += commands
        if poisoned and status == 0:
            mark_overwritten(uses, num_uses)
    end_direct(state)
    leave_quietly(entered)
    if entered < 0:
        verify(state.ordinal, state.epoch, b"cuCtxPushCurrent")
        raise RuntimeError("a library was not called: the device's context cannot be made current")
    self.operations += 1
    return status


cdef StreamState* captured_stream(list foreign) noexcept:
    """Return the stream on which the library of some of the memory captures now; NULL: none."""
    cdef Block* block
    for buffer in foreign:
        block = block_of(buffer)
        if block != NULL and is_captured(block.home):
            return block.home
    return NULL


cdef int launch_captured(StreamState* stream, LoadedFunction function, const Geometry* geometry,
                         const char* params, Use* uses, int num_uses, bint opaque,
                         unsigned int flags, const unsigned int* cluster) except -1:
    """Launch a kernel that becomes a part of another library's graph: see runtime/captures."""
    cdef Kept* kept
    cdef CUresult result
    cdef bint waited = True
    cdef int i, entered
    release_ended()
    for i in range(num_uses):
        uses[i].generation = uses[i].block.generation
    if opaque:
        refuse_recorded(stream.ordinal, True)
        wait_all(stream.ordinal)
    while waited:               # other threads could run
        waited = False
        refuse_recorded(stream.ordinal, opaque)
        for i in range(num_uses):
            if uses[i].generation != uses[i].block.generation:
                refuse_freed()
            if uses[i].block.kind != FOREIGN_MEMORY and settle(uses[i].block):
                waited = True
    for i in range(num_uses):
        if uses[i].access != OVERWRITE:
            refuse_poisoned(uses[i].block)
    verify(stream.ordinal, stream.epoch, b"cuLaunchKernel")
    kept = kept_by(stream)
    keep_object(kept, function)
    for i in range(num_uses):
        if uses[i].block.kind != FOREIGN_MEMORY:
            keep_block(kept, uses[i].block)
    entered = enter_quietly(stream.ordinal, stream.epoch)
    result = directly.launch_kernel_directly(stream, function, geometry, params, flags, cluster)
    leave_quietly(entered)
    return check(result, b"cuLaunchKernel", stream.ordinal)


cdef bint launches_at_once(Recorder self) noexcept:
    return not (is_deferred(self) or self.state.grouping or self.state.explained or self.blocking
                or tracing or self.listed is not None or is_continued(self) or self.state.capturing)


cdef int launch_on_producer(StreamState* producer, LoadedFunction function,
                            const Geometry* geometry, const char* params, Use* uses,
                            int num_uses) except -1:
    return launch_directly(encoder_of(producer), function, geometry, params, uses, num_uses, False,
                           True)


cdef inline bint ends_with(const Tensors* kept, const Tensors* tensors) noexcept:
    """Return whether the tensors that were kept last are these."""
    cdef int i, first = kept.count - tensors.count
    if first < 0:
        return False
    for i in range(tensors.count):
        if kept.objects[first + i] != tensors.objects[i]:
            return False
    return True


cdef bint hold_tensors(Recorder self, const Use* uses, int num_uses, list foreign,
                       const Tensors* tensors) except -1:
    if (self.foreign is None and self.spare_foreign is None) \
            or not has_ranges(self, uses, num_uses):
        return False
    if not ends_with(&self.tensors, tensors):
        recordings.reserve_tensors(&self.tensors, tensors.count)
        recordings.keep_tensors(&self.tensors, tensors)
    note_foreign(self, foreign)
    return True


cdef bint replay_call(Recorder self, unsigned long long key, LoadedFunction function,
                      const Use* uses, int num_uses, const char* params,
                      const Geometry* geometry) noexcept:
    """Replay a call if it is the next node of the script. Its parameters and geometry are
    copied."""
    cdef StreamState* stream = self.state
    cdef Node* node = next_call(stream, key)
    cdef Use* own
    cdef int i
    if node == NULL or node.serial != function.serial or num_uses_of(stream, node) != num_uses:
        return False
    own = uses_of(stream, node)
    for i in range(num_uses):
        if own[i].access != uses[i].access or not is_same_use(&own[i], uses[i].block, stream):
            return False
    memcpy(params_of(stream, node), params, node.param_bytes)
    geometry_of(stream)[0] = geometry[0]
    return replay_copied(stream, <PyObject*>function, own, num_uses)


cdef int record_kernel(Recorder self, LoadedFunction function, const Geometry* geometry,
                       const char* params, Use* uses, int num_uses, list foreign, bint opaque,
                       unsigned int flags, const unsigned int* cluster,
                       const EarlyLoad* early, unsigned long long key=LAUNCH,
                       const Tensors* tensors=NULL) except -1:
    cdef Operation operation
    cdef StreamState* captured = NULL
    if foreign is not None and self.listed is None and not self.state.explained:
        captured = captured_stream(foreign)
    if captured != NULL:
        return launch_captured(captured, function, geometry, params, uses, num_uses, opaque, flags,
                               cluster)
    if key == LAUNCH and (flags or early != NULL or opaque or foreign is not None):
        key = 0
    elif key and foreign is None and self.replay.next != NULL \
            and self.state.encoder == <void*>self \
            and replay_call(self, key, function, uses, num_uses, params, geometry):
        return 0
    if self.direct and foreign is None and flags == 0:
        return launch_directly(self, function, geometry, params, uses, num_uses, opaque, False)
    operation.kind = KERNEL
    operation.flags = flags | recordings.PROGRAMMATIC if function.programmatic else flags
    operation.cluster = cluster
    operation.function = function.handle
    operation.serial = function.serial
    operation.layout = &function.layout
    operation.geometry = geometry
    operation.params = params
    operation.param_bytes = function.layout.nbytes
    operation.owner = <void*>function
    operation.early = early
    operation.key = key
    operation.tensors = tensors
    if self.replay.called:
        replays.check_call(&self.replay, &operation, uses, num_uses)
    return record(self, &operation, uses, num_uses, foreign, opaque)


cdef int keep(Recorder self, object obj) except -1:
    if self.kept is None:
        self.kept = []
    self.kept.append(obj)
    mark_pending(self)
    return 0


cdef void end_encoder(StreamState* state) noexcept:
    detach(<Recorder>state.encoder)


cdef int record_copy(StreamState* state, Block* target, Access access, CUdeviceptr to,
                     Block* source, CUdeviceptr start, size_t nbytes) except -1:
    """Record a copy within the device."""
    cdef Operation operation = Operation(
        COPY, 0, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL)
    cdef unsigned long long[3] params
    cdef Use[2] uses
    params[0], params[1], params[2] = to, start, nbytes
    operation.params = params
    operation.param_bytes = sizeof(params)
    uses[0].block, uses[0].access = source, READ
    uses[1].block, uses[1].access = target, access
    return record(encoder_of(state), &operation, uses, 2, None, False)


def _end_handler():
    """Drop what was kept for batches that have ended, and launch the recordings to which a handler
    has added work."""
    failed = None
    release_all_ended()
    for address, each in encoders.copy().items():       # finalizers may add or end some
        encoder = each if isinstance(each, Recorder) else each()
        if encoder is None or (<Recorder>encoder).handled != (
                <Recorder>encoder).state.recording_epoch:
            continue
        try:
            commit(<StreamState*><size_t>address, b"a handler of a batch's end has recorded")
        except Exception as error:      # One device failed: work of the others is still launched.
            failed = failed or error
    if failed is not None:
        raise failed


def commit_current():
    """Launch the operations that are recorded for this thread's current stream.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.ones(3) + 1
    >>> cyrt.commit()
    >>> cyrt.current_encoder().num_ops
    0
    """
    drop_unreachable()      # also if nothing is recorded
    release_ended()
    flush_current(current_ordinal(), b"commit()")


# Its public name; in this file `commit` is that of a Recorder.
commit_current.__name__ = commit_current.__qualname__ = "commit"


_completion.end_handler = _end_handler
