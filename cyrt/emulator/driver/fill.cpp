#include "driver/fill.hpp"

#include <algorithm>
#include <cstring>

#include "driver/context.hpp"
#include "driver/copy.hpp"
#include "driver/graph_work.hpp"
#include "driver/stream.hpp"

namespace cyrt::emu {

namespace {

template <class T>
void fill_row(std::byte* row, uint64_t count, uint32_t value) {
    std::fill_n(reinterpret_cast<T*>(row), count, static_cast<T>(value));
}

}  // namespace

void FillOperation::check() const {
    require(address % element == 0 && (height <= 1 || pitch % element == 0));
    if (empty()) return;
    uint64_t row, rows, all;
    bool overflow = __builtin_mul_overflow(width, uint64_t(element), &row) ||
                    __builtin_mul_overflow(height - 1, pitch, &rows) ||
                    __builtin_add_overflow(row, rows, &all);
    require(!overflow && (height == 1 || pitch >= row));
    require(place_of(address, all) != MemoryPlace::pageable);
}

void FillOperation::run(Context& context) const {
    uint64_t bytes = width * element;
    MemoryView view = view_of(context, address, span(), "a fill");
    if (!view.bytes) return;
    for (uint64_t y = 0; y < height; ++y) {
        std::byte* row = view.bytes + y * pitch;
        switch (element) {
        case 1: std::memset(row, static_cast<int>(value), width); break;
        case 2: fill_row<uint16_t>(row, width, value); break;
        default: fill_row<uint32_t>(row, width, value); break;
        }
        if (view.valid) std::memset(view.valid + y * pitch, 1, bytes);
    }
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

namespace {

CUresult fill(CUdeviceptr address, size_t pitch, uint32_t value, uint32_t element, size_t width,
              size_t height, CUstream handle) {
    return stream_entry(handle, [&](Stream& stream) {
        FillOperation fill{address, pitch, value, element, width, height};
        fill.check();
        if (fill.empty()) return;
        if (stream.capturing())
            capture_node(stream, fill_work(fill, stream.context().shared_from_this()));
        else
            stream.submit(fill);
    });
}

}  // namespace

CYRT_API CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count) {
    return fill(dst, 0, value, 1, count, 1, nullptr);
}

CYRT_API CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count) {
    return fill(dst, 0, value, 2, count, 1, nullptr);
}

CYRT_API CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t count) {
    return fill(dst, 0, value, 4, count, 1, nullptr);
}

CYRT_API CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count,
                                  CUstream stream) {
    return fill(dst, 0, value, 1, count, 1, stream);
}

CYRT_API CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count,
                                   CUstream stream) {
    return fill(dst, 0, value, 2, count, 1, stream);
}

CYRT_API CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream) {
    return fill(dst, 0, value, 4, count, 1, stream);
}

CYRT_API CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                                  size_t height) {
    return fill(dst, pitch, value, 1, width, height, nullptr);
}

CYRT_API CUresult cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value,
                                   size_t width, size_t height) {
    return fill(dst, pitch, value, 2, width, height, nullptr);
}

CYRT_API CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned value, size_t width,
                                   size_t height) {
    return fill(dst, pitch, value, 4, width, height, nullptr);
}

CYRT_API CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value,
                                    size_t width, size_t height, CUstream stream) {
    return fill(dst, pitch, value, 1, width, height, stream);
}

CYRT_API CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value,
                                     size_t width, size_t height, CUstream stream) {
    return fill(dst, pitch, value, 2, width, height, stream);
}

CYRT_API CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned value, size_t width,
                                     size_t height, CUstream stream) {
    return fill(dst, pitch, value, 4, width, height, stream);
}
