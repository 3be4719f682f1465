#include "driver/launch_attributes.hpp"

namespace cyrt::emu {

void LaunchAttributes::set(CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE: return;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        throw DriverError{CUDA_ERROR_NOT_SUPPORTED};
    default: require(id > CU_LAUNCH_ATTRIBUTE_IGNORE && id < CU_LAUNCH_ATTRIBUTE_MAX);
    }
    for (CUlaunchAttribute& held : values_) {
        if (held.id != id) continue;
        held.value = value;
        return;
    }
    CUlaunchAttribute fresh{};
    fresh.id = id;
    fresh.value = value;
    values_.push_back(fresh);
}

CUlaunchAttributeValue LaunchAttributes::get(CUlaunchAttributeID id) const {
    for (const CUlaunchAttribute& held : values_)
        if (held.id == id) return held.value;
    return {};
}

LaunchAttributes attributes_from(const CUlaunchConfig& config) {
    require(config.attrs || config.numAttrs == 0);
    LaunchAttributes out;
    for (unsigned i = 0; i < config.numAttrs; ++i)
        out.set(config.attrs[i].id, config.attrs[i].value);
    return out;
}

}  // namespace cyrt::emu
