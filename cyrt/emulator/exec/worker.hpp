// Resources that a thread keeps between launches, so that a small launch allocates nothing.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "exec/arena.hpp"
#include "exec/code.hpp"

namespace cyrt::emu {

class Block;
class Cluster;

struct Freed {
    void operator()(std::byte* at) const { std::free(at); }
};
using AlignedBytes = std::unique_ptr<std::byte[], Freed>;
AlignedBytes aligned_bytes(uint64_t size);

// A warp's registers and its lanes' local memory. Its slots already contain the constants, and the
// parameters of the launch for which they were last filled.
struct WarpStorage {
    AlignedBytes slots;
    AlignedBytes local;
    uint64_t params = 0;  // ProgramStore::params_version_ at that time
};

// An activation of a function, shared by the lanes that made the call together.
struct Frame {
    uint32_t return_pc = 0;
    uint32_t function = 0;
    int lanes = 0;  // lanes that have not returned
    Frame* parent[kWarpSize];
    std::vector<std::byte> saved;  // the function's slots, if it recurs
};

// A worker's resources for one program.
//
// INVARIANT: the last one returned is the first one reused: it is in the cache, and the warps of a
// block without barriers all run with one.
class ProgramStore {
  public:
    ProgramStore(const Program& program, uint32_t stack_bytes);

    bool is_for(const Program& program, uint32_t stack_bytes) const {
        return id_ == program.id && stack_bytes_ == stack_bytes;
    }
    uint32_t local_stride() const { return local_stride_; }

    // Storage acquired later is for launches with these parameters.
    void set_params(const Program& program, const std::byte* params);
    std::unique_ptr<WarpStorage> take(const Program& program);
    void give(std::unique_ptr<WarpStorage> storage) { free_.push_back(std::move(storage)); }

    std::vector<Region> regions;  // each memory instruction's last region; for one launch
    std::vector<Region> earlier;  // likewise, the one before it
    RecentRegions recent;         // likewise, of all instructions
    uint64_t last_use = 0;

  private:
    std::unique_ptr<WarpStorage> make(const Program& program) const;

    uint64_t id_;
    uint32_t stack_bytes_;
    uint32_t local_stride_;
    std::vector<std::byte> params_;
    uint64_t params_version_ = 0;  // counts their changes
    std::vector<std::unique_ptr<WarpStorage>> free_;
};

class Worker {
  public:
    Worker();
    ~Worker();

    ProgramStore& store(const Program& program, uint32_t stack_bytes);
    std::unique_ptr<Block> take_block();
    void give_block(std::unique_ptr<Block> block);
    std::unique_ptr<Cluster> take_cluster();
    void give_cluster(std::unique_ptr<Cluster> cluster);
    Frame* take_frame();
    void give_frame(Frame* frame) { free_frames_.push_back(frame); }

  private:
    std::vector<std::unique_ptr<ProgramStore>> stores_;
    std::vector<std::unique_ptr<Block>> free_blocks_;
    std::vector<std::unique_ptr<Cluster>> free_clusters_;
    std::vector<std::unique_ptr<Frame>> frames_;
    std::vector<Frame*> free_frames_;
    uint64_t uses_ = 0;
};

// A worker, borrowed for one launch on this thread.
class WorkerLease {
  public:
    WorkerLease();
    ~WorkerLease();
    WorkerLease(const WorkerLease&) = delete;
    WorkerLease& operator=(const WorkerLease&) = delete;
    Worker* operator->() const { return worker_.get(); }
    Worker& operator*() const { return *worker_; }

  private:
    std::unique_ptr<Worker> worker_;
};

}  // namespace cyrt::emu
