// Stream capture: operations submitted to a stream become nodes of a graph.
//
// INVARIANTS
// - One lock for all captures: they are rare, and they join streams of many threads.
// - A stream takes part in at most one capture, from its first join until the capture ends.
// - A thread that breaks a rule invalidates the captures concerned; nothing is added to them later.
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
    bool into_existing = false;  // the graph exists before and after the capture
    Stream* origin = nullptr;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::thread::id thread;
    bool invalid = false;
    bool ended = false;
    std::vector<std::shared_ptr<Stream>> streams;
};

// An event recorded in a stream under capture: the nodes that it follows.
struct CapturePoint {
    std::shared_ptr<Capture> capture;
    std::vector<Edge> nodes;
};

// A stream's membership in a capture.
struct StreamCapture {
    std::atomic<bool> active{false};  // read without the lock
    std::shared_ptr<Capture> capture;
    std::vector<Edge> next;          // dependencies of the next node
    std::vector<CUgraphNode> shown;  // the array that the last query of `next` returned
    std::vector<CUgraphEdgeData> shown_data;
};

std::mutex& capture_mutex();

// Turns an operation submitted to a stream under capture into a node. `programmatic`: it may start
// before the kernels that it depends on have ended. Throws the error of an invalid capture.
void capture_node(Stream& stream, WorkPtr work, bool programmatic = false);
void capture_child(Stream& stream, std::shared_ptr<Graph> child);

// The stream received work that a graph cannot contain: its capture becomes invalid.
[[noreturn]] void refuse_in_capture(Stream& stream);
// For calls that a stream under capture does not allow; does nothing for other streams.
void require_not_capturing(Stream& stream);
// For calls that affect all streams of a context.
void require_none_capturing(Context& context);
// For the legacy stream, which would wait for the streams under capture.
void require_legacy_usable(Context& context, bool invalidates);
// For calls that act at once, which a capture does not record: rejected by the rules of the calling
// thread's mode.
void require_safe_call();
CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode);

void begin_capture(Stream& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                   bool into_existing, std::vector<Edge> next);
// The graph; ends the capture, and then throws if it is invalid.
std::shared_ptr<Graph> end_capture(Stream& stream);
void drop_from_capture(Stream& stream);  // it is being destroyed

void capture_record(Stream& stream, Event& event);
// False if the wait does not involve a capture.
bool capture_wait(Stream& stream, Event& event, bool external);

}  // namespace cyrt::emu
