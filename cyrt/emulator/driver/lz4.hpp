// The LZ4 block format, in which fat binaries store compressed PTX.
#pragma once

#include <cstddef>

namespace cyrt::emu {

// The number of bytes written; 0 if the input is damaged or `room` is too small.
size_t lz4_decompress(const char* in, size_t size, char* out, size_t room);

}  // namespace cyrt::emu
