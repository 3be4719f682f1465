"""Deferred destruction of driver objects, after the last work that uses them."""

from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from cyrt.driver.capture_mode cimport event_status, relax, restore, stream_status
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, READY, cu, process
from cyrt.runtime cimport waiting as _waiting
from cyrt.runtime.allocation cimport allocate_zeroed
from cyrt.runtime.device cimport contexts, enter_quietly, leave_quietly
from cyrt.runtime.pacing cimport has_spare_room
from cyrt.runtime.state cimport Block, PINNED_MEMORY, StreamState
from cyrt.runtime.stream_state cimport is_captured, states, wrapped_state

cdef enum:
    SLACK = 8               # reused memory exceeds a request by at most the request / SLACK

# A use of a block on a stream that has not ended.
cdef struct Mark:
    StreamState* stream
    unsigned long long recording    # epoch of the unlaunched recording with the use, else 0
    CUevent event                   # recorded after the use; NULL until it is recorded
    Mark* next

cdef struct Ending:
    End end
    size_t handle
    size_t pinned           # bytes of page-locked memory, which any device may use; else 0
    int ordinal
    unsigned int epoch
    Mark* marks             # the uses that have not ended
    Ending* next

cdef Ending* endings = NULL     # those of all devices, newest first


cdef Ending* take_all() noexcept:
    """Take all entries out of the list, for a thread that asks the driver about them: a function
    that a tool has put in the driver's place may let other threads run, or destroy objects."""
    global endings
    cdef Ending* taken = endings
    endings = NULL
    return taken


cdef void put_back(Ending* taken) noexcept:
    """Put the entries back, behind those that were added meanwhile."""
    cdef Ending** link = &endings
    while link[0] != NULL:
        link = &link[0].next
    link[0] = taken


