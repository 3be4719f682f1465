"""The state of a recorder, and the commit, which launches its recording."""

import threading

from cpython.exc cimport PyErr_SetInterrupt
from cpython.object cimport PyObject
from cpython.ref cimport Py_CLEAR, Py_DECREF, Py_INCREF
from libc.stdlib cimport free
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef extern from "Python.h":
    int Py_AddPendingCall(int (*call)(void*) noexcept, void* argument)
    void PyErr_SetObject(object kind, object value)
    int PyThreadState_SetAsyncExc(unsigned long thread, object kind)

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

from cyrt.driver.capture_mode cimport event_status, relax, restore
from cyrt.driver.cuda cimport *
from cyrt.driver.errors import CudaError
from cyrt.driver.table cimport MAX_DEVICES, READY, check, cu, disturb, is_sticky, process
from cyrt.graph cimport (
    chain, completion, direct, fusion as fusions, loss, plan as plans, plan_cache,
    policy as policies, recording as recordings, replay as replays,
)
from cyrt.graph.completion cimport Mark
from cyrt.graph.executable cimport Outcome
from cyrt.graph.fusion cimport Fusion
from cyrt.graph.policy cimport FOLLOWING, Policy
from cyrt.graph.ranges cimport forget_ranges
from cyrt.graph.recording cimport Recording, Tensors
from cyrt.graph.seam cimport builtin
from cyrt.runtime cimport poison as poisons
from cyrt.runtime.captures cimport release_ended
from cyrt.runtime.event cimport Event
from cyrt.runtime.device cimport contexts, enter, enter_quietly, leave, leave_quietly, verify
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.order cimport (
    flush_outside, launch_for_others, launching_outside, order_outside,
)
from cyrt.runtime.freed cimport return_held_blocks, return_unsettled_blocks
from cyrt.runtime.pacing cimport has_room, pace_turn, wait_for_room
from cyrt.runtime.sequences cimport begin_sequences
from cyrt.runtime.state cimport Block, StreamState
from cyrt.runtime.stream_state cimport (
    is_captured, is_others_thread, legacy_state, link, mark_work, refuse_captured, states,
)
from cyrt.runtime.waiting cimport query_event, wait, wait_state
from cyrt.runtime.submission cimport (
    end_submission, sleep_briefly, try_submission, wait_for_submission, wait_for_turn,
)

cdef extern from *:
    """
    /* See `begin_operation`. */
    static _Thread_local void* cyrt_unfinished;
    static _Thread_local int cyrt_continued;
    """
    void* cyrt_unfinished
    bint cyrt_continued

cdef unsigned long main_thread = threading.main_thread().ident
cdef unsigned long long last_epoch = 0

# The encoders of streams, by the address of the state. They live as long as the states. Of those
# that the user created, the dict has only weak references.
encoders = {}
nvtx = None                     # the package nvtx if CYRT_NVTX=1, else None
# The Trace whose methods each commit calls (see cyrt/tracing), or None; `set_tracer` sets it.
cdef object tracer = None


def set_tracer(value):
    """Call the methods of a Trace at each commit from now on; None ends that."""
    global tracer, tracing
    tracer = value
    tracing = value is not None


cdef long long now() noexcept:
    cdef timespec time
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec


cdef bint is_unfinished(Recorder self) noexcept:
    return cyrt_unfinished == <void*>self


cdef bint is_continued(Recorder self) noexcept:
    return cyrt_unfinished == <void*>self and cyrt_continued


cdef Unfinished begin_operation(Recorder self) noexcept:
    global cyrt_unfinished, cyrt_continued
    cdef Unfinished before = Unfinished(cyrt_unfinished, cyrt_continued)
    if cyrt_unfinished != <void*>self:
        cyrt_unfinished, cyrt_continued = <void*>self, False
    return before


cdef void continue_operation() noexcept:
    global cyrt_continued
    cyrt_continued = True


