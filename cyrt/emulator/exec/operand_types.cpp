#include "exec/operand_types.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

namespace cyrt::emu {

using ptx::Type;

namespace {

// Formats that no register type has, and the register type that holds them.
Type register_type(std::string_view text) {
    const Type type = ptx::type_from(text);
    if (type != Type::none) return type;
    if (text == "tf32") return Type::b32;
    if (text == "f32x2") return Type::b64;
    if (text == "u16x2" || text == "s16x2") return Type::b32;
    for (std::string_view format : {"e4m3", "e5m2", "e2m1", "e3m2", "e2m3", "ue8m0"}) {
        if (text.substr(0, format.size()) != format) continue;
        if (text.substr(format.size()) == "x2") return Type::b16;
        if (text.substr(format.size()) == "x4") return Type::b32;
    }
    return Type::none;
}

std::vector<Type> types_of(const ptx::Instruction& instruction) {
    std::vector<Type> out;
    for (const std::string& modifier : instruction.modifiers)
        if (const Type type = register_type(modifier); type != Type::none) out.push_back(type);
    return out;
}

uint32_t half_bits(double value) {
    const int sign = std::signbit(value) ? 0x8000 : 0;
    const double size = std::fabs(value);
    if (std::isnan(value)) return 0x7fff;
    if (size >= 65520) return uint32_t(sign | 0x7c00);
    if (size < 0x1p-14) return uint32_t(sign | int(std::nearbyint(size * 0x1p24)));
    int exponent;
    const double fraction = std::frexp(size, &exponent);  // 0.5 <= fraction < 1
    return uint32_t(sign + ((exponent + 13) << 10) + int(std::nearbyint(fraction * 2048)));
}

uint32_t float_bits(float value) {
    uint32_t out;
    std::memcpy(&out, &value, sizeof out);
    return out;
}

uint32_t bfloat_bits(double value) {
    const uint32_t bits = float_bits(float(value));
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

double literal_value(const ptx::Operand& operand) {
    if (operand.is_float && operand.float_width == 4) {
        const uint32_t bits = uint32_t(operand.bits);
        float value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (!operand.is_float) return double(int64_t(operand.bits));
    double value;
    std::memcpy(&value, &operand.bits, sizeof value);
    return value;
}

}  // namespace

Type last_type(const ptx::Instruction& instruction) {
    const std::vector<Type> types = types_of(instruction);
    return types.empty() ? Type::none : types.back();
}

Type first_type(const ptx::Instruction& instruction) {
    const std::vector<Type> types = types_of(instruction);
    return types.empty() ? Type::none : types.front();
}

bool is_type_name(std::string_view modifier) { return register_type(modifier) != Type::none; }

size_t count_types(const ptx::Instruction& instruction) { return types_of(instruction).size(); }

bool has_modifier(const ptx::Instruction& instruction, std::string_view modifier) {
    const auto& all = instruction.modifiers;
    return std::find(all.begin(), all.end(), modifier) != all.end();
}

std::string full_name(const ptx::Instruction& instruction) {
    std::string out = instruction.opcode;
    for (const std::string& modifier : instruction.modifiers) out.append(".").append(modifier);
    return out;
}

uint64_t immediate_bits(const ptx::Operand& operand, Type type) {
    switch (type) {
    case Type::pred: return operand.bits ? 0xffffffffu : 0;
    case Type::f16: return operand.is_float ? half_bits(literal_value(operand)) : operand.bits;
    case Type::bf16: return operand.is_float ? bfloat_bits(literal_value(operand)) : operand.bits;
    case Type::f32:
        if (operand.is_float && operand.float_width == 4) return uint32_t(operand.bits);
        return float_bits(float(literal_value(operand)));
    case Type::f64: {
        if (operand.is_float && operand.float_width == 8) return operand.bits;
        const double value = literal_value(operand);
        uint64_t out;
        std::memcpy(&out, &value, sizeof out);
        return out;
    }
    default: {
        const uint32_t size = ptx::size_of(type);
        return size >= 8 ? operand.bits : operand.bits & ((1ull << size * 8) - 1);
    }
    }
}

}  // namespace cyrt::emu
