# The CUDA driver's C ABI as cuda.h and cudaTypedefs.h declare it: extern declarations only.
#
# INVARIANT: only versioned PFN types are named here. A versioned type keeps its meaning in every
# release of the headers, the unversioned macros do not, so one build works with 12.x and 13.x.

cdef extern from "cuda.h" nogil:
    ctypedef int CUdevice
    ctypedef unsigned long long CUdeviceptr
    ctypedef struct CUctx_st: pass
    ctypedef CUctx_st* CUcontext
    ctypedef struct CUmod_st: pass
    ctypedef CUmod_st* CUmodule
    ctypedef struct CUfunc_st: pass
    ctypedef CUfunc_st* CUfunction
    ctypedef struct CUstream_st: pass
    ctypedef CUstream_st* CUstream
    ctypedef struct CUevent_st: pass
    ctypedef CUevent_st* CUevent
    ctypedef struct CUgraph_st: pass
    ctypedef CUgraph_st* CUgraph
    ctypedef struct CUgraphNode_st: pass
    ctypedef CUgraphNode_st* CUgraphNode
    ctypedef struct CUgraphExec_st: pass
    ctypedef CUgraphExec_st* CUgraphExec
    ctypedef struct CUkern_st: pass
    ctypedef CUkern_st* CUkernel
    ctypedef struct CUuserObject_st: pass
    ctypedef CUuserObject_st* CUuserObject
    ctypedef unsigned long long cuuint64_t
    ctypedef void (*CUhostFn)(void*) noexcept nogil
    ctypedef struct CUuuid:
        char bytes[16]

    ctypedef size_t (*CUoccupancyB2DSize)(int) noexcept nogil

    ctypedef enum CUlimit:
        CU_LIMIT_STACK_SIZE
        CU_LIMIT_PRINTF_FIFO_SIZE
        CU_LIMIT_MALLOC_HEAP_SIZE

    ctypedef enum CUresult:
        CUDA_SUCCESS
        CUDA_ERROR_INVALID_VALUE
        CUDA_ERROR_OUT_OF_MEMORY
        CUDA_ERROR_INVALID_HANDLE
        CUDA_ERROR_NOT_FOUND
        CUDA_ERROR_NOT_READY
        CUDA_ERROR_NOT_PERMITTED
        CUDA_ERROR_CONTEXT_IS_DESTROYED
        CUDA_ERROR_NOT_SUPPORTED
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        CUDA_ERROR_UNKNOWN

    ctypedef enum CUdevice_attribute:
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
        CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS

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

    ctypedef enum CUmemorytype:
        CU_MEMORYTYPE_DEVICE
        CU_MEMORYTYPE_UNIFIED

    ctypedef enum CUjit_option:
        CU_JIT_INFO_LOG_BUFFER
        CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES
        CU_JIT_ERROR_LOG_BUFFER
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES

    ctypedef enum CUstream_flags:
        CU_STREAM_NON_BLOCKING

    ctypedef enum CUevent_flags:
        CU_EVENT_DEFAULT
        CU_EVENT_DISABLE_TIMING

    ctypedef enum CUmemAttach_flags:
        CU_MEM_ATTACH_GLOBAL

    int CU_MEMHOSTALLOC_PORTABLE

    ctypedef enum CUstreamCaptureMode:
        CU_STREAM_CAPTURE_MODE_RELAXED
        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

    ctypedef enum CUstreamCaptureStatus:
        CU_STREAM_CAPTURE_STATUS_NONE

    unsigned int CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
    unsigned int CU_GRAPH_USER_OBJECT_MOVE

    ctypedef enum CUgraphDependencyType:
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
        CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION

    ctypedef enum CUgraphNodeType:
        CU_GRAPH_NODE_TYPE_KERNEL
        CU_GRAPH_NODE_TYPE_GRAPH
        CU_GRAPH_NODE_TYPE_MEMSET

    ctypedef struct ClusterDim:         # unnamed in CUlaunchAttributeValue
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

    ctypedef struct CUDA_MEMSET_NODE_PARAMS_v1:
        CUdeviceptr dst
        size_t pitch
        unsigned int value
        unsigned int elementSize
        size_t width
        size_t height

    void* CU_LAUNCH_PARAM_END
    void* CU_LAUNCH_PARAM_BUFFER_POINTER
    void* CU_LAUNCH_PARAM_BUFFER_SIZE

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
        CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND

cdef extern from "cudaTypedefs.h" nogil:
    ctypedef CUresult (*PFN_cuGetProcAddress_v12000)(
        const char*, void**, int, unsigned long long,
        CUdriverProcAddressQueryResult*) noexcept nogil