cdef bint has_ended(Mark* mark) noexcept:
    """Return whether a use has ended; record its event if it has been launched since."""
    cdef StreamState* state = mark.stream
    cdef CUresult result
    cdef int entered
    if state.epoch != contexts[state.ordinal].epoch:
        return True         # the reset of the context destroyed the event, too
    if mark.event != NULL:
        result = event_status(mark.event)
        if result == CUDA_SUCCESS:
            cu.cuEventDestroy(mark.event)
        return result == CUDA_SUCCESS
    # A query would invalidate a capture, and an event would become part of it.
    if state.capturing or is_captured(state) or state.submitting or not has_spare_room(state) \
            or (state.pending and state.recording_epoch == mark.recording):
        return False
    if state.ended:
        return state.marker == NULL or event_status(state.marker) == CUDA_SUCCESS
    if state.thread:        # a per-thread default stream: only its thread can query it
        return state.last_work == NULL or event_status(state.last_work) == CUDA_SUCCESS
    entered = enter_quietly(state.ordinal, state.epoch)
    if entered < 0:
        return False
    result = stream_status(state.handle)
    if result == CUDA_ERROR_NOT_READY \
            and cu.cuEventCreate(&mark.event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS:
        state.put += 1
        if cu.cuEventRecord(mark.event, state.handle) != CUDA_SUCCESS:
            cu.cuEventDestroy(mark.event)
            mark.event = NULL
    leave_quietly(entered)
    return result == CUDA_SUCCESS


cdef bint is_unused(Ending* entry) noexcept:
    """Return whether all uses have ended; drop the marks of those that have."""
    cdef Mark** link = &entry.marks
    cdef Mark* mark
    if process != READY:
        return False
    while link[0] != NULL:
        mark = link[0]
        if has_ended(mark):
            link[0] = mark.next
            free(mark)
        else:
            link = &mark.next
    return entry.marks == NULL


cdef bint is_device_idle(int ordinal) noexcept:
    """Return whether no work runs on the device's streams that cyrt knows."""
    cdef StreamState* state = states[ordinal]
    cdef CUresult result = CUDA_SUCCESS
    cdef int entered
    if state == NULL:
        return True
    entered = enter_quietly(ordinal, contexts[ordinal].epoch)
    if entered < 0:
        return False
    while state != NULL and result == CUDA_SUCCESS:
        # A query would invalidate a capture.
        if state.capturing or is_captured(state) or state.submitting:
            result = CUDA_ERROR_NOT_READY
        elif state.ended:
            if state.marker != NULL:
                result = event_status(state.marker)
        elif state.thread:
            if state.last_work != NULL:
                result = event_status(state.last_work)
        elif state.owned or state.users > 0 or <size_t>state.handle <= 2:
            result = stream_status(state.handle)
        state = state.next
    leave_quietly(entered)
    return result == CUDA_SUCCESS


cdef bint are_devices_idle(const Ending* entry, signed char* quiet) noexcept:
    """Return whether every device is idle whose work the driver's call would wait for. `quiet`
    caches the answer for each device; -1 means not queried yet."""
    cdef int ordinal
    for ordinal in range(MAX_DEVICES):
        if ordinal == entry.ordinal or entry.pinned:
            if quiet[ordinal] < 0:
                quiet[ordinal] = is_device_idle(ordinal)
            if not quiet[ordinal]:
                return False
    return True


cdef void forget_marks(Ending* entry) noexcept:
    cdef Mark* mark
    while entry.marks != NULL:
        mark = entry.marks
        entry.marks = mark.next
        free(mark)


cdef Ending* take_destroyable() noexcept:
    """Take an entry from the list that can be destroyed, or whose context was reset, else NULL."""
    cdef Ending* taken = take_all()
    cdef Ending** link = &taken
    cdef Ending* entry = taken
    cdef signed char[MAX_DEVICES] quiet
    memset(quiet, -1, sizeof(quiet))
    while entry != NULL and entry.epoch == contexts[entry.ordinal].epoch \
            and not (are_devices_idle(entry, quiet) and is_unused(entry)):
        link = &entry.next
        entry = link[0]
    if entry != NULL:
        link[0] = entry.next
    put_back(taken)
    return entry


cdef void destroy_unused() noexcept:
    cdef Ending* entry = take_destroyable()
    cdef int entered
    while entry != NULL:
        entered = enter_quietly(entry.ordinal, entry.epoch)
        if entered >= 0:
            with nogil:             # other threads may add to the list and take from it meanwhile
                entry.end(entry.handle)
            leave_quietly(entered)
        forget_marks(entry)
        free(entry)
        entry = take_destroyable()


cdef Ending* new_ending(int ordinal, unsigned int epoch, End end, size_t handle) noexcept:
    """Return a new entry; NULL if memory is short: the object is then never destroyed."""
    cdef Ending* entry = <Ending*>calloc(1, sizeof(Ending))
    if entry != NULL:
        entry.end = end
        entry.handle = handle
        entry.ordinal = ordinal
        entry.epoch = epoch
    return entry


cdef void add(Ending* entry) noexcept:
    global endings
    entry.next = endings
    endings = entry
    destroy_unused()


cdef int add_mark(Ending* entry, StreamState* state) except -1:
    cdef Mark* mark = <Mark*>allocate_zeroed(sizeof(Mark))
    mark.stream = state
    mark.recording = state.recording_epoch if state.pending else 0
    mark.next = entry.marks
    entry.marks = mark
    return 0


cdef int add_marks(Ending* entry, const Block* block) except -1:
    """Mark the stream that wrote the block last and those that have read it since: they are ordered
    after all earlier uses. An exported address may be in use on any stream, so mark all."""
    cdef StreamState* state
    cdef int i
    if not block.shared:
        add_mark(entry, block.home)
        for i in range(block.num_readers):
            add_mark(entry, block.readers[i])
        return 0
    wrapped_state(block.ordinal, NULL)
    for i in range(MAX_DEVICES):
        state = states[i]
        while state != NULL:
            if state.owned or state.users > 0 or state.ended or <size_t>state.handle <= 2:
                add_mark(entry, state)
            state = state.next
    return 0


cdef void destroy_when_idle(int ordinal, unsigned int epoch, End end, size_t handle) noexcept:
    cdef Ending* entry = new_ending(ordinal, epoch, end, handle)
    if entry != NULL:
        add(entry)


cdef CUresult drop_reference(size_t handle) noexcept nogil:
    cdef CUstreamCaptureMode before = relax()
    with gil:
        Py_DECREF(<object><PyObject*>handle)
    restore(before)
    return CUDA_SUCCESS


def release_when_idle(int ordinal, unsigned int epoch, object held):
    """Hold an object until the device is idle: its end unloads code, or waits for the device.

    Parameters
    ----------
    ordinal, epoch : int
        The device and the epoch of the context that the object belongs to. After a reset of the
        context the object is held for ever: what it would give back is gone.
    held : object
    """
    cdef Ending* entry = new_ending(ordinal, epoch, drop_reference, <size_t><PyObject*>held)
    Py_INCREF(held)
    if entry != NULL:       # it waits, since the caller still refers to the object
        put_back(entry)


cdef void free_block_when_unused(const Block* block, End end) noexcept:
    cdef Ending* entry = NULL
    if process == READY and block.epoch == contexts[block.ordinal].epoch:
        entry = new_ending(block.ordinal, block.epoch, end, block.address)
    if entry == NULL:
        return
    try:
        add_marks(entry, block)
    except BaseException:           # the device failed: its memory cannot be freed
        forget_marks(entry)
        free(entry)
        return
    if block.kind == PINNED_MEMORY:
        entry.pinned = block.size
        is_unused(entry)            # records the events now, before further work is launched
    add(entry)


cdef void* reuse_pinned(int ordinal, size_t* size) noexcept:
    cdef Ending* taken = take_all()
    cdef Ending** link = &taken
    cdef Ending* entry = taken
    cdef void* address = NULL
    while entry != NULL and not (
            entry.pinned >= size[0] and entry.pinned - size[0] <= size[0] // SLACK
            and entry.ordinal == ordinal and entry.epoch == contexts[ordinal].epoch
            and is_unused(entry)):
        link = &entry.next
        entry = link[0]
    if entry != NULL:
        link[0] = entry.next
        address, size[0] = <void*>entry.handle, entry.pinned
        free(entry)
    put_back(taken)
    return address


_waiting.on_idle = destroy_unused
