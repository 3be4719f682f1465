#include "driver/capture.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "driver/context.hpp"
#include "driver/event.hpp"
#include "driver/graph.hpp"
#include "driver/stream.hpp"

namespace cyrt::emu {

namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
std::atomic<int> capturing{0};  // number of captures

// Never destroyed: detached threads may still use it while the process ends.
std::vector<std::shared_ptr<Capture>>& captures() {
    static auto& all = *new std::vector<std::shared_ptr<Capture>>;
    return all;
}

uint64_t next_capture_id() {
    static uint64_t last = 0;
    return ++last;
}

bool holds(const std::vector<Edge>& edges, const Node* node) {
    return std::any_of(edges.begin(), edges.end(),
                       [&](const Edge& edge) { return edge.node == node; });
}

void join(Stream& stream, const std::shared_ptr<Capture>& capture, std::vector<Edge> next) {
    stream.capture.capture = capture;
    stream.capture.next = std::move(next);
    stream.capture.active.store(true, std::memory_order_release);
    capture->streams.push_back(stream.shared_from_this());
}

void leave(Stream& stream) {
    stream.capture.active.store(false, std::memory_order_release);
    stream.capture.capture = nullptr;
    stream.capture.next.clear();
}

void end(const std::shared_ptr<Capture>& capture) {
    capture->ended = true;
    capture->graph->being_captured = false;
    for (const auto& stream : capture->streams) leave(*stream);
    capture->streams.clear();
    auto& all = captures();
    all.erase(std::find(all.begin(), all.end(), capture));
    capturing.fetch_sub(1);
}

// Every last node of a stream of the capture precedes the origin's end.
bool is_joined(const Capture& capture) {
    std::unordered_set<const Node*> reached;
    std::vector<const Node*> open;
    auto reach = [&](const std::vector<Edge>& edges) {
        for (const Edge& edge : edges)
            if (reached.insert(edge.node).second) open.push_back(edge.node);
    };
    reach(capture.origin->capture.next);
    while (!open.empty()) {
        const Node* node = open.back();
        open.pop_back();
        reach(node->dependencies);
    }
    return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const auto& stream) {
        const auto& next = stream->capture.next;
        return std::all_of(next.begin(), next.end(),
                           [&](const Edge& edge) { return reached.count(edge.node) != 0; });
    });
}

