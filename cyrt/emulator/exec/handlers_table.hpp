// The handlers that a family provides for look-up.
//
// INVARIANT: a family's file may be compiled twice, for two instruction sets, and its table accessor is
// its only function with external linkage; headers it includes keep theirs in an anonymous
// namespace. A shared symbol would let the linker keep the copy that old processors cannot run.
#pragma once

#include <cstddef>

#include "exec/inst.hpp"

namespace cyrt::emu {

struct HandlerEntry {
    const char* name;
    Handler run;
};

struct HandlerTable {
    const HandlerEntry* entries;
    size_t count;
};

#define CYRT_EMU_FAMILIES(apply)                                                                 \
    apply(integer) apply(wide) apply(bits) apply(float) apply(approx) apply(half) apply(convert) \
        apply(narrow) apply(compare) apply(video) apply(warp) apply(memory)

#define CYRT_EMU_DECLARE(family)           \
    HandlerTable family##_handlers_base(); \
    HandlerTable family##_handlers_v3();
CYRT_EMU_FAMILIES(CYRT_EMU_DECLARE)
#undef CYRT_EMU_DECLARE

// The build defines CYRT_EMU_ISA as `base` or `v3`, and CYRT_EMU_HAS_BASE and CYRT_EMU_HAS_V3 for
// those that were compiled.
#define CYRT_EMU_JOIN2(family, isa) family##_handlers_##isa
#define CYRT_EMU_JOIN(family, isa) CYRT_EMU_JOIN2(family, isa)
#define CYRT_EMU_EXPORT(family, entries)                        \
    HandlerTable CYRT_EMU_JOIN(family, CYRT_EMU_ISA)() {        \
        return {entries, sizeof(entries) / sizeof(entries[0])}; \
    }

}  // namespace cyrt::emu
