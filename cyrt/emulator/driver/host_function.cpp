#include "driver/host_function.hpp"

#include "driver/context.hpp"
#include "driver/graph_work.hpp"
#include "driver/stream.hpp"

namespace cyrt::emu {

namespace {

thread_local bool running = false;

struct Running {
    Running() { running = true; }
    ~Running() { running = false; }
};

}  // namespace

bool in_host_function() { return running; }

void HostOperation::run(Context&) const {
    Running mark;
    function(data);
}

void CallbackOperation::run(Context& context) {
    Running mark;
    function(stream, context.state(), data);
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

CYRT_API CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
    return stream_entry(handle, [&](Stream& stream) {
        require(function);
        if (stream.capturing())
            capture_node(stream, host_work(function, data));
        else
            stream.submit(HostOperation{function, data});
    });
}

CYRT_API CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback function, void* data,
                                      unsigned flags) {
    return uncaptured_stream_entry(handle, [&](Stream& stream) {
        require(function && flags == 0);
        stream.submit(CallbackOperation{function, handle, data});
    });
}
