// The entry points of stream capture.
#include "driver/capture.hpp"
#include "driver/graph.hpp"
#include "driver/stream.hpp"

using namespace cyrt::emu;

namespace {

bool is_mode(CUstreamCaptureMode mode) {
    return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
           mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

bool is_legacy(CUstream handle) { return handle == nullptr || handle == CU_STREAM_LEGACY; }

std::vector<Edge> edges_in(const Graph& graph, const CUgraphNode* nodes,
                           const CUgraphEdgeData* data, size_t count) {
    require(nodes || count == 0);
    std::vector<Edge> edges;
    for (size_t i = 0; i < count; ++i) {
        Node& node = *node_from(nodes[i]);
        require(node.graph == &graph);
        edges.push_back({&node, data ? data[i] : CUgraphEdgeData{}});
    }
    return edges;
}

CUresult begin(CUstream handle, CUstreamCaptureMode mode) {
    return entry([&] {
        require(is_mode(mode));
        require(!is_legacy(handle), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        begin_capture(*stream_from(handle), mode, std::make_shared<Graph>(true), false, {});
    });
}

CUstreamCaptureStatus status_of(const Stream& stream) {
    if (!stream.capture.capture) return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream.capture.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                           : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

struct CaptureInfo {
    CUstreamCaptureStatus* status;
    cuuint64_t* id;
    CUgraph* graph = nullptr;
    const CUgraphNode** nodes = nullptr;
    const CUgraphEdgeData** data = nullptr;
    size_t* count = nullptr;
};

CUresult ask(CUstream handle, const CaptureInfo& out) {
    return entry([&] {
        require(out.status && (out.nodes || !out.data));
        std::shared_ptr<Stream> stream = stream_from(handle);
        if (is_legacy(handle)) require_legacy_usable(stream->context(), false);
        std::lock_guard lock(capture_mutex());
        StreamCapture& state = stream->capture;
        const CUstreamCaptureStatus status = status_of(*stream);
        if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
            for (const Edge& edge : state.next)
                require(!out.nodes || out.data || is_default(edge.data), CUDA_ERROR_LOSSY_QUERY);
            state.shown.clear();
            state.shown_data.clear();
            for (const Edge& edge : state.next) {
                state.shown.push_back(handle_of(*edge.node));
                state.shown_data.push_back(edge.data);
            }
            if (out.id) *out.id = state.capture->id;
            if (out.graph) *out.graph = as_handle<CUgraph>(state.capture->graph->handle);
            if (out.nodes) *out.nodes = state.shown.data();
            if (out.data) *out.data = state.shown_data.data();
            if (out.count) *out.count = state.shown.size();
        }
        *out.status = status;
    });
}

CUresult update_dependencies(CUstream handle, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                             size_t count, unsigned flags) {
    return entry([&] {
        require(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES);
        std::shared_ptr<Stream> stream = stream_from(handle);
        std::lock_guard lock(capture_mutex());
        StreamCapture& state = stream->capture;
        require(state.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
        require(!state.capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        std::vector<Edge> edges = edges_in(*state.capture->graph, nodes, data, count);
        std::vector<Edge> next;
        if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES) next = state.next;
        for (const Edge& edge : edges) {
            bool known = false;
            for (Edge& other : next) {
                if (other.node != edge.node) continue;
                other.data = edge.data;
                known = true;
            }
            if (!known) next.push_back(edge);
        }
        state.next = std::move(next);
    });
}

}  // namespace

// The first version had no mode.
CYRT_API CUresult cuStreamBeginCapture(CUstream stream) {
    return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CYRT_API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    return begin(stream, mode);
}

CYRT_API CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph_handle,
                                              const CUgraphNode* nodes, const CUgraphEdgeData* data,
                                              size_t count, CUstreamCaptureMode mode) {
    return entry([&] {
        require(is_mode(mode));
        require(!is_legacy(handle), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        std::shared_ptr<Graph> graph = graph_from(graph_handle);
        require(!graph->being_captured);
        begin_capture(*stream_from(handle), mode, graph, true,
                      edges_in(*graph, nodes, data, count));
    });
}

CYRT_API CUresult cuStreamEndCapture(CUstream handle, CUgraph* out) {
    return entry([&] {
        require(out);
        std::shared_ptr<Stream> stream = stream_from(handle);
        *out = nullptr;
        *out = as_handle<CUgraph>(end_capture(*stream)->handle);
    });
}

CYRT_API CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* out) {
    return ask(handle, {out, nullptr});
}

CYRT_API CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status,
                                         cuuint64_t* id) {
    return ask(handle, {status, id});
}

CYRT_API CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status,
                                            cuuint64_t* id, CUgraph* graph,
                                            const CUgraphNode** nodes, size_t* count) {
    return ask(handle, {status, id, graph, nodes, nullptr, count});
}

CYRT_API CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status,
                                            cuuint64_t* id, CUgraph* graph,
                                            const CUgraphNode** nodes, const CUgraphEdgeData** data,
                                            size_t* count) {
    return ask(handle, {status, id, graph, nodes, data, count});
}

CYRT_API CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode* nodes,
                                                    size_t count, unsigned flags) {
    return update_dependencies(handle, nodes, nullptr, count, flags);
}

CYRT_API CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* nodes,
                                                       const CUgraphEdgeData* data, size_t count,
                                                       unsigned flags) {
    return update_dependencies(handle, nodes, data, count, flags);
}

CYRT_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    return entry([&] {
        require(mode && is_mode(*mode));
        *mode = exchange_capture_mode(*mode);
    });
}