cdef void end_operation(Unfinished before) noexcept:
    global cyrt_unfinished, cyrt_continued
    cyrt_unfinished, cyrt_continued = before.recorder, before.continued


cdef unsigned long long new_epoch() noexcept:
    global last_epoch
    last_epoch += 1
    return last_epoch


cdef class Recorder:
    def __cinit__(self):
        self.recording = recordings.new_recording()

    def __dealloc__(self):
        if self.state != NULL and self.state.encoder == <void*>self:
            self.state.encoder = NULL       # the interpreter exits: the state remains
            self.state.pending = self.state.failed = False
        if process == READY:
            fusions.abandon_all(self.replay.scripts)
        policies.forget(&self.policy)
        recordings.destroy(self.recording)
        if self.launching != NULL and not self.launching.busy:      # else it is a script
            recordings.destroy(self.launching)
        replays.forget(&self.replay)
        recordings.destroy(self.spare)
        drop_tensors(self, &self.tensors)
        free(self.spare_tensors.objects)
        free(self.ranges.items)


cdef str suspects(int ordinal):
    """Return a text that names the operations in flight, or where those that are waited for were
    recorded."""
    cdef Recorder encoder
    cdef dict counts = {}
    cdef list places = []
    for each in list(encoders.values()):
        encoder = each if isinstance(each, Recorder) else each()
        if encoder is None or encoder.state.ordinal != ordinal \
                or encoder.state.epoch != contexts[ordinal].epoch:
            continue
        if encoder.awaited is not None and encoder.ended < encoder.batches:
            places.append(encoder.awaited)
        for batch in range(encoder.ended, encoder.batches):
            launched = encoder.launched[batch % IN_FLIGHT]
            for name in getattr(launched, "names", launched) or ():
                counts[name] = counts.get(name, 0) + 1
    if places:
        return f"The operation was recorded at {' or '.join(sorted(set(places)))}."
    if not counts:
        return ""
    operations = ", ".join(f"{name} x {n}" if n > 1 else name for name, n in counts.items())
    return (f"Operations in flight: {operations}. CYRT_LAUNCH_BLOCKING=1 tells the line of "
            "Python that recorded the one that failed.")


cdef int wait_for_oldest_batch(Recorder self) except -1:
    """Wait until fewer than IN_FLIGHT batches are in flight. Create the event of the next one."""
    cdef int slot = self.batches % IN_FLIGHT
    cdef int entered
    cdef CUresult result
    if self.marks[slot] == NULL:
        entered = enter(self.state.ordinal, self.state.epoch, b"cuEventCreate")
        result = cu.cuEventCreate(&self.marks[slot], CU_EVENT_DISABLE_TIMING)
        return leave(self.state.ordinal, entered, result, b"cuEventCreate")
    if self.ended + IN_FLIGHT > self.batches:       # the oldest is known to have ended
        return 0
    return wait(self.state.ordinal, self.state.epoch, query_event, self.marks[slot],
                b"cuEventQuery")


cdef bint may_launch(Recorder self) noexcept:
    """Return whether a commit waits for nothing that was put on the stream before."""
    cdef CUevent oldest = self.marks[<int>(self.batches % IN_FLIGHT)]
    return not self.state.submitting and has_room(self.state) and (
        oldest == NULL or self.ended + IN_FLIGHT > self.batches
        or event_status(oldest) != CUDA_ERROR_NOT_READY)


cdef int make_room(Recorder self) except -1:
    wait_for_oldest_batch(self)
    wait_for_room(self.state)
    return 0


