# The grid and block of a launch.

from cyrt.graph.recording cimport Geometry
from cyrt.runtime.module cimport Limits, LoadedFunction

# One to three numbers of at least 1, x first; missing ones are 1. Returns True if the value is
# immutable.
cdef bint dimension(value, str what, unsigned int* target) except -1
# Bytes of dynamic shared memory.
cdef unsigned int dynamic_smem(value) except? 0xffffffff
cdef tuple triple(const unsigned int* sizes)
# Raises the error that names the part of the geometry that the kernel or the device does not allow.
cdef int refuse_geometry(str name, LoadedFunction function, const Geometry* geometry) except -1
# Raises ValueError if the block or the grid does not fit what the kernel was compiled for.
cdef int check_required(str name, LoadedFunction function, const Geometry* geometry) except -1

cdef inline bint fits(const Geometry* geometry, LoadedFunction function) noexcept:
    """True if grid and block are within the limits of the kernel and of the device."""
    cdef const Limits* most = function.limits
    # Sizes within the limits have a product that does not overflow.
    return (geometry.grid[0] <= most.grid[0] and geometry.grid[1] <= most.grid[1]
            and geometry.grid[2] <= most.grid[2] and geometry.block[0] <= most.block[0]
            and geometry.block[1] <= most.block[1] and geometry.block[2] <= most.block[2]
            and <long long>geometry.block[0] * geometry.block[1] * geometry.block[2]
            <= function.max_threads)

cdef inline bint meets(const Geometry* geometry, LoadedFunction function) noexcept:
    """True if the block and the grid are what the kernel was compiled for."""
    cdef int i
    for i in range(3):
        if function.block[0] and geometry.block[i] != function.block[i] \
                or function.cluster[i] > 1 and not function.counts_clusters \
                and geometry.grid[i] % function.cluster[i]:
            return False
    return True

# n as an int that is not negative.
cdef object element_count(str name, n)
# (grid, block) with one thread per element; ValueError if n exceeds what a grid allows.
cdef tuple cover_grid(str name, n, block)
# A smaller block if n would leave multiprocessors without a block.
cdef object spread(block, n, int ordinal)

# Raises ValueError if the device cannot run the grid in such clusters, or not all blocks at once.
# `resident` caches how many blocks of a kernel run at once, by (device, threads, smem).
cdef int check_cluster(str name, LoadedFunction function, const Geometry* geometry,
                       const unsigned int* cluster) except -1
cdef int check_cooperative(str name, LoadedFunction function, const Geometry* geometry,
                           dict resident) except -1
