#include "exec/operand_forms.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "exec/operand_types.hpp"

namespace cyrt::emu {

namespace {

// `when`: all these words are in the modifiers; "a|b": one of them is, "!a": it is not. The first
// matching row is used.
// `operands`: results = sources, with the letters and marks of operand_forms.hpp.
struct Row {
    const char* opcode;
    const char* when;
    const char* operands;
    const char* modifiers = nullptr;
};

constexpr char kArrivals[] = "arrive arrive_drop noComplete shared shared::cta shared::cluster "
                             "release relaxed cta cluster";
constexpr char kWaits[] =
    "test_wait try_wait parity shared shared::cta acquire relaxed cta cluster";
constexpr char kCopies[] = "async ca cg shared shared::cta shared::cluster global L2::64B L2::128B "
                           "L2::256B L2::cache_hint";
constexpr char kSpaces[] = "global const local param param::entry shared shared::cta "
                           "shared::cluster";
constexpr char kSpacesTo[] = "to global const local param param::entry shared shared::cta "
                             "shared::cluster";

// clang-format off: a table, several rows a line
const Row kRows[] = {
    // arithmetic
    {"add", "", "f = t f"}, {"sub", "", "f = t f"}, {"fma", "", "f = t t f"},
    {"addc", "", "t = t t"}, {"subc", "", "t = t t"},
    {"mul", "wide", "w = t t"}, {"mul", "", "t = t t"}, {"mul24", "", "t = t t"},
    {"mad", "wide", "w = t t w"}, {"mad", "", "t = t t t"}, {"mad24", "", "t = t t t"},
    {"madc", "", "t = t t t"}, {"sad", "", "t = t t t"},
    {"div", "", "t = t t"}, {"rem", "", "t = t t"},
    {"abs", "", "t = t"}, {"neg", "", "t = t"}, {"rcp", "", "t = t"}, {"sqrt", "", "t = t"},
    {"rsqrt", "", "t = t"}, {"sin", "", "t = t"}, {"cos", "", "t = t"}, {"ex2", "", "t = t"},
    {"lg2", "", "t = t"}, {"tanh", "", "t = t"},
    {"min", "f32 abs !xorsign", "t = t t t"}, {"min", "f32 !xorsign", "t = t t t?"},
    {"min", "", "t = t t"},
    {"max", "f32 abs !xorsign", "t = t t t"}, {"max", "f32 !xorsign", "t = t t t?"},
    {"max", "", "t = t t"},
    {"copysign", "", "t = t t"}, {"testp", "", "p = t"},
    {"dp4a", "", "u = u u u"}, {"dp2a", "", "u = u u u"},

    // bits
    {"and", "", "t = t t"}, {"or", "", "t = t t"}, {"xor", "", "t = t t"}, {"not", "", "t = t"},
    {"cnot", "", "t = t"}, {"shl", "", "t = t u"}, {"shr", "", "t = t u"},
    {"shf", "", "u = u u u"}, {"popc", "", "u = t"}, {"clz", "", "u = t"}, {"bfind", "", "u = t"},
    {"brev", "", "t = t"}, {"bfe", "", "t = t u u"}, {"bfi", "", "t = t t u u"},
    {"bmsk", "", "u = u u"}, {"szext", "", "t = t u"}, {"fns", "", "u = u u u"},
    {"prmt", "", "u = u u u"},
    {"lop3", "and|or", "u_|p = u u u i p"}, {"lop3", "", "u = u u u i"},

    // comparisons and moves
    {"setp", "and|or|xor", "p_|p_? = t t p"}, {"setp", "", "p_|p_? = t t"},
    {"set", "and|or|xor", "f = t t p"}, {"set", "", "f = t t"},
    {"selp", "", "t = t t p"}, {"slct", "", "f = f f t"},
    {"cvt", "pack b32", "u = u u u"}, {"cvt", "pack", "u = u u"},
    {"cvt", "f16x2|bf16x2|e4m3x2|e5m2x2 f32", "f = t t"}, {"cvt", "", "f+ = t+%"},
    {"mov", "v2|v4|v8", "v = v", "v2 v4 v8"}, {"mov", "", "m = m", ""},

    // video
    {"vadd", "add|min|max", "u = h h u"}, {"vadd", "", "H = h h u?"},
    {"vsub", "add|min|max", "u = h h u"}, {"vsub", "", "H = h h u?"},
    {"vabsdiff", "add|min|max", "u = h h u"}, {"vabsdiff", "", "H = h h u?"},
    {"vmin", "add|min|max", "u = h h u"}, {"vmin", "", "H = h h u?"},
    {"vmax", "add|min|max", "u = h h u"}, {"vmax", "", "H = h h u?"},
    {"vshl", "add|min|max", "u = h h u"}, {"vshl", "", "H = h h u?"},
    {"vshr", "add|min|max", "u = h h u"}, {"vshr", "", "H = h h u?"},
    {"vset", "add|min|max", "u = h h u"}, {"vset", "", "H = h h u?"},
    {"vmad", "", "u = h h u"},
    {"vadd2", "", "K = k k u"}, {"vsub2", "", "K = k k u"}, {"vavrg2", "", "K = k k u"},
    {"vabsdiff2", "", "K = k k u"}, {"vmin2", "", "K = k k u"}, {"vmax2", "", "K = k k u"},
    {"vset2", "", "K = k k u"},
    {"vadd4", "", "K = k k u"}, {"vsub4", "", "K = k k u"}, {"vavrg4", "", "K = k k u"},
    {"vabsdiff4", "", "K = k k u"}, {"vmin4", "", "K = k k u"}, {"vmax4", "", "K = k k u"},
    {"vset4", "", "K = k k u"},

    // lanes of a warp
    {"shfl", "sync", "u|p? = u u u u"}, {"shfl", "", "u|p? = u u u"},
    {"vote", "sync ballot", "u = p u"}, {"vote", "sync", "p = p u"},
    {"vote", "ballot", "u = p"}, {"vote", "", "p = p"},
    {"match", "any", "u = t u"}, {"match", "all", "u|p? = t u"},
    {"redux", "", "t = t u"}, {"activemask", "", "u ="}, {"elect", "", "u_|p = u"},

    // memory
    {"ld", "L2::cache_hint", "v+ = a q"}, {"ld", "", "v+ = a"}, {"ldu", "", "v+ = a"},
    {"st", "L2::cache_hint", "= a v+ q"}, {"st", "", "= a v+"},
    {"atom", "cas L2::cache_hint", "t_ = a t t q"}, {"atom", "cas", "t_ = a t t"},
    {"atom", "L2::cache_hint", "v_ = a v q"}, {"atom", "", "v_ = a v"},
    {"red", "!cas !exch L2::cache_hint", "= a v q"}, {"red", "!cas !exch", "= a v"},
    {"prefetch", "", "= a", "global local L1 L2 L2::evict_last L2::evict_normal"},
    {"prefetchu", "", "= a", "L1"},
    {"discard", "", "= a i", "global L2"},
    {"applypriority", "", "= a i", "global L2::evict_normal"},
    {"cvta", "", "t = t&", kSpacesTo}, {"isspacep", "", "p = x", kSpaces},
    {"mapa", "shared::cluster", "t = t& u", "shared::cluster"}, {"mapa", "", "t = t u", ""},
    {"getctarank", "shared::cluster", "u = t&", "shared::cluster"}, {"getctarank", "", "u = t", ""},
    {"membar", "", "=", "cta gl sys proxy alias"},
    {"fence", "", "=", "sc acq_rel acquire release cta cluster gpu sys proxy alias async global "
                       "shared shared::cta shared::cluster async::generic mbarrier_init "
                       "sync_restrict::shared::cta sync_restrict::shared::cluster"},
    {"createpolicy", "range", "q = a u u", "range global L2::evict_first L2::evict_last "
                                           "L2::evict_normal L2::evict_unchanged"},
    {"createpolicy", "fractional", "q = n?", "fractional L2::evict_first L2::evict_last "
                                             "L2::evict_normal L2::evict_unchanged"},
    {"createpolicy", "cvt", "q = q", "cvt L2"},
    {"mbarrier", "init", "= a u", "init shared shared::cta"},
    {"mbarrier", "inval", "= a", "inval shared shared::cta"},
    {"mbarrier", "arrive|arrive_drop noComplete", "q_ = a u", kArrivals},
    {"mbarrier", "arrive|arrive_drop", "q_ = a u?", kArrivals},
    {"mbarrier", "test_wait parity", "p = a u", kWaits},
    {"mbarrier", "try_wait parity", "p = a u u?", kWaits},
    {"mbarrier", "test_wait", "p = a q", kWaits}, {"mbarrier", "try_wait", "p = a q u?", kWaits},
    {"mbarrier", "pending_count", "u = q", "pending_count"},
    {"cp", "async commit_group|wait_all", "=", "async commit_group wait_all"},
    {"cp", "async wait_group", "= i", "async wait_group"},
    {"cp", "async mbarrier", "= a", "async mbarrier arrive noinc shared shared::cta"},
    {"cp", "async ca|cg L2::cache_hint", "= a a i z? q", kCopies},
    {"cp", "async ca|cg", "= a a i z?", kCopies},

    // matrices
    {"mma", "", "D = A B C"}, {"wmma", "load", "M = a u?"},
    {"wmma", "store", "= a M u?"}, {"wmma", "", "D = A B C"},
    {"ldmatrix", "", "M = a"}, {"stmatrix", "", "= a M"},
    {"movmatrix", "", "u = u"},

    // control
    {"bra", "", "= l", "uni"}, {"brx", "idx", "= u b", "idx uni"},
    {"ret", "", "=", "uni"}, {"exit", "", "=", ""}, {"trap", "", "=", ""},
    {"brkpt", "", "=", ""}, {"nanosleep", "", "= u", ""},
    {"griddepcontrol", "wait|launch_dependents", "=", "wait launch_dependents"},
    {"pmevent", "", "= i", "mask"},
    {"setmaxnreg", "inc|dec", "= i", "inc dec sync aligned"},
    {"bar", "warp sync", "= u", "warp sync"},
    {"bar", "sync", "= u u?", "sync cta"}, {"bar", "arrive", "= u u", "arrive cta"},
    {"bar", "red popc", "u = u u? p", "red popc cta"},
    {"bar", "red and|or", "p = u u? p", "red and or cta"},
    {"barrier", "cluster arrive", "=", "cluster arrive release relaxed aligned"},
    {"barrier", "cluster wait", "=", "cluster wait acquire aligned"},
    {"barrier", "sync", "= u u?", "sync cta aligned"},
    {"barrier", "arrive", "= u u", "arrive cta aligned"},
    {"barrier", "red popc", "u = u u? p", "red popc cta aligned"},
    {"barrier", "red and|or", "p = u u? p", "red and or cta aligned"},
    {"alloca", "", "t = t i?", ""}, {"stacksave", "", "t =", ""},
    {"stackrestore", "", "= t", ""},
};
// clang-format on

// --- reading the table --------------------------------------------------------------------------

OperandRule rule_from(std::string_view text) {
    OperandRule out;
    out.kind = OperandKind(text.front());
    for (char mark : text.substr(1)) {
        if (mark == '?')
            out.optional = true;
        else if (mark == '+')
            out.may_be_wider = true;
        else if (mark == '_')
            out.sink = true;
        else if (mark == '&')
            out.symbol = true;
        else if (mark == '%')
            out.special = true;
    }
    if (out.kind == OperandKind::move) out.symbol = out.special = true;
    return out;
}

ModifierCondition condition_from(std::string_view text) {
    ModifierCondition out;
    out.negated = text.front() == '!';
    if (out.negated) text.remove_prefix(1);
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find('|', at), text.size());
        out.words.emplace_back(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

OperandForm form_from(const Row& row) {
    OperandForm out;
    out.modifiers = row.modifiers;
    std::istringstream conditions(row.when);
    for (std::string text; conditions >> text;) out.when.push_back(condition_from(text));
    std::istringstream words(row.operands);
    bool behind = false;
    for (std::string word; words >> word;) {
        const size_t bar = word.find('|');
        if (word == "=") {
            behind = true;
        } else if (bar != std::string::npos) {
            out.results = {rule_from(word.substr(0, bar)), rule_from(word.substr(bar + 1))};
        } else {
            (behind ? out.sources : out.results).push_back(rule_from(word));
        }
    }
    return out;
}

bool chooses(const OperandForm& form, const ptx::Instruction& instruction) {
    return std::all_of(form.when.begin(), form.when.end(), [&](const ModifierCondition& condition) {
        const auto is_present = [&](const std::string& word) {
            return has_modifier(instruction, word);
        };
        return condition.negated !=
               std::any_of(condition.words.begin(), condition.words.end(), is_present);
    });
}

ptx::Type twice(ptx::Type type) {
    using ptx::Type;
    switch (type) {
    case Type::u16: return Type::u32;
    case Type::s16: return Type::s32;
    case Type::u32: return Type::u64;
    case Type::s32: return Type::s64;
    default: return type;
    }
}

using Forms = std::unordered_map<std::string_view, std::vector<OperandForm>>;

// Never destroyed: threads may load modules while the process ends.
const Forms& all_forms() {
    static const Forms& forms = *[] {
        auto* out = new Forms;
        for (const Row& row : kRows) (*out)[row.opcode].push_back(form_from(row));
        return out;
    }();
    return forms;
}

}  // namespace

size_t OperandForm::least() const {
    const auto needed = [](const OperandRule& rule) { return !rule.optional; };
    return size_t(std::count_if(results.begin(), results.end(), needed) +
                  std::count_if(sources.begin(), sources.end(), needed));
}

std::optional<OperandRules> OperandForm::rules_for(const ptx::Instruction& instruction) const {
    const size_t count = instruction.operands.size();
    const bool lacks_pair = results.size() == 2 && !results[1].optional && !instruction.paired;
    if (count < least() || (instruction.paired && results.size() < 2) || lacks_pair)
        return std::nullopt;
    OperandRules out;
    for (const OperandRule& rule : results)
        if (out.empty() || instruction.paired) out.push_back(&rule);
    size_t optional = count - least() - (out.size() > 1 && results[1].optional);
    for (const OperandRule& rule : sources) {
        if (rule.optional && optional == 0) continue;
        optional -= rule.optional;
        out.push_back(&rule);
    }
    if (out.size() != count) return std::nullopt;
    return out;
}

ptx::Type OperandRule::type_in(const ptx::Instruction& instruction) const {
    using ptx::Type;
    switch (kind) {
    case OperandKind::first: return first_type(instruction);
    case OperandKind::twice: return twice(last_type(instruction));
    case OperandKind::last:
    case OperandKind::move:
    case OperandKind::vector: return last_type(instruction);
    case OperandKind::quad: return Type::b64;
    case OperandKind::real: return Type::f32;
    case OperandKind::predicate: return Type::pred;
    default: return Type::b32;
    }
}

const OperandForm* form_of(const ptx::Instruction& instruction) {
    const auto found = all_forms().find(instruction.opcode);
    if (found == all_forms().end()) return nullptr;
    for (const OperandForm& form : found->second)
        if (chooses(form, instruction)) return &form;
    return nullptr;
}

}  // namespace cyrt::emu
