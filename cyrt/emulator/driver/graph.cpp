#include "driver/graph.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_map>

namespace cyrt::emu {

namespace {

uint64_t next_id() {
    static std::atomic<uint64_t> last{0};
    return ++last;
}

std::vector<Edge>::iterator find_edge(std::vector<Edge>& edges, const Node& node) {
    return std::find_if(edges.begin(), edges.end(),
                        [&](const Edge& edge) { return edge.node == &node; });
}

// The ports and types that an edge may have, regardless of its nodes.
void check_data(const CUgraphEdgeData& data) {
    require(data.to_port == 0);
    for (unsigned char byte : data.reserved) require(byte == 0);
    switch (data.from_port) {
    case CU_GRAPH_KERNEL_NODE_PORT_DEFAULT:
        return require(data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);
    case CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC:
        return require(data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    case CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER:
        return require(data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT ||
                       data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    default: throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
}

}  // namespace

Graph::Graph(bool visible) : id(next_id()), visible_(visible) {}

Graph::~Graph() = default;

void Graph::check_edge(const Node& from, const Node& to, const CUgraphEdgeData& data) const {
    require(from.graph == this && to.graph == this && &from != &to);
    check_data(data);
    require(is_default(data) || (from.is_kernel() && to.is_kernel()));
}

void Graph::add_edge(Node& from, Node& to, const CUgraphEdgeData& data) {
    check_edge(from, to, data);
    // Both ends store the edge; the shorter list is searched.
    if (to.dependencies.size() <= from.dependents.size())
        require(find_edge(to.dependencies, from) == to.dependencies.end());
    else
        require(find_edge(from.dependents, to) == from.dependents.end());
    to.dependencies.push_back({&from, data});
    from.dependents.push_back({&to, data});
}

bool Graph::remove_edge(Node& from, Node& to, const CUgraphEdgeData& data) {
    auto forward = find_edge(from.dependents, to);
    auto backward = find_edge(to.dependencies, from);
    if (forward == from.dependents.end() || !same_data(forward->data, data)) return false;
    from.dependents.erase(forward);
    to.dependencies.erase(backward);
    return true;
}

Node& Graph::add(WorkPtr work, const std::vector<Edge>& dependencies,
                 std::shared_ptr<Graph> child) {
    auto node = std::make_shared<Node>();
    node->graph = this;
    node->work = std::move(work);
    node->child = std::move(child);
    try {
        for (const Edge& edge : dependencies) add_edge(*edge.node, *node, edge.data);
    } catch (const DriverError&) {
        for (const Edge& edge : node->dependencies) edge.node->dependents.pop_back();
        if (node->child) node->child->forget();
        throw;
    }
    if (node->child) node->child->parent = node.get();
    if (visible_) graph_nodes().add(node);
    nodes_.push_back(std::move(node));
    return *nodes_.back();
}

void Graph::remove(Node& node) {
    for (const Edge& edge : node.dependencies) {
        auto& edges = edge.node->dependents;
        edges.erase(find_edge(edges, node));
    }
    for (const Edge& edge : node.dependents) {
        auto& edges = edge.node->dependencies;
        edges.erase(find_edge(edges, node));
    }
    if (node.child) node.child->forget();
    graph_nodes().remove(handle_of(node));
    nodes_.erase(std::find_if(nodes_.begin(), nodes_.end(),
                              [&](const auto& other) { return other.get() == &node; }));
}

std::shared_ptr<Graph> Graph::clone(bool visible) const {
    static const WorkPtr& nothing = *new WorkPtr(make_work(EmptyWork{}));
    auto copy = std::make_shared<Graph>(visible);
    for (const auto& kept : user_objects) copy->user_objects[kept.first] = 1;
    std::unordered_map<const Node*, Node*> counterpart;
    counterpart.reserve(nodes_.size());
    copy->nodes_.reserve(nodes_.size());
    for (const auto& node : nodes_) {
        Node& twin = copy->add(node->enabled ? node->work : nothing, {},
                               node->child ? node->child->clone(visible) : nullptr);
        twin.original = node->handle;
        counterpart.emplace(node.get(), &twin);
        if (twin.child && visible) graphs().add(twin.child);
    }
    // Edge by edge: the order of both ends' lists has to be copied too.
    auto translate = [&](const std::vector<Edge>& from, std::vector<Edge>& to) {
        to.reserve(from.size());
        for (const Edge& edge : from) to.push_back({counterpart.at(edge.node), edge.data});
    };
    for (const auto& node : nodes_) {
        Node& twin = *counterpart.at(node.get());
        translate(node->dependencies, twin.dependencies);
        translate(node->dependents, twin.dependents);
    }
    return copy;
}

void Graph::forget() {
    graphs().remove(as_handle<CUgraph>(handle));
    for (const auto& node : nodes_) {
        graph_nodes().remove(handle_of(*node));
        if (node->child) node->child->forget();
    }
}

HandleTable<Graph>& graphs() {
    static auto& table = *new HandleTable<Graph>(HandleKind::graph);
    return table;
}

HandleTable<Node>& graph_nodes() {
    static auto& table = *new HandleTable<Node>(HandleKind::graph_node);
    return table;
}

std::shared_ptr<Graph> graph_from(CUgraph handle) {
    std::shared_ptr<Graph> graph = graphs().find(handle);
    require(graph != nullptr);
    return graph;
}

std::shared_ptr<Node> node_from(CUgraphNode handle) {
    std::shared_ptr<Node> node = graph_nodes().find(handle);
    require(node != nullptr);
    return node;
}

}  // namespace cyrt::emu
