// Running a graph's steps.
//
// In every second launch, dependents by a programmatic edge start as early as they may: the
// dependent kernel runs first, and its griddepcontrol.wait runs its dependencies. So its accesses
// before that wait read memory as it was earlier. A kernel lets dependents start
// - when it ends, if it never does so itself: its dependents do not start early;
// - once it has waited, if it waits first: its dependents run before it, but behind all that it
//   waits for;
// - at any time, if it does so before it waits: then they may run before what it waits for, too,
//   through any number of such kernels.
#include "driver/graph_launch.hpp"

#include <mutex>

#include "driver/context.hpp"
#include "driver/function.hpp"
#include "driver/graph_check.hpp"
#include "driver/options.hpp"
#include "driver/stream.hpp"

namespace cyrt::emu {

namespace {

// The most kernels that a step may overtake in a row.
constexpr int kMostLevels = 8;

bool usable(const Context& context) {
    return context.state() == CUDA_SUCCESS && !context.cancelled().load();
}

class GraphRun {
  public:
    GraphRun(const GraphOperation& operation, Context& context)
        : operation_(operation), plan_(*operation.plan), layout_(*plan_.layout),
          order_(layout_.orders[operation.number & 1]), context_(context) {}

    void run() {
        if (options().check)
            run_checked();
        else if (layout_.has_early_starts)
            run_early();
        else
            for (uint32_t step : order_) run_step(step, {});
    }

  private:
    void run_step(uint32_t step, const KernelHooks& hooks) const {
        if (!plan_.steps[step].enabled) return;
        std::visit([&](const auto& work) { run_work(work, step, hooks); }, *plan_.steps[step].work);
    }

    void run_work(const EmptyWork&, uint32_t, const KernelHooks&) const {}
    void run_work(const ChildWork&, uint32_t, const KernelHooks&) const {}
    void run_work(const KernelWork& work, uint32_t, const KernelHooks& hooks) const {
        in(work.operation.function->context(),
           [&](Context& context) { work.operation.run(context, hooks); });
    }
    void run_work(const CopyWork& work, uint32_t, const KernelHooks&) const {
        in(*work.context, [&](Context& context) { work.operation.run(context); });
    }
    void run_work(const FillWork& work, uint32_t, const KernelHooks&) const {
        in(*work.context, [&](Context& context) { work.operation.run(context); });
    }
    void run_work(const HostWork& work, uint32_t, const KernelHooks&) const {
        in(context_, [&](Context& context) { work.operation.run(context); });
    }
    void run_work(const RecordWork& work, uint32_t step, const KernelHooks&) const {
        work.event->stamp(turn(step).serial);
    }
    void run_work(const WaitWork&, uint32_t step, const KernelHooks&) const {
        const Event::Mark& mark = turn(step).mark;
        if (mark.stream) mark.stream->wait(mark.ticket);
    }

    // A fault in any context of the graph is a fault of the stream.
    template <class Body>
    void in(Context& context, Body body) const {
        if (!usable(context_) || !usable(context)) return;
        body(context);
        if (&context != &context_ && context.state() != CUDA_SUCCESS)
            context_.fail(context.state(), "a graph's node met a fault in its own context");
    }

    const EventTurn& turn(uint32_t step) const {
        size_t at = 0;
        while (operation_.events[at].step != step) ++at;
        return operation_.events[at];
    }

    // --- early starts ---------------------------------------------------------------------------

    void run_early() {
        done_.assign(plan_.steps.size(), false);
        for (uint32_t step : order_) {
            if (!done_[step]) start_dependents(step, 1);
            if (!done_[step]) finish(step);
        }
    }

    // Starts what may run before the step: what depends on it through most kernels comes first.
    void start_dependents(uint32_t step, int level) {
        for (uint32_t dependent : layout_.after[step]) {
            if (done_[step] || !may_start_early(dependent, level)) continue;
            if (level < kMostLevels) start_dependents(dependent, level + 1);
            // Each step is early in one of two launches: a step that ran early is done as a whole,
            // before its own dependents could start.
            if (!done_[dependent] && ((dependent + operation_.number) & 1)) start_early(dependent);
        }
    }

    void finish(uint32_t step) {
        run_step(step, {});
        done_[step] = true;
    }

    bool is_ready(uint32_t step) const {
        for (const Predecessor& earlier : layout_.before[step])
            if (!done_[earlier.step]) return false;
        return true;
    }

    // Whether the step may start before its predecessors have ended. `level`: the most kernels
    // between it and a step that is ready, plus 1.
    bool may_start_early(uint32_t step, int level) const {
        if (done_[step] || !plan_.steps[step].kernel()) return false;
        for (const Predecessor& earlier : layout_.before[step]) {
            if (done_[earlier.step]) continue;
            const KernelWork* kernel = plan_.steps[earlier.step].kernel();
            if (earlier.ordering != Ordering::triggered || !kernel ||
                !kernel->operation.function->launches_dependents())
                return false;
            if (is_ready(earlier.step)) continue;
            if (level == 1 || !kernel->operation.function->triggers_before_waiting() ||
                !may_start_early(earlier.step, level - 1))
                return false;
        }
        return true;
    }

    void start_early(uint32_t step) {
        std::mutex mutex;
        bool ran = false;
        auto run_upstream = [&] {
            std::lock_guard lock(mutex);  // all waiters wait for its end
            if (ran) return;
            ran = true;
            for (const Predecessor& earlier : layout_.before[step]) {
                if (done_[earlier.step]) continue;
                if (is_ready(earlier.step))
                    finish(earlier.step);
                else
                    start_early(earlier.step);
            }
        };
        KernelHooks hooks;
        hooks.wait_dependencies = run_upstream;
        run_step(step, hooks);
        run_upstream();
        done_[step] = true;
    }

    // --- checking -------------------------------------------------------------------------------

    void run_checked() {
        AccessCheck check(plan_);
        for (uint32_t step : order_) {
            if (!plan_.steps[step].enabled) continue;
            KernelHooks hooks;
            hooks.watch = check.start(step);
            run_step(step, hooks);
            if (!usable(context_)) continue;
            std::string conflict = check.finish(step);
            if (!conflict.empty()) context_.fail(CUDA_ERROR_LAUNCH_FAILED, conflict);
        }
    }

    const GraphOperation& operation_;
    const Plan& plan_;
    const Layout& layout_;
    const std::vector<uint32_t>& order_;
    Context& context_;
    std::vector<char> done_;
};

}  // namespace

void GraphOperation::run(Context& context) const { GraphRun(*this, context).run(); }

}  // namespace cyrt::emu
