"""The memory that the pool allocates from the driver and frees."""

from libc.stdlib cimport calloc, free
from libc.string cimport memset

from cyrt import settings
from cyrt.driver import errors
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu, ensure_open
from cyrt.runtime.blocks cimport (
    Slab, counts, destroy_block, kept_bytes, leave_bin, stop_keeping,
)
from cyrt.runtime.device cimport (
    contexts, context_of, enter, enter_quietly, leave, leave_quietly, ordinal_of, verify,
)
from cyrt.runtime.device import reset_hooks
from cyrt.runtime.ending cimport destroy_unused
from cyrt.runtime.freed cimport return_block, return_unsettled_blocks, unsettled
from cyrt.runtime.bitset cimport drop_bit
from cyrt.runtime.seam cimport graph
from cyrt.runtime.state cimport FREE, LIVE, NUM_BINS, Bin, Block, StreamState
from cyrt.runtime.stream_state cimport flush, states
from cyrt.runtime.submission cimport sleep_briefly
from cyrt.runtime.waiting cimport wait_all

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

cdef enum:
    SLAB = 4 << 20              # bytes of a slab, from which small blocks are cut


cdef int allocate_from_driver(int ordinal, size_t size, size_t wanted,
                              CUdeviceptr* address) except -1:
    cdef unsigned int epoch = context_of(ordinal).epoch
    cdef Pool* pool = &pools[ordinal]
    cdef CUresult result
    cdef int entered
    cdef bint trimmed = False, limited = True
    limit = settings.get("CYRT_MEMORY_LIMIT")
    destroy_unused()
    while True:
        limited = limit is not None and pool.reserved + size > limit
        if not limited:
            entered = enter(ordinal, epoch, b"cuMemAlloc")
            with nogil:
                result = cu.cuMemAlloc(address, size)
            if result != CUDA_ERROR_OUT_OF_MEMORY:
                leave(ordinal, entered, result, b"cuMemAlloc")
                verify(ordinal, epoch, b"cuMemAlloc")       # raises if the device was reset
                pool.reserved += size
                pool.driver_allocations += 1
                return 0
            leave_quietly(entered)
        if not trimmed:
            trim(ordinal)
            trimmed = True
        elif limited or not graph.release_plans(ordinal):   # plans are not part of the limit
            break
    out_of_memory(ordinal, wanted, b"cuMemAlloc", size)


cdef int out_of_memory(int ordinal, size_t nbytes, const char* call, size_t block=0) except -1:
    cdef size_t available = 0, total = 0
    cdef Pool* pool = &pools[ordinal]
    cdef int entered = enter(ordinal, contexts[ordinal].epoch, b"cuMemGetInfo")
    cu.cuMemGetInfo(&available, &total)
    leave_quietly(entered)
    limit = settings.get("CYRT_MEMORY_LIMIT")
    raise errors.OutOfMemoryError(
        call.decode(), <int>CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY",
        f"{nbytes:,} bytes wanted on device {ordinal}"
        f"{f', in a block of {block:,}' if block > nbytes else ''}; "
        f"{pool.in_use:,} in use by cyrt, {pool.cached:,} in its cache, "
        f"{available:,} free of {total:,}",
        "" if limit is None else f"CYRT_MEMORY_LIMIT is {limit:,} bytes")


cdef Slab* slab_for(int ordinal, size_t size, size_t wanted) except NULL:
    cdef Pool* pool = &pools[ordinal]
    cdef Slab* slab = pool.slabs
    cdef CUdeviceptr address = 0
    if slab != NULL and SLAB - slab.used >= size:
        return slab
    allocate_from_driver(ordinal, SLAB, wanted, &address)
    slab = <Slab*>calloc(1, sizeof(Slab))
    if slab == NULL:
        raise MemoryError()
    slab.address = address
    slab.next = pool.slabs
    pool.slabs = slab
    pool.cached += SLAB
    return slab


