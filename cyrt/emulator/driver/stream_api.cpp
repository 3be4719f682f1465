// The entry points of streams.
#include <algorithm>

#include "driver/capture.hpp"
#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/memory.hpp"
#include "driver/stream.hpp"

using namespace cyrt::emu;

namespace {

constexpr int kHighestPriority = -5;  // as on current devices: a lower number has precedence
constexpr int kLowestPriority = 0;

CUresult create(CUstream* out, unsigned flags, int priority) {
    return context_entry([&](Context& context) {
        require(out && !(flags & ~CU_STREAM_NON_BLOCKING));
        auto stream =
            context.open_stream(flags, std::clamp(priority, kHighestPriority, kLowestPriority));
        *out = as_handle<CUstream>(streams().add(std::move(stream)));
    });
}

bool is_legacy(const Stream& stream) { return &stream == stream.context().legacy_stream().get(); }

// `read(stream)` is the result.
template <class Out, class Read>
CUresult ask(Out* out, CUstream handle, Read read) {
    return entry([&] {
        require(out);
        *out = read(*stream_from(handle));
    });
}

}  // namespace

CYRT_API CUresult cuStreamCreate(CUstream* out, unsigned flags) { return create(out, flags, 0); }

CYRT_API CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
    return create(out, flags, priority);
}

CYRT_API CUresult cuStreamDestroy_v2(CUstream handle) {
    return entry([&]() -> CUresult {
        std::shared_ptr<Stream> stream = streams().remove(handle);
        require(stream != nullptr, CUDA_ERROR_INVALID_HANDLE);
        drop_from_capture(*stream);
        stream->close();
        return stream->context().state();
    });
}

CYRT_API CUresult cuStreamSynchronize(CUstream handle) {
    return uncaptured_stream_entry(handle, [&](Stream& stream) {
        require_safe_call();
        if (is_legacy(stream))
            stream.context().synchronize_blocking_streams();
        else
            stream.synchronize();
        stream.context().check();
    });
}

CYRT_API CUresult cuStreamQuery(CUstream handle) {
    return uncaptured_stream_entry(handle, [&](Stream& stream) -> CUresult {
        require_safe_call();
        Context& context = stream.context();
        bool idle = is_legacy(stream) ? context.blocking_streams_idle() : stream.idle();
        return idle ? context.state() : CUDA_ERROR_NOT_READY;
    });
}

CYRT_API CUresult cuStreamGetPriority(CUstream handle, int* out) {
    return ask(out, handle, [](const Stream& stream) { return stream.priority; });
}

CYRT_API CUresult cuStreamGetFlags(CUstream handle, unsigned* out) {
    return ask(out, handle, [](const Stream& stream) { return stream.flags; });
}

CYRT_API CUresult cuStreamGetId(CUstream handle, unsigned long long* out) {
    return uncaptured_stream_entry(handle, [&](Stream& stream) {  // as driver 580 refuses it
        require(out);
        *out = stream.id;
    });
}

CYRT_API CUresult cuStreamGetCtx(CUstream handle, CUcontext* out) {
    return ask(out, handle,
               [](const Stream& stream) { return as_handle<CUcontext>(stream.context().handle); });
}

CYRT_API CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext* out, CUgreenCtx* green) {
    if (green) *green = nullptr;
    return cuStreamGetCtx(handle, out);
}

CYRT_API CUresult cuStreamGetDevice(CUstream handle, CUdevice* out) {
    return ask(out, handle, [](const Stream& stream) { return stream.context().device.ordinal; });
}

CYRT_API CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t,
                                         unsigned flags) {
    return uncaptured_stream_entry(handle, [&](Stream&) {
        require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST ||
                flags == CU_MEM_ATTACH_SINGLE);
        auto found = allocation_at(address);
        require(found && found->kind == MemoryKind::managed);
    });
}
