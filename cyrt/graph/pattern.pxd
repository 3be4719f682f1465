# Patterns: the launch of a captured kernel, complete but for the addresses of its operands.
#
# INVARIANTS
# - A node of kind TEMPLATE records the addresses of all operands of its call and nothing else of
#   its parameters; the pattern, which has a unique serial, has the rest.
# - `layout` is the first member: a node's `layout` is the address of its pattern.

from libc.string cimport memcpy

from cyrt.driver.cuda cimport *
from cyrt.runtime.module cimport Layout

# A word of the parameters: the address of an operand and a constant, or the lower half of that.
cdef struct Word:
    unsigned int offset
    unsigned int nbytes         # 8 or 4
    unsigned long long addend
    unsigned int operand

cdef struct Pattern:
    Layout layout
    CUfunction function         # or NULL, and the kernel of a library, and its context
    CUkernel kernel
    CUcontext context
    bint packed                 # the parameters are passed as one buffer, in `extra`
    size_t nbytes               # the size of the parameters
    char* params                # with all words but those of `words`
    Word* words
    int num_words
    CUlaunchAttribute* attributes       # those that a node does not have by default
    int num_attributes

cdef enum:
    EXTRA = 5                   # elements of `extra` for one buffer

# Return how many pointers and how many bytes of room `lay` needs.
cdef inline size_t room_of(const Pattern* pattern) noexcept nogil:
    return max(pattern.layout.count, <int>EXTRA) * sizeof(void*) + ((pattern.nbytes + 31) & ~15)

# Write the parameters for these operands to the room. Return `kernelParams`, or `extra` if the
# pattern is packed.
cdef inline void** lay(const Pattern* pattern, const unsigned long long* operands,
                       void** room) noexcept nogil:
    cdef size_t end = <size_t>(room + max(pattern.layout.count, <int>EXTRA))
    cdef char* params = <char*>((end + 15) & ~15)
    cdef unsigned long long word
    cdef int i
    memcpy(params, pattern.params, pattern.nbytes)
    for i in range(pattern.num_words):
        word = operands[pattern.words[i].operand] + pattern.words[i].addend
        memcpy(params + pattern.words[i].offset, &word, pattern.words[i].nbytes)
    if pattern.packed:
        room[0], room[1] = CU_LAUNCH_PARAM_BUFFER_POINTER, params
        room[2], room[3] = CU_LAUNCH_PARAM_BUFFER_SIZE, <void*>&pattern.nbytes
        room[4] = CU_LAUNCH_PARAM_END
    else:
        for i in range(pattern.layout.count):
            room[i] = params + pattern.layout.offsets[i]
    return room
