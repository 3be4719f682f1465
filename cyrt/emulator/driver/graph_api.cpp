// The entry points of graphs: creation, destruction, edges, and queries.
#include <cstdio>

#include "driver/graph.hpp"
#include "driver/graph_dot.hpp"

using namespace cyrt::emu;

namespace {

// Adds or removes all edges; none of them if one is refused.
template <class Do, class Undo>
void for_each_edge(const CUgraphNode* from, const CUgraphNode* to, size_t count, Do act,
                   Undo undo) {
    require(count == 0 || (from && to));
    size_t done = 0;
    try {
        for (; done < count; ++done) act(*node_from(from[done]), *node_from(to[done]), done);
    } catch (const DriverError&) {
        while (done-- > 0) undo(*node_from(from[done]), *node_from(to[done]), done);
        throw;
    }
}

CUresult add_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                   const CUgraphEdgeData* data, size_t count) {
    return entry([&] {
        std::shared_ptr<Graph> graph = graph_from(handle);
        // As in the driver: all edges of one call have the first one's kind.
        const CUgraphEdgeData kind = data && count ? data[0] : CUgraphEdgeData{};
        for_each_edge(
            from, to, count, [&](Node& a, Node& b, size_t) { graph->add_edge(a, b, kind); },
            [&](Node& a, Node& b, size_t) { graph->remove_edge(a, b, kind); });
    });
}

CUresult remove_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                      const CUgraphEdgeData* data, size_t count) {
    return entry([&] {
        std::shared_ptr<Graph> graph = graph_from(handle);
        auto kind = [&](size_t i) { return data ? data[i] : CUgraphEdgeData{}; };
        for_each_edge(
            from, to, count,
            [&](Node& a, Node& b, size_t i) {
                require(a.graph == graph.get() && b.graph == graph.get());
                require(graph->remove_edge(a, b, kind(i)));
            },
            [&](Node& a, Node& b, size_t i) { graph->add_edge(a, b, kind(i)); });
    });
}

// Copies as many of `count` values as fit; the rest of the buffer is cleared.
template <class T, class Value>
void write_list(T* out, size_t room, size_t count, Value value) {
    for (size_t i = 0; i < room; ++i) out[i] = i < count ? value(i) : T{};
}

CUresult edges_of(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                  size_t* count) {
    return entry([&] {
        std::shared_ptr<Graph> graph = graph_from(handle);
        require(count && (from == nullptr) == (to == nullptr) && (from || !data));
        struct Found {
            const Node* from;
            Edge to;
        };
        std::vector<Found> all;
        for (const auto& node : graph->nodes())
            for (const Edge& edge : node->dependents) all.push_back({node.get(), edge});
        if (from) {
            for (const Found& edge : all)
                require(data || is_default(edge.to.data), CUDA_ERROR_LOSSY_QUERY);
            const size_t room = *count, found = all.size();
            write_list(from, room, found, [&](size_t i) { return handle_of(*all[i].from); });
            write_list(to, room, found, [&](size_t i) { return handle_of(*all[i].to.node); });
            if (data) write_list(data, room, found, [&](size_t i) { return all[i].to.data; });
        }
        *count = all.size();
    });
}

CUresult neighbours(CUgraphNode handle, std::vector<Edge> Node::* side, CUgraphNode* nodes,
                    CUgraphEdgeData* data, size_t* count) {
    return entry([&] {
        std::shared_ptr<Node> node = node_from(handle);
        require(count && (nodes || !data));
        const std::vector<Edge>& edges = (*node).*side;
        if (nodes) {
            for (const Edge& edge : edges)
                require(data || is_default(edge.data), CUDA_ERROR_LOSSY_QUERY);
            const size_t room = *count, found = edges.size();
            write_list(nodes, room, found, [&](size_t i) { return handle_of(*edges[i].node); });
            if (data) write_list(data, room, found, [&](size_t i) { return edges[i].data; });
        }
        *count = edges.size();
    });
}

