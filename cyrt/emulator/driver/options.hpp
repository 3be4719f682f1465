// The environment variables of the emulated devices; read once.
#pragma once

#include <cstdint>

namespace cyrt::emu {

struct Options {
    int devices = 1;               // CYRT_EMULATED_DEVICES
    uint64_t memory = 8ull << 30;  // CYRT_EMULATED_MEMORY: bytes of each device
    bool check = false;            // CYRT_CHECK: report unwritten reads, unordered nodes
};

const Options& options();

}  // namespace cyrt::emu
