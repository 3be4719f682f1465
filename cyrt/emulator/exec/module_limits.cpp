#include "exec/module_limits.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "exec/limits.hpp"
#include "exec/reach.hpp"

namespace cyrt::emu {

namespace {

void require_room(int line, const std::string& who, const char* what, uint64_t bytes,
                  uint64_t most) {
    if (bytes <= most) return;
    char sizes[80];
    std::snprintf(sizes, sizeof sizes, " (0x%llx bytes, 0x%llx max)",
                  static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(most));
    throw ptx::Error(line, who + " uses too much " + what + sizes);
}

// The parser limits the size of a variable: no sum of sizes overflows.
uint64_t laid_out(const std::vector<ptx::Variable>& variables, uint64_t bytes = 0) {
    for (const ptx::Variable& variable : variables)
        bytes = round_up(bytes, uint64_t(std::max(1u, variable.align))) + variable.size;
    return bytes;
}

uint64_t frame_bytes(const ptx::Function& function) {
    std::vector<ptx::Variable> own;
    for (const ptx::Variable& variable : function.variables)
        if (variable.space != ptx::Space::shared) own.push_back(variable);
    const uint64_t passed =
        function.is_entry ? 0 : laid_out(function.results, laid_out(function.params));
    return laid_out(own, passed);
}

}  // namespace

void check_limits(const ptx::Module& module) {
    uint64_t constant = 0;
    for (const ptx::Variable& variable : module.variables)
        if (variable.space == ptx::Space::constant) constant += variable.size;
    require_room(1, "File", "global constant data", constant, limits::kConstant);

    const bool has_large_params =
        module.version_major * 10 + module.version_minor >= 81 && module.target_number >= 70;
    for (const auto& [name, function] : module.functions) {
        if (function.is_extern) continue;
        const std::string who =
            (function.is_entry ? "Entry function '" : "Function '") + name + "'";
        require_room(function.line, who, "local data", frame_bytes(function), limits::kLocal);
        if (!function.is_entry) continue;
        require_room(function.line, who, "parameter space", laid_out(function.params),
                     has_large_params ? limits::kParameters : limits::kOldParameters);
        require_room(function.line, who, "shared data",
                     lay_out_shared(module, reach_of(module, function)).bytes,
                     limits::kStaticShared);
    }
}

}  // namespace cyrt::emu
