# Loaded code: handles only. The public Module and Kernel live in cyrt/kernels.
#
# INVARIANTS
# - Who loads code that others may want, too, holds `loading`, and looks first whether it is loaded:
#   each copy would have variables of its own.

from cyrt.driver.cuda cimport CUfunction, CUfunction_attribute, CUmodule
from cyrt.runtime.memory cimport Buffer
from cyrt.runtime.state cimport Block

# Where a kernel's parameters lie in their packed bytes.
cdef struct Layout:
    int count
    unsigned int nbytes
    unsigned int* offsets

# A device's limits on a launch.
cdef struct Limits:
    unsigned int grid[3]
    unsigned int block[3]
    unsigned int threads        # of a block
    unsigned int smem           # bytes a block may opt in to, static and dynamic
    int multiprocessors
    bint cooperative
    bint clusters

cdef class LoadedModule:
    cdef CUmodule handle
    cdef readonly int ordinal
    cdef unsigned int epoch
    # Its __device__ and __constant__ variables: whether each symbol is constant; None: not known.
    cdef readonly object variables
    cdef Buffer memory          # stands for them all; None: it has none
    cdef Block* globals         # of `memory`: each kernel's launch uses it
    cdef bint writes_globals    # one of them is no constant
    cdef object __weakref__

    cdef int live(self) except -1

cdef class LoadedFunction:
    cdef CUfunction handle
    cdef readonly LoadedModule module   # code lives as long as a handle into it
    cdef readonly str name
    cdef readonly int max_threads       # per block, as its registers allow
    cdef readonly int static_smem       # bytes of shared memory it declares itself
    cdef long dynamic_smem              # bytes that a launch may ask for now; below 0: not even 0
    cdef unsigned int[3] cluster        # that it was compiled for; zeros: none
    cdef const Limits* limits           # of its device
    cdef unsigned long long serial      # a name that no other function gets, ever
    cdef Layout layout
    cdef bint programmatic              # executes griddepcontrol.wait first of all
    cdef bint ordered                   # by what it uses, in concurrent() too

    cdef int live(self) except -1
    cdef int attribute(self, CUfunction_attribute which) except? -1

# Tells the function its parameters, once.
cdef int set_layout(LoadedFunction function, list extents) except -1
# Lets launches ask for that much dynamic shared memory; ValueError where the device has less.
cdef int allow_smem(LoadedFunction function, size_t nbytes) except -1
