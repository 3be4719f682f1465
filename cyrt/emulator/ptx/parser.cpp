#include "ptx/parser.hpp"

#include <utility>

#include "ptx/constants.hpp"
#include "ptx/functions.hpp"
#include "ptx/lexer.hpp"
#include "ptx/variables.hpp"

namespace cyrt::ptx {

namespace {

class ModuleParser {
  public:
    explicit ModuleParser(std::string_view text) : lexer_(text) {}

    Module parse() {
        version();
        while (!lexer_.at(Token::Kind::end)) statement();
        if (builder_.module.target.empty()) lexer_.fail_expected("a .target directive");
        return std::move(builder_.module);
    }

  private:
    struct Linkage {
        bool is_extern = false;
        bool is_weak = false;  // .common is merged in the same way
    };

    void version() {
        lexer_.expect(".version");
        const Token number = lexer_.expect(Token::Kind::number, "a version");
        const size_t dot = number.text.find('.');
        int* parts[] = {&builder_.module.version_major, &builder_.module.version_minor};
        for (size_t i = 0; i < number.text.size(); ++i) {
            const char c = number.text[i];
            if (i == dot) continue;
            int& part = *parts[i > dot];
            if (c < '0' || c > '9' || part > 99) throw Error(number.line, "no version of PTX");
            part = part * 10 + (c - '0');
        }
    }

    void statement() {
        const Token token = lexer_.peek();
        if (lexer_.accept("@")) {
            lexer_.expect("@");
            lexer_.skip_line(token.line);  // @@DWARF
            return;
        }
        if (lexer_.accept(";")) return;
        if (token.kind != Token::Kind::dot_word) lexer_.fail_expected("a directive");
        const std::string_view name = token.text;
        if (name == ".visible" || name == ".weak" || name == ".extern" || name == ".common" ||
            name == ".entry" || name == ".func" || at_declaration(lexer_))
            return definition();
        lexer_.next();
        if (name == ".target")
            target();
        else if (name == ".address_size")
            address_size();
        else if (name == ".file")
            file(token.line);
        else if (name == ".loc")
            lexer_.skip_line(token.line);
        else if (name == ".section")
            section();
        else if (name == ".pragma")
            pragma();
        else if (name == ".alias")
            alias();
        else
            throw Error(token.line, "unknown directive: " + std::string(name));
    }

    void target() {
        const Token name = lexer_.expect(Token::Kind::word, "a target");
        builder_.module.target = name.text;
        builder_.module.target_number = target_number(name);
        while (lexer_.accept(",")) lexer_.expect(Token::Kind::word, "a target");
    }

    // 90 of "sm_90a".
    static int target_number(const Token& name) {
        constexpr std::string_view kPrefix = "sm_";
        int out = 0;
        size_t at = kPrefix.size();
        if (name.text.substr(0, at) == kPrefix)
            while (at < name.text.size() && name.text[at] >= '0' && name.text[at] <= '9' &&
                   out < 1000)
                out = out * 10 + (name.text[at++] - '0');
        if (out < 10 || out > 999 || name.text.size() - at > 1)
            throw Error(name.line, "unknown target: " + std::string(name.text));
        return out;
    }

    void address_size() {
        const Token size = lexer_.expect(Token::Kind::number, "32 or 64");
        if (size.text != "64") throw Error(size.line, "only 64-bit addresses are supported");
    }

    // .file number "name" ...
    void file(int line) {
        if (lexer_.at(Token::Kind::number) && lexer_.peek().line == line) {
            const uint32_t number = uint32_t(parse_count(lexer_, UINT32_MAX));
            if (lexer_.at(Token::Kind::string) && lexer_.peek().line == line)
                builder_.module.files[number] = std::string(lexer_.next().text);
        }
        lexer_.skip_line(line);
    }

    // Debug information: .section .debug_str { ... }, labels and data inside.
    void section() {
        lexer_.expect(Token::Kind::dot_word, "a section's name");
        lexer_.skip_brackets("{", "}");
    }

    void pragma() {
        do lexer_.expect(Token::Kind::string, "a string");
        while (lexer_.accept(","));
        lexer_.expect(";");
    }

    void alias() {
        const Token name = lexer_.expect(Token::Kind::word, "a function's name");
        lexer_.expect(",");
        const Token target = lexer_.expect(Token::Kind::word, "a function's name");
        lexer_.expect(";");
        builder_.module.aliases[std::string(name.text)] = target.text;
    }

    void definition() {
        Linkage linkage;
        while (true) {
            if (lexer_.accept(".extern"))
                linkage.is_extern = true;
            else if (lexer_.accept(".weak") || lexer_.accept(".common"))
                linkage.is_weak = true;
            else if (!lexer_.accept(".visible"))
                break;
        }
        if (lexer_.at(".entry") || lexer_.at(".func")) {
            const bool is_entry = lexer_.next().text == ".entry";
            if (lexer_.accept(".attribute")) lexer_.skip_brackets("(", ")");
            return parse_function(lexer_, builder_, is_entry, linkage.is_weak);
        }
        if (!at_declaration(lexer_)) lexer_.fail_expected("a declaration");
        const DeclarationHead head = parse_declaration_head(lexer_);
        if (head.space == Space::reg || head.space == Space::param || head.space == Space::local)
            throw Error(head.line, "registers, parameters and local variables belong to functions");
        do builder_.add(parse_declarator(lexer_, head, linkage.is_extern), linkage.is_weak);
        while (lexer_.accept(","));
        lexer_.expect(";");
    }

    Lexer lexer_;
    ModuleBuilder builder_;
};

}  // namespace

Module parse(std::string_view text) { return ModuleParser(text).parse(); }

}  // namespace cyrt::ptx
