"""The memory that the pool allocates from the driver and frees."""

import gc

from libc.stdlib cimport free
from libc.string cimport memset

from cyrt import settings
from cyrt.driver import errors
from cyrt.driver.capture_mode cimport relax, restore
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu, ensure_open
from cyrt.runtime.allocation cimport allocate_zeroed
from cyrt.runtime.blocks cimport (
    Slab, counts, destroy_block, is_part, leave_bin, site_bytes, split_bytes, usages,
)
from cyrt.runtime.device cimport (
    contexts, context_of, enter, enter_quietly, leave, leave_quietly, ordinal_of, verify,
)
from cyrt.runtime.device import reset_hooks
from cyrt.runtime.ending cimport destroy_unused
from cyrt.runtime.freed cimport return_block, return_unsettled_blocks, unsettled
from cyrt.runtime.bitset cimport drop_bit
from cyrt.runtime.sequences cimport drop_sequences
from cyrt.runtime.seam cimport graph
from cyrt.runtime.state cimport FREE, LIVE, NUM_BINS, Bin, Block, StreamState, Usage
from cyrt.runtime.stream_state cimport flush_all, states
from cyrt.runtime.submission cimport sleep_briefly
from cyrt.runtime.waiting cimport wait_all

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

cdef enum:
    SLAB = 4 << 20              # bytes of a slab, from which small blocks are cut
    SPLIT = 4                   # 1/SPLIT of the memory may be in split allocations
    TRIES = 100                 # trims for one allocation, if each leaves memory to be freed


cdef bint wait_for_allocator(int ordinal) except -1:
    """Wait until no other thread allocates from the driver. Return whether one did."""
    cdef unsigned long thread = PyThread_get_thread_ident()
    cdef StreamState* state = states[ordinal]
    cdef unsigned int naps = 0
    while pools[ordinal].allocator not in (0, thread):
        sleep_briefly(state, &naps)
    return naps > 0


cdef bint try_driver(int ordinal, size_t size, CUdeviceptr* address, Shortage* shortage) except -1:
    cdef unsigned int epoch = context_of(ordinal).epoch
    cdef Pool* pool = &pools[ordinal]
    cdef unsigned long outer
    cdef size_t available = 0
    cdef CUstreamCaptureMode before
    cdef CUresult result
    cdef int entered
    limit = settings.get("CYRT_MEMORY_LIMIT")
    destroy_unused()
    wait_for_allocator(ordinal)
    shortage.size, shortage.given_back = size, pool.given_back
    shortage.limited = limit is not None and pool.reserved + size > limit
    if shortage.limited:
        return False
    entered = enter(ordinal, epoch, b"cuMemAlloc")
    if pool.total == 0:
        cu.cuMemGetInfo(&available, &pool.total)
        pool.most_split = (pool.total if limit is None else min(pool.total, <size_t>limit)) // SPLIT
    outer, pool.allocator = pool.allocator, PyThread_get_thread_ident()
    with nogil:
        before = relax()
        result = cu.cuMemAlloc(address, size)
        restore(before)
        if result == CUDA_SUCCESS and cu.cyrtEmuGuard != NULL:
            cu.cyrtEmuGuard(address[0])
    pool.allocator = outer
    if result == CUDA_ERROR_OUT_OF_MEMORY:
        leave_quietly(entered)
        return False
    leave(ordinal, entered, result, b"cuMemAlloc")
    verify(ordinal, epoch, b"cuMemAlloc")       # raises if the device was reset
    pool.reserved += size
    pool.driver_allocations += 1
    return True


cdef bint give_back(int ordinal, Shortage* shortage) except -1:
    cdef Pool* pool = &pools[ordinal]
    trim(ordinal)
    shortage.tries += 1
    if pool.given_back != shortage.given_back \
            or (shortage.tries < TRIES and has_free_memory(ordinal)):
        return True
    if not shortage.collected:      # a module and its kernels are a cycle; arrays may be in one
        shortage.collected = True
        gc.collect()
        return True                 # what was being freed has been freed by the trim, too
    if shortage.limited or (pool.total and pool.reserved + shortage.size > pool.total):
        return False
    return graph.release_plans(ordinal)


