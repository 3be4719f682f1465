# C-level functions only: see places.pxd.
"""Places: the blocks that each allocation of a round's batches receives."""

from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from cyrt.runtime.blocks cimport (
    highest_free, keep, kept_bytes, lowest_free, stop_keeping,
)
from cyrt.runtime.state cimport (
    FREE, MOST_KEPT, Block, Kept, Place, Places, StreamState,
)
from cyrt.runtime.stream_state cimport states

cdef enum:
    MOST_BATCHES = 256              # most batches of a round that have places
    MOST_PLACES = 2048              # most places of a batch
    MOST_KEPT_BYTES = 64 << 20      # most bytes of a device that places keep
    UNUSED = 24                     # batches of others, at least, before a stream is unused

cdef unsigned int last_number = 0
cdef unsigned long long last_turn = 0


cdef inline bint is_kept(const Place* place, const Block* block) noexcept:
    return block.keeper == place.number


cdef void drop_kept(Place* place) noexcept:
    cdef int i
    for i in range(place.kept.count):
        if is_kept(place, place.kept.blocks[i]):
            stop_keeping(place.kept.blocks[i])
    free(place.kept)
    place.kept = NULL


cdef void stop_asking(StreamState* stream) noexcept:
    stream.turn = 0
    stream.places = NULL
    stream.place = 0


cdef void free_places(Places* places) noexcept:
    cdef int i
    for i in range(places.count):
        if places.items[i].kept != NULL:
            drop_kept(&places.items[i])
    free(places.items)
    free(places)


cdef void forget_places(StreamState* stream) noexcept:
    cdef Places* places
    while stream.rounds != NULL:
        places = stream.rounds
        stream.rounds = places.next
        free_places(places)


cdef bint is_unused(const StreamState* stream, const StreamState* asking) noexcept:
    if stream.rounds == NULL:
        return True
    return asking.places != NULL and stream.last_turn < asking.places.turn_before \
        and last_turn - stream.last_turn > <unsigned long long>UNUSED


cdef bint forget_unused(const StreamState* asking) noexcept:
    """Drop the places of unused streams. Return whether there were any."""
    cdef StreamState* stream = states[asking.ordinal]
    cdef bint found = False
    while stream != NULL:
        if stream != asking and stream.rounds != NULL and is_unused(stream, asking):
            stop_asking(stream)
            forget_places(stream)
            stream.round = 0
            found = True
        stream = stream.next
    return found


cdef bint is_listed(const Kept* kept, const Block* block) noexcept:
    cdef int i
    for i in range(kept.count):
        if kept.blocks[i] == block:
            return True
    return False


cdef void add_kept(const StreamState* stream, Place* place, Block* block) noexcept:
    cdef Kept* kept = place.kept
    cdef bint added = not is_listed(kept, block)
    cdef int i
    if block.keeper == 0 and kept_bytes[block.ordinal] + block.size > MOST_KEPT_BYTES \
            and not forget_unused(stream):
        return
    if added and kept.count == MOST_KEPT:
        if is_kept(place, kept.blocks[0]):
            stop_keeping(kept.blocks[0])
        kept.count -= 1
        for i in range(kept.count):
            kept.blocks[i] = kept.blocks[i + 1]
    if added:
        kept.blocks[kept.count] = block
        kept.count += 1
    if block.keeper == 0:           # else it is lent by another place
        keep(block, place.number)


cdef void end_places(StreamState* stream) noexcept:
    """End the batch, and find which results outlive it. A freed block that is in no bin yet counts
    as alive."""
    cdef Place* place
    cdef Block* block
    cdef int i
    for i in range(stream.place):
        place = &stream.places.items[i]
        block = place.current
        if block == NULL:
            continue
        place.current = NULL
        place.last = block
        if place.kept != NULL and (place.died or place.bin != block.bin):
            drop_kept(place)
        place.bin = block.bin
        # Another stream may have freed it meanwhile: a block that is free, or that another place
        # has by now, is not kept.
        if place.died or block.taken != stream.turn or block.state == FREE:
            continue
        if place.kept == NULL:
            place.kept = <Kept*>calloc(1, sizeof(Kept))
        if place.kept != NULL:
            add_kept(stream, place, block)
    stream.places.used = stream.place
    stop_asking(stream)


cdef Places* find_places(StreamState* stream, unsigned long long key) noexcept:
    """Return the places of a batch, after moving them to the front; NULL: there are none."""
    cdef Places** link = &stream.rounds
    cdef Places* places
    cdef int count = 1
    while link[0] != NULL:
        places = link[0]
        if places.key == key:
            link[0] = places.next
            places.next = stream.rounds
            stream.rounds = places
            return places
        if count == MOST_BATCHES:       # drop the batch used longest ago
            link[0] = places.next
            free_places(places)
            return NULL
        count += 1
        link = &places.next
    return NULL


