"""Devices: their properties, the current device, and their primary contexts."""

import threading

from cyrt.driver import table as _table
from cyrt.driver.attributes import DEVICE_ATTRIBUTES
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport (
    MAX_DEVICES, READY, check, cu, disturb, ensure_open, faulted, is_emulated, process, refuse,
)
from cyrt.error_text import show
from cyrt.runtime.integers cimport as_int
from cyrt.runtime.seam cimport graph

cdef extern from *:
    """
    /* The current device of each thread; see stream for the kind of memory. */
    static _Thread_local int cyrt_current_ordinal __attribute__((tls_model("initial-exec"))) = 0;
    static inline void cyrt_set_current_ordinal(int ordinal) { cyrt_current_ordinal = ordinal; }
    static _Thread_local int cyrt_explained __attribute__((tls_model("initial-exec"))) = 0;
    static inline void cyrt_set_explained(int explained) { cyrt_explained = explained; }
    """
    int cyrt_current_ordinal
    void cyrt_set_current_ordinal(int)
    int cyrt_explained
    void cyrt_set_explained(int)

# This thread's open `with` blocks: (Device, ordinal to restore at the end).
_open = threading.local()
_resetting = threading.RLock()      # reentrant, since a signal handler may reset the device, too

# The limits of a context: their numbers, and when the driver refuses to set them.
_LIMITS = {
    "heap": (CU_LIMIT_MALLOC_HEAP_SIZE,
             "it can be set before the first launch of a kernel that calls malloc or free, to what "
             "the device's memory allows"),
    "stack": (CU_LIMIT_STACK_SIZE, "it can be set to what a thread's local memory allows"),
    "printf": (CU_LIMIT_PRINTF_FIFO_SIZE,
               "it can be set before the first launch of a kernel that calls printf, to what the "
               "device's memory allows"),
}

# Functions that are called with the ordinal before a device's context is reset.
reset_hooks = []


cdef int count() except -1:
    cdef int number = 0
    ensure_open()
    check(cu.cuDeviceGetCount(&number), b"cuDeviceGetCount")
    return min(number, MAX_DEVICES)


cdef int validate(index) except -1:
    """Return the index as an int if it is a device's ordinal, else raise."""
    cdef int number = count()
    if isinstance(index, str):
        return validate(ordinal_of_text(index))
    ordinal = as_int(index)
    if ordinal is None:
        raise TypeError(
            f"device: expected a cyrt.Device, an int or None, got {type(index).__name__}")
    if not 0 <= ordinal < number:
        raise ValueError(
            f"device {ordinal}: expected an index from 0 to {number - 1}; "
            f"there {'is one device' if number == 1 else f'are {number} devices'}")
    return ordinal


cdef int ordinal_of_text(str text) except -1:
    """Return the ordinal of a device that is named as in other libraries."""
    name, colon, number = text.partition(":")
    if name == "cuda" and (number.isdecimal() if colon else not number):
        return int(number) if colon else cyrt_current_ordinal
    if name == "cpu":
        raise ValueError(f"device: {text!r}: arrays are on a GPU, or an emulated one; numpy() "
                         "copies one to the host")
    raise ValueError(f"device: expected a cyrt.Device, an int, or text such as 'cuda' or 'cuda:1', "
                     f"got {text!r}")


def is_available():
    """Return whether there is a device for arrays: a GPU or the emulated device.

    Without a GPU this is the emulated device, unless ``CYRT_DEVICE=cuda`` excludes it.

    Returns
    -------
    bool

    Examples
    --------
    >>> import cyrt
    >>> cyrt.is_available()
    True
    """
    try:
        return count() > 0
    except (RuntimeError, OSError):
        return False


cdef Context* context_of(int ordinal) except NULL:
    cdef Context* context
    cdef CUcontext handle = NULL
    cdef CUdevice device = 0
    cdef CUresult result
    if process != READY or not 0 <= ordinal < MAX_DEVICES or contexts[ordinal].handle == NULL:
        validate(ordinal)
        context = &contexts[ordinal]
        if context.handle == NULL:
            check(cu.cuDeviceGet(&device, ordinal), b"cuDeviceGet")
            with nogil:
                result = cu.cuDevicePrimaryCtxRetain(&handle, device)
            check(result, b"cuDevicePrimaryCtxRetain", ordinal)
            context.device = device
            context.handle = handle
    return &contexts[ordinal]


