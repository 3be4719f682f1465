# C-level functions only: see pool.pxd.
"""The pool of device memory: allocating and releasing."""

from cyrt import settings
from cyrt.driver.capture_mode cimport relax, restore, stream_status
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport READY, cu, disturbances, process
from cyrt.runtime.blocks cimport (
    counts, is_part, is_reserved, join_bin, lowest_free, size_class, split, split_bytes, take,
    usages,
)
from cyrt.runtime.device cimport contexts, enter, leave_quietly
from cyrt.runtime.ending cimport free_block_when_unused
from cyrt.runtime.freed cimport (
    launch_uses_of_unsettled, return_block, return_unsettled_blocks, unsettled,
)
from cyrt.runtime.outside cimport is_outside, remove_outside
from cyrt.runtime.pacing cimport has_spare_room
from cyrt.runtime.poison cimport forget_loss, poisoned
from cyrt.runtime.reserve cimport (
    Pool, Shortage, allocate_from_driver, give_back, pools, slab_for, trim, try_driver,
)
from cyrt.runtime.sequences cimport drop_unused_sequences, next_block, reserve
from cyrt.runtime.state cimport (
    CAPTURED, DEVICE_MEMORY, FOREIGN_MEMORY, FREE, LARGE, LIVE, NUM_BINS, PINNED_MEMORY, Bin,
    Block, StreamState,
)
from cyrt.runtime.stream_state cimport is_captured, link, states

cdef enum:
    SPARE = 2                   # times the most blocks of a class that were out at once: the limit
    LARGE_SPARE = 10            # large blocks may occupy 1/LARGE_SPARE more than their peak
    OFTEN = 16                  # misses after which a class of large blocks has a higher limit
    # At the higher limit, large blocks may exceed their peak by 1/OWN_SPARE of `most_split`.
    OWN_SPARE = 16
    EXAMPLE_ALIGNMENT = 512     # bytes: as the driver aligns memory
    WHOLE = 4                   # a block that exceeds a size by 1/WHOLE at most is not split for it

cdef CUdeviceptr next_example = 1 << 48     # no address of memory: they have 47 bits
cdef int pooling = -1           # the value of `pool_enabled`; -1: not read yet


cdef int pool_enabled() except -1:
    global pooling
    if pooling < 0:
        pooling = settings.get("CYRT_POOL") and not settings.get("CYRT_CHECK")
    return pooling


cdef Block* cut(StreamState* stream, size_t size, int bin, Shortage* shortage) except? NULL:
    """Return a new block, from the driver or from a slab; NULL: memory is short."""
    cdef Pool* pool = &pools[stream.ordinal]
    cdef CUdeviceptr address = 0
    cdef Slab* slab = NULL
    cdef Block* block
    if size >= LARGE:
        if not try_driver(stream.ordinal, size, &address, shortage):
            return NULL
        block = new_block(address, size, stream.ordinal, DEVICE_MEMORY, stream)
        pool.large_made += size
    else:
        slab = slab_for(stream.ordinal, size, shortage)
        if slab == NULL:
            return NULL
        block = new_block(slab.address + slab.used, size, stream.ordinal, DEVICE_MEMORY, stream)
        block.slab = slab
        slab.used += size
        slab.live += 1
    block.bin = bin
    counts[stream.ordinal][bin].made += 1
    if not join_bin(stream, block):
        raise MemoryError()
    return block


cdef bint may_give(const StreamState* other, const StreamState* stream) noexcept:
    """Return whether the other stream has nothing recorded and nothing is being put on it."""
    return other != stream and not other.pending and not other.submitting \
        and not other.capturing and not is_captured(other)


cdef inline bint is_same(const Block* block, unsigned int generation) noexcept:
    """Return whether the block is still free after a call of the driver, and has not been in use
    meanwhile: a function that a tool has put in the driver's place may let other threads run."""
    return block.state == FREE and block.generation == generation


cdef Block* from_other_stream(StreamState* stream, int bin, bint busy) except? NULL:
    """Return a free block of another stream; NULL: there is none. That stream's work has ended; if
    `busy`, this stream is made to wait for it."""
    cdef StreamState* other = states[stream.ordinal]
    cdef Block* block
    cdef unsigned int generation
    cdef CUresult result
    cdef int entered
    while other != NULL:
        block = lowest_free(&other.bins[bin])
        if block != NULL and may_give(other, stream):
            generation = block.generation
            if busy:
                result = link(stream, other) if has_spare_room(stream) and has_spare_room(other) \
                    else CUDA_ERROR_NOT_READY
            else:
                entered = enter(stream.ordinal, stream.epoch, b"cuStreamQuery")
                result = stream_status(other.handle)
                leave_quietly(entered)
            if result == CUDA_SUCCESS and is_same(block, generation):
                return block
        other = other.next
    return NULL


