// What a launch, or a kernel node of a graph, asks for beyond its shape.
#pragma once

#include <vector>

#include "driver/api.hpp"
#include "exec/launch.hpp"

namespace cyrt::emu {

// INVARIANT: what is held was accepted: the emulated device does it, or may ignore it.
class LaunchAttributes {
public:
    // Throws what the driver answers for an attribute that cannot be had.
    void set(CUlaunchAttributeID id, const CUlaunchAttributeValue& value);
    // All zero where it was never set.
    CUlaunchAttributeValue get(CUlaunchAttributeID id) const;

    bool cooperative() const { return get(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative != 0; }
    // All zero where it was never set: the kernel's own. Checked where a launch is.
    Dim3 cluster() const {
        const CUlaunchAttributeValue value = get(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
        return {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
    }
    int priority() const { return get(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority; }
    // The kernel may start before the one before it in its stream has ended.
    bool programmatic() const {
        return get(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
                   .programmaticStreamSerializationAllowed != 0;
    }

private:
    std::vector<CUlaunchAttribute> values_;     // few
};

// Those of a launch; throws as set() does.
LaunchAttributes attributes_from(const CUlaunchConfig& config);

}  // namespace cyrt::emu
