// The entry points of nodes: adding them, querying and setting their parameters.
#include "driver/context.hpp"
#include "driver/function.hpp"
#include "driver/graph.hpp"
#include "driver/graph_params.hpp"

using namespace cyrt::emu;

namespace {

std::vector<Edge> edges_from(const CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count) {
    require(nodes || count == 0);
    std::vector<Edge> edges;
    edges.reserve(count);
    for (size_t i = 0; i < count; ++i)
        edges.push_back({node_from(nodes[i]).get(), data ? data[i] : CUgraphEdgeData{}});
    return edges;
}

// `make(child)` returns the new node's work.
template <class Make>
CUresult add_node(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies,
                  const CUgraphEdgeData* data, size_t count, Make make) {
    return entry([&] {
        require(out);
        std::shared_ptr<Graph> graph = graph_from(handle);
        const std::vector<Edge> edges = edges_from(dependencies, data, count);
        std::shared_ptr<Graph> child;
        WorkPtr work = make(child);
        *out = handle_of(graph->add(std::move(work), edges, std::move(child)));
    });
}

template <class Make>
CUresult add_node(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                  Make make) {
    return add_node(out, graph, dependencies, nullptr, count,
                    [&](std::shared_ptr<Graph>&) { return make(); });
}

// The node's work, which must have that kind.
template <class T>
const T& work_in(const Node& node) {
    const T* work = std::get_if<T>(&*node.work);
    require(work != nullptr);
    return *work;
}

// `read(work, node)` writes the outputs.
template <class T, class Read>
CUresult ask_node(CUgraphNode handle, const void* out, Read read) {
    return entry([&] {
        require(out);
        std::shared_ptr<Node> node = node_from(handle);
        read(work_in<T>(*node), *node);
    });
}

template <class T, class Make>
CUresult change_node(CUgraphNode handle, const void* params, Make make) {
    return entry([&] {
        require(params);
        std::shared_ptr<Node> node = node_from(handle);
        work_in<T>(*node);
        node->work = make(*node);
        node->shown.clear();
    });
}

// The common fields of both versions of the structure. The pointers are the node's, until it
// changes.
template <class Params>
void write_kernel(const KernelWork& work, Node& node, Params& out) {
    const KernelOperation& operation = work.operation;
    auto* block = const_cast<std::byte*>(operation.params.data());
    if (work.packed) {
        node.shown_size = operation.function->info.param_bytes;
        node.shown = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE,
                      &node.shown_size, CU_LAUNCH_PARAM_END};
    } else {
        node.shown.clear();
        for (const ParamInfo& param : operation.function->info.params)
            node.shown.push_back(block + param.offset);
        if (operation.ranged) node.shown.push_back(block + operation.function->range_offset());
    }
    out = {};
    out.func = as_handle<CUfunction>(operation.function->handle);
    out.gridDimX = operation.grid.x;
    out.gridDimY = operation.grid.y;
    out.gridDimZ = operation.grid.z;
    out.blockDimX = operation.block.x;
    out.blockDimY = operation.block.y;
    out.blockDimZ = operation.block.z;
    out.sharedMemBytes = operation.dynamic_shared;
    out.kernelParams = work.packed ? nullptr : node.shown.data();
    out.extra = work.packed ? node.shown.data() : nullptr;
}

constexpr CUlaunchAttributeID kNodeAttributes[] = {
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    CU_LAUNCH_ATTRIBUTE_PRIORITY,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
    CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
};

void check_attribute(CUkernelNodeAttrID id) {
    for (CUlaunchAttributeID known : kNodeAttributes)
        if (id == known) return;
    throw DriverError{CUDA_ERROR_INVALID_VALUE};
}

// The node's kernel with those attributes; its launch is validated again.
void set_attributes(Node& node, const LaunchAttributes& attributes) {
    const KernelWork& now = work_in<KernelWork>(node);
    KernelOperation operation = now.operation;
    operation.cooperative = attributes.cooperative();
    operation.cluster = attributes.cluster();
    check_launch(*operation.function, operation);
    node.work = captured_kernel(std::move(operation), attributes, now.packed);
    node.shown.clear();
}

}  // namespace