cdef int release_ended_batches(Recorder self) except -1:
    """Find the batches that have ended, and drop what was kept for them."""
    cdef unsigned long long number
    cdef CUstreamCaptureMode mode
    if self.in_flight is None:      # the encoder was detached meanwhile
        return 0
    if self.batches - self.ended > IN_FLIGHT:
        self.ended = self.batches - IN_FLIGHT
    number = self.ended
    mode = relax()
    while number < self.batches and cu.cuEventQuery(
            self.marks[<int>(number % IN_FLIGHT)]) == CUDA_SUCCESS:
        number += 1
        # A function that a tool has put in the driver's place may have let another thread go on.
        number = self.ended = max(self.ended, number)
    restore(mode)
    while self.in_flight and self.in_flight[0][0] < self.ended:
        self.in_flight.popleft()
    return 0


cdef int release_all_ended() except -1:
    cdef StreamState* state
    cdef int ordinal
    for ordinal in range(MAX_DEVICES):
        state = states[ordinal]
        while state != NULL:
            if state.encoder != NULL and (<Recorder>state.encoder).in_flight:
                release_ended_batches(<Recorder>state.encoder)
            state = state.next
    return 0


cdef int flush_homes(Recorder self) except -1:
    """Launch, before the turn, what the batch waits for: so two turns never wait for each other."""
    cdef list foreign = self.foreign        # a finalizer may launch the batch and drop the list
    cdef StreamState* home
    self.flusher = PyThread_get_thread_ident()      # a home's commit may call this again
    try:
        for buffer in list(foreign):
            while flush_outside(self.state, device_of(self, buffer)) == 0:
                pass
            home = awaited_stream(self, buffer)
            if is_captured(home):
                refuse_captured(home)
            if home != self.state:
                launch_for_others(home)
                wait_for_room(home)
    finally:
        if self.flusher == PyThread_get_thread_ident():
            self.flusher = 0
    return 0


cdef Block* block_of(object buffer) noexcept:
    cdef Memory memory
    if buffer is None:
        return NULL
    memory = <Memory>buffer
    return memory.block if memory.base is None else memory.base.block


cdef int device_of(Recorder self, object buffer) noexcept:
    """Return the device of the memory: pinned memory may belong to another device."""
    cdef Block* block = block_of(buffer)
    return self.state.ordinal if block == NULL else block.ordinal


cdef StreamState* awaited_stream(Recorder self, object buffer) noexcept:
    """Return the stream whose work on the memory the batch waits for: the one that the producer
    named, or the legacy stream for exported memory."""
    cdef Block* block = block_of(buffer)
    if block != NULL and not block.shared:
        return block.home
    return legacy_state(device_of(self, buffer))


cdef StreamState* launching_earlier(Recorder self) noexcept:
    """Return a stream that used the outside memory before and on which another thread has the turn
    now; NULL: there is none. The batch can be ordered after it only when that turn has ended."""
    cdef StreamState* other
    if self.foreign is None:
        return NULL
    for buffer in self.foreign:
        other = awaited_stream(self, buffer)
        if other != self.state and other.submitting:
            return other
        other = launching_outside(self.state, device_of(self, buffer))
        if other != NULL:
            return other
    return NULL


cdef bint has_work(Recorder self) noexcept:
    return num_recorded(self) or self.kept is not None or self.handlers is not None


cdef int commit(StreamState* state, const char* reason) except -1:
    cdef Recorder self
    if state.encoder == NULL:
        return wait_for_submission(state)
    self = <Recorder>state.encoder
    launch_recorded(self, reason)
    return raise_failure(self) if state.failed else 0


cdef void commit_at_end(Recorder self, const char* reason) noexcept:
    cdef StreamState* state = self.state
    # A batch that uses other libraries' memory may have to wait for other streams.
    if state.capturing or is_captured(state) or is_others_thread(state) \
            or self.foreign is not None \
            or not may_launch(self):
        return
    try:
        commit_once(self, state.recording_epoch, reason)
    except (CudaError, MemoryError):
        pass                # nothing was launched: what launches the recording next raises it again
    except BaseException as error:
        raise_later(error)


