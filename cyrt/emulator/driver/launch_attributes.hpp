// The attributes of a launch, or of a graph's kernel node.
#pragma once

#include <vector>

#include "driver/api.hpp"
#include "exec/launch.hpp"

namespace cyrt::emu {

// INVARIANT: every stored attribute was accepted: the emulated device supports it or may ignore it.
class LaunchAttributes {
  public:
    // Throws the driver's error for an attribute that is not supported.
    void set(CUlaunchAttributeID id, const CUlaunchAttributeValue& value);
    // All zero if it was never set.
    CUlaunchAttributeValue get(CUlaunchAttributeID id) const;

    bool cooperative() const { return get(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative != 0; }
    // All zero if it was never set: the kernel's own. Validated by the launch.
    Dim3 cluster() const {
        const CUlaunchAttributeValue value = get(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
        return {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
    }
    int priority() const { return get(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority; }
    // The kernel may start before the previous one in its stream has ended.
    bool programmatic() const {
        return get(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
                   .programmaticStreamSerializationAllowed != 0;
    }

  private:
    std::vector<CUlaunchAttribute> values_;  // few
};

// The attributes of a launch; throws as set() does.
LaunchAttributes attributes_from(const CUlaunchConfig& config);

}  // namespace cyrt::emu
