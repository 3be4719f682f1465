# Sequences: the small blocks that a stream's allocations receive, so that addresses come round.
#
# INVARIANTS
# - Each size class of a stream has a sequence of blocks: the n-th allocation of the class in a
#   batch receives the n-th block. So addresses depend on nothing but the batch's allocations, and
#   an extra one moves only the later ones of its class, in this batch.
# - If the n-th block is not available, another block replaces it in the sequence, for this batch
#   and all later ones. A block is available if it is free, and unused by the stream's recording.
# - A result that outlives its batch would change the sequence of every batch. So it has a site: the
#   operation's position in the round (see graph/policy), with up to OWN blocks of its own. The
#   allocation receives the first free one. Sequences and sites keep their blocks from all others.
# - A freed block of a sequence or site is FREE at once. As long as its home stream's recording uses
#   it, its hazard has the epoch of that recording, which a commit changes. So a commit does nothing
#   to these blocks.
# - Sequences begin again with each batch; the rest of a batch that a commit ended early continues.
# - The last entry is used again if its block is freed before an operation has used it. A batch of
#   few operations has few entries: further allocations receive blocks from the bins.
# - All of this is a preference: a batch that receives other blocks is right, and patched.
# - Sequences have at most SEQUENCE_BYTES of a stream, and sites OWN_BYTES of a device. A trim drops
#   the sequences of all streams, an allocation that exceeds the pool's limit those of unused ones.

from cyrt.runtime.state cimport FREE, Block, Sequence, Sites, StreamState

cdef enum:
    PER_OPERATION = 4           # entries of a sequence for each operation of a batch, at most

# Return whether the next allocation may receive its sequence's or site's block.
cdef inline bint is_available(const StreamState* stream, const Block* block) noexcept:
    return block.state == FREE and block.hazard.epoch != stream.recording_epoch

# Return whether the next allocation's operation has a site, at which `stream.site` then is.
cdef inline bint has_site(StreamState* stream) noexcept:
    cdef int position
    if stream.site == NULL:
        return False
    position = stream.position + stream.nodes
    while stream.site.position < position:
        stream.site += 1
    return stream.site.position == position

# Return a free block of the site; NULL: there is none.
cdef Block* own_block(StreamState* stream, int bin) noexcept

# Return whether the batch has too few operations for another entry of a sequence.
cdef inline bint is_full(const StreamState* stream, const Sequence* sequence) noexcept:
    return sequence.next >= sequence.count \
        and sequence.next >= PER_OPERATION * (stream.earlier + stream.nodes + 1)

# Return the block that is meant for the next allocation of a small class; NULL: it is in use, or
# there is none. Set `entry` to the allocation's index in the sequence.
cdef inline Block* next_block(StreamState* stream, int bin, int* entry) noexcept:
    cdef Sequence* sequence = &stream.bins[bin].sequence
    cdef Block* block
    entry[0] = sequence.next
    if is_full(stream, sequence):
        return NULL
    sequence.next += 1
    if has_site(stream):
        return own_block(stream, bin)
    if entry[0] >= sequence.count:
        return NULL
    block = sequence.blocks[entry[0]]
    if block == NULL or not is_available(stream, block):
        return NULL
    block.hazard.epoch = 0
    return block

# Return whether that is the given block, of which the stream is the home; `sequence` is that of its
# class.
cdef inline bint is_next_block(StreamState* stream, const Sequence* sequence,
                               const Block* block) noexcept:
    if not is_available(stream, block):
        return False
    if has_site(stream):
        if is_full(stream, sequence) or own_block(stream, block.bin) != block:
            return False
    elif block.entry != sequence.next + 1:
        return False
    return True

# Add the block that the allocation received instead to the sequence or site.
cdef void reserve(StreamState* stream, Block* block, int entry) noexcept
# Begin a batch: its first operation is at that position of the round with these sites (NULL: no
# round is known). If `resumes`, it is the rest of the batch before.
cdef void begin_sequences(StreamState* stream, Sites* sites, int position, bint resumes) noexcept
# Drop the sequences and the sites' blocks of a stream.
cdef void drop_sequences(StreamState* stream) noexcept
# Do so for the device's other streams that have begun no batch lately.
cdef void drop_unused_sequences(const StreamState* asking) noexcept
# Return new sites, without any; NULL: there is no memory.
cdef Sites* new_sites(StreamState* stream) noexcept
cdef void free_sites(Sites* sites) noexcept
# Give the operation at that position a site if its result outlives the batch. The site ends if the
# results of many batches in succession do not.
cdef void set_site(Sites* sites, int position, bint outlives) noexcept