cdef int commit_now(Recorder self, const char* reason) except -1:
    cdef int interruptions = 0
    while interruptions < 2:        # the second one ends the wait
        try:
            launch_recorded(self, reason)
            break
        except (CudaError, MemoryError):
            raise
        except BaseException as error:
            raise_later(error)
            interruptions += 1
    return raise_failure(self) if self.state.failed else 0


cdef void raise_later(error) noexcept:
    """Raise what a signal handler has raised when the call has returned: the operation is done."""
    cdef unsigned long thread = PyThread_get_thread_ident()
    if thread != main_thread:       # no signal, but what another thread has sent to this one
        PyThreadState_SetAsyncExc(thread, type(error))
        return
    Py_INCREF(error)
    if Py_AddPendingCall(raise_now, <PyObject*>error) < 0:      # the interpreter has no room for it
        Py_DECREF(error)
        PyErr_SetInterrupt()


cdef int raise_now(void* raised) noexcept with gil:
    PyErr_SetObject(type(<object>raised), <object>raised)
    Py_DECREF(<object>raised)
    return -1


cdef void keep_failure(Recorder self, unsigned int error, CUresult result,
                       const char* call) noexcept:
    """Keep the error of a launch until it is raised, unless an earlier one is kept."""
    if not self.state.failed:
        self.failure.error, self.failure.result, self.failure.call = error, result, call
        self.state.failed = True
        self.state.idle = False
        disturb()
    elif error:
        poisons.release_error(error)


cdef int raise_failure(Recorder self) except -1:
    cdef Failure failure = self.failure
    cdef object exception = loss.error_of(failure.error) if failure.error else None
    if not self.state.failed or self.failure.error != failure.error:
        return 0                    # another thread has raised it meanwhile
    self.state.failed = False
    if failure.error:
        poisons.release_error(failure.error)
        loss.reclaim()
        raise exception
    verify(self.state.ordinal, self.state.epoch, failure.call)
    return check(failure.result, failure.call, self.state.ordinal)


cdef int launch_recorded(Recorder self, const char* reason) except -1:
    """Launch what was recorded before the call."""
    cdef StreamState* state = self.state
    cdef unsigned long long wanted = state.recording_epoch
    cdef unsigned int naps = 0
    plan_cache.drop_unreachable()
    release_ended()
    if state.capturing:
        return 0                # kept objects and handlers belong to the next batch
    if is_captured(state):
        refuse_captured(state)
    if is_others_thread(state):
        while state.recording_epoch == wanted and num_recorded(self):
            sleep_briefly(state, &naps)
        return 0
    if state.wants_commits and num_recorded(self) == 0:
        state.wants_commits = False
        policies.note_commit(&self.policy)
        begin_batch(self)
    while state.recording_epoch == wanted and has_work(self):
        commit_once(self, wanted, reason)
    if state.submitting:        # another thread launches it, or later work
        wait_for_submission(state)
    return 0


cdef void begin_batch(Recorder self) noexcept:
    cdef Policy* policy = &self.policy
    begin_sequences(self.state, policy.round.sites if policy.state == FOLLOWING else NULL,
                    policy.start, policy.resumes)


cdef int make_spare(Recorder self) except -1:
    if self.spare == NULL:
        self.spare = recordings.new_recording()
    return 0


cdef void stop_replay(Recorder self) noexcept:
    cdef Recording* empty = self.recording
    if self.replay.script != NULL:
        self.recording = replays.stop(&self.replay, self.state, empty, &self.joined)
        if self.recording != empty:
            empty.next, self.spare = self.spare, empty


cdef Recording* complete_recording(Recorder self) except NULL:
    """Return what is launched next: the script, if all of it was replayed, or the recording."""
    cdef Recording* script = self.replay.script
    if script == NULL or (self.replay.played < script.num_nodes
                          and not replays.end_with_another(&self.replay)):
        stop_replay(self)
        return self.recording
    script = self.replay.script
    if self.replay.verified:
        replays.verify(&self.replay, self.state)
    return script