cdef int allocate_from_driver(int ordinal, size_t size, CUdeviceptr* address) except -1:
    cdef Shortage shortage
    shortage.tries, shortage.collected = 0, False
    while not try_driver(ordinal, size, address, &shortage):
        if not give_back(ordinal, &shortage):
            out_of_memory(ordinal, size, b"cuMemAlloc")
    return 0


cdef int out_of_memory(int ordinal, size_t nbytes, const char* call, size_t block=0) except -1:
    cdef size_t available = 0, total = 0
    cdef size_t in_use = usages[ordinal].in_use
    cdef int entered = enter(ordinal, contexts[ordinal].epoch, b"cuMemGetInfo")
    cu.cuMemGetInfo(&available, &total)
    leave_quietly(entered)
    limit = settings.get("CYRT_MEMORY_LIMIT")
    raise errors.OutOfMemoryError(
        call.decode(), <int>CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY",
        f"{nbytes:,} bytes wanted on device {ordinal}"
        f"{f', in a block of {block:,}' if block > nbytes else ''}; "
        f"{in_use:,} in use by cyrt, {pools[ordinal].reserved - in_use:,} in its cache, "
        f"{available:,} free of {total:,}",
        "" if limit is None else f"CYRT_MEMORY_LIMIT is {limit:,} bytes")


cdef Slab* slab_for(int ordinal, size_t size, Shortage* shortage) except? NULL:
    cdef Pool* pool = &pools[ordinal]
    cdef Slab* slab
    cdef CUdeviceptr address = 0
    while True:
        slab = pool.slabs
        while slab != NULL and SLAB - slab.used < size:
            slab = slab.next
        if slab != NULL:
            return slab
        if not wait_for_allocator(ordinal):
            break
    if not try_driver(ordinal, SLAB, &address, shortage):
        return NULL
    slab = <Slab*>allocate_zeroed(sizeof(Slab))
    slab.address = address
    slab.next = pool.slabs
    pool.slabs = slab
    return slab


cdef bint is_unused(const Block* block) noexcept:
    """Return whether the block is free, and all others of its driver allocation."""
    cdef const Block* part = block.before
    if block.state != FREE:
        return False
    if block.slab != NULL:
        return (<Slab*>block.slab).live == 0
    while part != NULL and part.state == FREE and not part.holder.capturing:
        part = part.before
    if part != NULL:
        return False
    part = block.after
    while part != NULL and part.state == FREE and not part.holder.capturing:
        part = part.after
    return part == NULL


cdef void remove(Block* block) noexcept:
    """Remove a free block from its bin and give up its slot."""
    drop_bit(&block.holder.bins[block.bin].free, block.slot)
    leave_bin(block)
    block.state = LIVE


cdef Block* detach(Block* block, Block* detached) noexcept:
    """Remove a free block, and the parts beside it, and put them in front of the list, in order."""
    while block.after != NULL:
        block = block.after
    while block != NULL:
        remove(block)
        block.next = detached
        detached = block
        block = block.before
    return detached


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
                    detached = detach(block, detached)
        state = state.next
    return detached


cdef bint has_free_memory(int ordinal) noexcept:
    """Return whether a trim would find memory. The function keeps the GIL."""
    cdef StreamState* state = states[ordinal]
    cdef Slab* slab = pools[ordinal].slabs
    cdef bint found = False
    cdef int i, slot
    return_unsettled_blocks(ordinal)
    hold_captured_slabs(ordinal, 1)
    while slab != NULL and not found:
        found = slab.live == 0
        slab = slab.next
    while state != NULL and not found:
        found = state.resting != NULL and not state.capturing
        for i in range(NUM_BINS if not state.capturing else 0):
            for slot in range(state.bins[i].used):
                found = found or (state.bins[i].blocks[slot] != NULL
                                  and is_unused(state.bins[i].blocks[slot]))
        state = state.next
    hold_captured_slabs(ordinal, -1)
    return found


