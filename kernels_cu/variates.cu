// Random numbers of distributions whose parameters may differ from element to element: each is a
// function of the key, its index and its parameters. Most are found by rejection, so that the numbers
// of random bits differ.
//
// A distribution is a struct with `item`, the type in memory, and `draw(source, a, b)`, where a and b
// are its parameters. Invalid parameters give NaN, or -1 if the item is an integer.
// CYRT_VARIATES(name, distribution) makes its kernel.
#pragma once

#include "box_muller.cuh"
#include "dependency.cuh"
#include "memory.cuh"
#include "philox.cuh"
#include "params/variates.h"

namespace cyrt {

// The random bits of an element.
struct BitSource {
    uint64 index, key;
    uint32 count;

    __device__ Bits next() { return philox(index, count++, DRAW, key); }
};

// The logarithm of a number of the gamma distribution with the shape a (Marsaglia and Tsang, "A
// simple method for generating gamma variables", 2000). Of a small shape the number itself would be 0
// too often.
template <class T, class Wide> struct LogGamma {
    using item = T;

    __device__ static void split(Bits bits, float (&normal)[2], float& u) {
        box_muller(bits.word[0], bits.word[1], normal);
        u = positive_fraction(bits.word[2]);
    }
    __device__ static void split(Bits bits, double (&normal)[2], double& u, Bits more) {
        box_muller(bits.pair(0), bits.pair(1), normal);
        u = positive_fraction(more.pair(0));
    }
    __device__ static void next(BitSource& source, Wide (&normal)[2], Wide& u) {
        if constexpr (sizeof(Wide) == 4) {
            split(source.next(), normal, u);
        } else {
            Bits bits = source.next();
            split(bits, normal, u, source.next());
        }
    }
    __device__ static T draw(BitSource& source, double shape, double) {
        if (!(shape > 0) || isinf(shape)) return cast<T>(not_a_number<Wide>());
        Wide normal[2], u, raised = 0;
        if (shape < 1) {  // a number of the shape + 1, times the power 1 / shape of a uniform one
            next(source, normal, u);
            raised = log(u) / Wide(shape);
            shape += 1;
        }
        Wide d = Wide(shape) - Wide(1.0 / 3), c = Wide(1) / sqrt(9 * d);
        for (;;) {
            next(source, normal, u);
            Wide x = normal[0], root = fma(c, x, Wide(1));
            if (root <= 0) continue;
            Wide v = root * root * root, log_v = 3 * log(root);
            if (log(u) < x * x / 2 + d * (1 - v + log_v)) return cast<T>(log(d) + log_v + raised);
        }
    }
};

// Two uniform numbers: in [-1/2, 1/2), and in (0, 1].
__device__ inline void two_uniform(BitSource& source, double& u, double& v) {
    Bits bits = source.next();
    u = UNIT<double> * units(bits.pair(0)) - 0.5;
    v = positive_fraction(bits.pair(1));
}

// Both distributions of counts are inverted by a search from 0 on if their mean is below this.
constexpr double SEARCHED = 10;

// log(k!) for an integer k of 0 or more is k log(k) - k, and this.
__device__ inline double stirling_remainder(double k) {
    if (k == 0) return 0;
    if (k < 16) return ::lgamma(k + 1) - k * ::log(k) + k;
    return 0.5 * ::log(2 * PI * k) + (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / (k * k)) / (k * k)) / k;
}

// k log(k / mean) - (k - mean). The logarithms of probabilities are differences of such numbers, which
// are small near the mean; those of factorials and powers are too large to be subtracted.
__device__ inline double deviance(double k, double mean) {
    double difference = k - mean;
    return (k == 0 ? 0 : k * ::log1p(difference / mean)) - difference;
}

// The Poisson distribution (Hormann, "The transformed rejection method for generating Poisson random
// variables", 1993).
struct Poisson {
    using item = int64;

    __device__ static int64 draw(BitSource& source, double mean, double) {
        double u, v;
        if (!(mean >= 0) || isinf(mean)) return -1;
        if (mean < SEARCHED) {
            two_uniform(source, u, v);
            double chance = ::exp(-mean);
            int64 k = 0;
            while (v > chance && chance > 0) {
                v -= chance;
                chance *= mean / ++k;
            }
            return k;
        }
        double b = 0.931 + 2.53 * ::sqrt(mean), a = -0.059 + 0.02483 * b;
        double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
        for (;;) {
            two_uniform(source, u, v);
            double distance = 0.5 - ::fabs(u);
            double k = ::floor((2 * a / distance + b) * u + mean + 0.43);
            if (distance >= 0.07 && v <= accepted) return int64(k);
            if (!(k >= 0) || (distance < 0.013 && v > distance)) continue;
            if (::log(v * inverse_alpha / (a / (distance * distance) + b)) <=
                -deviance(k, mean) - stirling_remainder(k)) {
                return int64(k);
            }
        }
    }
};

