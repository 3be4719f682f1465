"""The table of driver functions, and the check of their results."""

import ctypes
import os

from cyrt import settings
from cyrt.driver import errors, library

cdef extern from "<pthread.h>" nogil:
    int pthread_atfork(void (*prepare)() noexcept, void (*parent)() noexcept,
                       void (*child)() noexcept)

cdef extern from "functions.h":
    ctypedef struct Function "CyrtFunction":
        const char* name
        int version, optional
        size_t offset
    const Function functions "cyrt_functions"[]
    enum: NUM_FUNCTIONS "CYRT_NUM_FUNCTIONS"

cdef extern from *:
    unsigned int CYTHON_HEX_VERSION

# The version of Cython that translated the package.
CYTHON_VERSION = ".".join([str(CYTHON_HEX_VERSION >> shift & 0xff) for shift in (24, 16, 8)])

# The first error after which every call on a device fails: ordinal -> CudaError.
faults = {}

_slots = {}      # (name, version) -> the address of the table's entry
_opened = None
_emulated = False
disturbances = 1        # no new stream has this number


cdef int bind(PFN_cuGetProcAddress_v12000 resolve, const char* name, int version, void** slot,
              bint optional) except -1:
    cdef CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
    cdef CUresult result = resolve(name, slot, version, 0, &status)
    _slots[name.decode(), version] = <size_t>slot
    if result == CUDA_SUCCESS and slot[0] != NULL:
        return 0
    slot[0] = NULL
    if optional:
        return 0
    raise errors.CudaError(
        "cuGetProcAddress", <int>CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND",
        f"the driver has no {name.decode()} of CUDA {version // 1000}.{version % 1000 // 10}",
        "Update the NVIDIA driver.")


cdef int fill(PFN_cuGetProcAddress_v12000 resolve) except -1:
    cdef const Function* function
    for i in range(NUM_FUNCTIONS):
        function = &functions[i]
        bind(resolve, function.name, function.version, <void**>(<char*>&cu + function.offset),
             function.optional)
    return 0


def open_driver():
    """Open the driver and fill the table; do nothing if that has already happened.

    Raises
    ------
    CudaError
        There is no driver, the driver is too old, or there is no device.
    """
    global _opened, _emulated, process
    cdef CUresult result
    if _opened is not None:
        return
    settings.get("CYRT_EXIT_TIMEOUT")   # a bad value is an error now, not at the exit
    opened, emulated = library.open_library()
    fill(<PFN_cuGetProcAddress_v12000><size_t>ctypes.cast(
        opened.cuGetProcAddress_v2, ctypes.c_void_p).value)
    result = cu.cuInit(0)
    if emulated and result == CUDA_ERROR_OUT_OF_MEMORY:
        raise errors.OutOfMemoryError(
            "cuInit", <int>result, *describe(<int>result), errors.NO_ADDRESS_SPACE)
    check(result, b"cuInit")
    _opened, _emulated = opened, emulated
    # A function of Python would be called too late: the child first drops the objects of the
    # parent's other threads, whose finalizers would call the driver.
    if pthread_atfork(NULL, NULL, note_fork):
        raise MemoryError()
    process = READY


cdef void disturb() noexcept nogil:
    global disturbances
    disturbances += 1


cdef void note_fork() noexcept nogil:
    global process
    process = FORKED
    disturb()


def is_open():
    """Whether this process has opened the driver, and not closed it."""
    return process == READY


def close():
    """Reject every further call: the interpreter is being finalised."""
    global process
    if process == READY:
        process = CLOSING
        disturb()


cdef int ensure_open() except -1:
    if process == READY:
        return 0
    if process == FORKED:
        raise RuntimeError(
            f"cyrt was used before this process (pid {os.getpid()}) was forked, and CUDA does not "
            "survive a fork: start worker processes with the 'spawn' or 'forkserver' method")
    if process == CLOSING:
        raise RuntimeError("cyrt takes no work while the interpreter exits")
    open_driver()
    return 0


cdef bint is_emulated() except -1:
    ensure_open()
    return _emulated