cdef Recording* exchange_recording(Recorder self) noexcept:
    """Exchange the recording for an empty one, and return it."""
    cdef Recording* recording = self.recording
    if self.replay.script != NULL:      # all of it was replayed, and the recording is empty
        return replays.finish(&self.replay)
    self.recording = self.spare
    self.spare = self.spare.next
    self.recording.next = NULL
    if recording.group >= 0:
        self.recording.group = 0
    return recording


cdef void drop_fusion(Recording* script) noexcept:
    try:
        fusions.abandon(script)
    except BaseException as error:
        raise_later(error)


cdef Fusion fuse(Recorder self, Plan plan, Recording* script):
    """Return the Fusion of a script that was launched often enough, or None."""
    try:
        return fusions.new_fusion(self.state, script, plan)
    except MemoryError:
        return None


cdef void clear_recording(Recorder self, Recording* recording) noexcept:
    """Keep a launched recording as a script, or clear it and make it a spare one. This may run
    finalizers."""
    recordings.release_owners(recording, recording.repeats)
    if recording.fusion != NULL and fusions.is_obsolete(<Fusion>recording.fusion):
        if not (<Fusion>recording.fusion).refused:
            recording.launches = 0      # another Fusion may be made of it
        drop_fusion(recording)
    recording = replays.keep(&self.replay, recording)
    if recording == NULL:
        return
    if recording.fusion != NULL:
        drop_fusion(recording)
    recordings.clear(recording)
    if self.recording.num_nodes == 0:       # record into the arrays that are still in the cache
        recording.group = self.recording.group
        self.recording.group = -1
        self.recording, recording = recording, self.recording
    if self.spare != NULL:          # other commits have cleared theirs meanwhile
        recordings.free_arrays(recording)
    recording.next = self.spare
    self.spare = recording


cdef Tensors exchange_tensors(Recorder self) noexcept:
    """Exchange the references to the recording's tensors for none, and return them."""
    cdef Tensors tensors = self.tensors
    self.tensors = self.spare_tensors
    memset(&self.spare_tensors, 0, sizeof(Tensors))
    return tensors


cdef void drop_tensors(Recorder self, Tensors* tensors) noexcept:
    """Drop references, which may run finalizers, and keep the array."""
    recordings.release_tensors(tensors)
    if tensors.room > self.spare_tensors.room:
        tensors.objects, self.spare_tensors.objects = self.spare_tensors.objects, tensors.objects
        self.spare_tensors.room = tensors.room
    free(tensors.objects)


cdef int abandon(Recorder self) except -1:
    """Drop the recording, and have its handlers called, as after a batch that failed."""
    cdef StreamState* state = self.state
    cdef Mark mark = completion.new_mark(state)
    cdef list foreign, kept, handlers       # dropped when the state is consistent
    cdef Recording* dropped
    cdef Tensors tensors
    make_spare(self)
    stop_replay(self)
    dropped = exchange_recording(self)
    foreign, kept, handlers = self.foreign, self.kept, self.handlers
    self.foreign = self.kept = self.handlers = None
    tensors = exchange_tensors(self)
    state.recording_epoch = new_epoch()
    state.pending = state.outside = False
    self.bytes = 0
    forget_ranges(&self.ranges)
    policies.plan_batch(&self.policy)
    begin_batch(self)
    return_held_blocks(state)
    if handlers is not None:
        completion.call_when_ended(mark, handlers)
    clear_recording(self, dropped)
    drop_tensors(self, &tensors)
    del foreign, kept
    return 0


