// Graphs: nodes, and the edges that order them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "driver/api.hpp"
#include "driver/graph_edge.hpp"
#include "driver/graph_work.hpp"
#include "driver/handles.hpp"
#include "driver/user_object.hpp"

namespace cyrt::emu {

class Graph;

struct Node {
    uintptr_t handle = 0;    // 0 in an executable graph's private copy
    uintptr_t original = 0;  // handle of the node it was copied from
    Graph* graph = nullptr;  // the graph that owns it
    WorkPtr work;
    std::shared_ptr<Graph> child;    // the graph of ChildWork
    std::vector<Edge> dependencies;  // ordered as they were added
    std::vector<Edge> dependents;
    uint32_t step = 0;         // index of its step, if the graph is executable
    bool enabled = true;       // whether an executable graph runs it
    std::vector<void*> shown;  // the arrays that the last query of its parameters returned
    size_t shown_size = 0;

    bool is_kernel() const { return std::holds_alternative<KernelWork>(*work); }
};

// INVARIANTS
// - An edge is stored in both of its nodes, which belong to the same graph; no edge is stored
//   twice.
// - A node's handle is valid as long as the node is in its graph and the graph is visible.
// - As with the driver, a caller that changes a graph ensures that no other thread uses it
//   meanwhile.
class Graph : public std::enable_shared_from_this<Graph> {
  public:
    // `visible`: its nodes get handles.
    explicit Graph(bool visible);
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    uintptr_t handle = 0;
    const uint64_t id;
    Node* parent = nullptr;       // the child node that owns it
    bool being_captured = false;  // may be neither destroyed nor instantiated
    UserObjects user_objects;

    const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }

    // Throws, and adds nothing, if an edge is invalid.
    Node& add(WorkPtr work, const std::vector<Edge>& dependencies,
              std::shared_ptr<Graph> child = nullptr);
    void add_edge(Node& from, Node& to, const CUgraphEdgeData& data);
    // False if there is no such edge with that data.
    bool remove_edge(Node& from, Node& to, const CUgraphEdgeData& data);
    void remove(Node& node);

    std::shared_ptr<Graph> clone(bool visible) const;
    // Removes its handle and those of its nodes and of its children.
    void forget();

  private:
    void check_edge(const Node& from, const Node& to, const CUgraphEdgeData& data) const;

    const bool visible_;
    std::vector<std::shared_ptr<Node>> nodes_;  // oldest first
};

HandleTable<Graph>& graphs();
HandleTable<Node>& graph_nodes();
// These throw CUDA_ERROR_INVALID_VALUE.
std::shared_ptr<Graph> graph_from(CUgraph handle);
std::shared_ptr<Node> node_from(CUgraphNode handle);
inline CUgraphNode handle_of(const Node& node) { return as_handle<CUgraphNode>(node.handle); }

}  // namespace cyrt::emu
