// Finding entry points by name and version.
#include <cstring>

#include "driver/api.hpp"

// Declarations that some versions of cuda.h lack.
CYRT_API CUresult cuCtxGetDevice_v2(CUdevice* out, CUcontext context);
CYRT_API CUresult cuCtxSynchronize_v2(CUcontext context);
CYRT_API CUresult cuProfilerStart();
CYRT_API CUresult cuProfilerStop();
CYRT_API CUresult cyrtEmuGuard(CUdeviceptr address);
CYRT_API CUresult cyrtEmuLastFault(CUdevice device, char* text, size_t size);
CYRT_API CUresult cyrtEmuSetRanges(CUfunction function, size_t count, const char* declarations);

namespace cyrt::emu {

namespace {

template <class Function>
void* as_pointer(Function* function) {
    return reinterpret_cast<void*>(function);
}

struct Entry {
    const char* name;  // without a version
    int since;         // the first driver version in which the name refers to this function
    void* function;
};

// Sorted by name, then by version.
const Entry kEntries[] = {
    {"cuCtxCreate", 3020, as_pointer(cuCtxCreate_v2)},
    {"cuCtxCreate", 11040, as_pointer(cuCtxCreate_v3)},
    {"cuCtxCreate", 12050, as_pointer(cuCtxCreate_v4)},
    {"cuCtxDestroy", 4000, as_pointer(cuCtxDestroy_v2)},
    {"cuCtxDisablePeerAccess", 4000, as_pointer(cuCtxDisablePeerAccess)},
    {"cuCtxEnablePeerAccess", 4000, as_pointer(cuCtxEnablePeerAccess)},
    {"cuCtxGetApiVersion", 3020, as_pointer(cuCtxGetApiVersion)},
    {"cuCtxGetCacheConfig", 3020, as_pointer(cuCtxGetCacheConfig)},
    {"cuCtxGetCurrent", 4000, as_pointer(cuCtxGetCurrent)},
    {"cuCtxGetDevice", 2000, as_pointer(cuCtxGetDevice)},
    {"cuCtxGetDevice", 13000, as_pointer(cuCtxGetDevice_v2)},
    {"cuCtxGetFlags", 7000, as_pointer(cuCtxGetFlags)},
    {"cuCtxGetId", 12000, as_pointer(cuCtxGetId)},
    {"cuCtxGetLimit", 3010, as_pointer(cuCtxGetLimit)},
    {"cuCtxGetStreamPriorityRange", 5050, as_pointer(cuCtxGetStreamPriorityRange)},
    {"cuCtxPopCurrent", 4000, as_pointer(cuCtxPopCurrent_v2)},
    {"cuCtxPushCurrent", 4000, as_pointer(cuCtxPushCurrent_v2)},
    {"cuCtxResetPersistingL2Cache", 11000, as_pointer(cuCtxResetPersistingL2Cache)},
    {"cuCtxSetCacheConfig", 3020, as_pointer(cuCtxSetCacheConfig)},
    {"cuCtxSetCurrent", 4000, as_pointer(cuCtxSetCurrent)},
    {"cuCtxSetFlags", 12010, as_pointer(cuCtxSetFlags)},
    {"cuCtxSetLimit", 3010, as_pointer(cuCtxSetLimit)},
    {"cuCtxSynchronize", 2000, as_pointer(cuCtxSynchronize)},
    {"cuCtxSynchronize", 13000, as_pointer(cuCtxSynchronize_v2)},
    {"cuDeviceCanAccessPeer", 4000, as_pointer(cuDeviceCanAccessPeer)},
    {"cuDeviceComputeCapability", 2000, as_pointer(cuDeviceComputeCapability)},
    {"cuDeviceGet", 2000, as_pointer(cuDeviceGet)},
    {"cuDeviceGetAttribute", 2000, as_pointer(cuDeviceGetAttribute)},
    {"cuDeviceGetByPCIBusId", 4010, as_pointer(cuDeviceGetByPCIBusId)},
    {"cuDeviceGetCount", 2000, as_pointer(cuDeviceGetCount)},
    {"cuDeviceGetDefaultMemPool", 11020, as_pointer(cuDeviceGetDefaultMemPool)},
    {"cuDeviceGetMemPool", 11020, as_pointer(cuDeviceGetMemPool)},
    {"cuDeviceGetName", 2000, as_pointer(cuDeviceGetName)},
    {"cuDeviceGetP2PAttribute", 8000, as_pointer(cuDeviceGetP2PAttribute)},
    {"cuDeviceGetPCIBusId", 4010, as_pointer(cuDeviceGetPCIBusId)},
    {"cuDeviceGetUuid", 9020, as_pointer(cuDeviceGetUuid)},
    {"cuDeviceGetUuid", 11040, as_pointer(cuDeviceGetUuid_v2)},
    {"cuDevicePrimaryCtxGetState", 7000, as_pointer(cuDevicePrimaryCtxGetState)},
    {"cuDevicePrimaryCtxRelease", 7000, as_pointer(cuDevicePrimaryCtxRelease)},
    {"cuDevicePrimaryCtxRelease", 11000, as_pointer(cuDevicePrimaryCtxRelease_v2)},
    {"cuDevicePrimaryCtxReset", 7000, as_pointer(cuDevicePrimaryCtxReset)},
    {"cuDevicePrimaryCtxReset", 11000, as_pointer(cuDevicePrimaryCtxReset_v2)},
    {"cuDevicePrimaryCtxRetain", 7000, as_pointer(cuDevicePrimaryCtxRetain)},
    {"cuDevicePrimaryCtxSetFlags", 7000, as_pointer(cuDevicePrimaryCtxSetFlags)},
    {"cuDevicePrimaryCtxSetFlags", 11000, as_pointer(cuDevicePrimaryCtxSetFlags_v2)},
    {"cuDeviceSetMemPool", 11020, as_pointer(cuDeviceSetMemPool)},
    {"cuDeviceTotalMem", 3020, as_pointer(cuDeviceTotalMem_v2)},
    {"cuDriverGetVersion", 2020, as_pointer(cuDriverGetVersion)},
    {"cuEventCreate", 2000, as_pointer(cuEventCreate)},
    {"cuEventDestroy", 2000, as_pointer(cuEventDestroy)},
    {"cuEventDestroy", 4000, as_pointer(cuEventDestroy_v2)},
    {"cuEventElapsedTime", 2000, as_pointer(cuEventElapsedTime)},
    {"cuEventElapsedTime", 12080, as_pointer(cuEventElapsedTime_v2)},
    {"cuEventQuery", 2000, as_pointer(cuEventQuery)},
    {"cuEventRecord", 2000, as_pointer(cuEventRecord)},
    {"cuEventRecordWithFlags", 11010, as_pointer(cuEventRecordWithFlags)},
    {"cuEventSynchronize", 2000, as_pointer(cuEventSynchronize)},
    {"cuFuncGetAttribute", 2020, as_pointer(cuFuncGetAttribute)},
    {"cuFuncGetModule", 11000, as_pointer(cuFuncGetModule)},
    {"cuFuncGetName", 12030, as_pointer(cuFuncGetName)},
    {"cuFuncGetParamInfo", 12040, as_pointer(cuFuncGetParamInfo)},
    {"cuFuncIsLoaded", 12040, as_pointer(cuFuncIsLoaded)},
    {"cuFuncLoad", 12040, as_pointer(cuFuncLoad)},
    {"cuFuncSetAttribute", 9000, as_pointer(cuFuncSetAttribute)},
    {"cuFuncSetCacheConfig", 3000, as_pointer(cuFuncSetCacheConfig)},
    {"cuFuncSetSharedMemConfig", 4020, as_pointer(cuFuncSetSharedMemConfig)},
    {"cuGetErrorName", 6000, as_pointer(cuGetErrorName)},
    {"cuGetErrorString", 6000, as_pointer(cuGetErrorString)},
    {"cuGetProcAddress", 11030, as_pointer(cuGetProcAddress)},
    {"cuGetProcAddress", 12000, as_pointer(cuGetProcAddress_v2)},
    {"cuGraphAddChildGraphNode", 10000, as_pointer(cuGraphAddChildGraphNode)},
    {"cuGraphAddDependencies", 10000, as_pointer(cuGraphAddDependencies)},
    {"cuGraphAddDependencies", 12030, as_pointer(cuGraphAddDependencies_v2)},
    {"cuGraphAddEmptyNode", 10000, as_pointer(cuGraphAddEmptyNode)},
    {"cuGraphAddEventRecordNode", 11010, as_pointer(cuGraphAddEventRecordNode)},
    {"cuGraphAddEventWaitNode", 11010, as_pointer(cuGraphAddEventWaitNode)},
    {"cuGraphAddHostNode", 10000, as_pointer(cuGraphAddHostNode)},
    {"cuGraphAddKernelNode", 10000, as_pointer(cuGraphAddKernelNode)},
    {"cuGraphAddKernelNode", 12000, as_pointer(cuGraphAddKernelNode_v2)},
    {"cuGraphAddMemcpyNode", 10000, as_pointer(cuGraphAddMemcpyNode)},
    {"cuGraphAddMemsetNode", 10000, as_pointer(cuGraphAddMemsetNode)},
    {"cuGraphAddNode", 12020, as_pointer(cuGraphAddNode)},
    {"cuGraphAddNode", 12030, as_pointer(cuGraphAddNode_v2)},
    {"cuGraphChildGraphNodeGetGraph", 10000, as_pointer(cuGraphChildGraphNodeGetGraph)},
    {"cuGraphClone", 10000, as_pointer(cuGraphClone)},
    {"cuGraphCreate", 10000, as_pointer(cuGraphCreate)},
    {"cuGraphDebugDotPrint", 11030, as_pointer(cuGraphDebugDotPrint)},
    {"cuGraphDestroy", 10000, as_pointer(cuGraphDestroy)},
    {"cuGraphDestroyNode", 10000, as_pointer(cuGraphDestroyNode)},
    {"cuGraphEventRecordNodeGetEvent", 11010, as_pointer(cuGraphEventRecordNodeGetEvent)},
    {"cuGraphEventRecordNodeSetEvent", 11010, as_pointer(cuGraphEventRecordNodeSetEvent)},
    {"cuGraphEventWaitNodeGetEvent", 11010, as_pointer(cuGraphEventWaitNodeGetEvent)},
    {"cuGraphEventWaitNodeSetEvent", 11010, as_pointer(cuGraphEventWaitNodeSetEvent)},
    {"cuGraphExecChildGraphNodeSetParams", 11010, as_pointer(cuGraphExecChildGraphNodeSetParams)},
    {"cuGraphExecDestroy", 10000, as_pointer(cuGraphExecDestroy)},
    {"cuGraphExecEventRecordNodeSetEvent", 11010, as_pointer(cuGraphExecEventRecordNodeSetEvent)},
    {"cuGraphExecEventWaitNodeSetEvent", 11010, as_pointer(cuGraphExecEventWaitNodeSetEvent)},
    {"cuGraphExecGetFlags", 12000, as_pointer(cuGraphExecGetFlags)},
    {"cuGraphExecHostNodeSetParams", 10020, as_pointer(cuGraphExecHostNodeSetParams)},
    {"cuGraphExecKernelNodeSetParams", 10010, as_pointer(cuGraphExecKernelNodeSetParams)},
    {"cuGraphExecKernelNodeSetParams", 12000, as_pointer(cuGraphExecKernelNodeSetParams_v2)},
    {"cuGraphExecMemcpyNodeSetParams", 10020, as_pointer(cuGraphExecMemcpyNodeSetParams)},
    {"cuGraphExecMemsetNodeSetParams", 10020, as_pointer(cuGraphExecMemsetNodeSetParams)},
    {"cuGraphExecNodeSetParams", 12020, as_pointer(cuGraphExecNodeSetParams)},
    {"cuGraphExecUpdate", 10020, as_pointer(cuGraphExecUpdate)},
    {"cuGraphExecUpdate", 12000, as_pointer(cuGraphExecUpdate_v2)},
    {"cuGraphGetEdges", 10000, as_pointer(cuGraphGetEdges)},
    {"cuGraphGetEdges", 12030, as_pointer(cuGraphGetEdges_v2)},
    {"cuGraphGetNodes", 10000, as_pointer(cuGraphGetNodes)},
    {"cuGraphGetRootNodes", 10000, as_pointer(cuGraphGetRootNodes)},
    {"cuGraphHostNodeGetParams", 10000, as_pointer(cuGraphHostNodeGetParams)},
    {"cuGraphHostNodeSetParams", 10000, as_pointer(cuGraphHostNodeSetParams)},
    {"cuGraphInstantiate", 10000, as_pointer(cuGraphInstantiate)},
    {"cuGraphInstantiate", 11000, as_pointer(cuGraphInstantiate_v2)},
    {"cuGraphInstantiate", 12000, as_pointer(cuGraphInstantiateWithFlags)},
    {"cuGraphInstantiateWithFlags", 11040, as_pointer(cuGraphInstantiateWithFlags)},
    {"cuGraphInstantiateWithParams", 12000, as_pointer(cuGraphInstantiateWithParams)},
    {"cuGraphKernelNodeCopyAttributes", 11000, as_pointer(cuGraphKernelNodeCopyAttributes)},
    {"cuGraphKernelNodeGetAttribute", 11000, as_pointer(cuGraphKernelNodeGetAttribute)},
    {"cuGraphKernelNodeGetParams", 10000, as_pointer(cuGraphKernelNodeGetParams)},
    {"cuGraphKernelNodeGetParams", 12000, as_pointer(cuGraphKernelNodeGetParams_v2)},
    {"cuGraphKernelNodeSetAttribute", 11000, as_pointer(cuGraphKernelNodeSetAttribute)},
    {"cuGraphKernelNodeSetParams", 10000, as_pointer(cuGraphKernelNodeSetParams)},
    {"cuGraphKernelNodeSetParams", 12000, as_pointer(cuGraphKernelNodeSetParams_v2)},
    {"cuGraphLaunch", 10000, as_pointer(cuGraphLaunch)},
    {"cuGraphMemcpyNodeGetParams", 10000, as_pointer(cuGraphMemcpyNodeGetParams)},
    {"cuGraphMemcpyNodeSetParams", 10000, as_pointer(cuGraphMemcpyNodeSetParams)},
    {"cuGraphMemsetNodeGetParams", 10000, as_pointer(cuGraphMemsetNodeGetParams)},
    {"cuGraphMemsetNodeSetParams", 10000, as_pointer(cuGraphMemsetNodeSetParams)},
    {"cuGraphNodeFindInClone", 10000, as_pointer(cuGraphNodeFindInClone)},
    {"cuGraphNodeGetDependencies", 10000, as_pointer(cuGraphNodeGetDependencies)},
    {"cuGraphNodeGetDependencies", 12030, as_pointer(cuGraphNodeGetDependencies_v2)},
    {"cuGraphNodeGetDependentNodes", 10000, as_pointer(cuGraphNodeGetDependentNodes)},
    {"cuGraphNodeGetDependentNodes", 12030, as_pointer(cuGraphNodeGetDependentNodes_v2)},
    {"cuGraphNodeGetEnabled", 11060, as_pointer(cuGraphNodeGetEnabled)},
    {"cuGraphNodeGetType", 10000, as_pointer(cuGraphNodeGetType)},
    {"cuGraphNodeSetEnabled", 11060, as_pointer(cuGraphNodeSetEnabled)},
    {"cuGraphNodeSetParams", 12020, as_pointer(cuGraphNodeSetParams)},
    {"cuGraphReleaseUserObject", 11030, as_pointer(cuGraphReleaseUserObject)},
    {"cuGraphRemoveDependencies", 10000, as_pointer(cuGraphRemoveDependencies)},
    {"cuGraphRemoveDependencies", 12030, as_pointer(cuGraphRemoveDependencies_v2)},
    {"cuGraphRetainUserObject", 11030, as_pointer(cuGraphRetainUserObject)},
    {"cuGraphUpload", 11010, as_pointer(cuGraphUpload)},
    {"cuInit", 2000, as_pointer(cuInit)},
    {"cuKernelGetAttribute", 12000, as_pointer(cuKernelGetAttribute)},
    {"cuKernelGetFunction", 12000, as_pointer(cuKernelGetFunction)},
    {"cuKernelGetLibrary", 12050, as_pointer(cuKernelGetLibrary)},
    {"cuKernelGetName", 12030, as_pointer(cuKernelGetName)},
    {"cuKernelGetParamInfo", 12040, as_pointer(cuKernelGetParamInfo)},
    {"cuKernelSetAttribute", 12000, as_pointer(cuKernelSetAttribute)},
    {"cuKernelSetCacheConfig", 12000, as_pointer(cuKernelSetCacheConfig)},
    {"cuLaunchCooperativeKernel", 9000, as_pointer(cuLaunchCooperativeKernel)},
    {"cuLaunchHostFunc", 10000, as_pointer(cuLaunchHostFunc)},
    {"cuLaunchKernel", 4000, as_pointer(cuLaunchKernel)},
    {"cuLaunchKernelEx", 11060, as_pointer(cuLaunchKernelEx)},
    {"cuLibraryEnumerateKernels", 12040, as_pointer(cuLibraryEnumerateKernels)},
    {"cuLibraryGetGlobal", 12000, as_pointer(cuLibraryGetGlobal)},
    {"cuLibraryGetKernel", 12000, as_pointer(cuLibraryGetKernel)},
    {"cuLibraryGetKernelCount", 12040, as_pointer(cuLibraryGetKernelCount)},
    {"cuLibraryGetModule", 12000, as_pointer(cuLibraryGetModule)},
    {"cuLibraryLoadData", 12000, as_pointer(cuLibraryLoadData)},
    {"cuLibraryLoadFromFile", 12000, as_pointer(cuLibraryLoadFromFile)},
    {"cuLibraryUnload", 12000, as_pointer(cuLibraryUnload)},
    {"cuMemAdvise", 8000, as_pointer(cuMemAdvise)},
    {"cuMemAdvise", 12020, as_pointer(cuMemAdvise_v2)},
    {"cuMemAlloc", 3020, as_pointer(cuMemAlloc_v2)},
    {"cuMemAllocAsync", 11020, as_pointer(cuMemAllocAsync)},
    {"cuMemAllocFromPoolAsync", 11020, as_pointer(cuMemAllocFromPoolAsync)},
    {"cuMemAllocHost", 3020, as_pointer(cuMemAllocHost_v2)},
    {"cuMemAllocManaged", 6000, as_pointer(cuMemAllocManaged)},
    {"cuMemAllocPitch", 3020, as_pointer(cuMemAllocPitch_v2)},
    {"cuMemFree", 3020, as_pointer(cuMemFree_v2)},
    {"cuMemFreeAsync", 11020, as_pointer(cuMemFreeAsync)},
    {"cuMemFreeHost", 2000, as_pointer(cuMemFreeHost)},
    {"cuMemGetAddressRange", 3020, as_pointer(cuMemGetAddressRange_v2)},
    {"cuMemGetInfo", 3020, as_pointer(cuMemGetInfo_v2)},
    {"cuMemHostAlloc", 2020, as_pointer(cuMemHostAlloc)},
    {"cuMemHostGetDevicePointer", 3020, as_pointer(cuMemHostGetDevicePointer_v2)},
    {"cuMemHostGetFlags", 2030, as_pointer(cuMemHostGetFlags)},
    {"cuMemHostRegister", 6050, as_pointer(cuMemHostRegister_v2)},
    {"cuMemHostUnregister", 4000, as_pointer(cuMemHostUnregister)},
    {"cuMemPoolCreate", 11020, as_pointer(cuMemPoolCreate)},
    {"cuMemPoolDestroy", 11020, as_pointer(cuMemPoolDestroy)},
    {"cuMemPoolGetAttribute", 11020, as_pointer(cuMemPoolGetAttribute)},
    {"cuMemPoolSetAccess", 11020, as_pointer(cuMemPoolSetAccess)},
    {"cuMemPoolSetAttribute", 11020, as_pointer(cuMemPoolSetAttribute)},
    {"cuMemPoolTrimTo", 11020, as_pointer(cuMemPoolTrimTo)},
    {"cuMemPrefetchAsync", 8000, as_pointer(cuMemPrefetchAsync)},
    {"cuMemPrefetchAsync", 12020, as_pointer(cuMemPrefetchAsync_v2)},
    {"cuMemcpy", 4000, as_pointer(cuMemcpy)},
    {"cuMemcpy2D", 3020, as_pointer(cuMemcpy2D_v2)},
    {"cuMemcpy2DAsync", 3020, as_pointer(cuMemcpy2DAsync_v2)},
    {"cuMemcpy2DUnaligned", 3020, as_pointer(cuMemcpy2DUnaligned_v2)},
    {"cuMemcpy3D", 3020, as_pointer(cuMemcpy3D_v2)},
    {"cuMemcpy3DAsync", 3020, as_pointer(cuMemcpy3DAsync_v2)},
    {"cuMemcpy3DPeer", 4000, as_pointer(cuMemcpy3DPeer)},
    {"cuMemcpy3DPeerAsync", 4000, as_pointer(cuMemcpy3DPeerAsync)},
    {"cuMemcpyAsync", 4000, as_pointer(cuMemcpyAsync)},
    {"cuMemcpyDtoD", 3020, as_pointer(cuMemcpyDtoD_v2)},
    {"cuMemcpyDtoDAsync", 3020, as_pointer(cuMemcpyDtoDAsync_v2)},
    {"cuMemcpyDtoH", 3020, as_pointer(cuMemcpyDtoH_v2)},
    {"cuMemcpyDtoHAsync", 3020, as_pointer(cuMemcpyDtoHAsync_v2)},
    {"cuMemcpyHtoD", 3020, as_pointer(cuMemcpyHtoD_v2)},
    {"cuMemcpyHtoDAsync", 3020, as_pointer(cuMemcpyHtoDAsync_v2)},
    {"cuMemcpyPeer", 4000, as_pointer(cuMemcpyPeer)},
    {"cuMemcpyPeerAsync", 4000, as_pointer(cuMemcpyPeerAsync)},
    {"cuMemsetD16", 3020, as_pointer(cuMemsetD16_v2)},
    {"cuMemsetD16Async", 3020, as_pointer(cuMemsetD16Async)},
    {"cuMemsetD2D16", 3020, as_pointer(cuMemsetD2D16_v2)},
    {"cuMemsetD2D16Async", 3020, as_pointer(cuMemsetD2D16Async)},
    {"cuMemsetD2D32", 3020, as_pointer(cuMemsetD2D32_v2)},
    {"cuMemsetD2D32Async", 3020, as_pointer(cuMemsetD2D32Async)},
    {"cuMemsetD2D8", 3020, as_pointer(cuMemsetD2D8_v2)},
    {"cuMemsetD2D8Async", 3020, as_pointer(cuMemsetD2D8Async)},
    {"cuMemsetD32", 3020, as_pointer(cuMemsetD32_v2)},
    {"cuMemsetD32Async", 3020, as_pointer(cuMemsetD32Async)},
    {"cuMemsetD8", 3020, as_pointer(cuMemsetD8_v2)},
    {"cuMemsetD8Async", 3020, as_pointer(cuMemsetD8Async)},
    {"cuModuleEnumerateFunctions", 12040, as_pointer(cuModuleEnumerateFunctions)},
    {"cuModuleGetFunction", 2000, as_pointer(cuModuleGetFunction)},
    {"cuModuleGetFunctionCount", 12040, as_pointer(cuModuleGetFunctionCount)},
    {"cuModuleGetGlobal", 3020, as_pointer(cuModuleGetGlobal_v2)},
    {"cuModuleGetLoadingMode", 11070, as_pointer(cuModuleGetLoadingMode)},
    {"cuModuleLoad", 2000, as_pointer(cuModuleLoad)},
    {"cuModuleLoadData", 2000, as_pointer(cuModuleLoadData)},
    {"cuModuleLoadDataEx", 2010, as_pointer(cuModuleLoadDataEx)},
    {"cuModuleLoadFatBinary", 2000, as_pointer(cuModuleLoadFatBinary)},
    {"cuModuleUnload", 2000, as_pointer(cuModuleUnload)},
    {"cuOccupancyAvailableDynamicSMemPerBlock", 10020,
     as_pointer(cuOccupancyAvailableDynamicSMemPerBlock)},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050,
     as_pointer(cuOccupancyMaxActiveBlocksPerMultiprocessor)},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 7000,
     as_pointer(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)},
    {"cuOccupancyMaxActiveClusters", 11070, as_pointer(cuOccupancyMaxActiveClusters)},
    {"cuOccupancyMaxPotentialBlockSize", 6050, as_pointer(cuOccupancyMaxPotentialBlockSize)},
    {"cuOccupancyMaxPotentialBlockSizeWithFlags", 7000,
     as_pointer(cuOccupancyMaxPotentialBlockSizeWithFlags)},
    {"cuOccupancyMaxPotentialClusterSize", 11070, as_pointer(cuOccupancyMaxPotentialClusterSize)},
    {"cuPointerGetAttribute", 4000, as_pointer(cuPointerGetAttribute)},
    {"cuPointerGetAttributes", 7000, as_pointer(cuPointerGetAttributes)},
    {"cuPointerSetAttribute", 6000, as_pointer(cuPointerSetAttribute)},
    {"cuProfilerStart", 4000, as_pointer(cuProfilerStart)},
    {"cuProfilerStop", 4000, as_pointer(cuProfilerStop)},
    {"cuStreamAddCallback", 5000, as_pointer(cuStreamAddCallback)},
    {"cuStreamAttachMemAsync", 6000, as_pointer(cuStreamAttachMemAsync)},
    {"cuStreamBeginCapture", 10000, as_pointer(cuStreamBeginCapture)},
    {"cuStreamBeginCapture", 10010, as_pointer(cuStreamBeginCapture_v2)},
    {"cuStreamBeginCaptureToGraph", 12030, as_pointer(cuStreamBeginCaptureToGraph)},
    {"cuStreamCreate", 2000, as_pointer(cuStreamCreate)},
    {"cuStreamCreateWithPriority", 5050, as_pointer(cuStreamCreateWithPriority)},
    {"cuStreamDestroy", 4000, as_pointer(cuStreamDestroy_v2)},
    {"cuStreamEndCapture", 10000, as_pointer(cuStreamEndCapture)},
    {"cuStreamGetCaptureInfo", 10010, as_pointer(cuStreamGetCaptureInfo)},
    {"cuStreamGetCaptureInfo", 11030, as_pointer(cuStreamGetCaptureInfo_v2)},
    {"cuStreamGetCaptureInfo", 12030, as_pointer(cuStreamGetCaptureInfo_v3)},
    {"cuStreamGetCtx", 9020, as_pointer(cuStreamGetCtx)},
    {"cuStreamGetCtx", 12050, as_pointer(cuStreamGetCtx_v2)},
    {"cuStreamGetDevice", 12080, as_pointer(cuStreamGetDevice)},
    {"cuStreamGetFlags", 5050, as_pointer(cuStreamGetFlags)},
    {"cuStreamGetId", 12000, as_pointer(cuStreamGetId)},
    {"cuStreamGetPriority", 5050, as_pointer(cuStreamGetPriority)},
    {"cuStreamIsCapturing", 10000, as_pointer(cuStreamIsCapturing)},
    {"cuStreamQuery", 2000, as_pointer(cuStreamQuery)},
    {"cuStreamSynchronize", 2000, as_pointer(cuStreamSynchronize)},
    {"cuStreamUpdateCaptureDependencies", 11030, as_pointer(cuStreamUpdateCaptureDependencies)},
    {"cuStreamUpdateCaptureDependencies", 12030, as_pointer(cuStreamUpdateCaptureDependencies_v2)},
    {"cuStreamWaitEvent", 3020, as_pointer(cuStreamWaitEvent)},
    {"cuStreamWaitValue32", 11070, as_pointer(cuStreamWaitValue32_v2)},
    {"cuStreamWaitValue64", 11070, as_pointer(cuStreamWaitValue64_v2)},
    {"cuStreamWriteValue32", 11070, as_pointer(cuStreamWriteValue32_v2)},
    {"cuStreamWriteValue64", 11070, as_pointer(cuStreamWriteValue64_v2)},
    {"cuThreadExchangeStreamCaptureMode", 10010, as_pointer(cuThreadExchangeStreamCaptureMode)},
    {"cuUserObjectCreate", 11030, as_pointer(cuUserObjectCreate)},
    {"cuUserObjectRelease", 11030, as_pointer(cuUserObjectRelease)},
    {"cuUserObjectRetain", 11030, as_pointer(cuUserObjectRetain)},
    {"cyrtEmuGuard", 0, as_pointer(cyrtEmuGuard)},
    {"cyrtEmuLastFault", 0, as_pointer(cyrtEmuLastFault)},
    {"cyrtEmuSetRanges", 0, as_pointer(cyrtEmuSetRanges)},
};