cdef int refuse_call(int ordinal, unsigned int epoch, const char* call) except -1:
    ensure_open()
    if contexts[ordinal].epoch != epoch:
        raise RuntimeError(
            f"{call.decode()}: the object belongs to a context of device {ordinal} that was reset")
    if faulted[ordinal]:
        return refuse(call, ordinal)
    return entry(epoch, False)          # this was the process's first call: it opened the driver


cdef int enter(int ordinal, unsigned int epoch, const char* call) except -1:
    cdef CUcontext current = NULL
    verify(ordinal, epoch, call)
    cu.cuCtxGetCurrent(&current)
    if current == contexts[ordinal].handle:
        return entry(epoch, False)
    check(cu.cuCtxPushCurrent(contexts[ordinal].handle), b"cuCtxPushCurrent", ordinal)
    return entry(epoch, True)


cdef int leave(int ordinal, int entered, CUresult result, const char* call) except -1:
    cdef unsigned int epoch = <unsigned int>entered >> 1
    leave_quietly(entered)
    if entered >= 0 and result != CUDA_SUCCESS and contexts[ordinal].epoch != epoch:
        return refuse_call(ordinal, epoch, call)    # a reset failed the call, not a new fault
    return check(result, call, ordinal)


cdef int enter_quietly(int ordinal, unsigned int epoch) noexcept:
    cdef CUcontext current = NULL
    if process != READY or faulted[ordinal] or contexts[ordinal].epoch != epoch:
        return -1
    cu.cuCtxGetCurrent(&current)
    if current == contexts[ordinal].handle:
        return entry(epoch, False)
    if cu.cuCtxPushCurrent(contexts[ordinal].handle) != CUDA_SUCCESS:
        return -1
    return entry(epoch, True)


cdef void leave_quietly(int entered) noexcept:
    cdef CUcontext popped
    if entered >= 0 and entered & 1:
        cu.cuCtxPopCurrent(&popped)


cdef int current_ordinal() noexcept:
    return cyrt_current_ordinal


cdef Explained explained() noexcept:
    return <Explained>cyrt_explained


cdef void set_explained(Explained value) noexcept:
    cyrt_set_explained(value)


cdef int refuse_while_explained(entered) except -1:
    if cyrt_explained:
        raise RuntimeError(f"explain: the function makes {entered!r} current, on which operations "
                           "would be launched")
    return 0


cdef int ordinal_of(device) except -1:
    if device is None:
        return cyrt_current_ordinal
    if isinstance(device, Device):
        return (<Device>device).live()
    return validate(device)


cdef int innermost_block(list blocks, entered) except -1:
    cdef int i
    for i in range(len(blocks) - 1, -1, -1):
        if blocks[i][0] is entered:
            return i
    raise RuntimeError(f"{type(entered).__name__}.__exit__: this thread has no open `with` block "
                       f"of {entered!r}; the thread that entered it leaves it, once")


cdef int attribute(int ordinal, int code) except? -1:
    cdef int value = 0
    cdef CUdevice device = 0
    ensure_open()
    check(cu.cuDeviceGet(&device, ordinal), b"cuDeviceGet")
    check(cu.cuDeviceGetAttribute(&value, <CUdevice_attribute>code, device),
          b"cuDeviceGetAttribute")
    return value


