// Loads and stores of several elements at once.
#pragma once

#include "params/space.h"
#include "types.cuh"

namespace cyrt {

constexpr int VECTOR_BYTES = 16;

__device__ constexpr int larger(int a, int b) { return a > b ? a : b; }
template <class... T> struct Widest;
template <> struct Widest<> {
    static constexpr int bytes = 1;
};
template <class T, class... Rest> struct Widest<T, Rest...> {
    static constexpr int bytes = larger(sizeof(T), Widest<Rest...>::bytes);
};
// Elements that a thread takes: as many as fill a vector of the widest type, at most 8.
template <class... T> constexpr int items_of = VECTOR_BYTES / larger(2, Widest<T...>::bytes);

template <int BYTES> struct Word;
template <> struct Word<1> {
    using type = uint8;
};
template <> struct Word<2> {
    using type = uint16;
};
template <> struct Word<4> {
    using type = uint32;
};
template <> struct Word<8> {
    using type = uint2;
};
template <> struct Word<16> {
    using type = uint4;
};

template <class T, int N> struct Items {
    T item[N];
};

template <int N, class T> __device__ inline Items<T, N> load_vector(const T* from) {
    using Vector = typename Word<sizeof(T) * N>::type;
    Vector word = *reinterpret_cast<const Vector*>(from);
    Items<T, N> items;
    memcpy(&items, &word, sizeof(word));
    return items;
}

template <int N, class T> __device__ inline void store_vector(T* to, const Items<T, N>& items) {
    using Vector = typename Word<sizeof(T) * N>::type;
    Vector word;
    memcpy(&word, &items, sizeof(word));
    *reinterpret_cast<Vector*>(to) = word;
}

template <int N, class T> __device__ inline Items<T, N> splat(T value) {
    Items<T, N> items;
#pragma unroll
    for (int k = 0; k < N; ++k) items.item[k] = value;
    return items;
}

// Elements in their compute type.
template <class T, int N>
__device__ inline void widen(const Items<T, N>& items, compute_of<T> (&values)[N]) {
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = widen(items.item[k]);
}
// Two elements of a word take one instruction each, which the compiler does not find.
template <int N>
__device__ inline void widen(const Items<bfloat16, N>& items, float (&values)[N]) {
    uint32 words[(N + 1) / 2] = {};
    memcpy(words, &items, sizeof(items));
#pragma unroll
    for (int k = 0; k < N; ++k) {
        values[k] = __uint_as_float(k % 2 ? words[k / 2] & 0xffff0000 : words[k / 2] << 16);
    }
}

// Returns a pointer of which the compiler knows that it is to global memory.
template <class T> __device__ inline T* global(void* memory) {
    T* p = static_cast<T*>(memory);
    __builtin_assume(__isGlobal(p));
    return p;
}
template <class T> __device__ inline const T* global(const void* memory) {
    return global<T>(const_cast<void*>(memory));
}

template <class T> __device__ inline const T* pointer_of(const Source& source) {
    const T* p = reinterpret_cast<const T*>(source.word[0]);
    __builtin_assume(__isGlobal(p));
    return p;
}

template <class T> __device__ inline T value_of(const Source& source) {
    T value;
    memcpy(&value, source.word, sizeof(T));
    return value;
}

// Which elements along a row a thread takes: first, first + spacing, ... below the limit.
struct Span {
    uint32 first, spacing, limit;
    bool vector;  // all of them, side by side, aligned
};

template <int N, class T>
__device__ inline Items<T, N> load_items(const T* row, int64 stride, const Span& span) {
    if (stride == 0) return splat<N>(row[0]);
    if (span.vector) return load_vector<N>(row + span.first);
    Items<T, N> items = {};
#pragma unroll
    for (int k = 0; k < N; ++k) {
        uint32 x = span.first + k * span.spacing;
        if (x < span.limit) items.item[k] = row[int64(x) * stride];
    }
    return items;
}

template <int N, class T>
__device__ inline void store_items(T* row, int64 stride, const Span& span,
                                   const Items<T, N>& items) {
    if (span.vector) {
        store_vector<N>(row + span.first, items);
        return;
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
        uint32 x = span.first + k * span.spacing;
        if (x < span.limit) row[int64(x) * stride] = items.item[k];
    }
}

}  // namespace cyrt
