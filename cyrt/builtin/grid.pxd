# Geometry functions of all families' launches.

from cyrt.graph.recording cimport Geometry

cdef extern from *:
    int __builtin_clzll(unsigned long long) noexcept

cdef enum:
    MAX_BLOCKS = 0x7fffffff     # the most blocks of a grid


cdef int multiprocessors_of(int ordinal) except -1

cdef inline void set_geometry(Geometry* geometry, unsigned long long blocks, unsigned int x,
                              unsigned int y) noexcept:
    geometry.grid[0] = <unsigned int>blocks
    geometry.grid[1] = geometry.grid[2] = 1
    geometry.block[0] = x
    geometry.block[1] = y
    geometry.block[2] = 1
    geometry.smem = 0


cdef inline unsigned int power_of_two(unsigned long long n, unsigned int least,
                                      unsigned int most) noexcept:
    """Return the smallest power of two that is at least n, limited to [least, most]."""
    if n <= least:
        return least
    return most if n > most // 2 else 1u << (64 - __builtin_clzll(n - 1))


cdef inline long long ceiling(long long n, long long of) noexcept:
    return (n + of - 1) // of
