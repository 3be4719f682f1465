// An executable graph: the result of an instantiation, and its updates.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver/graph.hpp"
#include "driver/graph_launch.hpp"
#include "driver/graph_plan.hpp"
#include "driver/handles.hpp"

namespace cyrt::emu {

class Stream;

struct UpdateFailure {
    CUgraphExecUpdateResult result;
    const Node* node = nullptr;  // a node of the graph that contains the update
    const Node* from = nullptr;
};

// INVARIANTS
// - A launch uses the executable graph as it was at the call: updates modify a copy of the plan
//   while launches are in flight.
// - One launch runs at a time, regardless of their streams.
// - Its nodes are a copy of the graph's, identified by the handles of the originals.
class GraphExec {
  public:
    // Throws CUDA_ERROR_INVALID_VALUE, and sets `offender`, if the graph has a cycle.
    GraphExec(const Graph& graph, uint64_t flags, const Node** offender);

    uintptr_t handle = 0;
    const uint64_t flags;

    void launch(Stream& stream);

    // Its copy of a node of the original graph; throws CUDA_ERROR_INVALID_VALUE.
    Node& counterpart(CUgraphNode original);
    // Throws CUDA_ERROR_INVALID_VALUE if the node cannot be updated to that work.
    void set_work(Node& node, WorkPtr work);
    void set_enabled(Node& node, bool enabled);
    // Updates all nodes or none; throws UpdateFailure.
    void update(const Graph& graph);
    void update_child(Node& node, const Graph& graph);

    // A graph with the same steps as this one has now.
    std::shared_ptr<Graph> as_graph() const { return image_->clone(true); }

  private:
    using Changes = std::vector<std::pair<Node*, WorkPtr>>;
    void know(Graph& graph);
    Plan& writable_plan();
    void apply(const Changes& changes);
    Changes changes_to(const Graph& image, const Graph& graph) const;

    const std::shared_ptr<Graph> image_;
    std::unordered_map<uintptr_t, Node*> by_original_;

    std::mutex plan_mutex_;
    std::shared_ptr<Plan> plan_;

    std::mutex launch_mutex_;
    uint64_t launches_ = 0;
    Event::Mark last_;
};

HandleTable<GraphExec>& graph_execs();
std::shared_ptr<GraphExec> graph_exec_from(CUgraphExec handle);  // CUDA_ERROR_INVALID_VALUE

}  // namespace cyrt::emu
