// Formatting of a kernel's printf output.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace cyrt::emu {

// The device's buffer of arguments: each aligned to its size.
struct FormatArguments {
    std::function<uint32_t(uint64_t offset)> word;       // reads 4 bytes
    std::function<uint64_t(uint64_t offset)> long_word;  // reads 8 bytes
    std::function<std::string(uint64_t address)> text;   // reads a string in device memory
};

// Formats like the CUDA runtime; `count` is the number of conversions done.
std::string format_printf(const std::string& format, const FormatArguments& arguments, int& count);

}  // namespace cyrt::emu