// --- any kind ------------------------------------------------------------------------------------

CYRT_API CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, CUgraphNodeParams* params) {
    return add_node(out, graph, dependencies, nullptr, count, [&](std::shared_ptr<Graph>& child) {
        require(params);
        return work_from(*params, child);
    });
}

CYRT_API CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph,
                                    const CUgraphNode* dependencies, const CUgraphEdgeData* data,
                                    size_t count, CUgraphNodeParams* params) {
    return add_node(out, graph, dependencies, data, count, [&](std::shared_ptr<Graph>& child) {
        require(params);
        return work_from(*params, child);
    });
}

CYRT_API CUresult cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams* params) {
    return entry([&] {
        require(params);
        std::shared_ptr<Node> node = node_from(handle);
        node->work = changed_work(*node, *params);
        node->shown.clear();
    });
}

CYRT_API CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph,
                                      const CUgraphNode* dependencies, size_t count) {
    return add_node(out, graph, dependencies, count, [] { return make_work(EmptyWork{}); });
}

// --- kernels -------------------------------------------------------------------------------------

CYRT_API CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph,
                                       const CUgraphNode* dependencies, size_t count,
                                       const CUDA_KERNEL_NODE_PARAMS_v1* params) {
    return add_node(out, graph, dependencies, count, [&] {
        require(params);
        return kernel_work(kernel_params_from(*params), {});
    });
}

CYRT_API CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph,
                                          const CUgraphNode* dependencies, size_t count,
                                          const CUDA_KERNEL_NODE_PARAMS_v2* params) {
    return add_node(out, graph, dependencies, count, [&] {
        require(params);
        return kernel_work(*params, {});
    });
}

CYRT_API CUresult cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1* out) {
    return ask_node<KernelWork>(
        handle, out, [&](const KernelWork& work, Node& node) { write_kernel(work, node, *out); });
}

CYRT_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle,
                                                CUDA_KERNEL_NODE_PARAMS_v2* out) {
    return ask_node<KernelWork>(handle, out, [&](const KernelWork& work, Node& node) {
        write_kernel(work, node, *out);
        out->ctx = as_handle<CUcontext>(work.operation.function->context().handle);
    });
}

CYRT_API CUresult cuGraphKernelNodeSetParams(CUgraphNode handle,
                                             const CUDA_KERNEL_NODE_PARAMS_v1* params) {
    return change_node<KernelWork>(handle, params, [&](const Node& node) {
        return changed_kernel(node, kernel_params_from(*params));
    });
}

CYRT_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode handle,
                                                const CUDA_KERNEL_NODE_PARAMS_v2* params) {
    return change_node<KernelWork>(handle, params,
                                   [&](const Node& node) { return changed_kernel(node, *params); });
}

CYRT_API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                                CUkernelNodeAttrValue* out) {
    return ask_node<KernelWork>(handle, out, [&](const KernelWork& work, const Node&) {
        check_attribute(id);
        *out = work.attributes.get(id);
    });
}

CYRT_API CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                                const CUkernelNodeAttrValue* value) {
    return ask_node<KernelWork>(handle, value, [&](const KernelWork& work, Node& node) {
        check_attribute(id);
        LaunchAttributes attributes = work.attributes;
        attributes.set(id, *value);
        set_attributes(node, attributes);
    });
}

CYRT_API CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
    return ask_node<KernelWork>(from, to, [&](const KernelWork& work, const Node&) {
        std::shared_ptr<Node> node = node_from(to);
        const KernelWork& other = work_in<KernelWork>(*node);
        require(&other.operation.function->context() == &work.operation.function->context());
        set_attributes(*node, work.attributes);
    });
}

// --- copies and fills ----------------------------------------------------------------------------

CYRT_API CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph,
                                       const CUgraphNode* dependencies, size_t count,
                                       const CUDA_MEMCPY3D* params, CUcontext context) {
    return add_node(out, graph, dependencies, count, [&] {
        require(params);
        return copy_work(*params, context_or_current(context));
    });
}

