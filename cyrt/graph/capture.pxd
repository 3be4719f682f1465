# Captures of other libraries' calls on a stream of their own, and what they show of each other.

from cyrt.driver.cuda cimport CUcontext, CUfunction, CUkernel
from cyrt.graph.child cimport ChildGraph
from cyrt.graph.recording cimport Geometry
from cyrt.runtime.stream cimport Stream

# A kernel of a capture: one that the library launched, or one of cyrt's in the place of a memset.
cdef class CapturedKernel:
    cdef CUfunction function
    cdef CUkernel kernel
    cdef CUcontext context
    cdef Geometry geometry
    cdef bint packed            # the parameters were passed as one buffer
    cdef readonly str name
    cdef readonly bytes params
    cdef list offsets           # offsets of the parameters; empty if packed
    # The bytes of each of ATTRIBUTES, or None if it is the default; of the first capture only.
    cdef list attributes
    cdef object owner           # the LoadedFunction of a kernel of cyrt's
    cdef readonly tuple sources     # the indices of the kernels that it waits for

    cdef tuple identity(self)

# Call `call(handle of the stream, addresses)` while the stream is captured; nothing of it runs.
# Return the kernels in order, or all of it as a child graph. Different seeds leave different bytes
# in memory that the call does not initialise; 0 is the first one's. The captures of a call share
# `functions`, what each function has in every launch.
cdef list capture_kernels(Stream stream, object call, tuple addresses, int seed, dict functions)
cdef ChildGraph capture_child(Stream stream, object call, tuple addresses)
