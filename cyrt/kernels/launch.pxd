# What the launches of rows have in common.

from cyrt.graph.recording cimport Geometry

cdef enum:
    MAX_BLOCKS = 0x7fffffff     # of a grid


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
    """The smallest that covers n, within limits that are powers of two."""
    while least < n and least < most:
        least *= 2
    return least


cdef inline long long ceiling(long long n, long long of) noexcept:
    return (n + of - 1) // of
