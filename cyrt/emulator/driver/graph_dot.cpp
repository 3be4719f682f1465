#include "driver/graph_dot.hpp"

#include <unordered_map>

#include "driver/function.hpp"
#include "driver/graph.hpp"

namespace cyrt::emu {

namespace {

std::string label_of(const Node& node) {
    struct {
        std::string operator()(const EmptyWork&) const { return "EMPTY"; }
        std::string operator()(const KernelWork& work) const {
            auto dims = [](Dim3 d) {
                return std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z);
            };
            return "KERNEL\\n" + work.operation.function->name + "\\ngrid " +
                   dims(work.operation.grid) + " block " + dims(work.operation.block);
        }
        std::string operator()(const CopyWork& work) const {
            const CopyOperation& copy = work.operation;
            return "MEMCPY\\n" + std::to_string(copy.width * copy.height * copy.depth) + " bytes";
        }
        std::string operator()(const FillWork& work) const {
            const FillOperation& fill = work.operation;
            return "MEMSET\\n" + std::to_string(fill.width * fill.height * fill.element) + " bytes";
        }
        std::string operator()(const HostWork&) const { return "HOST"; }
        std::string operator()(const ChildWork&) const { return "GRAPH"; }
        std::string operator()(const RecordWork&) const { return "EVENT_RECORD"; }
        std::string operator()(const WaitWork&) const { return "WAIT_EVENT"; }
    } describe;
    return std::visit(describe, *node.work);
}

void write(const Graph& graph, std::string& out) {
    const std::string name = "graph_" + std::to_string(graph.id);
    std::unordered_map<const Node*, std::string> names;
    out += "subgraph cluster_" + name + " {\nlabel=\"" + name + "\"\n";
    for (const auto& node : graph.nodes()) {
        const std::string number = std::to_string(names.size());
        const std::string& mine = names[node.get()] = name + "_node_" + number;
        out += "\"" + mine + "\" [shape=box label=\"" + number + "\\n" + label_of(*node) + "\"]\n";
        if (node->child) write(*node->child, out);
    }
    for (const auto& node : graph.nodes())
        for (const Edge& edge : node->dependents)
            out += "\"" + names.at(node.get()) + "\" -> \"" + names.at(edge.node) + "\"" +
                   (is_default(edge.data) ? "" : " [style=dashed]") + "\n";
    out += "}\n";
}

}  // namespace

std::string dot_of(const Graph& graph) {
    std::string out = "digraph dot {\n";
    write(graph, out);
    return out + "}\n";
}

}  // namespace cyrt::emu
