# Devices and their primary contexts.
#
# INVARIANTS
# - cyrt uses the device's primary context, which every library of the process shares.
# - A driver call that needs the context current is made between `enter` and `leave`, which push
#   and pop the context: the current device of other libraries does not change. No driver call is
#   made after a fault, in a forked child or during exit.
# - An object stores its context's epoch. After a reset the epochs differ, and using the object
#   raises.

from cyrt.driver.cuda cimport CUcontext, CUdevice, CUresult
from cyrt.driver.table cimport MAX_DEVICES, READY, faulted, process

cdef struct Context:
    CUcontext handle        # NULL until the context is retained
    CUdevice device
    unsigned int epoch      # number of resets

cdef Context contexts[MAX_DEVICES]

# Return the device's context; the first use retains it. Raise ValueError for an invalid ordinal.
cdef Context* context_of(int ordinal) except NULL
# Raise an error if no driver call may be made for an object of that epoch.
cdef int refuse_call(int ordinal, unsigned int epoch, const char* call) except -1
# Pack the state that `enter` or `verify` returns and `leave` takes.
cdef inline int entry(unsigned int epoch, bint pushed) noexcept:
    return <int>(epoch << 1) | pushed
# Check that a call may be made that needs no current context: calls that take a stream created by
# cyrt (launches, copies, events) need none with drivers from 12.0 on.
cdef inline int verify(int ordinal, unsigned int epoch, const char* call) except -1:
    if process != READY or faulted[ordinal] or contexts[ordinal].epoch != epoch:
        return refuse_call(ordinal, epoch, call)
    return entry(epoch, False)
# Check the same for a call that needs the context, and make the context current.
cdef int enter(int ordinal, unsigned int epoch, const char* call) except -1
# Undo an `enter` and raise an error if the call failed.
cdef int leave(int ordinal, int entered, CUresult result, const char* call) except -1
# Do the same as `enter` and `leave` for deallocation: return -1 if no call may be made.
cdef int enter_quietly(int ordinal, unsigned int epoch) noexcept
cdef void leave_quietly(int entered) noexcept

# Whether this thread explains a function, and whether the function has asked for a result, so that
# the list of its launches may end there.
cdef enum Explained:
    NOT_EXPLAINED
    EXPLAINED
    EXPLAINED_IN_PART

cdef Explained explained() noexcept
cdef void set_explained(Explained value) noexcept
# Raise RuntimeError if this thread explains a function, which would enter a Device or a Stream.
cdef int refuse_while_explained(entered) except -1

# Return the ordinal of this thread's current device.
cdef int current_ordinal() noexcept
# Return the ordinal of a Device or an int; None means the current device.
cdef int ordinal_of(device) except -1
# Return the index of an object's innermost `with` block in this thread's list of open blocks, whose
# items begin with the object. Raise RuntimeError if none is open.
cdef int innermost_block(list blocks, entered) except -1

cdef class Device:
    cdef int index              # -1 until the Device is initialised
    cdef object __weakref__

    cdef int live(self) except -1
