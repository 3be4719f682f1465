# Places: a place is the m-th allocation of the n-th batch of a round, and remembers its blocks.
#
# INVARIANTS
# - Each allocation of a batch asks its place for the block that it received in the round before. So
#   its address depends neither on other batches nor on results that the program keeps: the
#   operations have the addresses that an executable graph already contains.
# - Results that are freed with their batch receive blocks in low slots, which all batches share. A
#   place whose result outlives the batch has its own blocks: two, if the next round replaces it.
# - A batch that a commit ends early is continued: the next allocations use the remaining places. A
#   batch of several short rounds begins again, at the corresponding place of its first round.
# - A place remembers its block when its batch ends: allocations that turn out not to belong to the
#   round change nothing for the next one.
# - All of this is a preference. A place that cannot have its block receives another one; a block
#   that it keeps is lent to another place if the size class would grow too large (see pool). Lent
#   blocks end as soon as a stream that is no longer used has free ones: a place that is about to
#   use a lent block receives one of those and keeps it, and an allocation whose result dies with
#   the batch receives one before a kept block is taken. No kept block is lent then, each place gets
#   its own, and addresses come round after at most as many rounds as a place keeps blocks.
# - At most about MOST_KEPT_BYTES of a device's memory are kept. If that is too little, streams that
#   are no longer used keep nothing.

from cyrt.runtime.state cimport Block, Places, StreamState

# Begin a batch: the one with that key, in the round with that number (0: there is no round). If
# `resumes`, it continues the batch with that key.
cdef void begin_places(StreamState* stream, unsigned int round, unsigned long long key,
                       bint resumes) noexcept
# Begin the batch again, at the same operation of its first round, after a commit ended it early. It
# consists of `rounds` equal rounds.
cdef void restart_places(StreamState* stream, int rounds) noexcept
# End the batch, from which nothing is learned; the next one has no places.
cdef void abandon_places(StreamState* stream) noexcept
# Take the place from a block whose operation does not belong to the round: if it was the last
# allocation, the next one uses its place.
cdef void leave_out(StreamState* stream, Block* block) noexcept
# Return whether the stream's places need no blocks: it has no round, or it has had no batch of its
# round while the stream that is asking had a whole one. (Threads take turns in no fixed order, so a
# few batches of other streams do not count.)
cdef bint is_unused(const StreamState* stream, const StreamState* asking) noexcept
# Return a free block of the class for the next place, and store that the place received it. Set
# `index` to the place (-1: none). Return NULL if none is free, if a new block is best, or if the
# place would use a lent block.
cdef Block* ask(StreamState* stream, int bin, int* index) noexcept
# Return a free block that the place has received before, lent or its own; NULL: there is none. If
# `plenty`, a block of an unused stream can be had instead: the place forgets the lent ones.
cdef Block* ask_again(StreamState* stream, int bin, int index, bint plenty) noexcept
# Store that the place received the block.
cdef void note_place(StreamState* stream, int index, Block* block) noexcept