cdef bint exceeds(const Pool* pool, size_t size, size_t spare) noexcept:
    """Return whether another large block would exceed the limit: the program's peak, and a part of
    it or `spare` bytes, whichever is more."""
    cdef size_t peak = max(pool.large_peak, pool.large_in_use + size)
    return pool.large_made + size > peak + max(peak // LARGE_SPARE, spare)


cdef bint is_crowded(int ordinal, size_t size, int bin) noexcept:
    """Return whether a new block would exceed the limit that follows from the program's peak."""
    if size < LARGE:
        return counts[ordinal][bin].made >= SPARE * counts[ordinal][bin].most
    return exceeds(&pools[ordinal], size, 0)


cdef bint receives_own(int ordinal, size_t size, int bin) noexcept:
    """Count that a class of large blocks has no free block at the limit. Return whether the higher
    limit allows a new one."""
    cdef const Pool* pool = &pools[ordinal]
    cdef Count* count = &counts[ordinal][bin]
    if count.misses < OFTEN:
        count.misses += 1
        return False
    return not exceeds(pool, size, pool.most_split // OWN_SPARE)


cdef inline bint may_serve(const Block* block, size_t size, size_t most) noexcept:
    """Return whether a free block may serve a smaller request, as it is or after a split."""
    if is_reserved(block):
        return False
    if size < LARGE and block.size < 2 * LARGE:
        return True
    return block.size <= size + size // WHOLE or (
        block.size >= size + LARGE
        and (is_part(block) or split_bytes[block.ordinal] + block.size <= most))


cdef Block* larger_free(StreamState* stream, size_t size, int bin) noexcept:
    """Return a free block of the smallest larger class that may serve the size; NULL: none may."""
    cdef size_t most = pools[stream.ordinal].most_split
    cdef const Bin* larger
    cdef int i, slot
    for i in range(bin + 1, NUM_BINS):
        larger = &stream.bins[i]
        if lowest_free(larger) != NULL:
            for slot in range(larger.used):
                if larger.blocks[slot] != NULL and larger.blocks[slot].state == FREE \
                        and may_serve(larger.blocks[slot], size, most):
                    return larger.blocks[slot]
    return NULL


cdef Block* any_free(StreamState* stream, size_t size, int bin) except? NULL:
    """Return a free block of any stream while memory is short; NULL: there is none."""
    cdef StreamState* other
    cdef unsigned int generation
    cdef Block* block = lowest_free(&stream.bins[bin])
    if block == NULL:
        block = larger_free(stream, size, bin)
    if block == NULL:
        block = from_other_stream(stream, bin, not stream.capturing)
    other = states[stream.ordinal]
    while block == NULL and other != NULL:
        if may_give(other, stream) and not stream.capturing:
            block = larger_free(other, size, bin)
            if block != NULL:
                generation = block.generation
                if not (has_spare_room(stream) and has_spare_room(other)
                        and link(stream, other) == CUDA_SUCCESS and is_same(block, generation)):
                    block = NULL
        other = other.next
    return block


cdef Block* occupy(StreamState* stream, Block* block, size_t size, int bin) except NULL:
    """Take a free block for the stream, and split a large one that is much too large."""
    take(block)
    if block.holder != stream and not join_bin(stream, block):
        return_block(block)
        raise MemoryError()
    if size < LARGE <= block.size:
        bin = size_class(LARGE, &size)
    if block.slab == NULL and block.size >= size + LARGE and block.size > size + size // WHOLE:
        split(block, size, bin)
    return block


cdef Block* allocate_when_short(StreamState* stream, size_t size, size_t wanted,
                                int bin) except NULL:
    """Return a new block. While memory is short, return unused memory to the driver, and search
    again: other threads may have freed memory meanwhile."""
    cdef Shortage shortage
    cdef Block* block
    cdef bint again
    shortage.tries, shortage.collected = 0, False
    block = cut(stream, size, bin, &shortage)
    while block == NULL:
        again = give_back(stream.ordinal, &shortage)
        block = any_free(stream, size, bin)
        if block != NULL:
            return occupy(stream, block, size, bin)
        if not again:
            out_of_memory(stream.ordinal, wanted, b"cuMemAlloc", shortage.size)
        block = cut(stream, size, bin, &shortage)
    return block


cdef Block* find_block(StreamState* stream, size_t size, size_t wanted, int bin) except NULL:
    """Return a block if the stream's bin has no free one."""
    cdef int ordinal = stream.ordinal
    cdef bint crowded, reuses = False       # memory of other sizes, rather than a new block
    cdef Block* block
    if unsettled[ordinal] != NULL:
        return_unsettled_blocks(ordinal)
        if size >= LARGE:
            launch_uses_of_unsettled(ordinal, bin)
    crowded = is_crowded(ordinal, size, bin)
    if crowded:
        drop_unused_sequences(stream)
    block = lowest_free(&stream.bins[bin])
    if block == NULL:
        block = from_other_stream(stream, bin, False)
    if block == NULL and crowded and size >= LARGE and not receives_own(ordinal, size, bin):
        reuses = True
        block = larger_free(stream, size, bin)
    if block == NULL and crowded and not stream.capturing:
        block = from_other_stream(stream, bin, True)
    if block != NULL:
        return occupy(stream, block, size, bin)
    if reuses and not (stream.capturing or stream.grouping):
        trim(ordinal)
    return allocate_when_short(stream, size, wanted, bin)


cdef void count_block(const Block* block) noexcept:
    """Count a block that was taken out of its bin's set."""
    cdef Pool* pool = &pools[block.ordinal]
    cdef Count* count = &counts[block.ordinal][block.bin]
    count.out += 1
    count.most = max(count.most, count.out)
    if block.slab == NULL:
        pool.large_in_use += block.size
        pool.large_peak = max(pool.large_peak, pool.large_in_use)


cdef Block* any_block(StreamState* stream, size_t size, size_t wanted, int bin) except NULL:
    """Return a block of the class, the stream's lowest free one if it has one."""
    cdef Block* block = lowest_free(&stream.bins[bin])
    if block != NULL:
        take(block)
    else:
        block = find_block(stream, size, wanted, bin)
    count_block(block)
    return block


cdef bint is_lowest(const StreamState* stream, const Block* block, size_t nbytes) noexcept:
    cdef size_t size = 0
    return size_class(nbytes, &size) == block.bin and lowest_free(&stream.bins[block.bin]) == block


cdef bint take_lowest(const StreamState* stream, Block* block, size_t nbytes) noexcept:
    if not is_lowest(stream, block, nbytes):
        return False
    take(block)
    count_block(block)
    return True


cdef bint is_next(StreamState* stream, const Block* block, size_t nbytes) noexcept:
    if block.slab == NULL:
        return is_lowest(stream, block, nbytes)
    return block.size >= nbytes and is_next_block(stream, &stream.bins[block.bin].sequence, block)


cdef Block* example_block(StreamState* stream, size_t nbytes) except NULL:
    """Return a block with unique addresses that have no memory."""
    global next_example
    cdef Block* block = new_block(next_example, nbytes, stream.ordinal, DEVICE_MEMORY, stream)
    next_example += nbytes - nbytes % EXAMPLE_ALIGNMENT + EXAMPLE_ALIGNMENT
    return block


cdef Block* allocate(StreamState* stream, size_t nbytes) except NULL:
    cdef size_t size = 0
    cdef int bin, entry = 0
    cdef Block* block = NULL
    cdef CUdeviceptr address = 0
    if nbytes > <size_t>1 << 46:
        out_of_memory(stream.ordinal, nbytes, b"cuMemAlloc")
    if stream.explained:
        return example_block(stream, nbytes)
    if not (pooling if pooling >= 0 else pool_enabled()):
        if nbytes:
            allocate_from_driver(stream.ordinal, nbytes, &address)
        block = new_block(address, nbytes, stream.ordinal, DEVICE_MEMORY, stream)
    else:
        bin = size_class(nbytes, &size)
        if size < LARGE:
            block = next_block(stream, bin, &entry)
        if block != NULL:
            block.state = LIVE
        else:
            block = any_block(stream, size, nbytes, bin)
            if block.slab != NULL and block.bin == bin:
                reserve(stream, block, entry)
        block.home = stream
        block.shared = False
    note_owner(stream, block, nbytes)
    return block


cdef inline void admit_results(StreamState* stream) noexcept:
    """Let results of the stream be released without further checks if nothing is lost, and the
    stream belongs to a context that can be used."""
    if stream.owned and not poisoned and process == READY \
            and contexts[stream.ordinal].epoch == stream.epoch:
        stream.undisturbed = disturbances


cdef void release(Block* block) noexcept:
    cdef bint alive = process == READY and contexts[block.ordinal].epoch == block.epoch
    admit_results(block.home)
    if block.home.explained:
        destroy_block(block)
        return
    if is_outside(block):
        if block.captures:          # see captures, which releases it again
            block.generation += 1
            block.state = CAPTURED
            return
        remove_outside(block)
    if block.kind == FOREIGN_MEMORY:
        destroy_block(block)
        return
    block.generation += 1
    if block.poison:
        forget_loss(block)
    if block.kind == DEVICE_MEMORY:
        if not alive:
            destroy_block(block)
            return
        usages[block.ordinal].in_use -= block.asked
        if block.bin >= 0:
            if block.slab == NULL:
                pools[block.ordinal].large_in_use -= block.size
            return_block(block)
            return
    free_to_driver(block)


cdef void free_to_driver(Block* block) noexcept:
    cdef Pool* pool = &pools[block.ordinal]
    if block.kind == DEVICE_MEMORY:
        pool.reserved -= block.size
        pool.given_back += block.size
    if block.address != 0:
        free_block_when_unused(block, free_pinned if block.kind == PINNED_MEMORY else free_device)
    destroy_block(block)


cdef CUresult free_pinned(size_t address) noexcept nogil:
    cdef CUstreamCaptureMode before = relax()
    cdef CUresult result = cu.cuMemFreeHost(<void*>address)
    restore(before)
    return result


cdef CUresult free_device(size_t address) noexcept nogil:
    cdef CUstreamCaptureMode before = relax()
    cdef CUresult result = cu.cuMemFree(address)
    restore(before)
    return result
