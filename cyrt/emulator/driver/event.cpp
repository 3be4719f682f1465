#include "driver/event.hpp"

#include "driver/capture.hpp"
#include "driver/context.hpp"
#include "driver/stream.hpp"

namespace cyrt::emu {

Event::Event(std::shared_ptr<Context> context, unsigned event_flags)
    : flags(event_flags), context_(std::move(context)) {}

void Event::record(Stream& stream) {
    uint64_t serial = begin_record();
    // Not under the lock: submit() may wait for the stream, whose thread calls stamp().
    uint64_t ticket = stream.submit(RecordOperation{shared_from_this(), serial});
    set_mark(serial, {stream.shared_from_this(), ticket});
}

uint64_t Event::begin_record() {
    std::lock_guard lock(mutex_);
    return ++begun_;
}

void Event::set_mark(uint64_t serial, Mark mark) {
    std::lock_guard lock(mutex_);
    if (serial < marked_) return;
    marked_ = serial;
    mark_ = std::move(mark);
    captured_ = nullptr;
}

Event::Mark Event::mark() const {
    std::lock_guard lock(mutex_);
    return mark_;
}

void Event::stamp(uint64_t serial) {
    std::lock_guard lock(mutex_);
    if (serial < stamped_) return;
    stamped_ = serial;
    time_ = Clock::now();
}

Event::Clock::time_point Event::time() const {
    std::lock_guard lock(mutex_);
    return time_;
}

std::shared_ptr<const CapturePoint> Event::captured() const {
    std::lock_guard lock(mutex_);
    return captured_;
}

void Event::set_captured(std::shared_ptr<const CapturePoint> point) {
    std::lock_guard lock(mutex_);
    captured_ = std::move(point);
}

void RecordOperation::run(Context&) { event->stamp(serial); }

void WaitOperation::run(Context&) { mark.stream->wait(mark.ticket); }

HandleTable<Event>& events() {
    static auto& table = *new HandleTable<Event>(HandleKind::event);
    return table;
}

std::shared_ptr<Event> event_from(CUevent handle) {
    std::shared_ptr<Event> event = events().find(handle);
    require(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return event;
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

namespace {

// Complete, not ready, or the fault of the context in which it was recorded.
CUresult query(const Event::Mark& mark) {
    if (!mark.stream) return CUDA_SUCCESS;
    if (!mark.stream->done(mark.ticket)) return CUDA_ERROR_NOT_READY;
    return mark.stream->context().state();
}

void record(CUevent handle, Stream& stream) {
    std::shared_ptr<Event> event = event_from(handle);
    require(&event->context() == &stream.context(), CUDA_ERROR_INVALID_HANDLE);
    if (stream.capturing())
        capture_record(stream, *event);
    else
        event->record(stream);
}

// An event that can be queried: a captured record never completes.
std::shared_ptr<Event> happening_event(CUevent handle) {
    std::shared_ptr<Event> event = event_from(handle);
    event->context().check();
    require(!event->captured(), CUDA_ERROR_CAPTURED_EVENT);
    require_safe_call();
    return event;
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
    return entry([&]() -> CUresult {
        require(milliseconds);
        require_safe_call();
        std::shared_ptr<Event> first = event_from(start), last = event_from(end);
        require(!first->captured() && !last->captured(), CUDA_ERROR_CAPTURED_EVENT);
        require(!((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING),
                CUDA_ERROR_INVALID_HANDLE);
        Event::Mark from = first->mark(), to = last->mark();
        require(from.stream && to.stream, CUDA_ERROR_INVALID_HANDLE);
        for (const Event::Mark* mark : {&from, &to})
            if (CUresult state = query(*mark); state != CUDA_SUCCESS) return state;
        *milliseconds =
            std::chrono::duration<float, std::milli>(last->time() - first->time()).count();
        return CUDA_SUCCESS;
    });
}

}  // namespace

CYRT_API CUresult cuEventCreate(CUevent* out, unsigned flags) {
    return context_entry([&](Context& context) {
        constexpr unsigned known =
            CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
        require(out && !(flags & ~known));
        require(!(flags & CU_EVENT_INTERPROCESS) || (flags & CU_EVENT_DISABLE_TIMING));
        auto event = std::make_shared<Event>(context.shared_from_this(), flags);
        *out = as_handle<CUevent>(events().add(event));
    });
}

CYRT_API CUresult cuEventDestroy_v2(CUevent handle) {
    return entry([&] {
        std::shared_ptr<Event> event = events().remove(handle);
        require(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
        event->context().check();
    });
}

CYRT_API CUresult cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

CYRT_API CUresult cuEventRecord(CUevent event, CUstream handle) {
    return stream_entry(handle, [&](Stream& stream) { record(event, stream); });
}

CYRT_API CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned flags) {
    return stream_entry(handle, [&](Stream& stream) {
        require(!(flags & ~CU_EVENT_RECORD_EXTERNAL));
        if (flags == CU_EVENT_RECORD_DEFAULT) return record(event, stream);
        // An external record is a node of a graph under capture.
        require(stream.capturing(), CUDA_ERROR_ILLEGAL_STATE);
        capture_node(stream, make_work(RecordWork{event_from(event)}));
    });
}

CYRT_API CUresult cuEventQuery(CUevent handle) {
    return entry([&]() -> CUresult {
        std::shared_ptr<Event> event = happening_event(handle);
        return query(event->mark());
    });
}

CYRT_API CUresult cuEventSynchronize(CUevent handle) {
    return entry([&]() -> CUresult {
        std::shared_ptr<Event> event = happening_event(handle);
        Event::Mark mark = event->mark();
        if (mark.stream) mark.stream->wait(mark.ticket);
        return query(mark);
    });
}

CYRT_API CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return elapsed(milliseconds, start, end);
}

CYRT_API CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
    return elapsed(milliseconds, start, end);
}

CYRT_API CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
    return stream_entry(handle, [&](Stream& stream) {
        require(!(flags & ~CU_EVENT_WAIT_EXTERNAL));
        const bool external = flags == CU_EVENT_WAIT_EXTERNAL;
        std::shared_ptr<Event> event = event_from(event_handle);
        if (capture_wait(stream, *event, external)) return;
        require(!external, CUDA_ERROR_ILLEGAL_STATE);
        Event::Mark mark = event->mark();
        if (mark.stream && mark.stream.get() != &stream && !mark.stream->done(mark.ticket))
            stream.submit(WaitOperation{std::move(mark)});
    });
}
