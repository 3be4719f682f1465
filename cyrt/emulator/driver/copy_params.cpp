#include "driver/copy_params.hpp"

namespace cyrt::emu {

namespace {

CopySide side_of(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y,
                 size_t z, size_t pitch, size_t rows, const CopyOperation& copy) {
    require(type != CU_MEMORYTYPE_ARRAY, CUDA_ERROR_NOT_SUPPORTED);
    require(type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
            type == CU_MEMORYTYPE_UNIFIED);
    CopySide side;
    side.address = type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(host) : device;
    require(side.address != 0 || copy.empty());
    bool several_rows = copy.height > 1 || copy.depth > 1 || y > 0 || z > 0;
    bool several_slices = copy.depth > 1 || z > 0;
    require(!several_rows || (pitch >= copy.width && pitch - copy.width >= x));
    require(!several_slices || (rows >= copy.height && rows - copy.height >= y));
    side.pitch = pitch;
    side.slice = pitch * rows;
    side.address += z * side.slice + y * side.pitch + x;
    return side;
}

// CUDA_MEMCPY3D or CUDA_MEMCPY3D_PEER.
template <class Params>
CopyOperation copy_of_slices(const Params& p) {
    require(p.srcLOD == 0 && p.dstLOD == 0);
    CopyOperation copy;
    copy.width = p.WidthInBytes;
    copy.height = p.Height;
    copy.depth = p.Depth;
    copy.src = side_of(p.srcMemoryType, p.srcHost, p.srcDevice, p.srcXInBytes, p.srcY, p.srcZ,
                       p.srcPitch, p.srcHeight, copy);
    copy.dst = side_of(p.dstMemoryType, p.dstHost, p.dstDevice, p.dstXInBytes, p.dstY, p.dstZ,
                       p.dstPitch, p.dstHeight, copy);
    return copy;
}

}  // namespace

CopySides copy_sides(CUmemorytype dst, CUmemorytype src) {
    if (dst == CU_MEMORYTYPE_DEVICE)
        return src == CU_MEMORYTYPE_DEVICE ? CopySides::device_both : CopySides::device_dst;
    return src == CU_MEMORYTYPE_DEVICE ? CopySides::device_src : CopySides::any;
}

CopyOperation flat_copy(uint64_t dst, uint64_t src, uint64_t size) {
    CopyOperation copy;
    copy.dst.address = dst;
    copy.src.address = src;
    copy.width = size;
    return copy;
}

CopyOperation copy_from(const CUDA_MEMCPY2D& p) {
    CopyOperation copy;
    copy.width = p.WidthInBytes;
    copy.height = p.Height;
    copy.src = side_of(p.srcMemoryType, p.srcHost, p.srcDevice, p.srcXInBytes, p.srcY, 0,
                       p.srcPitch, p.Height, copy);
    copy.dst = side_of(p.dstMemoryType, p.dstHost, p.dstDevice, p.dstXInBytes, p.dstY, 0,
                       p.dstPitch, p.Height, copy);
    return copy;
}

CopyOperation copy_from(const CUDA_MEMCPY3D& params) { return copy_of_slices(params); }

CopyOperation copy_from(const CUDA_MEMCPY3D_PEER& params) { return copy_of_slices(params); }

CUDA_MEMCPY3D params_of(const CopyOperation& copy, CUmemorytype dst, CUmemorytype src) {
    CUDA_MEMCPY3D params{};
    auto rows = [&](const CopySide& side) {
        return side.pitch ? side.slice / side.pitch : copy.height;
    };
    auto host = [](const CopySide& side) { return reinterpret_cast<void*>(side.address); };
    params.WidthInBytes = copy.width;
    params.Height = copy.height;
    params.Depth = copy.depth;
    params.dstMemoryType = dst;
    params.dstPitch = copy.dst.pitch;
    params.dstHeight = rows(copy.dst);
    if (dst == CU_MEMORYTYPE_HOST)
        params.dstHost = host(copy.dst);
    else
        params.dstDevice = copy.dst.address;
    params.srcMemoryType = src;
    params.srcPitch = copy.src.pitch;
    params.srcHeight = rows(copy.src);
    if (src == CU_MEMORYTYPE_HOST)
        params.srcHost = host(copy.src);
    else
        params.srcDevice = copy.src.address;
    return params;
}

}  // namespace cyrt::emu
