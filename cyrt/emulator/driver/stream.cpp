#include "driver/stream.hpp"

#include <pthread.h>
#include <signal.h>

#include <thread>

#include "driver/context.hpp"
#include "driver/spin.hpp"

namespace cyrt::emu {

namespace {

// Signals are delivered to the program's own threads.
struct SignalsBlocked {
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
};

}  // namespace

Stream::Stream(std::shared_ptr<Context> context, unsigned stream_flags, int stream_priority,
               uint64_t stream_id)
    : flags(stream_flags), priority(stream_priority), id(stream_id), context_(std::move(context)) {}

Stream::~Stream() = default;

uint64_t Stream::submit(Operation operation) {
    uint64_t before = submitted();
    if (before >= kMostPending) wait(before - kMostPending + 1);

    thread_local std::vector<Dependency> after;
    after.clear();
    context_->order_after(*this, after);

    bool wake;
    uint64_t ticket;
    {
        std::lock_guard lock(mutex_);
        require(!closed_, CUDA_ERROR_INVALID_HANDLE);
        if (!started_) start();
        if (!spare_) spare_ = &nodes_.emplace_back();
        Node* node = spare_;
        spare_ = node->next;
        node->operation = std::move(operation);
        node->after.swap(after);
        node->next = nullptr;
        (tail_ ? tail_->next : head_) = node;
        tail_ = node;
        ticket = submitted_.fetch_add(1) + 1;
        wake = sleeping_;
    }
    if (wake) work_came_.notify_one();
    return ticket;
}

void Stream::start() {
    SignalsBlocked block;
    std::thread([self = shared_from_this()] { self->work(); }).detach();
    started_ = true;
}

void Stream::work() {
    Node* node = nullptr;
    while ((node = next(node))) {
        for (Dependency& other : node->after) other.stream->wait(other.ticket);
        node->after.clear();
        execute(node->operation, *context_);
        node->operation = std::monostate();  // releases the objects that it refers to
        complete();
    }
    context_->forget(*this);
}

Stream::Node* Stream::next(Node* finished) {
    spin_until([&] { return submitted_.load() > completed_.load(std::memory_order_relaxed); });
    std::unique_lock lock(mutex_);
    if (finished) {
        finished->next = spare_;
        spare_ = finished;
    }
    sleeping_ = true;
    work_came_.wait(lock, [&] { return head_ || closed_; });
    sleeping_ = false;
    Node* node = head_;
    if (node) {
        head_ = node->next;
        if (!head_) tail_ = nullptr;
    }
    return node;
}

void Stream::complete() {
    completed_.fetch_add(1);
    // Sequentially consistent with wait(): either the waiter sees the count, or this thread sees
    // the waiter.
    if (waiters_.load() > 0) {
        std::lock_guard lock(wait_mutex_);
        completed_changed_.notify_all();
    }
}

void Stream::wait(uint64_t ticket) {
    if (spin_until([&] { return done(ticket); })) return;
    std::unique_lock lock(wait_mutex_);
    waiters_.fetch_add(1);
    completed_changed_.wait(lock, [&] { return done(ticket); });
    waiters_.fetch_sub(1);
}

void Stream::close() {
    bool started;
    {
        std::lock_guard lock(mutex_);
        if (closed_) return;
        closed_ = true;
        started = started_;
    }
    if (started)
        work_came_.notify_one();
    else
        context_->forget(*this);
}

HandleTable<Stream>& streams() {
    static auto& table = *new HandleTable<Stream>(HandleKind::stream);
    return table;
}

std::shared_ptr<Stream> stream_from(CUstream handle) {
    if (handle == nullptr || handle == CU_STREAM_LEGACY) return usable_context().legacy_stream();
    if (handle == CU_STREAM_PER_THREAD) return usable_context().thread_stream();
    std::shared_ptr<Stream> stream = streams().find(handle);
    if (!stream) {
        usable_context();  // throws for a destroyed one
        throw DriverError{CUDA_ERROR_INVALID_HANDLE};
    }
    stream->context().check();
    return stream;
}

std::shared_ptr<Stream> stream_to_use(CUstream handle) {
    std::shared_ptr<Stream> stream = stream_from(handle);
    if (handle == nullptr || handle == CU_STREAM_LEGACY)
        require_legacy_usable(stream->context(), true);
    return stream;
}

}  // namespace cyrt::emu
