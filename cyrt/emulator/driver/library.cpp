#include "driver/library.hpp"

#include "driver/capture.hpp"
#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/image.hpp"
#include "driver/module.hpp"
#include "ptx/parser.hpp"

namespace cyrt::emu {

std::shared_ptr<Module> Library::module_in(Context& context) {
    std::lock_guard lock(mutex_);
    uintptr_t& known = modules_[context.handle];
    if (known)
        if (auto module = modules().find(as_handle<CUmodule>(known))) return module;
    JitLogs logs;
    std::shared_ptr<Module> module = Module::load(context, image_.c_str(), logs);
    known = module->handle;
    return module;
}

Kernel* Library::kernel(const std::string& name) {
    auto found = kernels_.find(name);
    return found == kernels_.end() ? nullptr : &found->second;
}

void Library::unload() {
    std::lock_guard lock(mutex_);
    for (const auto& [context, handle] : modules_) {
        std::shared_ptr<Module> module = modules().find(as_handle<CUmodule>(handle));
        if (!module) continue;
        module->context().synchronize();
        modules().remove(as_handle<CUmodule>(handle));
        forget_functions(*module);
    }
    modules_.clear();
}

std::shared_ptr<Function> Kernel::function_in(Context& context) {
    CUfunction handle = function_handle(library.module_in(context), name);
    return functions().find(handle);
}

HandleTable<Library>& libraries() {
    static auto& table = *new HandleTable<Library>(HandleKind::library);
    return table;
}

HandleTable<Kernel>& kernels() {
    static auto& table = *new HandleTable<Kernel>(HandleKind::kernel);
    return table;
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

namespace {

std::shared_ptr<Library> library_from(CUlibrary handle) {
    std::shared_ptr<Library> library = libraries().find(handle);
    require(library != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return library;
}

std::shared_ptr<Kernel> kernel_from(CUkernel handle) {
    std::shared_ptr<Kernel> kernel = kernels().find(handle);
    require(kernel != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return kernel;
}

CUkernel kernel_handle(const std::shared_ptr<Library>& library, const std::string& name) {
    static std::mutex mutex;
    Kernel* kernel = library->kernel(name);
    require(kernel != nullptr, CUDA_ERROR_NOT_FOUND);
    std::lock_guard lock(mutex);
    if (!kernel->handle) kernels().add(std::shared_ptr<Kernel>(library, kernel));
    return as_handle<CUkernel>(kernel->handle);
}

// Parses the code once, for its errors and its kernels' names.
CUresult load(CUlibrary* out, const void* image, JitLogs& logs) {
    std::string text = ptx_of(image);
    auto library = std::make_shared<Library>(text);
    for (const std::string& name : entry_names(*read_module(text.c_str(), logs)))
        library->add_kernel(name);
    *out = as_handle<CUlibrary>(libraries().add(std::move(library)));
    return CUDA_SUCCESS;
}

void check_library_options(unsigned count, const CUlibraryOption* options) {
    require(count == 0 || options);
    for (unsigned i = 0; i < count; ++i)
        require(options[i] >= 0 && options[i] < CU_LIBRARY_NUM_OPTIONS);
}

// That kernel's function on a device: in its primary context or the current one.
std::shared_ptr<Function> function_on(CUkernel kernel, CUdevice ordinal) {
    Device& device = device_at(ordinal);
    Context& current = usable_context();
    require(&current.device == &device, CUDA_ERROR_INVALID_CONTEXT);
    return kernel_from(kernel)->function_in(current);
}

}  // namespace

CYRT_API CUresult cuLibraryLoadData(CUlibrary* out, const void* code, CUjit_option* jit_options,
                                    void** jit_values, unsigned jit_count, CUlibraryOption* options,
                                    void**, unsigned count) {
    return entry([&] {
        require(out && code);
        require_safe_call();
        JitLogs logs(jit_count, jit_options, jit_values);
        check_library_options(count, options);
        return load(out, code, logs);
    });
}

CYRT_API CUresult cuLibraryLoadFromFile(CUlibrary* out, const char* path, CUjit_option* jit_options,
                                        void** jit_values, unsigned jit_count,
                                        CUlibraryOption* options, void**, unsigned count) {
    return entry([&] {
        require(out && path);
        require_safe_call();
        JitLogs logs(jit_count, jit_options, jit_values);
        check_library_options(count, options);
        return load(out, read_image(path).data(), logs);
    });
}

CYRT_API CUresult cuLibraryUnload(CUlibrary handle) {
    return entry([&] {
        std::shared_ptr<Library> library = library_from(handle);
        require_safe_call();
        libraries().remove(handle);
        kernels().remove_if([&](const Kernel& kernel) { return &kernel.library == library.get(); });
        library->unload();
    });
}

CYRT_API CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary library, const char* name) {
    return entry([&] {
        require(out && name);
        *out = kernel_handle(library_from(library), name);
    });
}

CYRT_API CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
    return entry([&] {
        require(count);
        *count = static_cast<unsigned>(library_from(library)->all_kernels().size());
    });
}

CYRT_API CUresult cuLibraryEnumerateKernels(CUkernel* out, unsigned room, CUlibrary handle) {
    return entry([&] {
        require(out || room == 0);
        std::shared_ptr<Library> library = library_from(handle);
        for (auto& [name, kernel] : library->all_kernels()) {
            if (room-- == 0) break;
            *out++ = kernel_handle(library, name);
        }
    });
}

CYRT_API CUresult cuLibraryGetModule(CUmodule* out, CUlibrary library) {
    return context_entry([&](Context& context) {
        require(out);
        *out = as_handle<CUmodule>(library_from(library)->module_in(context)->handle);
    });
}

CYRT_API CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary library,
                                     const char* name) {
    return context_entry([&](Context& context) {
        require(name && (address || size));
        Module::Symbol symbol = library_from(library)->module_in(context)->symbol(name);
        if (address) *address = symbol.address;
        if (size) *size = symbol.size;
    });
}

CYRT_API CUresult cuKernelGetFunction(CUfunction* out, CUkernel kernel) {
    return context_entry([&](Context& context) {
        require(out);
        *out = as_handle<CUfunction>(kernel_from(kernel)->function_in(context)->handle);
    });
}

CYRT_API CUresult cuKernelGetLibrary(CUlibrary* out, CUkernel kernel) {
    return entry([&] {
        require(out);
        *out = as_handle<CUlibrary>(kernel_from(kernel)->library.handle);
    });
}

CYRT_API CUresult cuKernelGetName(const char** name, CUkernel kernel) {
    return entry([&] {
        require(name);
        *name = kernel_from(kernel)->name.c_str();
    });
}

CYRT_API CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset,
                                       size_t* size) {
    return context_entry([&](Context& context) {
        require(offset);
        auto function = kernel_from(kernel)->function_in(context);
        require(index < function->info.params.size());
        *offset = function->info.params[index].offset;
        if (size) *size = function->info.params[index].size;
    });
}

CYRT_API CUresult cuKernelGetAttribute(int* out, CUfunction_attribute which, CUkernel kernel,
                                       CUdevice device) {
    return entry([&] {
        require(out);
        *out = function_on(kernel, device)->attribute(which);
    });
}

CYRT_API CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel kernel,
                                       CUdevice device) {
    return entry([&] { function_on(kernel, device)->set_attribute(which, value); });
}

CYRT_API CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device) {
    return entry([&] {
        function_on(kernel, device);
        require(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
    });
}
