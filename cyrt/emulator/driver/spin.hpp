// Waiting a moment without sleeping: waking a thread costs more than most operations take.
#pragma once

#include <chrono>
#include <thread>

namespace cyrt::emu {

// True once `done()` holds; false where it did not within about 20 microseconds.
template <class Done>
bool spin_until(Done done) {
    static const bool alone = std::thread::hardware_concurrency() < 2;
    if (done()) return true;
    if (alone) return false;
    auto give_up = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
    do {
        for (int i = 0; i < 16; ++i) {
            if (done()) return true;
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
    } while (std::chrono::steady_clock::now() < give_up);
    return done();
}

}  // namespace cyrt::emu
