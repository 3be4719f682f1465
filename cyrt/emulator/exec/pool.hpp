// The process's threads that help with large grids.
#pragma once

#include <functional>

namespace cyrt::emu {

// Work that several threads can do at once; the pool's threads call `work` once each.
struct PoolJob {
    std::function<void()> work;
    unsigned wanted = 0;   // helpers that have not started
    unsigned working = 0;  // helpers inside `work`
};

// INVARIANT: between help() and finish() the job is not moved; after finish() no thread of the pool
// refers to it.
class Pool {
  public:
    // Never destroyed: its threads are detached and may run while the process ends.
    static Pool& instance();

    void set_threads(unsigned count);
    unsigned threads() const;

    void help(PoolJob& job);
    void finish(PoolJob& job);

  private:
    Pool();
    void serve();

    struct State;
    State* state_;
};

}  // namespace cyrt::emu
