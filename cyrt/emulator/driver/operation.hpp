// One piece of work in a stream's queue.
//
// A kind of operation is a struct with `run(context)`, in the file of its own role. Operations are
// values, so that they can be stored, copied and run again.
#pragma once

#include <variant>

#include "driver/copy.hpp"
#include "driver/event.hpp"
#include "driver/fill.hpp"
#include "driver/graph_launch.hpp"
#include "driver/host_function.hpp"
#include "driver/kernel.hpp"
#include "driver/memory.hpp"
#include "driver/stream_values.hpp"

namespace cyrt::emu {

using Operation =
    std::variant<std::monostate, KernelOperation, CopyOperation, FillOperation, FreeOperation,
                 HostOperation, CallbackOperation, RecordOperation, WaitOperation,
                 WriteValueOperation, WaitValueOperation, GraphOperation>;

// Runs it, or skips it if the context has a fault and the operation does not have to run after one.
// A fault in it becomes the context's fault.
void execute(Operation& operation, Context& context);

}  // namespace cyrt::emu
