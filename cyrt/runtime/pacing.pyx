# C-level functions only: see pacing.pxd.
"""Pacing: room in the driver's queues of streams."""

from cyrt.driver.capture_mode cimport event_status
from cyrt.driver.cuda cimport *
from cyrt.runtime.device cimport enter_quietly, leave_quietly
from cyrt.runtime.state cimport PACE_EVENTS, StreamState
from cyrt.runtime.stream_state cimport is_captured, is_others_thread, record_event
from cyrt.runtime.submission cimport release_priority, sleep_briefly

cdef extern from "unistd.h" nogil:
    int usleep(unsigned int)

cdef enum:
    NAP = 20                # microseconds


cdef void pop_reached_events(StreamState* stream) noexcept:
    """Remove the events that have been reached from the ring."""
    cdef int slot
    cdef unsigned long long put
    while stream.pace_count:
        slot = stream.pace_first
        put = stream.pace_puts[slot]
        # After an error the device runs nothing any more: the next call raises that error.
        if event_status(stream.pace_events[slot]) == CUDA_ERROR_NOT_READY:
            break
        # A function that a tool has put in the driver's place may have let others remove it.
        if stream.pace_puts[stream.pace_first] != put:
            continue
        stream.run = put
        stream.pace_first = (slot + 1) % PACE_EVENTS
        stream.pace_count -= 1


cdef void add_event(StreamState* stream) noexcept:
    cdef int slot = (stream.pace_first + stream.pace_count) % PACE_EVENTS
    stream.paced = stream.put
    if record_event(&stream.pace_events[slot], stream.handle) == CUDA_SUCCESS:
        stream.pace_puts[slot] = stream.put
        stream.pace_count += 1
        stream.put += 1


cdef bint look(StreamState* stream) noexcept:
    cdef int entered
    if stream.capturing or stream.ended or is_others_thread(stream) or is_captured(stream):
        return True
    entered = enter_quietly(stream.ordinal, stream.epoch)
    if entered < 0:                 # the next use of the context raises the error
        return True
    pop_reached_events(stream)
    if stream.put - stream.paced >= STEP and stream.pace_count < PACE_EVENTS:
        add_event(stream)
    leave_quietly(entered)
    stream.next_look = min(stream.paced + STEP, stream.run + MOST)
    return stream.put - stream.run < MOST or stream.pace_count == 0


cdef int poll_for_room(StreamState* stream) except -1:
    cdef unsigned int naps = 0
    while not has_room(stream):
        release_priority()
        sleep_briefly(stream, &naps)
    return 0


cdef void poll_for_room_in_turn(StreamState* stream) noexcept:
    while not has_room(stream):
        release_priority()
        with nogil:
            usleep(NAP)
