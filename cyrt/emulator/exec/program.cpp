#include "exec/program.hpp"

#include <algorithm>
#include <iterator>

#include "exec/address.hpp"
#include "exec/code.hpp"
#include "exec/limits.hpp"
#include "exec/reach.hpp"

namespace cyrt::emu {

namespace {

uint32_t product(const uint32_t (&sizes)[3]) {
    uint64_t out = 1;
    for (uint32_t size : sizes) out = std::min<uint64_t>(out * size, limits::kBlockThreads);
    return uint32_t(out);
}

// PTX numbers each value separately; a real allocation needs far fewer registers.
uint32_t estimated_registers(const ptx::Function& kernel) {
    uint32_t words = 0;
    for (const ptx::Register& reg : kernel.registers) words += (ptx::size_of(reg.type) + 3) / 4;
    const uint32_t limit = kernel.max_nreg ? kernel.max_nreg : 64;
    return std::min(limit, std::max(16u, words / 4));
}

}  // namespace

KernelInfo kernel_info(const ptx::Module& module, const std::string& entry) {
    const ptx::Function* kernel = find_function(module, entry);
    if (!kernel || !kernel->is_entry || kernel->is_extern)
        throw ptx::Error(0, "no kernel " + entry);
    KernelInfo out;
    for (const ptx::Variable& param : kernel->params) {
        out.param_bytes = round_up(out.param_bytes, std::max(1u, param.align));
        out.params.push_back({out.param_bytes, uint32_t(param.size)});
        out.param_bytes += uint32_t(param.size);
    }
    out.static_shared = uint32_t(lay_out_shared(module, reach_of(module, *kernel)).bytes);
    for (const ptx::Variable& variable : kernel->variables)
        if (variable.space == ptx::Space::local)
            out.local_bytes =
                round_up(out.local_bytes, std::max(1u, variable.align)) + uint32_t(variable.size);
    for (const ptx::Variable& variable : module.variables)
        if (variable.space == ptx::Space::constant) out.const_bytes += uint32_t(variable.size);
    out.registers = estimated_registers(*kernel);
    if (kernel->req_ntid[0])
        out.max_threads = product(kernel->req_ntid);
    else if (kernel->max_ntid[0])
        out.max_threads = product(kernel->max_ntid);
    out.ptx_version = module.version_major * 10 + module.version_minor;
    out.target = module.target_number;
    std::copy_n(kernel->req_nctapercluster, 3, out.cluster);
    out.max_cluster_rank = kernel->max_cluster_rank;
    out.explicit_cluster = kernel->explicit_cluster || out.cluster[0] != 0;
    out.blocks_are_clusters = kernel->blocks_are_clusters;
    return out;
}

uint64_t function_address(const ptx::Module& module, const std::string& name) {
    const ptx::Function* function = find_function(module, name);
    if (!function) return 0;
    const auto found = module.functions.find(function->name);
    return kCodeWindow + 16 * uint64_t(1 + std::distance(module.functions.begin(), found));
}

std::string place_of(const Program& program, uint32_t line) {
    const ptx::Function* function = nullptr;
    for (const auto& [name, other] : program.module->functions)
        if (!other.is_extern && other.line <= int(line) &&
            (!function || other.line > function->line))
            function = &other;
    std::string out = "PTX line " + std::to_string(line);
    if (!function) return out;
    const auto& places = function->source_lines;
    auto behind =
        std::upper_bound(places.begin(), places.end(), int(line),
                         [](int at, const ptx::SourceLine& place) { return at < place.ptx_line; });
    if (behind == places.begin()) return out;
    const ptx::SourceLine& place = *--behind;
    const auto file = program.module->files.find(place.file);
    const std::string name = file == program.module->files.end() ? "" : file->second;
    return out + " (" + name + ":" + std::to_string(place.line) + ")";
}

std::string trap_text(const Program& program, uint32_t line) {
    const auto reason = program.module->reasons.find(int(line));
    return reason == program.module->reasons.end() ? "trap" : "trap: " + reason->second;
}

bool is_declared_right(const ptx::Signature& declared, SystemCall call) {
    const auto has_sizes = [](const std::vector<ptx::Variable>& variables,
                              std::initializer_list<uint64_t> sizes) {
        return std::equal(variables.begin(), variables.end(), sizes.begin(), sizes.end(),
                          [](const ptx::Variable& variable, uint64_t size) {
                              return variable.size == size && variable.align == size;
                          });
    };
    switch (call) {
    case SystemCall::print:
        return has_sizes(declared.params, {8, 8}) && has_sizes(declared.results, {4});
    case SystemCall::assert_fail:
        return has_sizes(declared.params, {8, 8, 4, 8, 8}) && declared.results.empty();
    case SystemCall::allocate:
        return has_sizes(declared.params, {8}) && has_sizes(declared.results, {8});
    default: return has_sizes(declared.params, {8}) && declared.results.empty();
    }
}

bool system_call_from(const std::string& name, SystemCall& out) {
    if (name == "vprintf")
        out = SystemCall::print;
    else if (name == "__assertfail")
        out = SystemCall::assert_fail;
    else if (name == "malloc")
        out = SystemCall::allocate;
    else if (name == "free")
        out = SystemCall::release;
    else
        return false;
    return true;
}

}  // namespace cyrt::emu
