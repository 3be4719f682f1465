// A short wait without sleeping: waking a thread costs more than most operations take.
#pragma once

#include <chrono>
#include <thread>

namespace cyrt::emu {

// True once `done()` holds; false if it does not within about 20 microseconds. Yields meanwhile:
// the other thread may need this processor.
template <class Done>
bool spin_until(Done done) {
    if (done()) return true;
    auto give_up = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
    do {
        for (int i = 0; i < 16; ++i) {
            if (done()) return true;
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
        std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < give_up);
    return done();
}

}  // namespace cyrt::emu
