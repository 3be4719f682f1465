#include "driver/context.hpp"

#include <algorithm>

#include "driver/capture.hpp"
#include "driver/device.hpp"
#include "driver/event.hpp"
#include "driver/memory.hpp"
#include "driver/module.hpp"
#include "driver/stream.hpp"

namespace cyrt::emu {

namespace {

CUresult code_of(FaultKind kind) {
    switch (kind) {
    case FaultKind::illegal_address: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case FaultKind::misaligned_address: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case FaultKind::unordered_access: return CUDA_ERROR_LAUNCH_FAILED;
    case FaultKind::hazard: return CUDA_ERROR_LAUNCH_FAILED;
    case FaultKind::uninitialized_read: return CUDA_ERROR_LAUNCH_FAILED;
    case FaultKind::assertion: return CUDA_ERROR_ASSERT;
    case FaultKind::trap: return CUDA_ERROR_LAUNCH_FAILED;
    case FaultKind::deadlock: return CUDA_ERROR_LAUNCH_TIMEOUT;
    case FaultKind::illegal_instruction: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case FaultKind::invalid_pc: return CUDA_ERROR_INVALID_PC;
    case FaultKind::stack_overflow: return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case FaultKind::cancelled: break;
    }
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

uint64_t next_serial() {
    static std::atomic<uint64_t> serial{0};
    return ++serial;
}

// The default streams of one thread, closed when it ends.
struct ThreadStreams {
    struct Entry {
        std::weak_ptr<Context> context;
        std::weak_ptr<Stream> stream;
    };
    std::vector<Entry> entries;

    ~ThreadStreams() {
        if (readiness() == CUDA_ERROR_NOT_INITIALIZED) return;  // a forked child
        for (Entry& entry : entries)
            if (auto stream = entry.stream.lock()) stream->close();
    }
};

}  // namespace

std::shared_ptr<Context> Context::create(Device& device, unsigned flags, bool primary) {
    auto context = std::make_shared<Context>(device, flags, primary, next_serial());
    contexts().add(context);
    return context;
}

Context::Context(Device& owner, unsigned flags, bool is_primary, uint64_t serial)
    : device(owner), primary(is_primary), id(serial), heap(8 << 20), flags_(flags),
      limits_{{CU_LIMIT_STACK_SIZE, 1024},
              {CU_LIMIT_PRINTF_FIFO_SIZE, 8 << 20},
              {CU_LIMIT_MALLOC_HEAP_SIZE, heap.limit()},
              {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
              {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
              {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}} {}

Context::~Context() = default;

void Context::fail(CUresult code, const std::string& text) {
    int healthy = CUDA_SUCCESS;
    if (state_.compare_exchange_strong(healthy, code)) device.record_fault(text);
}

void Context::fail(const Fault& fault) {
    if (fault.kind != FaultKind::cancelled) fail(code_of(fault.kind), fault.text);
}

std::shared_ptr<Stream> Context::open(unsigned flags, int priority) {
    check();
    auto stream = std::make_shared<Stream>(shared_from_this(), flags, priority, next_serial());
    streams_.push_back(stream);
    return stream;
}

std::shared_ptr<Stream> Context::open_stream(unsigned flags, int priority) {
    std::unique_lock lock(streams_mutex_);
    return open(flags, priority);
}

std::shared_ptr<Stream> Context::legacy_stream() {
    {
        std::shared_lock lock(streams_mutex_);
        if (legacy_) return legacy_;
    }
    std::unique_lock lock(streams_mutex_);
    if (!legacy_) legacy_ = open(CU_STREAM_DEFAULT, 0);
    return legacy_;
}

std::shared_ptr<Stream> Context::thread_stream() {
    thread_local ThreadStreams mine;
    auto& entries = mine.entries;
    entries.erase(std::remove_if(entries.begin(), entries.end(),
                                 [](const auto& entry) { return entry.context.expired(); }),
                  entries.end());
    for (auto& entry : entries)
        if (entry.context.lock().get() == this)
            if (auto stream = entry.stream.lock()) return stream;
    std::shared_ptr<Stream> stream = open_stream(CU_STREAM_DEFAULT, 0);
    entries.push_back({weak_from_this(), stream});
    return stream;
}

void Context::forget(const Stream& stream) {
    std::shared_ptr<Stream> dying;  // destroyed outside the lock
    std::unique_lock lock(streams_mutex_);
    auto found = std::find_if(streams_.begin(), streams_.end(),
                              [&](const auto& other) { return other.get() == &stream; });
    if (found == streams_.end()) return;
    dying = std::move(*found);
    streams_.erase(found);
    lock.unlock();
}

std::vector<std::shared_ptr<Stream>> Context::streams_now() const {
    std::shared_lock lock(streams_mutex_);
    return streams_;
}

void Context::order_after(const Stream& stream, std::vector<Dependency>& out) {
    if (!stream.blocking()) return;
    auto add_if_busy = [&](const std::shared_ptr<Stream>& other) {
        uint64_t ticket = other->submitted();
        if (!other->done(ticket)) out.push_back({other, ticket});
    };
    std::shared_lock lock(streams_mutex_);
    if (&stream != legacy_.get()) {
        if (legacy_) add_if_busy(legacy_);
        return;
    }
    for (const auto& other : streams_)
        if (other != legacy_ && other->blocking()) add_if_busy(other);
}

void Context::synchronize() {
    for (const auto& stream : streams_now()) stream->synchronize();
}

bool Context::blocking_streams_idle() {
    auto all = streams_now();
    return std::all_of(all.begin(), all.end(),
                       [](const auto& stream) { return !stream->blocking() || stream->idle(); });
}

void Context::synchronize_blocking_streams() {
    for (const auto& stream : streams_now())
        if (stream->blocking()) stream->synchronize();
}

void Context::tear_down() {
    cancelled_.store(true);
    state_.store(CUDA_ERROR_CONTEXT_IS_DESTROYED);  // open() refuses from here on
    contexts().remove(as_handle<CUcontext>(handle));
    auto mine = [this](const auto& object) { return &object.context() == this; };
    streams().remove_if(mine);
    for (const auto& stream : streams_now()) {
        drop_from_capture(*stream);
        stream->close();
        stream->synchronize();
    }
    events().remove_if(mine);
    forget_functions(*this);
    modules().remove_if(mine);
    release_allocations(*this);
    heap.clear(device.arena);
    std::unique_lock lock(streams_mutex_);
    legacy_ = nullptr;
}

size_t Context::limit(CUlimit which) const {
    std::lock_guard lock(limits_mutex_);
    auto found = limits_.find(which);
    require(found != limits_.end(), CUDA_ERROR_UNSUPPORTED_LIMIT);
    return found->second;
}

void Context::set_limit(CUlimit which, size_t value) {
    std::lock_guard lock(limits_mutex_);
    auto found = limits_.find(which);
    require(found != limits_.end(), CUDA_ERROR_UNSUPPORTED_LIMIT);
    if (which == CU_LIMIT_STACK_SIZE) require(value <= limits::kLocal);
    if (which == CU_LIMIT_PRINTF_FIFO_SIZE) require(!printing_is_fixed_);
    if (which == CU_LIMIT_MALLOC_HEAP_SIZE) {
        require(!heap_is_fixed_ && value <= device.arena.capacity());
        heap.set_limit(value);
    }
    found->second = value;
}

void Context::fix_limits(bool of_heap, bool of_printing) {
    if (of_heap) heap_is_fixed_.store(true);
    if (of_printing) printing_is_fixed_.store(true);
}

void Context::enable_peer(Context& peer) {
    std::lock_guard lock(peers_mutex_);
    bool enabled = std::find(peers_.begin(), peers_.end(), peer.handle) != peers_.end();
    require(!enabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    peers_.push_back(peer.handle);
    device.arena.add_peer(peer.device.arena);
}

void Context::disable_peer(Context& peer) {
    std::lock_guard lock(peers_mutex_);
    auto found = std::find(peers_.begin(), peers_.end(), peer.handle);
    require(found != peers_.end(), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    peers_.erase(found);
    device.arena.remove_peer(peer.device.arena);
}

HandleTable<Context>& contexts() {
    static auto& table = *new HandleTable<Context>(HandleKind::context);
    return table;
}

std::shared_ptr<Context> context_from(CUcontext handle) {
    std::shared_ptr<Context> context = contexts().find(handle);
    if (!context)
        throw DriverError{contexts().was_created(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                         : CUDA_ERROR_INVALID_CONTEXT};
    return context;
}

std::vector<std::shared_ptr<Context>>& context_stack() {
    thread_local std::vector<std::shared_ptr<Context>> stack;
    return stack;
}

Context& usable_context() {
    auto& stack = context_stack();
    require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
    stack.back()->check();
    return *stack.back();
}

}  // namespace cyrt::emu
