#include "exec/hazards.hpp"

#include <algorithm>
#include <cstring>

#include "exec/code.hpp"
#include "exec/lanes.hpp"

namespace cyrt::emu {

namespace {

constexpr uint32_t kWord = 4;

}  // namespace

struct Hazards::Seen {
    Slot slot;
    uint32_t warp;
    MemoryOrder order;
    uint32_t rank, offset, bytes;  // the lane's whole access
    const std::byte* host;
};

void Hazards::start(const Launch& launch, const Program& program, const ClusterMemory& memory) {
    launch_ = &launch;
    program_ = &program;
    memory_ = &memory;
    const uint32_t blocks = memory.count;
    warps_of_block_ = uint32_t((launch.block.count() + kWarpSize - 1) / kWarpSize);
    warps_ = blocks * warps_of_block_;
    agents_ = program.copies_async ? 2 * warps_ : warps_;
    part_ = program.least_access > 1 ? 2 : 1;
    clocks_.assign(size_t(warps_) * agents_, 0);
    for (uint32_t warp = 0; warp < warps_; ++warp) clocks_of(warp)[warp] = 1;
    barriers_.assign(size_t(blocks) * kBarriers * agents_, 0);
    passed_.assign(agents_, 0);
    left_.assign(size_t(blocks) * agents_, 0);
    cluster_arrived_.assign(agents_, 0);
    cluster_passed_.assign(agents_, 0);
    handed_.assign(agents_, 0);  // the offset 0 means none
    device_.clear();
    given_ = 0;
    others_ = launch.grid.count() > blocks;
    strong_.clear();
    split_.clear();
    free_split_.clear();
    set_clocks_.clear();
    set_slots_.clear();
    free_sets_.clear();
    writes_.clear();
    copies_.assign(program.copies_async ? warps_ : 0, 1);
    copying_.assign(copies_.size(), 0);
    groups_.resize(copies_.size());
    for (auto& groups : groups_) groups.clear();

    if (++start_ == 0) {  // it has wrapped around
        cells_.clear();
        start_ = 1;
    }
    if (cells_.size() < blocks) cells_.resize(blocks);
    const size_t words = (memory.blocks[0].bytes + kWord - 1) / kWord;
    for (uint32_t rank = 0; rank < blocks; ++rank)
        if (cells_[rank].size() < words) cells_[rank].resize(words);
}

// --- clocks -------------------------------------------------------------------------------------

void Hazards::join(Clock* into, const Clock* from) const {
    for (uint32_t i = 0; i < agents_; ++i) into[i] = std::max(into[i], from[i]);
}

size_t Hazards::new_clocks() {
    const size_t out = handed_.size();
    handed_.resize(out + agents_, 0);
    return out;
}

void Hazards::release(uint32_t warp, size_t& into) {
    if (into == 0) into = new_clocks();
    join(&handed_[into], clocks_of(warp));
}

void Hazards::acquire(uint32_t warp, size_t from) {
    if (from != 0) join(clocks_of(warp), &handed_[from]);
}

void Hazards::arrive(uint32_t warp, uint32_t rank, uint32_t id) {
    join(&barriers_[size_t(rank * kBarriers + id) * agents_], clocks_of(warp));
    ++clocks_of(warp)[warp];
}

void Hazards::complete(uint32_t rank, uint32_t id, bool needs_all) {
    Clock* const barrier = &barriers_[size_t(rank * kBarriers + id) * agents_];
    if (needs_all) join(barrier, &left_[size_t(rank) * agents_]);
    std::copy_n(barrier, agents_, passed_.data());
    std::fill_n(barrier, agents_, 0);
}

void Hazards::pass(uint32_t warp) { join(clocks_of(warp), passed_.data()); }

void Hazards::arrive_in_cluster(uint32_t warp) {
    join(cluster_arrived_.data(), clocks_of(warp));
    ++clocks_of(warp)[warp];
}

void Hazards::complete_in_cluster() {
    for (size_t at = 0; at < left_.size(); at += agents_) join(cluster_arrived_.data(), &left_[at]);
    cluster_passed_ = cluster_arrived_;  // all that arrive again have passed it
}

void Hazards::pass_in_cluster(uint32_t warp) { join(clocks_of(warp), cluster_passed_.data()); }

void Hazards::leave(uint32_t warp, uint32_t rank) {
    join(&left_[size_t(rank) * agents_], clocks_of(warp));
}

// --- cells --------------------------------------------------------------------------------------

bool Hazards::is_unordered(const Slot& slot, uint32_t warp) const {
    return slot.clock > clocks_[size_t(warp) * agents_ + slot.agent] && slot.agent != warp &&
           slot.agent != warps_ + warp;
}

const Hazards::Slot* Hazards::find_unordered(const Slot& slot, uint32_t warp) const {
    if (!slot.many) return is_unordered(slot, warp) ? &slot : nullptr;
    const size_t set = size_t(slot.op) * agents_;
    const Clock* const clocks = &set_clocks_[set];
    const Clock* const known = &clocks_[size_t(warp) * agents_];
    Clock later = 0;
    for (uint32_t i = 0; i < agents_; ++i) later |= clocks[i] > known[i];
    if (later == 0) return nullptr;
    for (uint32_t i = 0; i < agents_; ++i)
        if (clocks[i] != 0 && is_unordered(set_slots_[set + i], warp)) return &set_slots_[set + i];
    return nullptr;
}

// True if the slot has an access of the same agent at the same time.
bool Hazards::holds(const Slot& slot, const Slot& mine) const {
    if (slot.many) return set_clocks_[size_t(slot.op) * agents_ + mine.agent] == mine.clock;
    return slot.clock == mine.clock && slot.agent == mine.agent;
}

uint32_t Hazards::new_set() {
    uint32_t set = uint32_t(set_clocks_.size() / agents_);
    if (free_sets_.empty()) {
        set_clocks_.resize(set_clocks_.size() + agents_, 0);
        set_slots_.resize(set_slots_.size() + agents_);
    } else {
        set = free_sets_.back();
        free_sets_.pop_back();
        std::fill_n(&set_clocks_[size_t(set) * agents_], agents_, 0);
    }
    return set;
}

void Hazards::add(Slot& slot, const Slot& mine, uint32_t warp) {
    const auto put = [&](uint32_t set, const Slot& access) {
        set_clocks_[size_t(set) * agents_ + access.agent] = access.clock;
        set_slots_[size_t(set) * agents_ + access.agent] = access;
    };
    if (!slot.many) {
        if (!is_unordered(slot, warp)) {
            slot = mine;
            return;
        }
        const uint32_t set = new_set();
        put(set, slot);
        slot = {};
        slot.op = set;
        slot.many = true;
    }
    put(slot.op, mine);
}

void Hazards::clear(Slot& slot) {
    if (slot.many) free_sets_.push_back(slot.op);
    slot = {};
}

Hazards::Slot Hazards::copy(const Slot& slot) {
    if (!slot.many) return slot;
    Slot out = slot;
    out.op = new_set();
    const size_t from = size_t(slot.op) * agents_, to = size_t(out.op) * agents_;
    std::copy_n(&set_clocks_[from], agents_, &set_clocks_[to]);
    std::copy_n(&set_slots_[from], agents_, &set_slots_[to]);
    return out;
}

Hazards::Cell& Hazards::cell_at(uint32_t rank, uint32_t offset) {
    Cell& cell = cells_[rank][offset / kWord];
    if (cell.start != start_) {
        cell = {};
        cell.start = start_;
    }
    return cell;
}

Hazards::Strong& Hazards::strong_of(Cell& cell) {
    if (cell.strong == 0) {
        strong_.emplace_back();
        cell.strong = uint32_t(strong_.size());
    }
    return strong_[cell.strong - 1];
}

// Null if the place is not in the cluster's shared memory.
Hazards::Strong* Hazards::strong_at(const std::byte* place) {
    uint32_t rank = 0;
    const auto holds = [&](const BlockMemory& block) {
        return place >= block.shared && place < block.shared + block.bytes;
    };
    while (rank < memory_->count && !holds(memory_->blocks[rank])) ++rank;
    if (rank == memory_->count) return nullptr;
    Cell& cell = cell_at(rank, uint32_t(place - memory_->blocks[rank].shared));
    return &strong_of(cell.parts == 0 ? cell : split_[cell.parts - 1][0]);
}

// Each part gets what is known of the word.
void Hazards::split(Cell& cell) {
    if (free_split_.empty()) {
        split_.emplace_back();
        cell.parts = uint32_t(split_.size());
    } else {
        cell.parts = free_split_.back();
        free_split_.pop_back();
    }
    for (uint32_t i = 0; i < kWord / part_; ++i) {
        Cell& part = split_[cell.parts - 1][i];
        part = {};
        part.reads = copy(cell.reads);
        part.writes = copy(cell.writes);
        if (cell.strong == 0) continue;
        Strong strong = strong_[cell.strong - 1];
        strong.reads = copy(strong.reads);
        strong.writes = copy(strong.writes);
        for (size_t* clocks : {&strong.released, &strong.arrived}) {
            if (*clocks == 0) continue;
            const size_t fresh = new_clocks();
            std::copy_n(&handed_[*clocks], agents_, &handed_[fresh]);
            *clocks = fresh;
        }
        strong_.push_back(strong);
        part.strong = uint32_t(strong_.size());
    }
    clear(cell.reads);
    clear(cell.writes);
    cell.strong = 0;
}

// One cell again, after a write of the whole word.
void Hazards::merge(Cell& cell) {
    const std::array<Cell, 4>& parts = split_[cell.parts - 1];
    for (uint32_t i = 0; i < kWord / part_; ++i)
        if (parts[i].strong != 0 || parts[i].writes.many || parts[i].reads.clock != 0 ||
            parts[i].reads.many)
            return;
    cell.writes = parts[0].writes;
    free_split_.push_back(cell.parts);
    cell.parts = 0;
}

// --- accesses -----------------------------------------------------------------------------------

// The common case: one cell, to which the warp has done the same since its last release. Nothing has
// come between, or it would have been a hazard.
bool Hazards::is_known(uint32_t warp, Access access, uint32_t rank, uint32_t offset,
                       uint32_t bytes) const {
    const Cell& word = cells_[rank][offset / kWord];
    if (word.start != start_ || bytes != (word.parts == 0 ? kWord : part_)) return false;
    const Cell& cell = word.parts == 0 ? word : split_[word.parts - 1][offset % kWord / part_];
    const Clock now = clocks_[size_t(warp) * agents_ + warp];
    if (access == Access::write)
        return !cell.writes.many && cell.writes.clock == now && cell.writes.agent == warp &&
               cell.reads.clock == 0 && !cell.reads.many;
    if (cell.reads.many) return set_clocks_[size_t(cell.reads.op) * agents_ + warp] == now;
    return cell.reads.clock == now && cell.reads.agent == warp;
}

void Hazards::see(uint32_t warp, int lane, const MemoryOp& op, Access access, uint32_t rank,
                  uint32_t offset, uint32_t bytes, const std::byte* host) {
    if (op.order == MemoryOrder::plain && !op.async && is_known(warp, access, rank, offset, bytes))
        return;
    const bool copies = op.async && op.order == MemoryOrder::plain;
    Seen seen{{}, warp, op.order, rank, offset, bytes, host};
    seen.slot.clock = copies ? copies_[warp] : clocks_of(warp)[warp];
    seen.slot.op = op.cache;
    seen.slot.agent = uint16_t(copies ? warps_ + warp : warp);
    seen.slot.lane = uint8_t(lane);
    seen.slot.access = access;
    if (copies) copying_[warp] |= 1u << lane;

    const uint32_t end = offset + bytes;
    for (uint32_t word = offset / kWord * kWord; word < end; word += kWord) {
        Cell& cell = cell_at(rank, word);
        const bool whole = word >= offset && word + kWord <= end;
        if (whole && cell.parts == 0) {
            visit(cell, seen, word, kWord);
            continue;
        }
        if (cell.parts == 0) split(cell);
        const uint32_t last = std::min(word + kWord, end);
        for (uint32_t at = std::max(word, offset); at < last; at += part_)
            visit(split_[cell.parts - 1][(at - word) / part_], seen, at, part_);
        if (whole && access == Access::write && op.order == MemoryOrder::plain) merge(cell);
    }
    if (op.order == MemoryOrder::strong && access != Access::read) ++clocks_of(warp)[warp];
}

void Hazards::see_device(uint32_t warp, uint64_t address, Access access) {
    if (access == Access::read) {
        const auto found = device_.find(address);
        // Another cluster may have written it, after it had acquired what this one gave.
        acquire(warp, found != device_.end() ? found->second : given_);
        return;
    }
    size_t& clocks = device_[address];
    if (access == Access::update) acquire(warp, clocks);
    release(warp, clocks);
    if (others_) release(warp, given_);
    ++clocks_of(warp)[warp];
}

void Hazards::visit(Cell& cell, const Seen& seen, uint32_t from, uint32_t size) {
    const Slot& mine = seen.slot;
    const auto demand_order = [&](const Slot& slot) {
        if (const Slot* other = find_unordered(slot, seen.warp))
            fail(mine, *other, seen.rank, seen.offset, seen.bytes);
    };
    if (seen.order != MemoryOrder::plain) return visit_strong(cell, seen);
    if (mine.access == Access::read) {
        if (holds(cell.reads, mine)) return;
        demand_order(cell.writes);
        if (cell.strong != 0) demand_order(strong_[cell.strong - 1].writes);
        add(cell.reads, mine, seen.warp);
        return;
    }
    demand_order(cell.reads);
    if (cell.strong != 0) {
        demand_order(strong_[cell.strong - 1].reads);
        demand_order(strong_[cell.strong - 1].writes);
    }
    clear(cell.reads);
    if (const Slot* other = find_unordered(cell.writes, seen.warp)) {
        Write write{seen.host + (from - seen.offset),
                    {},
                    size,
                    seen.rank,
                    seen.offset,
                    seen.bytes,
                    mine,
                    *other};
        std::memcpy(write.before.data(), write.host, size);
        writes_.push_back(write);
        add(cell.writes, mine, seen.warp);
        return;
    }
    clear(cell.writes);
    cell.writes = mine;
}

void Hazards::visit_strong(Cell& cell, const Seen& seen) {
    Strong& strong = strong_of(cell);
    const bool hands_over = seen.order == MemoryOrder::strong;
    const Slot& mine = seen.slot;
    // What this access acquires comes too late for itself: it might have been the first of the two.
    for (const Slot* slot : {&cell.writes, &cell.reads}) {
        if (slot == &cell.reads && mine.access == Access::read) break;
        if (const Slot* other = find_unordered(*slot, seen.warp))
            fail(mine, *other, seen.rank, seen.offset, seen.bytes);
    }
    if (hands_over && mine.access != Access::write) acquire(seen.warp, strong.released);
    add(mine.access == Access::read ? strong.reads : strong.writes, mine, seen.warp);
    if (hands_over && mine.access != Access::read) release(seen.warp, strong.released);
}

void Hazards::compare_writes() {
    for (const Write& write : writes_)
        if (std::memcmp(write.host, write.before.data(), write.size) != 0)
            fail(write.mine, write.other, write.rank, write.offset, write.bytes);
    writes_.clear();
}

// --- mbarrier and cp.async ----------------------------------------------------------------------

void Hazards::arrive_at(uint32_t warp, const std::byte* place, bool ends_phase, bool of_copies) {
    Strong* const found = strong_at(place);
    if (!found) return;
    Strong& strong = *found;
    if (of_copies) {
        // Its copies are ordered before what follows the phase, not before its own next accesses.
        const Clock before = clocks_of(warp)[warps_ + warp];
        clocks_of(warp)[warps_ + warp] = copies_[warp]++;
        release(warp, strong.arrived);
        clocks_of(warp)[warps_ + warp] = before;
    } else {
        release(warp, strong.arrived);
    }
    ++clocks_of(warp)[warp];
    if (!ends_phase) return;
    if (strong.released == 0) strong.released = new_clocks();
    join(&handed_[strong.released], &handed_[strong.arrived]);
    std::fill_n(&handed_[strong.arrived], agents_, 0);
}

void Hazards::pass_at(uint32_t warp, const std::byte* place) {
    if (const Strong* strong = strong_at(place)) acquire(warp, strong->released);
}

void Hazards::commit_copies(uint32_t warp, uint32_t lanes) {
    groups_[warp].push_back({copies_[warp]++, lanes, copying_[warp] & lanes});
    copying_[warp] &= ~lanes;
}

void Hazards::wait_for_copies(uint32_t warp, uint32_t lanes, uint32_t left) {
    std::vector<CopyGroup>& groups = groups_[warp];
    size_t end = groups.size();
    for (; end > 0 && left > 0; --end)
        if (groups[end - 1].committed_by & lanes) --left;
    for (size_t i = 0; i < end; ++i) groups[i].pending &= ~lanes;
    size_t done = 0;
    while (done < end && groups[done].pending == 0) ++done;
    if (done == 0) return;
    Clock& known = clocks_of(warp)[warps_ + warp];
    known = std::max(known, groups[done - 1].clock);
    groups.erase(groups.begin(), groups.begin() + std::ptrdiff_t(done));
}

// --- faults -------------------------------------------------------------------------------------

std::string Hazards::describe(const Slot& slot) const {
    const uint32_t warp = slot.agent % warps_;
    const Dim3& size = launch_->block;
    const uint32_t thread = warp % warps_of_block_ * kWarpSize + slot.lane;
    const MemoryOp& op = program_->memory_ops[slot.op];
    std::string out = "thread (" + std::to_string(thread % size.x) + "," +
                      std::to_string(thread / size.x % size.y) + "," +
                      std::to_string(thread / size.x / size.y) + ")";
    if (warps_ > warps_of_block_)
        out += " of block " + std::to_string(warp / warps_of_block_) + " of the cluster";
    out += op.async                       ? " copies to asynchronously"
           : slot.access == Access::read  ? " reads"
           : slot.access == Access::write ? " writes"
                                          : " changes by an atomic access";
    return out + " at " + place_of(*program_, op.line);
}

void Hazards::fail(const Slot& mine, const Slot& other, uint32_t rank, uint32_t offset,
                   uint32_t bytes) const {
    const MemoryOp& op = program_->memory_ops[mine.op];
    const char* doing = op.async                       ? "asynchronous write"
                        : mine.access == Access::read  ? "read"
                        : mine.access == Access::write ? "write"
                                                       : "atomic access";
    std::string place = "address " + hex(offset) + " of shared memory";
    if (warps_ > warps_of_block_) place += " of block " + std::to_string(rank) + " of the cluster";
    throw FaultSignal{FaultKind::hazard, mine.lane,
                      std::string(doing) + " of " + std::to_string(bytes) + " bytes at " + place +
                          ", which " + describe(other) +
                          ": no synchronisation orders the two accesses of different warps",
                      op.line};
}

}  // namespace cyrt::emu
