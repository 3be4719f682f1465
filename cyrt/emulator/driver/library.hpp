// Libraries: code loaded without a context, and loaded as a module in each context that uses it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "driver/api.hpp"
#include "driver/function.hpp"
#include "driver/handles.hpp"

namespace cyrt::emu {

class Library;
class Module;

// A kernel of a library, in every context. Attributes set on it apply to all contexts' functions.
class Kernel {
  public:
    Kernel(Library& owner, std::string kernel_name)
        : library(owner), name(std::move(kernel_name)) {}

    Library& library;
    const std::string name;
    uintptr_t handle = 0;

    std::shared_ptr<Function> function_in(Context& context);
};

class Library {
  public:
    explicit Library(std::string image) : image_(std::move(image)) {}

    uintptr_t handle = 0;

    // The module in that context, loaded at the first call.
    std::shared_ptr<Module> module_in(Context& context);
    void add_kernel(const std::string& name) { kernels_.try_emplace(name, *this, name); }
    Kernel* kernel(const std::string& name);
    std::map<std::string, Kernel>& all_kernels() { return kernels_; }
    void unload();

  private:
    const std::string image_;  // PTX
    std::mutex mutex_;
    std::map<uintptr_t, uintptr_t> modules_;  // handle of a context -> handle of a module
    std::map<std::string, Kernel> kernels_;
};

HandleTable<Library>& libraries();
HandleTable<Kernel>& kernels();

}  // namespace cyrt::emu