cdef int commit_once(Recorder self, unsigned long long wanted, const char* reason) except -1:
    """Try to commit once. Return without a launch if anything else changed the recording."""
    cdef StreamState* state = self.state
    cdef Plan plan = None
    cdef list names = None
    cdef list entry = None
    cdef Mark mark = None
    cdef StreamState* earlier
    cdef object traced = None
    cdef unsigned long long batch
    cdef Recording* recording
    cdef int nodes
    try:
        verify(state.ordinal, state.epoch, b"cuGraphLaunch")
    except BaseException:
        if process == READY:        # the device failed or was reset: no launch is possible
            abandon(self)
        raise
    legacy_state(state.ordinal)     # creates an object, which is not allowed in the turn
    if self.foreign is not None and self.flusher != PyThread_get_thread_ident():
        flush_homes(self)
    batch = self.batches
    make_room(self)
    if nvtx is not None:
        nvtx.push_range(f"cyrt: {num_recorded(self)} operations", domain="cyrt")
    self.replay.num_readers += 1
    try:
        if state.recording_epoch != wanted:
            return 0
        recording = complete_recording(self)
        nodes = recording.num_nodes
        if tracing and nodes:
            traced = begin_tracing(self, reason)
        if nodes and self.graphs and recording.losses == NULL:
            plan = plan_cache.find(state, recording, &self.stats_)
            if plan is None:
                return 0
        elif nodes:
            names = plans.node_names(recording)
        if self.kept is not None or self.foreign is not None:
            entry = [batch, None, None]
        if self.handlers is not None:
            mark = completion.new_mark(state)
        earlier = launching_earlier(self)
        make_spare(self)
        # Finalizers may have run: the collector can run whenever an object is created.
        # And another thread's batch may have ended its turn: this one needs the event after it.
        if state.recording_epoch == wanted and num_recorded(self) == nodes \
                and self.batches == batch and state.epoch == contexts[state.ordinal].epoch \
                and (entry is not None or (self.kept is None and self.foreign is None)) \
                and (mark is not None or self.handlers is None):
            if earlier != NULL:
                wait_for_submission(earlier)
            elif try_submission(state):
                return launch_batch(self, plan, names, entry, mark)
            else:
                wait_for_turn(state)
    finally:
        self.replay.num_readers -= 1
        if plan is not None:
            plan_cache.release(plan)
        try:
            if traced is not None:
                end_tracing(self, traced, plan, names)
        finally:
            if nvtx is not None:
                nvtx.pop_range(domain="cyrt")
    return 0


cdef object begin_tracing(Recorder self, const char* reason):
    """Tell the tracer that a commit begins, and keep the events that it wants around the batch."""
    cdef object traced = tracer.begin_commit(self, self.state.ordinal, reason.decode(),
                                             self.timing.begun)
    cdef Event before = traced.before, after = traced.after
    before.recorded = after.recorded = True
    self.timing.launching = 0
    self.timing.before, self.timing.after = before.handle, after.handle
    return traced


cdef int end_tracing(Recorder self, object traced, Plan plan, list names) except -1:
    cdef Timing timing = self.timing
    self.timing.before = self.timing.after = NULL
    self.timing.launching = 0
    if timing.launching and tracer is not None:
        tracer.end_commit(self, <size_t>self.state, traced, plan if plan is not None else names,
                          timing.launching, timing.launched)
    return 0


