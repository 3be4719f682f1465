// The entry points of copies.
#include "driver/context.hpp"
#include "driver/copy.hpp"
#include "driver/stream.hpp"

using namespace cyrt::emu;

namespace {

// A pageable source of up to this many bytes is read at the call, so that the call need not wait.
constexpr uint64_t kMostStaged = 1 << 20;

enum class Mode { sync, async };

// Which sides must be memory that the device can see.
enum class Sides { any, device_dst, device_src, device_both };

// What the driver promises of returning: device to device never waits; a copy with pageable memory
// has read or written it; a pinned one waits only where it was not asked to be asynchronous.
void submit(Context& context, CUstream handle, CopyOperation copy, Mode mode, Sides sides) {
    std::shared_ptr<Stream> stream = stream_from(handle, context);
    if (copy.empty()) return;
    MemoryPlace to = place_of(copy.dst.address, copy.span(copy.dst));
    MemoryPlace from = place_of(copy.src.address, copy.span(copy.src));
    bool wants_dst = sides == Sides::device_dst || sides == Sides::device_both;
    bool wants_src = sides == Sides::device_src || sides == Sides::device_both;
    require(!wants_dst || to != MemoryPlace::pageable);
    require(!wants_src || from != MemoryPlace::pageable);

    bool wait;
    if (mode == Mode::sync) {
        wait = to != MemoryPlace::device || from != MemoryPlace::device;
    } else {
        wait = to == MemoryPlace::pageable || from == MemoryPlace::pageable;
        bool flat = copy.height == 1 && copy.depth == 1;
        if (wait && to != MemoryPlace::pageable && flat && copy.width <= kMostStaged) {
            auto* source = reinterpret_cast<const std::byte*>(copy.src.address);
            copy.staged.assign(source, source + copy.width);
            wait = false;
        }
    }
    uint64_t ticket = stream->submit(std::move(copy));
    if (!wait) return;
    stream->wait(ticket);
    context.check();
}

CUresult copy_bytes(uint64_t dst, uint64_t src, size_t size, CUstream stream, Mode mode,
                    Sides sides) {
    return context_entry([&](Context& context) {
        CopyOperation copy;
        copy.dst.address = dst;
        copy.src.address = src;
        copy.width = size;
        submit(context, stream, std::move(copy), mode, sides);
    });
}

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// One side of a copy of several dimensions. Arrays are not supported.
CopySide side_of(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y,
                 size_t z, size_t pitch, size_t rows, const CopyOperation& copy) {
    require(type != CU_MEMORYTYPE_ARRAY, CUDA_ERROR_NOT_SUPPORTED);
    require(type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
            type == CU_MEMORYTYPE_UNIFIED);
    CopySide side;
    side.address = type == CU_MEMORYTYPE_HOST ? address_of(host) : device;
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

Sides sides_of(CUmemorytype dst, CUmemorytype src) {
    if (dst == CU_MEMORYTYPE_DEVICE)
        return src == CU_MEMORYTYPE_DEVICE ? Sides::device_both : Sides::device_dst;
    return src == CU_MEMORYTYPE_DEVICE ? Sides::device_src : Sides::any;
}

CUresult copy_2d(const CUDA_MEMCPY2D* p, CUstream stream, Mode mode) {
    return context_entry([&](Context& context) {
        require(p);
        CopyOperation copy;
        copy.width = p->WidthInBytes;
        copy.height = p->Height;
        copy.src = side_of(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY, 0,
                           p->srcPitch, p->Height, copy);
        copy.dst = side_of(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY, 0,
                           p->dstPitch, p->Height, copy);
        submit(context, stream, std::move(copy), mode,
               sides_of(p->dstMemoryType, p->srcMemoryType));
    });
}

// CUDA_MEMCPY3D or CUDA_MEMCPY3D_PEER.
template <class Parameters>
void copy_3d(Context& context, const Parameters* p, CUstream stream, Mode mode) {
    require(p->srcLOD == 0 && p->dstLOD == 0);
    CopyOperation copy;
    copy.width = p->WidthInBytes;
    copy.height = p->Height;
    copy.depth = p->Depth;
    copy.src = side_of(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY,
                       p->srcZ, p->srcPitch, p->srcHeight, copy);
    copy.dst = side_of(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY,
                       p->dstZ, p->dstPitch, p->dstHeight, copy);
    submit(context, stream, std::move(copy), mode, sides_of(p->dstMemoryType, p->srcMemoryType));
}

CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER* p, CUstream stream, Mode mode) {
    return context_entry([&](Context& context) {
        require(p);
        context_from(p->srcContext);
        context_from(p->dstContext);
        copy_3d(context, p, stream, mode);
    });
}

CUresult copy_peer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                   size_t size, CUstream stream, Mode mode) {
    CUresult known = entry([&] {
        context_from(dst_context);
        context_from(src_context);
    });
    if (known != CUDA_SUCCESS) return known;
    return copy_bytes(dst, src, size, stream, mode, Sides::device_both);
}

}  // namespace

CYRT_API CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size) {
    return copy_bytes(dst, src, size, nullptr, Mode::sync, Sides::any);
}

CYRT_API CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream) {
    return copy_bytes(dst, src, size, stream, Mode::async, Sides::any);
}

CYRT_API CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void* src, size_t size) {
    return copy_bytes(dst, address_of(src), size, nullptr, Mode::sync, Sides::device_dst);
}

CYRT_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t size,
                                       CUstream stream) {
    return copy_bytes(dst, address_of(src), size, stream, Mode::async, Sides::device_dst);
}

CYRT_API CUresult cuMemcpyDtoH_v2(void* dst, CUdeviceptr src, size_t size) {
    return copy_bytes(address_of(dst), src, size, nullptr, Mode::sync, Sides::device_src);
}

CYRT_API CUresult cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t size, CUstream stream) {
    return copy_bytes(address_of(dst), src, size, stream, Mode::async, Sides::device_src);
}

CYRT_API CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size) {
    return copy_bytes(dst, src, size, nullptr, Mode::sync, Sides::device_both);
}

CYRT_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size,
                                       CUstream stream) {
    return copy_bytes(dst, src, size, stream, Mode::async, Sides::device_both);
}

CYRT_API CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                               CUcontext src_context, size_t size) {
    return copy_peer(dst, dst_context, src, src_context, size, nullptr, Mode::sync);
}

CYRT_API CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                                    CUcontext src_context, size_t size, CUstream stream) {
    return copy_peer(dst, dst_context, src, src_context, size, stream, Mode::async);
}

CYRT_API CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* p) {
    return copy_2d(p, nullptr, Mode::sync);
}

CYRT_API CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* p) {
    return copy_2d(p, nullptr, Mode::sync);
}

CYRT_API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* p, CUstream stream) {
    return copy_2d(p, stream, Mode::async);
}

CYRT_API CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* p) {
    return context_entry([&](Context& context) {
        require(p);
        copy_3d(context, p, nullptr, Mode::sync);
    });
}

CYRT_API CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* p, CUstream stream) {
    return context_entry([&](Context& context) {
        require(p);
        copy_3d(context, p, stream, Mode::async);
    });
}

CYRT_API CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* p) {
    return copy_3d_peer(p, nullptr, Mode::sync);
}

CYRT_API CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* p, CUstream stream) {
    return copy_3d_peer(p, stream, Mode::async);
}
