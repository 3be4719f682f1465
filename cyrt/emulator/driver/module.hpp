// A loaded module: its variables in device memory, its kernels.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/api.hpp"
#include "driver/function.hpp"
#include "driver/handles.hpp"
#include "driver/jit_options.hpp"
#include "ptx/ast.hpp"

namespace cyrt::emu {

// Parses the image's PTX and checks that all of it can run. Throws after writing the error log.
std::shared_ptr<const ptx::Module> read_module(const void* image, JitLogs& logs);
// The names of its kernels.
std::vector<std::string> entry_names(const ptx::Module& module);

class Module {
  public:
    struct Symbol {
        uint64_t address = 0;
        uint64_t size = 0;
    };

    // Parses the image and allocates its variables.
    static std::shared_ptr<Module> load(Context& context, const void* image, JitLogs& logs);
    Module(std::shared_ptr<Context> context, std::shared_ptr<const ptx::Module> ptx);
    ~Module();

    Context& context() const { return *context_; }
    const std::shared_ptr<const ptx::Module>& ptx() const { return ptx_; }
    uintptr_t handle = 0;

    Symbol symbol(const std::string& name) const;        // throws CUDA_ERROR_NOT_FOUND
    uint64_t address_of(const std::string& name) const;  // 0 if there is none
    // "variable table, 32 bytes at 0x…" for the address of one, for the texts of faults; else "".
    std::string variable_at(uint64_t address) const;
    Function* function(const std::string& name);  // nullptr if there is none
    std::map<std::string, Function>& all_functions() { return functions_; }

  private:
    void place_variables();
    void initialise(const ptx::Variable& variable, uint64_t address);

    const std::shared_ptr<Context> context_;
    const std::shared_ptr<const ptx::Module> ptx_;
    std::map<std::string, Symbol> symbols_;
    std::map<std::string, Function> functions_;
};

HandleTable<Module>& modules();
std::shared_ptr<Module> module_from(CUmodule handle);  // throws CUDA_ERROR_INVALID_HANDLE

// The handle of a module's kernel; throws CUDA_ERROR_NOT_FOUND.
CUfunction function_handle(const std::shared_ptr<Module>& module, const std::string& name);
// Removes every handle of the functions of a module or context.
void forget_functions(const Module& module);
void forget_functions(const Context& context);

}  // namespace cyrt::emu
