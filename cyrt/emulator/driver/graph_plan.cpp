#include "driver/graph_plan.hpp"

#include <queue>
#include <unordered_map>

namespace cyrt::emu {

namespace {

Ordering ordering_of(const CUgraphEdgeData& data) {
    const bool waits = data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    switch (data.from_port) {
    case CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC: return Ordering::triggered;
    case CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER:
        return waits ? Ordering::started : Ordering::started_only;
    default: return Ordering::complete;
    }
}

class Planner {
  public:
    Planner() : layout_(std::make_shared<Layout>()), plan_(std::make_shared<Plan>()) {}

    std::shared_ptr<Plan> plan(Graph& graph, const Node** cyclic) {
        add(graph);
        if (!find_order<std::greater<uint32_t>>(layout_->orders[0], cyclic)) return nullptr;
        find_order<std::less<uint32_t>>(layout_->orders[1], cyclic);
        plan_->layout = std::move(layout_);
        return std::move(plan_);
    }

  private:
    uint32_t add_step(const Node& node, WorkPtr work) {
        const uint32_t step = uint32_t(plan_->steps.size());
        if (std::holds_alternative<RecordWork>(*work) || std::holds_alternative<WaitWork>(*work))
            layout_->event_steps.push_back(step);
        plan_->steps.push_back({std::move(work), true});
        layout_->before.emplace_back();
        layout_->after.emplace_back();
        nodes_.push_back(&node);
        return step;
    }

    void add_edge(uint32_t from, uint32_t to, Ordering ordering) {
        layout_->before[to].push_back({from, ordering});
        layout_->after[from].push_back(to);
        layout_->has_early_starts |= ordering != Ordering::complete;
    }

    void add(Graph& graph) {
        std::unordered_map<const Node*, uint32_t> last;
        for (const auto& node : graph.nodes()) {
            node->step = add_step(*node, node->work);
            last[node.get()] = node->child ? add_child(*node) : node->step;
        }
        for (const auto& node : graph.nodes())
            for (const Edge& edge : node->dependencies)
                add_edge(last.at(edge.node), node->step, ordering_of(edge.data));
    }

    // The steps between the node's own step and the returned one.
    uint32_t add_child(Node& node) {
        Graph& child = *node.child;
        const uint32_t first = uint32_t(plan_->steps.size());
        add(child);
        const uint32_t end = add_step(node, node.work);
        add_edge(node.step, end, Ordering::complete);
        for (uint32_t step = first; step < end; ++step) {
            if (layout_->before[step].empty()) add_edge(node.step, step, Ordering::complete);
            if (layout_->after[step].empty()) add_edge(step, end, Ordering::complete);
        }
        return end;
    }

    template <class Last>
    bool find_order(std::vector<uint32_t>& order, const Node** cyclic) {
        const size_t count = plan_->steps.size();
        std::vector<uint32_t> missing(count);
        std::priority_queue<uint32_t, std::vector<uint32_t>, Last> ready;
        for (uint32_t step = 0; step < count; ++step) {
            missing[step] = uint32_t(layout_->before[step].size());
            if (missing[step] == 0) ready.push(step);
        }
        order.reserve(count);
        while (!ready.empty()) {
            const uint32_t step = ready.top();
            ready.pop();
            order.push_back(step);
            for (uint32_t next : layout_->after[step])
                if (--missing[next] == 0) ready.push(next);
        }
        if (order.size() == count) return true;
        for (uint32_t step = 0; step < count; ++step)
            if (missing[step] != 0) *cyclic = nodes_[step];
        return false;
    }

    std::shared_ptr<Layout> layout_;
    std::shared_ptr<Plan> plan_;
    std::vector<const Node*> nodes_;  // the node of each step
};

}  // namespace

std::shared_ptr<Plan> make_plan(Graph& graph, const Node** cyclic) {
    return Planner().plan(graph, cyclic);
}

}  // namespace cyrt::emu
