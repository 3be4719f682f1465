// The entry points of executable graphs.
#include "driver/context.hpp"
#include "driver/graph_exec.hpp"
#include "driver/graph_params.hpp"
#include "driver/stream.hpp"

using namespace cyrt::emu;

namespace {

constexpr cuuint64_t kKnownFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                   CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                   CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

// `offender` receives a node of the cycle.
CUgraphExec instantiate(CUgraph handle, cuuint64_t flags, CUgraphNode& offender) {
    require(!(flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH), CUDA_ERROR_NOT_SUPPORTED);
    require(!(flags & ~kKnownFlags));
    std::shared_ptr<Graph> graph = graph_from(handle);
    require(!graph->being_captured);
    const Node* cyclic = nullptr;
    try {
        auto exec = std::make_shared<GraphExec>(*graph, flags, &cyclic);
        return as_handle<CUgraphExec>(graph_execs().add(std::move(exec)));
    } catch (const DriverError&) {
        if (cyclic) offender = as_handle<CUgraphNode>(cyclic->original);
        throw;
    }
}

CUresult instantiate(CUgraphExec* out, CUgraph graph, cuuint64_t flags, CUgraphNode* offender) {
    return entry([&] {
        require(out);
        CUgraphNode node = nullptr;
        try {
            *out = instantiate(graph, flags, node);
        } catch (const DriverError&) {
            if (offender) *offender = node;
            throw;
        }
    });
}

// `make(node)` returns the new work of the executable graph's node.
template <class T, class Make>
CUresult change(CUgraphExec handle, CUgraphNode node_handle, const void* params, Make make) {
    return entry([&] {
        require(params);
        std::shared_ptr<GraphExec> exec = graph_exec_from(handle);
        Node& node = exec->counterpart(node_handle);
        require(std::holds_alternative<T>(*node.work));
        exec->set_work(node, make(node));
    });
}

CUresult update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo& info) {
    info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    return entry([&]() -> CUresult {
        std::shared_ptr<GraphExec> mine = graph_exec_from(exec);
        std::shared_ptr<Graph> other = graph_from(graph);
        try {
            mine->update(*other);
        } catch (const UpdateFailure& failure) {
            info.result = failure.result;
            if (failure.node) info.errorNode = handle_of(*failure.node);
            if (failure.from) info.errorFromNode = handle_of(*failure.from);
            return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        }
        info.result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
        return CUDA_SUCCESS;
    });
}

void update_child(GraphExec& exec, Node& node, CUgraph graph) {
    try {
        exec.update_child(node, *graph_from(graph));
    } catch (const UpdateFailure&) {
        throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
}

}  // namespace

// --- creation and launch
// --------------------------------------------------------------------------

// The first two versions have no flags, but a buffer for a text.
CYRT_API CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode* offender,
                                     char* log, size_t size) {
    if (log && size) *log = '\0';
    return instantiate(out, graph, 0, offender);
}

CYRT_API CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* offender,
                                        char* log, size_t size) {
    return cuGraphInstantiate(out, graph, offender, log, size);
}

CYRT_API CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph,
                                              unsigned long long flags) {
    return instantiate(out, graph, flags, nullptr);
}

CYRT_API CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                               CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    params->hErrNode_out = nullptr;
    CUresult result = instantiate(out, graph, params->flags, &params->hErrNode_out);
    params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                         : params->hErrNode_out ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
                                                : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

CYRT_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
    return entry([&] { require(graph_execs().remove(exec) != nullptr); });
}

CYRT_API CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
    return entry([&] {
        require(flags);
        *flags = graph_exec_from(exec)->flags;
    });
}

// An upload does nothing on an emulated device.
CYRT_API CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
    return stream_entry(stream, [&](Stream&) { graph_exec_from(exec); });
}

CYRT_API CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    return stream_entry(stream_handle, [&](Stream& stream) {
        std::shared_ptr<GraphExec> exec = graph_exec_from(handle);
        if (stream.capturing())
            capture_child(stream, exec->as_graph());
        else
            exec->launch(stream);
    });
}

// --- updates of single nodes
// ----------------------------------------------------------------------

CYRT_API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                 const CUDA_KERNEL_NODE_PARAMS_v1* params) {
    return change<KernelWork>(exec, node, params, [&](const Node& mine) {
        return changed_kernel(mine, kernel_params_from(*params));
    });
}

CYRT_API CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                    const CUDA_KERNEL_NODE_PARAMS_v2* params) {
    return change<KernelWork>(exec, node, params,
                              [&](const Node& mine) { return changed_kernel(mine, *params); });
}

CYRT_API CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                 const CUDA_MEMCPY3D* params, CUcontext context) {
    return change<CopyWork>(exec, node, params,
                            [&](const Node& mine) { return changed_copy(mine, *params, context); });
}

CYRT_API CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                 const CUDA_MEMSET_NODE_PARAMS* params,
                                                 CUcontext context) {
    return change<FillWork>(exec, node, params,
                            [&](const Node& mine) { return changed_fill(mine, *params, context); });
}

CYRT_API CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_HOST_NODE_PARAMS* params) {
    return change<HostWork>(exec, node, params,
                            [&](const Node&) { return host_work(params->fn, params->userData); });
}

CYRT_API CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node,
                                                     CUevent event) {
    return change<RecordWork>(exec, node, event,
                              [&](const Node& mine) { return changed_event(mine, event); });
}

CYRT_API CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node,
                                                   CUevent event) {
    return change<WaitWork>(exec, node, event,
                            [&](const Node& mine) { return changed_event(mine, event); });
}

CYRT_API CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec handle, CUgraphNode node,
                                                     CUgraph graph) {
    return entry([&] {
        std::shared_ptr<GraphExec> exec = graph_exec_from(handle);
        update_child(*exec, exec->counterpart(node), graph);
    });
}

CYRT_API CUresult cuGraphExecNodeSetParams(CUgraphExec handle, CUgraphNode node_handle,
                                           CUgraphNodeParams* params) {
    return entry([&] {
        require(params);
        std::shared_ptr<GraphExec> exec = graph_exec_from(handle);
        Node& node = exec->counterpart(node_handle);
        if (node.child && params->type == CU_GRAPH_NODE_TYPE_GRAPH)
            update_child(*exec, node, params->graph.graph);
        else
            exec->set_work(node, changed_work(node, *params));
    });
}

CYRT_API CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node_handle,
                                        unsigned enabled) {
    return entry([&] {
        std::shared_ptr<GraphExec> exec = graph_exec_from(handle);
        Node& node = exec->counterpart(node_handle);
        require(can_be_disabled(*node.work));
        exec->set_enabled(node, enabled != 0);
    });
}

CYRT_API CUresult cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node_handle,
                                        unsigned* enabled) {
    return entry([&] {
        require(enabled);
        const Node& node = graph_exec_from(handle)->counterpart(node_handle);
        require(can_be_disabled(*node.work));
        *enabled = node.enabled;
    });
}

// --- updates of the whole graph
// -------------------------------------------------------------------

CYRT_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* offender,
                                    CUgraphExecUpdateResult* result) {
    CUgraphExecUpdateResultInfo info;
    CUresult code = update(exec, graph, info);
    if (offender) *offender = info.errorNode;
    if (result) *result = info.result;
    return code;
}

CYRT_API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                       CUgraphExecUpdateResultInfo* info) {
    if (!info) return CUDA_ERROR_INVALID_VALUE;
    return update(exec, graph, *info);
}
