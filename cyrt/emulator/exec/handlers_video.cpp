// The video instructions: scalar ones on a byte, half or word of each operand (vadd ... vset), and
// those on 2 halves or 4 bytes at once (vadd2 ... vset4).
//
// They are rare and have many forms: one interpreter runs the code of a form.
#include "exec/handler_lanes.hpp"
#include "exec/handlers_table.hpp"

namespace cyrt::emu {
namespace {

enum Operation : u32 {
    kAdd,
    kSub,
    kAbsDiff,
    kMin,
    kMax,
    kAverage,
    kShl,
    kShr,
    kMad,
    kEq,
    kNe,
    kLt,
    kLe,
    kGt,
    kGe,
};
// The second operation on the result: with the third operand, or merged into it.
enum Second : u32 { kNone, kAddC, kMinC, kMaxC };

// A form as one template argument: the operation, and flags above it.
enum Flags : u32 {
    kOperation = 0xf,
    kSignedD = 1 << 4,
    kSignedA = 1 << 5,
    kSignedB = 1 << 6,
    kSat = 1 << 7,
    kWrap = 1 << 8,     // vshl and vshr wrap the count; else they clamp it
    kPlusOne = 1 << 9,  // vmad
    kShr7 = 1 << 10,
    kShr15 = 1 << 11,   // vmad
    kSecondShift = 12,  // 2 bits of Second
    kPairs = 1 << 14,
    kQuads = 1 << 15,  // SIMD
};

// Inst::extra, as produced by pack_video_selectors.
struct Selectors {
    u32 d;     // bit n: element n, and bit 4 for halves, bit 5 for bytes; 0: absent
    u32 a, b;  // 1 to 4: byte, 5 and 6: half, bit 12: an element in each 3 bits; 0: absent
};
CYRT_INLINE Selectors unpack(u32 extra) { return {extra & 63, extra >> 6 & 0x1fff, extra >> 19}; }

CYRT_INLINE s64 extend(u32 value, u32 width, bool is_signed) {
    const u32 up = 32 - width;
    return is_signed ? s64(s32(value << up) >> up) : s64(value << up >> up);
}
CYRT_INLINE s64 clamp_to(s64 value, u32 width, bool is_signed) {
    const s64 high = (s64(1) << (width - is_signed)) - 1;
    const s64 low = is_signed ? -high - 1 : 0;
    return value < low ? low : value > high ? high : value;
}

s64 operate(u32 code, s64 a, s64 b) {
    switch (code & kOperation) {
    case kAdd: return a + b;
    case kSub: return a - b;
    case kAbsDiff: return a < b ? b - a : a - b;
    case kMin: return a < b ? a : b;
    case kMax: return a > b ? a : b;
    case kAverage: return (a + b + (a + b >= 0)) >> 1;
    case kShl:
    case kShr: {
        const s64 count = code & kWrap ? b & 31 : b < 32 ? b : 32;
        return (code & kOperation) == kShl ? s64(u64(a) << count) : a >> count;
    }
    case kEq: return a == b;
    case kNe: return a != b;
    case kLt: return a < b;
    case kLe: return a <= b;
    case kGt: return a > b;
    default: return a >= b;
    }
}

s64 scalar_source(u32 word, u32 selector, bool is_signed) {
    if (selector == 0) return extend(word, 32, is_signed);
    if (selector < 5) return extend(word >> (selector - 1) * 8, 8, is_signed);
    return extend(word >> (selector - 5) * 16, 16, is_signed);
}
u32 run_scalar(u32 code, Selectors by, u32 a, u32 b, u32 c) {
    const s64 left = scalar_source(a, by.a, code & kSignedA);
    const s64 right = scalar_source(b, by.b, code & kSignedB);
    const bool is_signed = code & kSignedD;
    const u32 width = by.d == 0 ? 32 : by.d & 16 ? 16 : 8;
    if ((code & kOperation) == kMad) {
        // The sum of a 64-bit product, a word and one may need more than 64 bits.
        const bool any_signed = code & (kSignedA | kSignedB);
        __int128 sum = (__int128)(left)*right + extend(c, 32, any_signed) + !!(code & kPlusOne);
        sum >>= code & kShr7 ? 7 : code & kShr15 ? 15 : 0;
        if (!(code & kSat)) return u32(sum);
        const s64 bound = sum > INT64_MAX ? INT64_MAX : sum < INT64_MIN ? INT64_MIN : s64(sum);
        return u32(clamp_to(bound, 32, any_signed));
    }
    s64 result = operate(code, left, right);
    if (code & kSat) result = clamp_to(result, width, is_signed);
    if (by.d != 0) {
        const u32 at = u32(__builtin_ctz(by.d & 15)) * width, mask = ((1u << width) - 1) << at;
        return (u32(result) << at & mask) | (c & ~mask);
    }
    const s64 third = extend(c, 32, is_signed);
    const s64 word = extend(u32(result), 32, is_signed);
    switch (code >> kSecondShift & 3) {
    case kAddC: return u32(result) + c;
    case kMinC: return u32(word < third ? word : third);
    case kMaxC: return u32(word > third ? word : third);
    default: return u32(result);
    }
}

u32 run_simd(u32 code, Selectors by, u32 a, u32 b, u32 c) {
    const u32 count = code & kQuads ? 4 : 2, width = 32 / count;
    const u32 mask = by.d == 0 ? 15 : by.d & 15;
    const u64 both = u64(b) << 32 | a;
    u32 out = c;
    for (u32 n = 0; n < count; ++n) {
        if (!(mask >> n & 1)) continue;
        const u32 from_a = by.a ? by.a >> 3 * n & 7 : n;
        const u32 from_b = by.b ? by.b >> 3 * n & 7 : n + count;
        s64 result = operate(code, extend(u32(both >> from_a * width), width, code & kSignedA),
                             extend(u32(both >> from_b * width), width, code & kSignedB));
        if (code & kSat) result = clamp_to(result, width, code & kSignedD);
        if ((code >> kSecondShift & 3) == kAddC) {
            out += u32(result);
        } else {
            const u32 place = ((1u << width) - 1) << n * width;
            out = (u32(result) << n * width & place) | (out & ~place);
        }
    }
    return out;
}

CYRT_NOINLINE void run_video(Warp& warp, const Inst& inst, u32 code) {
    const u32 *a = cells<u32>(warp, inst.s[0]), *b = cells<u32>(warp, inst.s[1]);
    const u32* c = inst.s[2] == kNoSlot ? nullptr : cells<u32>(warp, inst.s[2]);
    const Selectors by = unpack(inst.extra);
    alignas(64) u32 out[kWarpSize];
    for (int i = 0; i < kWarpSize; ++i) {
        const u32 third = c ? c[i] : 0;
        out[i] = code & (kPairs | kQuads) ? run_simd(code, by, a[i], b[i], third)
                                          : run_scalar(code, by, a[i], b[i], third);
    }
    commit(warp, inst.d[0], out);
}
template <u32 Code> void video(Warp& warp, const Inst& inst) { run_video(warp, inst, Code); }

// clang-format off: a table, several rows a line
#define FORM(name, code) {name, video<(code)>}
// All signs of the types of d, a and b.
#define SIGN_A(form, name, d, code) \
    form(name d ".u32.u32", (code)), form(name d ".u32.s32", (code) | kSignedB), \
    form(name d ".s32.u32", (code) | kSignedA), \
    form(name d ".s32.s32", (code) | kSignedA | kSignedB)
#define SIGNS(form, name, code) \
    SIGN_A(form, name, ".u32", code), SIGN_A(form, name, ".s32", (code) | kSignedD)
#define WITH_SAT(form, name, code) \
    SIGNS(form, name, code), SIGNS(form, name ".sat", (code) | kSat)
#define SECONDS(form, signs, name, code) \
    signs(form, name, code), signs(form, name ".add", (code) | kAddC << kSecondShift), \
    signs(form, name ".min", (code) | kMinC << kSecondShift), \
    signs(form, name ".max", (code) | kMaxC << kSecondShift)
#define SCALAR(name, code) SECONDS(FORM, WITH_SAT, name, code)
#define SIMD_OF(name, code) \
    WITH_SAT(FORM, name, code), WITH_SAT(FORM, name ".add", (code) | kAddC << kSecondShift)
#define SIMD(name, code) SIMD_OF(name "2", (code) | kPairs), SIMD_OF(name "4", (code) | kQuads)

// A shift's count is unsigned.
#define SHIFT_SIGNS(form, name, code) \
    form(name ".u32.u32.u32", (code)), form(name ".u32.s32.u32", (code) | kSignedA), \
    form(name ".s32.u32.u32", (code) | kSignedD), \
    form(name ".s32.s32.u32", (code) | kSignedD | kSignedA)
#define SHIFT_SAT(form, name, code) \
    SHIFT_SIGNS(form, name, code), SHIFT_SIGNS(form, name ".sat", (code) | kSat)
#define SHIFT(name, code) \
    SECONDS(FORM, SHIFT_SAT, name ".clamp", code), \
    SECONDS(FORM, SHIFT_SAT, name ".wrap", (code) | kWrap)

#define MAD_OF(scale, code) \
    WITH_SAT(FORM, "vmad" scale, (code)), WITH_SAT(FORM, "vmad.po" scale, (code) | kPlusOne)

#define SET_SIGNS(form, name, code) SIGN_A(form, name, "", code)
#define SET(op, code) \
    SECONDS(FORM, SET_SIGNS, "vset." op, code), SET_OF("vset2." op, (code) | kPairs), \
    SET_OF("vset4." op, (code) | kQuads)
#define SET_OF(name, code) \
    SET_SIGNS(FORM, name, code), \
    SET_SIGNS(FORM, name ".add", (code) | kAddC << kSecondShift)

constexpr HandlerEntry entries[] = {
    SCALAR("vadd", kAdd), SCALAR("vsub", kSub), SCALAR("vabsdiff", kAbsDiff),
    SCALAR("vmin", kMin), SCALAR("vmax", kMax), SHIFT("vshl", kShl), SHIFT("vshr", kShr),
    MAD_OF("", kMad), MAD_OF(".shr7", kMad | kShr7), MAD_OF(".shr15", kMad | kShr15),
    SIMD("vadd", kAdd), SIMD("vsub", kSub), SIMD("vabsdiff", kAbsDiff), SIMD("vmin", kMin),
    SIMD("vmax", kMax), SIMD("vavrg", kAverage),
    SET("eq", kEq), SET("ne", kNe), SET("lt", kLt), SET("le", kLe), SET("gt", kGt),
    SET("ge", kGe),
};
// clang-format on

}  // namespace

CYRT_EMU_EXPORT(video, entries)

}  // namespace cyrt::emu
