// Rounding of any number to any small binary format in any direction, in integers: for the
// conversions without a processor instruction or a short formula.
#pragma once

#include "exec/handler_lanes.hpp"

namespace cyrt::emu {
namespace {

enum class Rounding { nearest, zero, down, up, away };  // away: to nearest, ties away from zero

struct Format {
    int exponent_bits, mantissa_bits;
    u32 largest;   // finite magnitude
    u32 overflow;  // result of an overflow: infinity, or the largest number if the format has none
    u32 nan;
};
constexpr Format kF16 = {5, 10, 0x7bff, 0x7c00, 0x7fff};
constexpr Format kBF16 = {8, 7, 0x7f7f, 0x7f80, 0x7fff};
constexpr Format kE4M3 = {4, 3, 0x7e, 0x7e, 0x7f};
constexpr Format kE5M2 = {5, 2, 0x7b, 0x7c, 0x7f};
constexpr Format kTF32 = {8, 10, 0x3fbff, 0x3fc00, 0x3ffff};

// Rounds significand * 2^exponent; `finite`: an overflow gives the largest number.
CYRT_NOINLINE u32 encode(bool negative, u64 significand, int exponent, const Format& format,
                         Rounding rounding, bool finite) {
    const u32 sign = u32(negative) << (format.exponent_bits + format.mantissa_bits);
    if (significand == 0) return sign;
    const int zeros = __builtin_clzll(significand);
    significand <<= zeros;
    // The number is now 1.m * 2^(exponent + 63 - zeros), its leading one in bit 63.
    const int bias = (1 << (format.exponent_bits - 1)) - 1;
    const int biased = exponent + 63 - zeros + bias;
    const int lost = 63 - format.mantissa_bits + (biased < 1 ? 1 - biased : 0);
    const u64 kept = lost < 64 ? significand >> lost : 0;
    // Compares the discarded bits with half of the last kept place.
    const u64 rest = lost < 64 ? significand << (64 - lost) : lost == 64 ? significand : 1;
    const u64 half = u64(1) << 63;
    const bool up = rounding == Rounding::nearest ? rest > half || (rest == half && (kept & 1))
                    : rounding == Rounding::away  ? rest >= half
                    : rounding == Rounding::down  ? rest != 0 && negative
                    : rounding == Rounding::up    ? rest != 0 && !negative
                                                  : false;
    // The leading one of `kept` increments the exponent field of a normal number.
    const u64 base = biased < 1 ? 0 : u64(biased - 1) << format.mantissa_bits;
    u64 magnitude = base + kept + up;
    if (magnitude > format.largest) {
        const bool to_largest =
            rounding == Rounding::zero || rounding == (negative ? Rounding::up : Rounding::down);
        magnitude = finite || to_largest ? format.largest : format.overflow;
    }
    return sign | u32(magnitude);
}

CYRT_NOINLINE u32 encode(double value, const Format& format, Rounding rounding, bool finite) {
    const u64 bits = bits_as<u64>(value);
    const bool negative = bits >> 63;
    const int exponent = int(bits >> 52 & 0x7ff);
    const u64 mantissa = bits & 0xfffffffffffffu;
    if (exponent == 0x7ff) {
        if (mantissa != 0) return format.nan;
        const u32 sign = u32(negative) << (format.exponent_bits + format.mantissa_bits);
        return sign | (finite ? format.largest : format.overflow);
    }
    const u64 significand = exponent == 0 ? mantissa : mantissa | u64(1) << 52;
    return encode(negative, significand, (exponent == 0 ? 1 : exponent) - 1075, format, rounding,
                  finite);
}

}  // namespace
}  // namespace cyrt::emu
