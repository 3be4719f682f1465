// One piece of work: what a stream queues.
//
// A kind of operation is a struct with `run(context)`, in the file of its own role. Values, so that
// they may be kept, copied and run again.
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

using Operation = std::variant<std::monostate, KernelOperation, CopyOperation, FillOperation,
                               FreeOperation, HostOperation, CallbackOperation, RecordOperation,
                               WaitOperation, WriteValueOperation, WaitValueOperation,
                               GraphOperation>;

// Runs it, or passes over it where the context has a fault and the operation is not one that must
// happen all the same. A fault it meets becomes the context's.
void execute(Operation& operation, Context& context);

}  // namespace cyrt::emu
