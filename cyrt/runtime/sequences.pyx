# C-level functions only: see sequences.pxd.
"""Sequences: the small blocks that a stream's allocations get, so that addresses repeat."""

from libc.limits cimport INT_MAX
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memmove, memset

from cyrt.runtime.blocks cimport end_reservation, is_reserved, put, site_bytes
from cyrt.runtime.device cimport contexts
from cyrt.runtime.freed cimport hold_until_commit, queue_unsettled
from cyrt.runtime.state cimport (
    FREE, LIVE, OWN, SMALL_BINS, Block, Sequence, Site, Sites, StreamState,
)
from cyrt.runtime.stream_state cimport states

cdef enum:
    SEQUENCE_BYTES = 64 << 20   # most bytes of a stream's sequences
    OWN_BYTES = 64 << 20        # most bytes of a device's sites
    IDLE = 16                   # batches whose results do not outlive them before a site ends
    UNUSED = 24                 # batches of other streams after which a stream is unused

cdef Site no_site               # the end of each list: no operation is at its position
no_site.position = INT_MAX
cdef unsigned int last_number = 0
cdef unsigned long long last_batch = 0


cdef void unreserve(Block* block) noexcept:
    """Take the block out of its sequence or site. If it is free, it returns to its bin."""
    end_reservation(block)
    # A reset of the device has freed the memory of older blocks, their slabs included.
    if block.state == FREE and block.epoch == contexts[block.ordinal].epoch:
        block.state = LIVE
        if block.hazard.epoch == block.home.recording_epoch:
            hold_until_commit(block)
        elif not put(block):
            queue_unsettled(block)


cdef inline bint has_own(const Site* site, const Block* block) noexcept:
    """Return whether the site still has the block."""
    return block.site == site.number


cdef Block* own_block(StreamState* stream, int bin) noexcept:
    cdef const Site* site = stream.site
    cdef Block* block
    cdef int i
    for i in range(site.count):
        block = site.own[i]
        if has_own(site, block) and block.bin == bin and is_available(stream, block):
            return block
    return NULL


cdef void add_own(StreamState* stream, Site* site, Block* block) noexcept:
    cdef int i = 0
    if site_bytes[block.ordinal] + block.size > <size_t>OWN_BYTES:
        return
    while i < site.count and has_own(site, site.own[i]):
        i += 1
    if i == OWN:                    # the site gives up the first one
        unreserve(site.own[0])
        i -= 1
        memmove(&site.own[0], &site.own[1], i * sizeof(Block*))
    site.own[i] = block
    site.count = max(site.count, i + 1)
    block.site = site.number
    site_bytes[block.ordinal] += block.size


cdef bint add_entries(Sequence* sequence, int count) noexcept:
    """Give the sequence at least that length."""
    cdef Block** grown
    if count > sequence.room:
        grown = <Block**>realloc(sequence.blocks, 2 * count * sizeof(Block*))
        if grown == NULL:
            return False
        sequence.blocks = grown
        sequence.room = 2 * count
    if count > sequence.count:
        memset(&sequence.blocks[sequence.count], 0, (count - sequence.count) * sizeof(Block*))
        sequence.count = count
    return True


cdef void reserve(StreamState* stream, Block* block, int entry) noexcept:
    cdef Sequence* sequence = &stream.bins[block.bin].sequence
    if is_reserved(block) or block.holder != stream:
        return
    if has_site(stream):
        add_own(stream, stream.site, block)
        return
    if entry < sequence.count and sequence.blocks[entry] != NULL:
        unreserve(sequence.blocks[entry])
    if entry < PER_OPERATION * (stream.earlier + stream.nodes + 1) \
            and add_entries(sequence, entry + 1) \
            and stream.sequence_bytes + block.size <= <size_t>SEQUENCE_BYTES:
        sequence.blocks[entry] = block
        block.entry = entry + 1
        block.hazard.epoch = 0
        stream.sequence_bytes += block.size


