#include "driver/module.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "driver/capture.hpp"
#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/image.hpp"
#include "driver/memory.hpp"
#include "exec/program.hpp"
#include "ptx/parser.hpp"

namespace cyrt::emu {

namespace {

constexpr int kNewestPtx = 9;   // .version's major number
constexpr int kOurTarget = 90;  // compute capability 9.0

std::string log_line(int line, std::string what) {
    std::string place = "line " + std::to_string(line) + ": ";  // the line is named once
    if (what.compare(0, place.size(), place) == 0) what.erase(0, place.size());
    return "ptxas application ptx input, line " + std::to_string(line) + "; error   : " + what +
           "\nptxas fatal   : Ptx assembly aborted due to errors";
}

// Throws if this device cannot load the module, regardless of its instructions.
void check_header(const ptx::Module& module, JitLogs& logs) {
    std::string version =
        std::to_string(module.version_major) + "." + std::to_string(module.version_minor);
    if (module.version_major > kNewestPtx) {
        logs.error.write("ptxas application ptx input, line 1; fatal   : Unsupported .version " +
                         version);
        throw DriverError{CUDA_ERROR_UNSUPPORTED_PTX_VERSION};
    }
    if (module.target_number > kOurTarget) {
        logs.error.write("ptxas fatal   : SM version specified by .target " + module.target +
                         " is higher than that of the device, sm_90");
        throw DriverError{CUDA_ERROR_INVALID_PTX};
    }
}

void warn_of_externs(const ptx::Module& module, JitLogs& logs) {
    std::string warnings;
    for (const ptx::Variable& variable : module.variables) {
        if (!variable.is_extern || variable.space == ptx::Space::shared) continue;
        if (!warnings.empty()) warnings += '\n';
        warnings += "ptxas warning : Unresolved extern variable '" + variable.name +
                    "' in whole program compilation, ignoring extern qualifier";
    }
    if (!warnings.empty()) logs.info.write(warnings);
}

// Functions that a launch can use.
bool is_kernel(const ptx::Function& function) { return function.is_entry && !function.is_extern; }

}  // namespace

std::shared_ptr<const ptx::Module> read_module(const void* image, JitLogs& logs) {
    try {
        auto module = std::make_shared<ptx::Module>(ptx::parse(ptx_of(image)));
        check_header(*module, logs);
        check_supported(*module);
        return module;
    } catch (const ptx::Error& error) {
        logs.error.write(log_line(error.line, error.what()));
        throw;
    } catch (const DriverError& error) {
        if (error.code == CUDA_ERROR_INVALID_IMAGE)
            logs.error.write("error   : Binary format is not recognized");
        if (error.code == CUDA_ERROR_NO_BINARY_FOR_GPU)
            logs.error.write("error   : the image holds no PTX for this device (machine code and "
                             "zstd-compressed PTX are not read)");
        throw;
    }
}

std::vector<std::string> entry_names(const ptx::Module& module) {
    std::vector<std::string> names;
    for (const auto& [name, function] : module.functions)
        if (is_kernel(function)) names.push_back(name);
    return names;
}

std::shared_ptr<Module> Module::load(Context& context, const void* image, JitLogs& logs) {
    auto ptx = read_module(image, logs);
    warn_of_externs(*ptx, logs);
    auto module = std::make_shared<Module>(context.shared_from_this(), std::move(ptx));
    module->place_variables();
    modules().add(module);
    return module;
}

Module::Module(std::shared_ptr<Context> owner, std::shared_ptr<const ptx::Module> parsed)
    : context_(std::move(owner)), ptx_(std::move(parsed)) {
    for (const std::string& name : entry_names(*ptx_)) functions_.try_emplace(name, *this, name);
}

Module::~Module() {
    for (const auto& [name, symbol] : symbols_) release(symbol.address);
}

void Module::place_variables() {
    for (const ptx::Variable& variable : ptx_->variables) {
        if (variable.space == ptx::Space::shared || symbols_.count(variable.name)) continue;
        uint64_t size = variable.size ? variable.size : 1;
        symbols_[variable.name] = {allocate(*context_, size, MemoryKind::variable), size};
    }
    for (const ptx::Variable& variable : ptx_->variables)
        if (variable.space != ptx::Space::shared)
            initialise(variable, symbols_.at(variable.name).address);
    for (const ptx::Variable& variable : ptx_->variables)
        if (variable.space == ptx::Space::constant)
            context_->device.arena.make_read_only(symbols_.at(variable.name).address);
}

void Module::initialise(const ptx::Variable& variable, uint64_t address) {
    Region region;
    require(context_->device.arena.find(address, region), CUDA_ERROR_UNKNOWN);
    uint64_t size = region.hi - region.lo;
    std::memset(region.host, 0, size);
    std::copy_n(variable.init.begin(), std::min<uint64_t>(variable.init.size(), size), region.host);
    for (const ptx::Relocation& relocation : variable.relocations) {
        uint64_t target = address_of(relocation.symbol);
        if (!target) target = function_address(*ptx_, relocation.symbol);
        if (!target) throw ptx::Error(variable.line, "Unknown symbol '" + relocation.symbol + "'");
        target += relocation.addend;
        require(relocation.offset + relocation.size <= size, CUDA_ERROR_INVALID_PTX);
        std::memcpy(region.host + relocation.offset, &target, relocation.size);
    }
    if (region.valid) std::memset(region.valid, 1, size);
}

Module::Symbol Module::symbol(const std::string& name) const {
    auto found = symbols_.find(name);
    require(found != symbols_.end(), CUDA_ERROR_NOT_FOUND);
    return found->second;
}

uint64_t Module::address_of(const std::string& name) const {
    auto found = symbols_.find(name);
    return found == symbols_.end() ? 0 : found->second.address;
}

std::string Module::variable_at(uint64_t address) const {
    for (const auto& [name, symbol] : symbols_)
        if (symbol.address == address)
            return "variable " + name + ", " + std::to_string(symbol.size) +
                   (symbol.size == 1 ? " byte at " : " bytes at ") + hex(address);
    return "";
}

Function* Module::function(const std::string& name) {
    auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : &found->second;
}

HandleTable<Module>& modules() {
    static auto& table = *new HandleTable<Module>(HandleKind::module);
    return table;
}

std::shared_ptr<Module> module_from(CUmodule handle) {
    std::shared_ptr<Module> module = modules().find(handle);
    require(module != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return module;
}

CUfunction function_handle(const std::shared_ptr<Module>& module, const std::string& name) {
    static std::mutex mutex;
    Function* function = module->function(name);
    require(function != nullptr, CUDA_ERROR_NOT_FOUND);
    std::lock_guard lock(mutex);
    // Shares the module's reference count: the table, and work in flight, keep the module alive.
    if (!function->handle) functions().add(std::shared_ptr<Function>(module, function));
    return as_handle<CUfunction>(function->handle);
}

void forget_functions(const Module& module) {
    functions().remove_if([&](const Function& function) { return &function.module == &module; });
}

void forget_functions(const Context& context) {
    functions().remove_if(
        [&](const Function& function) { return &function.context() == &context; });
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

namespace {

CUresult load(CUmodule* out, const void* image, unsigned count, CUjit_option* options,
              void** values) {
    return context_entry([&](Context& context) {
        require(out && image);
        require_safe_call();
        JitLogs logs(count, options, values);
        *out = as_handle<CUmodule>(Module::load(context, image, logs)->handle);
    });
}

}  // namespace

CYRT_API CUresult cuModuleLoadData(CUmodule* out, const void* image) {
    return load(out, image, 0, nullptr, nullptr);
}

CYRT_API CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned count,
                                     CUjit_option* options, void** values) {
    return load(out, image, count, options, values);
}

CYRT_API CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) {
    return load(out, image, 0, nullptr, nullptr);
}

CYRT_API CUresult cuModuleLoad(CUmodule* out, const char* path) {
    return context_entry([&](Context& context) {
        require(out && path);
        require_safe_call();
        std::string image = read_image(path);
        JitLogs logs;
        *out = as_handle<CUmodule>(Module::load(context, image.data(), logs)->handle);
    });
}

CYRT_API CUresult cuModuleUnload(CUmodule handle) {
    return context_entry([&](Context&) {
        std::shared_ptr<Module> module = module_from(handle);
        require_safe_call();
        module->context().synchronize();
        modules().remove(handle);
        forget_functions(*module);
    });
}

CYRT_API CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
    return context_entry([&](Context&) {
        require(out && name && *name);
        *out = function_handle(module_from(module), name);
    });
}

CYRT_API CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* size, CUmodule module,
                                       const char* name) {
    return context_entry([&](Context&) {
        require(name && (address || size));
        Module::Symbol symbol = module_from(module)->symbol(name);
        if (address) *address = symbol.address;
        if (size) *size = symbol.size;
    });
}

CYRT_API CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
    return context_entry([&](Context&) {
        require(count);
        *count = static_cast<unsigned>(module_from(module)->all_functions().size());
    });
}

CYRT_API CUresult cuModuleEnumerateFunctions(CUfunction* out, unsigned room, CUmodule handle) {
    return context_entry([&](Context&) {
        require(out || room == 0);
        std::shared_ptr<Module> module = module_from(handle);
        for (auto& [name, function] : module->all_functions()) {
            if (room-- == 0) break;
            *out++ = function_handle(module, name);
        }
    });
}

CYRT_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    return entry([&] {
        require(mode);
        *mode = CU_MODULE_LAZY_LOADING;
    });
}
