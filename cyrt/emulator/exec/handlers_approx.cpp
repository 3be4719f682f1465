// f32: ex2, lg2, sin, cos, tanh.
#include "exec/handler_approx.hpp"
#include "exec/handlers_table.hpp"

namespace cyrt::emu {
namespace {

#define APPROX(name, Op)                                                     \
    {name ".approx.f32", apply<Single<Op, false, false>, float, float>}, {   \
        name ".approx.ftz.f32", apply<Single<Op, true, false>, float, float> \
    }

constexpr HandlerEntry entries[] = {
    APPROX("ex2", Ex2),
    APPROX("lg2", Lg2),
    APPROX("sin", Sin),
    APPROX("cos", Cos),
    {"tanh.approx.f32", apply<Single<Tanh, false, false>, float, float>},
};

}  // namespace

CYRT_EMU_EXPORT(approx, entries)

}  // namespace cyrt::emu