cdef int launch_batch(Recorder self, Plan plan, list names, list entry, Mark mark) except -1:
    """Launch the batch; the turn has begun. `entry` and `mark` are for the objects that are kept
    and the handlers, if there are any."""
    cdef StreamState* state = self.state
    cdef Recording* finished
    cdef Outcome outcome
    cdef Tensors tensors
    cdef int slot = self.batches % IN_FLIGHT
    cdef unsigned int error
    cdef list foreign = self.foreign, handlers = self.handlers
    cdef str where = self.where
    cdef Fusion fusion = None, judged = None
    # References that are moved here are dropped after the turn.
    cdef object expired = self.launched[slot]
    if entry is not None:
        entry[1], entry[2] = self.kept, foreign
        try:
            self.in_flight.append(entry)
        except MemoryError:
            end_submission(state)
            raise
    self.launched[slot] = plan if plan is not None else names
    self.foreign = self.kept = self.handlers = None
    tensors = exchange_tensors(self)
    self.where, self.awaited = None, where
    error = launch(self, plan, foreign, NULL if where is None else <void*>where, &outcome)
    if error:
        poisons.retain_error(error)
        self.awaited = None         # it was refused, and does not run
    if handlers is not None:
        completion.call_when_ended(mark, handlers)
    if error or is_sticky(outcome.result):
        keep_failure(self, error, outcome.result, outcome.call)
    finished, self.launching = self.launching, NULL
    end_submission(state)
    if finished.repeats and finished.plan != <PyObject*>plan:
        Py_CLEAR(finished.plan)     # That plan was evicted, or ran the script before it was cut.
        Py_INCREF(plan)
        finished.plan = <PyObject*>plan
    if plan is not None and finished.fusion != NULL \
            and <PyObject*>plan.fusion != finished.fusion:
        fusions.tell_of(plan, <Fusion>finished.fusion)
    if finished.memory != NULL and finished.repeats:
        fusion = fuse(self, plan, finished)
    elif finished.fusion != NULL and (<Fusion>finished.fusion).news:
        judged = <Fusion>finished.fusion
    clear_recording(self, finished)
    drop_tensors(self, &tensors)
    del expired
    if outcome.result != CUDA_SUCCESS and entry is not None:
        entry[0] += 1           # the batch may have no event after it, but the next one has
    if outcome.result != CUDA_SUCCESS and not error and not is_sticky(outcome.result):
        end_without_event(self, entry, &outcome)
    if plan is not None:
        if plan.chains is not None:
            chain.keep_code(plan.chains, plan.code, outcome.launched)
        self.plan = plan
        plan_cache.evict(&self.stats_)
    release_ended_batches(self)
    if self.blocking and not state.failed:
        wait_state(state)
    if judged is not None:
        fusions.tell(judged)
    return builtin.fuse(fusion) if fusion is not None else 0


cdef int end_without_event(Recorder self, list entry, Outcome* outcome) except -1:
    """Wait for a batch that may have no event after it, and keep the error."""
    try:
        wait_state(self.state)
        if entry is not None:
            entry[1] = entry[2] = None
    finally:
        keep_failure(self, 0, outcome.result, outcome.call)
    return 0


