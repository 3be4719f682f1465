# Devices and their primary contexts.
#
# INVARIANTS
# - The context is the device's primary one, shared with every other library of the process.
# - `enter` before a driver call that needs it current, `leave` after it: pushed and popped, so
#   nobody else's current device changes. Nothing is called after a fault, in a forked child or
#   during exit.
# - An object remembers its context's epoch; after a reset the epochs differ and it is refused.

from cyrt.driver.cuda cimport CUcontext, CUdevice, CUresult
from cyrt.driver.table cimport MAX_DEVICES, READY, faulted, process

cdef struct Context:
    CUcontext handle        # NULL: not retained yet
    CUdevice device
    unsigned int epoch      # number of resets

cdef Context contexts[MAX_DEVICES]

# Retains the primary context at first use; ValueError for an ordinal out of range.
cdef Context* context_of(int ordinal) except NULL
# Raises where no call may be made for an object of that epoch.
cdef int refuse_call(int ordinal, unsigned int epoch, const char* call) except -1
# What `leave` wants to know of an `enter` or `verify`.
cdef inline int entry(unsigned int epoch, bint pushed) noexcept:
    return <int>(epoch << 1) | pushed
# Before a call that needs no context: one that takes a stream of cyrt's own (launches, copies,
# events; so it is with drivers of 12.0 on, current context or none).
cdef inline int verify(int ordinal, unsigned int epoch, const char* call) except -1:
    if process != READY or faulted[ordinal] or contexts[ordinal].epoch != epoch:
        return refuse_call(ordinal, epoch, call)
    return entry(epoch, False)
cdef int enter(int ordinal, unsigned int epoch, const char* call) except -1
# Ends an `enter`; raises where the call failed.
cdef int leave(int ordinal, int entered, CUresult result, const char* call) except -1
# For deallocation: -1 where no call may be made, else as `enter`.
cdef int enter_quietly(int ordinal, unsigned int epoch) noexcept
cdef void leave_quietly(int entered) noexcept

# Ordinal of this thread's current device.
cdef int current_ordinal() noexcept
# Ordinal of a Device, an int, or None for the current device.
cdef int ordinal_of(device) except -1
# Where an object's innermost `with` block lies in this thread's list of open ones, whose items
# begin with the object; RuntimeError where none is open.
cdef int innermost_block(list blocks, entered) except -1

cdef class Device:
    cdef int index              # -1: not initialised
    cdef object __weakref__

    cdef int live(self) except -1
