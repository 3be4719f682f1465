// prepare(): lowers a parsed kernel to a program.
#include <algorithm>
#include <atomic>

#include "exec/address.hpp"
#include "exec/builder.hpp"
#include "exec/code.hpp"
#include "exec/lowering.hpp"
#include "exec/program.hpp"
#include "exec/reach.hpp"
#include "exec/trigger.hpp"

namespace cyrt::emu {

namespace {

constexpr uint32_t kFrameAlign = 16;

void size_frames(Program& program, const Reach& reach) {
    uint32_t align = kFrameAlign;
    for (const ptx::Function* function : reach.functions)
        for (const ptx::Variable& variable : function->variables)
            if (variable.space == ptx::Space::local) align = std::max(align, variable.align);
    // Every activation uses memory, so that a recursion without variables ends as well.
    for (FunctionCode& function : program.functions)
        function.frame.bytes = round_up(std::max(function.frame.bytes, 1u), align);
    program.frame_bytes = program.functions.back().frame.bytes;
    program.staging_bytes = round_up(program.staging_bytes, align);

    if (!reach.recursive.empty() || reach.calls_by_pointer || reach.has_alloca) {
        program.has_open_stack = true;
        return;
    }
    std::map<const ptx::Function*, uint32_t> needed;
    for (size_t i = 0; i < reach.functions.size(); ++i) {
        uint32_t deepest = 0;
        for (const ptx::Function* callee : reach.callees.at(reach.functions[i]))
            deepest = std::max(deepest, needed.at(callee));
        needed[reach.functions[i]] = deepest + program.functions[i].frame.bytes;
        program.stack_bytes = deepest;  // the last value is the kernel's
    }
}

}  // namespace

std::shared_ptr<const Program> prepare(std::shared_ptr<const ptx::Module> module,
                                       const std::string& entry, const SymbolAddress& address_of) {
    static std::atomic<uint64_t> last_id{0};
    const ptx::Function* kernel = find_function(*module, entry);
    if (!kernel || !kernel->is_entry || kernel->is_extern)
        throw ptx::Error(0, "no kernel " + entry);
    const Reach reach = reach_of(*module, *kernel);
    const SharedLayout shared = lay_out_shared(*module, reach);

    auto program = std::make_shared<Program>();
    program->name = entry;
    program->id = ++last_id;
    program->static_shared = uint32_t(shared.bytes);
    program->param_bytes = kernel_info(*module, entry).param_bytes;
    program->functions.resize(reach.functions.size());

    ProgramBuilder builder(*program);
    program->stack_slot = builder.add_program_slot(8);
    std::map<const ptx::Function*, uint32_t> function_index;
    for (size_t i = 0; i < reach.functions.size(); ++i)
        function_index[reach.functions[i]] = uint32_t(i);
    LoweringContext context{*module, address_of, shared, function_index, {}};
    for (const ptx::Variable& variable : module->variables)
        if (variable.space == ptx::Space::shared)
            context.module_shared.emplace(variable.name, &variable);

    for (size_t i = 0; i < reach.functions.size(); ++i) {
        const ptx::Function* function = reach.functions[i];
        program->functions[i].recursive = reach.recursive.count(function) > 0;
        FunctionLowering(context, builder, *function, uint32_t(i)).lower();
        if (reach.by_pointer.count(function))
            program->by_address[function_address(*module, function->name)] = uint32_t(i);
    }
    program->has_loops |= !reach.recursive.empty();
    program->uses_stack =
        reach.has_alloca || program->staging_bytes > 0 || reach.functions.size() > 1;
    size_frames(*program, reach);
    builder.finish();
    program->triggers_before_waiting = may_trigger_before_waiting(*program);
    program->module = std::move(module);
    return program;
}

}  // namespace cyrt::emu