cdef void begin_turn(StreamState* stream) noexcept:
    global last_turn
    last_turn += 1
    stream.turn = stream.last_turn = last_turn
    stream.places.turn_before = stream.places.turn
    stream.places.turn = last_turn


cdef void begin_places(StreamState* stream, unsigned int round, unsigned long long key,
                       bint resumes) noexcept:
    cdef Places* places
    if resumes and stream.round == round and stream.places != NULL and stream.places.key == key:
        return
    if stream.places != NULL:
        end_places(stream)
    if stream.round != round:
        forget_places(stream)
        stream.round = round
    if round == 0 or resumes:       # the next place is not known
        return
    places = find_places(stream, key)
    if places == NULL:
        places = <Places*>calloc(1, sizeof(Places))
        if places == NULL:
            return
        places.key = key
        places.next = stream.rounds
        stream.rounds = places
    stream.places = places
    begin_turn(stream)


cdef bint add_place(Places* places, int bin) noexcept:
    global last_number
    cdef Place* grown
    cdef int room
    if places.count == MOST_PLACES:
        return False
    if places.count == places.room:
        room = 2 * places.room + 64
        grown = <Place*>realloc(places.items, room * sizeof(Place))
        if grown == NULL:
            return False
        places.items = grown
        places.room = room
    memset(&places.items[places.count], 0, sizeof(Place))
    last_number += 1
    places.items[places.count].number = last_number
    places.items[places.count].bin = bin
    places.count += 1
    return True


cdef inline bint is_free(const StreamState* stream, int bin, const Block* block) noexcept:
    """Return whether a place can have its block again: its memory may have been freed meanwhile."""
    return block.state == FREE and block.holder == stream and block.bin == bin


cdef inline Block* choose_block(StreamState* stream, int bin, const Place* place) noexcept:
    """Return the free block that is best for a place; NULL: see `ask`."""
    cdef Block* block = place.last
    cdef int i
    if place.bin != bin:            # another program is running
        return lowest_free(&stream.bins[bin])
    if place.kept != NULL:
        for i in range(place.kept.count):
            block = place.kept.blocks[i]
            if block.state != FREE:
                continue
            if is_kept(place, block):
                return block
            if is_free(stream, bin, block):     # it is lent: see `ask_again`
                return NULL
        if kept_bytes[stream.ordinal] < <size_t>MOST_KEPT_BYTES:
            return NULL
        return highest_free(&stream.bins[bin])
    if block == NULL:
        return lowest_free(&stream.bins[bin])
    if is_free(stream, bin, block) and block.keeper == 0:
        return block
    return highest_free(&stream.bins[bin])      # other places ask for the lower ones


cdef Block* ask(StreamState* stream, int bin, int* index) noexcept:
    cdef Places* places = stream.places
    cdef int number = stream.place
    cdef Block* block
    if number == places.count and not add_place(places, bin):
        index[0] = -1
        block = lowest_free(&stream.bins[bin])
        if block != NULL:
            block.taken = 0
        return block
    index[0] = number
    stream.place = number + 1
    block = choose_block(stream, bin, &places.items[number])
    if block != NULL:
        note_place(stream, number, block)
    return block


cdef Block* ask_again(StreamState* stream, int bin, int index, bint plenty) noexcept:
    cdef Place* place = &stream.places.items[index]
    cdef Kept* kept = place.kept
    cdef int i, count = 0
    if kept == NULL or place.bin != bin:
        return NULL
    if plenty:                      # what is lent is no longer needed
        for i in range(kept.count):
            if is_kept(place, kept.blocks[i]):
                kept.blocks[count] = kept.blocks[i]
                count += 1
        kept.count = count
    for i in range(kept.count):
        if is_free(stream, bin, kept.blocks[i]):
            return kept.blocks[i]
    return NULL


cdef void note_place(StreamState* stream, int index, Block* block) noexcept:
    cdef Place* place = &stream.places.items[index]
    place.current = block
    place.died = False
    block.taken = stream.turn
    block.place = index


cdef void forget_batch(StreamState* stream) noexcept:
    """Forget which blocks the batch's places received."""
    cdef int i
    for i in range(stream.place):
        stream.places.items[i].current = NULL


cdef void abandon_places(StreamState* stream) noexcept:
    if stream.places != NULL:
        forget_batch(stream)
        stop_asking(stream)


cdef void restart_places(StreamState* stream, int rounds) noexcept:
    if stream.places == NULL:
        return
    forget_batch(stream)                # how long their results live is not known
    if stream.places.used == 0 or stream.places.used % rounds:
        stop_asking(stream)
        return
    stream.place %= stream.places.used // rounds
    begin_turn(stream)


cdef void leave_out(StreamState* stream, Block* block) noexcept:
    if stream.turn and block.taken == stream.turn and block.place == stream.place - 1:
        block.taken = 0
        stream.place = block.place
        stream.places.items[block.place].current = NULL
