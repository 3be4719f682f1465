// The work of a graph's node.
#pragma once

#include <memory>
#include <variant>

#include "driver/api.hpp"
#include "driver/copy.hpp"
#include "driver/event.hpp"
#include "driver/fill.hpp"
#include "driver/host_function.hpp"
#include "driver/kernel.hpp"
#include "driver/launch_attributes.hpp"

namespace cyrt::emu {

class Context;
class Device;
struct Allocation;

struct EmptyWork {};

struct KernelWork {
    KernelOperation operation;
    LaunchAttributes attributes;
    bool packed = false;  // the parameters were passed as one buffer
};

// The memory of an operand: an update of an executable graph cannot change it.
struct OperandPlace {
    MemoryPlace place = MemoryPlace::pageable;
    Device* device = nullptr;
    uintptr_t context = 0;  // handle
    bool operator==(const OperandPlace& other) const {
        return place == other.place && device == other.device && context == other.context;
    }
};

struct CopyWork {
    CUDA_MEMCPY3D params;
    CopyOperation operation;
    OperandPlace dst, src;
    std::shared_ptr<Context> context;
    bool flat() const { return operation.height == 1 && operation.depth == 1; }
};

struct FillWork {
    FillOperation operation;
    OperandPlace dst;
    std::shared_ptr<Context> context;
    bool flat() const { return operation.height == 1; }
};

struct HostWork {
    HostOperation operation;
};

struct ChildWork {};  // the node owns the graph

struct RecordWork {
    std::shared_ptr<Event> event;
};

struct WaitWork {
    std::shared_ptr<Event> event;
};

// INVARIANT: immutable once constructed, so that a graph, its clones, executable graphs and
// launches in flight share it. An update replaces it.
using Work = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, ChildWork,
                          RecordWork, WaitWork>;
using WorkPtr = std::shared_ptr<const Work>;

template <class T>
WorkPtr make_work(T work) {
    return std::make_shared<const Work>(std::move(work));
}

CUgraphNodeType type_of(const Work& work);
bool can_be_disabled(const Work& work);

// Conversions from the ABI's structures; they throw the driver's errors.
WorkPtr kernel_work(const CUDA_KERNEL_NODE_PARAMS_v2& params, const LaunchAttributes& attributes);
WorkPtr copy_work(const CUDA_MEMCPY3D& params, std::shared_ptr<Context> context);
WorkPtr fill_work(const FillOperation& fill, std::shared_ptr<Context> context);
WorkPtr host_work(CUhostFn function, void* data);

// A captured kernel or copy as a node's work.
WorkPtr captured_kernel(KernelOperation operation, LaunchAttributes attributes, bool packed);
WorkPtr captured_copy(const CopyOperation& copy, std::shared_ptr<Context> context);

}  // namespace cyrt::emu
