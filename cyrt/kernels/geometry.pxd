# The grid and block of a launch.

from cyrt.graph.recording cimport Geometry
from cyrt.runtime.module cimport LoadedFunction

# One to three numbers of at least 1, x first; the rest are 1.
cdef int dimension(value, str what, unsigned int* target) except -1
cdef tuple triple(const unsigned int* sizes)
# Names the part of the geometry that the kernel or the device does not allow.
cdef int refuse_geometry(str name, LoadedFunction function, const Geometry* geometry) except -1