def driver_info():
    """The opened library: ``(path, emulated, version)``; the version is 13000 for CUDA 13.0."""
    cdef int version = 0
    ensure_open()
    check(cu.cuDriverGetVersion(&version), b"cuDriverGetVersion")
    return _opened._name, _emulated, version


cdef str fault_text(int ordinal):
    """The emulated device's description of a fault."""
    cdef char text[4096]
    if cu.cyrtEmuLastFault == NULL or ordinal < 0:
        return ""
    text[0] = 0
    cu.cyrtEmuLastFault(ordinal, text, sizeof(text))
    return text.decode("utf-8", "replace")


def operations_in_flight(int ordinal):
    """The text of a device's launched operations that may not have ended; "" if there are none."""
    return "" if suspects == NULL else suspects(ordinal)


def replace(str name not None, size_t address, int version=0):
    """Replace a function in the table, for tests and tools.

    Parameters
    ----------
    name : str
        Base name of the driver function: ``"cuGraphLaunch"``.
    address : int
        A C function of the same type, which must stay alive. A ``ctypes`` callback is suitable: it
        acquires the GIL if the caller released it. 0 emulates a driver without the function.
    version : int
        The CUDA version of the entry, if the table holds several: 12030 for the version of
        ``cuGraphAddDependencies`` that takes edge data. 0 means the oldest.

    Returns
    -------
    int
        The previous address.

    Raises
    ------
    KeyError
        The table has no such function.
    """
    cdef size_t* slot
    cdef size_t before
    ensure_open()
    versions = sorted(v for n, v in _slots if n == name and version in (0, v))
    if not versions:
        raise KeyError(f"the table of driver functions holds no {name}"
                       f"{f' of version {version}' if version else ''}")
    slot = <size_t*><size_t>_slots[name, versions[0]]
    before, slot[0] = slot[0], address
    return before


def describe(int code):
    """The driver's ``(name, text)`` for a result code."""
    cdef const char* name = NULL
    cdef const char* text = NULL
    cu.cuGetErrorName(<CUresult>code, &name)
    cu.cuGetErrorString(<CUresult>code, &text)
    return ((<bytes>name).decode() if name != NULL else f"CUresult {code}",
            (<bytes>text).decode() if text != NULL else "")


cdef unsigned char[1024] sticky       # indexed by result code
for _code in errors.STICKY:
    sticky[<int>_code] = 1


cdef bint is_sticky(CUresult result) noexcept nogil:
    return 0 <= <int>result < 1024 and sticky[<int>result]


cdef int fail(CUresult result, const char* call, int ordinal) except -1:
    cdef int code = <int>result
    name, text = describe(code)
    if not is_sticky(result):
        kind = errors.OutOfMemoryError if result == CUDA_ERROR_OUT_OF_MEMORY else errors.CudaError
        raise kind(call.decode(), code, name, text)
    if 0 <= ordinal < MAX_DEVICES and faulted[ordinal]:
        return refuse(call, ordinal)
    if _emulated:
        detail = fault_text(ordinal)
    else:
        detail = errors.GPU_FAULT
    if suspects != NULL:
        detail = "\n".join(filter(None, (detail, suspects(ordinal))))
    error = errors.CudaError(call.decode(), code, name, text, detail)
    if 0 <= ordinal < MAX_DEVICES:
        faulted[ordinal] = 1
        faults[ordinal] = error
        disturb()
    raise error


cdef int refuse(const char* call, int ordinal) except -1:
    first = faults[ordinal]
    way_out = ("Device.reset() gives a fresh context" if _emulated
               else "the process must be restarted")
    raise errors.CudaError(
        call.decode(), first.code, first.name,
        f"device {ordinal} failed before, in {first.call}; {way_out}") from first


def begin_reset(int ordinal):
    """Reject calls on the device until `forget_fault`."""
    faults.setdefault(ordinal, errors.CudaError(
        "Device.reset", <int>CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"))
    faulted[ordinal] = 1


def forget_fault(int ordinal):
    """Accept calls again, on a device that was reset."""
    faulted[ordinal] = 0
    faults.pop(ordinal, None)
