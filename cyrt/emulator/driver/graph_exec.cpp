#include "driver/graph_exec.hpp"

#include <atomic>

#include "driver/stream.hpp"

namespace cyrt::emu {

namespace {

// Executable graphs differ in the order of their first launch.
uint64_t first_number() {
    static std::atomic<uint64_t> next{1};
    return next.fetch_add(1);
}

}  // namespace

GraphExec::GraphExec(const Graph& graph, uint64_t instantiate_flags, const Node** offender)
    : flags(instantiate_flags), image_(graph.clone(false)), launches_(first_number()) {
    const Node* cyclic = nullptr;
    plan_ = make_plan(*image_, &cyclic);
    if (!plan_) {
        *offender = cyclic;
        throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
    know(*image_);
}

void GraphExec::know(Graph& graph) {
    for (const auto& node : graph.nodes()) {
        by_original_.emplace(node->original, node.get());
        if (node->child) know(*node->child);
    }
}

Node& GraphExec::counterpart(CUgraphNode original) {
    node_from(original);  // throws unless it is still in its graph
    auto found = by_original_.find(reinterpret_cast<uintptr_t>(original));
    require(found != by_original_.end());
    return *found->second;
}

void GraphExec::launch(Stream& stream) {
    // Locked until the last launch is known, so that launches are ordered as their calls.
    std::lock_guard in_turn(launch_mutex_);
    GraphOperation operation;
    {
        std::lock_guard lock(plan_mutex_);
        operation.plan = plan_;
    }
    operation.number = launches_++;
    if (last_.stream && last_.stream.get() != &stream && !last_.stream->done(last_.ticket))
        stream.submit(WaitOperation{last_});

    std::vector<std::pair<std::shared_ptr<Event>, uint64_t>> records;
    for (uint32_t step : operation.plan->layout->event_steps) {
        EventTurn turn{step, 0, {}};
        const Work& work = *operation.plan->steps[step].work;
        if (auto record = std::get_if<RecordWork>(&work)) {
            turn.serial = record->event->begin_record();
            records.emplace_back(record->event, turn.serial);
        } else {
            turn.mark = std::get<WaitWork>(work).event->mark();
        }
        operation.events.push_back(std::move(turn));
    }
    const uint64_t ticket = stream.submit(std::move(operation));
    last_ = {stream.shared_from_this(), ticket};
    for (auto& [event, serial] : records) event->set_mark(serial, last_);
}

Plan& GraphExec::writable_plan() {
    if (plan_.use_count() > 1) plan_ = std::make_shared<Plan>(*plan_);
    // A launch that has just released the plan has also read it.
    std::atomic_thread_fence(std::memory_order_acquire);
    return *plan_;
}

void GraphExec::apply(const Changes& changes) {
    std::lock_guard lock(plan_mutex_);
    Plan& plan = writable_plan();
    for (const auto& [node, work] : changes) {
        node->work = work;
        plan.steps[node->step].work = work;
    }
}

void GraphExec::set_enabled(Node& node, bool enabled) {
    std::lock_guard lock(plan_mutex_);
    node.enabled = enabled;
    writable_plan().steps[node.step].enabled = enabled;
}

HandleTable<GraphExec>& graph_execs() {
    static auto& table = *new HandleTable<GraphExec>(HandleKind::graph_exec);
    return table;
}

std::shared_ptr<GraphExec> graph_exec_from(CUgraphExec handle) {
    std::shared_ptr<GraphExec> exec = graph_execs().find(handle);
    require(exec != nullptr);
    return exec;
}

}  // namespace cyrt::emu
