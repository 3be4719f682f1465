// cuda.h, and the code that every entry point of the ABI begins and ends with.
//
// INVARIANTS
// - Functions are written under their real names ("cuMemAlloc_v2"): cuda.h's renaming macros are
//   off, so one source compiles against the headers of CUDA 12 and 13.
// - No exception leaves an entry point; an entry point that fails leaves its outputs alone.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <type_traits>

#define CYRT_API extern "C" __attribute__((visibility("default")))

namespace cyrt::emu {

class Context;

constexpr int kDriverVersion = 13000;  // the version that the emulated driver reports

// Thrown by any function below an entry point; the entry point returns its code.
struct DriverError {
    CUresult code;
};

inline void require(bool condition, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
    if (__builtin_expect(!condition, 0)) throw DriverError{otherwise};
}

// CUDA_SUCCESS if this thread may call the driver: initialised, not in a forked child, not within a
// host function.
CUresult readiness();
// The code for the current exception.
CUresult code_of_exception();
// The calling thread's current context; throws if there is none, or if it has a fault.
Context& usable_context();

template <class Body>
CUresult guarded(Body&& body) noexcept {
    try {
        if constexpr (std::is_void_v<std::invoke_result_t<Body>>) {
            body();
            return CUDA_SUCCESS;
        } else {
            return body();
        }
    } catch (...) {
        return code_of_exception();
    }
}

// An entry point that needs the driver initialised.
template <class Body>
CUresult entry(Body&& body) noexcept {
    return guarded([&]() -> std::invoke_result_t<Body> {
        if (CUresult state = readiness(); state != CUDA_SUCCESS) throw DriverError{state};
        return body();
    });
}

// An entry point that needs a current context without a fault.
template <class Body>
CUresult context_entry(Body&& body) noexcept {
    return entry([&]() -> std::invoke_result_t<Body, Context&> { return body(usable_context()); });
}

}  // namespace cyrt::emu
