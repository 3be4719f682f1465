"""The pool of device memory."""

from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from cyrt import settings
from cyrt.driver import errors
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, READY, cu, ensure_open, process
from cyrt.runtime.device cimport (
    contexts, context_of, enter, enter_quietly, leave, leave_quietly, ordinal_of, verify,
)
from cyrt.runtime.device import reset_hooks
from cyrt.runtime.ending cimport end_block, sweep
from cyrt.runtime.order cimport is_recorded, settle
from cyrt.runtime.poison cimport heal
from cyrt.runtime.state cimport (
    FREE, LIVE, RESTING, UNSETTLED, Block, BlockKind, DEVICE_MEMORY, FOREIGN_MEMORY, Hazard,
    NUM_BINS, PINNED_MEMORY, StreamState,
)
from cyrt.runtime.stream cimport flush, states, wait_all
from cyrt.runtime.submission cimport nap

cdef extern from *:
    """
    static inline int cyrt_log2(unsigned long long n) { return 63 - __builtin_clzll(n); }
    static inline void cyrt_prefetch(const void* bytes, size_t size) {
        for (size_t i = 0; i < size; i += 64) __builtin_prefetch((const char*)bytes + i);
    }
    """
    int cyrt_log2(unsigned long long n) noexcept nogil
    void cyrt_prefetch(const void* bytes, size_t size) noexcept nogil

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

cdef enum:
    FINE = 4096                 # up to here classes are GRAIN apart
    GRAIN = 512
    LARGE = 1 << 20             # from here on a block is a driver allocation of its own
    SLAB = 4 << 20              # what smaller blocks are cut from

# A driver allocation that small blocks are cut from.
cdef struct Slab:
    CUdeviceptr address
    size_t used                 # bytes cut so far
    int live                    # blocks handed out and not returned
    Slab* next

cdef struct Pool:
    Slab* slabs
    Block* unsettled            # freed, and used by streams whose use is not launched yet
    unsigned int trims          # how often memory was given back
    unsigned long trimmer       # the thread that gives it back just now; 0: none
    size_t in_use               # bytes in blocks handed out
    size_t peak
    size_t cached               # bytes in free blocks and uncut slabs
    size_t reserved             # bytes taken from the driver
    unsigned long long driver_allocations

cdef Pool pools[MAX_DEVICES]
cdef Block* spare_blocks        # of memory that is gone
cdef int pooling = -1           # CYRT_POOL, read at first use


cdef int pool_enabled() except -1:
    global pooling
    if pooling < 0:
        pooling = settings.get("CYRT_POOL") and not settings.get("CYRT_CHECK")
    return pooling


cdef int size_class(size_t nbytes, size_t* size) noexcept nogil:
    """The class of a size, and what a block of it holds."""
    cdef int exponent, steps, first
    cdef size_t step, k
    if nbytes <= FINE:
        k = (nbytes + GRAIN - 1) // GRAIN if nbytes else 1
        size[0] = k * GRAIN
        return <int>k - 1
    exponent = cyrt_log2(nbytes - 1)            # 2^exponent < nbytes <= 2^(exponent + 1)
    if nbytes <= LARGE:
        steps, first = 4, 8 + 4 * (exponent - 12)
    else:
        steps, first = 8, 8 + 32 + 8 * (exponent - 20)
    step = (<size_t>1 << exponent) // steps
    k = (nbytes - (<size_t>1 << exponent) + step - 1) // step
    size[0] = (<size_t>1 << exponent) + k * step
    return first + <int>k - 1


cdef Block* new_block(CUdeviceptr address, size_t size, int ordinal, BlockKind kind,
                      StreamState* home) except NULL:
    global spare_blocks
    cdef Block* block = spare_blocks
    cdef unsigned int generation = 0
    if block != NULL:
        spare_blocks = block.next
        generation = block.generation
        memset(block, 0, sizeof(Block))
    else:
        block = <Block*>calloc(1, sizeof(Block))
        if block == NULL:
            raise MemoryError()
    block.generation = generation
    block.address = address
    block.size = size
    block.ordinal = ordinal
    block.epoch = contexts[ordinal].epoch
    block.kind = kind
    block.bin = -1
    block.home = home
    return block


