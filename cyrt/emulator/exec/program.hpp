// A kernel in executable form: instructions with handlers and slots.
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

// Properties of a kernel that are known without preparing it.
struct KernelInfo {
    std::vector<ParamInfo> params;
    uint32_t param_bytes = 0;
    uint32_t static_shared = 0;
    uint32_t local_bytes = 0;  // per thread
    uint32_t const_bytes = 0;
    uint32_t registers = 0;            // estimated number of 32-bit registers
    uint32_t max_threads = 1024;       // from .maxntid/.reqntid
    int ptx_version = 0;               // 90 for 9.0
    int target = 0;                    // 90 for sm_90
    uint32_t cluster[3] = {0, 0, 0};   // from .reqnctapercluster; 0: absent
    uint32_t max_cluster_rank = 0;     // from .maxclusterrank; 0: absent
    bool explicit_cluster = false;     // runs only in a cluster
    bool blocks_are_clusters = false;  // a launch's grid counts clusters
};
KernelInfo kernel_info(const ptx::Module& module, const std::string& entry);

// Throws ptx::Error, with its line, for the first instruction that is not supported or whose
// operands do not match it; and for a kernel that exceeds the device's limits.
void check_supported(const ptx::Module& module);

// The value of a pointer to that function, for initialisers of variables. 0: no such function.
uint64_t function_address(const ptx::Module& module, const std::string& name);

// Address of a module-scope variable or 0; called while a program is prepared.
using SymbolAddress = std::function<uint64_t(const std::string&)>;

struct Program;  // exec/code.hpp
std::shared_ptr<const Program> prepare(std::shared_ptr<const ptx::Module> module,
                                       const std::string& entry, const SymbolAddress& address_of);

}  // namespace cyrt::emu