cdef unsigned int launch(Recorder self, Plan plan, list foreign, void* where,
                         Outcome* outcome) noexcept:
    """Launch the batch in the turn. Return the error number of what was refused first, or 0."""
    cdef StreamState* state = self.state
    cdef Recording* recording = exchange_recording(self)
    cdef unsigned long long before = self.stats_.patched, patched = 0
    cdef unsigned long long launches = 0 if plan is None else plan.launches
    cdef CUevent mark = self.marks[<int>(self.batches % IN_FLIGHT)]
    cdef CUevent before_batch = self.timing.before, after_batch = self.timing.after
    cdef unsigned int error = 0
    cdef int entered = -1
    cdef bint unfit = False
    self.launching = recording
    recording.launches += 1
    if recording.launches == self.fuse_after and recording.num_nodes > 1:
        fusions.note_memory(recording)
    state.recording_epoch = new_epoch()
    state.pending = state.outside = False
    self.bytes = 0
    forget_ranges(&self.ranges)
    # Do this before the launch releases the GIL: memory freed later belongs to the next recording.
    return_held_blocks(state)
    policies.advance(&self.policy, recording)
    begin_batch(self)
    outcome.result, outcome.call, outcome.launched = CUDA_SUCCESS, b"cuStreamWaitEvent", 0
    if not state.owned:
        entered = enter_quietly(state.ordinal, state.epoch)
    if foreign is not None:
        outcome.result = order_foreign(self, foreign, True)
    if before_batch != NULL:
        self.timing.launching = now()
        record_mark(state, before_batch)
    if outcome.result != CUDA_SUCCESS:
        error = loss.mark_all_lost(recording, outcome.result, outcome.call, where)
    elif recording.num_nodes:
        if plan is not None and recording.losses == NULL:
            if recording.fusion != NULL and (<Fusion>recording.fusion).cached:
                unfit = fusions.needs_unwritten(<Fusion>recording.fusion, recording)
            elif plan.fusion is not None:
                unfit = fusions.needs_unwritten(<Fusion>plan.fusion, recording)
            if recording.fusion != NULL:
                patched = fusions.launch(recording, plan, unfit, &self.stats_, outcome)
            else:
                plans.launch_plan(plan, recording, &self.stats_, outcome, NULL)
                patched = self.stats_.patched - before
            if outcome.result != CUDA_SUCCESS:      # the rest runs without a graph
                self.stats_.patched += recording.num_nodes - outcome.launched
        if plan is None or recording.losses != NULL or (
                outcome.result != CUDA_SUCCESS and not is_sticky(outcome.result)):
            error = direct.launch_nodes(state, recording, outcome.launched, where, outcome)
        elif poisons.poisoned:
            loss.mark_losses(recording)
        recording.repeats = may_repeat(self, plan, recording, outcome, patched)
        if plan is not None and policies.learn(&self.policy, recording, patched, launches, unfit) \
                and num_recorded(self) == 0 and policies.search(&self.policy):
            begin_batch(self)
    state.wants_commits = self.policy.history != NULL or self.policy.resumes or self.policy.trying
    if after_batch != NULL:
        record_mark(state, after_batch)
        self.timing.launched = now()
    if recording.losses != NULL:
        stop_replay(self)       # others may have begun one during the launch
        loss.propagate_losses(recording, self.recording)
    if outcome.result == CUDA_SUCCESS:
        outcome.call = b"cuEventRecord"
        outcome.result = record_mark(state, mark)
    if outcome.result == CUDA_SUCCESS and foreign is not None:
        outcome.result = order_foreign(self, foreign, False)
    mark_work(state)
    leave_quietly(entered)
    self.batches += 1
    self.commits += 1
    return_unsettled_blocks(state.ordinal)
    return error


cdef bint may_repeat(Recorder self, Plan plan, const Recording* recording,
                     const Outcome* outcome, unsigned long long patched) noexcept:
    """Return whether a batch may be replayed: one executable graph ran all of it, and at most half
    of its nodes were patched."""
    return self.replay.enabled and plan is not None and outcome.result == CUDA_SUCCESS \
        and recording.losses == NULL and not recording.once \
        and recording.barrier < 0 and recording.group < 0 \
        and 2 * patched <= <unsigned long long>recording.num_nodes


cdef CUresult record_mark(StreamState* state, CUevent mark) noexcept:
    cdef CUresult result
    with nogil:             # the call blocks while the driver's queue is full
        result = cu.cuEventRecord(mark, state.handle)
    state.put += 1
    return result


cdef CUresult order_foreign(Recorder self, list foreign, bint before) noexcept:
    """Make the stream wait for others that use the memory, if `before`; else make them wait."""
    cdef StreamState* state = self.state
    cdef StreamState* home
    cdef StreamState* last = NULL
    cdef StreamState* legacy = legacy_state(state.ordinal)
    cdef CUresult result = CUDA_SUCCESS
    # This loop keeps the GIL: after it, other uses of such memory wait for the end of the turn.
    for buffer in foreign:
        if before and result == CUDA_SUCCESS:
            result = order_outside(state, device_of(self, buffer))
    for buffer in foreign:
        home = awaited_stream(self, buffer)
        pace_turn(state)
        pace_turn(home)
        if result == CUDA_SUCCESS and home != last and (before or not home.owned):
            result = link(state, home) if before else link(home, state)
        last = home
    if result == CUDA_SUCCESS and not before and last != legacy:
        result = link(legacy, state)
    return result
