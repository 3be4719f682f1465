// A short wait without sleeping: waking a thread costs more than most operations take.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace cyrt::emu {

// After a yield that took long nobody spins for a while: other threads need the processors, and one
// that is woken gets a processor sooner than one that has yielded.
inline std::atomic<std::chrono::steady_clock::time_point> crowded_until{};

// True once `done()` holds; false if it does not within about 20 microseconds. Yields meanwhile:
// the other thread may need this processor.
template <class Done>
bool spin_until(Done done) {
    using namespace std::chrono_literals;
    if (done()) return true;
    auto now = std::chrono::steady_clock::now();
    if (now < crowded_until.load(std::memory_order_relaxed)) return false;
    auto give_up = now + 20us;
    do {
        for (int i = 0; i < 16; ++i) {
            if (done()) return true;
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
        auto before = std::chrono::steady_clock::now();
        std::this_thread::yield();
        now = std::chrono::steady_clock::now();
        if (now - before > 500us)
            crowded_until.store(now + 8 * (now - before), std::memory_order_relaxed);
    } while (now < give_up);
    return done();
}

}  // namespace cyrt::emu
