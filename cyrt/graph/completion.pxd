# Completion handlers, which run when a batch has ended.
#
# INVARIANTS
# - The thread is created for the first handler, before that belongs to a batch: the collector may
#   run in the new thread before its creator goes on, and finalizers commit, too. It polls, since a
#   driver callback would need the GIL on one of the driver's threads.
# - Handlers of one stream run in the order of their batches; streams do not wait for each other.
# - An exception of a handler goes to sys.unraisablehook. What a handler has recorded itself, on
#   whichever stream, is launched when it returns, and nothing else: what other threads recorded
#   meanwhile could have to wait for other streams.

from cyrt.runtime.state cimport StreamState

# The thread that calls handlers while one runs; 0: none runs.
cdef unsigned long handling
# Start the thread, unless it was. The caller holds no lock.
cdef int start() except -1
# Call each of `handlers` when the work that is on the stream now has ended or failed.
cdef int call_when_ended(StreamState* stream, list handlers) except -1
