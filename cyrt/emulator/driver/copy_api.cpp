// The entry points of copies.
#include "driver/context.hpp"
#include "driver/copy.hpp"
#include "driver/copy_params.hpp"
#include "driver/graph_work.hpp"
#include "driver/stream.hpp"

using namespace cyrt::emu;

namespace {

// A pageable source of up to this many bytes is copied at the call, so that the call need not wait.
constexpr uint64_t kMostStaged = 1 << 20;

enum class Mode { sync, async };

// The driver's guarantee on return: device to device never waits; a copy with pageable memory has
// read or written it; a copy with pinned memory waits only if it is not asynchronous.
void submit(Stream& stream, CopyOperation copy, Mode mode, CopySides sides) {
    if (copy.empty()) return;
    MemoryPlace to = place_of(copy.dst.address, copy.span(copy.dst));
    MemoryPlace from = place_of(copy.src.address, copy.span(copy.src));
    bool wants_dst = sides == CopySides::device_dst || sides == CopySides::device_both;
    bool wants_src = sides == CopySides::device_src || sides == CopySides::device_both;
    require(!wants_dst || to != MemoryPlace::pageable);
    require(!wants_src || from != MemoryPlace::pageable);

    if (mode == Mode::sync) require_safe_call();
    if (stream.capturing())
        return capture_node(stream, captured_copy(copy, stream.context().shared_from_this()));

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
    uint64_t ticket = stream.submit(std::move(copy));
    if (!wait) return;
    stream.wait(ticket);
    stream.context().check();
}

CUresult copy_bytes(uint64_t dst, uint64_t src, size_t size, CUstream handle, Mode mode,
                    CopySides sides) {
    return stream_entry(
        handle, [&](Stream& stream) { submit(stream, flat_copy(dst, src, size), mode, sides); });
}

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// For any of the ABI's structures.
template <class Params>
CUresult copy_shaped(const Params* params, CUstream handle, Mode mode) {
    return stream_entry(handle, [&](Stream& stream) {
        require(params);
        submit(stream, copy_from(*params), mode,
               copy_sides(params->dstMemoryType, params->srcMemoryType));
    });
}

CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER* params, CUstream handle, Mode mode) {
    CUresult known = entry([&] {
        require(params);
        context_from(params->srcContext);
        context_from(params->dstContext);
    });
    return known == CUDA_SUCCESS ? copy_shaped(params, handle, mode) : known;
}

CUresult copy_peer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                   size_t size, CUstream stream, Mode mode) {
    CUresult known = entry([&] {
        context_from(dst_context);
        context_from(src_context);
    });
    if (known != CUDA_SUCCESS) return known;
    return copy_bytes(dst, src, size, stream, mode, CopySides::device_both);
}

}  // namespace

CYRT_API CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size) {
    return copy_bytes(dst, src, size, nullptr, Mode::sync, CopySides::any);
}

CYRT_API CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream) {
    return copy_bytes(dst, src, size, stream, Mode::async, CopySides::any);
}

CYRT_API CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void* src, size_t size) {
    return copy_bytes(dst, address_of(src), size, nullptr, Mode::sync, CopySides::device_dst);
}

CYRT_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t size,
                                       CUstream stream) {
    return copy_bytes(dst, address_of(src), size, stream, Mode::async, CopySides::device_dst);
}

CYRT_API CUresult cuMemcpyDtoH_v2(void* dst, CUdeviceptr src, size_t size) {
    return copy_bytes(address_of(dst), src, size, nullptr, Mode::sync, CopySides::device_src);
}

CYRT_API CUresult cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t size, CUstream stream) {
    return copy_bytes(address_of(dst), src, size, stream, Mode::async, CopySides::device_src);
}

CYRT_API CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size) {
    return copy_bytes(dst, src, size, nullptr, Mode::sync, CopySides::device_both);
}

CYRT_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size,
                                       CUstream stream) {
    return copy_bytes(dst, src, size, stream, Mode::async, CopySides::device_both);
}

CYRT_API CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                               CUcontext src_context, size_t size) {
    return copy_peer(dst, dst_context, src, src_context, size, nullptr, Mode::sync);
}

CYRT_API CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                                    CUcontext src_context, size_t size, CUstream stream) {
    return copy_peer(dst, dst_context, src, src_context, size, stream, Mode::async);
}

CYRT_API CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* params) {
    return copy_shaped(params, nullptr, Mode::sync);
}

CYRT_API CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* params) {
    return copy_shaped(params, nullptr, Mode::sync);
}

CYRT_API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* params, CUstream stream) {
    return copy_shaped(params, stream, Mode::async);
}

CYRT_API CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* params) {
    return copy_shaped(params, nullptr, Mode::sync);
}

CYRT_API CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* params, CUstream stream) {
    return copy_shaped(params, stream, Mode::async);
}

CYRT_API CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* params) {
    return copy_3d_peer(params, nullptr, Mode::sync);
}

CYRT_API CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* params, CUstream stream) {
    return copy_3d_peer(params, stream, Mode::async);
}
