// Programmatic dependent launch: a kernel may start while the one it depends on still runs.
#pragma once

namespace cyrt {

// Before this returns, nothing in global memory may be touched, and no thread may return. So loads
// must not be hoisted above it: no __restrict__, __ldg or .nc anywhere.
//
// The exception are the first loads of weights. A kernel waits in front of them, or behind them if
// the word `early` of its parameters is 1: the recorder sets it where nothing that may still run
// writes them (see cyrt/graph/early.pxd).
//
// It is called with the kernel's parameters, and waits whatever they are. But it cannot before they
// are here: else they would be fetched afterwards, which costs a small kernel 0.07 of 0.70 us.
template <class Args> __device__ inline void wait_for_dependencies(const Args& args) {
#if __CUDA_ARCH__ >= 900
    const unsigned* words = reinterpret_cast<const unsigned*>(&args);
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.eq.u32 p, %0, %1;\n"
                 "@p griddepcontrol.wait;\n"
                 "@!p griddepcontrol.wait;\n"
                 "}" ::"r"(words[0]),
                 "r"(words[sizeof(Args) / sizeof(unsigned) - 1])
                 : "memory");
#endif
}

// Has a value of 4 or 8 bytes computed here: the compiler would move it behind the wait, nearer to its
// use. What follows from the parameters alone is ready when the wait ends, and the lines of
// parameters that it comes from are in the cache.
template <class T> __device__ inline void compute_now(T& value) {
    if constexpr (sizeof(T) == 8) {
        asm volatile("" : "+l"(value));
    } else {
        asm volatile("" : "+r"(value));
    }
}
template <class... T> __device__ inline void compute_now(T&... values) {
    (compute_now(values), ...);
}

// Lets the next kernel start early, in grids of at most so many blocks. It pays where they leave the
// device room, and costs other kernels.
template <unsigned BLOCKS = 128> __device__ inline void launch_dependents() {
#if __CUDA_ARCH__ >= 900
    if (gridDim.x <= BLOCKS) {
        asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    }
#endif
}

}  // namespace cyrt
