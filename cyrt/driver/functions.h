// The driver functions that cyrt calls; each is listed once.
//
// F(base name, the CUDA version of its signature, true if a driver may lack it); ALIAS has another
// name in the table. cuGetProcAddress finds a function by name and version; cudaTypedefs.h has the
// types. No macro here passes a name to another macro: cuda.h defines some names as macros.
#pragma once

#include <stddef.h>

#include <cuda.h>
#include <cudaTypedefs.h>

#define CYRT_DRIVER_FUNCTIONS(F, ALIAS)                     \
    F(cuInit, 2000, 0)                                      \
    F(cuDriverGetVersion, 2020, 0)                          \
    F(cuGetErrorName, 6000, 0)                              \
    F(cuGetErrorString, 6000, 0)                            \
    F(cuDeviceGet, 2000, 0)                                 \
    F(cuDeviceGetCount, 2000, 0)                            \
    F(cuDeviceGetName, 2000, 0)                             \
    F(cuDeviceGetUuid, 11040, 0)                            \
    F(cuDeviceGetAttribute, 2000, 0)                        \
    F(cuDevicePrimaryCtxRetain, 7000, 0)                    \
    F(cuDevicePrimaryCtxReset, 11000, 0)                    \
    F(cuCtxGetCurrent, 4000, 0)                             \
    F(cuCtxPushCurrent, 4000, 0)                            \
    F(cuCtxPopCurrent, 4000, 0)                             \
    F(cuCtxGetDevice, 2000, 0)                              \
    F(cuCtxGetStreamPriorityRange, 5050, 0)                 \
    F(cuCtxGetLimit, 3010, 0)                               \
    F(cuCtxSetLimit, 3010, 0)                               \
    F(cuMemGetInfo, 3020, 0)                                \
    F(cuMemAlloc, 3020, 0)                                  \
    F(cuMemFree, 3020, 0)                                   \
    F(cuMemAllocManaged, 6000, 0)                           \
    F(cuMemHostAlloc, 2020, 0)                              \
    F(cuMemFreeHost, 2000, 0)                               \
    F(cuMemcpyAsync, 4000, 0)                               \
    F(cuMemcpyHtoDAsync, 3020, 0)                           \
    F(cuMemcpyDtoHAsync, 3020, 0)                           \
    F(cuMemsetD8Async, 3020, 0)                             \
    F(cuMemsetD16Async, 3020, 0)                            \
    F(cuMemsetD32Async, 3020, 0)                            \
    F(cuPointerGetAttribute, 4000, 0)                       \
    F(cuStreamCreateWithPriority, 5050, 0)                  \
    F(cuStreamSynchronize, 2000, 0)                         \
    F(cuStreamQuery, 2000, 0)                               \
    F(cuStreamWaitEvent, 3020, 0)                           \
    F(cuStreamGetPriority, 5050, 0)                         \
    F(cuStreamGetCtx, 9020, 0)                              \
    F(cuStreamGetId, 12000, 0)                              \
    F(cuEventCreate, 2000, 0)                               \
    F(cuEventDestroy, 4000, 0)                              \
    F(cuEventRecord, 2000, 0)                               \
    F(cuEventQuery, 2000, 0)                                \
    F(cuEventElapsedTime, 2000, 0)                          \
    F(cuModuleLoadDataEx, 2010, 0)                          \
    F(cuModuleUnload, 2000, 0)                              \
    F(cuModuleGetFunction, 2000, 0)                         \
    F(cuModuleGetGlobal, 3020, 0)                           \
    F(cuModuleGetFunctionCount, 12040, 1)                   \
    F(cuModuleEnumerateFunctions, 12040, 1)                 \
    F(cuFuncGetName, 12030, 1)                              \
    F(cuFuncGetAttribute, 2020, 0)                          \
    F(cuFuncSetAttribute, 9000, 0)                          \
    F(cuFuncGetParamInfo, 12040, 1)                         \
    F(cuKernelGetName, 12030, 1)                            \
    F(cuKernelGetParamInfo, 12040, 1)                       \
    F(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, 0) \
    F(cuOccupancyMaxPotentialBlockSize, 6050, 0)            \
    F(cuLaunchKernel, 4000, 0)                              \
    F(cuGraphCreate, 10000, 0)                              \
    F(cuGraphDestroy, 10000, 0)                             \
    F(cuGraphAddKernelNode, 12000, 0)                       \
    F(cuGraphAddMemcpyNode, 10000, 0)                       \
    F(cuGraphAddEmptyNode, 10000, 0)                        \
    F(cuGraphAddChildGraphNode, 10000, 0)                   \
    F(cuGraphClone, 10000, 0)                               \
    F(cuGraphGetNodes, 10000, 0)                            \
    F(cuStreamBeginCapture, 10010, 0)                       \
    F(cuStreamEndCapture, 10000, 0)                         \
    F(cuStreamIsCapturing, 10000, 0)                        \
    F(cuStreamGetCaptureInfo, 11030, 0)                     \
    F(cuThreadExchangeStreamCaptureMode, 10010, 0)          \
    F(cuUserObjectCreate, 11030, 0)                         \
    F(cuGraphRetainUserObject, 11030, 0)                    \
    F(cuGraphAddDependencies, 10000, 0)                     \
    F(cuGraphKernelNodeSetAttribute, 11000, 0)              \
    F(cuGraphKernelNodeGetAttribute, 11000, 0)              \
    F(cuGraphKernelNodeGetParams, 12000, 0)                 \
    F(cuGraphMemsetNodeGetParams, 10000, 0)                 \
    F(cuGraphNodeGetType, 10000, 0)                         \
    F(cuGraphChildGraphNodeGetGraph, 10000, 0)              \
    ALIAS(cuGraphGetTypedEdges, cuGraphGetEdges, 12030, 1)  \
    F(cuGraphInstantiateWithFlags, 11040, 0)                \
    F(cuGraphExecDestroy, 10000, 0)                         \
    F(cuGraphLaunch, 10000, 0)                              \
    F(cuGraphExecKernelNodeSetParams, 12000, 0)             \
    F(cuGraphExecMemcpyNodeSetParams, 10020, 0)             \
    F(cuGraphExecChildGraphNodeSetParams, 11010, 0)         \
    F(cuGraphExecUpdate, 12000, 0)                          \
    F(cuLaunchKernelEx, 11060, 0)                           \
    ALIAS(cuGraphAddTypedDependencies, cuGraphAddDependencies, 12030, 1)

