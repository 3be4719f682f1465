#include "ptx/functions.hpp"

#include <utility>

#include "ptx/constants.hpp"
#include "ptx/operands.hpp"
#include "ptx/scopes.hpp"

namespace cyrt::ptx {

namespace {

constexpr size_t kMaxRegisters = 1 << 20;  // per function: a damaged count is harmless
constexpr int kMaxNesting = 1000;          // depth of { } scopes: a look-up walks them

class FunctionParser {
  public:
    FunctionParser(Lexer& lexer, ModuleBuilder& builder)
        : lexer_(lexer), builder_(builder), operands_(lexer, builder, scopes_) {}

    Function parse(bool is_entry) {
        function_.is_entry = is_entry;
        if (lexer_.at("(")) function_.results = signature();
        const Token name = lexer_.expect(Token::Kind::word, "a function's name");
        function_.name = name.text;
        function_.line = name.line;
        if (lexer_.at("(")) function_.params = signature();
        directives();
        // The body may call the function itself.
        builder_.module.functions.emplace(function_.name, declaration());
        if (!lexer_.accept(";")) {
            lexer_.expect("{");
            body();
            resolve_labels();
        } else {
            function_.is_extern = true;
        }
        return std::move(function_);
    }

  private:
    struct TableLabel {
        std::string table;  // unique name
        std::string label;
        int scope;
        int line;
    };

    Function declaration() const {
        Function out;
        out.name = function_.name;
        out.is_extern = true;
        out.line = function_.line;
        return out;
    }

    // --- signature -------------------------------------------------------------------------

    std::vector<Variable> signature() {
        std::vector<Variable> out;
        for (Parameter& parameter : parse_parameters(lexer_)) {
            Variable& variable = parameter.variable;
            if (variable.name == "_") {  // nameless
                out.insert(out.end(), elements_of(parameter), variable);
            } else if (variable.space == Space::reg) {
                const size_t first = function_.registers.size();
                add_registers(variable.name, variable.type, parameter.lanes, variable.line);
                for (size_t i = 0, count = elements_of(parameter); i < count; ++i) {
                    out.push_back(variable);
                    out.back().name = function_.registers[first + i].name;
                }
            } else {
                add_symbol(variable);
                out.push_back(std::move(variable));
            }
        }
        return out;
    }

    void triple(uint32_t (&out)[3]) {
        for (int i = 0; i < 3; ++i) {
            if (i > 0 && !lexer_.accept(",")) {
                out[i] = 1;
                continue;
            }
            out[i] = uint32_t(parse_count(lexer_, 0x7fffffff));
        }
    }

    uint32_t number() { return uint32_t(parse_count(lexer_, 0x7fffffff)); }

    // Dimensions of a block or of a cluster, none of them 0.
    void sizes(uint32_t (&out)[3], const Token& directive) {
        triple(out);
        for (uint32_t size : out)
            if (size == 0) throw Error(directive.line, std::string(directive.text) + " of 0");
    }

    void directives() {
        while (lexer_.at(Token::Kind::dot_word)) {
            const Token token = lexer_.next();
            const std::string_view name = token.text;
            if (name == ".maxntid")
                sizes(function_.max_ntid, token);
            else if (name == ".reqntid")
                sizes(function_.req_ntid, token);
            else if (name == ".minnctapersm")
                function_.min_nctapersm = number();
            else if (name == ".maxnreg")
                function_.max_nreg = number();
            else if (name == ".maxnctapersm" || name == ".abi_preserve" ||
                     name == ".abi_preserve_control")
                number();
            else if (name == ".reqnctapercluster")
                sizes(function_.req_nctapercluster, token);
            else if (name == ".maxclusterrank")
                function_.max_cluster_rank = number();
            else if (name == ".explicitcluster")
                function_.explicit_cluster = true;
            else if (name == ".blocksareclusters")
                function_.blocks_are_clusters = true;
            else if (name == ".pragma")
                pragma();
            else if (name != ".noreturn")
                throw Error(token.line, "unknown directive of a function: " + std::string(name));
        }
        if (function_.blocks_are_clusters &&
            (!function_.req_ntid[0] || !function_.req_nctapercluster[0]))
            throw Error(function_.line, ".blocksareclusters without .reqntid and "
                                        ".reqnctapercluster");
    }

