#include "driver/device.hpp"

#include <pthread.h>

#include <atomic>
#include <new>
#include <system_error>
#include <vector>

#include "driver/context.hpp"
#include "driver/host_function.hpp"
#include "driver/mempool.hpp"
#include "driver/options.hpp"
#include "exec/address.hpp"
#include "ptx/ast.hpp"

namespace cyrt::emu {

namespace {

// Leaked on purpose: worker threads may outlive the destructors of static objects.
std::vector<std::unique_ptr<Device>>* devices = nullptr;
std::atomic<bool> initialised{false};
std::atomic<bool> forked{false};
std::mutex initialising;

// The threads that run streams do not exist in a child, and locks may never be released.
void note_fork() { forked.store(true); }

void initialise() {
    std::lock_guard lock(initialising);
    if (initialised.load()) return;
    auto made = std::make_unique<std::vector<std::unique_ptr<Device>>>();
    for (int i = 0; i < options().devices; ++i) made->push_back(std::make_unique<Device>(i));
    require(!made->empty(), CUDA_ERROR_NO_DEVICE);
    pthread_atfork(nullptr, nullptr, note_fork);
    devices = made.release();
    initialised.store(true, std::memory_order_release);
}

}  // namespace

CUresult readiness() {
    if (!initialised.load(std::memory_order_acquire)) return CUDA_ERROR_NOT_INITIALIZED;
    if (forked.load(std::memory_order_relaxed)) return CUDA_ERROR_NOT_INITIALIZED;
    if (in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
    return CUDA_SUCCESS;
}

CUresult code_of_exception() {
    try {
        throw;
    } catch (const DriverError& error) {
        return error.code;
    } catch (const ptx::Error&) {
        return CUDA_ERROR_INVALID_PTX;
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (const std::system_error&) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    } catch (...) {
        return CUDA_ERROR_UNKNOWN;
    }
}

Device::Device(CUdevice number)
    : ordinal(number),
      arena(kDeviceBase + number * kDeviceStride, options().memory, options().check),
      default_pool(std::make_shared<MemoryPool>(*this)), pool_(default_pool) {
    memory_pools().add(default_pool);
}

Device::~Device() = default;

std::shared_ptr<Context> Device::retain_primary() {
    std::lock_guard lock(mutex_);
    if (!primary_) primary_ = Context::create(*this, primary_flags_, true);
    ++retained_;
    return primary_;
}

void Device::release_primary() {
    std::shared_ptr<Context> last;
    {
        std::lock_guard lock(mutex_);
        require(retained_ > 0, CUDA_ERROR_INVALID_CONTEXT);
        if (--retained_ == 0) last = std::move(primary_);
    }
    if (last) last->tear_down();
}

void Device::reset_primary() {
    std::shared_ptr<Context> old;
    {
        std::lock_guard lock(mutex_);
        old = std::move(primary_);
        retained_ = 0;
        primary_flags_ = 0;
    }
    if (old) old->tear_down();
    std::lock_guard lock(mutex_);
    fault_.clear();
}

void Device::set_primary_flags(unsigned flags) {
    std::lock_guard lock(mutex_);
    primary_flags_ = flags;
    if (primary_) primary_->set_flags(flags);
}

void Device::primary_state(unsigned& flags, bool& active) {
    std::lock_guard lock(mutex_);
    flags = primary_flags_;
    active = primary_ != nullptr;
}

void Device::record_fault(const std::string& text) {
    std::lock_guard lock(mutex_);
    if (fault_.empty()) fault_ = text;
}

std::string Device::fault_text() {
    std::lock_guard lock(mutex_);
    return fault_;
}

std::shared_ptr<MemoryPool> Device::current_pool() {
    std::lock_guard lock(mutex_);
    return pool_;
}

void Device::set_current_pool(std::shared_ptr<MemoryPool> pool) {
    std::lock_guard lock(mutex_);
    pool_ = std::move(pool);
}

int device_count() { return static_cast<int>(devices->size()); }

Device& device_at(CUdevice ordinal) {
    require(ordinal >= 0 && ordinal < device_count(), CUDA_ERROR_INVALID_DEVICE);
    return *(*devices)[ordinal];
}

Device* device_of(uint64_t address) {
    if (address < kDeviceBase) return nullptr;
    uint64_t ordinal = (address - kDeviceBase) / kDeviceStride;
    return ordinal < devices->size() ? (*devices)[ordinal].get() : nullptr;
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

CYRT_API CUresult cuInit(unsigned flags) {
    return guarded([&] {
        require(flags == 0);
        require(!forked.load(), CUDA_ERROR_NOT_INITIALIZED);
        if (!initialised.load(std::memory_order_acquire)) initialise();
    });
}

CYRT_API CUresult cuDriverGetVersion(int* version) {
    return guarded([&] {
        require(version);
        *version = kDriverVersion;
    });
}

// Copies the text of the device's first fault ("" without one), truncated to the size of the
// buffer. Succeeds in every state of the contexts.
CYRT_API CUresult cyrtEmuLastFault(CUdevice device, char* text, size_t size) {
    return entry([&] {
        require(text && size > 0);
        std::string fault = device_at(device).fault_text();
        text[fault.copy(text, size - 1)] = '\0';
    });
}
