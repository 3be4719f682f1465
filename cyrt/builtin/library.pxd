# NVIDIA's libraries that compute built-in operations: on which devices they do, and how a call of
# one is learned.
#
# INVARIANT: the verdict that a library does not provide an operation is kept under the operation's
# key; any other status of the library is raised.

from cyrt.builtin.operand cimport Operand
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.graph.commit cimport Recorder
from cyrt.graph.exact_key cimport Key
from cyrt.graph.template cimport Template

# A library, which is also the family of its templates' keys. cuSOLVER has none: see
# linalg/library_calls.
cdef enum Library:
    CUBLASLT = 1
    CUDNN
    CUFFT
    CUSOLVER
    LIBRARIES               # the end

# Whether a library computes on a device, at [ordinal * LIBRARIES + library]: 1 yes, -1 no, 0 not
# decided yet.
cdef signed char[MAX_DEVICES * LIBRARIES] decisions
cdef bint decide_for(Library library, int ordinal) except -1

# CYRT_TF32, once a library was asked for.
cdef bint tf32

# Return whether there is a library for the device.
cdef inline bint is_served(Library library, int ordinal) except -1:
    cdef int decision = decisions[ordinal * LIBRARIES + library]
    return decision > 0 or (decision == 0 and decide_for(library, ordinal))
# Use a library on a device or not, whatever the device is; None: decide at its next operation.
cdef int decide(Library library, int ordinal, object served) except -1
# Return the bindings of a library, which are imported at their first use.
cdef object bindings_of(Library library)
# Record a learned call. Return False if the library does not provide it, or memory is short.
cdef bint record_learned(Recorder encoder, Template template, const Operand* operands, int count,
                         unsigned int writes) except -1
# Learn a call, or that the library does not provide it. `make()` returns the call; the context is
# current, and the bindings' Unsupported is the library's refusal. Operand 0 has `written` bytes,
# which are written.
cdef Template learn_call(Library library, Key* key, int ordinal, object make,
                         const Operand* operands, int count, size_t written)
