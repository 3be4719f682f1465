#include "ptx/constants.hpp"

#include <charconv>
#include <cstring>

namespace cyrt::ptx {

namespace {

constexpr int kMaxDepth = 100;  // most brackets and unary operators: no text overflows the stack

Constant from_double(double value) {
    Constant out;
    std::memcpy(&out.bits, &value, sizeof value);
    out.float_width = 8;
    return out;
}

[[noreturn]] void fail_literal(const Token& token) {
    throw Error(token.line, "'" + std::string(token.text.substr(0, 40)) + "' is no number");
}

template <typename T, typename... Options>
T from_digits(const Token& token, std::string_view digits, Options... options) {
    T value{};
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value, options...);
    if (result.ec != std::errc() || result.ptr != end) fail_literal(token);
    return value;
}

Constant parse_literal(const Token& token) {
    std::string_view text = token.text;
    Constant out;
    const char prefix = text.size() > 1 && text[0] == '0' ? char(text[1] | 0x20) : '\0';
    if (prefix == 'f' || prefix == 'd') {
        out.float_width = prefix == 'f' ? 4 : 8;
        text.remove_prefix(2);
        if (text.size() != out.float_width * 2u) fail_literal(token);
        out.bits = from_digits<uint64_t>(token, text, 16);
        return out;
    }
    if (prefix != 'x' && text.find_first_of(".eE") != std::string_view::npos)
        return from_double(from_digits<double>(token, text));

    out.is_unsigned = text.back() == 'U' || text.back() == 'u';
    if (out.is_unsigned) text.remove_suffix(1);
    int base = 10;
    if (prefix == 'x' || prefix == 'b') {
        base = prefix == 'x' ? 16 : 2;
        text.remove_prefix(2);
    } else if (text.size() > 1 && text[0] == '0') {
        base = 8;
        text.remove_prefix(1);
    }
    out.bits = from_digits<uint64_t>(token, text, base);
    out.is_unsigned |= out.bits >> 63;  // too large for .s64
    return out;
}

Constant parse_expression(Lexer& lexer, int min_level, int depth);

Constant parse_unary(Lexer& lexer, int depth) {
    if (depth > kMaxDepth) lexer.fail_expected("a simpler expression");
    if (lexer.accept("+")) return parse_unary(lexer, depth + 1);
    if (lexer.accept("-")) {
        Constant value = parse_unary(lexer, depth + 1);
        if (value.is_float())
            value.bits ^= 1ull << (value.float_width * 8 - 1);
        else
            value.bits = 0 - value.bits;
        return value;
    }
    if (lexer.accept("~") || lexer.at("!")) {
        const bool logical = lexer.accept("!");
        Constant value = parse_unary(lexer, depth + 1);
        if (value.is_float()) lexer.fail_expected("an integer before this");
        value.bits = logical ? value.bits == 0 : ~value.bits;
        return value;
    }
    if (lexer.accept("(")) {
        const bool to_unsigned = lexer.at(".u64");
        if (to_unsigned || lexer.at(".s64")) {  // a cast
            lexer.next();
            lexer.expect(")");
            Constant value = parse_unary(lexer, depth + 1);
            if (value.is_float()) lexer.fail_expected("an integer before this");
            value.is_unsigned = to_unsigned;
            return value;
        }
        Constant value = parse_expression(lexer, 0, depth + 1);
        lexer.expect(")");
        return value;
    }
    if (lexer.accept("WARP_SZ")) return Constant{32, false, 0};
    return parse_literal(lexer.expect(Token::Kind::number, "a constant"));
}

struct Operator {
    std::string_view text;
    int level;  // higher precedence binds tighter
};
constexpr Operator kOperators[] = {
    {"||", 1}, {"&&", 2}, {"|", 3}, {"^", 4},  {"&", 5},  {"==", 6},
    {"!=", 6}, {"<", 7},  {">", 7}, {"<=", 7}, {">=", 7}, {"<<", 8},
    {">>", 8}, {"+", 9},  {"-", 9}, {"*", 10}, {"/", 10}, {"%", 10},
};

const Operator* operator_at(Lexer& lexer) {
    if (!lexer.at(Token::Kind::symbol)) return nullptr;
    for (const Operator& candidate : kOperators)
        if (candidate.text == lexer.peek().text) return &candidate;
    return nullptr;
}

uint64_t divide(uint64_t a, uint64_t b, bool is_unsigned, bool remainder) {
    if (is_unsigned) return remainder ? a % b : a / b;
    if (int64_t(b) == -1) return remainder ? 0 : 0 - a;  // the one quotient that overflows
    return uint64_t(remainder ? int64_t(a) % int64_t(b) : int64_t(a) / int64_t(b));
}

Constant apply(const Token& token, const Constant& a, const Constant& b) {
    if (a.is_float() || b.is_float())
        throw Error(token.line, "an operator between floating-point constants");
    const std::string_view op = token.text;
    Constant out;
    out.is_unsigned = a.is_unsigned || b.is_unsigned;
    const bool less = out.is_unsigned ? a.bits < b.bits : int64_t(a.bits) < int64_t(b.bits);
    const bool equal = a.bits == b.bits;
    const unsigned shift = unsigned(b.bits & 63);
    if ((op == "/" || op == "%") && b.bits == 0) throw Error(token.line, "a division by zero");
    if (op == "+")
        out.bits = a.bits + b.bits;
    else if (op == "-")
        out.bits = a.bits - b.bits;
    else if (op == "*")
        out.bits = a.bits * b.bits;
    else if (op == "/")
        out.bits = divide(a.bits, b.bits, out.is_unsigned, false);
    else if (op == "%")
        out.bits = divide(a.bits, b.bits, out.is_unsigned, true);
    else if (op == "<<")
        out.bits = a.bits << shift;
    else if (op == ">>")
        out.bits = a.is_unsigned ? a.bits >> shift : uint64_t(int64_t(a.bits) >> shift);
    else if (op == "&")
        out.bits = a.bits & b.bits;
    else if (op == "|")
        out.bits = a.bits | b.bits;
    else if (op == "^")
        out.bits = a.bits ^ b.bits;
    else if (op == "&&")
        out.bits = a.bits && b.bits;
    else if (op == "||")
        out.bits = a.bits || b.bits;
    else if (op == "==")
        out.bits = equal;
    else if (op == "!=")
        out.bits = !equal;
    else if (op == "<")
        out.bits = less;
    else if (op == ">=")
        out.bits = !less;
    else if (op == "<=")
        out.bits = less || equal;
    else
        out.bits = !less && !equal;
    return out;
}

Constant parse_expression(Lexer& lexer, int min_level, int depth) {
    if (depth > kMaxDepth) lexer.fail_expected("a simpler expression");
    Constant left = parse_unary(lexer, depth + 1);
    while (const Operator* found = operator_at(lexer)) {
        if (found->level <= min_level) break;
        const Token token = lexer.next();
        left = apply(token, left, parse_expression(lexer, found->level, depth + 1));
    }
    if (min_level == 0 && lexer.accept("?")) {
        const Constant yes = parse_expression(lexer, 0, depth + 1);
        lexer.expect(":");
        const Constant no = parse_expression(lexer, 0, depth + 1);
        return left.bits ? yes : no;
    }
    return left;
}

}  // namespace

double Constant::as_double() const {
    if (float_width == 8) {
        double value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (float_width == 4) {
        float value;
        const uint32_t low = uint32_t(bits);
        std::memcpy(&value, &low, sizeof value);
        return value;
    }
    return is_unsigned ? double(bits) : double(int64_t(bits));
}

bool at_constant(Lexer& lexer) {
    return lexer.at(Token::Kind::number) || lexer.at("-") || lexer.at("+") || lexer.at("~") ||
           lexer.at("!") || lexer.at("(") || lexer.at("WARP_SZ");
}

Constant parse_constant(Lexer& lexer) { return parse_expression(lexer, 0, 0); }

Constant parse_constant_term(Lexer& lexer) { return parse_unary(lexer, 0); }

uint64_t parse_count(Lexer& lexer, uint64_t limit) {
    const int line = lexer.peek().line;
    const Constant value = parse_constant(lexer);
    if (value.is_float() || value.bits > limit)
        throw Error(line, "a number of at most " + std::to_string(limit) + " expected");
    return value.bits;
}

}  // namespace cyrt::ptx
