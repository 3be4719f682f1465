"""The table of driver functions, and the check of what they answer."""

import ctypes
import os

from cyrt.driver import errors, library

# The first error after which a device answers nothing else: ordinal -> CudaError.
faults = {}

# Names the operations that were in flight on a device; graph/recorder puts itself here.
suspects = None

_slots = {}      # (name, version) -> where the table holds the function
_opened = None
_emulated = False


cdef int bind(PFN_cuGetProcAddress_v12000 resolve, const char* name, int version, void** slot,
              bint optional=False) except -1:
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
    bind(resolve, b"cuInit", 2000, <void**>&cu.cuInit)
    bind(resolve, b"cuDriverGetVersion", 2020, <void**>&cu.cuDriverGetVersion)
    bind(resolve, b"cuGetErrorName", 6000, <void**>&cu.cuGetErrorName)
    bind(resolve, b"cuGetErrorString", 6000, <void**>&cu.cuGetErrorString)
    bind(resolve, b"cuDeviceGet", 2000, <void**>&cu.cuDeviceGet)
    bind(resolve, b"cuDeviceGetCount", 2000, <void**>&cu.cuDeviceGetCount)
    bind(resolve, b"cuDeviceGetName", 2000, <void**>&cu.cuDeviceGetName)
    bind(resolve, b"cuDeviceGetUuid", 11040, <void**>&cu.cuDeviceGetUuid)
    bind(resolve, b"cuDeviceGetAttribute", 2000, <void**>&cu.cuDeviceGetAttribute)
    bind(resolve, b"cuDevicePrimaryCtxRetain", 7000, <void**>&cu.cuDevicePrimaryCtxRetain)
    bind(resolve, b"cuDevicePrimaryCtxReset", 11000, <void**>&cu.cuDevicePrimaryCtxReset)
    bind(resolve, b"cuCtxGetCurrent", 4000, <void**>&cu.cuCtxGetCurrent)
    bind(resolve, b"cuCtxPushCurrent", 4000, <void**>&cu.cuCtxPushCurrent)
    bind(resolve, b"cuCtxPopCurrent", 4000, <void**>&cu.cuCtxPopCurrent)
    bind(resolve, b"cuCtxGetDevice", 2000, <void**>&cu.cuCtxGetDevice)
    bind(resolve, b"cuCtxGetStreamPriorityRange", 5050, <void**>&cu.cuCtxGetStreamPriorityRange)
    bind(resolve, b"cuMemGetInfo", 3020, <void**>&cu.cuMemGetInfo)
    bind(resolve, b"cuMemAlloc", 3020, <void**>&cu.cuMemAlloc)
    bind(resolve, b"cuMemFree", 3020, <void**>&cu.cuMemFree)
    bind(resolve, b"cuMemAllocManaged", 6000, <void**>&cu.cuMemAllocManaged)
    bind(resolve, b"cuMemHostAlloc", 2020, <void**>&cu.cuMemHostAlloc)
    bind(resolve, b"cuMemFreeHost", 2000, <void**>&cu.cuMemFreeHost)
    bind(resolve, b"cuMemcpyAsync", 4000, <void**>&cu.cuMemcpyAsync)
    bind(resolve, b"cuMemcpyHtoDAsync", 3020, <void**>&cu.cuMemcpyHtoDAsync)
    bind(resolve, b"cuMemcpyDtoHAsync", 3020, <void**>&cu.cuMemcpyDtoHAsync)
    bind(resolve, b"cuMemsetD8Async", 3020, <void**>&cu.cuMemsetD8Async)
    bind(resolve, b"cuMemsetD16Async", 3020, <void**>&cu.cuMemsetD16Async)
    bind(resolve, b"cuMemsetD32Async", 3020, <void**>&cu.cuMemsetD32Async)
    bind(resolve, b"cuPointerGetAttribute", 4000, <void**>&cu.cuPointerGetAttribute)
    bind(resolve, b"cuStreamCreateWithPriority", 5050, <void**>&cu.cuStreamCreateWithPriority)
    bind(resolve, b"cuStreamSynchronize", 2000, <void**>&cu.cuStreamSynchronize)
    bind(resolve, b"cuStreamQuery", 2000, <void**>&cu.cuStreamQuery)
    bind(resolve, b"cuStreamWaitEvent", 3020, <void**>&cu.cuStreamWaitEvent)
    bind(resolve, b"cuStreamGetPriority", 5050, <void**>&cu.cuStreamGetPriority)
    bind(resolve, b"cuStreamGetCtx", 9020, <void**>&cu.cuStreamGetCtx)
    bind(resolve, b"cuStreamGetId", 12000, <void**>&cu.cuStreamGetId)
    bind(resolve, b"cuEventCreate", 2000, <void**>&cu.cuEventCreate)
    bind(resolve, b"cuEventDestroy", 4000, <void**>&cu.cuEventDestroy)
    bind(resolve, b"cuEventRecord", 2000, <void**>&cu.cuEventRecord)
    bind(resolve, b"cuEventQuery", 2000, <void**>&cu.cuEventQuery)
    bind(resolve, b"cuEventElapsedTime", 2000, <void**>&cu.cuEventElapsedTime)
    bind(resolve, b"cuModuleLoadDataEx", 2010, <void**>&cu.cuModuleLoadDataEx)
    bind(resolve, b"cuModuleUnload", 2000, <void**>&cu.cuModuleUnload)
    bind(resolve, b"cuModuleGetFunction", 2000, <void**>&cu.cuModuleGetFunction)
    bind(resolve, b"cuModuleGetGlobal", 3020, <void**>&cu.cuModuleGetGlobal)
    bind(resolve, b"cuModuleGetFunctionCount", 12040,
         <void**>&cu.cuModuleGetFunctionCount, optional=True)
    bind(resolve, b"cuModuleEnumerateFunctions", 12040,
         <void**>&cu.cuModuleEnumerateFunctions, optional=True)
    bind(resolve, b"cuFuncGetName", 12030, <void**>&cu.cuFuncGetName, optional=True)
    bind(resolve, b"cuFuncGetAttribute", 2020, <void**>&cu.cuFuncGetAttribute)
    bind(resolve, b"cuFuncSetAttribute", 9000, <void**>&cu.cuFuncSetAttribute)
    bind(resolve, b"cuFuncGetParamInfo", 12040, <void**>&cu.cuFuncGetParamInfo, optional=True)
    bind(resolve, b"cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050,
         <void**>&cu.cuOccupancyMaxActiveBlocksPerMultiprocessor)
    bind(resolve, b"cuOccupancyMaxPotentialBlockSize", 6050,
         <void**>&cu.cuOccupancyMaxPotentialBlockSize)
    bind(resolve, b"cuLaunchKernel", 4000, <void**>&cu.cuLaunchKernel)
    bind(resolve, b"cuGraphCreate", 10000, <void**>&cu.cuGraphCreate)
    bind(resolve, b"cuGraphDestroy", 10000, <void**>&cu.cuGraphDestroy)
    bind(resolve, b"cuGraphAddKernelNode", 12000, <void**>&cu.cuGraphAddKernelNode)
    bind(resolve, b"cuGraphAddMemcpyNode", 10000, <void**>&cu.cuGraphAddMemcpyNode)
    bind(resolve, b"cuGraphAddEmptyNode", 10000, <void**>&cu.cuGraphAddEmptyNode)
    bind(resolve, b"cuGraphAddChildGraphNode", 10000, <void**>&cu.cuGraphAddChildGraphNode)
    bind(resolve, b"cuGraphClone", 10000, <void**>&cu.cuGraphClone)
    bind(resolve, b"cuGraphGetNodes", 10000, <void**>&cu.cuGraphGetNodes)
    bind(resolve, b"cuStreamBeginCapture", 10010, <void**>&cu.cuStreamBeginCapture)
    bind(resolve, b"cuStreamEndCapture", 10000, <void**>&cu.cuStreamEndCapture)
    bind(resolve, b"cuGraphAddDependencies", 10000, <void**>&cu.cuGraphAddDependencies)
    bind(resolve, b"cuGraphKernelNodeSetAttribute", 11000,
         <void**>&cu.cuGraphKernelNodeSetAttribute)
    bind(resolve, b"cuGraphKernelNodeGetAttribute", 11000,
         <void**>&cu.cuGraphKernelNodeGetAttribute)
    bind(resolve, b"cuGraphNodeGetType", 10000, <void**>&cu.cuGraphNodeGetType)
    bind(resolve, b"cuGraphChildGraphNodeGetGraph", 10000,
         <void**>&cu.cuGraphChildGraphNodeGetGraph)
    bind(resolve, b"cuGraphGetEdges", 12030, <void**>&cu.cuGraphGetTypedEdges, optional=True)
    bind(resolve, b"cuGraphInstantiateWithFlags", 11040, <void**>&cu.cuGraphInstantiateWithFlags)
    bind(resolve, b"cuGraphExecDestroy", 10000, <void**>&cu.cuGraphExecDestroy)
    bind(resolve, b"cuGraphLaunch", 10000, <void**>&cu.cuGraphLaunch)
    bind(resolve, b"cuGraphExecKernelNodeSetParams", 12000,
         <void**>&cu.cuGraphExecKernelNodeSetParams)
    bind(resolve, b"cuGraphExecMemcpyNodeSetParams", 10020,
         <void**>&cu.cuGraphExecMemcpyNodeSetParams)
    bind(resolve, b"cuGraphExecChildGraphNodeSetParams", 11010,
         <void**>&cu.cuGraphExecChildGraphNodeSetParams)
    bind(resolve, b"cuGraphExecUpdate", 12000, <void**>&cu.cuGraphExecUpdate)
    bind(resolve, b"cuLaunchKernelEx", 11060, <void**>&cu.cuLaunchKernelEx)
    bind(resolve, b"cuGraphAddDependencies", 12030,
         <void**>&cu.cuGraphAddTypedDependencies, optional=True)
    bind(resolve, b"cyrtEmuLastFault", 12000, <void**>&cu.cyrtEmuLastFault, optional=True)


