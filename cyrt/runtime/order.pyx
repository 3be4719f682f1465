# C-level functions only: see order.pxd.
"""Order among streams that use the same blocks of memory."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdlib cimport free

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, check, faulted
from cyrt.runtime.allocation cimport allocate_zeroed, reallocate
from cyrt.runtime.device cimport (
    EXPLAINED, EXPLAINED_IN_PART, contexts, enter_quietly, explained, leave, leave_quietly,
    set_explained, verify,
)
from cyrt.runtime.outside cimport is_outside
from cyrt.runtime.pacing cimport has_spare_room, wait_for_room
from cyrt.runtime.poison cimport mark_valid, refuse_poisoned
from cyrt.runtime.state cimport (
    FOREIGN_MEMORY, OVERWRITE, READ, Access, Block, Hazard, StreamState,
)
from cyrt.runtime.stream_state cimport (
    flush, last_undeclared, legacy_state, link, mark_work, order_launched, refuse_captured, states,
)
from cyrt.runtime.taping cimport note_write
from cyrt.runtime.waiting cimport is_done, poll, query_stream
from cyrt.runtime.submission cimport (
    end_submission, let_pass, priority_thread, release_priority, request_priority, try_submission,
    wait_for_submission, wait_for_turn, yield_to_priority_thread,
)

cdef enum:
    POLL = 20_000_000       # nanoseconds of a poll
    FIRST_HOLD = 2          # polls for which a waiting copy first holds its block

# The stream that used a device's outside memory last.
cdef StreamState* last_outside[MAX_DEVICES]


cdef int launch_for_others(StreamState* stream) except -1:
    return flush(stream, b"another stream or library uses the memory")


cdef bint is_recorded(const Block* block, const StreamState* stream) noexcept:
    cdef int i
    if not stream.pending:
        return False
    if block.hazard.epoch == stream.recording_epoch:
        return True
    if is_outside(block) and stream.outside:    # another block of the same address has its hazards
        return True
    for i in range(block.num_others):
        if block.others[i].epoch == stream.recording_epoch:
            return True
    return False


cdef bint holds(const Hazard* hazard) noexcept:
    return hazard.stream != NULL and hazard.stream.pending \
        and hazard.epoch == hazard.stream.recording_epoch


cdef bint is_recorded_anywhere(const Block* block) noexcept:
    cdef int i
    if holds(&block.hazard):
        return True
    for i in range(block.num_others):
        if holds(&block.others[i]):
            return True
    return False


cdef bint reads(const Block* block, const StreamState* stream) noexcept:
    cdef int i
    for i in range(block.num_readers):
        if block.readers[i] == stream:
            return True
    return False


cdef bint is_over(const StreamState* stream) noexcept:
    """Return whether the stream's context was reset."""
    return stream.epoch != contexts[stream.ordinal].epoch


cdef int launch_earlier(const Block* block, StreamState* other) except -1:
    """Have another stream's uses of the block launched. Return 1 if they were launched already, so
    that the GIL was held throughout, and the queue has room for an event after them."""
    if is_over(other) or other.ended:
        return 1
    if is_recorded(block, other):
        launch_for_others(other)
        return 0
    if other.submitting:
        wait_for_submission(other)
        return 0
    return wait_for_room(other)


class NoContents(RuntimeError):
    """Results are needed of operations that are explained, and not launched."""


cdef int refuse_contents() except -1:
    if explained() == EXPLAINED:
        set_explained(EXPLAINED_IN_PART)
    raise NoContents("what is only explained has no results")


cdef int refuse_example(const Block* block) except -1:
    if block.home.explained:
        raise RuntimeError("the memory was allocated by a function that was explained, and is not "
                           "there")
    return 0


