#include "exec/lowering.hpp"

#include <algorithm>
#include <string_view>

#include "exec/handlers.hpp"
#include "exec/moves.hpp"
#include "exec/operand_forms.hpp"
#include "exec/operand_types.hpp"
#include "exec/support.hpp"

namespace cyrt::emu {

using ptx::is_signed;
using ptx::Type;
using Kind = ptx::Operand::Kind;

namespace {

uint32_t place(const ptx::Variable& variable, FrameLayout& layout) {
    layout.bytes = round_up(layout.bytes, std::max(1u, variable.align));
    const uint32_t offset = layout.bytes;
    // A register parameter is passed in memory too, with the size of its cell.
    const uint32_t size =
        variable.space == ptx::Space::reg ? cell_of(variable.type) : uint32_t(variable.size);
    layout.bytes += size;
    return offset;
}

}  // namespace

uint8_t cell_of(Type type) {
    const uint32_t size = ptx::size_of(type);
    return uint8_t(std::max(4u, size));
}

namespace {

Handler move_handler(Type type) {
    return find_handler(std::string("mov.") + (type == Type::pred    ? "pred"
                                               : cell_of(type) == 16 ? "b128"
                                               : cell_of(type) == 8  ? "b64"
                                                                     : "b32"));
}

}  // namespace

FrameLayout signature_layout(const ptx::Signature& signature) {
    FrameLayout out;
    for (const ptx::Variable& param : signature.params) out.params.push_back(place(param, out));
    for (const ptx::Variable& result : signature.results) out.results.push_back(place(result, out));
    return out;
}

FunctionLowering::FunctionLowering(const LoweringContext& context, ProgramBuilder& builder,
                                   const ptx::Function& function, uint32_t index)
    : context_(context), builder_(builder), function_(function),
      code_(builder.program().functions[index]) {
    builder_.enter(index);
    for (const ptx::Register& reg : function.registers)
        registers_.push_back(builder_.add_slot(cell_of(reg.type), reg.type == Type::pred));
    lay_out_frame();

    is_label_.assign(function.body.size() + 1, false);
    for (const Instruction& instruction : function.body)
        for (const Operand& operand : instruction.operands)
            if (operand.kind == Kind::label && operand.index >= 0)
                is_label_[size_t(operand.index)] = true;
    for (const auto& [name, targets] : function.branch_targets)
        for (int32_t target : targets) is_label_[size_t(target)] = true;
}

void FunctionLowering::lay_out_frame() {
    code_.name = function_.name;
    if (!function_.is_entry) {
        code_.frame = signature_layout(function_);
        for (size_t i = 0; i < function_.params.size(); ++i)
            frame_[function_.params[i].name] = code_.frame.params[i];
        for (size_t i = 0; i < function_.results.size(); ++i)
            frame_[function_.results[i].name] = code_.frame.results[i];
        code_.base_slot = builder_.add_slot(8);
    }
    for (const ptx::Variable& variable : function_.variables)
        if (variable.space == ptx::Space::local || variable.space == ptx::Space::param)
            frame_[variable.name] = place(variable, code_.frame);
}

void FunctionLowering::lower() {
    code_.entry = builder_.pc();
    fold_constants();
    load_register_params();
    waits_before_.push_back(0);
    for (const Instruction& instruction : function_.body)
        waits_before_.push_back(waits_before_.back() + may_wait(instruction));
    for (size_t i = 0; i < function_.body.size(); ++i) {
        current_ = &function_.body[i];
        pc_of_.push_back(builder_.pc());
        if (is_label_[i]) builder_.emit_control(ControlKind::join, current_->line);
        if (!folded_[i]) lower_guarded(i);
    }
    pc_of_.push_back(builder_.pc());
    const int end = function_.body.empty() ? function_.line : function_.body.back().line;
    if (is_label_.back()) builder_.emit_control(ControlKind::join, end);
    lower_return(end);
    resolve_branches();
}

void FunctionLowering::lower_guarded(size_t index) {
    const Instruction& instruction = function_.body[index];
    if (instruction.guard < 0 || instruction.opcode == "bra") return lower_instruction(index);

    const uint32_t guard = builder_.pc();
    const uint32_t predicate = registers_[size_t(instruction.guard)];
    const bool by_branch = is_control(instruction);
    builder_.emit_control(by_branch ? ControlKind::branch : ControlKind::guard, instruction.line,
                          predicate);
    lower_instruction(index);
    const uint32_t behind = builder_.pc();
    if (by_branch) builder_.emit_control(ControlKind::join, instruction.line);
    Control& control = builder_.control_at(guard);
    control.negated = instruction.guard_negated != by_branch;  // branches over it otherwise
    control.target = behind;
    control.count = uint8_t(behind - guard - 1);
}

void FunctionLowering::lower_instruction(size_t index) {
    const Instruction& instruction = function_.body[index];
    const std::string& opcode = instruction.opcode;
    if (opcode == "pmevent" || opcode == "setmaxnreg") return;
    if (is_control(instruction)) return lower_control(instruction, index);
    if (opcode == "mov") return lower_move(instruction);
    if (opcode == "alloca" || opcode == "stacksave" || opcode == "stackrestore")
        return lower_stack(instruction);
    if (is_matrix(instruction)) return lower_matrix(instruction);
    if (opcode == "cp") return lower_async_copy(instruction);
    if (is_memory(instruction)) return lower_memory(instruction);
    lower_on_registers(instruction);
}

void FunctionLowering::fail(const Instruction& instruction) const {
    throw unsupported(function_, instruction);
}

// --- register to register ----------------------------------------------------------------------

void FunctionLowering::lower_on_registers(const Instruction& instruction) {
    const OperandRules rules = form_of(instruction)->rules_for(instruction).value();
    const auto& operands = instruction.operands;
    const size_t results = instruction.paired ? 2 : 1;
    const size_t sources = operands.size() - results;
    Inst inst;
    inst.run = find_handler(full_name(instruction));
    for (size_t i = 0; i < sources; ++i)
        inst.s[i] = source(operands[results + i], rules[results + i]->type_in(instruction));
    for (size_t i = 0; i < results; ++i)
        inst.d[i] = result(operands[i], rules[i]->type_in(instruction));
    if (sources > 0 && selects_parts(*rules[results]))
        inst.extra = pack_video_selectors(operands[0].name, operands[1].name, operands[2].name);
    if (waits_for_members(instruction)) {
        builder_.emit_control(ControlKind::member_sync, instruction.line, inst.s[sources - 1]);
        inst.extra = builder_.cell(inst.s[0]);  // lanes meet there from several instructions
    }
    builder_.emit(inst, instruction.line);
    flush_results();
}

// --- memory ------------------------------------------------------------------------------------

void FunctionLowering::lower_memory(const Instruction& instruction) {
    Instruction form = instruction;
    Inst inst;
    MemoryOp op;
    std::fill(std::begin(op.vector), std::end(op.vector), kNoSlot);
    std::fill(std::begin(op.values), std::end(op.values), kNoSlot);
    const auto address =
        std::find_if(instruction.operands.begin(), instruction.operands.end(),
                     [](const Operand& operand) { return operand.kind == Kind::address; });
    if (address != instruction.operands.end()) lower_address(*address, inst, op);
    lower_memory_data(instruction, inst, op);

    // Parameters of functions and of calls are in frames, and so in local memory.
    uint32_t ignored;
    const bool in_frame = address != instruction.operands.end() &&
                          (!function_.is_entry || find_frame_variable(address->name, ignored));
    if (in_frame)
        for (std::string& modifier : form.modifiers)
            if (modifier == "param" || modifier == "param::func") modifier = "local";
    if (!select_memory_handler(form, inst, op)) fail(instruction);
    if (op.space == ptx::Space::generic && address != instruction.operands.end())
        op.offset += window_of_name(*address);
    const bool vector_is_result = instruction.opcode != "st" && instruction.opcode != "red";
    builder_.emit_memory(inst, op, vector_is_result, instruction.line);
    flush_results();
}

void FunctionLowering::lower_memory_data(const Instruction& instruction, Inst& inst, MemoryOp& op) {
    const auto& operands = instruction.operands;
    const std::string& opcode = instruction.opcode;
    // isspacep has no type: its operand is an address.
    const Type type = opcode == "isspacep" ? Type::b64 : last_type(instruction);
    const bool keeps_cell = opcode == "ld" || opcode == "ldu" || opcode == "st";

    // A load or store uses the register unchanged; every other instruction has its type's cell.
    Type data = type == Type::none ? Type::b32 : type;
    op.cell = cell_of(data);
    if (keeps_cell) {
        for (const Operand& operand : operands) {
            const auto take = [&](const Operand& part) {
                if (part.kind != Kind::reg) return;
                data = function_.registers[size_t(part.index)].type;
                if (ptx::size_of(data) < ptx::size_of(type)) data = type;
                op.cell = std::max(op.cell, cell_of(data));
            };
            take(operand);
            for (const Operand& part :
                 operand.kind == Kind::vector ? operand.elements : std::vector<Operand>{})
                take(part);
        }
    }
    const Type of_cell = op.cell == 16 ? Type::b128 : op.cell == 8 ? Type::b64 : Type::b32;
    const auto value = [&](const Operand& operand) {
        if (!keeps_cell || operand.kind != Kind::reg) {
            // An immediate is converted to the instruction's type, and then stored in a cell of the
            // data's size.
            return resized(source(operand, data == of_cell || keeps_cell ? type : data), op.cell,
                           false);
        }
        return resized(register_source(operand), op.cell, false);
    };

    bool before_address = opcode != "st" && opcode != "red";
    size_t next = 1;  // values follow the address operand, even if it is absent
    bool has_result = false;
    for (size_t i = 0; i < operands.size(); ++i) {
        const Operand& operand = operands[i];
        if (operand.kind == Kind::address) {
            before_address = false;
            continue;
        }
        if (before_address && i == 0) {
            has_result = true;
            if (operand.kind == Kind::vector) {
                for (size_t k = 0; k < operand.elements.size(); ++k)
                    op.vector[k] = result(operand.elements[k], keeps_cell ? of_cell : data);
                if (operand.elements.size() == 1) inst.d[0] = op.vector[0];
            } else if (operand.kind != Kind::sink || opcode != "atom") {
                inst.d[0] = result(operand, keeps_cell ? of_cell : data);
            }
            continue;
        }
        if (has_modifier(instruction, "L2::cache_hint") && i + 1 == operands.size()) break;
        if (operand.kind == Kind::vector) {
            uint32_t* slots = has_result ? op.values : op.vector;
            for (size_t k = 0; k < operand.elements.size(); ++k)
                slots[k] = value(operand.elements[k]);
            if (operand.elements.size() == 1) inst.s[next] = slots[0];
            ++next;
        } else {
            inst.s[next++] = value(operand);
        }
    }
}

void FunctionLowering::lower_address(const Operand& operand, Inst& inst, MemoryOp& op) {
    op.offset = uint64_t(operand.value);
    uint32_t offset;
    if (operand.index >= 0) {
        inst.s[0] = registers_[size_t(operand.index)];
        op.address_cell = builder_.cell(inst.s[0]);
    } else if (operand.name.empty()) {
        return;
    } else if (find_frame_variable(operand.name, offset)) {
        inst.s[0] = code_.base_slot;
        op.offset += offset;
    } else {
        op.offset += symbol_address(operand.name);
    }
}

// The generic address of a named variable, for an instruction without a state space.
uint64_t FunctionLowering::window_of_name(const Operand& address) const {
    uint32_t ignored;
    if (address.index >= 0 || address.name.empty()) return 0;
    if (find_frame_variable(address.name, ignored)) return kLocalWindow;
    return find_shared(address.name) ? kSharedWindow : 0;
}

bool FunctionLowering::find_frame_variable(const std::string& name, uint32_t& offset) const {
    const auto found = frame_.find(name);
    if (found == frame_.end()) return false;
    offset = found->second;
    return true;
}

const ptx::Variable* FunctionLowering::find_shared(const std::string& name) const {
    for (const ptx::Variable& variable : function_.variables)
        if (variable.space == ptx::Space::shared && variable.name == name) return &variable;
    const auto found = context_.module_shared.find(name);
    return found == context_.module_shared.end() ? nullptr : found->second;
}

// --- operands ----------------------------------------------------------------------------------

uint32_t FunctionLowering::resized(uint32_t slot, uint8_t cell, bool is_signed) {
    const uint8_t from = builder_.cell(slot);
    if (from == cell) return slot;
    Inst inst;
    inst.run = resize_handler(from, cell, is_signed);
    inst.s[0] = slot;
    inst.d[0] = builder_.add_slot(cell);
    builder_.emit(inst, current_->line);
    return inst.d[0];
}

// The register's slot, or that of its sum with a constant.
uint32_t FunctionLowering::register_source(const Operand& operand) {
    const uint32_t slot = registers_[size_t(operand.index)];
    if (operand.value == 0) return slot;
    const uint8_t cell = builder_.cell(slot);
    Inst inst;
    inst.run = find_handler(cell == 8 ? "add.u64" : "add.u32");
    inst.s[0] = slot;
    inst.s[1] =
        builder_.constant(cell, cell == 8 ? uint64_t(operand.value) : uint32_t(operand.value));
    inst.d[0] = builder_.add_slot(cell);
    builder_.emit(inst, current_->line);
    return inst.d[0];
}

uint32_t FunctionLowering::source(const Operand& operand, Type type) {
    const uint8_t cell = cell_of(type);
    switch (operand.kind) {
    case Kind::reg: {
        const uint32_t slot = register_source(operand);
        if (!operand.negated) return resized(slot, cell, is_signed(type));
        Inst inst;
        inst.run = find_handler("not.pred");
        inst.s[0] = slot;
        inst.d[0] = builder_.add_slot(4, true);
        builder_.emit(inst, current_->line);
        return inst.d[0];
    }
    case Kind::imm: {
        const uint64_t bits = immediate_bits(operand, type);
        const bool fills_up = cell == 16 && int64_t(bits) < 0 && !operand.is_float;
        return builder_.constant(cell, bits, fills_up ? ~0ull : 0);
    }
    case Kind::symbol: return symbol_source(operand, cell);
    case Kind::special: return special_source(operand, cell);
    case Kind::sink: return kNoSlot;
    default: fail(*current_);
    }
}

uint32_t FunctionLowering::symbol_source(const Operand& operand, uint8_t cell) {
    uint32_t offset;
    if (!find_frame_variable(operand.name, offset) || code_.base_slot == kNoSlot) {
        const uint64_t address = symbol_address(operand.name) + uint64_t(operand.value);
        return builder_.constant(cell, cell == 4 ? uint32_t(address) : address);
    }
    Inst inst;
    inst.run = find_handler("add.u64");
    inst.s[0] = code_.base_slot;
    inst.s[1] = builder_.constant(8, offset + uint64_t(operand.value));
    inst.d[0] = builder_.add_slot(8);
    builder_.emit(inst, current_->line);
    return resized(inst.d[0], cell, false);
}

// A symbol's address in its own space; for one in a frame, relative to the frame's base.
uint64_t FunctionLowering::symbol_address(const std::string& name) const {
    uint32_t offset = 0;
    if (find_frame_variable(name, offset)) return offset;
    // A kernel's parameters; all other symbols are in frame_.
    for (const ptx::Variable& param : function_.params) {
        offset = round_up(offset, std::max(1u, param.align));
        if (param.name == name) return offset;
        offset += uint32_t(param.size);
    }
    if (const ptx::Variable* shared = find_shared(name)) return context_.shared.offsets.at(shared);
    if (const uint64_t address = context_.address_of(name)) return address;
    if (const uint64_t address = function_address(context_.module, name)) return address;
    throw ptx::Error(current_->line, "nothing is defined under the name " + name);
}

uint32_t FunctionLowering::special_source(const Operand& operand, uint8_t cell) {
    Special which;
    Type type;
    if (!special_from(operand.name, which, type)) fail(*current_);
    if (!changes(which)) return builder_.special(which, cell);
    Inst inst;
    inst.run = special_reader(which);
    inst.d[0] = builder_.add_slot(cell_of(type));
    builder_.emit(inst, current_->line);
    return resized(inst.d[0], cell, false);
}

uint32_t FunctionLowering::result(const Operand& operand, Type type) {
    const uint8_t cell = cell_of(type);
    if (operand.kind == Kind::sink) return builder_.add_slot(cell);
    if (operand.kind != Kind::reg) fail(*current_);
    const uint32_t slot = registers_[size_t(operand.index)];
    if (builder_.cell(slot) == cell) return slot;
    const uint32_t own = builder_.add_slot(cell);
    widenings_.push_back({own, slot, is_signed(type)});
    return own;
}

void FunctionLowering::flush_results() {
    for (const Widening& widening : widenings_) {
        Inst inst;
        inst.run = resize_handler(builder_.cell(widening.from), builder_.cell(widening.to),
                                  widening.is_signed);
        inst.s[0] = widening.from;
        inst.d[0] = widening.to;
        builder_.emit(inst, current_->line);
    }
    widenings_.clear();
}

// --- mov and the stack -------------------------------------------------------------------------

void FunctionLowering::lower_move(const Instruction& instruction) {
    const Type type = last_type(instruction);
    const Operand& to = instruction.operands[0];
    const Operand& from = instruction.operands[1];
    if (to.kind == Kind::vector && from.kind == Kind::vector) {
        move_vector(to, from, type);
    } else if (to.kind == Kind::vector) {
        unpack(to, from, type);
    } else if (from.kind == Kind::vector) {
        pack(to, from, type);
    } else {
        move_into(to, from, type);
    }
}

// All elements are read before any is written: both vectors may have a register.
void FunctionLowering::move_vector(const Operand& to, const Operand& from, Type type) {
    for (size_t i = 0; i < to.elements.size(); ++i) {
        if (to.elements[i].kind == Kind::sink) continue;
        Inst inst;
        inst.run = move_handler(type);
        inst.s[0] = source(from.elements[i], type);
        inst.d[0] = builder_.add_slot(cell_of(type), type == Type::pred);
        builder_.emit(inst, current_->line);
        widenings_.push_back(
            {inst.d[0], registers_[size_t(to.elements[i].index)], is_signed(type)});
    }
    flush_results();
}

void FunctionLowering::move_into(const Operand& to, const Operand& from, Type type) {
    Inst inst;
    inst.run = move_handler(type);
    inst.s[0] = source(from, type);
    inst.d[0] = result(to, type);
    builder_.emit(inst, current_->line);
    flush_results();
}

void FunctionLowering::pack(const Operand& to, const Operand& parts, Type type) {
    const uint32_t count = uint32_t(parts.elements.size());
    const uint32_t width = ptx::size_of(type) / count;
    Inst inst;
    inst.run = pack_handler(count, width);
    const Type part = width == 8   ? Type::b64
                      : width == 4 ? Type::b32
                      : width == 2 ? Type::b16
                                   : Type::b8;
    for (uint32_t i = 0; i < count; ++i) inst.s[i] = source(parts.elements[i], part);
    inst.d[0] = result(to, type);
    builder_.emit(inst, current_->line);
    flush_results();
}

void FunctionLowering::unpack(const Operand& parts, const Operand& from, Type type) {
    const uint32_t count = uint32_t(parts.elements.size());
    const uint32_t width = ptx::size_of(type) / count;
    const uint32_t whole = source(from, type);
    for (uint32_t i = 0; i < count; ++i) {
        if (parts.elements[i].kind == Kind::sink) continue;
        Inst inst;
        inst.run = extract_handler(i, width, ptx::size_of(type));
        inst.s[0] = whole;
        inst.d[0] = result(parts.elements[i], width == 8 ? Type::b64 : Type::b32);
        builder_.emit(inst, current_->line);
    }
    flush_results();
}

void FunctionLowering::lower_stack(const Instruction& instruction) {
    const uint32_t stack = builder_.program().stack_slot;
    const auto& operands = instruction.operands;
    Inst inst;
    if (instruction.opcode == "alloca") {
        Operand align;
        align.kind = Kind::imm;
        align.bits = 8;
        inst.run = allocate_stack;
        inst.s[0] = source(operands[1], Type::u64);
        inst.s[1] = source(operands.size() > 2 ? operands[2] : align, Type::u64);
        inst.s[2] = stack;
        inst.d[0] = result(operands[0], Type::u64);
        inst.d[1] = stack;
    } else {
        inst.run = find_handler("mov.b64");
        const bool restores = instruction.opcode == "stackrestore";
        inst.s[0] = restores ? source(operands[0], Type::u64) : stack;
        inst.d[0] = restores ? stack : result(operands[0], Type::u64);
    }
    builder_.emit(inst, instruction.line);
    flush_results();
}

}  // namespace cyrt::emu
