# The grid and block of a launch.

from cyrt.graph.recording cimport Geometry
from cyrt.runtime.module cimport LoadedFunction

# One to three numbers of at least 1, x first; the rest are 1.
cdef int dimension(value, str what, unsigned int* target) except -1
# Bytes of dynamic shared memory.
cdef unsigned int dynamic_smem(value) except? 0xffffffff
cdef tuple triple(const unsigned int* sizes)
# Names the part of the geometry that the kernel or the device does not allow.
cdef int refuse_geometry(str name, LoadedFunction function, const Geometry* geometry) except -1

# n as an int of 0 or more.
cdef object element_count(str name, n)
# (grid, block) of one thread an element; ValueError over what a grid allows.
cdef tuple cover(str name, n, block)
# A smaller block where n would leave multiprocessors without one.
cdef object spread(block, n, int ordinal)

# ValueError where the device cannot run the grid in such clusters, or all at once.
cdef int check_cluster(str name, LoadedFunction function, const Geometry* geometry,
                       const unsigned int* cluster) except -1
cdef int check_cooperative(str name, LoadedFunction function, const Geometry* geometry) except -1