cdef int order_use(Block* block, StreamState* stream, Access access) except -1:
    # A reader waits for what `home` wrote, not for what other streams have read since.
    cdef bint ordered = block.home == stream or (access == READ and reads(block, stream))
    cdef int i
    refuse_example(block)
    if block.kind == FOREIGN_MEMORY:        # `home` is the producer's stream
        return 1 if block.home == stream else launch_earlier(block, block.home)
    if ordered and access == READ:
        return 1
    if wait_for_room(stream) == 0:
        return 0
    if not ordered and launch_earlier(block, block.home) == 0:
        return 0
    if access != READ:
        for i in range(block.num_readers):
            if block.readers[i] != stream and launch_earlier(block, block.readers[i]) == 0:
                return 0
    # All earlier uses are launched. The GIL is held from here on.
    if not ordered:
        order_launched(stream, block.home)
    if access == READ:
        if block.num_readers == block.max_readers:
            grow_readers(block)
        block.readers[block.num_readers] = stream
        block.num_readers += 1
        return 1
    for i in range(block.num_readers):
        order_launched(stream, block.readers[i])
    block.num_readers = 0
    block.home = stream
    return 1


cdef int grow_readers(Block* block) except -1:
    cdef int room = 2 * block.max_readers + 2
    block.readers = <StreamState**>reallocate(block.readers, room * sizeof(StreamState*))
    block.max_readers = room
    return 0


cdef int order_behind(StreamState* stream) except -1:
    cdef StreamState* other = last_undeclared[stream.ordinal]
    if other != NULL and other != stream and not is_over(other) and not is_done(other):
        if other.pending:
            launch_for_others(other)
            return 0
        if other.submitting:
            wait_for_submission(other)
            return 0
        if wait_for_room(other) == 0 or wait_for_room(stream) == 0:
            return 0
        order_launched(stream, other)
    stream.behind = False
    return 1


cdef bint may_have_work(const StreamState* stream) noexcept:
    """Return whether cyrt or, if they have its handle, other libraries may have put work on the
    stream that has not ended. Another library's handle is valid while a Stream wraps it."""
    if not stream.owned and stream.last_work == NULL and stream.users == 0:
        return False
    return not stream.idle and (stream.has_exported_handle or stream.submissions != 0)


cdef int order_undeclared(StreamState* stream) except -1:
    cdef StreamState* other = states[stream.ordinal]
    while other != NULL:
        if other != stream:
            if other.pending and not other.capturing:
                launch_for_others(other)
                return 0
            if other.submitting:
                wait_for_submission(other)
                return 0
        if may_have_work(other) and wait_for_room(other) == 0:
            return 0
        other = other.next
    other = states[stream.ordinal]
    while other != NULL:
        if other != stream and may_have_work(other):
            order_launched(stream, other)
        other = other.next
    other = states[stream.ordinal]
    while other != NULL:
        other.behind = other != stream
        other = other.next
    last_undeclared[stream.ordinal] = stream
    return 1


cdef int order_after(StreamState* later, StreamState* earlier) except -1:
    if later == earlier:
        return 0
    if not earlier.ended and not is_over(earlier):
        launch_for_others(earlier)
    wait_for_room(later)
    wait_for_room(earlier)
    return order_launched(later, earlier)


cdef int order_consumer(StreamState* consumer, Block* block) except -1:
    cdef int i, launched = 0
    cdef StreamState* undeclared
    while not launched:
        launched = wait_for_room(consumer)
        if launched:
            launched = launch_earlier(block, block.home)
        for i in range(block.num_readers):
            if launched:
                launched = launch_earlier(block, block.readers[i])
        undeclared = last_undeclared[block.ordinal]
        if launched and undeclared != NULL and undeclared.pending:
            launch_for_others(undeclared)
            launched = 0
        if launched and undeclared != NULL:
            launched = wait_for_room(undeclared)
    if undeclared != NULL and not is_done(undeclared):
        order_launched(consumer, undeclared)
    if not block.home.idle:
        order_launched(consumer, block.home)
    for i in range(block.num_readers):
        if not block.readers[i].idle:
            order_launched(consumer, block.readers[i])
    return 0


cdef int flush_block(Block* block) except -1:
    """Launch the recordings of a copied list: other threads run during a launch and may change the
    block's list."""
    cdef int i, count = 0
    cdef StreamState** streams = <StreamState**>allocate_zeroed(
        (block.num_others + 1) * sizeof(StreamState*))
    if block.hazard.stream != NULL and block.hazard.epoch == block.hazard.stream.recording_epoch:
        streams[count] = block.hazard.stream
        count += 1
    for i in range(block.num_others):
        if block.others[i].epoch == block.others[i].stream.recording_epoch:
            streams[count] = block.others[i].stream
            count += 1
    try:
        for i in range(count):
            launch_for_others(streams[i])
    finally:
        free(streams)
    return 0