cdef bint is_unused(const Block* block) noexcept:
    return block.state == FREE and (block.slab == NULL or (<Slab*>block.slab).live == 0)


cdef void remove(Block* block) noexcept:
    """Remove a free block from its bin and give up its slot."""
    if block.keeper:
        stop_keeping(block)
    drop_bit(&block.holder.bins[block.bin].free, block.slot)
    leave_bin(block)
    block.state = LIVE


cdef Block* detach_free_blocks(int ordinal) noexcept:
    """Remove the free blocks from the bins, except those whose slab is in use and those of streams
    that are being captured."""
    cdef StreamState* state = states[ordinal]
    cdef Block* block
    cdef Block* detached = NULL
    cdef Bin* bin
    cdef int i, slot
    while state != NULL:
        for i in range(NUM_BINS if not state.capturing else 0):
            bin = &state.bins[i]
            for slot in range(bin.used):
                block = bin.blocks[slot]
                if block != NULL and is_unused(block):
                    remove(block)
                    block.next = detached
                    detached = block
        state = state.next
    return detached


cdef void hold_captured_slabs(int ordinal, int change) noexcept:
    """Count the free blocks of captured streams as live, or undo it: their slabs have to stay."""
    cdef StreamState* state = states[ordinal]
    cdef Block* block
    cdef int i, slot
    while state != NULL:
        for i in range(NUM_BINS if state.capturing else 0):
            for slot in range(state.bins[i].used):
                block = state.bins[i].blocks[slot]
                if block != NULL and block.state == FREE and block.slab != NULL:
                    (<Slab*>block.slab).live += change
        state = state.next


cdef void attach_blocks(Block* block) noexcept:
    """Put the blocks back into the bins of their streams after an interrupted wait."""
    cdef Block* following
    while block != NULL:
        following = block.next
        counts[block.ordinal][block.bin].out += 1
        if block.slab != NULL:
            (<Slab*>block.slab).live += 1
        return_block(block)
        block = following


cdef Slab* detach_free_slabs(Pool* pool) noexcept:
    cdef Slab** link = &pool.slabs
    cdef Slab* slab
    cdef Slab* detached = NULL
    while link[0] != NULL:
        slab = link[0]
        if slab.live:
            link = &slab.next
        else:
            link[0] = slab.next
            slab.next = detached
            detached = slab
    return detached


cdef void free_now(int ordinal, unsigned int epoch, CUdeviceptr address) noexcept:
    cdef int entered = enter_quietly(ordinal, epoch)
    if entered >= 0:
        with nogil:
            cu.cuMemFree(address)
        leave_quietly(entered)


cdef int trim(int ordinal) except -1:
    """Free all memory that is not in use. Ctrl-C ends the wait for work in flight.

    The free blocks are taken out of the pool before the wait. During the wait other threads may
    record work and free more blocks, which stay in the pool. Freeing releases the GIL, too.
    """
    cdef Pool* pool = &pools[ordinal]
    cdef unsigned int naps = 0, trims = pool.trims, epoch = contexts[ordinal].epoch
    cdef unsigned long outer, thread = PyThread_get_thread_ident()
    cdef Block* blocks
    cdef Block* block
    cdef Slab* slabs
    cdef Slab* slab
    while pool.trimmer not in (0, thread) and pool.trims == trims:      # another thread trims
        sleep_briefly(states[ordinal], &naps)
    if pool.trims != trims:
        return 0
    flush_recorded(ordinal)             # returns the RESTING blocks to their bins
    return_unsettled_blocks(ordinal)
    hold_captured_slabs(ordinal, 1)
    blocks = detach_free_blocks(ordinal)
    slabs = detach_free_slabs(pool)
    hold_captured_slabs(ordinal, -1)
    outer, pool.trimmer = pool.trimmer, thread     # a signal handler's trim may be a nested one
    try:
        wait_all(ordinal)
        verify(ordinal, epoch, b"cuMemFree")        # raises after a reset, which freed all memory
    except BaseException:
        end_trim(pool, thread, outer)
        if epoch == contexts[ordinal].epoch:
            attach_blocks(blocks)
            while slabs != NULL:
                slab = slabs
                slabs = slab.next
                slab.next = pool.slabs
                pool.slabs = slab
        raise
    while blocks != NULL:
        block = blocks
        blocks = block.next
        if epoch == contexts[ordinal].epoch:
            counts[ordinal][block.bin].made -= 1
        if block.slab == NULL and epoch == contexts[ordinal].epoch:
            pool.large_made -= block.size
            pool.cached -= block.size
            pool.reserved -= block.size
            free_now(ordinal, epoch, block.address)
        destroy_block(block)
    while slabs != NULL:
        slab = slabs
        slabs = slab.next
        if epoch == contexts[ordinal].epoch:
            pool.cached -= SLAB
            pool.reserved -= SLAB
            free_now(ordinal, epoch, slab.address)
        free(slab)
    end_trim(pool, thread, outer)
    pool.trims += 1
    return 0


