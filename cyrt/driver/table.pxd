# The table of driver functions: one C struct, filled once. functions.h lists them; this file
# declares their signatures to Cython, and the C compiler checks them.
#
# INVARIANTS
# - The table is filled through cuGetProcAddress, by base name and version. A missing optional
#   function is NULL, and the feature that needs it raises an error.
# - The hot path calls through the struct with the GIL held. Calls that can block release it.

from cyrt.driver.cuda cimport *

cdef extern from "functions.h":
    ctypedef struct Driver "CyrtDriver":
        CUresult (*cuInit)(unsigned int) noexcept nogil
        CUresult (*cuDriverGetVersion)(int*) noexcept nogil
        CUresult (*cuGetErrorName)(CUresult, const char**) noexcept nogil
        CUresult (*cuGetErrorString)(CUresult, const char**) noexcept nogil
        CUresult (*cuDeviceGet)(CUdevice*, int) noexcept nogil
        CUresult (*cuDeviceGetCount)(int*) noexcept nogil
        CUresult (*cuDeviceGetName)(char*, int, CUdevice) noexcept nogil
        CUresult (*cuDeviceGetUuid)(CUuuid*, CUdevice) noexcept nogil
        CUresult (*cuDeviceGetAttribute)(int*, CUdevice_attribute, CUdevice) noexcept nogil
        CUresult (*cuDevicePrimaryCtxRetain)(CUcontext*, CUdevice) noexcept nogil
        CUresult (*cuDevicePrimaryCtxReset)(CUdevice) noexcept nogil
        CUresult (*cuCtxGetCurrent)(CUcontext*) noexcept nogil
        CUresult (*cuCtxPushCurrent)(CUcontext) noexcept nogil
        CUresult (*cuCtxPopCurrent)(CUcontext*) noexcept nogil
        CUresult (*cuCtxGetDevice)(CUdevice*) noexcept nogil
        CUresult (*cuCtxGetStreamPriorityRange)(int*, int*) noexcept nogil
        CUresult (*cuCtxGetLimit)(size_t*, CUlimit) noexcept nogil
        CUresult (*cuCtxSetLimit)(CUlimit, size_t) noexcept nogil
        CUresult (*cuMemGetInfo)(size_t*, size_t*) noexcept nogil
        CUresult (*cuMemAlloc)(CUdeviceptr*, size_t) noexcept nogil
        CUresult (*cuMemFree)(CUdeviceptr) noexcept nogil
        CUresult (*cuMemAllocManaged)(CUdeviceptr*, size_t, unsigned int) noexcept nogil
        CUresult (*cuMemHostAlloc)(void**, size_t, unsigned int) noexcept nogil
        CUresult (*cuMemFreeHost)(void*) noexcept nogil
        CUresult (*cuMemcpyAsync)(CUdeviceptr, CUdeviceptr, size_t, CUstream) noexcept nogil
        CUresult (*cuMemcpyHtoDAsync)(CUdeviceptr, const void*, size_t, CUstream) noexcept nogil
        CUresult (*cuMemcpyDtoHAsync)(void*, CUdeviceptr, size_t, CUstream) noexcept nogil
        CUresult (*cuMemsetD8Async)(CUdeviceptr, unsigned char, size_t, CUstream) noexcept nogil
        CUresult (*cuMemsetD16Async)(CUdeviceptr, unsigned short, size_t, CUstream) noexcept nogil
        CUresult (*cuMemsetD32Async)(CUdeviceptr, unsigned int, size_t, CUstream) noexcept nogil
        CUresult (*cuPointerGetAttribute)(void*, CUpointer_attribute, CUdeviceptr) noexcept nogil
        CUresult (*cuStreamCreateWithPriority)(CUstream*, unsigned int, int) noexcept nogil
        CUresult (*cuStreamSynchronize)(CUstream) noexcept nogil
        CUresult (*cuStreamQuery)(CUstream) noexcept nogil
        CUresult (*cuStreamWaitEvent)(CUstream, CUevent, unsigned int) noexcept nogil
        CUresult (*cuStreamGetPriority)(CUstream, int*) noexcept nogil
        CUresult (*cuStreamGetCtx)(CUstream, CUcontext*) noexcept nogil
        CUresult (*cuStreamGetId)(CUstream, unsigned long long*) noexcept nogil
        CUresult (*cuEventCreate)(CUevent*, unsigned int) noexcept nogil
        CUresult (*cuEventDestroy)(CUevent) noexcept nogil
        CUresult (*cuEventRecord)(CUevent, CUstream) noexcept nogil
        CUresult (*cuEventQuery)(CUevent) noexcept nogil
        CUresult (*cuEventElapsedTime)(float*, CUevent, CUevent) noexcept nogil
        CUresult (*cuModuleLoadDataEx)(
            CUmodule*, const void*, unsigned int, CUjit_option*, void**) noexcept nogil
        CUresult (*cuModuleUnload)(CUmodule) noexcept nogil
        CUresult (*cuModuleGetFunction)(CUfunction*, CUmodule, const char*) noexcept nogil
        CUresult (*cuModuleGetGlobal)(CUdeviceptr*, size_t*, CUmodule, const char*) noexcept nogil
        CUresult (*cuModuleGetFunctionCount)(unsigned int*, CUmodule) noexcept nogil
        CUresult (*cuModuleEnumerateFunctions)(CUfunction*, unsigned int, CUmodule) noexcept nogil
        CUresult (*cuFuncGetName)(const char**, CUfunction) noexcept nogil
        CUresult (*cuFuncGetAttribute)(int*, CUfunction_attribute, CUfunction) noexcept nogil
        CUresult (*cuFuncSetAttribute)(CUfunction, CUfunction_attribute, int) noexcept nogil
        CUresult (*cuFuncGetParamInfo)(CUfunction, size_t, size_t*, size_t*) noexcept nogil
        CUresult (*cuKernelGetName)(const char**, CUkernel) noexcept nogil
        CUresult (*cuKernelGetParamInfo)(CUkernel, size_t, size_t*, size_t*) noexcept nogil
        CUresult (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(
            int*, CUfunction, int, size_t) noexcept nogil
        CUresult (*cuOccupancyMaxPotentialBlockSize)(
            int*, int*, CUfunction, CUoccupancyB2DSize, size_t, int) noexcept nogil
        CUresult (*cuLaunchKernel)(
            CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
            unsigned int, unsigned int, unsigned int, CUstream, void**, void**) noexcept nogil
        CUresult (*cuGraphCreate)(CUgraph*, unsigned int) noexcept nogil
        CUresult (*cuGraphDestroy)(CUgraph) noexcept nogil
        CUresult (*cuGraphAddKernelNode)(
            CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const
            CUDA_KERNEL_NODE_PARAMS_v2*) noexcept nogil
        CUresult (*cuGraphAddMemcpyNode)(
            CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const
            CUDA_MEMCPY3D_v2*, CUcontext) noexcept nogil
        CUresult (*cuGraphAddEmptyNode)(
            CUgraphNode*, CUgraph, const CUgraphNode*, size_t) noexcept nogil
        CUresult (*cuGraphAddChildGraphNode)(
            CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraph) noexcept nogil
        CUresult (*cuGraphClone)(CUgraph*, CUgraph) noexcept nogil
        CUresult (*cuGraphGetNodes)(CUgraph, CUgraphNode*, size_t*) noexcept nogil
        CUresult (*cuStreamBeginCapture)(CUstream, CUstreamCaptureMode) noexcept nogil
        CUresult (*cuStreamEndCapture)(CUstream, CUgraph*) noexcept nogil
        CUresult (*cuStreamIsCapturing)(CUstream, CUstreamCaptureStatus*) noexcept nogil
        CUresult (*cuStreamGetCaptureInfo)(
            CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*, const CUgraphNode**,
            size_t*) noexcept nogil
        CUresult (*cuThreadExchangeStreamCaptureMode)(CUstreamCaptureMode*) noexcept nogil
        CUresult (*cuUserObjectCreate)(
            CUuserObject*, void*, CUhostFn, unsigned int, unsigned int) noexcept nogil
        CUresult (*cuGraphRetainUserObject)(
            CUgraph, CUuserObject, unsigned int, unsigned int) noexcept nogil
        CUresult (*cuGraphAddDependencies)(
            CUgraph, const CUgraphNode*, const CUgraphNode*, size_t) noexcept nogil
        CUresult (*cuGraphKernelNodeSetAttribute)(
            CUgraphNode, CUkernelNodeAttrID, const CUkernelNodeAttrValue*) noexcept nogil
        CUresult (*cuGraphKernelNodeGetAttribute)(
            CUgraphNode, CUkernelNodeAttrID, CUkernelNodeAttrValue*) noexcept nogil
        CUresult (*cuGraphKernelNodeGetParams)(
            CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2*) noexcept nogil
        CUresult (*cuGraphMemsetNodeGetParams)(
            CUgraphNode, CUDA_MEMSET_NODE_PARAMS_v1*) noexcept nogil
        CUresult (*cuGraphNodeGetType)(CUgraphNode, CUgraphNodeType*) noexcept nogil
        CUresult (*cuGraphChildGraphNodeGetGraph)(CUgraphNode, CUgraph*) noexcept nogil
        CUresult (*cuGraphGetTypedEdges)(
            CUgraph, CUgraphNode*, CUgraphNode*, CUgraphEdgeData*, size_t*) noexcept nogil
        CUresult (*cuGraphInstantiateWithFlags)(
            CUgraphExec*, CUgraph, unsigned long long) noexcept nogil
        CUresult (*cuGraphExecDestroy)(CUgraphExec) noexcept nogil
        CUresult (*cuGraphLaunch)(CUgraphExec, CUstream) noexcept nogil
        CUresult (*cuGraphExecKernelNodeSetParams)(
            CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v2*) noexcept nogil
        CUresult (*cuGraphExecMemcpyNodeSetParams)(
            CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D_v2*, CUcontext) noexcept nogil
        CUresult (*cuGraphExecChildGraphNodeSetParams)(
            CUgraphExec, CUgraphNode, CUgraph) noexcept nogil
        CUresult (*cuGraphExecUpdate)(
            CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*) noexcept nogil
        CUresult (*cuLaunchKernelEx)(
            const CUlaunchConfig*, CUfunction, void**, void**) noexcept nogil
        CUresult (*cuGraphAddTypedDependencies)(
            CUgraph, const CUgraphNode*, const CUgraphNode*, const CUgraphEdgeData*,
            size_t) noexcept nogil
        # These are NULL on a GPU.
        CUresult (*cyrtEmuLastFault)(CUdevice, char*, size_t) noexcept nogil
        CUresult (*cyrtEmuSetRanges)(CUfunction, size_t, const char*) noexcept nogil
        CUresult (*cyrtEmuGuard)(CUdeviceptr) noexcept nogil

cdef Driver cu

# The states of the process that decide whether driver objects can be used.
cdef enum ProcessState:
    UNOPENED
    READY
    FORKED      # a child of the process that opened the driver
    CLOSING     # the interpreter is being finalised

cdef ProcessState process

cdef enum:
    MAX_DEVICES = 64

# Non-zero once a device returns its first error for every call.
cdef unsigned char faulted[MAX_DEVICES]
# 1 + the number of `disturb` calls. As long as it does not change, calls are replayed without
# further checks, and results are released so: see graph/replay_call and runtime/pool.
cdef unsigned long long disturbances
cdef void disturb() noexcept nogil

# Names the operations that were in flight on a device; graph/seam sets it.
cdef str (*suspects)(int ordinal)

# Opens the driver if it is not open yet; raises if it cannot be used any more.
cdef int ensure_open() except -1
# True if the emulated device is in use; opens the driver.
cdef bint is_emulated() except -1
# Raises the error of a call on a device that failed before; its cause is the first error.
cdef int refuse(const char* call, int ordinal) except -1
# True if a device that returned this code returns an error for every later call.
cdef bint is_sticky(CUresult result) noexcept nogil
# Raises CudaError unless the result is CUDA_SUCCESS. `ordinal`: the device, or -1.
cdef int fail(CUresult result, const char* call, int ordinal) except -1

cdef inline int check(CUresult result, const char* call, int ordinal=-1) except -1:
    if result != CUDA_SUCCESS:
        return fail(result, call, ordinal)
    return 0
