// What the present processor runs; the build asks, too.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace cyrt::emu {

// True if the processor and the system support everything in -march=x86-64-v3, including AVX.
inline bool has_v3() {
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) && (ecx & bit_MOVBE) &&
           __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && (ecx & bit_LZCNT);
#else
    return false;
#endif
}

}  // namespace cyrt::emu