cdef void end_trim(Pool* pool, unsigned long thread, unsigned long outer) noexcept:
    if pool.trimmer == thread:          # else another thread began a trim and will end it
        pool.trimmer = outer if outer == thread else 0


cdef int flush_recorded(int ordinal) except -1:
    cdef StreamState* state = states[ordinal]
    while state != NULL:
        if not state.capturing:
            graph.reason = b"free memory is returned to the driver"
            flush(state)
        state = state.next
    return 0


@reset_hooks.append
def _reset(int ordinal):
    cdef Slab* slab
    cdef unsigned long long taken = pools[ordinal].driver_allocations
    while pools[ordinal].slabs != NULL:
        slab = pools[ordinal].slabs
        pools[ordinal].slabs = slab.next
        free(slab)
    pools[ordinal] = Pool(NULL, pools[ordinal].trims, pools[ordinal].trimmer,
                          0, 0, 0, 0, taken, 0, 0, 0)
    memset(counts[ordinal], 0, sizeof(counts[ordinal]))
    kept_bytes[ordinal] = 0
    unsettled[ordinal] = NULL


def memory_stats(device=None):
    """Return the sizes of a device's memory pool.

    Parameters
    ----------
    device : Device or int, optional
        Default: the current device.

    Returns
    -------
    dict
        Bytes ``in_use`` (in living Buffers, rounded to size classes), their ``peak``, ``cached``
        (free, kept for reuse), ``reserved`` (allocated from the driver: the sum of in_use and
        cached), the ``limit`` (None: no limit), and ``driver_allocations``, the number of driver
        allocations so far.
    """
    cdef int ordinal = ordinal_of(device)
    cdef Pool* pool
    ensure_open()
    pool = &pools[ordinal]
    return {
        "in_use": pool.in_use,
        "peak": pool.peak,
        "cached": pool.cached,
        "reserved": pool.reserved,
        "limit": settings.get("CYRT_MEMORY_LIMIT"),
        "driver_allocations": pool.driver_allocations,
    }


def trim_memory(device=None):
    """Return the memory that the pool keeps for reuse to the driver.

    The program's peak limits what the pool may keep; the peak is reset to the current use.

    Parameters
    ----------
    device : Device or int, optional
        Default: the current device.

    Returns
    -------
    int
        Bytes returned to the driver.
    """
    cdef int ordinal = ordinal_of(device)
    cdef size_t before
    cdef int bin
    context_of(ordinal)
    before = pools[ordinal].reserved
    trim(ordinal)
    pools[ordinal].large_peak = pools[ordinal].large_in_use
    for bin in range(NUM_BINS):
        counts[ordinal][bin].most = counts[ordinal][bin].out
    return before - pools[ordinal].reserved
