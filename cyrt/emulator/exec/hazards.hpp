// The search for hazards in the shared memory of a cluster, in checking mode: two accesses of a byte
// by different warps, at least one of them a write, that no synchronisation orders.
//
// Each warp has a clock of every warp: how much of that warp's work is ordered before its own next
// access. Who releases adds these clocks to those of a barrier or of a place in memory, and who
// acquires takes them over. An access is remembered with its warp and that warp's own clock.
//
// INVARIANTS
// - A cluster runs on one host thread, warp by warp, so no other warp's access comes between the
//   search and the access itself.
// - A cell is a word of shared memory, or a part of one that is also accessed in parts: a half, or a
//   byte if the program accesses bytes. It is empty unless it was used since start().
// - A warp's own clock grows after each release: what it does later is not ordered by that.
// - A read is forgotten at the write that is ordered after it: what comes after both is compared
//   with the write.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "exec/context.hpp"
#include "exec/memory_ops.hpp"

namespace cyrt::emu {

struct Program;

class Hazards {
  public:
    // Begins with the blocks of a cluster.
    void start(const Launch& launch, const Program& program, const ClusterMemory& memory);

    // A lane is about to access bytes of a block's shared memory, or with a strong access (atomic,
    // volatile, acquire, release) device memory. Warps are counted in the cluster.
    void see(uint32_t warp, int lane, const MemoryOp& op, Access access, uint32_t rank,
             uint32_t offset, uint32_t bytes, const std::byte* host);
    void see_device(uint32_t warp, uint64_t address, Access access);
    // Two writes of equal bytes are no hazard: compares what has been written since. Throws
    // FaultSignal, like see().
    void compare_writes();

    // A barrier of a block.
    void arrive(uint32_t warp, uint32_t rank, uint32_t id);
    void complete(uint32_t rank, uint32_t id, bool needs_all);
    void pass(uint32_t warp);  // the barrier that was completed last
    // The cluster's barrier.
    void arrive_in_cluster(uint32_t warp);
    void complete_in_cluster();
    void pass_in_cluster(uint32_t warp);
    // Barriers wait no more for lanes that exit, so what these did is ordered before what follows.
    void leave(uint32_t warp, uint32_t rank);

    // An mbarrier at that place: an arrival, which may end a phase, of the warp or of its copies
    // (cp.async.mbarrier); and a test that found the phase ended.
    void arrive_at(uint32_t warp, const std::byte* place, bool ends_phase, bool of_copies);
    void pass_at(uint32_t warp, const std::byte* place);

    // cp.async.commit_group, and a wait for all groups but the last `left`.
    void commit_copies(uint32_t warp, uint32_t lanes);
    void wait_for_copies(uint32_t warp, uint32_t lanes, uint32_t left);

  private:
    using Clock = uint32_t;

    // An access; or, if `many`, those of several agents: `op` is the index of their set.
    struct Slot {
        Clock clock = 0;     // 0: no access
        uint32_t op = 0;     // index in Program::memory_ops
        uint16_t agent = 0;  // a warp, or behind the warps the asynchronous copies of one
        uint8_t lane = 0;
        Access access = Access::read;
        bool many = false;
    };
    // The strong accesses of a cell, and the clocks that they and phases of an mbarrier hand over.
    struct Strong {
        Slot reads, writes;
        size_t released = 0, arrived = 0;  // clocks in handed_; 0: none
    };
    struct Cell {
        uint32_t start = 0;              // Hazards::start_ when it was used
        uint32_t strong = 0, parts = 0;  // 1 + the index in strong_, in split_; 0: none
        Slot reads, writes;
    };
    struct CopyGroup {
        Clock clock;
        uint32_t committed_by, pending;  // lanes; pending: they have issued copies and not waited
    };
    struct Write {  // unordered with an earlier one
        const std::byte* host;
        std::array<std::byte, 4> before;
        uint32_t size, rank, offset, bytes;
        Slot mine, other;
    };

    Clock* clocks_of(uint32_t warp) { return &clocks_[size_t(warp) * agents_]; }
    void join(Clock* into, const Clock* from) const;
    size_t new_clocks();
    void release(uint32_t warp, size_t& into);
    void acquire(uint32_t warp, size_t from);

    bool is_unordered(const Slot& slot, uint32_t warp) const;
    const Slot* find_unordered(const Slot& slot, uint32_t warp) const;
    bool holds(const Slot& slot, const Slot& mine) const;
    uint32_t new_set();
    void add(Slot& slot, const Slot& mine, uint32_t warp);
    void clear(Slot& slot);
    Slot copy(const Slot& slot);
    Cell& cell_at(uint32_t rank, uint32_t offset);
    Strong& strong_of(Cell& cell);
    Strong* strong_at(const std::byte* place);
    void split(Cell& cell);
    void merge(Cell& cell);

    struct Seen;
    bool is_known(uint32_t warp, Access access, uint32_t rank, uint32_t offset,
                  uint32_t bytes) const;
    void visit(Cell& cell, const Seen& seen, uint32_t from, uint32_t size);
    void visit_strong(Cell& cell, const Seen& seen);
    [[noreturn]] void fail(const Slot& mine, const Slot& other, uint32_t rank, uint32_t offset,
                           uint32_t bytes) const;
    std::string describe(const Slot& slot) const;

    const Launch* launch_ = nullptr;
    const Program* program_ = nullptr;
    const ClusterMemory* memory_ = nullptr;
    uint32_t start_ = 0;
    uint32_t warps_ = 0, warps_of_block_ = 0;
    uint32_t part_ = 1;            // bytes of a part of a word
    uint32_t agents_ = 0;          // warps, and their copies
    std::vector<Clock> clocks_;    // one for each warp
    std::vector<Clock> barriers_;  // 16 of each block
    std::vector<Clock> passed_;    // the barrier that was completed last
    std::vector<Clock> left_;      // each block's threads that have exited
    std::vector<Clock> cluster_arrived_, cluster_passed_;
    std::vector<Clock> handed_;                    // clocks of places in memory
    std::unordered_map<uint64_t, size_t> device_;  // addresses to clocks in handed_
    size_t given_ = 0;                             // all clocks that were given to device memory
    bool others_ = false;                          // the grid has other clusters
    std::vector<std::vector<Cell>> cells_;         // each block's words, a cell for each
    std::vector<Strong> strong_;
    std::vector<std::array<Cell, 4>> split_;
    std::vector<uint32_t> free_split_;
    // Sets of accesses, of agents_ each: their clocks, and the accesses themselves.
    std::vector<Clock> set_clocks_;
    std::vector<Slot> set_slots_;
    std::vector<uint32_t> free_sets_;
    std::vector<Write> writes_;
    std::vector<Clock> copies_;                   // clock of each warp's next copies
    std::vector<uint32_t> copying_;               // lanes with copies that are not committed
    std::vector<std::vector<CopyGroup>> groups_;  // committed ones, of each warp
};

}  // namespace cyrt::emu
