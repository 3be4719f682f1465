# Places: what each allocation of a round's batches is given.
#
# INVARIANTS
# - A batch of the program's round asks, allocation by allocation, for the blocks that it had in the
#   round before. What it is given then depends neither on other batches, nor on results that
#   somebody keeps: operations find the addresses that an executable graph holds already.
# - Results that die with their batch are given low blocks, which all batches share. A result that
#   outlives its batch has blocks of its own: two, where the next round's replaces it.
# - A batch that a commit cuts early is continued: what follows asks the places that are left. One
#   of several short rounds begins again, at the place in its first round that is next.
# - What a place is given counts when its batch has ended: allocations that turned out to be no part
#   of the round change nothing for the next one.
# - All of that is a preference. A place that cannot have its block is given another one; what it
#   keeps is lent to another place where the class would grow too large (see pool).
# - Up to MOST_KEPT_BYTES of a device's memory are kept. Where that is too little, streams that are
#   no longer used keep nothing.

from cyrt.runtime.state cimport Block, Places, StreamState

# The batch that begins is the one of that key in a round of that number; 0: there is no round.
# `resumes`: it continues the batch of that key.
cdef void begin_places(StreamState* stream, unsigned int round, unsigned long long key,
                       bint resumes) noexcept
# A commit cut the batch, which is one of so many equal rounds: the next one begins at the same
# operation of the first round.
cdef void restart_places(StreamState* stream, int rounds) noexcept
# The block is for an operation that is no part of the round: where it was allocated last, the next
# allocation asks for its place.
cdef void leave_out(StreamState* stream, Block* block) noexcept
# Whether the stream has had no batch of a round for long: its places need nothing any more.
cdef bint is_unused(const StreamState* stream) noexcept
# A free block of the class for the next place, which is `index`. NULL: a new one is best.
cdef Block* ask(StreamState* stream, int bin, int* index) noexcept
# The place was given the block.
cdef void note_place(StreamState* stream, int index, Block* block) noexcept
