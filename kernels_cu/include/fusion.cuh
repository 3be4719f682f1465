// What kernels of several elementwise operations are made of (see cyrt/builtin/fusion): a thread has a
// vector of each value in registers, in its element type, as if it had been stored and loaded.
#pragma once

#include "elementwise.cu"

namespace cyrt {

// Makes of it a number of which the compiler knows nothing: it neither contracts nor simplifies across
// operations. The assembler could, but for its option -fmad=false.
__device__ inline void fence(float& x) { asm volatile("" : "+f"(x)); }
__device__ inline void fence(double& x) { asm volatile("" : "+d"(x)); }
__device__ inline void fence(int16& x) { asm volatile("" : "+h"(x)); }
__device__ inline void fence(uint16& x) { asm volatile("" : "+h"(x)); }
__device__ inline void fence(int32& x) { asm volatile("" : "+r"(x)); }
__device__ inline void fence(uint32& x) { asm volatile("" : "+r"(x)); }
__device__ inline void fence(int64& x) { asm volatile("" : "+l"(x)); }
__device__ inline void fence(uint64& x) { asm volatile("" : "+l"(x)); }
__device__ inline void fence(float16& x) { fence(x.bits); }
__device__ inline void fence(bfloat16& x) { fence(x.bits); }
template <class T> __device__ inline void fence(complex<T>& x) {
    fence(x.re);
    fence(x.im);
}
// Operations on a byte do not overflow in their compute type: there is nothing to simplify.
__device__ inline void fence(int8&) {}
__device__ inline void fence(uint8&) {}
__device__ inline void fence(boolean&) {}

template <class T, int N> __device__ inline Items<T, N> fenced(Items<T, N> items) {
#pragma unroll
    for (int k = 0; k < N; ++k) fence(items.item[k]);
    return items;
}

template <class Op, class R, int N, class... A>
__device__ inline Items<R, N> apply_to(const Items<A, N>&... in) {
    Items<R, N> out;
#pragma unroll
    for (int k = 0; k < N; ++k) out.item[k] = cast<R>(Op::apply(widen(in.item[k])...));
    return out;
}

// Every use of a value is a number of its own: an operation on x and x is that on x and y, and has no
// part in common with another one.
template <class Op, class R, int N, class... A>
__device__ inline Items<R, N> operate(const Items<A, N>&... in) {
    return apply_to<Op, R>(fenced(in)...);
}

// The same bits, after an instruction of which the assembler does not know that it does nothing: `zero`
// is 0. It would make a change of sign part of the next instruction, which may keep the payload of a
// NaN; a change of sign by itself does not.
template <class T, int N> __device__ inline Items<T, N> settled(Items<T, N> items, uint32 zero) {
    uint32 words[sizeof(items) / 4];
    memcpy(words, &items, sizeof(items));
#pragma unroll
    for (uint32& word : words) word ^= zero;
    memcpy(&items, words, sizeof(items));
    return items;
}

// The same bits as another type of the same size.
template <class R, class A, int N> __device__ inline Items<R, N> bits_as(const Items<A, N>& in) {
    static_assert(sizeof(R) == sizeof(A), "");
    Items<R, N> out;
    memcpy(&out, &in, sizeof(in));
    return out;
}

template <class T, int N> __device__ inline Items<T, N> load_from(const void* memory, int64 first) {
    return load_vector<N>(global<T>(memory) + first);
}
template <class T, int N> __device__ inline Items<T, N> load_one(const void* memory, int64 first) {
    return splat<N>(global<T>(memory)[first]);
}
template <class T, int N>
__device__ inline void store_to(void* memory, int64 first, const Items<T, N>& items) {
    store_vector<N>(global<T>(memory) + first, items);
}

// Which part of a launch a block belongs to: part i has the blocks before ends[i].
template <int N> __device__ inline int part_of(uint32 block, const uint32 (&ends)[N]) {
    int low = 0, high = N - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (block < ends[middle]) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

}  // namespace cyrt
