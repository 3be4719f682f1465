#include "driver/stream_values.hpp"

#include <chrono>
#include <thread>

#include "driver/context.hpp"
#include "driver/copy.hpp"
#include "driver/spin.hpp"
#include "driver/stream.hpp"

namespace cyrt::emu {

namespace {

uint64_t read_word(const std::byte* at, uint32_t size) {
    if (size == 4) return __atomic_load_n(reinterpret_cast<const uint32_t*>(at), __ATOMIC_ACQUIRE);
    return __atomic_load_n(reinterpret_cast<const uint64_t*>(at), __ATOMIC_ACQUIRE);
}

bool holds(unsigned condition, uint64_t word, uint64_t value, uint32_t size) {
    uint64_t mask = size == 4 ? 0xffffffffu : ~0ull;
    switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ:  // cyclic
        return size == 4 ? static_cast<int32_t>(word - value) >= 0
                         : static_cast<int64_t>(word - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return word == (value & mask);
    case CU_STREAM_WAIT_VALUE_AND: return (word & value) != 0;
    default: return (~(word | value) & mask) != 0;  // NOR
    }
}

}  // namespace

void WriteValueOperation::run(Context& context) {
    MemoryView view = view_of(context, address, size, "a stream's write");
    if (!view.bytes) return;
    if (size == 4)
        __atomic_store_n(reinterpret_cast<uint32_t*>(view.bytes), uint32_t(value),
                         __ATOMIC_RELEASE);
    else
        __atomic_store_n(reinterpret_cast<uint64_t*>(view.bytes), value, __ATOMIC_RELEASE);
    for (uint32_t i = 0; view.valid && i < size; ++i) view.valid[i] = 1;
}

void WaitValueOperation::run(Context& context) {
    MemoryView view = view_of(context, address, size, "a stream's wait");
    if (!view.bytes) return;
    auto done = [&] {
        return holds(condition, read_word(view.bytes, size), value, size) ||
               context.cancelled().load() || context.state() != CUDA_SUCCESS;
    };
    while (!spin_until(done)) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

namespace {

void check_word(CUdeviceptr address, uint32_t size) {
    require(address % size == 0);
    require(place_of(address, size) != MemoryPlace::pageable);
}

CUresult write_value(CUstream handle, CUdeviceptr address, uint64_t value, uint32_t size,
                     unsigned flags) {
    return uncaptured_stream_entry(handle, [&](Stream& stream) {
        require(!(flags & ~CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
        check_word(address, size);
        stream.submit(WriteValueOperation{address, value, size});
    });
}

CUresult wait_value(CUstream handle, CUdeviceptr address, uint64_t value, uint32_t size,
                    unsigned flags) {
    return uncaptured_stream_entry(handle, [&](Stream& stream) {
        unsigned condition = flags & ~unsigned(CU_STREAM_WAIT_VALUE_FLUSH);
        require(condition <= CU_STREAM_WAIT_VALUE_NOR);
        check_word(address, size);
        stream.submit(WaitValueOperation{address, value, size, condition});
    });
}

}  // namespace

CYRT_API CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                          unsigned flags) {
    return write_value(stream, address, value, 4, flags);
}

CYRT_API CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                          unsigned flags) {
    return write_value(stream, address, value, 8, flags);
}

CYRT_API CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                         unsigned flags) {
    return wait_value(stream, address, value, 4, flags);
}

CYRT_API CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                         unsigned flags) {
    return wait_value(stream, address, value, 8, flags);
}
