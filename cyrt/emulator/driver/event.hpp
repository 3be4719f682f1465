// A mark in a stream.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>

#include "driver/api.hpp"
#include "driver/handles.hpp"

namespace cyrt::emu {

class Stream;
struct CapturePoint;

// INVARIANTS
// - The state of an event is that of its latest record: a (stream, ticket), complete once the
//   stream has run it.
// - The time is that of the completed record with the highest serial.
class Event : public std::enable_shared_from_this<Event> {
  public:
    using Clock = std::chrono::steady_clock;
    struct Mark {
        std::shared_ptr<Stream> stream;  // nullptr: never recorded
        uint64_t ticket = 0;
    };

    Event(std::shared_ptr<Context> context, unsigned flags);

    Context& context() const { return *context_; }
    const unsigned flags;
    uintptr_t handle = 0;

    void record(Stream& stream);
    // The same for a record that is part of a larger operation: it is marked after operations that
    // begin before that operation has its ticket.
    uint64_t begin_record();
    void set_mark(uint64_t serial, Mark mark);
    Mark mark() const;
    void stamp(uint64_t serial);  // the stream has reached this record
    Clock::time_point time() const;

    // The node of its latest record if that was captured; nullptr if it was run.
    std::shared_ptr<const CapturePoint> captured() const;
    void set_captured(std::shared_ptr<const CapturePoint> point);

  private:
    const std::shared_ptr<Context> context_;
    mutable std::mutex mutex_;
    Mark mark_;
    uint64_t begun_ = 0, marked_ = 0, stamped_ = 0;  // serials
    Clock::time_point time_;
    std::shared_ptr<const CapturePoint> captured_;
};

struct RecordOperation {
    std::shared_ptr<Event> event;
    uint64_t serial;
    static constexpr bool runs_after_fault = true;
    void run(Context& context);
};

// Waits until another stream has run a ticket.
struct WaitOperation {
    Event::Mark mark;
    static constexpr bool runs_after_fault = true;
    void run(Context& context);
};

HandleTable<Event>& events();
std::shared_ptr<Event> event_from(CUevent handle);  // throws CUDA_ERROR_INVALID_HANDLE

}  // namespace cyrt::emu
