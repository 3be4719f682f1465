// Asynchronous copies from global to shared memory (cp.async), in groups. The threads that begin them
// wait for them.
#pragma once

#include "types.cuh"

namespace cyrt {

// Begins to copy 4, 8 or 16 bytes, or as many zeros if they are not there.
template <int BYTES> __device__ inline void copy_async(void* to, const void* from, bool there) {
    uint32 address = __cvta_generic_to_shared(to);
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                     "r"(there ? 16 : 0)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from),
                     "n"(BYTES), "r"(there ? BYTES : 0)
                     : "memory");
    }
}

// Ends a group, of the copies since the last one.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits for all groups but the latest GROUPS.
template <int GROUPS> __device__ inline void await_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}

// Waits for all copies, also those that are in no group.
__device__ inline void await_all_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace cyrt