    void pragma() {
        do lexer_.expect(Token::Kind::string, "a string");
        while (lexer_.accept(","));
        lexer_.expect(";");
    }

    // --- declarations ----------------------------------------------------------------------

    void add_symbol(Variable& variable) {
        const std::string source_name = variable.name;
        variable.name = operands_.unique_name(source_name);
        Scopes::Symbol symbol{false, -1, 1, size_of(variable.type), variable.name};
        if (!scopes_.add(source_name, std::move(symbol)))
            throw Error(variable.line, source_name + " is declared twice");
    }

    // A register, or the .x .y .z .w of a vector register; the bare name then means all of them.
    void add_registers(const std::string& name, Type type, uint32_t lanes, int line) {
        const size_t first = function_.registers.size();
        if (first + lanes > kMaxRegisters) throw Error(line, "too many registers");
        if (!scopes_.add(name, {true, int32_t(first), lanes, 0, {}}))
            throw Error(line, name + " is declared twice");
        for (uint32_t lane = 0; lane < lanes; ++lane) {
            const std::string suffix = lanes == 1 ? "" : "." + std::to_string(lane);
            function_.registers.push_back({scopes_.unique(name + suffix), type});
        }
    }

    void registers(const DeclarationHead& head) {
        do {
            const Token token = lexer_.expect(Token::Kind::word, "a register's name");
            const std::string name(token.text);
            if (!lexer_.accept("<")) {
                add_registers(name, head.type, head.lanes, token.line);
                continue;
            }
            const uint64_t count = parse_constant_term(lexer_).bits;
            lexer_.expect(">");
            if (count > kMaxRegisters) throw Error(token.line, "too many registers");
            for (uint64_t i = 0; i < count; ++i)
                add_registers(name + std::to_string(i), head.type, head.lanes, token.line);
        } while (lexer_.accept(","));
        lexer_.expect(";");
    }

    void declare(bool is_extern) {
        if (!at_declaration(lexer_)) lexer_.fail_expected("a declaration");
        const DeclarationHead head = parse_declaration_head(lexer_);
        if (head.space == Space::reg) return registers(head);
        do {
            Variable variable = parse_declarator(lexer_, head, is_extern);
            add_symbol(variable);
            if (head.space == Space::global || head.space == Space::constant)
                builder_.add(std::move(variable), false);
            else
                function_.variables.push_back(std::move(variable));
        } while (lexer_.accept(","));
        lexer_.expect(";");
    }

    // --- body ------------------------------------------------------------------------------

    void body() {
        for (int depth = 1; depth > 0;) {
            const Token token = lexer_.peek();
            if (lexer_.accept("{")) {
                if (++depth > kMaxNesting) throw Error(token.line, "scopes are nested too deep");
                scopes_.open();
            } else if (lexer_.accept("}")) {
                if (--depth > 0) scopes_.close();
            } else if (lexer_.accept("@")) {
                if (lexer_.accept("@"))
                    lexer_.skip_line(token.line);  // @@DWARF
                else
                    guarded_instruction();
            } else if (token.kind == Token::Kind::word) {
                lexer_.next();
                if (lexer_.accept(":"))
                    label(token);
                else
                    instruction(token, -1, false);
            } else if (!lexer_.accept(";")) {
                directive();
            }
        }
    }

    void directive() {
        if (!lexer_.at(Token::Kind::dot_word)) lexer_.fail_expected("an instruction");
        if (at_declaration(lexer_)) return declare(false);
        const Token token = lexer_.next();
        if (token.text == ".loc")
            source_line(token.line);
        else if (token.text == ".file")
            lexer_.skip_line(token.line);
        else if (token.text == ".pragma")
            pragma();
        else if (token.text == ".extern")
            declare(true);
        else if (token.text == ".visible" || token.text == ".weak")
            declare(false);
        else
            throw Error(token.line, "unknown directive: " + std::string(token.text));
    }

    // .loc file line column ...
    void source_line(int line) {
        const auto number = [&] {
            return lexer_.at(Token::Kind::number) && lexer_.peek().line == line
                       ? uint32_t(parse_count(lexer_, UINT32_MAX))
                       : 0;
        };
        const uint32_t file = number(), at = number();
        function_.source_lines.push_back({line, file, at});
        lexer_.skip_line(line);
    }