cdef int from_driver(int ordinal, size_t size, CUdeviceptr* address) except -1:
    """`size` bytes of the driver's; where there are none, again after the cache was given back."""
    cdef unsigned int epoch = context_of(ordinal).epoch
    cdef Pool* pool = &pools[ordinal]
    cdef CUresult result
    cdef int entered
    limit = settings.get("CYRT_MEMORY_LIMIT")
    sweep()
    for attempt in range(2):
        if limit is None or pool.reserved + size <= limit:
            entered = enter(ordinal, epoch, b"cuMemAlloc")
            with nogil:
                result = cu.cuMemAlloc(address, size)
            if result != CUDA_ERROR_OUT_OF_MEMORY:
                leave(ordinal, entered, result, b"cuMemAlloc")
                verify(ordinal, epoch, b"cuMemAlloc")       # another thread may have reset it
                pool.reserved += size
                pool.driver_allocations += 1
                return 0
            leave_quietly(entered)
        if attempt == 0:
            trim(ordinal)
    out_of_memory(ordinal, size, b"cuMemAlloc")


cdef int out_of_memory(int ordinal, size_t nbytes, const char* call) except -1:
    cdef size_t available = 0, total = 0
    cdef Pool* pool = &pools[ordinal]
    cdef int entered = enter(ordinal, contexts[ordinal].epoch, b"cuMemGetInfo")
    cu.cuMemGetInfo(&available, &total)
    leave_quietly(entered)
    limit = settings.get("CYRT_MEMORY_LIMIT")
    raise errors.OutOfMemoryError(
        call.decode(), <int>CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY",
        f"{nbytes:,} bytes wanted on device {ordinal}; {pool.in_use:,} in use by cyrt, "
        f"{pool.cached:,} in its cache, {available:,} free of {total:,}",
        "" if limit is None else f"CYRT_MEMORY_LIMIT is {limit:,} bytes")


cdef Slab* slab_for(int ordinal, size_t size) except NULL:
    cdef Pool* pool = &pools[ordinal]
    cdef Slab* slab = pool.slabs
    cdef CUdeviceptr address = 0
    if slab != NULL and SLAB - slab.used >= size:
        return slab
    from_driver(ordinal, SLAB, &address)
    slab = <Slab*>calloc(1, sizeof(Slab))
    if slab == NULL:
        raise MemoryError()
    slab.address = address
    slab.next = pool.slabs
    pool.slabs = slab
    pool.cached += SLAB
    return slab


cdef Block* cut(StreamState* stream, size_t size, int bin) except NULL:
    """A block that no bin had."""
    cdef Pool* pool = &pools[stream.ordinal]
    cdef CUdeviceptr address = 0
    cdef Slab* slab
    cdef Block* block
    if size >= LARGE:
        from_driver(stream.ordinal, size, &address)
        block = new_block(address, size, stream.ordinal, DEVICE_MEMORY, stream)
        pool.cached += size
    else:
        slab = slab_for(stream.ordinal, size)
        block = new_block(slab.address + slab.used, size, stream.ordinal, DEVICE_MEMORY, stream)
        block.slab = slab
        slab.used += size
    block.bin = bin
    return block


cdef Block* from_idle_stream(StreamState* stream, int bin) except? NULL:
    """A block of another stream that has nothing left to do; NULL where there is none."""
    cdef StreamState* other = states[stream.ordinal]
    cdef Block* block
    cdef CUresult result
    cdef int entered
    while other != NULL:
        block = other.bins[bin]
        if (block != NULL and other != stream and not other.pending and not other.submitting
                and not other.capturing):
            entered = enter(stream.ordinal, stream.epoch, b"cuStreamQuery")
            result = cu.cuStreamQuery(other.handle)
            leave_quietly(entered)
            if result == CUDA_SUCCESS and other.bins[bin] == block:
                other.bins[bin] = block.next
                return block
        other = other.next
    return NULL