cdef bint is_launched(const Block* block, const StreamState* stream) noexcept:
    return is_over(stream) or stream.ended or not (is_recorded(block, stream) or stream.submitting)


cdef bint have_spare_room(const Block* block, StreamState* stream) noexcept:
    """Return whether the queues have room to order the stream after all uses of the block."""
    cdef int i
    for i in range(block.num_readers):
        if not has_spare_room(block.readers[i]):
            return False
    return has_spare_room(stream) and has_spare_room(block.home) \
        and not (block.shared and not has_spare_room(legacy_state(block.ordinal)))


cdef StreamState* choose_ordering_stream(const Block* block) noexcept:
    """Return the stream that can wait for the block's uses, or NULL if there is none."""
    cdef StreamState* stream = block.home
    if stream.owned and stream.ordinal == block.ordinal and not (
            stream.capturing and (block.num_readers or block.shared)):
        return stream
    stream = states[block.ordinal]
    while stream != NULL and (not stream.owned or stream.capturing or stream.submitting):
        stream = stream.next
    return stream


cdef bint order_after_all_uses(Block* block) noexcept:
    cdef StreamState* stream = choose_ordering_stream(block)
    cdef int i
    if faulted[block.ordinal]:          # its memory can no longer be used
        return False
    if stream == NULL or (stream != block.home and not is_launched(block, block.home)):
        return False
    for i in range(block.num_readers):
        if not is_launched(block, block.readers[i]):
            return False
    if not have_spare_room(block, stream):
        return False
    if link(stream, block.home) != CUDA_SUCCESS:
        return False
    for i in range(block.num_readers):
        if link(stream, block.readers[i]) != CUDA_SUCCESS:
            return False
    if block.shared and link(stream, legacy_state(block.ordinal)) != CUDA_SUCCESS:
        return False
    block.home = stream
    block.num_readers = 0
    return True


cdef StreamState* launching_outside(const StreamState* stream, int ordinal) noexcept:
    cdef StreamState* last = last_outside[ordinal]
    return last if last != NULL and last != stream and last.submitting else NULL


cdef int flush_outside(StreamState* stream, int ordinal) except -1:
    cdef StreamState* other = launching_outside(stream, ordinal)
    if other != NULL:
        wait_for_submission(other)
        return 0
    other = states[ordinal]
    while other != NULL:
        if other.outside and other.pending and other != stream and not other.capturing:
            launch_for_others(other)
            return 0
        other = other.next
    other = last_outside[ordinal]
    return 1 if other == NULL else wait_for_room(other)


cdef CUresult order_outside(StreamState* stream, int ordinal) noexcept:
    cdef StreamState* last = last_outside[ordinal]
    last_outside[ordinal] = stream
    if last == NULL or last == stream or is_over(last) or is_done(last):
        return CUDA_SUCCESS
    return link(stream, last)


cdef int begin_block(StreamState* stream, Block* block, Access access, bint again) except -1:
    """Order the operation of `begin_direct` after uses of one block; if `again`, the stream waits
    for other libraries' uses already. Return 0: call again."""
    cdef StreamState* other
    if use(block, stream, access) == 0:
        return 0
    if is_outside(block):
        other = legacy_state(block.ordinal) if block.shared else block.home
        if flush_outside(stream, block.ordinal) == 0 or wait_for_room(other) == 0:
            return 0
        if not again:
            order_launched(stream, other)
        check(order_outside(stream, block.ordinal), b"cuStreamWaitEvent", stream.ordinal)
    if access != OVERWRITE:
        refuse_poisoned(block)
    return 1


cdef int refuse_freed() except -1:
    raise ValueError("the memory was freed by another thread while it was about to be used")