// The binomial distribution (Hormann, "The generation of binomial random variates", 1993).
struct Binomial {
    using item = int64;

    __device__ static int64 draw(BitSource& source, double n, double p) {
        if (!(n >= 0 && p >= 0 && p <= 1) || isinf(n)) return -1;
        bool rare = p <= 0.5;
        double k = successes(source, n, rare ? p : 1 - p);
        return int64(rare ? k : n - k);
    }

    // The logarithm of 1 / the probability of k successes, and a number that does not depend on k.
    __device__ static double rarity(double k, double n, double p) {
        return deviance(k, n * p) + stirling_remainder(k) + deviance(n - k, n * (1 - p)) +
               stirling_remainder(n - k);
    }

    // p is at most 1/2.
    __device__ static double successes(BitSource& source, double n, double p) {
        double u, v, odds = p / (1 - p);
        if (n * p < SEARCHED) {
            two_uniform(source, u, v);
            double chance = ::exp(n * ::log1p(-p)), k = 0;
            while (v > chance && k < n) {
                v -= chance;
                chance *= odds * (n - k) / (k + 1);
                ++k;
            }
            return k;
        }
        double deviation = ::sqrt(n * p * (1 - p));
        double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
        double alpha = (2.83 + 5.1 / b) * deviation, accepted = 0.92 - 4.2 / b;
        double at_mode = rarity(::floor((n + 1) * p), n, p);
        for (;;) {
            two_uniform(source, u, v);
            double distance = 0.5 - ::fabs(u);
            double k = ::floor((2 * a / distance + b) * u + n * p + 0.5);
            if (!(k >= 0 && k <= n)) continue;
            if (distance >= 0.07 && v <= accepted) return k;
            if (::log(v * alpha / (a / (distance * distance) + b)) <= at_mode - rarity(k, n, p)) {
                return k;
            }
        }
    }
};

// The geometric distribution: the number of trials up to the first success, by inversion.
struct Geometric {
    using item = int64;

    __device__ static int64 draw(BitSource& source, double p, double) {
        if (!(p > 0 && p <= 1)) return -1;
        double failures = ::floor(::log(positive_fraction(source.next().pair(0))) / ::log1p(-p));
        return failures < 0x1p63 ? int64(failures) + 1 : 0x7fffffffffffffff;
    }
};

// The von Mises distribution (Best and Fisher, "Efficient simulation of the von Mises distribution",
// 1979), in [-pi, pi]. It is uniform where kappa is near 0, and normal where kappa is large.
template <class T> struct VonMises {
    using item = T;

    __device__ static T draw(BitSource& source, double mean, double kappa) {
        if (!(kappa >= 0) || isinf(kappa)) return cast<T>(not_a_number<double>());
        double angle = mean + centered(source, kappa);
        return cast<T>(angle - 2 * PI * ::rint(angle / (2 * PI)));
    }

    __device__ static double centered(BitSource& source, double kappa) {
        double u, v;
        if (kappa > 1e6) {
            Bits bits = source.next();
            double normal[2];
            box_muller(bits.pair(0), bits.pair(1), normal);
            return normal[0] / ::sqrt(kappa);
        }
        double tau = 1 + ::sqrt(1 + 4 * kappa * kappa);
        double rho = (tau - ::sqrt(2 * tau)) / (2 * kappa);
        // The formula loses its digits where kappa is small.
        double s = kappa < 1e-5 ? 1 / kappa + kappa : (1 + rho * rho) / (2 * rho);
        for (;;) {
            two_uniform(source, u, v);
            if (kappa < 1e-8) return 2 * PI * u;
            double z = ::cospi(2 * u), w = (1 + s * z) / (s + z), y = kappa * (s - w);
            if (y * (2 - y) >= v || ::log(y / v) + 1 - y >= 0) {
                return ::copysign(::acos(::fmax(-1.0, ::fmin(w, 1.0))), u);
            }
        }
    }
};

template <class Distribution> __device__ inline void variates(const Variates& args) {
    using T = typename Distribution::item;
    wait_for_dependencies(args);
    launch_dependents();
    int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= args.n) return;
    BitSource source{uint64(i), args.key, 0};
    double parameter[VARIATES_PARAMETERS];
#pragma unroll
    for (int k = 0; k < VARIATES_PARAMETERS; ++k) {
        parameter[k] = args.array[k] ? global<double>(args.array[k])[i] : args.number[k];
    }
    global<T>(args.out)[i] = Distribution::draw(source, parameter[0], parameter[1]);
}

}  // namespace cyrt

#define CYRT_VARIATES(NAME, ...)                                                   \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Variates args) { \
        cyrt::variates<__VA_ARGS__>(args);                                         \
    }
