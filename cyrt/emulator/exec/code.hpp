// A prepared kernel: the flat code of the kernel and of every function that it can reach.
//
// INVARIANTS
// - `code` holds handler instructions (run != nullptr) and control instructions (run == nullptr,
//   `extra` indexes `controls`). Inst::d and Inst::s hold slots only, never other numbers.
// - A group of lanes waits only at a point that another group can reach: at a join, after a branch
//   or call, after a barrier. So the scheduler considers other groups at control instructions.
// - Callees precede their callers: by the rule of the lowest pc, a callee then runs to its end
//   before the lanes that did not call it continue, and they meet again after the call.
// - Every function has separate slots: a lane has at most one activation of a function that does
//   not recur, and one that recurs is saved at the call and restored at the return.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "exec/inst.hpp"
#include "exec/memory_ops.hpp"
#include "exec/specials.hpp"
#include "ptx/ast.hpp"

namespace cyrt::emu {

enum class ControlKind : uint8_t {
    join,           // a label: groups that meet here merge
    guard,          // the next `count` instructions run for the lanes whose s[0] is true
    jump,           // to `target`
    branch,         // to `target` if s[0] is true
    table,          // to tables[target][s[0]]
    call,           // functions[target]
    call_indirect,  // the function whose address is in s[0]
    system,         // SystemCall(target)
    ret,
    exit,
    member_sync,     // the next instruction runs once the lanes in s[0] have arrived
    warp_barrier,    // bar.warp.sync of the lanes in s[0]
    barrier,         // id s[0], threads s[1], predicate s[2], result d[0], BarrierOp(target)
    cluster_arrive,  // barrier.cluster; `target`: it is relaxed, and releases nothing
    cluster_wait,
    yield,  // nanosleep: other groups run first
    wait_dependencies,
    launch_dependents,
    trap,
    breakpoint,
};

enum class BarrierOp : uint8_t { sync, arrive, red_and, red_or, red_popc };

enum class SystemCall : uint8_t { print, assert_fail, allocate, release };

constexpr uint32_t kBarriers = 16;
// the id of a group parked at the cluster's barrier
constexpr uint32_t kClusterBarrier = kBarriers;

struct Control {
    ControlKind kind = ControlKind::join;
    bool negated = false;  // the predicate in s[0] counts as its opposite
    uint8_t count = 0;     // number of instructions that a guard governs
    uint32_t target = 0;
    int32_t cost = 0;  // what a backward branch takes from kBranchBudget
};

// Backward branches that a warp may take before other warps run. A loop that seems to wait for
// another thread is charged more for each.
constexpr int32_t kBranchBudget = 1 << 14;
constexpr int32_t kSpinCost = kBranchBudget / 64;

// The layout of a function's frame, relative to its base in the lane's local memory.
struct FrameLayout {
    std::vector<uint32_t> params, results;
    uint32_t bytes = 0;  // so far; a whole frame's size is rounded up to the frame alignment
};

struct FunctionCode {
    std::string name;
    FrameLayout frame;
    uint32_t entry = 0;            // pc
    uint32_t base_slot = kNoSlot;  // each lane's frame base; none for the kernel, whose base is 0
    bool recursive = false;        // several activations per lane are possible
    uint32_t first_slot = 0, end_slot = 0;  // its part of the register file, saved if it recurs
    std::vector<uint8_t> cells;             // the slots' sizes in that part, in order
};

struct ConstantSlot {
    uint64_t lo, hi;
    uint8_t cell;
    uint32_t slot;
};

// A parameter's value, extended like a load of `type`.
struct ParamSlot {
    ptx::Type type;
    uint8_t cell;
    uint32_t offset;  // bytes from the start of the parameters
    uint32_t slot;
};

// A register that may be read before it is written.
struct PoisonedSlot {
    uint32_t slot, bytes;
    bool is_predicate;  // a predicate starts as false: all bits are equal
};

struct Program {
    std::shared_ptr<const ptx::Module> module;
    std::string name;
    uint64_t id = 0;  // never reused: workers use it as a key

    std::vector<Inst> code;
    std::vector<Control> controls;
    std::vector<std::vector<uint32_t>> tables;
    std::vector<MemoryOp> memory_ops;
    std::vector<FrameCopy> frame_copies;
    std::vector<FunctionCode> functions;                // the kernel is the last
    std::unordered_map<uint64_t, uint32_t> by_address;  // functions that can be called by pointer

    uint32_t file_bytes = 0;  // size of a warp's register file
    std::vector<ConstantSlot> constants;
    std::vector<SpecialSlot> specials;
    std::vector<ParamSlot> params;
    std::vector<PoisonedSlot> poison;
    uint32_t scratch_slot = 0;      // as many 16-byte cells as an Inst has operands
    uint32_t stack_slot = kNoSlot;  // each lane's first free byte of local memory

    uint32_t param_bytes = 0;
    uint32_t static_shared = 0;
    uint32_t frame_bytes = 0;  // the kernel's own frame
    // For the frames of callees and for alloca; not used if the stack is open: a recursion, an
    // alloca or a call by pointer may need any number of bytes, and the launch limits them.
    uint32_t stack_bytes = 0;
    bool has_open_stack = false;
    uint32_t staging_bytes = 0;  // after the stack: arguments of a call that overflows
    bool uses_stack = false;     // calls, or alloca
    // griddepcontrol.launch_dependents; and before griddepcontrol.wait, see exec/trigger.hpp
    bool launches_dependents = false, triggers_before_waiting = false;
    bool uses_workspace = false;        // the grid barrier of cooperative groups
    bool uses_reserved_shared = false;  // their scratch memory
    bool uses_cluster_barrier = false;
    bool prints = false, uses_heap = false;
    bool copies_async = false;   // cp.async
    uint32_t least_access = 16;  // bytes of the smallest access that may be to shared memory
    bool has_loops = false;
};

// "PTX line 41 (k.cu:7)"; without the line of the source if the PTX does not have it.
std::string place_of(const Program& program, uint32_t line);
// "trap"; or "trap: index_out_of_range" if a label of that name is before it.
std::string trap_text(const Program& program, uint32_t line);

// Bytes of a register's cell for a value of that type.
uint8_t cell_of(ptx::Type type);

// The system function of that name ("vprintf"); false if there is none.
bool system_call_from(const std::string& name, SystemCall& out);
// True if parameters and results have the sizes that the function reads and writes.
bool is_declared_right(const ptx::Signature& declared, SystemCall call);

}  // namespace cyrt::emu
