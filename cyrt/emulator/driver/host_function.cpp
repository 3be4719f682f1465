#include "driver/host_function.hpp"

#include "driver/context.hpp"
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

void HostOperation::run(Context&) {
    Running mark;
    function(data);
}

void CallbackOperation::run(Context& context) {
    Running mark;
    function(stream, context.state(), data);
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

CYRT_API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
    return context_entry([&](Context& context) {
        require(function);
        stream_from(stream, context)->submit(HostOperation{function, data});
    });
}

CYRT_API CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void* data,
                                      unsigned flags) {
    return context_entry([&](Context& context) {
        require(function && flags == 0);
        stream_from(stream, context)->submit(CallbackOperation{function, stream, data});
    });
}
