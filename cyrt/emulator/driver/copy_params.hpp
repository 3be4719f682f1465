// Copies between what the ABI's structures say and what runs.
#pragma once

#include "driver/copy.hpp"

namespace cyrt::emu {

// Which sides must be memory that the device can see.
enum class CopySides { any, device_dst, device_src, device_both };

CopySides copy_sides(CUmemorytype dst, CUmemorytype src);

// One of bytes in a row.
CopyOperation flat_copy(uint64_t dst, uint64_t src, uint64_t size);
// Throw CUDA_ERROR_NOT_SUPPORTED for arrays.
CopyOperation copy_from(const CUDA_MEMCPY2D& params);
CopyOperation copy_from(const CUDA_MEMCPY3D& params);
CopyOperation copy_from(const CUDA_MEMCPY3D_PEER& params);

// A structure that says the same, its offsets folded into the addresses.
CUDA_MEMCPY3D params_of(const CopyOperation& copy, CUmemorytype dst, CUmemorytype src);

}  // namespace cyrt::emu
