#include "exec/slots.hpp"

namespace cyrt::emu {

void assign_slots(Program& program, const std::vector<VirtualSlot>& slots,
                  const std::vector<bool>&) {
    std::vector<uint32_t> place(slots.size());
    uint32_t next = 0;
    const auto put = [&](int32_t function) {
        for (size_t i = 0; i < slots.size(); ++i) {
            if (slots[i].function != function) continue;
            place[i] = next;
            next += slots[i].cell * kWarpSize;
        }
    };
    put(-1);
    for (size_t i = 0; i < program.functions.size(); ++i) {
        program.functions[i].first_slot = next;
        put(int32_t(i));
        program.functions[i].end_slot = next;
        for (const VirtualSlot& slot : slots)
            if (slot.function == int32_t(i)) program.functions[i].cells.push_back(slot.cell);
    }
    program.scratch_slot = next;
    program.file_bytes = next + 8 * 16 * kWarpSize;

    const auto rewrite = [&](uint32_t& slot) {
        if (slot != kNoSlot) slot = place[slot];
    };
    for (Inst& inst : program.code) {
        for (uint32_t& slot : inst.d) rewrite(slot);
        for (uint32_t& slot : inst.s) rewrite(slot);
    }
    for (MemoryOp& op : program.memory_ops) {
        for (uint32_t& slot : op.vector) rewrite(slot);
        for (uint32_t& slot : op.values) rewrite(slot);
    }
    for (ConstantSlot& constant : program.constants) rewrite(constant.slot);
    for (SpecialSlot& special : program.specials) rewrite(special.slot);
    for (FunctionCode& function : program.functions) rewrite(function.base_slot);
    rewrite(program.stack_slot);
}

}  // namespace cyrt::emu