def open_driver():
    """Open the driver and fill the table; nothing where that has happened already.

    Raises
    ------
    CudaError
        No driver, none that is new enough, or no device.
    """
    global _opened, _emulated, process
    cdef CUresult result
    if _opened is not None:
        return
    opened, emulated = library.open_library()
    fill(<PFN_cuGetProcAddress_v12000><size_t>ctypes.cast(
        opened.cuGetProcAddress_v2, ctypes.c_void_p).value)
    result = cu.cuInit(0)
    if emulated and result == CUDA_ERROR_OUT_OF_MEMORY:
        raise errors.OutOfMemoryError(
            "cuInit", <int>result, *describe(<int>result), errors.NO_ADDRESS_SPACE)
    check(result, b"cuInit")
    _opened, _emulated = opened, emulated
    os.register_at_fork(after_in_child=_forked)
    process = READY


def _forked():
    global process
    process = FORKED


def close():
    """Refuse every further call: the interpreter is going down."""
    global process
    if process == READY:
        process = CLOSING


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
    """What was opened: ``(path, emulated, version)``; the version is 13000 for CUDA 13.0."""
    cdef int version = 0
    ensure_open()
    check(cu.cuDriverGetVersion(&version), b"cuDriverGetVersion")
    return _opened._name, _emulated, version


