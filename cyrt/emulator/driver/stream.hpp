// A queue of operations and the thread that runs them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/api.hpp"
#include "driver/capture.hpp"
#include "driver/handles.hpp"
#include "driver/operation.hpp"

namespace cyrt::emu {

// A wait for `ticket` in `stream`.
struct Dependency {
    std::shared_ptr<Stream> stream;
    uint64_t ticket;
};

// INVARIANTS
// - Operations run one at a time, in the order of their tickets: 1, 2, 3 ...
// - An operation depends only on operations that had their tickets earlier: streams cannot form a
//   cycle.
// - At most kMostPending operations wait; submit() blocks beyond that.
// - The thread starts with the first operation and keeps the stream alive until it ends.
class Stream : public std::enable_shared_from_this<Stream> {
  public:
    static constexpr uint64_t kMostPending = 1024;

    Stream(std::shared_ptr<Context> context, unsigned flags, int priority, uint64_t id);
    ~Stream();

    Context& context() const { return *context_; }
    const unsigned flags;
    const int priority;
    const uint64_t id;
    uintptr_t handle = 0;
    StreamCapture capture;

    bool capturing() const { return capture.active.load(std::memory_order_acquire); }
    bool blocking() const { return !(flags & CU_STREAM_NON_BLOCKING); }

    uint64_t submit(Operation operation);  // its ticket
    uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
    bool done(uint64_t ticket) const { return completed_.load() >= ticket; }
    bool idle() const { return done(submitted()); }
    void wait(uint64_t ticket);
    void synchronize() { wait(submitted()); }

    // No operations follow: the thread ends once the queued ones have run.
    void close();

  private:
    struct Node {
        Operation operation;
        std::vector<Dependency> after;
        Node* next = nullptr;
    };

    void start();
    void work();
    Node* next(Node* finished);  // nullptr: closed and empty
    void complete();

    const std::shared_ptr<Context> context_;
    std::atomic<uint64_t> submitted_{0};
    std::atomic<uint64_t> completed_{0};

    std::mutex mutex_;  // the queue, the spare nodes, the flags
    std::condition_variable work_came_;
    Node* head_ = nullptr;
    Node* tail_ = nullptr;
    Node* spare_ = nullptr;
    std::deque<Node> nodes_;
    bool started_ = false;
    bool sleeping_ = false;
    bool closed_ = false;

    std::mutex wait_mutex_;
    std::condition_variable completed_changed_;
    std::atomic<int> waiters_{0};
};

HandleTable<Stream>& streams();
// 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are streams of the current context; any other handle
// determines its context. Throws CUDA_ERROR_INVALID_HANDLE, or the context's fault.
std::shared_ptr<Stream> stream_from(CUstream handle);
// For submitting work: fails for the legacy stream if that would break a capture.
std::shared_ptr<Stream> stream_to_use(CUstream handle);

// An entry point that works on a stream: in the stream's context, current or not.
template <class Body>
CUresult stream_entry(CUstream handle, Body&& body) noexcept {
    return entry(
        [&]() -> std::invoke_result_t<Body, Stream&> { return body(*stream_to_use(handle)); });
}

// The same for calls that a graph cannot contain.
template <class Body>
CUresult uncaptured_stream_entry(CUstream handle, Body&& body) noexcept {
    return stream_entry(handle, [&](Stream& stream) -> std::invoke_result_t<Body, Stream&> {
        require_not_capturing(stream);
        return body(stream);
    });
}

}  // namespace cyrt::emu
