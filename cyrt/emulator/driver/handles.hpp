// Opaque handles and their objects.
//
// INVARIANTS
// - A handle is a number, never an address: a look-up dereferences nothing, so an invalid handle is
//   merely not found.
// - A number is never reused: a stale handle cannot refer to a newer object.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace cyrt::emu {

enum class HandleKind : uint8_t {
    context = 1,
    stream,
    event,
    module,
    function,
    library,
    kernel,
    memory_pool,
    graph,
    graph_node,
    graph_exec,
    user_object,
};

// T has a public member `uintptr_t handle`.
template <class T>
class HandleTable {
  public:
    explicit HandleTable(HandleKind kind) : first_(uintptr_t(kind) << 40), next_(first_) {}

    uintptr_t add(std::shared_ptr<T> object) {
        std::unique_lock lock(mutex_);
        next_ += kStep;
        object->handle = next_;
        live_.emplace(next_, std::move(object));
        return next_;
    }

    std::shared_ptr<T> find(const void* handle) const {
        std::shared_lock lock(mutex_);
        auto found = live_.find(reinterpret_cast<uintptr_t>(handle));
        return found == live_.end() ? nullptr : found->second;
    }

    // True if the handle was one of this kind, alive or not.
    bool was_created(const void* handle) const {
        std::shared_lock lock(mutex_);
        uintptr_t value = reinterpret_cast<uintptr_t>(handle);
        return value > first_ && value <= next_ && (value - first_) % kStep == 0;
    }

    std::shared_ptr<T> remove(const void* handle) {
        std::unique_lock lock(mutex_);
        auto found = live_.find(reinterpret_cast<uintptr_t>(handle));
        if (found == live_.end()) return nullptr;
        std::shared_ptr<T> object = std::move(found->second);
        live_.erase(found);
        return object;
    }

    // The caller receives the removed objects: their destructors run outside the lock.
    template <class Predicate>
    std::vector<std::shared_ptr<T>> remove_if(Predicate matches) {
        std::vector<std::shared_ptr<T>> removed;
        std::unique_lock lock(mutex_);
        for (auto it = live_.begin(); it != live_.end();) {
            if (matches(*it->second)) {
                removed.push_back(std::move(it->second));
                it = live_.erase(it);
            } else {
                ++it;
            }
        }
        return removed;
    }

  private:
    static constexpr uintptr_t kStep = 16;

    mutable std::shared_mutex mutex_;
    std::unordered_map<uintptr_t, std::shared_ptr<T>> live_;
    const uintptr_t first_;
    uintptr_t next_;
};

template <class Handle>
Handle as_handle(uintptr_t value) {
    return reinterpret_cast<Handle>(value);
}

}  // namespace cyrt::emu
