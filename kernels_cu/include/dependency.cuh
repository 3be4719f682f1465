// Programmatic dependent launch: a kernel may start while the one it depends on still runs.
#pragma once

namespace cyrt {

// Each thread's first statement, before any return: until it returns, nothing in global memory may
// be touched. So loads here must not be hoisted: no __restrict__, __ldg or .nc anywhere.
__device__ inline void wait_for_dependencies() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel start early. It pays for grids that leave the device room, and costs others.
__device__ inline void launch_dependents() {
#if __CUDA_ARCH__ >= 900
    if (gridDim.x <= 128) {
        asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    }
#endif
}

}  // namespace cyrt
