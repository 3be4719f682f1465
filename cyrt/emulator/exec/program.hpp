// A kernel made ready to run: instructions with handlers and slots.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ptx/ast.hpp"

namespace cyrt::emu {

struct ParamInfo {
    uint32_t offset, size;
};

// What is known of a kernel without preparing it.
struct KernelInfo {
    std::vector<ParamInfo> params;
    uint32_t param_bytes = 0;
    uint32_t static_shared = 0;
    uint32_t local_bytes = 0;          // per thread
    uint32_t const_bytes = 0;
    uint32_t registers = 0;            // 32-bit ones, an estimate
    uint32_t max_threads = 1024;       // from .maxntid/.reqntid
    int ptx_version = 0;               // 90 for 9.0
    int target = 0;                    // 90 for sm_90
    uint32_t cluster[3] = {0, 0, 0};   // of .reqnctapercluster; 0: not given
    uint32_t max_cluster_rank = 0;     // of .maxclusterrank; 0: not given
    bool explicit_cluster = false;     // runs in a cluster, or not at all
};
KernelInfo kernel_info(const ptx::Module& module, const std::string& entry);

// Throws ptx::Error for the first instruction that nothing here can run, or whose operands do not
// fit it, named with its line; and for a kernel that needs more than the device has.
void check_supported(const ptx::Module& module);

// What a pointer to that function holds: for initialisers of variables. 0: no such function.
uint64_t function_address(const ptx::Module& module, const std::string& name);

// Address of a module-scope variable or 0; asked for while a program is prepared.
using SymbolAddress = std::function<uint64_t(const std::string&)>;

struct Program;   // exec/code.hpp
std::shared_ptr<const Program> prepare(std::shared_ptr<const ptx::Module> module,
                                       const std::string& entry, const SymbolAddress& address_of);

}  // namespace cyrt::emu
