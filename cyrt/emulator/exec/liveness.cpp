#include "exec/liveness.hpp"

#include <algorithm>

namespace cyrt::emu {

namespace {

bool ends_block(const Program& program, const Inst& inst) {
    if (inst.run) return false;
    switch (program.controls[inst.extra].kind) {
    case ControlKind::jump:
    case ControlKind::branch:
    case ControlKind::table:
    case ControlKind::ret:
    case ControlKind::exit: return true;
    default: return false;
    }
}

// Calls visit(slot, is_result) for every slot of an instruction, sources first.
template <typename Visit>
void visit_slots(const Program& program, const SlotUses& uses, uint32_t pc, const Visit& visit) {
    const Inst& inst = program.code[pc];
    const auto each = [&](const auto& slots, bool is_result) {
        for (uint32_t slot : slots)
            if (slot != kNoSlot) visit(slot, is_result);
    };
    each(inst.s, false);
    if (uses.is_memory[pc]) {
        const MemoryOp& op = program.memory_ops[inst.extra];
        each(op.values, false);
        each(op.vector, uses.vector_results[inst.extra]);
    }
    each(inst.d, true);
}

class Liveness {
  public:
    Liveness(const Program& program, const SlotUses& uses, uint32_t begin, uint32_t end,
             std::vector<LiveRange>& ranges)
        : program_(program), uses_(uses), begin_(begin), end_(end), ranges_(ranges),
          writers_(ranges.size()), readers_(ranges.size()) {}

    void run() {
        split();
        for (uint32_t block = 0; block < blocks_.size(); ++block) scan(block);
        seen_.assign(blocks_.size(), kNoSlot);
        for (uint32_t slot = 0; slot < readers_.size(); ++slot)
            for (uint32_t block : readers_[slot]) carry_up(slot, block);
    }

  private:
    struct BasicBlock {
        uint32_t begin, end;
        std::vector<uint32_t> before;  // predecessor blocks
    };

    const Control& control_of(const Inst& inst) const { return program_.controls[inst.extra]; }

    void split() {
        for (uint32_t pc = begin_; pc < end_; ++pc) {
            const Inst& inst = program_.code[pc];
            const bool is_join = !inst.run && control_of(inst).kind == ControlKind::join;
            if (pc == begin_ || is_join || ends_block(program_, program_.code[pc - 1]))
                blocks_.push_back({pc, pc, {}});
            blocks_.back().end = pc + 1;
        }
        for (uint32_t i = 0; i < blocks_.size(); ++i) {
            const Inst& last = program_.code[blocks_[i].end - 1];
            const bool ends = ends_block(program_, last);
            const ControlKind kind = ends ? control_of(last).kind : ControlKind::join;
            if ((!ends || kind == ControlKind::branch) && i + 1 < blocks_.size())
                blocks_[i + 1].before.push_back(i);
            if (kind == ControlKind::jump || kind == ControlKind::branch) {
                if (ends) flow(i, control_of(last).target);
            } else if (kind == ControlKind::table) {
                for (uint32_t target : program_.tables[control_of(last).target]) flow(i, target);
            }
        }
    }

    void flow(uint32_t from, uint32_t target) {
        const auto to =
            std::upper_bound(blocks_.begin(), blocks_.end(), target,
                             [](uint32_t pc, const BasicBlock& block) { return pc < block.begin; });
        std::prev(to)->before.push_back(from);
    }

    // The slots that a block reads before it writes them, and those that it writes for every lane.
    void scan(uint32_t block) {
        uint32_t guarded = 0;  // instructions still under a guard: not all lanes run them
        for (uint32_t pc = blocks_[block].begin; pc < blocks_[block].end; ++pc) {
            const Inst& inst = program_.code[pc];
            const bool is_guarded = guarded > 0;
            guarded -= is_guarded;
            visit_slots(program_, uses_, pc, [&](uint32_t slot, bool is_result) {
                ranges_[slot].cover(pc);
                auto& writers = writers_[slot];
                auto& readers = readers_[slot];
                if (!writers.empty() && writers.back() == block) return;
                if (is_result && !is_guarded)
                    writers.push_back(block);
                else if (readers.empty() || readers.back() != block)
                    readers.push_back(block);
            });
            if (!inst.run && control_of(inst).kind == ControlKind::guard)
                guarded = control_of(inst).count;
        }
    }

    // A slot that `block` needs is live in all blocks on the paths from its writers.
    void carry_up(uint32_t slot, uint32_t block) {
        if (seen_[block] == slot) return;
        seen_[block] = slot;
        open_.assign(1, block);
        while (!open_.empty()) {
            const BasicBlock& at = blocks_[open_.back()];
            ranges_[slot].from_entry |= open_.back() == 0;
            open_.pop_back();
            ranges_[slot].cover(at.begin);
            for (uint32_t from : at.before) {
                ranges_[slot].cover(blocks_[from].end - 1);
                const auto& writers = writers_[slot];
                if (seen_[from] == slot || std::binary_search(writers.begin(), writers.end(), from))
                    continue;
                seen_[from] = slot;
                open_.push_back(from);
            }
        }
    }

    const Program& program_;
    const SlotUses& uses_;
    const uint32_t begin_, end_;
    std::vector<LiveRange>& ranges_;
    std::vector<BasicBlock> blocks_;
    std::vector<std::vector<uint32_t>> writers_;  // by slot: blocks that write it, in order
    std::vector<std::vector<uint32_t>> readers_;  // by slot: blocks that need its old value
    std::vector<uint32_t> seen_;                  // by block: the last slot carried through
    std::vector<uint32_t> open_;
};

}  // namespace

void find_live_ranges(const Program& program, const SlotUses& uses, uint32_t begin, uint32_t end,
                      std::vector<LiveRange>& ranges) {
    Liveness(program, uses, begin, end, ranges).run();
}

}  // namespace cyrt::emu