CYRT_API CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* out) {
    return ask_node<CopyWork>(handle, out,
                              [&](const CopyWork& work, const Node&) { *out = work.params; });
}

CYRT_API CUresult cuGraphMemcpyNodeSetParams(CUgraphNode handle, const CUDA_MEMCPY3D* params) {
    return change_node<CopyWork>(
        handle, params, [&](const Node& node) { return changed_copy(node, *params, nullptr); });
}

CYRT_API CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph,
                                       const CUgraphNode* dependencies, size_t count,
                                       const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
    return add_node(out, graph, dependencies, count, [&] {
        require(params);
        return fill_work(fill_from(*params), context_or_current(context));
    });
}

CYRT_API CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS* out) {
    return ask_node<FillWork>(handle, out, [&](const FillWork& work, const Node&) {
        const FillOperation& fill = work.operation;
        *out = {fill.address, fill.pitch, fill.value, fill.element, fill.width, fill.height};
    });
}

CYRT_API CUresult cuGraphMemsetNodeSetParams(CUgraphNode handle,
                                             const CUDA_MEMSET_NODE_PARAMS* params) {
    return change_node<FillWork>(
        handle, params, [&](const Node& node) { return changed_fill(node, *params, nullptr); });
}

// --- host functions ------------------------------------------------------------------------------

CYRT_API CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph,
                                     const CUgraphNode* dependencies, size_t count,
                                     const CUDA_HOST_NODE_PARAMS* params) {
    return add_node(out, graph, dependencies, count, [&] {
        require(params);
        return host_work(params->fn, params->userData);
    });
}

CYRT_API CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS* out) {
    return ask_node<HostWork>(handle, out, [&](const HostWork& work, const Node&) {
        *out = {work.operation.function, work.operation.data};
    });
}

CYRT_API CUresult cuGraphHostNodeSetParams(CUgraphNode handle,
                                           const CUDA_HOST_NODE_PARAMS* params) {
    return change_node<HostWork>(
        handle, params, [&](const Node&) { return host_work(params->fn, params->userData); });
}

// --- child graphs --------------------------------------------------------------------------------

CYRT_API CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph,
                                           const CUgraphNode* dependencies, size_t count,
                                           CUgraph child_handle) {
    return add_node(out, graph, dependencies, nullptr, count, [&](std::shared_ptr<Graph>& child) {
        child = child_from(child_handle);
        return make_work(ChildWork{});
    });
}

CYRT_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* out) {
    return ask_node<ChildWork>(handle, out, [&](const ChildWork&, const Node& node) {
        *out = as_handle<CUgraph>(node.child->handle);
    });
}

// --- events --------------------------------------------------------------------------------------

CYRT_API CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph,
                                            const CUgraphNode* dependencies, size_t count,
                                            CUevent event) {
    return add_node(out, graph, dependencies, count,
                    [&] { return make_work(RecordWork{event_from(event)}); });
}

CYRT_API CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent* out) {
    return ask_node<RecordWork>(handle, out, [&](const RecordWork& work, const Node&) {
        *out = as_handle<CUevent>(work.event->handle);
    });
}

CYRT_API CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode handle, CUevent event) {
    return change_node<RecordWork>(handle, event,
                                   [&](const Node& node) { return changed_event(node, event); });
}

CYRT_API CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph,
                                          const CUgraphNode* dependencies, size_t count,
                                          CUevent event) {
    return add_node(out, graph, dependencies, count,
                    [&] { return make_work(WaitWork{event_from(event)}); });
}

CYRT_API CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent* out) {
    return ask_node<WaitWork>(handle, out, [&](const WaitWork& work, const Node&) {
        *out = as_handle<CUevent>(work.event->handle);
    });
}

CYRT_API CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode handle, CUevent event) {
    return change_node<WaitWork>(handle, event,
                                 [&](const Node& node) { return changed_event(node, event); });
}