    void label(const Token& name) {
        if (lexer_.accept(".branchtargets") || lexer_.accept(".calltargets")) {
            const std::string table = add_table(name);
            std::vector<std::string>& names = function_.target_tables[table];
            do {
                const Token target = lexer_.expect(Token::Kind::word, "a label");
                names.emplace_back(target.text);
                table_labels_.push_back({table, names.back(), scopes_.current(), target.line});
            } while (lexer_.accept(","));
            lexer_.expect(";");
        } else if (lexer_.at(".callprototype")) {
            lexer_.next();
            const std::string table = add_table(name);
            function_.prototypes[table] = prototype();
        } else if (!scopes_.add_label(name.text, int32_t(function_.body.size()))) {
            throw Error(name.line, "label " + std::string(name.text) + " is defined twice");
        } else if (name.text[0] != '$') {  // the compiler's own labels say nothing
            last_label_ = name.text;
            labelled_ = function_.body.size();
        }
    }

    // [(result)] _ [(parameters)] directives;
    Signature prototype() {
        Signature out;
        if (lexer_.at("(")) out.results = nameless();
        lexer_.expect("_");
        if (lexer_.at("(")) out.params = nameless();
        while (lexer_.at(Token::Kind::dot_word)) {
            if (lexer_.next().text != ".noreturn") number();  // .abi_preserve and its like
        }
        lexer_.expect(";");
        return out;
    }

    std::vector<Variable> nameless() {
        std::vector<Variable> out;
        for (Parameter& parameter : parse_parameters(lexer_))
            out.insert(out.end(), elements_of(parameter), parameter.variable);
        return out;
    }

    // A vector in registers is passed as its elements.
    static size_t elements_of(Parameter& parameter) {
        if (parameter.variable.space != Space::reg || parameter.lanes == 1) return 1;
        parameter.variable.align = size_of(parameter.variable.type);
        return parameter.lanes;
    }

    std::string add_table(const Token& name) {
        std::string unique = scopes_.unique(name.text);
        if (!scopes_.add_table(name.text, unique))
            throw Error(name.line, std::string(name.text) + " is declared twice");
        return unique;
    }

    void guarded_instruction() {
        const bool negated = lexer_.accept("!");
        const Operand guard = operands_.parse();
        if (guard.kind != Operand::Kind::reg) lexer_.fail_expected("a predicate before this");
        const Token opcode = lexer_.expect(Token::Kind::word, "an instruction");
        instruction(opcode, guard.index, negated);
    }

    void instruction(const Token& opcode, int32_t guard, bool negated) {
        Instruction out;
        out.opcode = opcode.text;
        out.line = opcode.line;
        out.guard = guard;
        out.guard_negated = negated;
        while (lexer_.at(Token::Kind::dot_word))
            out.modifiers.emplace_back(lexer_.next().text.substr(1));

        if (out.opcode == "call") {
            call_operands(out);
        } else if (!lexer_.accept(";")) {
            const size_t label_at = out.opcode == "bra" ? 0 : out.opcode == "brx" ? 1 : size_t(-1);
            do {
                out.operands.push_back(out.operands.size() == label_at ? label_operand(out)
                                                                       : operands_.parse());
                // `ld.u32 %r1, x[3]` needs no brackets around the operand.
                Operand& operand = out.operands.back();
                if (operand.kind == Operand::Kind::symbol &&
                    (out.opcode == "ld" || out.opcode == "st"))
                    operand.kind = Operand::Kind::address;
                if (out.operands.size() == 1 && lexer_.accept("|")) {
                    out.paired = true;
                    out.operands.push_back(operands_.parse());
                }
            } while (lexer_.accept(","));
            lexer_.expect(";");
        }
        if (out.opcode == "trap" && labelled_ == function_.body.size())
            builder_.module.reasons[out.line] = last_label_;
        function_.body.push_back(std::move(out));
    }

    Operand label_operand(const Instruction& user) {
        const Token name = lexer_.expect(Token::Kind::word, "a label");
        Operand out;
        out.kind = Operand::Kind::label;
        out.name = name.text;
        labels_.push_back({int32_t(function_.body.size()), int32_t(user.operands.size()),
                           scopes_.current(), name.line});
        return out;
    }

