// Single values of f16 and bf16, to and from float: rounded to nearest, ties to even.
#pragma once

#include <cstdint>
#include <cstring>

namespace cyrt::emu {

inline uint32_t bits_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float float_of(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

struct Half {
    uint16_t bits;

    float to_float() const {
        const uint32_t size = bits & 0x7fffu;
        const uint32_t sign = uint32_t(bits & 0x8000u) << 16;
        if (size >= 0x7c00) return float_of(sign | 0x7f800000u | size << 13);
        return float_of(sign | bits_of(float_of(size << 13) * 0x1p112f));  // subnormals too
    }
    static Half from(float value) {
        const uint32_t sign = bits_of(value) >> 16 & 0x8000u;
        const uint32_t size = bits_of(value) & 0x7fffffffu;
        if (size > 0x7f800000u) return {0x7fff};
        if (size >= 0x477ff000u) return {uint16_t(sign | 0x7c00u)};  // 65520 rounds to infinity
        if (size < 0x38800000u)  // below 2^-14; the sum's last bit weighs 2^-24
            return {uint16_t(sign | (bits_of(float_of(size) + 0.5f) - bits_of(0.5f)))};
        return {uint16_t(sign | (size - (112u << 23) + 0xfffu + (size >> 13 & 1)) >> 13)};
    }
};

struct Bfloat {
    uint16_t bits;

    float to_float() const { return float_of(uint32_t(bits) << 16); }
    static Bfloat from(float value) {
        const uint32_t wide = bits_of(value);
        if ((wide & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
        return {uint16_t((wide + 0x7fffu + (wide >> 16 & 1)) >> 16)};
    }
};

}  // namespace cyrt::emu
