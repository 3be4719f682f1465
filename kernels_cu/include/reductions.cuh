// What reductions compute. An operation has
//   State                 what is known of some elements; one of whole words
//   Run                   the same while a thread takes elements of one row; start() of none
//   identity()            the state of no elements
//   take(run, batch)      adds a batch, the next elements in the order of their logical indices
//   close(run, elements)  the state of a run of RUN_BATCHES batches at most
//   combine(a, b)         of both
//   finish(state, divisor, root)   the result, as it is in memory
// What is done once a run, or once a batch, costs little beside what is done for each element.
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

constexpr int RUN_BATCHES = 32;

// Elements that a thread loads at once, in their compute type. Those of a load are there or not;
// the first load's are.
template <class V, int LOADS_, int ITEMS_> struct Batch {
    static constexpr int LOADS = LOADS_, ITEMS = ITEMS_;
    V value[LOADS][ITEMS];
    bool valid[LOADS];
    uint32 number;  // the number of the first one in its run

    template <class T> __device__ T get(int load, int item, T otherwise) const {
        return valid[load] ? cast<T>(value[load][item]) : otherwise;
    }
};

template <int N, class T, class Combine>
__device__ inline T fold(T (&values)[N], const Combine& combine) {
#pragma unroll
    for (int width = N / 2; width; width /= 2) {
#pragma unroll
        for (int k = 0; k < width; ++k) values[k] = combine(values[k], values[k + width]);
    }
    return values[0];
}

// Combines f(load, item) of all elements of a batch.
template <class T, class Batch, class Function, class Combine>
__device__ inline T fold_batch(const Function& f, const Combine& combine) {
    T loads[Batch::LOADS];
#pragma unroll
    for (int j = 0; j < Batch::LOADS; ++j) {
        T items[Batch::ITEMS];
#pragma unroll
        for (int k = 0; k < Batch::ITEMS; ++k) items[k] = f(j, k);
        loads[j] = fold(items, combine);
    }
    return fold(loads, combine);
}

// Operations that know the state of one element: Self::lift(value).
template <class Self, class State_> struct Tree {
    using State = State_;
    using Run = State;
    __device__ static Run start() { return Self::identity(); }
    template <class Batch> __device__ static void take(Run& run, const Batch& batch) {
        auto lifted = [&](int load, int item) {
            return batch.valid[load] ? Self::lift(batch.value[load][item]) : Self::identity();
        };
        run = Self::combine(run, fold_batch<State, Batch>(lifted, Self::combine));
    }
    template <class Elements> __device__ static State close(Run run, const Elements&) {
        return run;
    }
};