cdef void hold_captured_slabs(int ordinal, int change) noexcept:
    """Count the free blocks of captured streams as live, or undo it; their slabs must be kept."""
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


cdef size_t free_now(int ordinal, unsigned int epoch, CUdeviceptr address, size_t size) noexcept:
    """Free a driver allocation (0: none), and count `size` bytes as given back. Return them."""
    cdef CUstreamCaptureMode before
    cdef int entered = enter_quietly(ordinal, epoch)
    if entered < 0:
        return 0
    if address:
        with nogil:
            before = relax()
            cu.cuMemFree(address)
            restore(before)
    leave_quietly(entered)
    if epoch != contexts[ordinal].epoch:        # the device was reset meanwhile
        return 0
    pools[ordinal].reserved -= size
    pools[ordinal].given_back += size
    return size


cdef void take_over(Pool* pool, Trim* own) noexcept:
    """Add what the trims that wait have taken out of the pool, and join them."""
    cdef Trim* other = pool.trims
    cdef Block** blocks = &own.blocks
    cdef Slab** slabs = &own.slabs
    while other != NULL:
        while blocks[0] != NULL:
            blocks = &blocks[0].next
        while slabs[0] != NULL:
            slabs = &slabs[0].next
        blocks[0], slabs[0] = other.blocks, other.slabs
        other.blocks, other.slabs = NULL, NULL
        other = other.next
    own.next, pool.trims = pool.trims, own


cdef void end_wait(Pool* pool, Trim* own) noexcept:
    """Remove a trim from those that wait, unless a reset of the device has."""
    cdef Trim** link = &pool.trims
    while link[0] != NULL and link[0] != own:
        link = &link[0].next
    if link[0] != NULL:
        link[0] = own.next


cdef void put_back(int ordinal, Trim* own) noexcept:
    """Return to the pool what an interrupted trim has taken out."""
    cdef Slab* slab
    attach_blocks(own.blocks)
    while own.slabs != NULL:
        slab = own.slabs
        own.slabs = slab.next
        slab.next, pools[ordinal].slabs = pools[ordinal].slabs, slab


cdef size_t free_all(int ordinal, unsigned int epoch, Trim* own) noexcept:
    """Free what a trim has taken out of the pool, and return its size. This releases the GIL."""
    cdef Pool* pool = &pools[ordinal]
    cdef size_t freed = 0
    cdef Block* block
    cdef Slab* slab
    while own.blocks != NULL:
        block = own.blocks
        own.blocks = block.next
        if epoch == contexts[ordinal].epoch:
            counts[ordinal][block.bin].made -= 1
        if block.slab == NULL and epoch == contexts[ordinal].epoch:
            pool.large_made -= block.size
            if is_part(block):
                split_bytes[ordinal] -= block.size
            freed += free_now(ordinal, epoch, block.address if block.before == NULL else 0,
                              block.size)
        destroy_block(block)
    while own.slabs != NULL:
        slab = own.slabs
        own.slabs = slab.next
        freed += free_now(ordinal, epoch, slab.address, SLAB)
        free(slab)
    return freed