cdef Block* find_block(StreamState* stream, size_t size, int bin) except NULL:
    """A block that is in no bin of the stream's."""
    cdef Block* block
    if pools[stream.ordinal].unsettled != NULL:
        settle_freed(stream.ordinal)
        if size >= LARGE:
            launch_unsettled(stream.ordinal, bin)
        block = stream.bins[bin]
        if block != NULL:
            stream.bins[bin] = block.next
            return block
    block = from_idle_stream(stream, bin)
    return block if block != NULL else cut(stream, size, bin)


cdef Block* allocate(StreamState* stream, size_t nbytes) except NULL:
    cdef Pool* pool = &pools[stream.ordinal]
    cdef size_t size = 0
    cdef int bin
    cdef Block* block
    cdef CUdeviceptr address = 0
    if nbytes > <size_t>1 << 46:
        out_of_memory(stream.ordinal, nbytes, b"cuMemAlloc")
    if not pool_enabled():
        if nbytes:
            from_driver(stream.ordinal, nbytes, &address)
        block = new_block(address, nbytes, stream.ordinal, DEVICE_MEMORY, stream)
        pool.cached += nbytes
    else:
        bin = size_class(nbytes, &size)
        block = stream.bins[bin]
        if block != NULL:
            stream.bins[bin] = block.next
            # What the next operation takes: a batch's blocks are more than the nearest cache holds.
            cyrt_prefetch(block.next, sizeof(Block))
        else:
            block = find_block(stream, size, bin)
        block.next = NULL
        block.home = stream
        block.state = LIVE
        block.shared = False
        if block.size < LARGE:
            note_taken(stream, block)
        if block.slab != NULL:
            (<Slab*>block.slab).live += 1
    pool.cached -= block.size
    pool.in_use += block.size
    if pool.in_use > pool.peak:
        pool.peak = pool.in_use
    return block


cdef void destroy_block(Block* block) noexcept:
    global spare_blocks
    cdef int i
    heal(block)
    for i in range(block.num_others):
        free(block.others[i].readers)
    free(block.others)
    free(block.hazard.readers)
    free(block.readers)
    block.generation += 1
    block.others, block.num_others = NULL, 0
    block.readers, block.num_readers = NULL, 0
    memset(&block.hazard, 0, sizeof(Hazard))
    block.next = spare_blocks
    spare_blocks = block


cdef void release(Block* block) noexcept:
    cdef Pool* pool = &pools[block.ordinal]
    cdef bint alive = process == READY and contexts[block.ordinal].epoch == block.epoch
    if block.kind == FOREIGN_MEMORY:
        destroy_block(block)
        return
    block.generation += 1
    if block.poison:
        heal(block)
    if block.kind == DEVICE_MEMORY:
        if not alive:
            destroy_block(block)
            return
        pool.in_use -= block.size
        pool.cached += block.size
        if block.bin >= 0:
            if is_settled(block) or settle(block):
                put_away(block)
            else:
                block.state = UNSETTLED
                block.next_unsettled = pool.unsettled
                pool.unsettled = block
            return
    free_to_driver(block)


cdef bint is_settled(const Block* block) noexcept:
    """Whether its home stream's order covers all uses of it."""
    return (block.num_readers == 0 and not block.shared and block.home.owned
            and block.home.ordinal == block.ordinal)


cdef void put_away(Block* block) noexcept:
    """Return it to its home stream: where that stream's recording uses it, at the commit."""
    if (block.size < LARGE or block.home.grouping) and is_recorded(block, block.home):
        rest(block)
    else:
        put(block)


cdef void settle_freed(int ordinal) noexcept:
    cdef Block** place = &pools[ordinal].unsettled
    cdef Block* block
    while place[0] != NULL:
        block = place[0]
        if settle(block):
            place[0] = block.next_unsettled
            put_away(block)
        else:
            place = &block.next_unsettled


