#include "driver/operation.hpp"

#include "driver/context.hpp"

namespace cyrt::emu {

void execute(Operation& operation, Context& context) {
    bool broken = context.state() != CUDA_SUCCESS || context.cancelled().load();
    std::visit(
        [&](auto& op) {
            using Op = std::decay_t<decltype(op)>;
            if constexpr (!std::is_same_v<Op, std::monostate>) {
                if (Op::runs_after_fault || !broken) op.run(context);
            }
        },
        operation);
}

}  // namespace cyrt::emu
