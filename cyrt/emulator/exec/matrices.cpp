#include "exec/matrices.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "exec/addressing.hpp"
#include "exec/memory_forms.hpp"
#include "exec/narrow_floats.hpp"
#include "exec/operand_types.hpp"

namespace cyrt::emu {

namespace {

// --- elements in registers ----------------------------------------------------------------------

uint32_t size_of(MatrixType type) {
    switch (type) {
    case MatrixType::s8:
    case MatrixType::u8: return 1;
    case MatrixType::f16:
    case MatrixType::bf16: return 2;
    case MatrixType::f64: return 8;
    default: return 4;
    }
}

uint32_t cell_of(MatrixType type) { return std::max(4u, size_of(type)); }

double decode(MatrixType type, const std::byte* at) {
    const auto as = [at](auto value) {
        std::memcpy(&value, at, sizeof value);
        return value;
    };
    switch (type) {
    case MatrixType::f16: return Half{as(uint16_t())}.to_float();
    case MatrixType::bf16: return Bfloat{as(uint16_t())}.to_float();
    case MatrixType::tf32: return float_of(as(uint32_t()) & ~0x1fffu);  // 10 bits of mantissa
    case MatrixType::f32: return as(float());
    case MatrixType::f64: return as(double());
    case MatrixType::s8: return as(int8_t());
    case MatrixType::u8: return as(uint8_t());
    default: return as(int32_t());
    }
}

void encode(MatrixType type, double value, std::byte* at) {
    const auto put = [at](auto bits) { std::memcpy(at, &bits, sizeof bits); };
    switch (type) {
    case MatrixType::f16: return put(Half::from(float(value)).bits);
    case MatrixType::bf16: return put(Bfloat::from(float(value)).bits);
    case MatrixType::f64: return put(value);
    case MatrixType::s32: return put(uint32_t(int64_t(value)));
    default: return put(float(value));
    }
}

// --- the layout of elements
// -----------------------------------------------------------------------

struct Place {
    int row, column;
};

struct Fragment {
    MatrixType type;
    int rows, columns;
    char part;
    bool opaque;

    int per_register() const { return int(cell_of(type) / size_of(type)); }
    // Registers of one lane. The f16 fragments of wmma have space for each element twice.
    int elements() const {
        const bool twice = opaque && type == MatrixType::f16 && part != 'c' && part != 'd';
        return twice ? 16 : rows * columns / kWarpSize;
    }
    int registers() const { return elements() / per_register(); }

