// Launching kernels.
#include "driver/kernel.hpp"

#include <atomic>
#include <cstdio>
#include <deque>
#include <string>

#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/function.hpp"
#include "driver/launch_attributes.hpp"
#include "driver/module.hpp"
#include "driver/occupancy.hpp"
#include "driver/graph_work.hpp"
#include "driver/stream.hpp"
#include "exec/code.hpp"

namespace cyrt::emu {

namespace {

std::atomic<uint64_t> last_grid{0};

// The output of one launch's printf, written when it has ended. As on a GPU, the oldest is lost if
// it exceeds the limit.
class PrintBuffer {
  public:
    explicit PrintBuffer(size_t limit) : limit_(limit) {}
    ~PrintBuffer() {
        for (const std::string& text : texts_) std::fwrite(text.data(), 1, text.size(), stdout);
        if (!texts_.empty()) std::fflush(stdout);
    }
    PrintBuffer(const PrintBuffer&) = delete;
    PrintBuffer& operator=(const PrintBuffer&) = delete;

    void add(const char* text, size_t size) {
        if (size > limit_) return;
        texts_.emplace_back(text, size);
        for (used_ += size; used_ > limit_; texts_.pop_front()) used_ -= texts_.front().size();
    }

  private:
    const size_t limit_;
    size_t used_ = 0;
    std::deque<std::string> texts_;
};

void check_grid(Dim3 grid) {
    require(grid.x && grid.y && grid.z);
    require(grid.x <= limits::kGridX && grid.y <= limits::kGridY && grid.z <= limits::kGridZ);
}

// The parameters if `params` holds a pointer to each, and behind these one to the ranges if the
// launches of the function have some.
void pack(const Function& function, void** params, ParamBlock& out) {
    const KernelInfo& info = function.info;
    const size_t ranges = function.num_ranges();
    std::byte* block = out.reset(ranges ? function.range_offset() + ranges * sizeof(UsableRange)
                                        : info.param_bytes);
    require(params || (info.params.empty() && !ranges));
    if (ranges) {
        require(params[info.params.size()]);
        std::memcpy(block + function.range_offset(), params[info.params.size()],
                    ranges * sizeof(UsableRange));
    }
    for (size_t i = 0; i < info.params.size(); ++i) {
        require(params[i]);
        std::memcpy(block + info.params[i].offset, params[i], info.params[i].size);
    }
}

std::optional<Fault> run_printing(Launch& launch, size_t limit) {
    PrintBuffer printed(limit);
    launch.print = [&](const char* text, size_t size) { printed.add(text, size); };
    return cyrt::emu::run(launch);
}

// The parameters if `extra` holds one buffer with all of them.
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

}  // namespace

void KernelOperation::run(Context& context, const KernelHooks& hooks) const {
    Launch launch;
    launch.program = &function->program();
    launch.kernel_name = function->name;
    launch.grid = function->grid_in_blocks(grid);
    launch.block = block;
    const Dim3 requested = cluster.x ? cluster : function->required_cluster();
    if (requested.x) launch.cluster = requested;
    launch.explicit_cluster = requested.x != 0;
    launch.dynamic_shared = dynamic_shared;
    launch.params = params.data();
    UsableRanges ranges;
    if (ranged) {
        ranges = {reinterpret_cast<const UsableRange*>(params.data() + function->range_offset()),
                  function->num_ranges(), &function->info, params.data(),
                  &function->declarations()};
        launch.ranges = &ranges;
    }
    launch.variable_at = [this](uint64_t address) { return function->module.variable_at(address); };
    launch.cooperative = cooperative;
    launch.arena = &context.device.arena;
    launch.grid_id = ++last_grid;
    launch.multiprocessors = limits::kMultiprocessors;
    launch.cancel = &context.cancelled();
    launch.heap = &context.heap;
    launch.stack_limit = uint32_t(context.limit(CU_LIMIT_STACK_SIZE));
    launch.wait_dependencies = hooks.wait_dependencies;
    launch.watch = hooks.watch;
    // A thread that waits sees the fault at once: the text is written before.
    if (auto fault = run_printing(launch, context.limit(CU_LIMIT_PRINTF_FIFO_SIZE)))
        context.fail(*fault);
}

LaunchShape shape_from(const CUlaunchConfig& config, const LaunchAttributes& attributes) {
    return {{config.gridDimX, config.gridDimY, config.gridDimZ},
            {config.blockDimX, config.blockDimY, config.blockDimZ},
            config.sharedMemBytes,
            attributes.cooperative(),
            attributes.cluster()};
}

void check_launch(const Function& function, const LaunchShape& shape) {
    const Dim3 grid = function.grid_in_blocks(shape.grid);
    check_grid(grid);
    function.check_block(shape.block);
    function.check_cluster(shape.cluster, grid);
    require(shape.dynamic_shared <= function.max_dynamic_shared());
    if (!shape.cooperative) return;
    uint64_t room =
        uint64_t(limits::kMultiprocessors) *
        blocks_per_multiprocessor(function, uint32_t(shape.block.count()), shape.dynamic_shared);
    require(grid.count() <= room, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

KernelOperation kernel_operation(std::shared_ptr<Function> function, const LaunchShape& shape,
                                 void** params, void** extra) {
    check_launch(*function, shape);
    require(!params || !extra);
    KernelOperation operation{shape, nullptr, {}, !extra && function->num_ranges() != 0};
    if (extra)
        pack_extra(function->info, extra, operation.params);
    else
        pack(*function, params, operation.params);
    // Errors of its preparation are reported to the caller.
    const Program& program = function->program();
    function->context().fix_limits(program.uses_heap, program.prints);
    operation.function = std::move(function);
    return operation;
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

namespace {

void launch(Stream& stream, CUfunction handle, const LaunchShape& shape,
            const LaunchAttributes& attributes, void** params, void** extra) {
    KernelOperation operation =
        kernel_operation(function_from(handle, stream.context()), shape, params, extra);
    if (!stream.capturing()) {
        stream.submit(std::move(operation));
        return;
    }
    capture_node(stream, captured_kernel(std::move(operation), attributes, extra != nullptr),
                 attributes.programmatic());
}

}  // namespace

CYRT_API CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                 unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                 CUstream handle, void** params, void** extra) {
    return stream_entry(handle, [&](Stream& stream) {
        launch(stream, function, {{gx, gy, gz}, {bx, by, bz}, shared}, {}, params, extra);
    });
}

CYRT_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy,
                                            unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                            unsigned shared, CUstream handle, void** params) {
    return stream_entry(handle, [&](Stream& stream) {
        CUlaunchAttributeValue cooperative{};
        cooperative.cooperative = 1;
        LaunchAttributes attributes;
        attributes.set(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative);
        launch(stream, function, {{gx, gy, gz}, {bx, by, bz}, shared, true}, attributes, params,
               nullptr);
    });
}

CYRT_API CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                                   void** extra) {
    return stream_entry(config ? config->hStream : nullptr, [&](Stream& stream) {
        require(config != nullptr);
        const LaunchAttributes attributes = attributes_from(*config);
        const LaunchShape shape = shape_from(*config, attributes);
        launch(stream, function, shape, attributes, params, extra);
    });
}