cdef int launch_unsettled(int ordinal, int bin) except -1:
    """Launch what keeps blocks of a size class from being settled: a loop that drops large ones
    would take ever more."""
    cdef Block* block = pools[ordinal].unsettled
    cdef int i
    while block != NULL and block.bin != bin:
        block = block.next_unsettled
    if block == NULL:
        return 0
    for i in range(block.num_readers):
        if block.readers[i].pending and not block.readers[i].capturing:
            flush(block.readers[i])         # other threads run: the list may have changed
            break
    else:
        if block.home.pending:
            flush(block.home)
    settle_freed(ordinal)
    return 0


cdef inline void put(Block* block) noexcept:
    block.state = FREE
    block.next = block.home.bins[block.bin]
    block.home.bins[block.bin] = block
    if block.slab != NULL:
        (<Slab*>block.slab).live -= 1


cdef void rest(Block* block) noexcept:
    """Reuse inside one batch would order work that is otherwise independent; inside `concurrent()`
    it would not even be ordered."""
    cdef StreamState* stream = block.home
    block.state = RESTING
    block.next_resting = NULL
    if stream.resting == NULL:
        stream.resting = block
    else:
        stream.last_resting.next_resting = block
    stream.last_resting = block


cdef void note_taken(StreamState* stream, Block* block) noexcept:
    cdef Block** grown
    cdef int room
    block.taken = stream.recording_epoch
    if stream.num_taken == stream.max_taken:
        room = 2 * stream.max_taken + 64
        grown = <Block**>realloc(stream.taken, room * sizeof(Block*))
        if grown == NULL:
            return          # only the order of reuse is lost
        stream.taken = grown
        stream.max_taken = room
    stream.taken[stream.num_taken] = block
    stream.num_taken += 1


cdef Block* substitute(StreamState* stream, int bin, unsigned long long epoch) noexcept:
    """The first resting block of the class that an earlier batch was given."""
    cdef Block* block = stream.resting
    while block != NULL:
        if block.state == RESTING and block.bin == bin and block.taken != epoch:
            return block
        block = block.next_resting
    return NULL


cdef void return_rested(StreamState* stream, unsigned long long epoch) noexcept:
    """The batch's blocks in their order of allocation, so that the next equal batch pops the same
    ones; a block still alive leaves its place to one freed from an earlier batch; what is left
    over goes to the bottom. A loop then alternates between few sets of addresses."""
    cdef Block* block
    cdef Block** link
    cdef int i
    if stream.epoch != contexts[stream.ordinal].epoch:
        stream.num_taken = 0        # the memory went with its context
        stream.resting = stream.last_resting = NULL
        return
    for i in range(stream.num_taken - 1, -1, -1):
        block = stream.taken[i]
        if block.taken != epoch or block.state == FREE or block.home != stream:
            continue            # what another stream has used is that one's, and rests there
        if block.state == RESTING:
            put(block)
            continue
        block = substitute(stream, block.bin, epoch)
        if block != NULL:
            put(block)
    stream.num_taken = 0
    while stream.resting != NULL:
        block = stream.resting
        stream.resting = block.next_resting
        if block.state == FREE:
            continue
        block.state = FREE
        block.next = NULL
        if block.slab != NULL:
            (<Slab*>block.slab).live -= 1
        link = &stream.bins[block.bin]
        while link[0] != NULL:
            link = &link[0].next
        link[0] = block
    stream.last_resting = NULL


cdef void free_to_driver(Block* block) noexcept:
    cdef Pool* pool = &pools[block.ordinal]
    if block.kind == DEVICE_MEMORY:
        pool.cached -= block.size
        pool.reserved -= block.size
    if block.address != 0:
        end_block(block, free_pinned if block.kind == PINNED_MEMORY else free_device)
    destroy_block(block)


cdef CUresult free_pinned(size_t address) noexcept nogil:
    return cu.cuMemFreeHost(<void*>address)


cdef CUresult free_device(size_t address) noexcept nogil:
    return cu.cuMemFree(address)