    // Results or arguments, with a vector replaced by its elements.
    Operand call_list() {
        Operand written = operands_.parse_list("(", ")");
        Operand out;
        out.kind = Operand::Kind::vector;
        for (Operand& operand : written.elements) {
            if (operand.kind != Operand::Kind::vector) {
                out.elements.push_back(std::move(operand));
                continue;
            }
            for (Operand& element : operand.elements) out.elements.push_back(std::move(element));
        }
        return out;
    }

    // call (results), callee, (arguments), prototype;  each part but the callee may be absent.
    void call_operands(Instruction& out) {
        Operand results, arguments;
        results.kind = arguments.kind = Operand::Kind::vector;
        if (lexer_.at("(")) {
            results = call_list();
            lexer_.expect(",");
        }
        Operand callee = operands_.parse();
        if (callee.kind != Operand::Kind::reg && callee.kind != Operand::Kind::symbol)
            throw Error(out.line, "a call of what is neither a function nor a register");
        Operand prototype;
        bool has_prototype = false;
        while (lexer_.accept(",")) {
            if (lexer_.at("(")) {
                arguments = call_list();
            } else {
                out.operands.resize(3);
                prototype = label_operand(out);
                has_prototype = true;
            }
        }
        lexer_.expect(";");
        out.operands.clear();
        out.operands.push_back(std::move(results));
        out.operands.push_back(std::move(callee));
        out.operands.push_back(std::move(arguments));
        if (has_prototype) out.operands.push_back(std::move(prototype));
    }

    void resolve_labels() {
        for (const LabelUse& use : labels_) {
            Instruction& user = function_.body[size_t(use.instruction)];
            Operand& operand = user.operands[size_t(use.operand)];
            if (user.opcode == "bra") {
                operand.index = scopes_.find_label(use.scope, operand.name);
                if (operand.index < 0) throw Error(use.line, "no label " + operand.name);
            } else if (const std::string* table = scopes_.find_table(use.scope, operand.name)) {
                operand.name = *table;
            } else if (user.opcode != "call" || !builder_.knows(operand.name)) {
                throw Error(use.line, "no table of targets " + operand.name);
            }
        }
        // A table names labels or functions, never both.
        for (const TableLabel& entry : table_labels_) {
            const int32_t index = scopes_.find_label(entry.scope, entry.label);
            if (index >= 0)
                function_.branch_targets[entry.table].push_back(index);
            else if (!builder_.module.functions.count(entry.label))
                throw Error(entry.line, "no label " + entry.label);
        }
    }

    struct LabelUse {
        int32_t instruction, operand;
        int scope;
        int line;
    };

    Lexer& lexer_;
    ModuleBuilder& builder_;
    Scopes scopes_;
    OperandParser operands_;
    Function function_;
    std::vector<LabelUse> labels_;
    std::vector<TableLabel> table_labels_;
    std::string last_label_;
    size_t labelled_ = SIZE_MAX;  // the instruction behind that label
};

}  // namespace

bool ModuleBuilder::knows(const std::string& name) const {
    return variables.count(name) || module.functions.count(name);
}

void ModuleBuilder::add(Variable variable, bool is_weak) {
    const auto [found, is_new] = variables.emplace(variable.name, module.variables.size());
    if (is_new) {
        module.variables.push_back(std::move(variable));
        return;
    }
    Variable& old = module.variables[found->second];
    if (variable.is_extern) return;
    if (!old.is_extern && !is_weak) throw Error(variable.line, variable.name + " is defined twice");
    if (old.is_extern) old = std::move(variable);
}

void parse_function(Lexer& lexer, ModuleBuilder& builder, bool is_entry, bool is_weak) {
    Function parsed = FunctionParser(lexer, builder).parse(is_entry);
    Function& known = builder.module.functions[parsed.name];
    const bool is_defined = !known.is_extern;
    if (parsed.is_extern && is_defined) return;
    if (is_defined && !is_weak) throw Error(parsed.line, parsed.name + " is defined twice");
    if (!is_defined) known = std::move(parsed);
}

}  // namespace cyrt::ptx
