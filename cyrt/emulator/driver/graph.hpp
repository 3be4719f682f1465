// Graphs: nodes, and the edges that order them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "driver/api.hpp"
#include "driver/graph_edge.hpp"
#include "driver/graph_work.hpp"
#include "driver/handles.hpp"

namespace cyrt::emu {

class Graph;

struct Node {
    uintptr_t handle = 0;               // 0 in an executable graph's own copy
    uintptr_t original = 0;             // of the node it was copied from
    Graph* graph = nullptr;             // that it belongs to
    WorkPtr work;
    std::shared_ptr<Graph> child;       // of ChildWork
    std::vector<Edge> dependencies;     // in the order in which they were added
    std::vector<Edge> dependents;
    uint32_t step = 0;                  // in an executable graph: where it runs
    bool enabled = true;                // as above
    std::vector<void*> shown;           // what the last query of its parameters points to
    size_t shown_size = 0;

    bool is_kernel() const { return std::holds_alternative<KernelWork>(*work); }
};

// INVARIANTS
// - An edge stands in both of its nodes, which belong to the same graph; no edge stands twice.
// - A node's handle is known as long as the node is in its graph and the graph is visible.
// - As with the driver, who changes a graph sees to it that nobody else uses it meanwhile.
class Graph : public std::enable_shared_from_this<Graph> {
public:
    // `visible`: its nodes get handles.
    explicit Graph(bool visible);
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    uintptr_t handle = 0;
    const uint64_t id;
    Node* parent = nullptr;             // the child node that owns it
    bool being_captured = false;        // may be neither destroyed nor instantiated

    const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }

    // Throws, and adds nothing, where an edge cannot be.
    Node& add(WorkPtr work, const std::vector<Edge>& dependencies,
              std::shared_ptr<Graph> child = nullptr);
    void add_edge(Node& from, Node& to, const CUgraphEdgeData& data);
    // False where there is no such edge with that data.
    bool remove_edge(Node& from, Node& to, const CUgraphEdgeData& data);
    void remove(Node& node);

    std::shared_ptr<Graph> clone(bool visible) const;
    // Its handle and those of its nodes, and of its children, go.
    void forget();

private:
    void check_edge(const Node& from, const Node& to, const CUgraphEdgeData& data) const;

    const bool visible_;
    std::vector<std::shared_ptr<Node>> nodes_;      // by age
};

HandleTable<Graph>& graphs();
HandleTable<Node>& graph_nodes();
// Throw CUDA_ERROR_INVALID_VALUE.
std::shared_ptr<Graph> graph_from(CUgraph handle);
std::shared_ptr<Node> node_from(CUgraphNode handle);
inline CUgraphNode handle_of(const Node& node) { return as_handle<CUgraphNode>(node.handle); }

}  // namespace cyrt::emu