    Place place(int lane, int i) const {
        if (opaque) {
            const int own = rows * columns / kWarpSize;
            const int at = lane * own + i % own;
            return {at / columns, at % columns};
        }
        const int group = lane / 4, member = lane % 4;
        if (part == 'c' || part == 'd') return {group + 8 * (i / 2), 2 * member + i % 2};
        // Along k, a lane has runs of one register; for `a`, every second run is eight rows below.
        const int width = per_register(), run = i / width;
        const int inner = member * width + i % width;
        if (part == 'b') return {inner + 4 * width * run, group};
        if (rows == 8) return {group, inner};
        return {group + 8 * (run % 2), inner + 4 * width * (run / 2)};
    }
};

Fragment fragment(const MatrixForm& form, char part) {
    switch (part) {
    case 'a': return {form.a, form.m, form.k, part, form.opaque};
    case 'b': return {form.b, form.k, form.n, part, form.opaque};
    case 'c': return {form.c, form.m, form.n, part, form.opaque};
    default: return {form.d, form.m, form.n, part, form.opaque};
    }
}

std::byte* element(const Warp& warp, const Fragment& of, const uint32_t* slots, int lane, int i) {
    const int per = of.per_register();
    return warp.slots + slots[i / per] + size_t(lane) * cell_of(of.type) +
           size_t(i % per) * size_of(of.type);
}

// --- mma ----------------------------------------------------------------------------------------

struct Matrix {
    int columns;
    double at[32 * 32];
    double& operator()(int row, int column) { return at[row * columns + column]; }
};

void gather(const Warp& warp, const Fragment& of, const uint32_t* slots, Matrix& out) {
    out.columns = of.columns;
    for (int lane = 0; lane < kWarpSize; ++lane)
        for (int i = 0; i < of.elements(); ++i) {
            const Place place = of.place(lane, i);
            out(place.row, place.column) = decode(of.type, element(warp, of, slots, lane, i));
        }
}

// Products are exact in double precision except those of f64, and so are sums of integers; PTX does
// not specify the intermediate rounding of an f32 or f16 accumulator.
void multiply(const MatrixForm& form, Matrix& a, Matrix& b, Matrix& c) {
    for (int row = 0; row < form.m; ++row)
        for (int k = 0; k < form.k; ++k) {
            const double factor = a(row, k);
            for (int column = 0; column < form.n; ++column)
                c(row, column) = form.a == MatrixType::f64
                                     ? std::fma(factor, b(k, column), c(row, column))
                                     : c(row, column) + factor * b(k, column);
        }
}

void mma(Warp& warp, const Inst& inst) {
    const MemoryOp& op = warp.context->memory_ops[inst.extra];
    const MatrixForm& form = op.matrix;
    const Fragment a = fragment(form, 'a'), b = fragment(form, 'b'), c = fragment(form, 'c');
    Matrix left, right, sum;
    gather(warp, a, op.values, left);
    gather(warp, b, op.values + a.registers(), right);
    gather(warp, c, op.values + a.registers() + b.registers(), sum);
    multiply(form, left, right, sum);

    const Fragment d = fragment(form, 'd');
    for (int lane = 0; lane < kWarpSize; ++lane) {
        if (!warp.lane_on[lane]) continue;
        for (int i = 0; i < d.elements(); ++i) {
            const Place place = d.place(lane, i);
            double value = sum(place.row, place.column);
            if (form.saturates) value = std::clamp(value, -0x1p31, 0x1p31 - 1);
            encode(d.type, value, element(warp, d, op.vector, lane, i));
        }
    }
}

// --- wmma.load, wmma.store ----------------------------------------------------------------------

template <AddressKind kind, bool stores>
void move_fragment(Warp& warp, const Inst& inst) {
    const MemoryOp& op = warp.context->memory_ops[inst.extra];
    const MatrixForm& form = op.matrix;
    const Fragment of = fragment(form, form.part);
    // A result may be written to the register of the stride.
    uint32_t strides[kWarpSize];
    std::fill_n(strides, kWarpSize, uint32_t(form.by_column ? of.rows : of.columns));
    if (inst.s[1] != kNoSlot) std::memcpy(strides, warp.slots + inst.s[1], sizeof strides);
    HostAddresses base, at;
    collect_addresses<kind>(warp, inst, op, base);
    for (int i = 0; i < of.elements(); ++i) {
        for (int lane = 0; lane < kWarpSize; ++lane) {
            const Place place = of.place(lane, i);
            const uint64_t stride = strides[lane];
            const uint64_t offset = form.by_column ? uint64_t(place.column) * stride + place.row
                                                   : uint64_t(place.row) * stride + place.column;
            at.lane[lane] = base.lane[lane] + offset * op.size;
        }
        resolve<kind>(warp, op, stores ? Access::write : Access::read, at);
        for_lanes(warp.active, [&](int lane) {
            std::byte* const own = element(warp, of, op.vector, lane, i);
            auto* const memory = reinterpret_cast<std::byte*>(at.lane[lane]);
            std::memcpy(stores ? memory : own, stores ? own : memory, op.size);
        });
    }
}

// --- 8 x 8 matrices of 16-bit elements ----------------------------------------------------------

// The elements 2i and 2i + 1 of a row are in lane 4 * row + i. The rows' addresses come from lanes
// 0 to 7 for the first matrix, 8 to 15 for the second ...
template <AddressKind kind, bool stores>
void move_rows(Warp& warp, const Inst& inst) {
    const MemoryOp& op = warp.context->memory_ops[inst.extra];
    const uint32_t active = warp.active;
    const uint32_t holders = op.matrix.count == 4 ? kFullMask : (1u << 8 * op.matrix.count) - 1;
    if ((active & holders) == 0) return;
    HostAddresses rows;
    set_active(warp, active & holders);
    locate<kind>(warp, inst, op, stores ? Access::write : Access::read, rows);
    set_active(warp, active);
    for (int matrix = 0; matrix < op.matrix.count; ++matrix) {
        auto* own = cells<uint32_t>(warp, op.vector[matrix]);
        for_lanes(active, [&](int lane) {
            for (int half = 0; half < 2; ++half) {
                int row = lane / 4, column = lane % 4 * 2 + half;
                if (op.matrix.by_column) std::swap(row, column);
                auto* const memory =
                    reinterpret_cast<std::byte*>(rows.lane[8 * matrix + row]) + 2 * column;
                auto* const part = reinterpret_cast<std::byte*>(own + lane) + 2 * half;
                std::memcpy(stores ? memory : part, stores ? part : memory, 2);
            }
        });
    }
}

void transpose(Warp& warp, const Inst& inst) {
    const MemoryOp& op = warp.context->memory_ops[inst.extra];
    uint16_t from[kWarpSize][2];
    std::memcpy(from, warp.slots + op.values[0], sizeof from);
    auto* to = cells<uint32_t>(warp, op.vector[0]);
    for_lanes(warp.active, [&](int lane) {
        const int row = lane / 4, column = lane % 4 * 2;
        const auto mirrored = [&](int c) { return uint32_t(from[4 * c + row / 2][row % 2]); };
        to[lane] = mirrored(column) | mirrored(column + 1) << 16;
    });
}

// --- forms --------------------------------------------------------------------------------------

MatrixType matrix_type(std::string_view text) {
    constexpr std::pair<std::string_view, MatrixType> kTypes[] = {
        {"f16", MatrixType::f16}, {"bf16", MatrixType::bf16}, {"tf32", MatrixType::tf32},
        {"f32", MatrixType::f32}, {"f64", MatrixType::f64},   {"s8", MatrixType::s8},
        {"u8", MatrixType::u8},   {"s32", MatrixType::s32},
    };
    for (const auto& [name, type] : kTypes)
        if (name == text) return type;
    return MatrixType::none;
}

bool is_byte(MatrixType type) { return type == MatrixType::s8 || type == MatrixType::u8; }

bool is_any_of(int shape, std::initializer_list<int> shapes) {
    return std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
}

// True if the multiplication exists: the shapes of PTX ISA 9.7.15 with a layout in this file.
bool multiplies(const MatrixForm& form) {
    const int shape = form.m * 10000 + form.n * 100 + form.k;
    const bool halves = form.a == MatrixType::f16 || form.a == MatrixType::bf16;
    const bool sums = form.c == MatrixType::f32 && form.d == MatrixType::f32;
    const bool in_f16 = form.a == MatrixType::f16 &&
                        (form.c == MatrixType::f16 || form.c == MatrixType::f32) &&
                        (form.d == MatrixType::f16 || form.d == MatrixType::f32);
    if (is_byte(form.a) && is_byte(form.b) && form.c == MatrixType::s32 &&
        form.d == MatrixType::s32)
        return form.opaque ? is_any_of(shape, {161616, 320816, 83216})
                           : is_any_of(shape, {80816, 160816, 160832});
    if (form.a != form.b) return false;
    if (halves && (sums || in_f16))
        return form.opaque ? is_any_of(shape, {161616, 320816, 83216})
                           : is_any_of(shape, {160808, 160816});
    if (form.a == MatrixType::tf32 && sums)
        return form.opaque ? shape == 161608 : is_any_of(shape, {160804, 160808});
    if (form.a == MatrixType::f64 && form.c == MatrixType::f64 && form.d == MatrixType::f64)
        return shape == 80804 || (!form.opaque && is_any_of(shape, {160804, 160808, 160816}));
    return false;
}

// True if a fragment of that part, type and shape can be loaded, or stored.
bool moves(const MatrixForm& form, bool stores) {
    const int shape = form.m * 10000 + form.n * 100 + form.k;
    const MatrixType type = form.a;
    if ((form.part == 'd') != stores) return false;
    if (type == MatrixType::f64) return shape == 80804;
    if (form.part == 'a' || form.part == 'b') {
        if (type == MatrixType::tf32) return shape == 161608;
        return (is_byte(type) || type == MatrixType::f16 || type == MatrixType::bf16) &&
               is_any_of(shape, {161616, 320816, 83216});
    }
    if (type == MatrixType::f32) return is_any_of(shape, {161608, 161616, 320816, 83216});
    return (type == MatrixType::f16 || type == MatrixType::s32) &&
           is_any_of(shape, {161616, 320816, 83216});
}

// False if a modifier is unknown.
bool read_form(const ptx::Instruction& source, MatrixForm& form, ptx::Space& space,
               std::vector<MatrixType>& types) {
    const auto is = [](std::string_view text, std::initializer_list<std::string_view> names) {
        return std::find(names.begin(), names.end(), text) != names.end();
    };
    for (const std::string& modifier : source.modifiers) {
        const std::string_view text = modifier;
        unsigned m, n, k;
        int read = 0;
        if (const MatrixType type = matrix_type(text); type != MatrixType::none) {
            types.push_back(type);
        } else if (text == "m8n8") {
            form.m = form.n = 8;
        } else if (std::sscanf(modifier.c_str(), "m%2un%2uk%2u%n", &m, &n, &k, &read) == 3 &&
                   size_t(read) == text.size()) {
            form.m = uint8_t(m), form.n = uint8_t(n), form.k = uint8_t(k);
        } else if (is(text, {"x1", "x2", "x4"})) {
            form.count = uint8_t(text[1] - '0');
        } else if (is(text, {"a", "b", "c", "d"})) {
            form.part = text[0];
        } else if (is(text, {"col", "trans"})) {
            form.by_column = true;
        } else if (text == "satfinite") {
            form.saturates = true;
        } else if (is(text, {"shared", "shared::cta"})) {
            space = ptx::Space::shared;
        } else if (text == "global") {
            space = ptx::Space::global;
        } else if (!is(text, {"sync", "aligned", "row", "b16", "mma", "load", "store", "rn"})) {
            return false;
        }
    }
    return true;
}

bool set_types(const std::vector<MatrixType>& types, MatrixForm& form) {
    if (types.size() == 2) {  // wmma with f16 names the accumulators' types only
        form.d = types[0], form.c = types[1];
        form.a = form.b = MatrixType::f16;
        return form.opaque;
    }
    if (types.size() != 4) return false;
    form.d = types[0], form.a = types[1], form.b = types[2], form.c = types[3];
    return true;
}

template <bool stores>
Handler rows_in(ptx::Space space) {
    return space == ptx::Space::shared ? move_rows<AddressKind::window, stores>
                                       : move_rows<AddressKind::generic, stores>;
}

template <bool stores>
Handler fragment_in(ptx::Space space) {
    switch (address_kind(space)) {
    case AddressKind::window: return move_fragment<AddressKind::window, stores>;
    case AddressKind::device: return move_fragment<AddressKind::device, stores>;
    default: return move_fragment<AddressKind::generic, stores>;
    }
}

}  // namespace

bool is_matrix(const ptx::Instruction& instruction) {
    for (const char* opcode : {"mma", "wmma", "ldmatrix", "stmatrix", "movmatrix"})
        if (instruction.opcode == opcode) return true;
    return false;
}

bool select_matrix_handler(const ptx::Instruction& source, Inst& inst, MemoryOp& op) {
    MatrixForm form;
    std::vector<MatrixType> types;
    form.opaque = source.opcode == "wmma";
    if (!read_form(source, form, op.space, types)) return false;
    op.count = 1;

    if (source.opcode == "movmatrix") {
        inst.run = transpose;
        return form.by_column && form.m == 8;
    }
    if (source.opcode == "ldmatrix" || source.opcode == "stmatrix") {
        op.size = 16;
        op.matrix = form;
        inst.run = source.opcode == "stmatrix" ? rows_in<true>(op.space) : rows_in<false>(op.space);
        return form.m == 8 && form.count != 0 && op.space != ptx::Space::global &&
               has_modifier(source, "b16");
    }
    const bool loads = has_modifier(source, "load"), stores = has_modifier(source, "store");
    if (loads || stores) {
        if (types.size() != 1) return false;
        form.a = form.b = form.c = form.d = types[0];
        if (loads == stores || !moves(form, stores)) return false;
        op.size = uint8_t(size_of(types[0]));
        op.matrix = form;
        inst.run = stores ? fragment_in<true>(op.space) : fragment_in<false>(op.space);
        return true;
    }
    if (!set_types(types, form) || !multiplies(form)) return false;
    op.matrix = form;
    op.size = 0;  // no memory access
    inst.run = mma;
    return true;
}

FragmentRegisters fragment_registers(const MatrixForm& form, char part) {
    if (form.count != 0) return {form.count, false};
    const Fragment found = fragment(form, part == 'm' ? form.part : part);
    return {size_t(found.registers()), cell_of(found.type) == 8};
}

}  // namespace cyrt::emu
