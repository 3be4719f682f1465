#include "ptx/ast.hpp"

#include <array>

namespace cyrt::ptx {

namespace {

struct TypeInfo {
    std::string_view name;
    Type type;
    uint32_t size;
};

constexpr std::array<TypeInfo, 20> kTypes = {{
    {"pred", Type::pred, 0},   {"b8", Type::b8, 1},     {"b16", Type::b16, 2},
    {"b32", Type::b32, 4},     {"b64", Type::b64, 8},   {"b128", Type::b128, 16},
    {"u8", Type::u8, 1},       {"u16", Type::u16, 2},   {"u32", Type::u32, 4},
    {"u64", Type::u64, 8},     {"s8", Type::s8, 1},     {"s16", Type::s16, 2},
    {"s32", Type::s32, 4},     {"s64", Type::s64, 8},   {"f16", Type::f16, 2},
    {"f16x2", Type::f16x2, 4}, {"bf16", Type::bf16, 2}, {"bf16x2", Type::bf16x2, 4},
    {"f32", Type::f32, 4},     {"f64", Type::f64, 8},
}};

}  // namespace

uint32_t size_of(Type type) {
    for (const TypeInfo& info : kTypes)
        if (info.type == type) return info.size;
    return 0;
}

bool is_signed(Type type) {
    return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64;
}

Type type_from(std::string_view text) {
    for (const TypeInfo& info : kTypes)
        if (info.name == text) return info.type;
    return Type::none;
}

std::string_view name_of(Type type) {
    for (const TypeInfo& info : kTypes)
        if (info.type == type) return info.name;
    return {};
}

Error::Error(int at_line, const std::string& what)
    : std::runtime_error("line " + std::to_string(at_line) + ": " + what), line(at_line) {}

}  // namespace cyrt::ptx
