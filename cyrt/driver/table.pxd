# The table of driver functions: one C struct, filled once.
#
# INVARIANTS
# - Filled through cuGetProcAddress, by base name and version; a missing optional function is NULL,
#   and the feature that needs it says so.
# - The hot path calls through the struct with the GIL held. Calls that can block release it.

from cyrt.driver.cuda cimport *

cdef struct Driver:
    PFN_cuInit_v2000 cuInit
    PFN_cuDriverGetVersion_v2020 cuDriverGetVersion
    PFN_cuGetErrorName_v6000 cuGetErrorName
    PFN_cuGetErrorString_v6000 cuGetErrorString
    PFN_cuDeviceGet_v2000 cuDeviceGet
    PFN_cuDeviceGetCount_v2000 cuDeviceGetCount
    PFN_cuDeviceGetName_v2000 cuDeviceGetName
    PFN_cuDeviceGetUuid_v11040 cuDeviceGetUuid
    PFN_cuDeviceGetAttribute_v2000 cuDeviceGetAttribute
    PFN_cuDevicePrimaryCtxRetain_v7000 cuDevicePrimaryCtxRetain
    PFN_cuDevicePrimaryCtxReset_v11000 cuDevicePrimaryCtxReset
    PFN_cuCtxGetCurrent_v4000 cuCtxGetCurrent
    PFN_cuCtxPushCurrent_v4000 cuCtxPushCurrent
    PFN_cuCtxPopCurrent_v4000 cuCtxPopCurrent
    PFN_cuCtxGetDevice_v2000 cuCtxGetDevice
    PFN_cuCtxGetStreamPriorityRange_v5050 cuCtxGetStreamPriorityRange
    PFN_cuMemGetInfo_v3020 cuMemGetInfo
    PFN_cuMemAlloc_v3020 cuMemAlloc
    PFN_cuMemFree_v3020 cuMemFree
    PFN_cuMemAllocManaged_v6000 cuMemAllocManaged
    PFN_cuMemHostAlloc_v2020 cuMemHostAlloc
    PFN_cuMemFreeHost_v2000 cuMemFreeHost
    PFN_cuMemcpyAsync_v4000 cuMemcpyAsync
    PFN_cuMemcpyHtoDAsync_v3020 cuMemcpyHtoDAsync
    PFN_cuMemcpyDtoHAsync_v3020 cuMemcpyDtoHAsync
    PFN_cuMemsetD8Async_v3020 cuMemsetD8Async
    PFN_cuMemsetD16Async_v3020 cuMemsetD16Async
    PFN_cuMemsetD32Async_v3020 cuMemsetD32Async
    PFN_cuPointerGetAttribute_v4000 cuPointerGetAttribute
    PFN_cuStreamCreateWithPriority_v5050 cuStreamCreateWithPriority
    PFN_cuStreamSynchronize_v2000 cuStreamSynchronize
    PFN_cuStreamQuery_v2000 cuStreamQuery
    PFN_cuStreamWaitEvent_v3020 cuStreamWaitEvent
    PFN_cuStreamGetPriority_v5050 cuStreamGetPriority
    PFN_cuStreamGetCtx_v9020 cuStreamGetCtx
    PFN_cuStreamGetId_v12000 cuStreamGetId
    PFN_cuEventCreate_v2000 cuEventCreate
    PFN_cuEventDestroy_v4000 cuEventDestroy
    PFN_cuEventRecord_v2000 cuEventRecord
    PFN_cuEventQuery_v2000 cuEventQuery
    PFN_cuEventElapsedTime_v2000 cuEventElapsedTime
    PFN_cuModuleLoadDataEx_v2010 cuModuleLoadDataEx
    PFN_cuModuleUnload_v2000 cuModuleUnload
    PFN_cuModuleGetFunction_v2000 cuModuleGetFunction
    PFN_cuModuleGetGlobal_v3020 cuModuleGetGlobal
    PFN_cuModuleGetFunctionCount_v12040 cuModuleGetFunctionCount
    PFN_cuModuleEnumerateFunctions_v12040 cuModuleEnumerateFunctions
    PFN_cuFuncGetName_v12030 cuFuncGetName
    PFN_cuFuncGetAttribute_v2020 cuFuncGetAttribute
    PFN_cuFuncSetAttribute_v9000 cuFuncSetAttribute
    PFN_cuFuncGetParamInfo_v12040 cuFuncGetParamInfo
    PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050 \
        cuOccupancyMaxActiveBlocksPerMultiprocessor
    PFN_cuOccupancyMaxPotentialBlockSize_v6050 cuOccupancyMaxPotentialBlockSize
    PFN_cuLaunchKernel_v4000 cuLaunchKernel
    PFN_cuGraphCreate_v10000 cuGraphCreate
    PFN_cuGraphDestroy_v10000 cuGraphDestroy
    PFN_cuGraphAddKernelNode_v12000 cuGraphAddKernelNode
    PFN_cuGraphAddMemcpyNode_v10000 cuGraphAddMemcpyNode
    PFN_cuGraphAddEmptyNode_v10000 cuGraphAddEmptyNode
    PFN_cuGraphAddChildGraphNode_v10000 cuGraphAddChildGraphNode
    PFN_cuGraphClone_v10000 cuGraphClone
    PFN_cuGraphGetNodes_v10000 cuGraphGetNodes
    PFN_cuStreamBeginCapture_v10010 cuStreamBeginCapture
    PFN_cuStreamEndCapture_v10000 cuStreamEndCapture
    PFN_cuGraphAddDependencies_v10000 cuGraphAddDependencies
    PFN_cuGraphKernelNodeSetAttribute_v11000 cuGraphKernelNodeSetAttribute
    PFN_cuGraphKernelNodeGetAttribute_v11000 cuGraphKernelNodeGetAttribute
    PFN_cuGraphNodeGetType_v10000 cuGraphNodeGetType
    PFN_cuGraphChildGraphNodeGetGraph_v10000 cuGraphChildGraphNodeGetGraph
    PFN_cuGraphGetEdges_v12030 cuGraphGetTypedEdges
    PFN_cuGraphInstantiateWithFlags_v11040 cuGraphInstantiateWithFlags
    PFN_cuGraphExecDestroy_v10000 cuGraphExecDestroy
    PFN_cuGraphLaunch_v10000 cuGraphLaunch
    PFN_cuGraphExecKernelNodeSetParams_v12000 cuGraphExecKernelNodeSetParams
    PFN_cuGraphExecMemcpyNodeSetParams_v10020 cuGraphExecMemcpyNodeSetParams
    PFN_cuGraphExecChildGraphNodeSetParams_v11010 cuGraphExecChildGraphNodeSetParams
    PFN_cuGraphExecUpdate_v12000 cuGraphExecUpdate
    PFN_cuLaunchKernelEx_v11060 cuLaunchKernelEx
    PFN_cuGraphAddDependencies_v12030 cuGraphAddTypedDependencies

    CUresult (*cyrtEmuLastFault)(CUdevice, char*, size_t) noexcept nogil

cdef Driver cu

# What every driver object of this process depends on.
cdef enum ProcessState:
    UNOPENED
    READY
    FORKED      # a child of the process that opened the driver
    CLOSING     # the interpreter is going down

cdef ProcessState process

cdef enum:
    MAX_DEVICES = 64

# Non-zero once a device answers nothing but its first error.
cdef unsigned char faulted[MAX_DEVICES]

# Opens the driver if that has not happened; raises where it cannot be used any more.
cdef int ensure_open() except -1
# The emulated device is in use; opens the driver.
cdef bint is_emulated() except -1
# Raises the error of a call on a device that failed before, its cause the first error.
cdef int refuse(const char* call, int ordinal) except -1
# Whether a device that answered it answers nothing else from then on.
cdef bint is_sticky(CUresult result) noexcept nogil
# Raises CudaError unless the result is CUDA_SUCCESS. `ordinal`: the device that answered, or -1.
cdef int fail(CUresult result, const char* call, int ordinal) except -1

cdef inline int check(CUresult result, const char* call, int ordinal=-1) except -1:
    if result != CUDA_SUCCESS:
        return fail(result, call, ordinal)
    return 0
