# Streams.
#
# INVARIANTS
# - The default stream is a non-blocking one of each thread and device, never the legacy one.
# - States (CUstream and free blocks) are recycled, not destroyed; see state.pxd.
# - Waits release the GIL and end on a signal (Ctrl-C).

from cyrt.driver.cuda cimport CUevent, CUresult, CUstream
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.state cimport StreamState

# Launches what is recorded for a stream; graph/recorder puts itself here.
# The encoder's, which puts them here: launch what is recorded; everything launched has ended; the
# stream is another's from now on.
cdef int (*commit_stream)(StreamState* stream) except -1
cdef int (*look_back)(StreamState* stream) except -1
cdef void (*end_encoder)(StreamState* stream) noexcept

# Before anything is put on a stream directly, or told of it: what is recorded goes first.
cdef inline int flush(StreamState* stream) except -1:
    stream.idle = False
    if stream.pending or stream.committing:
        return commit_stream(stream)
    return 0

# A kernel that prints was loaded: the driver hands its text out when it is made to synchronise.
cdef bint printing

# The states of each device, linked.
cdef StreamState* states[MAX_DEVICES]

cdef class Stream:
    cdef StreamState* state
    cdef object owner           # what a wrapped stream belongs to
    cdef object __weakref__

    cdef StreamState* live(self) except NULL

# This thread's current stream on a device (borrowed by the caller's frame only).
cdef StreamState* current_state(int ordinal) except NULL
cdef Stream current_stream(int ordinal)
# Launches what this thread has recorded for its current stream, if it has one.
cdef int flush_current(int ordinal) except -1
# A Stream of the state.
cdef Stream stream_over(StreamState* state)
# Raises while the stream is captured.
cdef int refuse_captured(StreamState* state) except -1
# The state of a Stream, or of anything with __cuda_stream__; None: the current one.
cdef Stream stream_of(stream, int ordinal)
# Work put on `later` from now on waits for what is on `earlier` now.
cdef int order_after(StreamState* later, StreamState* earlier) except -1
# The same for what was launched on the earlier one, without what is recorded for it.
cdef int order_launched(StreamState* later, StreamState* earlier) except -1
# The state of somebody else's stream, by handle.
cdef StreamState* foreign_state(int ordinal, CUstream handle) except NULL

ctypedef CUresult (*Query)(void* handle) noexcept nogil
# Polls until the answer is another than "not ready".
cdef int wait(int ordinal, unsigned int epoch, Query query, void* handle,
              const char* call) except -1
cdef int wait_state(StreamState* state) except -1
# Waits for all streams of cyrt's own on a device.
cdef int wait_all(int ordinal) except -1

# Called after a wait for all of a device's streams; set by `ending`, which builds on this file.
ctypedef void (*OnIdle)() noexcept
cdef OnIdle on_idle
