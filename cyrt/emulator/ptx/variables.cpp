#include "ptx/variables.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ptx/constants.hpp"

namespace cyrt::ptx {

namespace {

constexpr uint64_t kMaxVariable = 1ull << 40;
constexpr uint64_t kMaxInitialised = 1ull << 28;  // an initialiser is completely in memory
constexpr size_t kMaxDimensions = 16;

std::optional<Space> space_from(std::string_view text) {
    if (text == ".reg") return Space::reg;
    if (text == ".global") return Space::global;
    if (text == ".const") return Space::constant;
    if (text == ".shared") return Space::shared;
    if (text == ".local") return Space::local;
    if (text == ".param") return Space::param;
    return std::nullopt;
}

void refuse_opaque(const Token& token) {
    for (std::string_view name : {".texref", ".surfref", ".samplerref", ".tex"})
        if (token.text == name)
            throw Error(token.line,
                        std::string(name) + ": textures and surfaces are not supported");
}

// Writes the values of one initialiser into a variable.
class Initialiser {
  public:
    Initialiser(Lexer& lexer, Variable& variable, const std::vector<uint64_t>& dimensions)
        : lexer_(lexer), variable_(variable), dimensions_(dimensions),
          element_(size_of(variable.type)) {}

    void parse() {
        if (dimensions_.empty())
            element(0);
        else
            braces(0, 0);
        const uint64_t size = std::max(variable_.size, written_);
        if (variable_.size != 0 && written_ > variable_.size)
            throw Error(variable_.line, "too many initial values for " + variable_.name);
        reserve(size);
    }

  private:
    // Number of elements in one step of dimension `level`.
    uint64_t span(size_t level) const {
        uint64_t out = 1;
        for (size_t i = level + 1; i < dimensions_.size(); ++i) out *= dimensions_[i];
        return out;
    }

    // `index`: the first element in these braces. A flat list may fill inner dimensions.
    void braces(size_t level, uint64_t index) {
        lexer_.expect("{");
        while (!lexer_.accept("}")) {
            if (lexer_.at("{") && level + 1 < dimensions_.size()) {
                braces(level + 1, index);
                index += span(level);
            } else {
                element(index++);
            }
            if (!lexer_.at("}")) lexer_.expect(",");
        }
    }

    void element(uint64_t index) {
        reserve(index);  // an element has at least one byte: the products below stay small
        const uint64_t offset = index * element_;
        const Token token = lexer_.peek();
        if (token.kind == Token::Kind::word && token.text != "WARP_SZ") {
            reserve(offset + element_);
            address(offset, element_);
            return;
        }
        const int line = token.line;
        const Constant value = parse_constant(lexer_);
        reserve(offset + element_);
        if (lexer_.accept("(")) {  // mask(symbol): one byte of an address
            masked_address(offset, value.bits, line);
            lexer_.expect(")");
            return;
        }
        store(offset, value, line);
    }

    // symbol, generic(symbol), either with + or - and a constant.
    void address(uint64_t offset, uint32_t size) {
        const Token first = lexer_.expect(Token::Kind::word, "a name");
        Relocation out{offset, std::string(first.text), 0, uint8_t(size), false};
        if (first.text == "generic" && lexer_.accept("(")) {
            out.generic = true;
            out.symbol = lexer_.expect(Token::Kind::word, "a name").text;
            addend(out);
            lexer_.expect(")");
        }
        addend(out);
        if (size != 1 && size < 4) throw Error(first.line, "an address in too few bytes");
        variable_.relocations.push_back(std::move(out));
    }

    void addend(Relocation& out) {
        while (lexer_.at("+") || lexer_.at("-")) {
            const bool minus = lexer_.next().text == "-";
            const uint64_t value = parse_constant_term(lexer_).bits;
            out.addend = int64_t(uint64_t(out.addend) + (minus ? 0 - value : value));
        }
    }

    // 0xff(x), 0xff00(x) ...: consecutive bytes of one address become one relocation.
    void masked_address(uint64_t offset, uint64_t mask, int line) {
        int byte = 0;
        while (byte < 8 && mask != 0xffull << (8 * byte)) ++byte;
        if (byte == 8 || element_ != 1) throw Error(line, "a mask of an address is one byte's");
        std::vector<Relocation>& list = variable_.relocations;
        address(offset, 1);
        if (byte == 0) return;
        const Relocation last = std::move(list.back());
        list.pop_back();
        if (list.empty() || list.back().symbol != last.symbol || list.back().size != byte ||
            list.back().offset + byte != offset)
            throw Error(line, "the bytes of an address stand out of order");
        ++list.back().size;
    }

    void store(uint64_t offset, const Constant& value, int line) {
        uint64_t bits = value.bits;
        const Type type = variable_.type;
        if (type == Type::f64 || type == Type::f32) {
            const double wide = value.as_double();
            const float narrow = float(wide);
            if (type == Type::f64) {
                std::memcpy(&bits, &wide, sizeof wide);
            } else if (value.float_width != 4) {  // 0f literals keep the payload of a NaN
                bits = 0;
                std::memcpy(&bits, &narrow, sizeof narrow);
            }
        } else if (value.is_float() && value.float_width != element_) {
            throw Error(line, "a floating-point value for an integer variable");
        }
        std::memcpy(variable_.init.data() + offset, &bits, std::min<size_t>(element_, 8));
    }

