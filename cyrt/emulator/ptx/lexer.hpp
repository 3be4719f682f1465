// Conversion of PTX text to tokens, one at a time.
#pragma once

#include <string>
#include <string_view>

#include "ptx/ast.hpp"

namespace cyrt::ptx {

struct Token {
    enum class Kind : uint8_t {
        end,
        word,      // add, %r1, $L__BB0_2, _
        dot_word,  // .f32, .L2::128B; the text begins with the dot
        number,    // 12, 0x1fU, 0f3F800000, 1.5e3
        string,    // without its quotes
        symbol,    // punctuation, of one or two characters
    };
    Kind kind = Kind::end;
    std::string_view text;
    int line = 1;
};

// A cursor over the tokens of a text; the text has to outlive it.
class Lexer {
  public:
    explicit Lexer(std::string_view text) : text_(text) {}

    const Token& peek();
    Token next();

    bool at(std::string_view text) { return is(peek(), text); }
    bool at(Token::Kind kind) { return peek().kind == kind; }
    bool accept(std::string_view text);
    void expect(std::string_view text);
    Token expect(Token::Kind kind, const char* wanted);

    // Skips the remaining tokens of a line: .loc, .file and @@dwarf end at the end of their line.
    void skip_line(int line);
    // Skips an opening bracket and all tokens up to its closing bracket.
    void skip_brackets(std::string_view open, std::string_view close);

    // "expected <wanted>, found <the next token>"
    [[noreturn]] void fail_expected(const std::string& wanted);

  private:
    static bool is(const Token& token, std::string_view text) {
        return token.text == text && token.kind != Token::Kind::string;
    }
    void skip_blanks();
    Token scan();
    Token take(Token::Kind kind, size_t length);
    size_t word_length(size_t from) const;

    std::string_view text_;
    size_t at_ = 0;
    int line_ = 1;
    bool has_ahead_ = false;
    Token ahead_;
};

}  // namespace cyrt::ptx