cdef Block* detach_free_blocks(int ordinal) noexcept:
    """Empty the bins of all but the blocks whose slab is in use, and of what a capture holds up."""
    cdef StreamState* state = states[ordinal]
    cdef Block** link
    cdef Block* block
    cdef Block* detached = NULL
    cdef int bin
    while state != NULL:
        for bin in range(NUM_BINS if not state.capturing else 0):
            link = &state.bins[bin]
            while link[0] != NULL:
                block = link[0]
                if block.slab == NULL or (<Slab*>block.slab).live == 0:
                    link[0] = block.next
                    block.next = detached
                    detached = block
                else:
                    link = &block.next
        forget_taken(state)
        state = state.next
    return detached


cdef void forget_taken(StreamState* state) noexcept:
    """The next commit puts none of the free blocks in order: they may be gone."""
    cdef int i, kept = 0
    for i in range(state.num_taken):
        if state.taken[i].state != FREE:
            state.taken[kept] = state.taken[i]
            kept += 1
    state.num_taken = kept


cdef void hold_captured_slabs(int ordinal, int change) noexcept:
    """Blocks in the bins of a stream that is captured stay: so do their slabs."""
    cdef StreamState* state = states[ordinal]
    cdef Block* block
    cdef int bin
    while state != NULL:
        for bin in range(NUM_BINS if state.capturing else 0):
            block = state.bins[bin]
            while block != NULL:
                if block.slab != NULL:
                    (<Slab*>block.slab).live += change
                block = block.next
        state = state.next


cdef void attach_blocks(Block* block) noexcept:
    """Back to the bins of their streams: the wait was interrupted."""
    cdef Block* following
    while block != NULL:
        following = block.next
        block.next = block.home.bins[block.bin]
        block.home.bins[block.bin] = block
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
    """Give everything free back to the driver; Ctrl-C ends the wait for what is in flight.

    What is free now is taken out of the pool before the wait, which lets other threads record and
    free more: that stays. Freeing releases the GIL, too.
    """
    cdef Pool* pool = &pools[ordinal]
    cdef unsigned int naps = 0, trims = pool.trims, epoch = contexts[ordinal].epoch
    cdef unsigned long outer, thread = PyThread_get_thread_ident()
    cdef Block* blocks
    cdef Block* block
    cdef Slab* slabs
    cdef Slab* slab
    while pool.trimmer not in (0, thread) and pool.trims == trims:      # it gives all back
        nap(states[ordinal], &naps)
    if pool.trims != trims:
        return 0
    flush_recorded(ordinal)             # what rests in recordings is free after that
    settle_freed(ordinal)
    hold_captured_slabs(ordinal, 1)
    blocks = detach_free_blocks(ordinal)
    slabs = detach_free_slabs(pool)
    hold_captured_slabs(ordinal, -1)
    outer, pool.trimmer = pool.trimmer, thread     # a signal handler's is inside another one
    try:
        wait_all(ordinal)
        verify(ordinal, epoch, b"cuMemFree")        # a reset frees it all by itself
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
        if block.slab == NULL and epoch == contexts[ordinal].epoch:
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
    if pool.trimmer == thread:          # else another thread's began meanwhile, and ends by itself
        pool.trimmer = outer if outer == thread else 0


cdef int flush_recorded(int ordinal) except -1:
    cdef StreamState* state = states[ordinal]
    while state != NULL:
        if not state.capturing:
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
    pools[ordinal] = Pool(NULL, NULL, pools[ordinal].trims, pools[ordinal].trimmer,
                          0, 0, 0, 0, taken)


def memory_stats(device=None):
    """What the pool holds of a device's memory.

    Returns
    -------
    dict
        Bytes ``in_use`` (in living Buffers, rounded to size classes), their ``peak``, ``cached``
        (free, kept for reuse), ``reserved`` (taken from the driver: the two together), the
        ``limit`` (None: none), and ``driver_allocations``, how often the driver was asked so far.
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
    """Give the memory that the pool keeps for reuse back to the driver.

    Returns
    -------
    int
        Bytes given back.
    """
    cdef int ordinal = ordinal_of(device)
    cdef size_t before
    context_of(ordinal)
    before = pools[ordinal].reserved
    trim(ordinal)
    return before - pools[ordinal].reserved
