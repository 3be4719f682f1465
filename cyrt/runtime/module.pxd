# Handles of loaded code. The public classes Module and Kernel are in cyrt/kernels.
#
# INVARIANTS
# - A thread that loads code which other threads may load, too, holds the lock `loading` and checks
#   first that the code is not loaded: each copy would have separate variables.

from cyrt.driver.cuda cimport CUfunction, CUfunction_attribute, CUmodule
from cyrt.runtime.memory cimport Buffer
from cyrt.runtime.state cimport Block

# The offsets of a kernel's parameters in their packed bytes.
cdef struct Layout:
    int count
    unsigned int nbytes
    unsigned int* offsets

# A device's limits on a launch.
cdef struct Limits:
    unsigned int grid[3]
    unsigned int block[3]
    unsigned int threads        # threads of a block
    unsigned int smem           # bytes that a block may opt in to, static and dynamic
    int multiprocessors
    bint cooperative
    bint clusters

# A plan holds the Code of a kernel that it runs, and not the kernel. The Code keeps the module
# loaded. A kernel object therefore ends when the program has dropped it; no recording can match the
# plan any more then, and the plan leaves the cache (see graph/plan_cache).
cdef class Code:
    cdef object held            # the LoadedModule, or a library's object
    cdef bint dropped           # the kernel has ended

# The base class of everything that a node can run: LoadedFunction, and in graph the kernels of
# templates and child graphs.
cdef class Runnable:
    cdef Code code
    cdef readonly str name
    cdef str origin             # the code's origin; None: the program's

# How many kernels have ended so far.
cdef unsigned long long num_dropped
cdef Code new_code(object held)
# Note that the kernel has ended. None is allowed.
cdef void drop_code(Code code) noexcept

cdef class LoadedModule:
    cdef CUmodule handle
    cdef readonly int ordinal
    cdef unsigned int epoch
    # For each __device__ or __constant__ variable, whether it is constant; None if not known.
    cdef readonly object variables
    cdef Buffer memory          # represents all variables; None: the module has none
    cdef Block* globals         # the block of `memory`, which every launch of a kernel uses
    cdef bint writes_globals    # at least one variable is not constant
    cdef dict required_blocks   # a RequiredBlock (see runtime/image) by the kernel's symbol
    cdef object __weakref__

    cdef int live(self) except -1

cdef class LoadedFunction(Runnable):
    cdef CUfunction handle
    cdef readonly LoadedModule module   # keeps the code loaded as long as the handle exists
    cdef readonly int max_threads       # per block, limited by the registers
    cdef readonly int static_smem       # bytes of shared memory that the kernel declares
    cdef long dynamic_smem              # bytes that a launch may request now; below 0: not even 0
    cdef unsigned int[3] cluster        # the kernel was compiled for it; zeros: none
    cdef unsigned int[3] block          # the kernel was compiled for it; zeros: none
    cdef bint counts_clusters          # a launch gives the clusters in the grid, not the blocks
    cdef bint restricted                # it was compiled for a cluster or a block
    cdef const Limits* limits           # the device's
    cdef unsigned long long serial      # never used for another function
    cdef Layout layout
    cdef bint programmatic              # it executes griddepcontrol.wait before anything else
    cdef bint ordered                   # by the memory it uses, even inside concurrent()

    cdef int live(self) except -1
    cdef int attribute(self, CUfunction_attribute which) except? -1

# Store the (offset, size) pairs of the function's parameters, once.
cdef int set_layout(LoadedFunction function, list extents) except -1
# Allow launches with `nbytes` of dynamic shared memory. Raise ValueError if the device has less.
cdef int allow_smem(LoadedFunction function, size_t nbytes) except -1
