#include "exec/pool.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace cyrt::emu {

namespace {

unsigned processors_allowed() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return unsigned(CPU_COUNT(&set));
    return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

struct Pool::State {
    std::mutex mutex;
    std::condition_variable come, gone;
    std::vector<PoolJob*> open;  // jobs that need helpers
    unsigned started = 0;        // threads of the pool
    unsigned idle = 0;
    std::atomic<unsigned> limit{processors_allowed()};
};

Pool::Pool() : state_(new State) {}

Pool& Pool::instance() {
    static Pool* pool = new Pool;
    return *pool;
}

void Pool::set_threads(unsigned count) { state_->limit = std::max(1u, count); }
unsigned Pool::threads() const { return state_->limit; }

void Pool::help(PoolJob& job) {
    State& state = *state_;
    unsigned wake;
    {
        std::lock_guard lock(state.mutex);
        state.open.push_back(&job);
        wake = job.wanted;
        // The thread that launches works too.
        for (; state.started + 1 < state.limit && state.idle < wake; ++state.started, ++state.idle)
            std::thread([this] { serve(); }).detach();
    }
    if (wake == 1)
        state.come.notify_one();
    else
        state.come.notify_all();
}

void Pool::finish(PoolJob& job) {
    State& state = *state_;
    std::unique_lock lock(state.mutex);
    const auto at = std::find(state.open.begin(), state.open.end(), &job);
    if (at != state.open.end()) state.open.erase(at);
    state.gone.wait(lock, [&] { return job.working == 0; });
}

void Pool::serve() {
    State& state = *state_;
    std::unique_lock lock(state.mutex);
    for (;;) {
        state.come.wait(lock, [&] { return !state.open.empty(); });
        PoolJob& job = *state.open.front();
        if (--job.wanted == 0) state.open.erase(state.open.begin());
        ++job.working;
        --state.idle;
        lock.unlock();
        job.work();
        lock.lock();
        ++state.idle;
        if (--job.working == 0) state.gone.notify_all();
    }
}

}  // namespace cyrt::emu
