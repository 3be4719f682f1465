#include "driver/graph_params.hpp"

#include "driver/context.hpp"

namespace cyrt::emu {

namespace {

template <class T>
const T& work_of(const Node& node) {
    const T* work = std::get_if<T>(&*node.work);
    require(work != nullptr);
    return *work;
}

template <class Params>
FillOperation fill_of(const Params& params) {
    return {params.dst,         params.pitch, params.value,
            params.elementSize, params.width, params.height};
}

// Versions of the structure for kernels only append fields.
template <class Params>
CUDA_KERNEL_NODE_PARAMS_v2 common_params(const Params& params) {
    CUDA_KERNEL_NODE_PARAMS_v2 result{};
    result.func = params.func;
    result.gridDimX = params.gridDimX;
    result.gridDimY = params.gridDimY;
    result.gridDimZ = params.gridDimZ;
    result.blockDimX = params.blockDimX;
    result.blockDimY = params.blockDimY;
    result.blockDimZ = params.blockDimZ;
    result.sharedMemBytes = params.sharedMemBytes;
    result.kernelParams = params.kernelParams;
    result.extra = params.extra;
    return result;
}

template <class Params>
CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(const Params& params) {
    CUDA_KERNEL_NODE_PARAMS_v2 result = common_params(params);
    result.kern = params.kern;
    result.ctx = params.ctx;
    return result;
}

void check_reserved(const CUgraphNodeParams& params) {
    for (int word : params.reserved0) require(word == 0);
    require(params.reserved2 == 0);
}

}  // namespace

std::shared_ptr<Context> context_or_current(CUcontext handle) {
    std::shared_ptr<Context> context =
        handle ? context_from(handle) : usable_context().shared_from_this();
    context->check();
    return context;
}

CUDA_KERNEL_NODE_PARAMS_v2 kernel_params_from(const CUDA_KERNEL_NODE_PARAMS_v1& params) {
    return common_params(params);
}

FillOperation fill_from(const CUDA_MEMSET_NODE_PARAMS_v1& params) { return fill_of(params); }

WorkPtr changed_kernel(const Node& node, const CUDA_KERNEL_NODE_PARAMS_v2& params) {
    return kernel_work(params, work_of<KernelWork>(node).attributes);
}

WorkPtr changed_copy(const Node& node, const CUDA_MEMCPY3D& params, CUcontext context) {
    const CopyWork& now = work_of<CopyWork>(node);
    return copy_work(params, context ? context_or_current(context) : now.context);
}

WorkPtr changed_fill(const Node& node, const CUDA_MEMSET_NODE_PARAMS& params, CUcontext context) {
    const FillWork& now = work_of<FillWork>(node);
    return fill_work(fill_of(params), context ? context_or_current(context) : now.context);
}

WorkPtr changed_event(const Node& node, CUevent event) {
    if (std::holds_alternative<RecordWork>(*node.work))
        return make_work(RecordWork{event_from(event)});
    work_of<WaitWork>(node);
    return make_work(WaitWork{event_from(event)});
}

std::shared_ptr<Graph> child_from(CUgraph handle) {
    std::shared_ptr<Graph> graph = graph_from(handle);
    require(!graph->being_captured);
    // it is a child already (as measured on driver 580)
    require(!graph->parent, CUDA_ERROR_NOT_SUPPORTED);
    std::shared_ptr<Graph> child = graph->clone(true);
    graphs().add(child);
    return child;
}

WorkPtr work_from(const CUgraphNodeParams& params, std::shared_ptr<Graph>& child) {
    check_reserved(params);
    switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return kernel_work(kernel_params(params.kernel), {});
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        require(params.memcpy.flags == 0);
        return copy_work(params.memcpy.copyParams, context_or_current(params.memcpy.copyCtx));
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return fill_work(fill_of(params.memset), context_or_current(params.memset.ctx));
    case CU_GRAPH_NODE_TYPE_HOST: return host_work(params.host.fn, params.host.userData);
    case CU_GRAPH_NODE_TYPE_GRAPH:
#if CUDA_VERSION >= 12090
        require(params.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE,
                CUDA_ERROR_NOT_SUPPORTED);
#endif
        child = child_from(params.graph.graph);
        return make_work(ChildWork{});
    case CU_GRAPH_NODE_TYPE_EMPTY: return make_work(EmptyWork{});
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return make_work(RecordWork{event_from(params.eventRecord.event)});
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return make_work(WaitWork{event_from(params.eventWait.event)});
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: throw DriverError{CUDA_ERROR_NOT_SUPPORTED};
    default: throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
}

WorkPtr changed_work(const Node& node, const CUgraphNodeParams& params) {
    check_reserved(params);
    require(params.type == type_of(*node.work));
    switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return changed_kernel(node, kernel_params(params.kernel));
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return changed_copy(node, params.memcpy.copyParams, params.memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return fill_work(fill_of(params.memset), params.memset.ctx
                                                     ? context_or_current(params.memset.ctx)
                                                     : work_of<FillWork>(node).context);
    case CU_GRAPH_NODE_TYPE_HOST: return host_work(params.host.fn, params.host.userData);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return changed_event(node, params.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return changed_event(node, params.eventWait.event);
    default: throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
}

}  // namespace cyrt::emu
