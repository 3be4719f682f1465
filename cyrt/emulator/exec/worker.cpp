#include "exec/worker.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

#include "exec/block.hpp"
#include "exec/cluster.hpp"
#include "exec/reach.hpp"

namespace cyrt::emu {

namespace {

constexpr size_t kKeptPrograms = 16;
constexpr size_t kKeptBlocks = 64;
constexpr int kPoison = 0xcb;  // the arena's value

struct Workers {
    std::mutex mutex;
    std::vector<std::unique_ptr<Worker>> idle;
};

// Never destroyed: detached threads may still use it while the process ends.
Workers& workers() {
    static Workers* all = new Workers;
    return *all;
}

template <typename Cell>
void fill_constant(std::byte* at, Cell value) {
    for (int lane = 0; lane < kWarpSize; ++lane)
        std::memcpy(at + lane * sizeof value, &value, sizeof value);
}

struct Cell128 {
    uint64_t lo, hi;
};

void fill_param(const ParamSlot& param, const std::byte* params, std::byte* slots) {
    const uint32_t size = ptx::size_of(param.type);
    uint64_t value = 0;
    std::memcpy(&value, params + param.offset, size);
    const uint32_t unused = 64 - 8 * size;
    if (ptx::is_signed(param.type)) value = uint64_t(int64_t(value << unused) >> unused);
    if (param.cell == 4)
        fill_constant(slots + param.slot, uint32_t(value));
    else if (param.cell == 8)
        fill_constant(slots + param.slot, value);
    else
        fill_constant(slots + param.slot, Cell128{value, 0});
}

}  // namespace

AlignedBytes aligned_bytes(uint64_t size) {
    void* at = std::aligned_alloc(64, round_up(std::max<uint64_t>(size, 64), uint64_t(64)));
    if (!at) throw std::bad_alloc();
    return AlignedBytes(static_cast<std::byte*>(at));
}

ProgramStore::ProgramStore(const Program& program, uint32_t stack_bytes)
    : id_(program.id), stack_bytes_(stack_bytes) {
    const uint32_t bytes = program.frame_bytes + stack_bytes + program.staging_bytes;
    // An odd number of cache lines: the lanes' frames do not map to the same cache set.
    local_stride_ = round_up(bytes, 64u) | 64u;
}

void ProgramStore::set_params(const Program& program, const std::byte* params) {
    if (params_version_ != 0 && std::equal(params_.begin(), params_.end(), params)) return;
    params_.assign(params, params + program.param_bytes);
    ++params_version_;
}

std::unique_ptr<WarpStorage> ProgramStore::take(const Program& program) {
    auto out = free_.empty() ? make(program) : std::move(free_.back());
    if (!free_.empty()) free_.pop_back();
    if (out->params != params_version_) {
        for (const ParamSlot& param : program.params)
            fill_param(param, params_.data(), out->slots.get());
        out->params = params_version_;
    }
    return out;
}

std::unique_ptr<WarpStorage> ProgramStore::make(const Program& program) const {
    auto out = std::make_unique<WarpStorage>();
    out->slots = aligned_bytes(program.file_bytes);
    out->local = aligned_bytes(uint64_t(local_stride_) * kWarpSize);
    std::byte* slots = out->slots.get();
    std::memset(slots, kPoison, program.file_bytes);
    for (const ConstantSlot& constant : program.constants) {
        std::byte* at = slots + constant.slot;
        if (constant.cell == 4)
            fill_constant(at, uint32_t(constant.lo));
        else if (constant.cell == 8)
            fill_constant(at, constant.lo);
        else
            fill_constant(at, Cell128{constant.lo, constant.hi});
    }
    return out;
}

Worker::Worker() = default;
Worker::~Worker() = default;

ProgramStore& Worker::store(const Program& program, uint32_t stack_bytes) {
    ++uses_;
    auto found = std::find_if(stores_.begin(), stores_.end(), [&](const auto& store) {
        return store->is_for(program, stack_bytes);
    });
    if (found == stores_.end()) {
        if (stores_.size() >= kKeptPrograms)
            stores_.erase(
                std::min_element(stores_.begin(), stores_.end(), [](const auto& a, const auto& b) {
                    return a->last_use < b->last_use;
                }));
        stores_.push_back(std::make_unique<ProgramStore>(program, stack_bytes));
        found = stores_.end() - 1;
    }
    (*found)->last_use = uses_;
    return **found;
}

std::unique_ptr<Block> Worker::take_block() {
    if (free_blocks_.empty()) return std::make_unique<Block>();
    auto out = std::move(free_blocks_.back());
    free_blocks_.pop_back();
    return out;
}

void Worker::give_block(std::unique_ptr<Block> block) {
    if (free_blocks_.size() < kKeptBlocks) free_blocks_.push_back(std::move(block));
}

std::unique_ptr<Cluster> Worker::take_cluster() {
    if (free_clusters_.empty()) return std::make_unique<Cluster>();
    auto out = std::move(free_clusters_.back());
    free_clusters_.pop_back();
    return out;
}

void Worker::give_cluster(std::unique_ptr<Cluster> cluster) {
    if (free_clusters_.size() < kKeptBlocks) free_clusters_.push_back(std::move(cluster));
}

Frame* Worker::take_frame() {
    if (free_frames_.empty()) {
        frames_.push_back(std::make_unique<Frame>());
        return frames_.back().get();
    }
    Frame* out = free_frames_.back();
    free_frames_.pop_back();
    return out;
}

WorkerLease::WorkerLease() {
    Workers& all = workers();
    {
        std::lock_guard lock(all.mutex);
        if (!all.idle.empty()) {
            worker_ = std::move(all.idle.back());
            all.idle.pop_back();
        }
    }
    if (!worker_) worker_ = std::make_unique<Worker>();
}

WorkerLease::~WorkerLease() {
    Workers& all = workers();
    std::lock_guard lock(all.mutex);
    all.idle.push_back(std::move(worker_));
}

}  // namespace cyrt::emu
