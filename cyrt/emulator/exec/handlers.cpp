#include "exec/handlers.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/api.hpp"
#include "exec/handlers_table.hpp"
#include "exec/processor.hpp"

namespace cyrt::emu {
namespace {

bool all_digits(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

// Types, whose order distinguishes results from sources: u8 s16 b32 f64 f16x2 bf16x2 tf32 e4m3x2
// pred.
bool is_type(std::string_view word) {
    if (word == "pred" || word == "tf32") return true;
    if (word.size() > 2 && word[word.size() - 2] == 'x') word.remove_suffix(2);
    if (word == "e4m3" || word == "e5m2") return true;
    if (word.substr(0, 2) == "bf") word.remove_prefix(1);
    return !word.empty() && std::string_view("usbf").find(word[0]) != std::string_view::npos &&
           all_digits(word.substr(1));
}

// One spelling for all orders of the modifiers: the opcode, the modifiers sorted, the types.
std::string canonical(std::string_view name) {
    std::vector<std::string_view> modifiers, types;
    const size_t opcode = std::min(name.find('.'), name.size());
    for (size_t at = opcode; at < name.size();) {
        const size_t end = std::min(name.find('.', at + 1), name.size());
        const std::string_view word = name.substr(at + 1, end - at - 1);
        if (is_type(word))
            types.push_back(word);
        else if (word != "aligned")
            modifiers.push_back(word);
        at = end;
    }
    std::sort(modifiers.begin(), modifiers.end());
    std::string out(name.substr(0, opcode));
    for (const auto& words : {modifiers, types})
        for (std::string_view word : words) (out += '.') += word;
    return out;
}

using HandlerMap = std::unordered_map<std::string, Handler>;

HandlerMap build_map() {
    HandlerMap map;
    const auto add = [&map](HandlerTable table) {
        for (size_t i = 0; i < table.count; ++i)
            map.emplace(canonical(table.entries[i].name), table.entries[i].run);
    };
#ifdef CYRT_EMU_HAS_V3
    if (has_v3()) {
#define CYRT_EMU_ADD(family) add(family##_handlers_v3());
        CYRT_EMU_FAMILIES(CYRT_EMU_ADD)
#undef CYRT_EMU_ADD
        return map;
    }
#endif
#ifdef CYRT_EMU_HAS_BASE
#define CYRT_EMU_ADD(family) add(family##_handlers_base());
    CYRT_EMU_FAMILIES(CYRT_EMU_ADD)
#undef CYRT_EMU_ADD
#endif
    return map;
}

// 1 to 4: a byte, 5 and 6: a half, bit 12: an element in each 3 bits, the last digit's lowest.
uint32_t source_selector(std::string_view text) {
    if (text.size() < 2) return 0;
    if (text.size() == 2) return uint32_t(text[1] - '0') + (text[0] == 'b' ? 1 : 5);
    uint32_t out = 0;
    for (char digit : text.substr(1)) out = out << 3 | uint32_t(digit - '0');
    return out | 1 << 12;
}
// Bit n: element n; bit 4: they are halves, bit 5: bytes.
uint32_t result_selector(std::string_view text) {
    if (text.size() < 2) return 0;
    uint32_t out = text[0] == 'b' ? 32 : 16;
    for (char digit : text.substr(1)) out |= 1u << (digit - '0');
    return out;
}

}  // namespace

Handler find_handler(std::string_view name) {
    // Never destroyed: threads may load modules while the process ends.
    static const HandlerMap& map = *new HandlerMap(build_map());
    const auto found = map.find(canonical(name));
    return found == map.end() ? nullptr : found->second;
}

uint32_t pack_video_selectors(std::string_view d, std::string_view a, std::string_view b) {
    return result_selector(d) | source_selector(a) << 6 | source_selector(b) << 19;
}

}  // namespace cyrt::emu

// 1 if the handlers that were compiled run on this processor, else 0.
CYRT_API int cyrt_emu_runs_here() {
#ifdef CYRT_EMU_HAS_BASE
    return 1;
#else
    return cyrt::emu::has_v3();
#endif
}
