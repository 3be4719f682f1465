// printf's formatting of what a kernel printed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace cyrt::emu {

// The device's buffer of arguments: each aligned to its size.
struct FormatArguments {
    std::function<uint32_t(uint64_t offset)> word;            // 4 bytes of it
    std::function<uint64_t(uint64_t offset)> long_word;       // 8 bytes
    std::function<std::string(uint64_t address)> text;        // a string of the device's
};

// As the CUDA runtime formats it; `count` is the number of conversions done.
std::string format_printf(const std::string& format, const FormatArguments& arguments, int& count);

}  // namespace cyrt::emu