    void reserve(uint64_t size) {
        if (size > kMaxInitialised)
            throw Error(variable_.line, variable_.name + " is too large for an initialiser");
        written_ = std::max(written_, size);
        if (size > variable_.init.size()) {
            if (size > variable_.init.capacity()) variable_.init.reserve(size * 2);
            variable_.init.resize(size);
        }
    }

    Lexer& lexer_;
    Variable& variable_;
    const std::vector<uint64_t>& dimensions_;  // the vector's lanes last
    uint32_t element_;
    uint64_t written_ = 0;
};

}  // namespace

bool at_declaration(Lexer& lexer) {
    const Token& token = lexer.peek();
    refuse_opaque(token);
    return token.kind == Token::Kind::dot_word && space_from(token.text).has_value();
}

DeclarationHead parse_declaration_head(Lexer& lexer) {
    DeclarationHead head;
    head.line = lexer.peek().line;
    const std::optional<Space> space = space_from(lexer.next().text);
    head.space = space.value_or(Space::reg);
    if (lexer.accept("[")) {  // .const[2]: a bank
        parse_count(lexer, 10);
        lexer.expect("]");
    }
    while (lexer.at(Token::Kind::dot_word)) {
        const Token token = lexer.next();
        refuse_opaque(token);
        if (token.text == ".align") {
            head.align = uint32_t(parse_count(lexer, 1 << 20));
            if (head.align == 0 || (head.align & (head.align - 1)) != 0)
                throw Error(token.line, "an alignment that is no power of two");
        } else if (token.text == ".v2" || token.text == ".v4" || token.text == ".v8") {
            head.lanes = uint32_t(token.text[2] - '0');
        } else if (token.text == ".attribute") {
            lexer.expect("(");
            head.is_managed |= lexer.at(".managed");
            while (!lexer.accept(")")) {
                lexer.expect(Token::Kind::dot_word, "an attribute");
                if (lexer.at("(")) lexer.skip_brackets("(", ")");
                if (!lexer.at(")")) lexer.expect(",");
            }
        } else if (token.text == ".ptr") {
            // The attributes of a parameter's pointee have no effect here.
            while (space_from(lexer.peek().text)) lexer.next();
            if (lexer.accept(".align")) parse_count(lexer, 1 << 20);
        } else if (const Type type = type_from(token.text.substr(1)); type != Type::none) {
            if (head.type != Type::none) throw Error(token.line, "a second type");
            head.type = type;
        } else {
            throw Error(token.line, "unknown in a declaration: " + std::string(token.text));
        }
    }
    if (head.type == Type::none) lexer.fail_expected("a type");
    if (head.type == Type::pred && head.space != Space::reg)
        throw Error(head.line, "a predicate in memory");
    return head;
}

Variable parse_declarator(Lexer& lexer, const DeclarationHead& head, bool is_extern) {
    const Token name = lexer.expect(Token::Kind::word, "a name");
    Variable out;
    out.name = name.text;
    out.line = name.line;
    out.space = head.space;
    out.type = head.type;
    out.is_extern = is_extern;
    out.is_managed = head.is_managed;
    out.align = head.align ? head.align : std::max(size_of(head.type) * head.lanes, 1u);

    std::vector<uint64_t> dimensions;
    while (lexer.accept("[")) {
        out.is_array = true;
        const bool open = lexer.at("]");
        if (open && !dimensions.empty()) lexer.fail_expected("the size of an inner dimension");
        if (dimensions.size() == kMaxDimensions) lexer.fail_expected("fewer dimensions");
        dimensions.push_back(open ? 0 : parse_count(lexer, kMaxVariable));
        lexer.expect("]");
    }
    if (head.lanes > 1) dimensions.push_back(head.lanes);

    out.size = size_of(head.type);
    for (auto dimension = dimensions.rbegin(); dimension != dimensions.rend(); ++dimension) {
        if (*dimension != 0 && out.size > kMaxVariable / *dimension)
            throw Error(out.line, out.name + " is too large");
        out.size *= *dimension;  // an open dimension is the first, and is multiplied last
    }
    if (lexer.accept("=")) {
        if (head.space != Space::global && head.space != Space::constant)
            throw Error(out.line, "only .global and .const variables have initial values");
        Initialiser(lexer, out, dimensions).parse();
        if (out.size == 0) out.size = out.init.size();
    }
    return out;
}

std::vector<Parameter> parse_parameters(Lexer& lexer) {
    std::vector<Parameter> out;
    lexer.expect("(");
    while (!lexer.accept(")")) {
        if (!at_declaration(lexer)) lexer.fail_expected("a parameter");
        const DeclarationHead head = parse_declaration_head(lexer);
        if (head.space != Space::param && head.space != Space::reg)
            throw Error(head.line, "a parameter that is neither .param nor .reg");
        out.push_back({parse_declarator(lexer, head, false), head.lanes});
        if (!lexer.at(")")) lexer.expect(",");
    }
    return out;
}

}  // namespace cyrt::ptx