// A mean is a sum with a divisor; else that is 1.
template <class R> struct Sum : Tree<Sum<R>, kept_of<R>> {
    using State = kept_of<R>;
    __device__ static State identity() { return State{}; }
    template <class V> __device__ static State lift(V value) { return cast<State>(value); }
    __device__ static State combine(State a, State b) { return a + b; }
    __device__ static R finish(State sum, double divisor, bool) {
        if constexpr (is_integer<State>::value) {
            return sum;
        } else {  // a division costs more than all else of a result of few elements
            return cast<R>(divisor == 1 ? sum : over(sum, divisor));
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
    template <class V> __device__ static State lift(V value) { return cast<State>(value); }
    __device__ static State combine(State a, State b) { return a * b; }
    __device__ static R finish(State product, double, bool) { return cast<R>(product); }
};

// The same as maximum and minimum, which take one instruction for floats.
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

// NaN if an element is NaN.
template <class T> struct Max : Tree<Max<T>, kept_of<T>> {
    using State = kept_of<T>;
    __device__ static State identity() { return lowest<State>(); }
    template <class V> __device__ static State lift(V value) { return value; }
    __device__ static State combine(State a, State b) { return larger_of(a, b); }
    __device__ static T finish(State most, double, bool) { return cast<T>(most); }
};

template <class T> struct Min : Tree<Min<T>, kept_of<T>> {
    using State = kept_of<T>;
    __device__ static State identity() { return highest<State>(); }
    template <class V> __device__ static State lift(V value) { return value; }
    __device__ static State combine(State a, State b) { return smaller_of(a, b); }
    __device__ static T finish(State least, double, bool) { return cast<T>(least); }
};

// Where the largest is, or the smallest: the first of equal ones, and the first NaN before all. A
// run keeps the number of its element, from which the logical index follows at the end.
template <class V> struct Candidate {
    V value;
    int64 index;
};
template <class T, bool LARGEST> struct Extreme {
    using Value = kept_of<T>;
    using State = Candidate<Value>;
    struct Run {
        Value value;  // NaN: the first one is looked for at the end of the run
        uint32 number;
    };
    static constexpr bool REAL = !is_integer<Value>::value;
    __device__ static Value least() { return LARGEST ? lowest<Value>() : highest<Value>(); }
    __device__ static State identity() { return {least(), 0x7fffffffffffffff}; }
    __device__ static Run start() { return {least(), 0}; }
    __device__ static bool before(Value a, Value b) {
        if constexpr (REAL) {
            if (isnan(b)) return false;
        }
        return LARGEST ? !(a <= b) : !(a >= b);
    }
    template <class Batch> __device__ static void take(Run& run, const Batch& batch) {
        constexpr int ITEMS = Batch::ITEMS, LAST = Batch::LOADS * ITEMS - 1;
        auto value = [&](int load, int item) { return batch.get(load, item, least()); };
        Value best = fold_batch<Value, Batch>(
            value, [](Value a, Value b) { return LARGEST ? larger_of(a, b) : smaller_of(a, b); });
        uint32 number = LAST;
#pragma unroll
        for (int i = LAST - 1; i >= 0; --i) {
            if (value(i / ITEMS, i % ITEMS) == best) number = i;
        }
        if (LARGEST ? best > run.value : best < run.value) run.number = batch.number + number;
        run.value = LARGEST ? larger_of(run.value, best) : smaller_of(run.value, best);
    }
    template <class Elements>
    __device__ static State close(const Run& run, const Elements& elements) {
        uint32 number = run.number;
        if constexpr (REAL) {
            if (isnan(run.value)) {
                number = 0;
                while (!isnan(elements.value(number))) ++number;
            }
        }
        return {run.value, elements.index_of(number)};
    }
    __device__ static State combine(State a, State b) {
        bool second = before(b.value, a.value) || (!before(a.value, b.value) && b.index < a.index);
        return second ? b : a;
    }
    __device__ static int64 finish(State found, double, bool) { return found.index; }
};
template <class T> using ArgMax = Extreme<T, true>;
template <class T> using ArgMin = Extreme<T, false>;

template <class T> struct Any : Tree<Any<T>, uint32> {
    using State = uint32;
    __device__ static State identity() { return 0; }
    template <class V> __device__ static State lift(V value) { return truth(value); }
    __device__ static State combine(State a, State b) { return a | b; }
    __device__ static boolean finish(State found, double, bool) { return {uint8(found)}; }
};

template <class T> struct All : Tree<All<T>, uint32> {
    using State = uint32;
    __device__ static State identity() { return 1; }
    template <class V> __device__ static State lift(V value) { return truth(value); }
    __device__ static State combine(State a, State b) { return a & b; }
    __device__ static boolean finish(State found, double, bool) { return {uint8(found)}; }
};

template <class T> struct CountNonzero : Tree<CountNonzero<T>, int64> {
    using State = int64;
    __device__ static State identity() { return 0; }
    template <class V> __device__ static State lift(V value) { return truth(value); }
    __device__ static State combine(State a, State b) { return a + b; }
    __device__ static int64 finish(State count, double, bool) { return count; }
};

// Quotients and powers of e, of float within a few ulp, in as few instructions as there can be.
__device__ inline float quotient(float a, float b) {
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(b));
    return a * reciprocal;
}
__device__ inline double quotient(double a, double b) { return a / b; }
__device__ inline float power(float a) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a * float(LOG2_E)));
    return result;
}
__device__ inline double power(double a) { return exp(a); }

// A mean of elements that are close to each other, however large they are: of double elements it is
// the exact sum of two numbers.
template <class V> struct Mean {
    double value;

    __device__ static Mean of(V pivot, V rest) { return {double(pivot) + double(rest)}; }
    __device__ double operator-(Mean other) const { return value - other.value; }
    // From a on, that share of the way to b, which is `distance` away; with a share of 1 that is b.
    __device__ static Mean between(Mean a, Mean, double distance, double share) {
        return {a.value + distance * share};
    }
};
template <> struct Mean<double> {
    double pivot, rest;

    __device__ static Mean of(double pivot, double rest) { return {pivot, rest}; }
    __device__ double operator-(Mean other) const {
        return (pivot - other.pivot) + (rest - other.rest);
    }
    __device__ static Mean between(Mean a, Mean b, double distance, double share) {
        return share == 1 ? b : Mean{a.pivot, a.rest + distance * share};
    }
};