cdef int look(StreamState* stream, Block* first, Access first_access, Block* second,
              Access second_access, bint again) except -1:
    """Make one pass of `begin_turn`. Return 0 if something was launched or waited for: call
    again."""
    verify(stream.ordinal, stream.epoch, b"cuMemcpyAsync")
    if stream.explained:
        refuse_contents()
    refuse_captured(stream)
    if priority_thread and not again:       # else that thread may wait for this one
        yield_to_priority_thread(stream)
    if stream.pending or stream.failed:
        flush(stream, b"a copy between host and device, or a fill, comes")
        return 0
    if wait_for_room(stream) == 0:
        return 0
    if stream.behind and order_behind(stream) == 0:
        return 0
    if begin_block(stream, first, first_access, again) == 0:
        return 0
    return second == NULL or begin_block(stream, second, second_access, again)


cdef int begin_turn(StreamState* stream, Block* first, Access first_access, Block* second,
                    Access second_access, bint again) except -1:
    """Do what `begin_direct` does, but leave lost memory marked as lost. If `again`, do not wait
    for what other libraries have put on their streams since the first call."""
    cdef int looks = 0
    cdef unsigned int first_owner = first.generation
    cdef unsigned int second_owner = second.generation if second != NULL else 0
    legacy_state(stream.ordinal)        # created before the pass that keeps the GIL
    try:
        while True:
            if look(stream, first, first_access, second, second_access, again):
                if try_submission(stream):
                    stream.put += 1
                    return 0
                wait_for_turn(stream)
            if first.generation != first_owner \
                    or (second != NULL and second.generation != second_owner):
                refuse_freed()
            looks += 1
            if looks > 1:
                request_priority()
    finally:
        if looks > 1:
            release_priority()


cdef int begin_direct(StreamState* stream, Block* first, Access first_access, Block* second,
                      Access second_access) except -1:
    begin_turn(stream, first, first_access, second, second_access, False)
    note_write(first, first_access)
    note_write(second, second_access)
    if first_access == OVERWRITE:
        mark_valid(first)
    if second_access == OVERWRITE:
        mark_valid(second)
    return 0


cdef int begin_copy(StreamState* own, Block* block, Access access,
                    unsigned int generation) except -1:
    cdef int polls = 0, hold = FIRST_HOLD
    cdef int entered
    cdef double begin = 0
    cdef CUresult result
    cdef bint again = False
    while True:
        if block.generation != generation:
            refuse_freed()
        begin_turn(own, block, access, NULL, READ, again)
        again = True
        entered = enter_quietly(own.ordinal, own.epoch)
        result = query_stream(own.handle)
        if result == CUDA_ERROR_NOT_READY:
            result = poll(query_stream, own.handle, &begin)
        if result == CUDA_SUCCESS:
            leave_quietly(entered)
            note_write(block, access)
            if access == OVERWRITE and block.generation == generation:
                mark_valid(block)
            return 0
        end_submission(own)         # before Python code can run
        leave(own.ordinal, entered, CUDA_SUCCESS if result == CUDA_ERROR_NOT_READY else result,
              b"cuStreamQuery")
        PyErr_CheckSignals()
        polls += 1
        if polls == hold:           # the device may wait for what those do who wait for the block
            let_pass(own, <long long>polls * POLL)
            polls, hold = 0, 2 * hold


cdef void end_copy(StreamState* own, Block* block, Access access, unsigned int generation,
                   bint complete) noexcept:
    cdef int i
    end_submission(own)
    if access == READ and complete and block.generation == generation:
        for i in range(block.num_readers):
            if block.readers[i] == own:
                block.num_readers -= 1
                block.readers[i] = block.readers[block.num_readers]
                break


cdef int continue_after(StreamState* stream, StreamState* own, Block* block,
                        unsigned int generation) except -1:
    wait_for_room(stream)       # the copy has left room on its own: it waits for each chunk's event
    if stream.capturing:        # what is put on it does not run
        return 0
    order_launched(stream, own)
    mark_work(stream)
    if block.generation == generation and block.home == own and block.num_readers == 0:
        block.home = stream
    return 0


cdef void end_direct(StreamState* stream) noexcept:
    mark_work(stream)
    end_submission(stream)
