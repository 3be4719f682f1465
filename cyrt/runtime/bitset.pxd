# Sets of small integers, stored as bitmaps of three levels. Finding the lowest member reads
# one word of each of the two lower levels, whatever the size of the set. (The highest level is
# searched linearly: each of its words covers 262,144 numbers.)

cdef extern from *:
    """
    #include <stdlib.h>
    #include <string.h>

    typedef struct {
        unsigned long long* levels[3];  /* a bit is set if its word of the level below is not 0 */
        int tops;                       /* number of words of the highest level */
    } cyrt_bits;

    #define CYRT_BIT(i) (1ull << ((i) & 63))

    static inline void cyrt_bits_add(cyrt_bits* bits, int i) {
        unsigned long long members = bits->levels[0][i >> 6];
        bits->levels[0][i >> 6] = members | CYRT_BIT(i);
        if (members) return;            /* the higher levels have the word already */
        bits->levels[1][i >> 12] |= CYRT_BIT(i >> 6);
        bits->levels[2][i >> 18] |= CYRT_BIT(i >> 12);
    }
    static inline void cyrt_bits_drop(cyrt_bits* bits, int i) {
        if (bits->levels[0][i >> 6] &= ~CYRT_BIT(i)) return;
        if (bits->levels[1][i >> 12] &= ~CYRT_BIT(i >> 6)) return;
        bits->levels[2][i >> 18] &= ~CYRT_BIT(i >> 12);
    }
    static inline int cyrt_bits_lowest(const cyrt_bits* bits) {
        for (int i = 0; i < bits->tops; ++i) {
            if (bits->levels[2][i] == 0) continue;
            i = i * 64 + __builtin_ctzll(bits->levels[2][i]);
            i = i * 64 + __builtin_ctzll(bits->levels[1][i]);
            return i * 64 + __builtin_ctzll(bits->levels[0][i]);
        }
        return -1;
    }
    /* Make room for numbers below `room`. Return 0, with nothing changed, if memory is short. */
    static int cyrt_bits_grow(cyrt_bits* bits, int room) {
        size_t old[3] = {bits->levels[0] ? bits->levels[1] - bits->levels[0] : 0,
                         bits->levels[0] ? bits->levels[2] - bits->levels[1] : 0,
                         (size_t)bits->tops};
        size_t words[3];
        words[0] = ((size_t)room + 63) / 64;
        words[1] = (words[0] + 63) / 64;
        words[2] = (words[1] + 63) / 64;
        unsigned long long* memory = (unsigned long long*)calloc(
            words[0] + words[1] + words[2], sizeof(unsigned long long));
        if (memory == NULL) return 0;
        unsigned long long* first = bits->levels[0];
        for (int level = 0; level < 3; ++level) {
            if (old[level])
                memcpy(memory, bits->levels[level], old[level] * sizeof(unsigned long long));
            bits->levels[level] = memory;
            memory += words[level];
        }
        bits->tops = (int)words[2];
        free(first);
        return 1;
    }
    """
    ctypedef struct Bits "cyrt_bits":
        int tops
    # Add or remove a number. It must be below the limit last passed to `grow_bits`.
    void add_bit "cyrt_bits_add"(Bits* bits, int i) noexcept nogil
    void drop_bit "cyrt_bits_drop"(Bits* bits, int i) noexcept nogil
    # Return the lowest member, or -1 if the set is empty.
    int lowest_bit "cyrt_bits_lowest"(const Bits* bits) noexcept nogil
    # Make room for numbers below `room`. Return False, with nothing changed, if memory is short.
    bint grow_bits "cyrt_bits_grow"(Bits* bits, int room) noexcept nogil