// Means and squares of distances from them, put together as Chan, Golub and LeVeque do.
template <class V> struct Moments {
    Mean<V> mean;
    V count, squares;
};
// A run adds distances from the mean of its first batch, and their squares. Few digits cancel, even if
// some elements of that batch are far from the others. That mean is found from distances to the first
// element: of equal elements nothing is left.
template <class T> struct Variance {
    using V = compute_of<T>;
    using State = Moments<V>;
    struct Run {
        V pivot, sum, squares;
    };
    __device__ static State identity() { return {}; }
    __device__ static Run start() { return {V(0), V(0), V(0)}; }
    template <class Batch> __device__ static void take(Run& run, const Batch& batch) {
        auto add = [](V a, V b) { return a + b; };
        if (batch.number == 0) {
            V first = batch.value[0][0];
            auto distance = [&](int load, int item) {
                return batch.valid[load] ? batch.value[load][item] - first : V(0);
            };
            run.pivot = first + fold_batch<V, Batch>(distance, add) *
                                    V(1.0 / (Batch::LOADS * Batch::ITEMS));
        }
        V sums[Batch::LOADS], squares[Batch::LOADS];
#pragma unroll
        for (int j = 0; j < Batch::LOADS; ++j) {
#pragma unroll
            for (int k = 0; k < Batch::ITEMS; ++k) {
                V distance = batch.valid[j] ? batch.value[j][k] - run.pivot : V(0);
                sums[j] = k ? sums[j] + distance : distance;
                squares[j] = k ? fma(distance, distance, squares[j]) : distance * distance;
            }
        }
        run.sum += fold(sums, add);
        run.squares += fold(squares, add);
    }
    template <class Elements>
    __device__ static State close(const Run& run, const Elements& elements) {
        V count = V(elements.count), mean = quotient(run.sum, count);
        // The squares of finite elements may be infinite, and then so is what is subtracted.
        bool overflowed = ::isinf(run.squares) && ::isfinite(run.sum);
        V squares = overflowed ? run.squares : maximum(run.squares - run.sum * mean, V(0));
        return {Mean<V>::of(run.pivot, mean), count, squares};
    }
    __device__ static State combine(State a, State b) {
        V count = a.count + b.count;
        V share = a.count > V(0) ? quotient(b.count, count) : V(1);
        double distance = b.mean - a.mean;
        // Where one has no elements, nothing is added: the square may be infinite.
        V weight = a.count * share;
        V between = weight > V(0) ? V(distance) * V(distance) * weight : V(0);
        return {Mean<V>::between(a.mean, b.mean, distance, double(share)), count,
                a.squares + b.squares + between};
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
    using Run = State;
    __device__ static State identity() { return {-infinity<V>(), V(0)}; }
    __device__ static Run start() { return identity(); }
    // Differences from it are never NaN where no element is.
    __device__ static V base(V most) { return isfinite(most) ? most : V(0); }
    template <class Batch> __device__ static void take(Run& run, const Batch& batch) {
        auto value = [&](int load, int item) { return batch.get(load, item, -infinity<V>()); };
        V most = fold_batch<V, Batch>(value, [](V a, V b) { return larger_of(a, b); });
        most = larger_of(run.most, most);
        V from = base(most);
        auto term = [&](int load, int item) { return power(value(load, item) - from); };
        V sum = fold_batch<V, Batch>(term, [](V a, V b) { return a + b; });
        run = {most, run.sum * power(run.most - from) + sum};
    }
    template <class Elements> __device__ static State close(Run run, const Elements&) {
        return run;
    }
    __device__ static State combine(State a, State b) {
        V most = larger_of(a.most, b.most), from = base(most);
        return {most, a.sum * power(a.most - from) + b.sum * power(b.most - from)};
    }
    __device__ static T finish(State state, double, bool) {
        return cast<T>(state.most + log(state.sum));
    }
};

}  // namespace cyrt
