// The updates that an executable graph allows.
#include <unordered_map>

#include "driver/context.hpp"
#include "driver/function.hpp"
#include "driver/graph_exec.hpp"

namespace cyrt::emu {

namespace {

constexpr CUgraphExecUpdateResult kFine = CU_GRAPH_EXEC_UPDATE_SUCCESS;
constexpr CUgraphExecUpdateResult kParameters = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;

// Whether a node may change from one work to another of its kind.
struct Rules {
    bool keeps_priority;  // priorities were settled when it was instantiated

    CUgraphExecUpdateResult operator()(const KernelWork& now, const KernelWork& next) const {
        if (&now.operation.function->context() != &next.operation.function->context())
            return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
        if (now.attributes.cooperative() != next.attributes.cooperative() ||
            (keeps_priority && now.attributes.priority() != next.attributes.priority()))
            return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
        return kFine;
    }
    CUgraphExecUpdateResult operator()(const CopyWork& now, const CopyWork& next) const {
        const bool same = now.dst == next.dst && now.src == next.src &&
                          now.params.dstMemoryType == next.params.dstMemoryType &&
                          now.params.srcMemoryType == next.params.srcMemoryType &&
                          now.context == next.context;
        return same ? kFine : kParameters;
    }
    CUgraphExecUpdateResult operator()(const FillWork& now, const FillWork& next) const {
        if (!(now.dst == next.dst) || now.context != next.context) return kParameters;
        const FillOperation &a = now.operation, &b = next.operation;
        if (now.flat() && next.flat()) return kFine;
        const bool same = a.pitch == b.pitch && a.element == b.element && a.width == b.width &&
                          a.height == b.height;
        return same ? kFine : kParameters;
    }
    template <class Same>
    CUgraphExecUpdateResult operator()(const Same&, const Same&) const {
        return kFine;  // any other function or event is allowed
    }
    template <class Now, class Next>
    CUgraphExecUpdateResult operator()(const Now&, const Next&) const {
        return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    }
};

bool is_flat(const Work& work) {
    if (auto copy = std::get_if<CopyWork>(&work)) return copy->flat();
    if (auto fill = std::get_if<FillWork>(&work)) return fill->flat();
    return true;
}

// Maps nodes to nodes, from the exits backwards, along the edges in their order.
class Pairing {
  public:
    Pairing(const Graph& image, const Graph& graph) {
        require_topology(image.nodes().size() == graph.nodes().size(), nullptr);
        const std::vector<Node*> exits = exits_of(image), others = exits_of(graph);
        require_topology(others.size() <= exits.size(),
                         others.size() > exits.size() ? others[exits.size()] : nullptr);
        require_topology(others.size() == exits.size(), nullptr);
        for (size_t i = 0; i < exits.size(); ++i) pair(*exits[i], *others[i], nullptr);
        for (size_t i = 0; i < pairs_.size(); ++i) follow(*pairs_[i].first, *pairs_[i].second);
        require_topology(pairs_.size() == graph.nodes().size(), nullptr);
    }

    const std::vector<std::pair<Node*, Node*>>& pairs() const { return pairs_; }

  private:
    static void require_topology(bool holds, const Node* node, const Node* from = nullptr) {
        if (!holds) throw UpdateFailure{CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, from};
    }

    static std::vector<Node*> exits_of(const Graph& graph) {
        std::vector<Node*> result;
        for (const auto& node : graph.nodes())
            if (node->dependents.empty()) result.push_back(node.get());
        return result;
    }

    // `of`: the node that has this dependency.
    void pair(Node& image, Node& node, const Node* of) {
        auto [known, fresh] = partner_.emplace(&node, &image);
        require_topology(known->second == &image, of, &node);
        if (!fresh) return;
        require_topology(taken_.emplace(&image, &node).second, of, &node);
        pairs_.emplace_back(&image, &node);
    }

    void follow(const Node& image, const Node& node) {
        require_topology(image.dependencies.size() == node.dependencies.size(), &node);
        for (size_t i = 0; i < node.dependencies.size(); ++i) {
            const Edge &was = image.dependencies[i], &is = node.dependencies[i];
            require_topology(same_data(was.data, is.data), &node, is.node);
            pair(*was.node, *is.node, &node);
        }
    }

    std::unordered_map<const Node*, const Node*> partner_, taken_;
    std::vector<std::pair<Node*, Node*>> pairs_;
};

bool are_equal(const Dim3& a, const Dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

// The new work of a node. As in drivers (measured on 580), a kernel silently keeps the dimensions
// of its cluster if others are requested. A grid that they do not divide, of which drivers
// launch a part, is refused.
WorkPtr updated_work(const Node& mine, const Node& other) {
    const auto* now = std::get_if<KernelWork>(&*mine.work);
    const auto* next = std::get_if<KernelWork>(&*other.work);
    if (!now || !next || are_equal(now->operation.cluster, next->operation.cluster))
        return other.work;
    KernelOperation operation = next->operation;
    LaunchAttributes attributes = next->attributes;
    operation.cluster = now->operation.cluster;
    attributes.set(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                   now->attributes.get(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
    try {
        check_launch(*operation.function, operation);
    } catch (const DriverError&) {
        throw UpdateFailure{kParameters, &other, nullptr};
    }
    return captured_kernel(std::move(operation), std::move(attributes), next->packed);
}

}  // namespace

GraphExec::Changes GraphExec::changes_to(const Graph& image, const Graph& graph) const {
    const Rules rules{(flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0};
    Changes changes;
    const Pairing pairing(image, graph);
    for (const auto& [mine, other] : pairing.pairs()) {
        CUgraphExecUpdateResult result = std::visit(rules, *mine->work, *other->work);
        if (result != kFine) throw UpdateFailure{result, other, nullptr};
        if (!mine->child) {
            if (mine->work != other->work) changes.emplace_back(mine, updated_work(*mine, *other));
            continue;
        }
        Changes inner = changes_to(*mine->child, *other->child);
        changes.insert(changes.end(), inner.begin(), inner.end());
    }
    return changes;
}

void GraphExec::update(const Graph& graph) { apply(changes_to(*image_, graph)); }

void GraphExec::update_child(Node& node, const Graph& graph) {
    require(node.child != nullptr);
    apply(changes_to(*node.child, graph));
}

void GraphExec::set_work(Node& node, WorkPtr work) {
    const Rules rules{(flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0};
    require(is_flat(*node.work) && is_flat(*work));
    require(std::visit(rules, *node.work, *work) == kFine);
    apply({{&node, std::move(work)}});
}

}  // namespace cyrt::emu
