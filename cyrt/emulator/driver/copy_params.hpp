// Conversion between the ABI's copy structures and the copies that run.
#pragma once

#include "driver/copy.hpp"

namespace cyrt::emu {

// The sides that must be memory that the device can access.
enum class CopySides { any, device_dst, device_src, device_both };

CopySides copy_sides(CUmemorytype dst, CUmemorytype src);

// A copy of bytes in one row.
CopyOperation flat_copy(uint64_t dst, uint64_t src, uint64_t size);
// These throw CUDA_ERROR_NOT_SUPPORTED for arrays.
CopyOperation copy_from(const CUDA_MEMCPY2D& params);
CopyOperation copy_from(const CUDA_MEMCPY3D& params);
CopyOperation copy_from(const CUDA_MEMCPY3D_PEER& params);

// An equivalent structure, its offsets added to the addresses.
CUDA_MEMCPY3D params_of(const CopyOperation& copy, CUmemorytype dst, CUmemorytype src);

}  // namespace cyrt::emu
