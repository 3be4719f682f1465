// Conversion between the ABI's structures and the work of nodes of any kind.
#pragma once

#include "driver/graph.hpp"

namespace cyrt::emu {

// The node to update: its attributes and its kind are preserved.
WorkPtr changed_kernel(const Node& node, const CUDA_KERNEL_NODE_PARAMS_v2& params);
WorkPtr changed_copy(const Node& node, const CUDA_MEMCPY3D& params, CUcontext context);
WorkPtr changed_fill(const Node& node, const CUDA_MEMSET_NODE_PARAMS& params, CUcontext context);
WorkPtr changed_event(const Node& node, CUevent event);

// The first version, which has functions only.
CUDA_KERNEL_NODE_PARAMS_v2 kernel_params_from(const CUDA_KERNEL_NODE_PARAMS_v1& params);
FillOperation fill_from(const CUDA_MEMSET_NODE_PARAMS_v1& params);
// nullptr: the current context.
std::shared_ptr<Context> context_or_current(CUcontext handle);

// The work that a tagged structure describes, or the new work of `node`; `child` receives the graph
// of a child node, which the node has to own.
WorkPtr work_from(const CUgraphNodeParams& params, std::shared_ptr<Graph>& child);
WorkPtr changed_work(const Node& node, const CUgraphNodeParams& params);
// A clone of the graph that a node can own.
std::shared_ptr<Graph> child_from(CUgraph handle);

}  // namespace cyrt::emu
