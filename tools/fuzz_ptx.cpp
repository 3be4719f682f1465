// Loads PTX on the emulated device and runs its kernels. tools/fuzz_ptx.py builds this program with
// sanitizers and sends it texts.
//
// Standard input: repeatedly, a text's length in 4 bytes and the text. Standard output: a line per
// text, with the codes of its load and of its launches.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "driver/api.hpp"

namespace {

constexpr auto kPatience = std::chrono::milliseconds(300);  // timeout of a kernel that may not end
constexpr size_t kBuffer = 1 << 16;
constexpr unsigned kMostKernels = 4;  // per module

CUdeviceptr buffer;

void demand(CUresult code, const char* what) {
    if (code == CUDA_SUCCESS) return;
    std::fprintf(stderr, "%s: %d\n", what, code);
    std::exit(3);
}

void open_context() {
    CUcontext context;
    demand(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    demand(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    demand(cuMemAlloc_v2(&buffer, kBuffer), "cuMemAlloc");
    demand(cuMemsetD8_v2(buffer, 1, kBuffer), "cuMemsetD8");
}

// False if the context is lost: by a fault, or because the work was abandoned.
bool wait() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    CUresult code;
    while ((code = cuStreamQuery(nullptr)) == CUDA_ERROR_NOT_READY) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return code == CUDA_SUCCESS;
}

// Pointers to the buffer for pointer parameters, small numbers for all others.
CUresult launch(CUfunction function, unsigned cluster) {
    std::vector<std::vector<char>> values;
    for (size_t index = 0;; ++index) {
        size_t offset, size;
        if (cuFuncGetParamInfo(function, index, &offset, &size) != CUDA_SUCCESS) break;
        values.emplace_back(size + 8);
        const uint64_t number = size == 8 ? buffer + 64 * index : 40;
        std::memcpy(values.back().data(), &number, sizeof number);
    }
    std::vector<void*> params;
    for (auto& value : values) params.push_back(value.data());
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = cluster;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    CUlaunchConfig config{};
    config.gridDimX = 4;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 40;  // a whole warp and a partial one
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = 256;
    config.attrs = &attribute;
    config.numAttrs = cluster > 1;
    return cuLaunchKernelEx(&config, function, params.data(), nullptr);
}

void run_module(CUmodule module) {
    unsigned count = 0;
    demand(cuModuleGetFunctionCount(&count, module), "cuModuleGetFunctionCount");
    std::vector<CUfunction> functions(count < kMostKernels ? count : kMostKernels);
    demand(cuModuleEnumerateFunctions(functions.data(), unsigned(functions.size()), module),
           "cuModuleEnumerateFunctions");
    for (size_t i = 0; i < functions.size(); ++i) {
        const CUresult code = launch(functions[i], i % 2 ? 2 : 1);
        const bool healthy = wait();
        std::printf(" %d%s", code, healthy ? "" : "!");
        if (healthy) continue;
        demand(cuDevicePrimaryCtxReset_v2(0), "cuDevicePrimaryCtxReset");
        return open_context();
    }
    demand(cuModuleUnload(module), "cuModuleUnload");
}

}  // namespace

int main() {
    demand(cuInit(0), "cuInit");
    open_context();
    uint32_t length;
    std::string text;
    while (std::fread(&length, sizeof length, 1, stdin) == 1) {
        text.resize(length);
        if (std::fread(text.data(), 1, length, stdin) != length) return 0;
        char log[2048];
        CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
        void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
        CUmodule module;
        const CUresult code = cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
        std::printf("%d", code);
        if (code == CUDA_SUCCESS) run_module(module);
        std::printf("\n");
        std::fflush(stdout);
    }
}