cdef size_t trim(int ordinal) except? 1:
    """Free all memory that is not in use, and return its size. Ctrl-C ends the wait for work in
    flight.

    The free blocks are taken out of the pool before the wait. During the wait other threads may
    record work and free more blocks, which stay in the pool. Freeing releases the GIL, too.
    """
    cdef Pool* pool = &pools[ordinal]
    cdef unsigned int naps = 0, epoch = contexts[ordinal].epoch
    cdef unsigned long outer, thread = PyThread_get_thread_ident()
    cdef StreamState* first = states[ordinal]
    cdef StreamState* state
    cdef size_t freed
    cdef Trim own
    # This returns the RESTING blocks to their bins.
    flush_all(ordinal, b"free memory is returned to the driver")
    return_unsettled_blocks(ordinal)
    state = states[ordinal]
    while state != NULL:
        if not state.capturing:
            drop_sequences(state)
        state = state.next
    hold_captured_slabs(ordinal, 1)
    own.blocks = detach_free_blocks(ordinal)
    own.slabs = detach_free_slabs(pool)
    hold_captured_slabs(ordinal, -1)
    take_over(pool, &own)
    try:
        wait_all(ordinal)
        while pool.freer not in (0, thread):    # what it frees was free before this call
            sleep_briefly(first, &naps)
        verify(ordinal, epoch, b"cuMemFree")        # raises after a reset, which freed all memory
    except BaseException:
        end_wait(pool, &own)
        if epoch == contexts[ordinal].epoch:
            put_back(ordinal, &own)
        raise
    end_wait(pool, &own)
    outer, pool.freer = pool.freer, thread      # a driver's or a tool's callback may trim, too
    freed = free_all(ordinal, epoch, &own)
    pool.freer = outer
    return freed


@reset_hooks.append
def _reset(int ordinal):
    cdef Slab* slab
    cdef Pool* pool = &pools[ordinal]
    cdef Pool emptied
    while pool.slabs != NULL:
        slab = pool.slabs
        pool.slabs = slab.next
        free(slab)
    memset(&emptied, 0, sizeof(Pool))
    emptied.freer, emptied.allocator = pool.freer, pool.allocator
    emptied.driver_allocations = pool.driver_allocations
    emptied.given_back = pool.given_back
    pool[0] = emptied
    memset(counts[ordinal], 0, sizeof(counts[ordinal]))
    memset(&usages[ordinal], 0, sizeof(Usage))
    site_bytes[ordinal] = split_bytes[ordinal] = 0
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
        Numbers of bytes, and a count:

        - ``in_use``: the sum of the sizes that existing Buffers and arrays asked for;
        - ``peak``: the greatest value of ``in_use``;
        - ``reserved``: the bytes that are allocated from the driver;
        - ``cached``: the bytes that are reserved and not in use, because they are kept for reuse or
          because sizes are rounded up;
        - ``limit``: the limit of the reserved bytes; None if there is no limit;
        - ``driver_allocations``: the number of allocations from the driver so far.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.zeros(1000)
    >>> cyrt.memory_stats()["in_use"] >= x.nbytes
    True
    """
    cdef int ordinal = ordinal_of(device)
    cdef Pool pool
    cdef Usage usage
    ensure_open()
    limit = settings.get("CYRT_MEMORY_LIMIT")
    # These are copies: other threads may run while the result is made.
    pool, usage = pools[ordinal], usages[ordinal]
    return {
        "in_use": usage.in_use,
        "peak": usage.peak,
        "cached": pool.reserved - usage.in_use,
        "reserved": pool.reserved,
        "limit": limit,
        "driver_allocations": pool.driver_allocations,
    }


def trim_memory(device=None):
    """Return the memory that the pool keeps for reuse to the driver.

    The peak that :func:`memory_stats` reports, which also limits how much memory the pool keeps, is
    reset to the current use. Batches that were kept for replay are dropped, too, so the next
    batches are recorded again.

    Parameters
    ----------
    device : Device or int, optional
        Default: the current device.

    Returns
    -------
    int
        The bytes returned to the driver.
    """
    cdef int ordinal = ordinal_of(device)
    cdef size_t freed
    cdef int bin
    context_of(ordinal)
    freed = trim(ordinal)
    graph.free_scripts(ordinal)
    usages[ordinal].peak = usages[ordinal].in_use
    pools[ordinal].large_peak = pools[ordinal].large_in_use
    for bin in range(NUM_BINS):
        counts[ordinal][bin].most = counts[ordinal][bin].out
        counts[ordinal][bin].misses = 0
    return freed
