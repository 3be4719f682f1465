# Calls that would end another library's capture.
#
# INVARIANTS
# - While a stream is captured in the global mode, which is PyTorch's, these calls of any thread end
#   the capture with an error: allocating and freeing memory, loading and unloading modules,
#   instantiating graphs, and asking or waiting for events and streams. cyrt makes them in the
#   relaxed mode, which permits them, on every thread: the driver does not tell whether a stream is
#   being captured that cyrt does not know.
# - The thread's mode is restored before any other code can run on the thread: so the driver still
#   refuses such calls of other libraries. Only finalizers and signal handlers may run in the
#   relaxed mode, where Python functions make, or end, what a library's calls need.

from cyrt.driver.cuda cimport (
    CU_STREAM_CAPTURE_MODE_RELAXED, CUevent, CUresult, CUstream, CUstreamCaptureMode,
)
from cyrt.driver.table cimport cu

# Permit these calls to the thread. Return the mode that `restore` takes.
cdef inline CUstreamCaptureMode relax() noexcept nogil:
    cdef CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED
    cu.cuThreadExchangeStreamCaptureMode(&mode)
    return mode

cdef inline void restore(CUstreamCaptureMode before) noexcept nogil:
    cu.cuThreadExchangeStreamCaptureMode(&before)

# Return CUDA_SUCCESS if all work before the event has ended, CUDA_ERROR_NOT_READY if it has not.
cdef inline CUresult event_status(CUevent event) noexcept nogil:
    cdef CUstreamCaptureMode before = relax()
    cdef CUresult result = cu.cuEventQuery(event)
    restore(before)
    return result

# Return the same for all work on a stream.
cdef inline CUresult stream_status(CUstream stream) noexcept nogil:
    cdef CUstreamCaptureMode before = relax()
    cdef CUresult result = cu.cuStreamQuery(stream)
    restore(before)
    return result