template <class Wanted>
CUresult nodes_of(CUgraph handle, CUgraphNode* out, size_t* count, Wanted wanted) {
    return entry([&] {
        std::shared_ptr<Graph> graph = graph_from(handle);
        require(count);
        std::vector<const Node*> found;
        for (const auto& node : graph->nodes())
            if (wanted(*node)) found.push_back(node.get());
        if (out)
            write_list(out, *count, found.size(), [&](size_t i) { return handle_of(*found[i]); });
        *count = found.size();
    });
}

}  // namespace

CYRT_API CUresult cuGraphCreate(CUgraph* out, unsigned flags) {
    return entry([&] {
        require(out && flags == 0);
        *out = as_handle<CUgraph>(graphs().add(std::make_shared<Graph>(true)));
    });
}

CYRT_API CUresult cuGraphDestroy(CUgraph handle) {
    return entry([&] {
        std::shared_ptr<Graph> graph = graph_from(handle);
        require(!graph->parent && !graph->being_captured);
        graph->forget();
    });
}

CYRT_API CUresult cuGraphClone(CUgraph* out, CUgraph original) {
    return entry([&] {
        require(out);
        *out = as_handle<CUgraph>(graphs().add(graph_from(original)->clone(true)));
    });
}

CYRT_API CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
    return entry([&] {
        require(out && graph_nodes().was_created(original));
        for (const auto& node : graph_from(clone)->nodes()) {
            if (node->original != reinterpret_cast<uintptr_t>(original)) continue;
            *out = handle_of(*node);
            return;
        }
        throw DriverError{CUDA_ERROR_INVALID_VALUE};
    });
}

CYRT_API CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from,
                                         const CUgraphNode* to, size_t count) {
    return add_edges(graph, from, to, nullptr, count);
}

CYRT_API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                            const CUgraphNode* to, const CUgraphEdgeData* data,
                                            size_t count) {
    return add_edges(graph, from, to, data, count);
}

CYRT_API CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from,
                                            const CUgraphNode* to, size_t count) {
    return remove_edges(graph, from, to, nullptr, count);
}

CYRT_API CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                               const CUgraphNode* to, const CUgraphEdgeData* data,
                                               size_t count) {
    return remove_edges(graph, from, to, data, count);
}

CYRT_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* out, size_t* count) {
    return nodes_of(graph, out, count, [](const Node&) { return true; });
}

CYRT_API CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* out, size_t* count) {
    return nodes_of(graph, out, count, [](const Node& node) { return node.dependencies.empty(); });
}

CYRT_API CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                                  size_t* count) {
    return edges_of(graph, from, to, nullptr, count);
}

CYRT_API CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                                     CUgraphEdgeData* data, size_t* count) {
    return edges_of(graph, from, to, data, count);
}

CYRT_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out, size_t* count) {
    return neighbours(node, &Node::dependencies, out, nullptr, count);
}

CYRT_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* out,
                                                CUgraphEdgeData* data, size_t* count) {
    return neighbours(node, &Node::dependencies, out, data, count);
}

CYRT_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* out, size_t* count) {
    return neighbours(node, &Node::dependents, out, nullptr, count);
}

CYRT_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* out,
                                                  CUgraphEdgeData* data, size_t* count) {
    return neighbours(node, &Node::dependents, out, data, count);
}

CYRT_API CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* out) {
    return entry([&] {
        require(out);
        *out = type_of(*node_from(node)->work);
    });
}

CYRT_API CUresult cuGraphDestroyNode(CUgraphNode handle) {
    return entry([&] {
        std::shared_ptr<Node> node = node_from(handle);
        require(!node->graph->being_captured);
        node->graph->remove(*node);
    });
}

CYRT_API CUresult cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned) {
    return entry([&] {
        std::shared_ptr<Graph> graph = graph_from(handle);
        require(path);
        std::string text = dot_of(*graph);
        std::FILE* file = std::fopen(path, "w");
        require(file != nullptr, CUDA_ERROR_OPERATING_SYSTEM);
        const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
        require(std::fclose(file) == 0 && written, CUDA_ERROR_OPERATING_SYSTEM);
    });
}
