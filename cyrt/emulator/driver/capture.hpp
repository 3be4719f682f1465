// Stream capture: what is pushed into a stream becomes nodes of a graph.
//
// INVARIANTS
// - One lock for all captures: they are rare, and they join streams of many threads.
// - A stream takes part in at most one capture; it does from its first join until the capture ends.
// - Whoever breaks a rule invalidates the captures concerned; nothing is added to them any more.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "driver/graph_edge.hpp"
#include "driver/graph_work.hpp"

namespace cyrt::emu {

class Context;
class Event;
class Graph;
class Stream;

struct Capture {
    uint64_t id = 0;
    std::shared_ptr<Graph> graph;
    bool into_existing = false;         // the graph was there before and will be after
    Stream* origin = nullptr;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::thread::id thread;
    bool invalid = false;
    bool ended = false;
    std::vector<std::shared_ptr<Stream>> streams;
};

// An event that was recorded in a stream under capture: the nodes that it comes after.
struct CapturePoint {
    std::shared_ptr<Capture> capture;
    std::vector<Edge> nodes;
};

// A stream's part in a capture.
struct StreamCapture {
    std::atomic<bool> active{false};    // read without the lock
    std::shared_ptr<Capture> capture;
    std::vector<Edge> next;             // what the next node will depend on
    std::vector<CUgraphNode> shown;     // what the last query of those points to
    std::vector<CUgraphEdgeData> shown_data;
};

std::mutex& capture_mutex();

// What was pushed into a stream under capture becomes a node. `programmatic`: it may start before
// the kernels it depends on have ended. Throws what a capture that is invalid answers.
void capture_node(Stream& stream, WorkPtr work, bool programmatic = false);
void capture_child(Stream& stream, std::shared_ptr<Graph> child);

// The stream has been told to do what no graph can: its capture becomes invalid.
[[noreturn]] void refuse_in_capture(Stream& stream);
// For what a stream under capture may not do; passes for any other.
void require_not_capturing(Stream& stream);
// For what concerns all streams of a context.
void require_none_capturing(Context& context);
// For the legacy stream, which would wait for those under capture.
void require_legacy_usable(Context& context, bool invalidates);
// For calls that act at once, where a capture would not see them: refused by the rules of the
// calling thread's mode.
void require_safe_call();
CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode);

void begin_capture(Stream& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                   bool into_existing, std::vector<Edge> next);
// The graph; throws after ending the capture where it came to nothing.
std::shared_ptr<Graph> end_capture(Stream& stream);
void drop_from_capture(Stream& stream);         // it is being destroyed

void capture_record(Stream& stream, Event& event);
// False where the wait is none of a capture's business.
bool capture_wait(Stream& stream, Event& event, bool external);

}  // namespace cyrt::emu
