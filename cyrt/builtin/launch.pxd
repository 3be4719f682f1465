# The launch of a built-in kernel: recorded, or listed by an Explainer.

from cyrt.builtin.entry cimport Entry
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recording cimport Geometry
from cyrt.graph.template cimport Template
from cyrt.runtime.memory cimport Memory

cdef enum:
    MAX_USES = 9            # the most operands of a launch
    WHOLE = 1 << 16         # a bit of `writes`: every element of operand 0 is written

cdef struct Launch:
    const Entry* entry
    int variant             # index of the kernel in the entry
    Geometry geometry

# A recorder that lists its launches instead of recording them.
cdef class Explainer(Recorder):
    cdef readonly list launches     # (kernel, grid, block)
    cdef readonly str origin        # the library that launches them; None: cyrt's own kernels
    cdef list calls         # (LoadedFunction, grid, block, bytes of shared memory, parameters)

# Return an Explainer for a device.
cdef Explainer explainer_of(int ordinal)
# Set operands that are contiguous memory at an aligned address, for an Explainer.
cdef void set_example_memory(Operand* operands, int count) noexcept
# Record a launch. `params` is the kernel's parameter struct, `operands` is the memory that it
# uses; bit i of `writes` is set if operand i is written.
cdef int record_launch(Recorder encoder, const Launch* launch, const void* params,
                       const Operand* operands, int count, unsigned int writes) except -1
# Record a launch of a kernel that can load `num_weights` operands, from `weights` on, before it
# waits for its dependencies. It does so if the 32-bit word at offset `word` of its parameters is 1:
# the word is 0, and the recorder sets it (see graph/early).
cdef int record_launch_of_weights(Recorder encoder, const Launch* launch, const void* params,
                                  const Operand* operands, int count, unsigned int writes,
                                  int weights, int num_weights, size_t word) except -1
# Record a library's call; the workspace, or None, comes after the operands.
cdef int record_call(Recorder encoder, Template template, const Operand* operands, int count,
                     unsigned int writes, Memory workspace) except -1
# List the kernels of a library's call.
cdef int list_call(Explainer explainer, Template template, str origin) except -1
