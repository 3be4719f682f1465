// What reductions compute. An operation has
//   State                     what is known of some elements; one of whole words
//   identity()                of none
//   of(values, places, valid) of N elements, in their compute type, and their logical indices; but
//                             for those that are not valid
//   combine(a, b)             of both
//   finish(state, divisor, root)   the result, as it lies in memory
// Combinations form trees, the same ones each time: rounding errors stay small and equal.
#pragma once

#include "complex_math.cuh"
#include "integer_math.cuh"
#include "memory.cuh"
#include "real_math.cuh"

namespace cyrt {

// The type that a computed value is kept in.
template <class T> struct Kept {
    using type = T;
};
template <> struct Kept<bool> {
    using type = uint32;
};
template <class T> using kept_of = typename Kept<compute_of<T>>::type;

template <class T> __device__ inline T lowest() {
    if constexpr (is_integer<T>::value) {
        return is_signed<T> ? T(T(1) << (8 * sizeof(T) - 1)) : T(0);
    } else {
        return -infinity<T>();
    }
}
template <class T> __device__ inline T highest() {
    if constexpr (is_integer<T>::value) {
        return ~lowest<T>();
    } else {
        return infinity<T>();
    }
}

// Operations that know the state of one element: Self::lift(value, place).
template <class Self, class State_> struct Tree {
    using State = State_;
    template <class V, int N>
    __device__ static State of(const V (&values)[N], const int64 (&places)[N],
                               const bool (&valid)[N]) {
        State states[N];
#pragma unroll
        for (int k = 0; k < N; ++k) {
            states[k] = valid[k] ? Self::lift(values[k], places[k]) : Self::identity();
        }
#pragma unroll
        for (int width = N / 2; width; width /= 2) {
#pragma unroll
            for (int k = 0; k < width; ++k) {
                states[k] = Self::combine(states[k], states[k + width]);
            }
        }
        return states[0];
    }
};

// A mean is a sum with a divisor; else that is 1.
template <class R> struct Sum : Tree<Sum<R>, kept_of<R>> {
    using State = kept_of<R>;
    __device__ static State identity() { return State{}; }
    template <class V> __device__ static State lift(V value, int64) { return cast<State>(value); }
    __device__ static State combine(State a, State b) { return a + b; }
    __device__ static R finish(State sum, double divisor, bool) {
        if constexpr (is_integer<State>::value) {
            return sum;
        } else {
            return cast<R>(over(sum, divisor));
        }
    }
    template <class T> __device__ static T over(T a, double divisor) { return a / T(divisor); }
    template <class T> __device__ static complex<T> over(complex<T> a, double divisor) {
        return {a.re / T(divisor), a.im / T(divisor)};
    }
};

template <class R> struct Product : Tree<Product<R>, kept_of<R>> {
    using State = kept_of<R>;
    __device__ static State identity() { return cast<State>(1); }
    template <class V> __device__ static State lift(V value, int64) { return cast<State>(value); }
    __device__ static State combine(State a, State b) { return a * b; }
    __device__ static R finish(State product, double, bool) { return cast<R>(product); }
};

// As maximum and minimum; of floats, in one instruction.
template <class T> __device__ inline T larger_of(T a, T b) { return maximum(a, b); }
template <class T> __device__ inline T smaller_of(T a, T b) { return minimum(a, b); }
__device__ inline float larger_of(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
__device__ inline float smaller_of(float a, float b) {
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

// NaN where one is among the elements.
template <class T> struct Max : Tree<Max<T>, kept_of<T>> {
    using State = kept_of<T>;
    __device__ static State identity() { return lowest<State>(); }
    template <class V> __device__ static State lift(V value, int64) { return value; }
    __device__ static State combine(State a, State b) { return larger_of(a, b); }
    __device__ static T finish(State most, double, bool) { return cast<T>(most); }
};

template <class T> struct Min : Tree<Min<T>, kept_of<T>> {
    using State = kept_of<T>;
    __device__ static State identity() { return highest<State>(); }
    template <class V> __device__ static State lift(V value, int64) { return value; }
    __device__ static State combine(State a, State b) { return smaller_of(a, b); }
    __device__ static T finish(State least, double, bool) { return cast<T>(least); }
};

// Where the largest is, or the smallest: the first of equal ones, and the first NaN before all.
template <class V> struct Candidate {
    V value;
    int64 place;
};
template <class T, bool LARGEST>
struct Place : Tree<Place<T, LARGEST>, Candidate<kept_of<T>>> {
    using Value = kept_of<T>;
    using State = Candidate<Value>;
    __device__ static State identity() {
        return {LARGEST ? lowest<Value>() : highest<Value>(), 0x7fffffffffffffff};
    }
    template <class V> __device__ static State lift(V value, int64 place) { return {value, place}; }
    __device__ static bool before(Value a, Value b) {
        if constexpr (!is_integer<Value>::value) {
            if (isnan(a)) return !isnan(b);
        }
        return LARGEST ? a > b : a < b;
    }
    __device__ static State combine(State a, State b) {
        bool second = before(b.value, a.value) || (!before(a.value, b.value) && b.place < a.place);
        return second ? b : a;
    }
    __device__ static int64 finish(State found, double, bool) { return found.place; }
};
template <class T> using ArgMax = Place<T, true>;
template <class T> using ArgMin = Place<T, false>;

template <class T> struct Any : Tree<Any<T>, uint32> {
    using State = uint32;
    __device__ static State identity() { return 0; }
    template <class V> __device__ static State lift(V value, int64) { return truth(value); }
    __device__ static State combine(State a, State b) { return a | b; }
    __device__ static boolean finish(State found, double, bool) { return {uint8(found)}; }
};

template <class T> struct All : Tree<All<T>, uint32> {
    using State = uint32;
    __device__ static State identity() { return 1; }
    template <class V> __device__ static State lift(V value, int64) { return truth(value); }
    __device__ static State combine(State a, State b) { return a & b; }
    __device__ static boolean finish(State found, double, bool) { return {uint8(found)}; }
};

template <class T> struct CountNonzero : Tree<CountNonzero<T>, int64> {
    using State = int64;
    __device__ static State identity() { return 0; }
    template <class V> __device__ static State lift(V value, int64) { return truth(value); }
    __device__ static State combine(State a, State b) { return a + b; }
    __device__ static int64 finish(State count, double, bool) { return count; }
};

// Means and squares of distances from them, put together as Chan, Golub and LeVeque do; means in
// double: nothing cancels where they are large.
template <class V> struct Moments {
    double mean;
    V count, squares;
};
template <class T> struct Variance {
    using V = compute_of<T>;
    using State = Moments<V>;
    __device__ static State identity() { return {0.0, V(0), V(0)}; }
    template <int N>
    __device__ static State of(const V (&values)[N], const int64 (&)[N], const bool (&valid)[N]) {
        V pivot = values[0], terms[N], count = V(0);
#pragma unroll
        for (int k = 0; k < N; ++k) {
            terms[k] = valid[k] ? values[k] - pivot : V(0);
            count += V(valid[k]);
        }
        V mean = add(terms) / (count > V(0) ? count : V(1));
#pragma unroll
        for (int k = 0; k < N; ++k) {
            V distance = values[k] - pivot - mean;
            terms[k] = valid[k] ? distance * distance : V(0);
        }
        return {double(pivot) + double(mean), count, add(terms)};
    }
    template <int N> __device__ static V add(const V (&values)[N]) {
        V sums[N];
#pragma unroll
        for (int k = 0; k < N; ++k) sums[k] = values[k];
#pragma unroll
        for (int width = N / 2; width; width /= 2) {
#pragma unroll
            for (int k = 0; k < width; ++k) sums[k] += sums[k + width];
        }
        return sums[0];
    }
    __device__ static State combine(State a, State b) {
        V count = a.count + b.count;
        V share = count > V(0) ? b.count / count : V(0);
        double distance = b.mean - a.mean;
        return {a.mean + distance * double(share), count,
                a.squares + b.squares + V(distance) * V(distance) * (a.count * share)};
    }
    __device__ static T finish(State state, double divisor, bool root) {
        V variance = state.squares / V(divisor);
        return cast<T>(root ? sqrt(variance) : variance);
    }
};

// log of the sum of exp, from the largest on: nothing overflows.
template <class V> struct Scaled {
    V most, sum;
};
template <class T> struct LogSumExp {
    using V = compute_of<T>;
    using State = Scaled<V>;
    __device__ static State identity() { return {-infinity<V>(), V(0)}; }
    __device__ static V share(V value, V most) {
        return value == most ? V(1) : exp(value - most);  // infinities too
    }
    template <int N>
    __device__ static State of(const V (&values)[N], const int64 (&)[N], const bool (&valid)[N]) {
        V most = -infinity<V>(), sum = V(0);
#pragma unroll
        for (int k = 0; k < N; ++k) most = valid[k] ? maximum(most, values[k]) : most;
#pragma unroll
        for (int k = 0; k < N; ++k) sum += valid[k] ? share(values[k], most) : V(0);
        return {most, sum};
    }
    __device__ static State combine(State a, State b) {
        V most = maximum(a.most, b.most);
        return {most, a.sum * share(a.most, most) + b.sum * share(b.most, most)};
    }
    __device__ static T finish(State state, double, bool) {
        return cast<T>(state.most + log(state.sum));
    }
};

}  // namespace cyrt
