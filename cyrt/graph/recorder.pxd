# The recorder: records operations for one stream.
#
# INVARIANTS
# - All or nothing: an operation that raises leaves the recording as it was. What may wait, and so
#   be interrupted, comes before it is recorded; the commit at its end raises nothing. Exceptions,
#   whose own refusal is raised at once: others' memory, and batches of one operation.
# - First, the batch is launched if it ends before the operation, and the operation is ordered after
#   other streams' work; this order is checked again if other threads could run meanwhile. After
#   the last check, until the operation is appended, the GIL is held and no Python object is created
#   or dropped.
# - An operation of several kernels is in one batch, which may thus be longer than its limit. All
#   waiting is done before its first kernel, which uses all memory of the operation: nothing that
#   other threads or signal handlers record comes between its kernels.
# - A `concurrent()` block records groups: kernels without order among them. What does not belong to
#   the block, another block's group included, waits for its group, and the block's next kernel
#   begins a group behind that.
# - A function that puts work on the stream directly, or exports memory or the stream's handle,
#   commits first: it calls `flush` of runtime, which calls `commit` through runtime/seam.
# - An encoder that the program has made leaves its scripts to the next one that it makes for the
#   stream, if that has the same settings. It does not leave its policy: how long no round was found
#   tells nothing of the next program, and its rounds keep memory.
# - An operation that uses lost memory is recorded but not launched: what it would have written is
#   lost, too.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recording cimport EarlyLoad, Geometry, Operation, Tensors, Use
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport Access, Block, StreamState

# Return the encoder of a stream; the first use creates it.
cdef Recorder encoder_of(StreamState* state)
# Record an operation. `foreign`: the Buffers of outside memory that it uses, or None. `opaque`: it
# may use memory that `uses` does not contain, and waits for all earlier work.
cdef int record(Recorder self, const Operation* operation, Use* uses, int num_uses,
                list foreign, bint opaque) except -1
# `key`: see replay_call; LAUNCH becomes 0 if the kernel cannot be replayed by it. `tensors`: those
# whose memory all of `foreign` stands for; NULL: it is other memory.
cdef int record_kernel(Recorder self, LoadedFunction function, const Geometry* geometry,
                       const char* params, Use* uses, int num_uses, list foreign, bint opaque,
                       unsigned int flags, const unsigned int* cluster,
                       const EarlyLoad* early, unsigned long long key=*,
                       const Tensors* tensors=*) except -1
# Hold the tensors of an operation that is replayed next, with these uses: no Python code may run in
# between. `foreign` stands for their memory. Return False if the operation cannot be replayed.
cdef bint hold_tensors(Recorder self, const Use* uses, int num_uses, list foreign,
                       const Tensors* tensors) except -1
# Return whether the caller's operations on outside memory are launched later.
cdef bint is_deferred(Recorder self) noexcept
# Return whether a kernel that uses other libraries' memory is launched at once instead of being
# recorded. It is, unless the caller's operations are inside a batch, a concurrent group, a capture,
# a trace or an explained function.
cdef bint launches_at_once(Recorder self) noexcept
# Launch a kernel on another library's current stream, which is not being captured. The kernel uses
# memory of that library, whose work on it is all on this stream, and memory of cyrt that no other
# library uses.
cdef int launch_on_producer(StreamState* producer, LoadedFunction function,
                            const Geometry* geometry, const char* params, Use* uses,
                            int num_uses) except -1
# A function that calls a library, without the GIL, and returns its status, which is not negative.
ctypedef int (*LibraryCall)(void* call) noexcept nogil
# Return whether calls of libraries may come between batches: nothing captures the stream, and the
# caller is in no `concurrent()` block.
cdef bint allows_calls(Recorder self) noexcept
# End the batch, and call a library in the stream's turn; it may wait. It is taken to put so many
# commands on the stream. The uses are of cyrt's own memory. Return the library's status; 0, without
# the call, if it would use lost memory.
cdef int call_library(Recorder self, LibraryCall function, void* call, unsigned int commands,
                      Use* uses, int num_uses) except? -1
# Launch the batch if it ends behind the operation, which consists of several kernels.
cdef int commit_if_complete(Recorder self, list foreign) except -1
# Make the recorder the stream's encoder. `max_ops`: the most operations of a batch; 0: the default.
cdef int attach(Recorder self, StreamState* state, graphs, int max_ops) except -1
# Launch what is recorded, and close the encoder; the stream continues without it.
cdef void detach(Recorder self) noexcept
# Drop the scripts that ended encoders of a device's streams have left.
cdef int forget_left_scripts(int ordinal) except -1
# Note that something was added to the recording.
cdef void mark_pending(Recorder self) noexcept
# Keep an object alive until the batch that is recorded now has ended.
cdef int keep(Recorder self, object obj) except -1
# End the group of a block, if that is the open one: later operations wait for all of it.
cdef int leave_group(Recorder self, void* scope) except -1
# Detach the stream's encoder.
cdef void end_encoder(StreamState* state) noexcept
# Record a copy within the device.
cdef int record_copy(StreamState* state, Block* target, Access access, CUdeviceptr to,
                     Block* source, CUdeviceptr start, size_t nbytes) except -1
