#include "ptx/scopes.hpp"

#include <utility>

namespace cyrt::ptx {

void Scopes::open() {
    scopes_.push_back(Scope{current_, {}, {}, {}});
    current_ = int(scopes_.size()) - 1;
}

std::string Scopes::unique(std::string_view name) {
    std::string out(name);
    // No identifier contains an @. With the scope's number the first try nearly always succeeds.
    for (int n = current_; !used_.insert(out).second; ++n)
        out = std::string(name) + "@" + std::to_string(n);
    return out;
}

bool Scopes::add(std::string_view name, Symbol symbol) {
    return scopes_[size_t(current_)].symbols.emplace(name, std::move(symbol)).second;
}

bool Scopes::add_label(std::string_view name, int32_t instruction) {
    return scopes_[size_t(current_)].labels.emplace(name, instruction).second;
}

bool Scopes::add_table(std::string_view name, std::string unique_name) {
    return scopes_[size_t(current_)].tables.emplace(name, std::move(unique_name)).second;
}

const Scopes::Symbol* Scopes::find(std::string_view name) const {
    const std::string key(name);
    for (int scope = current_; scope >= 0; scope = scopes_[size_t(scope)].parent) {
        const auto& symbols = scopes_[size_t(scope)].symbols;
        if (const auto found = symbols.find(key); found != symbols.end()) return &found->second;
    }
    return nullptr;
}

int32_t Scopes::find_label(int scope, const std::string& name) const {
    for (; scope >= 0; scope = scopes_[size_t(scope)].parent) {
        const auto& labels = scopes_[size_t(scope)].labels;
        if (const auto found = labels.find(name); found != labels.end()) return found->second;
    }
    return -1;
}

const std::string* Scopes::find_table(int scope, const std::string& name) const {
    for (; scope >= 0; scope = scopes_[size_t(scope)].parent) {
        const auto& tables = scopes_[size_t(scope)].tables;
        if (const auto found = tables.find(name); found != tables.end()) return &found->second;
    }
    return nullptr;
}

}  // namespace cyrt::ptx
