#include "exec/memory_forms.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace cyrt::emu {

namespace {

bool is_any(std::string_view text, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), text) != names.end();
}

bool starts_with(std::string_view text, std::string_view beginning) {
    return text.substr(0, beginning.size()) == beginning;
}

// Caching, scope and flushing have no effect here: there is one cache and one order of accesses,
// and the narrow formats always behave like `noftz`.
bool changes_nothing(std::string_view text) {
    return is_any(text, {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak", "cta", "cluster",
                         "gpu", "sys", "noftz"}) ||
           starts_with(text, "L1::") || starts_with(text, "L2::");
}

}  // namespace

bool space_from(std::string_view text, ptx::Space& out) {
    if (text == "global")
        out = ptx::Space::global;
    else if (text == "const")
        out = ptx::Space::constant;
    else if (is_any(text, {"shared", "shared::cta", "shared::cluster"}))
        out = ptx::Space::shared;
    else if (text == "local")
        out = ptx::Space::local;
    else if (is_any(text, {"param", "param::entry", "param::func"}))
        out = ptx::Space::param;
    else
        return false;
    return true;
}

bool read_memory_form(const ptx::Instruction& source, MemoryForm& out) {
    for (const std::string& modifier : source.modifiers) {
        const std::string_view text = modifier;
        if (ptx::Space space; space_from(text, space)) {
            if (out.space != ptx::Space::generic) return false;
            out.space = space;
            out.in_cluster = text == "shared::cluster";
        } else if (const ptx::Type type = ptx::type_from(text); type != ptx::Type::none) {
            if (out.type != ptx::Type::none) return false;
            out.type = type;
        } else if (is_any(text, {"v2", "v4", "v8"})) {
            if (out.count != 1) return false;
            out.count = text[1] - '0';
        } else if (is_any(text, {"acquire", "release", "acq_rel", "sc"})) {
            out.acquire = text != "release";
            out.release = text != "acquire";
            out.strong = true;
        } else if (is_any(text,
                          {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"})) {
            if (!out.operation.empty()) return false;
            out.operation = text;
        } else if (is_any(text, {"volatile", "relaxed", "mmio"})) {
            out.strong = true;
        } else if (!changes_nothing(text)) {
            return false;
        }
    }
    return true;
}

AddressKind address_kind(ptx::Space space) {
    switch (space) {
    case ptx::Space::global:
    case ptx::Space::constant: return AddressKind::device;
    case ptx::Space::shared:
    case ptx::Space::local:
    case ptx::Space::param: return AddressKind::window;
    default: return AddressKind::generic;
    }
}

bool apply_memory_form(const MemoryForm& form, MemoryOp& op) {
    const uint32_t size = ptx::size_of(form.type);
    if (size == 0 || size * uint32_t(form.count) > 32) return false;
    op.space = form.space;
    op.in_cluster = form.in_cluster;
    op.count = uint8_t(form.count);
    op.size = uint8_t(size);
    op.acquire = form.acquire;
    op.release = form.release;
    op.order = form.strong || !form.operation.empty() ? MemoryOrder::strong : MemoryOrder::plain;
    op.cell = std::max(op.cell, uint8_t(size <= 4 ? 4 : size));
    return true;
}

}  // namespace cyrt::emu
