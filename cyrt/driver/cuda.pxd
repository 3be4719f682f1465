# The CUDA driver's C ABI as cuda.h and cudaTypedefs.h declare it: extern declarations only.
#
# INVARIANT: only versioned PFN types are named here. A versioned type keeps its meaning in every
# release of the headers, the unversioned macros do not, so one build serves 12.x and 13.x drivers.

cdef extern from "cuda.h" nogil:
    int CUDA_VERSION

    ctypedef int CUdevice
    ctypedef unsigned long long CUdeviceptr
    ctypedef struct CUctx_st:
        pass
    ctypedef CUctx_st* CUcontext
    ctypedef struct CUmod_st:
        pass
    ctypedef CUmod_st* CUmodule
    ctypedef struct CUfunc_st:
        pass
    ctypedef CUfunc_st* CUfunction
    ctypedef struct CUstream_st:
        pass
    ctypedef CUstream_st* CUstream
    ctypedef struct CUevent_st:
        pass
    ctypedef CUevent_st* CUevent
    ctypedef struct CUgraph_st:
        pass
    ctypedef CUgraph_st* CUgraph
    ctypedef struct CUgraphNode_st:
        pass
    ctypedef CUgraphNode_st* CUgraphNode
    ctypedef struct CUgraphExec_st:
        pass
    ctypedef CUgraphExec_st* CUgraphExec
    ctypedef struct CUkern_st:
        pass
    ctypedef CUkern_st* CUkernel
    ctypedef struct CUuuid:
        char bytes[16]

    ctypedef size_t (*CUoccupancyB2DSize)(int) noexcept nogil

    ctypedef enum CUresult:
        CUDA_SUCCESS
        CUDA_ERROR_INVALID_VALUE
        CUDA_ERROR_OUT_OF_MEMORY
        CUDA_ERROR_NOT_INITIALIZED
        CUDA_ERROR_DEINITIALIZED
        CUDA_ERROR_NO_DEVICE
        CUDA_ERROR_INVALID_DEVICE
        CUDA_ERROR_INVALID_IMAGE
        CUDA_ERROR_INVALID_CONTEXT
        CUDA_ERROR_NO_BINARY_FOR_GPU
        CUDA_ERROR_INVALID_PTX
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        CUDA_ERROR_INVALID_SOURCE
        CUDA_ERROR_NOT_FOUND
        CUDA_ERROR_NOT_READY
        CUDA_ERROR_ILLEGAL_ADDRESS
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
        CUDA_ERROR_LAUNCH_TIMEOUT
        CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
        CUDA_ERROR_NOT_PERMITTED
        CUDA_ERROR_CONTEXT_IS_DESTROYED
        CUDA_ERROR_ASSERT
        CUDA_ERROR_HARDWARE_STACK_ERROR
        CUDA_ERROR_ILLEGAL_INSTRUCTION
        CUDA_ERROR_MISALIGNED_ADDRESS
        CUDA_ERROR_INVALID_ADDRESS_SPACE
        CUDA_ERROR_INVALID_PC
        CUDA_ERROR_LAUNCH_FAILED
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
        CUDA_ERROR_NOT_SUPPORTED
        CUDA_ERROR_UNKNOWN

    ctypedef enum CUdevice_attribute:
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
        CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY
        CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN

    ctypedef enum CUfunction_attribute:
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
        CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES
        CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
        CU_FUNC_ATTRIBUTE_NUM_REGS
        CU_FUNC_ATTRIBUTE_PTX_VERSION
        CU_FUNC_ATTRIBUTE_BINARY_VERSION
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH

    ctypedef enum CUpointer_attribute:
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        CU_POINTER_ATTRIBUTE_IS_MANAGED

    ctypedef enum CUmemorytype:
        CU_MEMORYTYPE_HOST
        CU_MEMORYTYPE_DEVICE
        CU_MEMORYTYPE_UNIFIED

    ctypedef enum CUjit_option:
        CU_JIT_INFO_LOG_BUFFER
        CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES
        CU_JIT_ERROR_LOG_BUFFER
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES

    ctypedef enum CUstream_flags:
        CU_STREAM_DEFAULT
        CU_STREAM_NON_BLOCKING

    ctypedef enum CUevent_flags:
        CU_EVENT_DEFAULT
        CU_EVENT_BLOCKING_SYNC
        CU_EVENT_DISABLE_TIMING

    ctypedef enum CUmemAttach_flags:
        CU_MEM_ATTACH_GLOBAL

    int CU_MEMHOSTALLOC_PORTABLE

    ctypedef enum CUstreamCaptureMode:
        CU_STREAM_CAPTURE_MODE_RELAXED

    ctypedef enum CUgraphDependencyType:
        CU_GRAPH_DEPENDENCY_TYPE_DEFAULT
        CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC

    int CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC

    ctypedef enum CUkernelNodeAttrID "CUlaunchAttributeID":
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        CU_LAUNCH_ATTRIBUTE_PRIORITY
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
        CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT

    ctypedef enum CUgraphNodeType:
        CU_GRAPH_NODE_TYPE_KERNEL
        CU_GRAPH_NODE_TYPE_GRAPH

    ctypedef struct ClusterDim:         # of CUlaunchAttributeValue, where it has no name
        unsigned int x
        unsigned int y
        unsigned int z

    ctypedef union CUkernelNodeAttrValue "CUlaunchAttributeValue":
        ClusterDim clusterDim
        int cooperative
        int priority

    ctypedef struct CUlaunchAttribute:
        CUkernelNodeAttrID id
        CUkernelNodeAttrValue value

    ctypedef struct CUlaunchConfig:
        unsigned int gridDimX
        unsigned int gridDimY
        unsigned int gridDimZ
        unsigned int blockDimX
        unsigned int blockDimY
        unsigned int blockDimZ
        unsigned int sharedMemBytes
        CUstream hStream
        CUlaunchAttribute* attrs
        unsigned int numAttrs

    ctypedef struct CUDA_KERNEL_NODE_PARAMS_v2:
        CUfunction func
        unsigned int gridDimX
        unsigned int gridDimY
        unsigned int gridDimZ
        unsigned int blockDimX
        unsigned int blockDimY
        unsigned int blockDimZ
        unsigned int sharedMemBytes
        void** kernelParams
        void** extra
        CUkernel kern
        CUcontext ctx

    ctypedef struct CUDA_MEMCPY3D_v2:
        CUmemorytype srcMemoryType
        CUdeviceptr srcDevice
        CUmemorytype dstMemoryType
        CUdeviceptr dstDevice
        size_t WidthInBytes
        size_t Height
        size_t Depth

    ctypedef struct CUgraphEdgeData:
        unsigned char from_port
        unsigned char to_port
        unsigned char type

    ctypedef struct CUgraphExecUpdateResultInfo:
        int result

    ctypedef enum CUdriverProcAddressQueryResult:
        CU_GET_PROC_ADDRESS_SUCCESS
        CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
        CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT

cdef extern from "cudaTypedefs.h" nogil:
    ctypedef CUresult (*PFN_cuGetProcAddress_v12000)(
        const char*, void**, int, unsigned long long,
        CUdriverProcAddressQueryResult*) noexcept nogil
    ctypedef CUresult (*PFN_cuInit_v2000)(unsigned int) noexcept nogil
    ctypedef CUresult (*PFN_cuDriverGetVersion_v2020)(int*) noexcept nogil
    ctypedef CUresult (*PFN_cuGetErrorName_v6000)(CUresult, const char**) noexcept nogil
    ctypedef CUresult (*PFN_cuGetErrorString_v6000)(CUresult, const char**) noexcept nogil
    ctypedef CUresult (*PFN_cuDeviceGet_v2000)(CUdevice*, int) noexcept nogil
    ctypedef CUresult (*PFN_cuDeviceGetCount_v2000)(int*) noexcept nogil
    ctypedef CUresult (*PFN_cuDeviceGetName_v2000)(char*, int, CUdevice) noexcept nogil
    ctypedef CUresult (*PFN_cuDeviceGetUuid_v11040)(CUuuid*, CUdevice) noexcept nogil
    ctypedef CUresult (*PFN_cuDeviceGetAttribute_v2000)(
        int*, CUdevice_attribute, CUdevice) noexcept nogil
    ctypedef CUresult (*PFN_cuDevicePrimaryCtxRetain_v7000)(CUcontext*, CUdevice) noexcept nogil
    ctypedef CUresult (*PFN_cuDevicePrimaryCtxReset_v11000)(CUdevice) noexcept nogil
    ctypedef CUresult (*PFN_cuCtxGetCurrent_v4000)(CUcontext*) noexcept nogil
    ctypedef CUresult (*PFN_cuCtxPushCurrent_v4000)(CUcontext) noexcept nogil
    ctypedef CUresult (*PFN_cuCtxPopCurrent_v4000)(CUcontext*) noexcept nogil
    ctypedef CUresult (*PFN_cuCtxGetDevice_v2000)(CUdevice*) noexcept nogil
    ctypedef CUresult (*PFN_cuCtxGetStreamPriorityRange_v5050)(int*, int*) noexcept nogil
    ctypedef CUresult (*PFN_cuMemGetInfo_v3020)(size_t*, size_t*) noexcept nogil
    ctypedef CUresult (*PFN_cuMemAlloc_v3020)(CUdeviceptr*, size_t) noexcept nogil
    ctypedef CUresult (*PFN_cuMemFree_v3020)(CUdeviceptr) noexcept nogil
    ctypedef CUresult (*PFN_cuMemAllocManaged_v6000)(
        CUdeviceptr*, size_t, unsigned int) noexcept nogil
    ctypedef CUresult (*PFN_cuMemHostAlloc_v2020)(void**, size_t, unsigned int) noexcept nogil
    ctypedef CUresult (*PFN_cuMemFreeHost_v2000)(void*) noexcept nogil
    ctypedef CUresult (*PFN_cuMemcpyAsync_v4000)(
        CUdeviceptr, CUdeviceptr, size_t, CUstream) noexcept nogil
    ctypedef CUresult (*PFN_cuMemcpyHtoDAsync_v3020)(
        CUdeviceptr, const void*, size_t, CUstream) noexcept nogil
    ctypedef CUresult (*PFN_cuMemcpyDtoHAsync_v3020)(
        void*, CUdeviceptr, size_t, CUstream) noexcept nogil
    ctypedef CUresult (*PFN_cuMemsetD8Async_v3020)(
        CUdeviceptr, unsigned char, size_t, CUstream) noexcept nogil
    ctypedef CUresult (*PFN_cuMemsetD16Async_v3020)(
        CUdeviceptr, unsigned short, size_t, CUstream) noexcept nogil
    ctypedef CUresult (*PFN_cuMemsetD32Async_v3020)(
        CUdeviceptr, unsigned int, size_t, CUstream) noexcept nogil
    ctypedef CUresult (*PFN_cuPointerGetAttribute_v4000)(
        void*, CUpointer_attribute, CUdeviceptr) noexcept nogil
    ctypedef CUresult (*PFN_cuStreamCreateWithPriority_v5050)(
        CUstream*, unsigned int, int) noexcept nogil
    ctypedef CUresult (*PFN_cuStreamSynchronize_v2000)(CUstream) noexcept nogil
    ctypedef CUresult (*PFN_cuStreamQuery_v2000)(CUstream) noexcept nogil
    ctypedef CUresult (*PFN_cuStreamWaitEvent_v3020)(CUstream, CUevent, unsigned int) noexcept nogil
    ctypedef CUresult (*PFN_cuStreamGetPriority_v5050)(CUstream, int*) noexcept nogil
    ctypedef CUresult (*PFN_cuStreamGetCtx_v9020)(CUstream, CUcontext*) noexcept nogil
    ctypedef CUresult (*PFN_cuStreamGetId_v12000)(CUstream, unsigned long long*) noexcept nogil
    ctypedef CUresult (*PFN_cuEventCreate_v2000)(CUevent*, unsigned int) noexcept nogil
    ctypedef CUresult (*PFN_cuEventDestroy_v4000)(CUevent) noexcept nogil
    ctypedef CUresult (*PFN_cuEventRecord_v2000)(CUevent, CUstream) noexcept nogil
    ctypedef CUresult (*PFN_cuEventQuery_v2000)(CUevent) noexcept nogil
    ctypedef CUresult (*PFN_cuEventElapsedTime_v2000)(float*, CUevent, CUevent) noexcept nogil
    ctypedef CUresult (*PFN_cuModuleLoadDataEx_v2010)(
        CUmodule*, const void*, unsigned int, CUjit_option*, void**) noexcept nogil
    ctypedef CUresult (*PFN_cuModuleUnload_v2000)(CUmodule) noexcept nogil
    ctypedef CUresult (*PFN_cuModuleGetFunction_v2000)(
        CUfunction*, CUmodule, const char*) noexcept nogil
    ctypedef CUresult (*PFN_cuModuleGetGlobal_v3020)(
        CUdeviceptr*, size_t*, CUmodule, const char*) noexcept nogil
    ctypedef CUresult (*PFN_cuModuleGetFunctionCount_v12040)(unsigned int*, CUmodule) noexcept nogil
    ctypedef CUresult (*PFN_cuModuleEnumerateFunctions_v12040)(
        CUfunction*, unsigned int, CUmodule) noexcept nogil
    ctypedef CUresult (*PFN_cuFuncGetName_v12030)(const char**, CUfunction) noexcept nogil
    ctypedef CUresult (*PFN_cuFuncGetAttribute_v2020)(
        int*, CUfunction_attribute, CUfunction) noexcept nogil
    ctypedef CUresult (*PFN_cuFuncSetAttribute_v9000)(
        CUfunction, CUfunction_attribute, int) noexcept nogil
    ctypedef CUresult (*PFN_cuFuncGetParamInfo_v12040)(
        CUfunction, size_t, size_t*, size_t*) noexcept nogil
    ctypedef CUresult (*PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050)(
        int*, CUfunction, int, size_t) noexcept nogil
    ctypedef CUresult (*PFN_cuOccupancyMaxPotentialBlockSize_v6050)(
        int*, int*, CUfunction, CUoccupancyB2DSize, size_t, int) noexcept nogil
    ctypedef CUresult (*PFN_cuLaunchKernel_v4000)(
        CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
        unsigned int, unsigned int, CUstream, void**, void**) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphCreate_v10000)(CUgraph*, unsigned int) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphDestroy_v10000)(CUgraph) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphAddKernelNode_v12000)(
        CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const
        CUDA_KERNEL_NODE_PARAMS_v2*) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphAddMemcpyNode_v10000)(
        CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_MEMCPY3D_v2*,
        CUcontext) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphAddEmptyNode_v10000)(
        CUgraphNode*, CUgraph, const CUgraphNode*, size_t) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphClone_v10000)(CUgraph*, CUgraph) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphGetNodes_v10000)(
        CUgraph, CUgraphNode*, size_t*) noexcept nogil
    ctypedef CUresult (*PFN_cuStreamBeginCapture_v10010)(
        CUstream, CUstreamCaptureMode) noexcept nogil
    ctypedef CUresult (*PFN_cuStreamEndCapture_v10000)(CUstream, CUgraph*) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphAddChildGraphNode_v10000)(
        CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraph) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphAddDependencies_v10000)(
        CUgraph, const CUgraphNode*, const CUgraphNode*, size_t) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphKernelNodeSetAttribute_v11000)(
        CUgraphNode, CUkernelNodeAttrID, const CUkernelNodeAttrValue*) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphKernelNodeGetAttribute_v11000)(
        CUgraphNode, CUkernelNodeAttrID, CUkernelNodeAttrValue*) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphNodeGetType_v10000)(
        CUgraphNode, CUgraphNodeType*) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphChildGraphNodeGetGraph_v10000)(
        CUgraphNode, CUgraph*) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphGetEdges_v12030)(
        CUgraph, CUgraphNode*, CUgraphNode*, CUgraphEdgeData*, size_t*) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphInstantiateWithFlags_v11040)(
        CUgraphExec*, CUgraph, unsigned long long) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphExecDestroy_v10000)(CUgraphExec) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphLaunch_v10000)(CUgraphExec, CUstream) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphExecKernelNodeSetParams_v12000)(
        CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v2*) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphExecMemcpyNodeSetParams_v10020)(
        CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D_v2*, CUcontext) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphExecChildGraphNodeSetParams_v11010)(
        CUgraphExec, CUgraphNode, CUgraph) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphExecUpdate_v12000)(
        CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*) noexcept nogil
    ctypedef CUresult (*PFN_cuLaunchKernelEx_v11060)(
        const CUlaunchConfig*, CUfunction, void**, void**) noexcept nogil
    ctypedef CUresult (*PFN_cuGraphAddDependencies_v12030)(
        CUgraph, const CUgraphNode*, const CUgraphNode*, const CUgraphEdgeData*,
        size_t) noexcept nogil
