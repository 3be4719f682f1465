# Calls of cuSOLVER between batches.
#
# INVARIANTS
# - A call ends the batch. It runs in the stream's turn, without the GIL, and may wait inside the
#   library. There is none while a stream is captured, or in a `concurrent()` block: own kernels
#   compute there what the library would.
# - A handle belongs to a stream and is used in the stream's turns only: so one thread at a time
#   uses it, and the memory that the library keeps in it is used in the stream's order.
# - Workspaces on the device are blocks of the pool, one for each call.
# - A call may allocate memory, or wait, which would end another library's capture: it runs in the
#   relaxed mode (driver/capture_mode).

# Whether the library factors all matrices, also those that fit into a block's shared memory.
cdef bint factors_all
