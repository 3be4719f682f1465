# Completion handlers, which run when a batch has ended.
#
# INVARIANTS
# - The thread is created for the first handler, before that belongs to a batch: the collector may
#   run in the new thread before its creator goes on, and finalizers commit, too. It polls, since a
#   driver callback would need the GIL on one of the driver's threads.
# - Handlers of one stream run in the order of their batches; streams do not wait for each other.
# - A mark is made before the batch's turn, and queued in it, without Python code: the GIL alone
#   protects the queues.
# - An exception of a handler goes to sys.unraisablehook. What a handler has recorded itself, on
#   whichever stream, is launched when it returns, and nothing else: what other threads recorded
#   meanwhile could have to wait for other streams.

from cyrt.driver.cuda cimport CUevent
from cyrt.runtime.state cimport StreamState

# The thread that calls handlers while one runs; 0: none runs.
cdef unsigned long handling

# An event after a batch, and the handlers to call when it is reached.
cdef class Mark:
    cdef StreamState* stream
    cdef CUevent event
    cdef int ordinal
    cdef unsigned int epoch
    cdef list handlers          # None: they have run
    cdef Mark later             # the stream's next one
    # The next two fields are used in the first mark of a stream only.
    cdef Mark last              # the stream's last one
    cdef Mark other             # the first one of another stream
    cdef bint reached(self) noexcept

# Start the thread, unless it was. The caller holds no lock.
cdef int start() except -1
# Return a mark for the handlers of the stream's next batch.
cdef Mark new_mark(StreamState* stream)
# Call each of `handlers` when the work that is on the stream now has ended or failed.
cdef void call_when_ended(Mark mark, list handlers) noexcept