typedef struct {
#define CYRT_ALIAS(FIELD, NAME, VERSION, OPTIONAL) PFN_##NAME##_v##VERSION FIELD;
#define CYRT_FIELD(NAME, VERSION, OPTIONAL) PFN_##NAME##_v##VERSION NAME;
    CYRT_DRIVER_FUNCTIONS(CYRT_FIELD, CYRT_ALIAS)
#undef CYRT_FIELD
#undef CYRT_ALIAS
    // Only the emulated device has these: its description of a device's fault; the ranges that
    // follow a kernel's parameters (cyrt/emulator/exec/ranges.hpp), and the memory that they limit.
    CUresult(CUDAAPI* cyrtEmuLastFault)(CUdevice device, char* text, size_t size);
    CUresult(CUDAAPI* cyrtEmuSetRanges)(CUfunction function, size_t count, const char* parameters);
    CUresult(CUDAAPI* cyrtEmuGuard)(CUdeviceptr address);
} CyrtDriver;

typedef struct {
    const char* name;
    int version, optional;
    size_t offset;  // offset of the field in CyrtDriver
} CyrtFunction;

static const CyrtFunction cyrt_functions[] = {
#define CYRT_ALIAS(FIELD, NAME, VERSION, OPTIONAL) \
    {#NAME, VERSION, OPTIONAL, offsetof(CyrtDriver, FIELD)},
#define CYRT_ENTRY(NAME, VERSION, OPTIONAL) {#NAME, VERSION, OPTIONAL, offsetof(CyrtDriver, NAME)},
    CYRT_DRIVER_FUNCTIONS(CYRT_ENTRY, CYRT_ALIAS)
#undef CYRT_ENTRY
#undef CYRT_ALIAS
        {"cyrtEmuLastFault", 12000, 1, offsetof(CyrtDriver, cyrtEmuLastFault)},
    {"cyrtEmuSetRanges", 12000, 1, offsetof(CyrtDriver, cyrtEmuSetRanges)},
    {"cyrtEmuGuard", 12000, 1, offsetof(CyrtDriver, cyrtEmuGuard)},
};
enum { CYRT_NUM_FUNCTIONS = sizeof(cyrt_functions) / sizeof(cyrt_functions[0]) };
