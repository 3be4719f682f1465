// The images that programs load as modules: PTX text, bare or in a fat binary.
#pragma once

#include <string>

#include "driver/api.hpp"

namespace cyrt::emu {

// The PTX of an image, the best for this device if a fat binary has several. Throws
// CUDA_ERROR_NO_BINARY_FOR_GPU for machine code, CUDA_ERROR_INVALID_IMAGE for unknown formats.
std::string ptx_of(const void* image);

// A file's bytes; throws CUDA_ERROR_FILE_NOT_FOUND.
std::string read_image(const char* path);

}  // namespace cyrt::emu
