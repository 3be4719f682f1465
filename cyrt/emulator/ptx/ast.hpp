// The parser's result for a PTX module (PTX ISA, sections 4 to 7 and 11): declarations and
// instructions with every name resolved, nothing executed or lowered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cyrt::ptx {

enum class Type : uint8_t {
    none,
    pred,
    b8,
    b16,
    b32,
    b64,
    b128,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    f16,
    f16x2,
    bf16,
    bf16x2,
    f32,
    f64,
};

// Size of one value in bytes; 0 for `none` and `pred`.
uint32_t size_of(Type type);
bool is_signed(Type type);
// "s32" -> Type::s32; Type::none if the text names no type.
Type type_from(std::string_view text);
std::string_view name_of(Type type);

enum class Space : uint8_t { reg, generic, param, global, constant, shared, local };

struct Error : std::runtime_error {
    Error(int at_line, const std::string& what);  // what() includes the line
    int line;
};

// A piece of an initialiser: bytes of a literal, or the address of a symbol.
struct Relocation {
    uint64_t offset;     // bytes from the start of the variable
    std::string symbol;  // variable or function whose address is stored
    int64_t addend;
    // bytes of the address that are stored, the low ones: 4 or 8; fewer in mask(symbol) forms
    uint8_t size;
    bool generic;  // generic(symbol)
};

struct Variable {
    std::string name;
    Space space = Space::global;
    Type type = Type::b8;
    uint32_t align = 1;
    uint64_t size = 0;  // bytes of the whole array; 0 for `extern .shared x[]`
    bool is_extern = false;
    bool is_array = false;
    bool is_managed = false;      // .attribute(.managed)
    std::vector<std::byte> init;  // empty: zeros
    std::vector<Relocation> relocations;
    int line = 0;
};

struct Operand {
    enum class Kind : uint8_t {
        reg,      // index: the register; name: the selector of a video instruction's operand
                  // (%r1.b0: "b0"), else empty
        imm,      // bits; is_float for a 0f/0d literal (bits then have the literal's own width)
        symbol,   // name (+ value): variable, parameter or function used as a value
        special,  // name: "%tid.x", "%laneid", "%dynamic_smem_size" ...
        address,  // [reg + value], [name + value] or [value]
        vector,   // {a, b, ...}
        label,    // index: the instruction it points at; or name of a branch-target table
        sink,     // "_"
    };
    Kind kind = Kind::sink;
    int32_t index = -1;    // register, or label's instruction (body.size(): the end of
                           // the body); -1 where there is none
    bool negated = false;  // !p
    bool is_float = false;
    uint8_t float_width = 0;  // 4 for 0f, 8 for 0d and decimal literals
    uint64_t bits = 0;
    int64_t value = 0;  // added to an address, a symbol or a register
    std::string name;
    std::vector<Operand> elements;  // a vector's; the operands after a comma inside [a, ...]
};

struct Instruction {
    std::string opcode;                  // "setp"
    std::vector<std::string> modifiers;  // {"lt", "f32"}
    std::vector<Operand> operands;       // ordered as in the source; a pair `d|p` is two operands
    bool paired = false;                 // operands[0]|operands[1] were written with a bar
    int32_t guard = -1;                  // predicate register, -1: none
    bool guard_negated = false;
    int line = 0;

    // call (ret), callee, (args), prototype: results in operands[0].elements (vector, maybe empty),
    // callee in operands[1], arguments in operands[2].elements, prototype or call targets (label
    // name) in operands[3] if present.
};

// .loc: the line of the source of what follows in the PTX.
struct SourceLine {
    int ptx_line;
    uint32_t file, line;
};

struct Register {
    std::string name;
    Type type;
};

// A parameter or result of a call: in param space or a register.
struct Signature {
    std::vector<Variable> results;
    std::vector<Variable> params;
};

struct Function : Signature {
    std::string name;
    bool is_entry = false;
    bool is_extern = false;           // declared only: vprintf, __assertfail, malloc, free ...
    std::vector<Register> registers;  // every scope's, with unique numbers
    std::vector<Variable> variables;  // shared, local and param (call frames) of every scope,
                                      // their `name` made unique; operands use that name
    std::vector<Instruction> body;
    std::map<std::string, std::vector<std::string>> target_tables;  // .branchtargets, .calltargets
    std::map<std::string, std::vector<int32_t>> branch_targets;     // the same, resolved
    std::map<std::string, Signature> prototypes;                    // .callprototype
    uint32_t max_ntid[3] = {0, 0, 0};                               // 0: absent
    uint32_t req_ntid[3] = {0, 0, 0};
    uint32_t min_nctapersm = 0;
    uint32_t max_nreg = 0;
    uint32_t req_nctapercluster[3] = {0, 0, 0};
    uint32_t max_cluster_rank = 0;         // 0: absent
    bool explicit_cluster = false;         // a launch has to specify the cluster's dimensions
    bool blocks_are_clusters = false;      // a grid counts clusters, not blocks
    std::vector<SourceLine> source_lines;  // ordered as in the PTX
    int line = 0;
};

struct Module {
    int version_major = 0, version_minor = 0;  // .version
    std::string target;                        // "sm_90a"
    int target_number = 0;                     // 90
    std::vector<Variable> variables;           // module scope: global, constant, shared
    std::map<std::string, Function> functions;
    std::map<std::string, std::string> aliases;  // .alias
    std::map<uint32_t, std::string> files;       // .file: names of the source's files
    std::map<int, std::string> reasons;          // by the line of a trap: a label before it
};

}  // namespace cyrt::ptx