cdef class Device:
    """Device(index=None)\n--\n
    One device, real or emulated.

    Inside ``with device:`` it is the current device of this thread. Devices are compared and hashed
    by their index.

    Parameters
    ----------
    index : int or str, optional
        An int from 0 to ``Device.count() - 1``; default: the thread's current device. ``"cuda"`` is
        also the current device, and ``"cuda:1"`` the one with index 1, even if it is emulated.

    Raises
    ------
    ValueError
        No device has that index.

    Examples
    --------
    >>> import cyrt
    >>> with cyrt.Device(0):
    ...     x = cyrt.zeros(3)
    >>> x.device == cyrt.Device(0)
    True
    """

    def __cinit__(self):
        self.index = -1

    def __init__(self, index=None):
        cdef int ordinal = validate(ordinal_of(index))
        if self.index >= 0:
            raise RuntimeError("a Device is initialised once")
        self.index = ordinal

    cdef int live(self) except -1:
        if self.index < 0:
            raise RuntimeError("the Device was not initialised")
        return self.index

    @property
    def index(self):
        """The device's ordinal, from 0 to ``Device.count() - 1``."""
        return self.live()

    @staticmethod
    def count():
        """Return the number of devices."""
        return count()

    @staticmethod
    def current():
        """Return this thread's current device."""
        return Device()

    @property
    def name(self):
        """The name that the driver reports, such as ``"NVIDIA H200"``."""
        cdef char text[256]
        ensure_open()
        check(cu.cuDeviceGetName(text, sizeof(text), self.live()), b"cuDeviceGetName")
        return text.decode("utf-8", "replace")

    @property
    def uuid(self):
        """The device's UUID: ``"GPU-"`` and 32 hexadecimal digits in the usual groups."""
        cdef CUuuid value
        ensure_open()
        check(cu.cuDeviceGetUuid(&value, self.live()), b"cuDeviceGetUuid")
        digits = (<char*>value.bytes)[:16].hex()
        return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    @property
    def emulated(self):
        """Whether this is the device that ships with the package and runs on the CPU."""
        self.live()
        return is_emulated()

    @property
    def compute_capability(self):
        """The compute capability as ``(major, minor)``, ``(9, 0)`` for Hopper."""
        return (attribute(self.live(), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                attribute(self.live(), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))

    @property
    def multiprocessors(self):
        """The number of multiprocessors."""
        return attribute(self.live(), CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)

    @property
    def concurrent_managed_access(self):
        """Whether host and device may use managed memory at the same time."""
        return bool(attribute(self.live(), CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))

    def attribute(self, name):
        """Return a device attribute by its name in ``CUdevice_attribute`` (cuda.h).

        Parameters
        ----------
        name : str
            A name such as ``"MAX_THREADS_PER_BLOCK"``, in upper or lower case, with or without the
            prefix ``CU_DEVICE_ATTRIBUTE_``.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            No attribute has that name.
        CudaError
            This driver does not know the attribute.
        """
        key = str(name).upper().removeprefix("CU_DEVICE_ATTRIBUTE_")
        code = DEVICE_ATTRIBUTES.get(key)
        if code is None:
            import difflib

            close = difflib.get_close_matches(key, DEVICE_ATTRIBUTES, 3)
            hint = f"; close to it: {', '.join(close)}" if close else ""
            raise ValueError(f"no device attribute is named {name!r}{hint}")
        return attribute(self.live(), code)

    def memory_info(self):
        """Return ``(free, total)``: bytes of device memory as the driver counts them."""
        cdef size_t free = 0, total = 0
        cdef Context* context = context_of(self.live())
        cdef int entered = enter(self.index, context.epoch, b"cuMemGetInfo")
        leave(self.index, entered, cu.cuMemGetInfo(&free, &total), b"cuMemGetInfo")
        return free, total

    def limit(self, name):
        """Return a limit of kernels on the device, in bytes.

        Parameters
        ----------
        name : {"heap", "stack", "printf"}
            The memory for ``malloc`` in kernels; the stack of a thread, which recursion and calls
            through pointers use; the buffer for the output of ``printf`` in one launch.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            No limit has that name.
        """
        cdef size_t value = 0
        cdef CUlimit which = limit_named(name)[0]
        cdef Context* context = context_of(self.live())
        cdef int entered = enter(self.index, context.epoch, b"cuCtxGetLimit")
        leave(self.index, entered, cu.cuCtxGetLimit(&value, which), b"cuCtxGetLimit")
        return value

    def set_limit(self, name, nbytes):
        """Set a limit of kernels on the device, after all work on the device has finished.

        The limit belongs to the device's primary context, so it changes for all libraries of the
        process that share the context, such as PyTorch. The driver may round it up; :meth:`limit`
        returns the result.

        Parameters
        ----------
        name : {"heap", "stack", "printf"}
            As in :meth:`limit`.
        nbytes : int
            The limit in bytes.

        Raises
        ------
        ValueError
            No limit has that name, or `nbytes` is negative.
        TypeError
            `nbytes` is not an int.
        RuntimeError
            The driver does not allow it. The sizes of the heap and of the buffer of ``printf``
            cannot be changed after a kernel that uses them was launched.
        """
        cdef CUlimit which
        cdef Context* context
        cdef CUresult result
        cdef size_t value
        cdef int entered
        which, reason = limit_named(name)
        number = as_int(nbytes)
        if number is None:
            raise TypeError(f"set_limit: nbytes: expected an int, got {show(nbytes)}")
        if not 0 <= number < 1 << 63:
            raise ValueError(
                f"set_limit: nbytes: expected a number of bytes from 0 to 2**63 - 1, got {number}")
        value = number
        from cyrt.runtime.waiting import synchronize

        with self:
            synchronize()
        context = context_of(self.live())
        entered = enter(self.index, context.epoch, b"cuCtxSetLimit")
        with nogil:
            result = cu.cuCtxSetLimit(which, value)
        if result == CUDA_ERROR_INVALID_VALUE:
            before = self.limit(name)
            leave_quietly(entered)
            raise RuntimeError(f"set_limit: the driver does not allow {number:,} bytes for the "
                               f"limit {name!r}, which stays {before:,}: {reason}")
        leave(self.index, entered, result, b"cuCtxSetLimit")

    def reset(self):
        """Give the emulated device a new context, after a fault or to end a stuck kernel.

        Every Buffer, Stream and Event of the device becomes invalid: a use of it raises
        RuntimeError. A Module and its kernels are loaded again at their next use; if the code has
        ``__device__`` or ``__constant__`` variables, whose values are gone, they become invalid,
        too.

        Raises
        ------
        RuntimeError
            The device is a GPU. All libraries of the process share its primary context, and after a
            fault only a new process can get one that works.
        """
        cdef int ordinal = self.live()
        if not is_emulated():
            raise RuntimeError(
                "Device.reset() is for the emulated device: a GPU's primary context is shared "
                "with every library of the process. Restart the process instead.")
        with _resetting:
            reset(ordinal)

    def __enter__(self):
        cdef int ordinal = self.live()
        if ordinal != cyrt_current_ordinal:
            refuse_while_explained(self)
        open_blocks().append((self, cyrt_current_ordinal))
        cyrt_set_current_ordinal(ordinal)
        return self

    def __exit__(self, *exc):
        cdef list blocks = open_blocks()
        cdef int i
        self.live()
        i = innermost_block(blocks, self)
        outer = blocks.pop(i)[1]
        if i == len(blocks):
            cyrt_set_current_ordinal(outer)
        else:                   # a generator's block may end before a block inside it
            blocks[i] = blocks[i][0], outer

    def __eq__(self, other):
        if isinstance(other, Device):
            return self.index == (<Device>other).index
        return NotImplemented

    def __hash__(self):
        return hash((Device, self.index))

    def __index__(self):
        return self.live()

    def __reduce__(self):
        return Device, (self.live(),)

    def __repr__(self):
        if self.index < 0:
            return "<cyrt.Device, not initialised>"
        return f"<cyrt.Device {self.index}: {self.name}>"


cdef tuple limit_named(name):
    if not isinstance(name, str) or name not in _LIMITS:
        raise ValueError(f"expected the limit 'heap', 'stack' or 'printf', got {show(name)}")
    return _LIMITS[name]


cdef list open_blocks():
    try:
        return _open.blocks
    except AttributeError:
        _open.blocks = []
        return _open.blocks


cdef int reset(int ordinal) except -1:
    cdef Context* context = context_of(ordinal)
    cdef CUcontext handle = NULL
    cdef CUresult result
    _table.begin_reset(ordinal)         # calls of other threads raise until the reset is done
    context.epoch += 1
    disturb()
    for hook in reset_hooks:
        hook(ordinal)
    graph.forget_device(ordinal)
    with nogil:
        result = cu.cuDevicePrimaryCtxReset(context.device)
        if result == CUDA_SUCCESS:
            result = cu.cuDevicePrimaryCtxRetain(&handle, context.device)
    check(result, b"cuDevicePrimaryCtxReset")
    context.handle = handle
    _table.forget_fault(ordinal)
    return 0
