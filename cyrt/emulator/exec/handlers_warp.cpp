// Communication between the lanes of a warp: shfl, vote, match, redux, activemask, elect.
//
// The scheduler runs a .sync instruction when its members have arrived; lanes of several member
// masks may run it together, so each lane's own mask counts. A value read from a lane that does not
// take part is unspecified in PTX: here it is the register's last value.
#include "exec/handler_floats.hpp"
#include "exec/handlers_table.hpp"

namespace cyrt::emu {
namespace {

// The lanes whose cell is not zero, as bits.
CYRT_INLINE u32 ballot(const u32* predicate) {
    u32 bits = 0;
    CYRT_LANES bits |= (predicate[i] ? 1u : 0u) << i;
    return bits;
}

// Members of each lane: the running lanes of its mask, or all running lanes without a mask.
CYRT_INLINE void load_members(const Warp& warp, u32 slot, u32* members) {
    if (slot == kNoSlot) {
        CYRT_LANES members[i] = warp.active;
        return;
    }
    const u32* mask = cells<u32>(warp, slot);
    CYRT_LANES members[i] = mask[i] & warp.active;
}

enum class Shuffle { up, down, bfly, idx };
template <Shuffle Mode> void shfl(Warp& warp, const Inst& inst) {
    const u32 *b = cells<u32>(warp, inst.s[1]), *c = cells<u32>(warp, inst.s[2]);
    alignas(64) u32 a[kWarpSize], from[kWarpSize], valid[kWarpSize], out[kWarpSize];
    std::memcpy(a, cells<u32>(warp, inst.s[0]), sizeof a);
    CYRT_LANES {
        const s32 lane = i, by = s32(b[i] & 31), clamp = s32(c[i] & 31);
        const s32 segment = s32(c[i] >> 8 & 31);
        const s32 first = lane & segment, last = first | (clamp & ~segment);
        const s32 source = Mode == Shuffle::up     ? lane - by
                           : Mode == Shuffle::down ? lane + by
                           : Mode == Shuffle::bfly ? lane ^ by
                                                   : first | (by & ~segment);
        const bool inside = Mode == Shuffle::up ? source >= last : source <= last;
        from[i] = u32(inside ? source : lane) & 31;
        valid[i] = inside ? ~0u : 0u;
    }
    for (int i = 0; i < kWarpSize; ++i) out[i] = a[from[i]];
    if (inst.d[0] != kNoSlot) commit(warp, inst.d[0], out);
    if (inst.d[1] != kNoSlot) commit(warp, inst.d[1], valid);
}

enum class Vote { all, any, uni, ballot };
template <Vote Mode> void vote(Warp& warp, const Inst& inst) {
    alignas(64) u32 members[kWarpSize], out[kWarpSize];
    load_members(warp, inst.s[1], members);
    const u32 votes = ballot(cells<u32>(warp, inst.s[0]));
    CYRT_LANES {
        const u32 yes = votes & members[i];
        const bool holds = Mode == Vote::all   ? yes == members[i]
                           : Mode == Vote::any ? yes != 0
                                               : yes == 0 || yes == members[i];
        out[i] = Mode == Vote::ballot ? yes : holds ? ~0u : 0u;
    }
    commit(warp, inst.d[0], out);
}

// The lanes with the same value as lane `of`.
template <class T> CYRT_INLINE u32 lanes_equal(const T* values, int of) {
    u32 bits = 0;
    CYRT_LANES bits |= (values[i] == values[of] ? 1u : 0u) << i;
    return bits;
}
template <class T> void match_any(Warp& warp, const Inst& inst) {
    alignas(64) u32 members[kWarpSize], out[kWarpSize];
    load_members(warp, inst.s[1], members);
    const T* values = cells<T>(warp, inst.s[0]);
    for (u32 pending = warp.active; pending != 0;) {
        const u32 equal = lanes_equal(values, __builtin_ctz(pending));
        for (u32 some = equal & pending; some != 0; some &= some - 1) {
            const int lane = __builtin_ctz(some);
            out[lane] = equal & members[lane];
        }
        pending &= ~equal;
    }
    commit(warp, inst.d[0], out);
}

// Calls f(members, lanes) for each set of lanes with the same mask.
template <class F> CYRT_INLINE void each_group(const Warp& warp, const u32* members, F f) {
    for (u32 pending = warp.active; pending != 0;) {
        const int leader = __builtin_ctz(pending);
        const u32 lanes = lanes_equal(members, leader) & pending;
        f(members[leader], lanes);
        pending &= ~lanes;
    }
}
CYRT_INLINE void fill(u32* out, u32 lanes, u32 value) {
    CYRT_LANES out[i] = lanes >> i & 1 ? value : out[i];
}

template <class T> void match_all(Warp& warp, const Inst& inst) {
    alignas(64) u32 members[kWarpSize], out[kWarpSize], truth[kWarpSize];
    load_members(warp, inst.s[1], members);
    const T* values = cells<T>(warp, inst.s[0]);
    each_group(warp, members, [&](u32 group, u32 lanes) __attribute__((always_inline)) {
        const int any = group != 0 ? __builtin_ctz(group) : 0;
        const bool all = (lanes_equal(values, any) & group) == group;
        fill(out, lanes, all ? group : 0);
        fill(truth, lanes, all ? ~0u : 0u);
    });
    if (inst.d[0] != kNoSlot) commit(warp, inst.d[0], out);
    if (inst.d[1] != kNoSlot) commit(warp, inst.d[1], truth);
}

struct AddUp {
    static CYRT_INLINE u32 of(u32 a, u32 b) { return a + b; }
};
struct And {
    static CYRT_INLINE u32 of(u32 a, u32 b) { return a & b; }
};
struct Or {
    static CYRT_INLINE u32 of(u32 a, u32 b) { return a | b; }
};
struct Xor {
    static CYRT_INLINE u32 of(u32 a, u32 b) { return a ^ b; }
};
template <class T> struct Least {
    static CYRT_INLINE u32 of(u32 a, u32 b) { return T(a) < T(b) ? a : b; }
};
template <class T> struct Greatest {
    static CYRT_INLINE u32 of(u32 a, u32 b) { return T(a) > T(b) ? a : b; }
};
template <class Op, bool Magnitude> struct OfFloats {
    static CYRT_INLINE u32 of(u32 a, u32 b) {
        const u32 keep = Magnitude ? 0x7fffffffu : ~0u;
        return bits_as<u32>(canonical(Op::of(bits_as<float>(a & keep), bits_as<float>(b & keep))));
    }
};
template <class Op> void redux(Warp& warp, const Inst& inst) {
    alignas(64) u32 members[kWarpSize], out[kWarpSize];
    load_members(warp, inst.s[1], members);
    const u32* values = cells<u32>(warp, inst.s[0]);
    each_group(warp, members, [&](u32 group, u32 lanes) __attribute__((always_inline)) {
        // All these operations except add and xor may use a value twice; add and xor begin with 0.
        const bool sums = std::is_same_v<Op, AddUp> || std::is_same_v<Op, Xor>;
        u32 total = sums ? 0 : values[group != 0 ? __builtin_ctz(group) : 0];
        for (u32 left = group; left != 0; left &= left - 1)
            total = Op::of(total, values[__builtin_ctz(left)]);
        fill(out, lanes, total);
    });
    commit(warp, inst.d[0], out);
}

void activemask(Warp& warp, const Inst& inst) {
    alignas(64) u32 out[kWarpSize];
    CYRT_LANES out[i] = warp.active;
    commit(warp, inst.d[0], out);
}

// The lowest member is elected.
void elect(Warp& warp, const Inst& inst) {
    alignas(64) u32 members[kWarpSize], out[kWarpSize], truth[kWarpSize];
    load_members(warp, inst.s[0], members);
    for (int i = 0; i < kWarpSize; ++i) {
        out[i] = members[i] != 0 ? u32(__builtin_ctz(members[i])) : 0;
        truth[i] = out[i] == u32(i) ? ~0u : 0u;
    }
    if (inst.d[0] != kNoSlot) commit(warp, inst.d[0], out);
    if (inst.d[1] != kNoSlot) commit(warp, inst.d[1], truth);
}

// clang-format off: a table, several rows a line
#define SHFL(mode, Mode) \
    {"shfl." mode ".b32", shfl<Mode>}, {"shfl.sync." mode ".b32", shfl<Mode>}
#define VOTE(mode, Mode) {"vote." mode, vote<Mode>}, {"vote.sync." mode, vote<Mode>}
#define REDUX_F32(name, Op) \
    {"redux.sync." name ".f32", redux<OfFloats<Op, false>>}, \
    {"redux.sync." name ".abs.f32", redux<OfFloats<Op, true>>}, \
    {"redux.sync." name ".NaN.f32", redux<OfFloats<NanWins<Op>, false>>}, \
    {"redux.sync." name ".abs.NaN.f32", redux<OfFloats<NanWins<Op>, true>>}

constexpr HandlerEntry entries[] = {
    SHFL("up", Shuffle::up), SHFL("down", Shuffle::down), SHFL("bfly", Shuffle::bfly),
    SHFL("idx", Shuffle::idx),
    VOTE("all.pred", Vote::all), VOTE("any.pred", Vote::any), VOTE("uni.pred", Vote::uni),
    VOTE("ballot.b32", Vote::ballot),
    {"match.any.sync.b32", match_any<u32>}, {"match.any.sync.b64", match_any<u64>},
    {"match.all.sync.b32", match_all<u32>}, {"match.all.sync.b64", match_all<u64>},

    {"redux.sync.add.u32", redux<AddUp>}, {"redux.sync.add.s32", redux<AddUp>},
    {"redux.sync.min.u32", redux<Least<u32>>}, {"redux.sync.min.s32", redux<Least<s32>>},
    {"redux.sync.max.u32", redux<Greatest<u32>>}, {"redux.sync.max.s32", redux<Greatest<s32>>},
    {"redux.sync.and.b32", redux<And>}, {"redux.sync.or.b32", redux<Or>},
    {"redux.sync.xor.b32", redux<Xor>}, REDUX_F32("min", Min), REDUX_F32("max", Max),

    {"activemask.b32", activemask}, {"elect.sync", elect},
};
// clang-format on

}  // namespace

CYRT_EMU_EXPORT(warp, entries)

}  // namespace cyrt::emu