// The newest function of that name up to `version`.
CUresult look_up(const char* name, void** out, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
    *out = nullptr;
    if (status) *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    constexpr cuuint64_t known =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (version > kDriverVersion || (flags & ~known)) return CUDA_ERROR_INVALID_VALUE;
    for (const Entry& entry : kEntries) {
        if (std::strcmp(entry.name, name) != 0) continue;
        if (entry.since <= version) {
            *out = entry.function;
            if (status) *status = CU_GET_PROC_ADDRESS_SUCCESS;
        } else if (!*out && status) {
            *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        }
    }
    return CUDA_SUCCESS;
}

}  // namespace

}  // namespace cyrt::emu

using namespace cyrt::emu;

CYRT_API CUresult cuGetProcAddress_v2(const char* name, void** out, int version, cuuint64_t flags,
                                      CUdriverProcAddressQueryResult* status) {
    if (!name || !out) return CUDA_ERROR_INVALID_VALUE;
    return look_up(name, out, version, flags, status);
}

// The first version has no status: a missing function is an error.
CYRT_API CUresult cuGetProcAddress(const char* name, void** out, int version, cuuint64_t flags) {
    if (!name || !out) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = look_up(name, out, version, flags, nullptr);
    return result == CUDA_SUCCESS && !*out ? CUDA_ERROR_NOT_FOUND : result;
}

// The driver's private tables do not exist; their users work without them.
CYRT_API CUresult cuGetExportTable(const void** table, const CUuuid*) {
    if (!table) return CUDA_ERROR_INVALID_VALUE;
    *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
}
