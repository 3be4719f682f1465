// Nodes of any kind between the ABI's structures and what they do.
#pragma once

#include "driver/graph.hpp"

namespace cyrt::emu {

// The node that a change is about: its attributes stay, its kind stays.
WorkPtr changed_kernel(const Node& node, const CUDA_KERNEL_NODE_PARAMS_v2& params);
WorkPtr changed_copy(const Node& node, const CUDA_MEMCPY3D& params, CUcontext context);
WorkPtr changed_fill(const Node& node, const CUDA_MEMSET_NODE_PARAMS& params, CUcontext context);
WorkPtr changed_event(const Node& node, CUevent event);

// The first version, which named functions only.
CUDA_KERNEL_NODE_PARAMS_v2 kernel_params_from(const CUDA_KERNEL_NODE_PARAMS_v1& params);
FillOperation fill_from(const CUDA_MEMSET_NODE_PARAMS_v1& params);
// nullptr: the current one.
std::shared_ptr<Context> context_or_current(CUcontext handle);

// The work that a tagged structure asks for, or which `node` would change to; `child` receives the
// graph of a child node, which the node shall own.
WorkPtr work_from(const CUgraphNodeParams& params, std::shared_ptr<Graph>& child);
WorkPtr changed_work(const Node& node, const CUgraphNodeParams& params);
// A clone of the graph, as a node may own.
std::shared_ptr<Graph> child_from(CUgraph handle);

}  // namespace cyrt::emu