cdef str fault_text(int ordinal):
    """The emulated device's own account of a fault."""
    cdef char text[4096]
    if cu.cyrtEmuLastFault == NULL or ordinal < 0:
        return ""
    text[0] = 0
    cu.cyrtEmuLastFault(ordinal, text, sizeof(text))
    return text.decode("utf-8", "replace")


def replace(str name not None, size_t address, int version=0):
    """Put another function into the table, for tests and tools.

    Parameters
    ----------
    name : str
        The driver function, by its base name: ``"cuGraphLaunch"``.
    address : int
        A C function of the same type, that stays alive; a ``ctypes`` callback will do, which takes
        the GIL for itself where the caller released it. 0: a driver that has no such function.
    version : int
        The CUDA version it is bound at, where the table holds several: 12030 for the edges with
        data of ``cuGraphAddDependencies``. 0: the oldest.

    Returns
    -------
    int
        The address that was there before.

    Raises
    ------
    KeyError
        The table holds no such function.
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
    """The driver's ``(name, text)`` for a code."""
    cdef const char* name = NULL
    cdef const char* text = NULL
    cu.cuGetErrorName(<CUresult>code, &name)
    cu.cuGetErrorString(<CUresult>code, &text)
    return ((<bytes>name).decode() if name != NULL else f"CUresult {code}",
            (<bytes>text).decode() if text != NULL else "")


cdef unsigned char[1024] sticky       # by code
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
        detail = "The device can be used no more in this process: restart it."
    if suspects is not None:
        detail = "\n".join(filter(None, (detail, suspects(ordinal))))
    error = errors.CudaError(call.decode(), code, name, text, detail)
    if 0 <= ordinal < MAX_DEVICES:
        faulted[ordinal] = 1
        faults[ordinal] = error
    raise error


cdef int refuse(const char* call, int ordinal) except -1:
    first = faults[ordinal]
    way_out = ("Device.reset() gives a fresh context" if _emulated
               else "the process must be restarted")
    raise errors.CudaError(
        call.decode(), first.code, first.name,
        f"device {ordinal} failed before, in {first.call}; {way_out}") from first


def begin_reset(int ordinal):
    """Calls on the device are refused until `forget_fault`."""
    faults.setdefault(ordinal, errors.CudaError(
        "Device.reset", <int>CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"))
    faulted[ordinal] = 1


def forget_fault(int ordinal):
    """A device that was reset answers again."""
    faulted[ordinal] = 0
    faults.pop(ordinal, None)
