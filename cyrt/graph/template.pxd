# Templates: calls of other libraries that are captured once, and recorded as kernels after that.
#
# INVARIANTS
# - A call is captured three times, with its operands at other addresses; nothing of it runs. A word
#   of the parameters that differs is the address of one operand and a constant, which two captures
#   show and the third one confirms, byte for byte. Half a word that differs is the lower half of an
#   address that the same kernel has in whole: one that an earlier call left in padding. Bytes that
#   differ between two captures at equal addresses are padding. Every other difference, and a word
#   that is the address of memory which is no operand, make the call opaque: it is captured each
#   time, and is a child graph. Only a launch's attributes are not compared: they are the first
#   capture's.
# - A call whose attribute `reads_own_memory` is true has memory that is no operand, such as tables,
#   which it only reads, and which lives as long as the call: its kernels may have that address.
# - The operands are within one block of scratch memory during these captures, so a word could have
#   the upper half of an address in another place: a constant is less than 2 GiB, or the call is
#   opaque.
# - The key of a template is everything that selects the call, with the device's epoch and the
#   alignments of its operands. From the store, which has a limit, those used longest ago are
#   dropped, but none that a launch's plan (graph/exact_key), a call in progress or a recording
#   holds.
# - The nodes of a call run in order: each writes what the call writes. Of a call with branches,
#   which a library forks to other streams, all nodes run after the first and before the last one,
#   and the others only read what the call writes. Such a node writes the token of its lane instead,
#   and one of its own if later lanes begin at it, and reads the tokens of what it waits for: a
#   token is a block that no kernel accesses.
# - A library may compile code for a call, and unload it with the object that makes the call. So
#   each kernel of a template, and each child graph of an opaque call, holds that object as its Code
#   (runtime/module). Recordings hold the kernels and child graphs that they may launch, also those
#   of templates that the store has dropped; plans hold the Code. They are released at the launch:
#   an object that unloads code outlives the work in flight by `release_when_idle` (runtime/ending).

from cyrt.graph.child cimport ChildGraph
from cyrt.graph.commit cimport Recorder
from cyrt.graph.exact_key cimport Key
from cyrt.graph.pattern cimport Pattern
from cyrt.graph.recording cimport Geometry, Use
from cyrt.runtime.module cimport Code, Runnable

cdef enum:
    MOST_OPERANDS = 8       # the most operands of a call, its workspace included
    ALIGNMENT = 16          # bytes; the greatest alignment of an operand that a key stores
    MOST_TOKENS = 24        # the most tokens of a call with branches

# An operand of a call to be learned: its address or one of the same alignment, and its bytes if it
# is written, else 0. A workspace has the alignment of a block of the pool.
cdef struct Extent:
    unsigned long long address
    size_t written
    bint workspace

# One kernel of a template.
cdef class TemplateKernel(Runnable):
    cdef Pattern pattern
    cdef Geometry geometry
    cdef unsigned int flags
    cdef unsigned int[3] cluster
    cdef unsigned long long serial      # unique
    # If the call has branches, bit t of `marks` says that the kernel writes token t, and bit t of
    # `waits` that it reads token t.
    cdef unsigned int marks, waits

cdef class Template:
    cdef unsigned long long used    # the time of the last use; 0: it is not in the store
    cdef int ordinal
    cdef str origin             # the origin of its kernels, see Runnable
    cdef readonly list kernels  # TemplateKernels in order; None: the call is opaque, or refused
    cdef int count
    cdef readonly int num_tokens    # 0: the kernels run in order
    cdef readonly object call   # the opaque call; None for other calls
    cdef Code code              # keeps the code of an opaque call loaded; None for other calls
    cdef readonly str reason    # why the call is opaque or refused; None: it is neither
    cdef readonly bint refused  # the library does not provide it: other kernels have to run
    cdef bint undeclared        # it uses memory that is no operand
    cdef readonly size_t workspace
    cdef object __weakref__

# Begin a key with the family of the calls, the device and its epoch.
cdef void begin_call_key(Key* key, unsigned long long family, int ordinal) noexcept
# Return the template of a key, or None.
cdef Template find_template(Key* key)
# Note that a template is used; others leave the store before it.
cdef void touch(Template template) noexcept
# Learn a call and keep it. `call` takes the handle of a stream and a tuple of addresses, and puts
# work on the stream; `call.prepare()`, if there is one, is called before each capture. For
# `call.reads_own_memory` see above. The last operand is the workspace, if the call needs one.
cdef Template learn(Key* key, int ordinal, object call, const Extent* operands, int count,
                    size_t workspace)
# Learn a call without keeping it.
cdef Template learn_apart(int ordinal, object call, const Extent* operands, int count,
                          size_t workspace)
# Keep the verdict that the library does not provide a call.
cdef Template refuse(Key* key, int ordinal, str reason)
# Record a template's call. The uses are those of all its operands.
cdef int record_template(Recorder encoder, Template template,
                         const unsigned long long* addresses, int num_operands, const Use* uses,
                         int num_uses, list foreign) except -1
# Capture an opaque call with its operands where they are; record what was captured.
cdef ChildGraph capture_opaque(Template template, const unsigned long long* addresses, int count)
cdef int record_opaque(Recorder encoder, Template template, ChildGraph child, Use* uses,
                       int num_uses, list foreign) except -1
# Drop the templates of a device that was reset, and all launches' plans.
cdef void forget_templates(int ordinal) noexcept
