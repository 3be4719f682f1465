# Kernels and their launch.

from cpython.object cimport PyObject

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recording cimport Geometry, Use
from cyrt.kernels.packing cimport Param
from cyrt.kernels.vectorcall cimport Vectorcall
from cyrt.runtime.dlpack cimport DLPackExchangeAPI
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport StreamState

cdef enum:
    MOST_TENSORS = 64

cdef class Kernel:
    cdef readonly object module         # cyrt.kernels.Module
    cdef readonly str name
    cdef str symbol
    cdef object signature_              # jit.signature.Signature
    cdef list loaded                    # per device: LoadedFunction or None
    cdef Param* params
    cdef int num_params
    cdef int num_hidden                 # further parameters, behind these, all bytes of which are 0
    cdef bint cooperative               # every launch is cooperative
    cdef unsigned int param_bytes       # with the ranges
    # The offset of the ranges of memory behind the parameters, and their number: 0 on a GPU, whose
    # launches have none.
    cdef unsigned int range_offset
    cdef int num_ranges
    cdef bint pdl
    # The number of parameters if the stack has room for them, so that usual arguments are packed
    # there; else -1.
    cdef int num_usual
    cdef bint opaque                    # may reach memory that no argument names
    cdef bint unlimited                 # the same, through structs or variables in memory, too
    cdef dict resident                  # blocks that run at once, by (device, threads, smem)
    cdef dict blocks                    # for_each's block sizes, by (device, bits of n, smem)
    cdef tuple config  # the last [grid, block, smem], and the values parsed from it
    cdef Geometry geometry
    cdef object __weakref__

    cdef object block_for(self, n, unsigned int smem)
    cdef LoadedFunction load(self, int ordinal)

cdef class Launch:
    cdef Vectorcall vectorcall
    cdef Kernel kernel
    cdef Geometry geometry

# The description of another library's tensor, which is C-contiguous and lies on the device.
cdef struct Described:
    CUdeviceptr address
    size_t size
    unsigned int traits

# The other libraries' tensors among the arguments of a launch, in their order.
cdef struct Borrowed:
    void* objects[MOST_TENSORS]
    Described[MOST_TENSORS] described
    const DLPackExchangeAPI* api    # the functions of their library: one for all; NULL: no tensor
    StreamState* home               # their library's current stream
    int count

cdef inline void begin_borrowing(Borrowed* borrowed) noexcept:
    borrowed.api, borrowed.count = NULL, 0
# Add a tensor, and return where it is described; NULL: it is none that a kernel can be launched on
# without further checks, which raise the errors. This may run Python code.
cdef inline const Described* borrow(PyObject* value, int ordinal,
                                    Borrowed* borrowed) except? NULL:
    # A function pointer of a type that raises nothing costs less than a `try`.
    cdef const Described* found = (<Borrow>borrow_or_raise)(value, ordinal, borrowed)
    return forget_error() if found == NULL else found
# Do the same, and raise the errors of its library.
cdef const Described* borrow_or_raise(PyObject* value, int ordinal,
                                      Borrowed* borrowed) except? NULL
ctypedef const Described* (*Borrow)(PyObject*, int, Borrowed*) noexcept
# Return NULL. An Exception that is set is cleared, and any other one is raised.
cdef const Described* forget_error() except? NULL

# Put the kernel on the current stream. `borrowed`: tensors among the arguments; no other code has
# run since they were described. `declared`: what `declared_memory` returns.
cdef int launch(Kernel kernel, const Geometry* geometry, PyObject** args,
                Py_ssize_t count) except -1
cdef int launch_borrowed(Kernel kernel, const Geometry* geometry, PyObject** args,
                         Py_ssize_t count, Borrowed* borrowed) except -1
cdef int launch_any(Kernel kernel, const Geometry* geometry, PyObject** args, Py_ssize_t count,
                    list declared) except -1

# Replay a launch without keywords if it is the next call of the encoder's script. Return whether it
# was replayed.
cdef bint replay_launch(Kernel kernel, Recorder encoder, const Geometry* geometry,
                        PyObject** args, Py_ssize_t count) noexcept

# Call a launch with keywords: it has `reads` and `writes`; `advice` ends the error of others.
cdef object call_by_name(object launch, str kernel, PyObject** args, Py_ssize_t positional,
                         tuple keywords, str advice)

# Memory on the heap for the packed parameters and the uses.
cdef struct Arguments:
    char* blob
    Use* uses
    int num_uses
    int ranges              # number of ranges so far
    bint holds_address      # a number is the address of memory
    void* heap

# The arguments of a launch as a tuple; only a tuple or a list of them is accepted.
cdef tuple argument_tuple(str kernel, args)
# Allocates that memory on the heap, for `count` arguments and `declared` Buffers.
cdef int allocate_arguments(Kernel kernel, Py_ssize_t count, Py_ssize_t declared,
                            Arguments* packed) except -1
# Raises for a geometry that the kernel cannot be launched with. This may call the driver, and other
# threads may run: it precedes the check of the arguments' memory.
cdef int check_launch(Kernel kernel, LoadedFunction function, const Geometry* geometry) except -1
# Adds the ranges of `reads=` and `writes=`. A launch that declares nothing, of a kernel that may
# reach memory which no argument names, may use all memory.
cdef void allow_declared(Kernel kernel, Arguments* packed, list declared) noexcept
# Writes the parameters' bytes, uses and ranges. Returns the Buffers of foreign memory, or None.
cdef list pack(Kernel kernel, LoadedFunction function, int ordinal, PyObject** args,
               Arguments* packed)
