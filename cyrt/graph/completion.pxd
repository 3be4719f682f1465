# Handlers that run when a batch has ended.
#
# INVARIANTS
# - A thread exists only where somebody asked for a handler. It polls: a callback of the driver's
#   would need the GIL on a thread of the driver's own.
# - Handlers of one stream run in the order of their batches; streams do not wait for each other.
# - What a handler raises goes to sys.unraisablehook; what it records is launched when it returns.

from cyrt.runtime.state cimport StreamState

# Calls each of `handlers` once what is on the stream now has ended, or failed.
cdef int call_after(StreamState* stream, list handlers) except -1
