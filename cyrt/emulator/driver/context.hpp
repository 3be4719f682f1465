// A context: streams, limits, and the fault that breaks it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "driver/api.hpp"
#include "driver/handles.hpp"
#include "exec/heap.hpp"
#include "exec/launch.hpp"

namespace cyrt::emu {

class Device;
class Stream;
struct Dependency;

// INVARIANTS
// - A fault is sticky: once state() is a fault's code it stays so until the context is destroyed,
//   and queued work is skipped.
// - After tear_down() no operation of the context runs, none of its objects can be found any more,
//   and state() is CUDA_ERROR_CONTEXT_IS_DESTROYED. The object itself lives as long as it is
//   current in a thread.
class Context : public std::enable_shared_from_this<Context> {
  public:
    static std::shared_ptr<Context> create(Device& device, unsigned flags, bool primary);
    Context(Device& device, unsigned flags, bool primary, uint64_t id);
    ~Context();

    Device& device;
    const bool primary;
    const uint64_t id;
    uintptr_t handle = 0;

    CUresult state() const { return static_cast<CUresult>(state_.load(std::memory_order_acquire)); }
    void check() const { require(state() == CUDA_SUCCESS, state()); }
    void fail(CUresult code, const std::string& text);
    void fail(const Fault& fault);

    // Polled by running kernels: the context is being torn down.
    const std::atomic<bool>& cancelled() const { return cancelled_; }

    std::shared_ptr<Stream> legacy_stream();
    std::shared_ptr<Stream> thread_stream();  // the calling thread's default stream
    std::shared_ptr<Stream> open_stream(unsigned flags, int priority);
    void forget(const Stream& stream);  // its last operation has ended

    // Appends to `out` the operations in other streams that an operation submitted to `stream` now
    // must wait for, by the rules of the legacy default stream.
    void order_after(const Stream& stream, std::vector<Dependency>& out);

    void synchronize();  // waits for all work submitted so far
    bool blocking_streams_idle();
    void synchronize_blocking_streams();
    void tear_down();

    unsigned flags() const { return flags_.load(); }
    void set_flags(unsigned flags) { flags_.store(flags); }
    size_t limit(CUlimit which) const;
    void set_limit(CUlimit which, size_t value);
    // Some limits hold from the first launch of a kernel that they concern.
    void fix_limits(bool of_heap, bool of_printing);
    Heap heap;
    std::atomic<CUfunc_cache> cache_config{CU_FUNC_CACHE_PREFER_NONE};

    void enable_peer(Context& peer);
    void disable_peer(Context& peer);

  private:
    std::vector<std::shared_ptr<Stream>> streams_now() const;
    std::shared_ptr<Stream> open(unsigned flags, int priority);

    std::atomic<int> state_{CUDA_SUCCESS};
    std::atomic<bool> cancelled_{false};
    std::atomic<unsigned> flags_;

    mutable std::shared_mutex streams_mutex_;
    std::vector<std::shared_ptr<Stream>> streams_;
    std::shared_ptr<Stream> legacy_;  // made at its first use

    mutable std::mutex limits_mutex_;
    std::map<CUlimit, size_t> limits_;
    std::atomic<bool> heap_is_fixed_{false}, printing_is_fixed_{false};
    std::mutex peers_mutex_;
    std::vector<uintptr_t> peers_;  // handles of contexts
};

HandleTable<Context>& contexts();
// Throws INVALID_CONTEXT for a handle that was never a context, CONTEXT_IS_DESTROYED for a
// destroyed one.
std::shared_ptr<Context> context_from(CUcontext handle);

// The calling thread's stack of contexts.
std::vector<std::shared_ptr<Context>>& context_stack();

}  // namespace cyrt::emu
