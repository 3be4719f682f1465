# C-level functions only: see blocks.pxd.
"""Blocks of memory, and the bins that contain the free ones."""

from libc.stdlib cimport free, realloc
from libc.string cimport memset
from posix.stdlib cimport posix_memalign

from cyrt.driver.cuda cimport *
from cyrt.runtime.bitset cimport add_bit, drop_bit, grow_bits, lowest_bit
from cyrt.runtime.device cimport contexts
from cyrt.runtime.poison cimport forget_loss
from cyrt.runtime.seam cimport graph
from cyrt.runtime.state cimport (
    DEVICE_MEMORY, FREE, LIVE, Bin, Block, BlockKind, Hazard, StreamState,
)

cdef enum:
    CACHE_LINE = 64         # bytes
    CHUNK = 32              # Block structs that are allocated at once

cdef Block* spare_blocks        # the list of structs for reuse: their memory was freed


cdef int add_spare_blocks() except -1:
    global spare_blocks
    cdef size_t stride = (sizeof(Block) + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE
    cdef void* chunk = NULL
    cdef Block* block
    cdef int i
    if posix_memalign(&chunk, CACHE_LINE, CHUNK * stride) != 0:
        raise MemoryError()
    memset(chunk, 0, CHUNK * stride)
    for i in range(CHUNK - 1, -1, -1):
        block = <Block*>(<char*>chunk + i * stride)
        block.next = spare_blocks
        spare_blocks = block
    return 0


cdef Block* new_block(CUdeviceptr address, size_t size, int ordinal, BlockKind kind,
                      StreamState* home) except NULL:
    global spare_blocks
    cdef Block* block
    cdef unsigned int generation
    if spare_blocks == NULL:
        add_spare_blocks()
    block = spare_blocks
    spare_blocks = block.next
    generation = block.generation
    memset(block, 0, sizeof(Block))
    block.generation = generation
    block.address = address
    block.size = size
    block.ordinal = ordinal
    block.epoch = contexts[ordinal].epoch
    block.kind = kind
    block.bin = -1
    block.home = home
    return block


cdef void leave_recording(const Hazard* hazard) noexcept:
    """Tell the recording that the next block in the same struct is other memory."""
    if hazard.stream != NULL and hazard.stream.pending \
            and hazard.stream.recording_epoch == hazard.epoch:
        graph.stop_replay(hazard.stream)


cdef void destroy_block(Block* block) noexcept:
    global spare_blocks
    cdef int i
    leave_recording(&block.hazard)
    for i in range(block.num_others):
        leave_recording(&block.others[i])
    forget_loss(block)
    if is_reserved(block):
        end_reservation(block)
    if block.holder != NULL:
        leave_bin(block)
    for i in range(block.num_others):
        free(block.others[i].readers)
    free(block.others)
    free(block.hazard.readers)
    free(block.readers)
    block.generation += 1
    block.state = LIVE              # it is in no bin
    block.others, block.num_others = NULL, 0
    block.readers, block.num_readers = NULL, 0
    memset(&block.hazard, 0, sizeof(Hazard))
    block.next = spare_blocks
    spare_blocks = block


cdef bint reserve_bin(Bin* bin) noexcept:
    cdef Block** grown
    cdef int room
    if bin.used < bin.room or lowest_bit(&bin.vacant) >= 0:
        return True
    room = 2 * bin.room if bin.room else 64
    grown = <Block**>realloc(bin.blocks, room * sizeof(Block*))
    if grown == NULL:
        return False
    bin.blocks = grown
    if not (grow_bits(&bin.free, room) and grow_bits(&bin.vacant, room)):
        return False
    bin.room = room
    return True


cdef bint join_bin(StreamState* stream, Block* block) noexcept:
    cdef Bin* bin = &stream.bins[block.bin]
    cdef int slot
    if not reserve_bin(bin):
        return False
    slot = lowest_bit(&bin.vacant)
    if slot >= 0:
        drop_bit(&bin.vacant, slot)
    else:
        slot = bin.used
        bin.used += 1
    if is_reserved(block):
        end_reservation(block)
    if block.holder != NULL:
        leave_bin(block)
    bin.blocks[slot] = block
    block.holder = stream
    block.slot = slot
    return True


cdef void leave_bin(Block* block) noexcept:
    cdef Bin* bin = &block.holder.bins[block.bin]
    bin.blocks[block.slot] = NULL
    add_bit(&bin.vacant, block.slot)
    block.holder = NULL


cdef bint put(Block* block) noexcept:
    cdef StreamState* home = block.home
    cdef Bin* bin = &home.bins[block.bin]
    if block.holder != home and not join_bin(home, block):
        return False
    block.state = FREE
    if is_reserved(block):
        if block.entry and block.hazard.epoch == 0 and bin.sequence.next == block.entry:
            bin.sequence.next -= 1  # no operation has used it since it was allocated
        return True
    add_bit(&bin.free, block.slot)
    counts[block.ordinal][block.bin].out -= 1
    if block.slab != NULL:
        (<Slab*>block.slab).live -= 1
    elif is_part(block):
        join_free_parts(block)
    return True


cdef Hazard* hazard_in(Block* block, unsigned long long epoch) noexcept:
    cdef int i
    if block.hazard.epoch == epoch:
        return &block.hazard
    for i in range(block.num_others):
        if block.others[i].epoch == epoch:
            return &block.others[i]
    return NULL


cdef bint add_uses(Block* block, Block* other) noexcept:
    """Add the uses of another free block in its home stream's recording to those of the block.
    Return False, with nothing changed, if there is no memory."""
    cdef StreamState* stream = other.home
    cdef const Hazard* source = hazard_in(other, stream.recording_epoch)
    cdef Hazard* target
    cdef int* grown
    cdef int i, room
    if source == NULL or not stream.pending:
        return True
    graph.stop_replay(stream)       # The hazards now contain the uses that were replayed.
    target = hazard_in(block, stream.recording_epoch)
    if target == NULL:              # a free block has uses in no other recording
        target = &block.hazard
    room = source.num_readers + 2
    if target.epoch == stream.recording_epoch:
        room += target.num_readers
    if room > target.max_readers:
        grown = <int*>realloc(target.readers, room * sizeof(int))
        if grown == NULL:
            return False
        target.readers, target.max_readers = grown, room
    if target.epoch != stream.recording_epoch:
        target.epoch, target.stream = stream.recording_epoch, stream
        target.writer, target.num_readers = -1, 0
    for i in range(source.num_readers):
        target.readers[target.num_readers + i] = source.readers[i]
    target.num_readers += source.num_readers
    if target.writer >= 0 and source.writer >= 0:   # a later write waits for the readers, too
        target.readers[target.num_readers] = min(target.writer, source.writer)
        target.num_readers += 1
    target.writer = max(target.writer, source.writer)
    return True


cdef inline int bin_of(size_t size) noexcept:
    """Return the largest class whose blocks are at most that large."""
    cdef size_t rounded
    cdef int bin = size_class(size, &rounded)
    return bin if rounded == size else bin - 1


cdef void move_to_bin(Block* block, int bin) noexcept:
    """Move the block, which is in none of its bin's sets, to another bin of its holder, which has
    room for it."""
    cdef StreamState* stream = block.holder
    counts[block.ordinal][block.bin].made -= 1
    counts[block.ordinal][bin].made += 1
    leave_bin(block)
    block.bin = bin
    join_bin(stream, block)


cdef void split(Block* block, size_t size, int bin) noexcept:
    cdef StreamState* stream = block.holder
    cdef Block* rest
    try:
        rest = new_block(block.address + size, block.size - size, block.ordinal, DEVICE_MEMORY,
                         stream)
    except MemoryError:
        return
    rest.bin = bin_of(rest.size)
    if not (join_bin(stream, rest) and reserve_bin(&stream.bins[bin]) and add_uses(rest, block)):
        destroy_block(rest)
        return
    if not is_part(block):
        split_bytes[block.ordinal] += block.size
    rest.before, rest.after = block, block.after
    if rest.after != NULL:
        rest.after.before = rest
    block.after = rest
    block.size = size
    move_to_bin(block, bin)
    counts[rest.ordinal][rest.bin].made += 1
    counts[rest.ordinal][rest.bin].out += 1
    put(rest)


cdef bint join(Block* block, Block* rest) noexcept:
    """Add the part after a free block to the block, if that part is free, too. Return whether it
    was."""
    cdef Bin* bins
    cdef int bin
    if block == NULL or rest == NULL or block.state != FREE or rest.state != FREE \
            or block.holder != rest.holder:
        return False
    bins = block.holder.bins
    bin = bin_of(block.size + rest.size)
    if not (reserve_bin(&bins[bin]) and add_uses(block, rest)):
        return False
    drop_bit(&bins[block.bin].free, block.slot)
    drop_bit(&bins[rest.bin].free, rest.slot)
    block.size += rest.size
    block.after = rest.after
    if block.after != NULL:
        block.after.before = block
    counts[rest.ordinal][rest.bin].made -= 1
    rest.before = rest.after = NULL
    destroy_block(rest)
    move_to_bin(block, bin)
    add_bit(&bins[bin].free, block.slot)
    if not is_part(block):
        split_bytes[block.ordinal] -= block.size
    return True


cdef void join_free_parts(Block* block) noexcept:
    join(block, block.after)
    join(block.before, block)


cdef void end_reservation(Block* block) noexcept:
    cdef StreamState* stream = block.holder
    if block.entry:
        stream.bins[block.bin].sequence.blocks[block.entry - 1] = NULL
        stream.sequence_bytes -= block.size
    elif block.epoch == contexts[block.ordinal].epoch:      # else a reset has set it to 0
        site_bytes[block.ordinal] -= block.size
    block.entry = 0
    block.site = 0