// Applies the rules of this thread's capture mode.
bool forbids_unsafe_calls(const Capture& capture) {
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    if (capture.thread == std::this_thread::get_id())
        return capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

Capture& usable_capture(Stream& stream) {
    Capture& capture = *stream.capture.capture;
    require(!capture.invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    return capture;
}

// Invalidates the matching captures; throws `code` if there is one.
template <class Matches>
void refuse_where(Matches matches, CUresult code) {
    if (capturing.load() == 0) return;
    std::lock_guard lock(capture_mutex());
    bool found = false;
    for (const auto& capture : captures()) {
        if (!matches(*capture)) continue;
        capture->invalid = true;
        found = true;
    }
    require(!found, code);
}

bool has_stream(const Capture& capture, const Context& context, bool blocking_only) {
    return std::any_of(capture.streams.begin(), capture.streams.end(), [&](const auto& stream) {
        return &stream->context() == &context && (!blocking_only || stream->blocking());
    });
}

}  // namespace

std::mutex& capture_mutex() {
    static auto& mutex = *new std::mutex;
    return mutex;
}

void capture_node(Stream& stream, WorkPtr work, bool programmatic) {
    std::lock_guard lock(capture_mutex());
    require(stream.capture.capture != nullptr, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    Capture& capture = usable_capture(stream);
    std::vector<Edge> edges = stream.capture.next;
    for (Edge& edge : edges) {
        if (!programmatic || !edge.node->is_kernel()) continue;
        edge.data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
        edge.data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    }
    Node& node = capture.graph->add(std::move(work), edges);
    stream.capture.next = {{&node, {}}};
}

void capture_child(Stream& stream, std::shared_ptr<Graph> child) {
    std::lock_guard lock(capture_mutex());
    require(stream.capture.capture != nullptr, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    Capture& capture = usable_capture(stream);
    graphs().add(child);
    Node& node = capture.graph->add(make_work(ChildWork{}), stream.capture.next, std::move(child));
    stream.capture.next = {{&node, {}}};
}

void refuse_in_capture(Stream& stream) {
    std::lock_guard lock(capture_mutex());
    if (stream.capture.capture) stream.capture.capture->invalid = true;
    throw DriverError{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED};
}

void require_not_capturing(Stream& stream) {
    if (stream.capturing()) refuse_in_capture(stream);
}

void require_none_capturing(Context& context) {
    refuse_where([&](const Capture& capture) { return has_stream(capture, context, false); },
                 CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void require_legacy_usable(Context& context, bool invalidates) {
    auto implied = [&](const Capture& capture) { return has_stream(capture, context, true); };
    if (invalidates) return refuse_where(implied, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    std::lock_guard lock(capture_mutex());
    for (const auto& capture : captures())
        require(!implied(*capture), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

void require_safe_call() {
    refuse_where(forbids_unsafe_calls, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode) {
    return std::exchange(thread_mode, mode);
}

void begin_capture(Stream& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                   bool into_existing, std::vector<Edge> next) {
    std::lock_guard lock(capture_mutex());
    require(!stream.capture.capture, CUDA_ERROR_ILLEGAL_STATE);
    auto capture = std::make_shared<Capture>();
    capture->id = next_capture_id();
    capture->graph = std::move(graph);
    capture->into_existing = into_existing;
    capture->origin = &stream;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    if (!into_existing) graphs().add(capture->graph);
    capture->graph->being_captured = true;
    join(stream, capture, std::move(next));
    captures().push_back(std::move(capture));
    capturing.fetch_add(1);
}

std::shared_ptr<Graph> end_capture(Stream& stream) {
    std::lock_guard lock(capture_mutex());
    std::shared_ptr<Capture> capture = stream.capture.capture;
    require(capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    require(capture->origin == &stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
                capture->thread == std::this_thread::get_id(),
            CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    const CUresult result = capture->invalid      ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                            : is_joined(*capture) ? CUDA_SUCCESS
                                                  : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    end(capture);
    if (result == CUDA_SUCCESS) return capture->graph;
    if (!capture->into_existing) capture->graph->forget();
    throw DriverError{result};
}

void drop_from_capture(Stream& stream) {
    if (!stream.capturing()) return;
    std::lock_guard lock(capture_mutex());
    std::shared_ptr<Capture> capture = stream.capture.capture;
    if (!capture) return;
    capture->invalid = true;
    if (capture->origin != &stream) return;
    end(capture);  // no other thread could end it
    if (!capture->into_existing) capture->graph->forget();
}

void capture_record(Stream& stream, Event& event) {
    std::lock_guard lock(capture_mutex());
    require(stream.capture.capture != nullptr, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    usable_capture(stream);
    event.set_captured(std::make_shared<const CapturePoint>(
        CapturePoint{stream.capture.capture, stream.capture.next}));
}

bool capture_wait(Stream& stream, Event& event, bool external) {
    std::shared_ptr<const CapturePoint> point = event.captured();
    if (!stream.capturing() && !point) return false;
    if (external) {
        require(stream.capturing(), CUDA_ERROR_ILLEGAL_STATE);
        capture_node(stream, make_work(WaitWork{event.shared_from_this()}), false);
        return true;
    }
    std::lock_guard lock(capture_mutex());
    std::shared_ptr<Capture> mine = stream.capture.capture;
    if (!point) {
        require(mine != nullptr, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        usable_capture(stream);
        mine->invalid = true;  // it would depend on work outside the graph
        throw DriverError{CUDA_ERROR_STREAM_CAPTURE_ISOLATION};
    }
    const std::shared_ptr<Capture>& other = point->capture;
    require(!other->ended, CUDA_ERROR_CAPTURED_EVENT);
    require(!other->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (!mine) {
        join(stream, other, point->nodes);
        return true;
    }
    if (mine != other) {
        mine->invalid = other->invalid = true;
        throw DriverError{CUDA_ERROR_STREAM_CAPTURE_MERGE};
    }
    for (const Edge& edge : point->nodes)
        if (!holds(stream.capture.next, edge.node)) stream.capture.next.push_back(edge);
    return true;
}

}  // namespace cyrt::emu
