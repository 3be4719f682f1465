// Launching kernels.
#include "driver/kernel.hpp"

#include <atomic>
#include <cstdio>

#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/function.hpp"
#include "driver/occupancy.hpp"
#include "driver/stream.hpp"

namespace cyrt::emu {

namespace {

std::atomic<uint64_t> last_grid{0};

// Device printf: at once, so that nothing is lost when the process ends badly.
void print(const char* text, size_t size) {
    std::fwrite(text, 1, size, stdout);
    std::fflush(stdout);
}

}  // namespace

void KernelOperation::run(Context& context) {
    Launch launch;
    launch.program = &function->program();
    launch.kernel_name = function->name;
    launch.grid = grid;
    launch.block = block;
    launch.dynamic_shared = dynamic_shared;
    launch.params = params.data();
    launch.cooperative = cooperative;
    launch.arena = &context.device.arena;
    launch.grid_id = ++last_grid;
    launch.multiprocessors = limits::kMultiprocessors;
    launch.cancel = &context.cancelled();
    launch.print = print;
    if (auto fault = cyrt::emu::run(launch)) context.fail(*fault);
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

namespace {

void check_grid(Dim3 grid) {
    require(grid.x && grid.y && grid.z);
    require(grid.x <= limits::kGridX && grid.y <= limits::kGridY && grid.z <= limits::kGridZ);
}

// The parameters where `params` holds a pointer to each.
void pack(const KernelInfo& info, void** params, ParamBlock& out) {
    std::byte* block = out.reset(info.param_bytes);
    require(params || info.params.empty());
    for (size_t i = 0; i < info.params.size(); ++i) {
        require(params[i]);
        std::memcpy(block + info.params[i].offset, params[i], info.params[i].size);
    }
}

// The parameters where `extra` names a buffer that holds them all.
void pack_extra(const KernelInfo& info, void** extra, ParamBlock& out) {
    const void* buffer = nullptr;
    const size_t* size = nullptr;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = static_cast<const size_t*>(extra[1]);
        else
            throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
    std::byte* block = out.reset(info.param_bytes);
    require(size && (buffer || *size == 0));
    require(*size <= info.param_bytes, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    if (*size) std::memcpy(block, buffer, *size);
}

struct Shape {
    Dim3 grid, block;
    uint32_t dynamic_shared = 0;
    bool cooperative = false;
};

void launch(Context& context, CUfunction handle, const Shape& shape, CUstream stream,
            void** params, void** extra) {
    std::shared_ptr<Function> function = function_from(handle, context);
    std::shared_ptr<Stream> queue = stream_from(stream, context);
    check_grid(shape.grid);
    function->check_block(shape.block);
    require(shape.dynamic_shared <= function->max_dynamic_shared());
    require(!params || !extra);
    if (shape.cooperative) {
        uint64_t room = uint64_t(limits::kMultiprocessors) *
                        blocks_per_multiprocessor(*function, uint32_t(shape.block.count()),
                                                  shape.dynamic_shared);
        require(shape.grid.count() <= room, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    }
    KernelOperation operation;
    if (extra)
        pack_extra(function->info, extra, operation.params);
    else
        pack(function->info, params, operation.params);
    function->program();                // errors of preparing it are the caller's
    operation.grid = shape.grid;
    operation.block = shape.block;
    operation.dynamic_shared = shape.dynamic_shared;
    operation.cooperative = shape.cooperative;
    operation.function = std::move(function);
    queue->submit(std::move(operation));
}

// Attributes that ask for what the emulated device does anyway, or may ignore, pass.
void apply(const CUlaunchAttribute& attribute, Shape& shape) {
    const CUlaunchAttributeValue& value = attribute.value;
    switch (attribute.id) {
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            shape.cooperative = value.cooperative != 0;
            return;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            // Zeros mean unset.
            require(value.clusterDim.x <= 1 && value.clusterDim.y <= 1 && value.clusterDim.z <= 1,
                    CUDA_ERROR_NOT_SUPPORTED);
            return;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            throw DriverError{CUDA_ERROR_NOT_SUPPORTED};
        default:
            require(attribute.id >= CU_LAUNCH_ATTRIBUTE_IGNORE &&
                    attribute.id < CU_LAUNCH_ATTRIBUTE_MAX);
    }
}

}  // namespace

CYRT_API CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                 unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                 CUstream stream, void** params, void** extra) {
    return context_entry([&](Context& context) {
        launch(context, function, {{gx, gy, gz}, {bx, by, bz}, shared, false}, stream, params,
               extra);
    });
}

CYRT_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy,
                                            unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                            unsigned shared, CUstream stream, void** params) {
    return context_entry([&](Context& context) {
        launch(context, function, {{gx, gy, gz}, {bx, by, bz}, shared, true}, stream, params,
               nullptr);
    });
}

CYRT_API CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                   void** params, void** extra) {
    return context_entry([&](Context& context) {
        require(config && (config->attrs || config->numAttrs == 0));
        Shape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                    {config->blockDimX, config->blockDimY, config->blockDimZ},
                    config->sharedMemBytes, false};
        for (unsigned i = 0; i < config->numAttrs; ++i) apply(config->attrs[i], shape);
        launch(context, function, shape, config->hStream, params, extra);
    });
}