cdef void begin_sequences(StreamState* stream, Sites* sites, int position, bint resumes) noexcept:
    global last_batch
    cdef int bin
    last_batch += 1
    stream.last_batch = last_batch
    stream.earlier = stream.earlier + stream.nodes if resumes else 0
    stream.nodes = 0
    stream.position = position
    stream.site = sites.items if sites != NULL else NULL
    if not resumes:
        for bin in range(SMALL_BINS):
            stream.bins[bin].sequence.next = 0


cdef void drop_own(Site* site) noexcept:
    cdef int i
    for i in range(site.count):
        if has_own(site, site.own[i]):
            unreserve(site.own[i])
    site.count = 0


cdef void drop_sequences(StreamState* stream) noexcept:
    cdef Sites* sites = stream.sites
    cdef Sequence* sequence
    cdef int bin, n
    for bin in range(SMALL_BINS):
        sequence = &stream.bins[bin].sequence
        for n in range(sequence.count):
            if sequence.blocks[n] != NULL:
                unreserve(sequence.blocks[n])
        sequence.count = 0
    while sites != NULL:
        for n in range(sites.count):
            drop_own(&sites.items[n])
        sites = sites.next


cdef void drop_unused_sequences(const StreamState* asking) noexcept:
    cdef StreamState* stream = states[asking.ordinal]
    while stream != NULL:
        if stream != asking and not stream.pending and stream.last_batch \
                and last_batch - stream.last_batch > <unsigned long long>UNUSED:
            stream.last_batch = 0
            drop_sequences(stream)
        stream = stream.next


cdef Sites* new_sites(StreamState* stream) noexcept:
    cdef Sites* sites = <Sites*>calloc(1, sizeof(Sites))
    if sites == NULL:
        return NULL
    sites.items = <Site*>calloc(1, sizeof(Site))
    if sites.items == NULL:
        free(sites)
        return NULL
    sites.items[0] = no_site
    sites.room = 1
    sites.stream = stream
    sites.next, stream.sites = stream.sites, sites
    return sites


cdef void free_sites(Sites* sites) noexcept:
    cdef StreamState* stream = sites.stream
    cdef Sites** link = &stream.sites
    cdef int n
    for n in range(sites.count):
        drop_own(&sites.items[n])
    while link[0] != sites:
        link = &link[0].next
    link[0] = sites.next
    if sites.items <= stream.site <= sites.items + sites.count:
        stream.site = NULL
    free(sites.items)
    free(sites)


cdef int find_site(const Sites* sites, int position) noexcept:
    """Return the index of the first site that is not before the position."""
    cdef int low = 0, high = sites.count, middle
    while low < high:
        middle = (low + high) // 2
        if sites.items[middle].position < position:
            low = middle + 1
        else:
            high = middle
    return low


cdef bint add_room(Sites* sites) noexcept:
    cdef Site* grown
    if sites.count + 1 == sites.room:       # the last item is `no_site`
        grown = <Site*>realloc(sites.items, 2 * sites.room * sizeof(Site))
        if grown == NULL:
            return False
        sites.items = grown
        sites.room *= 2
    return True


cdef void set_site(Sites* sites, int position, bint outlives) noexcept:
    global last_number
    cdef int n = find_site(sites, position)
    cdef bint found = sites.items[n].position == position
    if found:
        sites.items[n].idle = 0 if outlives else sites.items[n].idle + 1
        if sites.items[n].idle < IDLE:
            return
    elif not outlives or not add_room(sites):
        return
    sites.stream.site = NULL        # `begin_sequences` sets it again
    if not outlives:
        drop_own(&sites.items[n])
    memmove(&sites.items[n + outlives], &sites.items[n + (not outlives)],
            (sites.count + 1 - n - (not outlives)) * sizeof(Site))
    sites.count += 1 if outlives else -1
    if outlives:
        last_number += 1
        memset(&sites.items[n], 0, sizeof(Site))
        sites.items[n].position = position
        sites.items[n].number = last_number
