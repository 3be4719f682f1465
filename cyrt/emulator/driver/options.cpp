#include "driver/options.hpp"

#include <cerrno>
#include <cstdlib>

namespace cyrt::emu {

namespace {

constexpr uint64_t kMostDevices = 64;
constexpr uint64_t kLeastMemory = 1ull << 20;
constexpr uint64_t kMostMemory = 512ull << 30;

// The variable's value, clamped to the bounds; `fallback` if it is unset or no number.
uint64_t number(const char* name, uint64_t fallback, uint64_t least, uint64_t most) {
    const char* text = std::getenv(name);
    if (!text || !*text) return fallback;
    char* end = nullptr;
    errno = 0;
    unsigned long long value = std::strtoull(text, &end, 0);
    if (*end || errno) return fallback;
    return value < least ? least : value > most ? most : value;
}

Options read() {
    Options result;
    result.devices =
        static_cast<int>(number("CYRT_EMULATED_DEVICES", result.devices, 0, kMostDevices));
    result.memory = number("CYRT_EMULATED_MEMORY", result.memory, kLeastMemory, kMostMemory);
    result.check = number("CYRT_CHECK", 0, 0, 1) != 0;
    return result;
}

}  // namespace

const Options& options() {
    static const Options read_once = read();
    return read_once;
}

}  // namespace cyrt::emu
