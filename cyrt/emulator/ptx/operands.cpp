#include "ptx/operands.hpp"

#include <algorithm>
#include <utility>

#include "ptx/constants.hpp"

namespace cyrt::ptx {

namespace {

constexpr int kMaxBrackets = 16;  // most nested brackets of an operand

// Names of PTX ISA 10; the %envreg, %pm and %reserved_smem_offset families by their prefix.
constexpr std::string_view kSpecials[] = {
    "%tid",
    "%ntid",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%ctaid",
    "%nctaid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%clusterid",
    "%nclusterid",
    "%cluster_ctaid",
    "%cluster_nctaid",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%is_explicit_cluster",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%clock",
    "%clock_hi",
    "%clock64",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%total_smem_size",
    "%aggr_smem_size",
    "%dynamic_smem_size",
    "%current_graph_exec",
};

bool is_special(std::string_view name) {
    for (std::string_view family : {"%envreg", "%pm", "%reserved_smem_offset_"})
        if (name.substr(0, family.size()) == family) return true;
    return std::find(std::begin(kSpecials), std::end(kSpecials), name) != std::end(kSpecials);
}

int component(std::string_view word) {
    if (word.size() != 2) return -1;
    const size_t at = std::string_view("xyzwrgba").find(word[1]);
    return at == std::string_view::npos ? -1 : int(at % 4);
}

}  // namespace

std::string OperandParser::unique_name(const std::string& name) {
    std::string out = scopes_.unique(name);
    // A module's variable of that name remains accessible by it.
    while (builder_.knows(out)) out = scopes_.unique(name);
    return out;
}

Operand OperandParser::parse(int depth) {
    if (depth > kMaxBrackets) lexer_.fail_expected("a simpler operand");
    if (lexer_.at("{")) return list("{", "}", depth);
    if (lexer_.at("[")) return address(depth);
    if (lexer_.at(Token::Kind::word) && !lexer_.at("WARP_SZ")) return named();
    if (lexer_.at("!")) {
        const int line = lexer_.next().line;
        if (at_constant(lexer_)) {
            Operand out = constant();
            out.bits = out.bits == 0;
            return out;
        }
        Operand out = named();
        if (out.kind != Operand::Kind::reg) throw Error(line, "'!' before what is no register");
        out.negated = true;
        return out;
    }
    if (at_constant(lexer_)) return constant();
    lexer_.fail_expected("an operand");
}

Operand OperandParser::list(std::string_view open, std::string_view close, int depth) {
    Operand out;
    out.kind = Operand::Kind::vector;
    lexer_.expect(open);
    while (!lexer_.accept(close)) {
        out.elements.push_back(parse(depth + 1));
        if (!lexer_.at(close)) lexer_.expect(",");
    }
    return out;
}

Operand OperandParser::address(int depth) {
    Operand out;
    out.kind = Operand::Kind::address;
    lexer_.expect("[");
    if (lexer_.at(Token::Kind::word) && !lexer_.at("WARP_SZ")) {
        const int line = lexer_.peek().line;
        Operand base = named();
        if (base.kind != Operand::Kind::reg && base.kind != Operand::Kind::symbol &&
            base.kind != Operand::Kind::address)
            throw Error(line, "an address of neither a register nor a variable");
        out.index = base.index;
        out.name = std::move(base.name);
        out.value = int64_t(uint64_t(base.value) + uint64_t(offset()));
    } else {
        out.value = int64_t(parse_constant(lexer_).bits);
    }
    while (lexer_.accept(",")) out.elements.push_back(parse(depth + 1));
    lexer_.expect("]");
    lexer_.accept(".unified");
    return out;
}

Operand OperandParser::constant() {
    const Constant value = parse_constant(lexer_);
    Operand out;
    out.kind = Operand::Kind::imm;
    out.bits = value.bits;
    out.is_float = value.is_float();
    out.float_width = value.float_width;
    return out;
}

int64_t OperandParser::offset() {
    uint64_t out = 0;
    while (lexer_.at("+") || lexer_.at("-")) {
        const bool minus = lexer_.next().text == "-";
        const uint64_t term = parse_constant_term(lexer_).bits;
        out += minus ? 0 - term : term;
    }
    return int64_t(out);
}

std::string OperandParser::selector() {
    const std::string_view text = lexer_.peek().text.substr(1);
    if ((text[0] != 'b' && text[0] != 'h') || text.size() == 1 ||
        text.find_first_not_of("01234567", 1) != std::string_view::npos)
        lexer_.fail_expected("the bytes or the half of a register");
    lexer_.next();
    return std::string(text);
}

Operand OperandParser::vector_register(const Scopes::Symbol& symbol, const Token& name) {
    Operand out;
    out.kind = Operand::Kind::reg;
    if (lexer_.at(Token::Kind::dot_word)) {
        const int lane = component(lexer_.next().text);
        if (lane < 0 || uint32_t(lane) >= symbol.lanes)
            throw Error(name.line, "no such component of " + std::string(name.text));
        out.index = symbol.index + lane;
        return out;
    }
    Operand all;
    all.kind = Operand::Kind::vector;
    for (uint32_t lane = 0; lane < symbol.lanes; ++lane) {
        out.index = symbol.index + int32_t(lane);
        all.elements.push_back(out);
    }
    return all;
}

Operand OperandParser::named() {
    const Token token = lexer_.expect(Token::Kind::word, "an operand");
    Operand out;
    if (token.text == "_") return out;
    const Scopes::Symbol* symbol = scopes_.find(token.text);
    if (symbol && symbol->is_register) {
        if (symbol->lanes > 1) return vector_register(*symbol, token);
        out.kind = Operand::Kind::reg;
        out.index = symbol->index;
        if (lexer_.at(Token::Kind::dot_word)) out.name = selector();
        if (lexer_.at("+")) out.value = offset();
        return out;
    }
    if (!symbol && token.text[0] == '%') {
        if (!is_special(token.text))
            throw Error(token.line, "register " + std::string(token.text) + " is not declared");
        out.kind = Operand::Kind::special;
        out.name = token.text;
        if (lexer_.at(Token::Kind::dot_word)) out.name += lexer_.next().text;
        return out;
    }
    out.kind = Operand::Kind::symbol;
    out.name = symbol ? symbol->name : std::string(token.text);
    if (!symbol && !builder_.knows(out.name))
        throw Error(token.line, "nothing is declared under the name " + out.name);
    out.value = offset();
    if (lexer_.accept("[")) {  // x[3]
        const auto global = builder_.variables.find(out.name);
        const uint32_t size = symbol ? symbol->element_size
                              : global != builder_.variables.end()
                                  ? size_of(builder_.module.variables[global->second].type)
                                  : 0;
        const uint64_t index = parse_count(lexer_, 1ull << 40);
        out.value = int64_t(uint64_t(out.value) + index * size);
        lexer_.expect("]");
    }
    return out;
}

}  // namespace cyrt::ptx
