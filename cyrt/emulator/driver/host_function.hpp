// Host functions that run in stream order.
#pragma once

#include "driver/api.hpp"

namespace cyrt::emu {

// True on a thread that is running one: it may not call the driver.
bool in_host_function();

struct HostOperation {
    CUhostFn function;
    void* data;
    static constexpr bool runs_after_fault = false;
    void run(Context& context) const;
};

// cuStreamAddCallback's function: it receives the context's state, and runs in any state.
struct CallbackOperation {
    CUstreamCallback function;
    CUstream stream;
    void* data;
    static constexpr bool runs_after_fault = true;
    void run(Context& context);
};

}  // namespace cyrt::emu
