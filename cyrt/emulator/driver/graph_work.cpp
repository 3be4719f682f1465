#include "driver/graph_work.hpp"

#include "driver/context.hpp"
#include "driver/copy_params.hpp"
#include "driver/device.hpp"
#include "driver/function.hpp"
#include "driver/library.hpp"
#include "driver/memory.hpp"

namespace cyrt::emu {

namespace {

OperandPlace operand_place(uint64_t address, uint64_t span) {
    OperandPlace result;
    result.place = place_of(address, span);
    if (result.place == MemoryPlace::pageable) return result;
    auto allocation = allocation_at(address);
    result.device = device_of(address);
    result.context = allocation ? allocation->context : 0;
    return result;
}

// A kernel is identified by a function, or by a library's kernel and a context.
std::shared_ptr<Function> function_of(const CUDA_KERNEL_NODE_PARAMS_v2& params) {
    require((params.func != nullptr) != (params.kern != nullptr));
    if (params.func)
        if (auto function = functions().find(params.func)) {
            function->context().check();
            return function;
        }
    const void* handle = params.func ? static_cast<const void*>(params.func) : params.kern;
    std::shared_ptr<Kernel> kernel = kernels().find(handle);
    require(kernel != nullptr, CUDA_ERROR_INVALID_HANDLE);
    std::shared_ptr<Context> context =
        params.ctx ? context_from(params.ctx) : usable_context().shared_from_this();
    context->check();
    return kernel->function_in(*context);
}

}  // namespace

CUgraphNodeType type_of(const Work& work) {
    constexpr CUgraphNodeType types[] = {
        CU_GRAPH_NODE_TYPE_EMPTY,        CU_GRAPH_NODE_TYPE_KERNEL,    CU_GRAPH_NODE_TYPE_MEMCPY,
        CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_HOST,      CU_GRAPH_NODE_TYPE_GRAPH,
        CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT};
    static_assert(std::size(types) == std::variant_size_v<Work>, "one type for each kind of work");
    return types[work.index()];
}

bool can_be_disabled(const Work& work) {
    return std::holds_alternative<KernelWork>(work) || std::holds_alternative<CopyWork>(work) ||
           std::holds_alternative<FillWork>(work);
}

WorkPtr kernel_work(const CUDA_KERNEL_NODE_PARAMS_v2& params, const LaunchAttributes& attributes) {
    LaunchShape shape{{params.gridDimX, params.gridDimY, params.gridDimZ},
                      {params.blockDimX, params.blockDimY, params.blockDimZ},
                      params.sharedMemBytes,
                      attributes.cooperative(),
                      attributes.cluster()};
    return captured_kernel(
        kernel_operation(function_of(params), shape, params.kernelParams, params.extra), attributes,
        params.extra != nullptr);
}

WorkPtr captured_kernel(KernelOperation operation, LaunchAttributes attributes, bool packed) {
    return make_work(KernelWork{std::move(operation), std::move(attributes), packed});
}

WorkPtr copy_work(const CUDA_MEMCPY3D& params, std::shared_ptr<Context> context) {
    CopyWork work;
    work.params = params;
    work.operation = copy_from(params);
    require(!work.operation.empty());
    work.dst = operand_place(work.operation.dst.address, work.operation.span(work.operation.dst));
    work.src = operand_place(work.operation.src.address, work.operation.span(work.operation.src));
    require(params.dstMemoryType != CU_MEMORYTYPE_DEVICE ||
            work.dst.place != MemoryPlace::pageable);
    require(params.srcMemoryType != CU_MEMORYTYPE_DEVICE ||
            work.src.place != MemoryPlace::pageable);
    work.context = std::move(context);
    return make_work(std::move(work));
}

WorkPtr captured_copy(const CopyOperation& copy, std::shared_ptr<Context> context) {
    auto type = [&](const CopySide& side) {
        return place_of(side.address, copy.span(side)) == MemoryPlace::device ? CU_MEMORYTYPE_DEVICE
                                                                              : CU_MEMORYTYPE_HOST;
    };
    return copy_work(params_of(copy, type(copy.dst), type(copy.src)), std::move(context));
}

WorkPtr fill_work(const FillOperation& fill, std::shared_ptr<Context> context) {
    require(fill.element == 1 || fill.element == 2 || fill.element == 4);
    require(!fill.empty());
    fill.check();
    return make_work(FillWork{fill, operand_place(fill.address, fill.span()), std::move(context)});
}

WorkPtr host_work(CUhostFn function, void* data) {
    require(function != nullptr);
    return make_work(HostWork{{function, data}});
}

}  // namespace cyrt::emu
