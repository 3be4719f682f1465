#include "ptx/lexer.hpp"

#include <algorithm>

namespace cyrt::ptx {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f'; }

constexpr std::string_view kPairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
constexpr std::string_view kSingles = "{}[]()<>,;:=+-*/%!~&|^?@#";

// A token as text for an error: binary bytes are not printed.
std::string shown(std::string_view text) {
    std::string out;
    for (char c : text.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
    return out;
}

}  // namespace

const Token& Lexer::peek() {
    if (!has_ahead_) {
        ahead_ = scan();
        has_ahead_ = true;
    }
    return ahead_;
}

Token Lexer::next() {
    peek();
    has_ahead_ = ahead_.kind == Token::Kind::end;
    return ahead_;
}

bool Lexer::accept(std::string_view text) {
    if (!at(text)) return false;
    next();
    return true;
}

void Lexer::expect(std::string_view text) {
    if (!accept(text)) fail_expected("'" + std::string(text) + "'");
}

Token Lexer::expect(Token::Kind kind, const char* wanted) {
    if (!at(kind)) fail_expected(wanted);
    return next();
}

void Lexer::skip_line(int line) {
    while (!at(Token::Kind::end) && peek().line == line) next();
}

void Lexer::skip_brackets(std::string_view open, std::string_view close) {
    expect(open);
    for (int depth = 1; depth > 0; next()) {
        if (at(Token::Kind::end)) fail_expected("'" + std::string(close) + "'");
        if (at(open)) ++depth;
        if (at(close)) --depth;
    }
}

void Lexer::fail_expected(const std::string& wanted) {
    const Token& token = peek();
    const std::string found =
        token.kind == Token::Kind::end ? "the end of the text" : "'" + shown(token.text) + "'";
    throw Error(token.line, "expected " + wanted + ", found " + found);
}

void Lexer::skip_blanks() {
    while (at_ < text_.size()) {
        const char c = text_[at_];
        if (c == '\n') {
            ++line_;
            ++at_;
        } else if (is_blank(c)) {
            ++at_;
        } else if (text_.compare(at_, 2, "//") == 0) {
            at_ = std::min(text_.find('\n', at_), text_.size());
        } else if (text_.compare(at_, 2, "/*") == 0) {
            const size_t close = text_.find("*/", at_ + 2);
            if (close == std::string_view::npos) throw Error(line_, "a comment without an end");
            line_ += int(std::count(text_.begin() + at_, text_.begin() + close, '\n'));
            at_ = close + 2;
        } else if (c == '\0' && text_.find_first_not_of('\0', at_) == std::string_view::npos) {
            at_ = text_.size();  // callers include the terminator of a C string in the size
        } else {
            return;
        }
    }
}

size_t Lexer::word_length(size_t from) const {
    size_t end = from;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return end - from;
}

Token Lexer::take(Token::Kind kind, size_t length) {
    Token token{kind, text_.substr(at_, length), line_};
    at_ += length;
    return token;
}

Token Lexer::scan() {
    skip_blanks();
    if (at_ >= text_.size()) return {Token::Kind::end, {}, line_};
    const char c = text_[at_];

    if (is_letter(c) || c == '_' || c == '$') return take(Token::Kind::word, word_length(at_));
    if (c == '%')
        if (size_t length = word_length(at_ + 1)) return take(Token::Kind::word, 1 + length);
    if (c == '.') {
        size_t length = 1 + word_length(at_ + 1);
        if (length == 1) throw Error(line_, "a dot with no word after it");
        while (text_.compare(at_ + length, 2, "::") == 0) {
            const size_t more = word_length(at_ + length + 2);
            if (more == 0) break;
            length += 2 + more;
        }
        return take(Token::Kind::dot_word, length);
    }
    if (is_digit(c)) {
        size_t length = word_length(at_);
        const std::string_view word = text_.substr(at_, length);
        const bool all_digits = word.find_first_not_of("0123456789") == std::string_view::npos;
        if (all_digits && at_ + length < text_.size() && text_[at_ + length] == '.')
            length += 1 + word_length(at_ + length + 1);
        // The sign of a decimal exponent: 1.5e-3.
        const std::string_view all = text_.substr(at_, length);
        const bool prefixed = all.size() > 1 && all[0] == '0' && is_letter(all[1]);
        const char last = all.back();
        if (!prefixed && (last == 'e' || last == 'E') && at_ + length < text_.size() &&
            (text_[at_ + length] == '-' || text_[at_ + length] == '+'))
            length += 1 + word_length(at_ + length + 1);
        return take(Token::Kind::number, length);
    }
    if (c == '"') {
        const size_t close = text_.find_first_of("\"\n", at_ + 1);
        if (close == std::string_view::npos || text_[close] != '"')
            throw Error(line_, "a string without an end");
        Token token{Token::Kind::string, text_.substr(at_ + 1, close - at_ - 1), line_};
        at_ = close + 1;
        return token;
    }
    for (std::string_view pair : kPairs)
        if (text_.compare(at_, 2, pair) == 0) return take(Token::Kind::symbol, 2);
    if (kSingles.find(c) != std::string_view::npos) return take(Token::Kind::symbol, 1);
    throw Error(line_, "a character that PTX does not use: code " +
                           std::to_string(static_cast<unsigned char>(c)));
}

}  // namespace cyrt::ptx
