"""Hazards in shared memory, which checking mode finds between the warps of a block or cluster."""

from __future__ import annotations

import json
import re
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("only_emulated")

GROUPS = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
"""
PRELUDE = r"""
typedef unsigned long long u64;
#define WARP (threadIdx.x / 32)
#define RANK (blockIdx.x % 2)
#define LANE (threadIdx.x % 32)
#define FIRST (LANE == 0)
#define FENCE asm volatile("" ::: "memory")  // for the compiler alone
__device__ unsigned near(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
#define BAR(n, count) asm volatile("bar.sync " #n ", " #count ";" ::: "memory")
#define ARRIVE(n, count) asm volatile("bar.arrive " #n ", " #count ";" ::: "memory")
#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" \
    :: "r"(near(to)), "l"(from) : "memory")
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
#define CLUSTER_ARRIVE(how) asm volatile("barrier.cluster.arrive" how ";" ::: "memory")
#define CLUSTER_WAIT asm volatile("barrier.cluster.wait;" ::: "memory")
__device__ int* remote(int* p, unsigned rank) {
    u64 out;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(out) : "l"(p), "r"(rank));
    return (int*)out;
}
__device__ void initialise(u64* b, int n) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(near(b)), "r"(n) : "memory");
}
__device__ void arrive(u64* b) {
    asm volatile("{.reg .b64 t; mbarrier.arrive.shared.b64 t, [%0];}" :: "r"(near(b)) : "memory");
}
__device__ void wait(u64* b, int parity) {
    unsigned done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2;"
                     " selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(near(b)), "r"(parity) : "memory");
}
__device__ int ld_acquire(int* p) {
    int v;
    asm volatile("ld.acquire.cta.shared.s32 %0, [%1];" : "=r"(v) : "r"(near(p)) : "memory");
    return v;
}
__device__ void st_release(int* p, int v) {
    asm volatile("st.release.cta.shared.s32 [%0], %1;" :: "r"(near(p)), "r"(v) : "memory");
}
"""

# A kernel's body and its launch: threads of a block, blocks of a cluster. `y` has 4096 ints, all 0.
# Without a second text there is no hazard; else it matches the report.
CASES = {
    # --- barriers of a block
    "read, barrier missing, write": (
        "__shared__ int s[4]; if (threadIdx.x == 0) s[0] = 7; __syncthreads(); int v = s[0];\n"
        "if (FIRST) s[WARP] = 100 + WARP; __syncthreads(); y[threadIdx.x] = v;",
        r"write of 4 bytes at address 0x0 of shared memory, which thread \(\d+,0,0\) reads at PTX",
    ),
    "read, barrier, write": (
        "__shared__ int s[4]; if (threadIdx.x == 0) s[0] = 7; __syncthreads(); int v = s[0];\n"
        "__syncthreads(); if (FIRST) s[WARP] = 100 + WARP; __syncthreads(); y[threadIdx.x] = v;",
    ),
    "write, barrier missing, read": (
        "__shared__ int s[128]; s[threadIdx.x] = 0; __syncthreads(); s[threadIdx.x] = 1;\n"
        "y[threadIdx.x] = s[threadIdx.x ^ 32];",
        "read of 4 bytes at .* writes at PTX line|write of 4 bytes at .* reads at PTX line",
        64,
    ),
    "every second barrier is missing": (
        "__shared__ int s[128]; for (int i = 0; i < 4; ++i) { s[threadIdx.x] = i;\n"
        "__syncthreads(); y[threadIdx.x] += s[127 - threadIdx.x]; }",
        "read of 4 bytes at .* writes at PTX line|write of 4 bytes at .* reads at PTX line",
    ),
    "two buffers need one barrier": (
        "__shared__ int s[2][128]; for (int i = 0; i < 9; ++i) { s[i & 1][threadIdx.x] = i;\n"
        "__syncthreads(); y[threadIdx.x] += s[i & 1][127 - threadIdx.x]; }",
    ),
    "barriers that reduce": (
        "__shared__ int s[128]; s[threadIdx.x] = 1; int v = __syncthreads_count(LANE < 3);\n"
        "v += s[127 - threadIdx.x]; v += __syncthreads_or(v); s[threadIdx.x] = v;\n"
        "v += __syncthreads_and(v); y[threadIdx.x] = s[127 - threadIdx.x] + v;",
    ),
    "a named barrier of two warps": (
        "__shared__ int s[64]; if (WARP < 2) { s[threadIdx.x] = 1; BAR(1, 64);\n"
        "y[threadIdx.x] = s[63 - threadIdx.x]; }",
    ),
    "a named barrier orders no third warp": (
        "__shared__ int s[64]; if (WARP < 2) { s[threadIdx.x] = 1; BAR(1, 64); }\n"
        "else y[threadIdx.x] = s[LANE];",
        "reads? ",
    ),
    "a named barrier is used again by other warps": (
        "__shared__ int s[64]; if (WARP < 2) { s[threadIdx.x] = 1; BAR(1, 64); }\n"
        "else { BAR(1, 64); y[threadIdx.x] = s[LANE]; }",
        "read of 4 bytes at .* writes at",
    ),
    "an arrival releases": (
        "__shared__ int s[32]; if (WARP == 0) { s[LANE] = 1; ARRIVE(2, 64); }\n"
        "else if (WARP == 1) { BAR(2, 64); y[LANE] = s[31 - LANE]; }",
    ),
    "an arrival acquires nothing": (
        "__shared__ int s[32]; if (WARP == 0) { s[LANE] = 1; ARRIVE(2, 64); s[LANE] = 2; }\n"
        "else if (WARP == 1) { BAR(2, 64); y[LANE] = s[31 - LANE]; }",
        "writes at|write of",
    ),
    "a barrier counts threads that have left": (
        "__shared__ int s[128]; s[threadIdx.x] = 1; if (WARP) return; __syncthreads();\n"
        "for (int i = 0; i < 4; ++i) y[threadIdx.x] += s[32 * i + LANE];",
    ),
    "inside a warp nothing is looked for": (
        "__shared__ int s[32]; if (WARP) return; s[LANE] = 1; y[LANE] = s[31 - LANE]; s[0] = LANE;",
    ),
    # --- equal writes, parts of words
    "two writes of equal bytes": ("__shared__ int s; s = 7; __syncthreads(); y[threadIdx.x] = s;",),
    "two writes of other bytes": (
        "__shared__ int s; s = 7 + WARP; __syncthreads(); y[threadIdx.x] = s;",
        "write of 4 bytes at address 0x0 .* writes at PTX line",
    ),
    "the last write of all": (
        "__shared__ int s; if (threadIdx.x == 96) s = 1; if (threadIdx.x < 96) s = 2;\n"
        "__syncthreads(); y[threadIdx.x] = s;",
        "write of 4 bytes",
    ),
    "the second of two writes of a warp is another": (
        "__shared__ int s; s = 7; FENCE; if (WARP == 3) s = 8; __syncthreads();\n"
        "y[threadIdx.x] = s;",
        "write of 4 bytes at .* writes at",
    ),
    "a read beside a write of equal bytes": (
        "__shared__ int s[2]; s[x[0]] = 7; if (WARP == 1) y[threadIdx.x] = s[x[1] - 1];",
        "reads? |write of 4 bytes",
    ),
    "bytes of one word": (
        "__shared__ char s[128]; s[threadIdx.x] = threadIdx.x; s[threadIdx.x] += 1;\n"
        "__syncthreads(); y[threadIdx.x] = ((int*)s)[threadIdx.x / 4];",
    ),
    "a byte of each warp in one word": (
        "__shared__ int s; if (FIRST) ((volatile char*)&s)[WARP] = WARP; __syncthreads();\n"
        "y[threadIdx.x] = s; __syncthreads(); if (FIRST) ((char*)&s)[WARP] = 1;\n"
        "__syncthreads(); y[threadIdx.x] += s;",
    ),
    "a byte of a word that another warp reads": (
        "__shared__ int s[2]; if (threadIdx.x < 2) s[threadIdx.x] = 0; __syncthreads();\n"
        "if (WARP == 0) y[0] = s[1]; if (threadIdx.x == 64) ((char*)s)[6] = 1;",
        r"write of 1 bytes at address 0x6 .*reads at",
    ),
    "a byte of a word that two warps read": (
        "__shared__ int s[2]; if (threadIdx.x < 2) s[threadIdx.x] = 0; __syncthreads();\n"
        "if (WARP < 2) y[WARP] = s[1]; if (threadIdx.x == 64) ((char*)s)[6] = 1;",
        r"write of 1 bytes at address 0x6 .*reads at",
    ),
    "who reads one byte does not read another": (
        "__shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads();\n"
        "if (WARP < 2) y[WARP] = s; __syncthreads();\n"
        "if (WARP == 2) y[2] = ((char*)&s)[0]; if (threadIdx.x == 96) ((char*)&s)[3] = 1;",
    ),
    "a byte of a word that another warp has written": (
        "__shared__ int s; if (threadIdx.x == 0) s = 5; if (WARP == 2) y[0] = ((char*)&s)[1];",
        "read of 1 bytes at .* writes at|write of 4 bytes at .* reads at",
    ),
    "a word whose bytes another warp has read": (
        "__shared__ int s[2]; if (threadIdx.x < 2) s[threadIdx.x] = 0; __syncthreads();\n"
        "if (WARP == 0) y[0] = ((char*)s)[5]; if (threadIdx.x == 64) s[1] = 1;",
        "write of 4 bytes at .* reads at",
    ),
    "a write after one of two readers": (
        "__shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads();\n"
        "if (WARP < 2) y[threadIdx.x] = s; if (WARP % 2 == 0 && WARP < 3) BAR(1, 64);\n"
        "if (threadIdx.x == 64) s = 1;",
        r"write of 4 bytes at .* thread \((3[2-9]|[45]\d|6[0-3]),0,0\) reads at",
        96,
    ),
    "another byte of the word": (
        "__shared__ short s[4]; if (threadIdx.x < 4) s[threadIdx.x] = 0; __syncthreads();\n"
        "if (WARP == 0) y[0] = s[1]; if (threadIdx.x == 64) s[0] = 1;\n"
        "__syncthreads(); if (threadIdx.x == 32) *(int*)s = 5; __syncthreads(); y[1] = s[1];",
    ),
    "a vector over two words": (
        "__shared__ __align__(16) int4 s[32]; if (WARP == 0) s[LANE] = make_int4(1, 2, 3, 4);\n"
        "if (WARP == 1) y[LANE] = s[LANE].w;",
        "read of 4 bytes at address 0xc .* writes at|write of 16 bytes",
    ),
    # --- atomics and volatile
    "two atomics": (
        "__shared__ int s[4]; if (WARP == 0 && LANE < 4) s[LANE] = 0; __syncthreads();\n"
        "atomicAdd(&s[LANE % 4], 1); __syncthreads(); y[threadIdx.x] = s[LANE % 4];",
    ),
    "an atomic beside a plain read": (
        "__shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads();\n"
        "if (WARP == 0) y[LANE] = s; if (WARP == 1) atomicAdd(&s, 1);",
        "atomic access of 4 bytes at .*reads at|read of 4 .* atomic access at",
    ),
    "a plain read after an atomic": (
        "__shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads();\n"
        "if (WARP == 0) { FENCE; y[LANE] = s; } else { FENCE; atomicAdd(&s, 1); }",
        "atomic access of 4 bytes at .*reads at|read of 4 .* atomic access at",
        64,
    ),
    "a plain write beside an atomic": (
        "__shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads();\n"
        "if (WARP == 0) atomicAdd(&s, 1); if (threadIdx.x == 32) s = 3;",
        "write of 4 bytes at .* changes by an atomic access at|atomic access of",
    ),
    "atomics on what is initialised without a barrier": (
        "__shared__ int s; if (threadIdx.x == 0) s = 0; atomicAdd(&s, 1); __syncthreads();\n"
        "y[threadIdx.x] = s;",
        "atomic access of 4 bytes at .* writes at|write of 4 bytes at .* atomic access at",
    ),
    "volatile reads of what is initialised without a barrier": (
        "__shared__ int s; if (threadIdx.x == 0) { s = 0; FENCE; ((volatile int*)&s)[0] = 1; }\n"
        "if (WARP == 1) y[LANE] = ((volatile int*)&s)[0];",
        "read of 4 bytes at .* writes at|write of 4 bytes at .* reads at",
        64,
    ),
    "a byte of a word that an atomic changes": (
        "__shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads();\n"
        "if (WARP == 0) atomicAdd(&s, 1); if (WARP == 1) y[LANE] = ((char*)&s)[1];",
        "read of 1 bytes at .* atomic access at|atomic access of",
    ),
    "a plain write beside a volatile read": (
        "__shared__ int s; if (threadIdx.x == 0) s = 0; __syncthreads();\n"
        "if (WARP == 0) y[LANE] = ((volatile int*)&s)[0]; if (threadIdx.x == 32) s = 3;",
        "write of 4 bytes at .* reads at|read of 4 bytes at .* writes at",
    ),
    "a byte of a flag carries the order": (
        "__shared__ int s[32], flag; if (threadIdx.x == 0) flag = 0; __syncthreads();\n"
        "if (WARP == 0) { s[LANE] = 1; __syncwarp(); if (FIRST) atomicExch(&flag, 1); }\n"
        "if (WARP == 1) { while (!((volatile char*)&flag)[0]); y[LANE] = s[31 - LANE]; }",
    ),
    "what follows a release is not released": (
        "__shared__ int s[32], flag; if (threadIdx.x == 0) flag = 0; __syncthreads();\n"
        "if (WARP == 0) { if (FIRST) st_release(&flag, 1); __syncwarp(); s[LANE] = 1; }\n"
        "if (WARP == 1) { while (!ld_acquire(&flag)); y[LANE] = s[31 - LANE]; }",
        "read of 4 bytes at .* writes at|write of 4 bytes .* reads at",
    ),
    "atomics carry the order": (
        "__shared__ int s[32], flag; if (threadIdx.x == 0) flag = 0; __syncthreads();\n"
        "if (WARP == 0) { s[LANE] = 1; __syncwarp(); if (FIRST) atomicExch(&flag, 1); }\n"
        "if (WARP == 1) { while (!atomicAdd(&flag, 0)); y[LANE] = s[31 - LANE]; }",
    ),
    "volatile accesses carry the order": (
        "__shared__ int s[32]; __shared__ volatile int flag; if (threadIdx.x == 0) flag = 0;\n"
        "__syncthreads(); if (WARP == 0) { s[LANE] = 1; __syncwarp(); if (FIRST) flag = 1; }\n"
        "if (WARP == 1) { while (!flag); y[LANE] = s[31 - LANE]; }",
    ),
    "acquire and release carry the order": (
        "__shared__ int s[32], flag; if (threadIdx.x == 0) st_release(&flag, 0); __syncthreads();\n"
        "if (WARP == 0) { s[LANE] = 1; __syncwarp(); if (FIRST) st_release(&flag, 1); }\n"
        "if (WARP == 1) { while (!ld_acquire(&flag)); y[LANE] = s[31 - LANE]; }",
    ),
    "an acquiring read releases nothing": (
        "__shared__ int s[32], flag; s[LANE] = flag = 0; __syncthreads();\n"
        "if (WARP == 0) { y[LANE] = s[LANE]; y[LANE] += ld_acquire(&flag); }\n"
        "if (WARP == 1) { st_release(&flag, 1); s[LANE] = 2; }",
        "write of 4 bytes at .* reads at|read of 4 bytes .* writes at",
        64,
    ),
    "a releasing write acquires nothing": (
        "__shared__ int s[32], flag; s[LANE] = 1; __syncthreads();\n"
        "if (WARP == 0) { s[LANE] = 1 + LANE; st_release(&flag, 1); }\n"
        "if (WARP == 1) { st_release(&flag, 2); y[LANE] = s[LANE]; }",
        "read of 4 bytes at .* writes at|write of 4 bytes .* reads at",
        64,
    ),
    "two acquiring reads hand nothing over": (
        "__shared__ int s[32], flag; s[LANE] = flag = 0; __syncthreads();\n"
        "if (WARP == 1) { y[LANE] = s[LANE]; y[LANE] += ld_acquire(&flag); }\n"
        "if (WARP == 0) { y[LANE] += ld_acquire(&flag); s[LANE] = 2; }",
        "write of 4 bytes at .* reads at|read of 4 bytes .* writes at",
        64,
    ),
    "two releasing writes hand nothing over": (
        "__shared__ int s[32], flag; s[LANE] = 1; __syncthreads();\n"
        "if (WARP == 1) { s[LANE] = 1 + LANE; st_release(&flag, 1); }\n"
        "if (WARP == 0) { st_release(&flag, 2); y[LANE] = s[LANE]; }",
        "read of 4 bytes at .* writes at|write of 4 bytes .* reads at",
        64,
    ),
    "a plain flag orders nothing": (
        "__shared__ int s[32], flag; if (WARP == 0) { s[LANE] = 1; __threadfence_block();\n"
        "flag = 1; } if (WARP == 1) { __threadfence_block(); if (flag) y[LANE] = s[LANE]; }",
        "read of 4 bytes|write of 4 bytes",
    ),
    "atomics in device memory carry the order": (
        "__shared__ int s[32]; if (WARP == 0) { s[LANE] = 1; __syncwarp();\n"
        "if (FIRST) atomicExch(&y[100], 1); }\n"
        "if (WARP == 1) { while (!atomicAdd(&y[100], 0)); y[LANE] = s[31 - LANE]; }",
    ),
    "what follows an atomic in device memory is not released": (
        "__shared__ int s[32]; if (WARP == 0) { if (FIRST) atomicExch(&y[100], 1); __syncwarp();\n"
        "s[LANE] = 1; } if (WARP == 1) { while (!atomicAdd(&y[100], 0)); y[LANE] = s[31 - LANE]; }",
        "read of 4 bytes at .* writes at|write of 4 bytes .* reads at",
        64,
    ),
    "a write in device memory acquires nothing": (
        "__shared__ int s[32]; volatile int* flag = y + 100; if (WARP == 0) { s[LANE] = 1;\n"
        "*flag = 1; } if (WARP == 1) { *flag = 2; y[LANE] = s[31 - LANE]; }",
        "read of 4 bytes at .* writes at|write of 4 bytes .* reads at",
        64,
    ),
    "atomics at other addresses order nothing": (
        "__shared__ int s[32]; if (WARP == 0) { s[LANE] = 1; atomicExch(&y[100], 1); }\n"
        "if (WARP == 1) { atomicAdd(&y[101], 0); y[LANE] = s[31 - LANE]; }",
        "read of 4 bytes|write of 4 bytes",
        64,
    ),
    "an order of the block before": (
        "__shared__ int s[32]; if (WARP == 0) { s[LANE] = 1; __syncwarp();\n"
        "if (FIRST && blockIdx.x == 0) atomicExch(&y[100], 1); }\n"
        "if (WARP == 1) { atomicAdd(&y[100], 0); y[LANE] = s[31 - LANE]; }",
        "read of 4 bytes at .* writes at",
        64,
    ),
    "an order that the block before has given to all": (
        "__shared__ int s[32]; if (WARP == 0) { s[LANE] = 1; __syncwarp();\n"
        "if (FIRST && blockIdx.x == 0) atomicExch(&y[100], 1); }\n"
        "if (WARP == 1 && (((volatile int*)y)[101] == 0) & blockIdx.x) y[LANE] = s[31 - LANE];",
        "read of 4 bytes at .* writes at",
        64,
    ),
    "readers of a word, after those of another": (
        "__shared__ int a, b; if (threadIdx.x == 0) a = b = 0; __syncthreads();\n"
        "if (WARP < 3) { if (WARP < 2) y[threadIdx.x] = a;\n"
        "BAR(1, 96); if (threadIdx.x == 64) a = 1; }\n"
        "else { y[threadIdx.x] = b; BAR(2, 64); if (threadIdx.x == 128) b = 1; }",
        None,
        160,
    ),
    # --- mbarriers
    "a ring buffer with mbarriers": (
        "__shared__ u64 full[2], empty[2]; __shared__ int s[2][32];\n"
        "if (threadIdx.x < 2) { initialise(&full[threadIdx.x], 32);\n"
        "initialise(&empty[threadIdx.x], 32); } __syncthreads(); int sum = 0;\n"
        "if (WARP == 0) for (int i = 0; i < 8; ++i) { wait(&empty[i & 1], (i >> 1 & 1) ^ 1);\n"
        "s[i & 1][LANE] = i + LANE; arrive(&full[i & 1]); }\n"
        "if (WARP == 1) for (int i = 0; i < 8; ++i) { wait(&full[i & 1], i >> 1 & 1);\n"
        "sum += s[i & 1][31 - LANE]; arrive(&empty[i & 1]); } y[threadIdx.x] = sum;",
    ),
    "a ring buffer that is not waited for": (
        "__shared__ u64 full[2]; __shared__ int s[2][32];\n"
        "if (threadIdx.x < 2) initialise(&full[threadIdx.x], 32); __syncthreads();\n"
        "if (WARP == 0) for (int i = 0; i < 3; ++i) {\n"
        "s[i & 1][LANE] = i + LANE; if (i < 2) arrive(&full[i & 1]); }\n"
        "if (WARP == 1) for (int i = 0; i < 2; ++i) { wait(&full[i & 1], i >> 1 & 1);\n"
        "y[LANE] += s[i & 1][31 - LANE]; }",
        "read of 4 bytes|write of 4 bytes",
        64,
    ),
    "an mbarrier that is used before it is known": (
        "__shared__ u64 b; if (threadIdx.x == 0) initialise(&b, 64); if (WARP == 1) arrive(&b);",
        "access of 8 bytes at .* writes at|write of 8 bytes",
        64,
    ),
    "an mbarrier in device memory": (
        'if (threadIdx.x == 0) asm volatile("mbarrier.init.b64 [%0], 1;" :: "l"(y) : "memory");\n'
        "__shared__ int s[64]; s[threadIdx.x] = 1; __syncthreads(); if (threadIdx.x == 32)\n"
        'asm volatile("{.reg .b64 t; mbarrier.arrive.b64 t, [%0];}" :: "l"(y) : "memory");\n'
        "y[threadIdx.x + 2] = s[63 - threadIdx.x];",
        None,
        64,
    ),
    "an arrival of the next phase": (
        "__shared__ u64 b; __shared__ int s[32]; if (threadIdx.x == 0) initialise(&b, 32);\n"
        "__syncthreads(); if (WARP == 0) { arrive(&b); s[LANE] = 1; if (LANE < 31) arrive(&b); }\n"
        "if (WARP == 1) { wait(&b, 0); y[LANE] = s[LANE]; }",
        "read of 4 bytes .* writes at|write of 4 bytes",
        64,
    ),
    # --- clusters
    "memory of another block": (
        "__shared__ int s[32]; \n"
        "s[LANE] = RANK; CLUSTER_ARRIVE(); CLUSTER_WAIT;\n"
        "y[32 * blockIdx.x + LANE] = *remote(&s[LANE], RANK ^ 1);\n"
        "CLUSTER_ARRIVE(); CLUSTER_WAIT;",
        None,
        32,
        2,
    ),
    "memory of another block, unordered": (
        "__shared__ int s[32]; s[LANE] = 0;\n"
        "CLUSTER_ARRIVE(); CLUSTER_WAIT; s[LANE] = RANK + 1;\n"
        "y[32 * blockIdx.x + LANE] = *remote(&s[LANE], RANK ^ 1);\n"
        "CLUSTER_ARRIVE(); CLUSTER_WAIT;",
        r"of shared memory of block \d of the cluster, which thread \(\d+,0,0\) of block \d of",
        32,
        2,
    ),
    "the barrier of a cluster counts threads that have left": (
        "__shared__ int s[64]; s[threadIdx.x] = 1; if (WARP) return;\n"
        "CLUSTER_ARRIVE(); CLUSTER_WAIT;\n"
        "y[32 * blockIdx.x + LANE] = s[32 + LANE] + *remote(&s[32 + LANE], RANK ^ 1);\n"
        "CLUSTER_ARRIVE(); CLUSTER_WAIT;",
        None,
        64,
        2,
    ),
    "a relaxed arrival": (
        "__shared__ int s[32]; s[LANE] = 0;\n"
        "CLUSTER_ARRIVE(); CLUSTER_WAIT; s[LANE] = RANK + 1;\n"
        'CLUSTER_ARRIVE(".relaxed"); CLUSTER_WAIT;\n'
        "y[32 * blockIdx.x + LANE] = *remote(&s[LANE], RANK ^ 1);\n"
        "CLUSTER_ARRIVE(); CLUSTER_WAIT;",
        "of the cluster",
        32,
        2,
    ),
    # --- asynchronous copies
    "copies, wait, barrier": (
        "__shared__ int s[128]; COPY(&s[threadIdx.x], &x[threadIdx.x]); COMMIT; WAIT(0);\n"
        "__syncthreads(); y[threadIdx.x] = s[127 - threadIdx.x];",
    ),
    "copies, barrier, no wait": (
        "__shared__ int s[128]; COPY(&s[threadIdx.x], &x[threadIdx.x]); COMMIT;\n"
        "__syncthreads(); y[threadIdx.x] = s[127 - threadIdx.x]; WAIT(0);",
        "read of 4 bytes at .* copies to asynchronously at PTX",
    ),
    "copies of the last group": (
        "__shared__ int s[2][128]; for (int i = 0; i < 2; ++i) {\n"
        "COPY(&s[i][threadIdx.x], &x[threadIdx.x]); COMMIT; }\n"
        "WAIT(1); __syncthreads(); y[threadIdx.x] = s[0][127 - threadIdx.x]; WAIT(0);\n"
        "__syncthreads(); y[threadIdx.x] += s[1][127 - threadIdx.x];",
    ),
    "copies of the group after that": (
        "__shared__ int s[2][128]; for (int i = 0; i < 2; ++i) {\n"
        "COPY(&s[i][threadIdx.x], &x[threadIdx.x]); COMMIT; }\n"
        "WAIT(1); __syncthreads(); y[threadIdx.x] = s[1][127 - threadIdx.x]; WAIT(0);",
        "copies to asynchronously",
    ),
    "copies that other threads wait for": (
        "__shared__ int s[32]; if (WARP == 0) { COPY(&s[LANE], &x[LANE]); COMMIT; }\n"
        "if (WARP == 1) WAIT(0); __syncthreads(); if (WARP == 1) y[LANE] = s[LANE];",
        "copies to asynchronously",
    ),
    "copies that other lanes wait for": (
        "__shared__ int s[32]; if (WARP == 0) { COPY(&s[LANE], &x[LANE]); COMMIT;\n"
        "if (LANE < 8) WAIT(0); } __syncthreads(); if (WARP == 1) y[LANE] = s[LANE];",
        "copies to asynchronously",
    ),
    "copies inside a warp are not looked for": (
        "__shared__ int s[32]; if (WARP) return; COPY(&s[LANE], &x[LANE]); COMMIT;\n"
        "y[LANE] = s[31 - LANE]; WAIT(0);",
    ),
    "copies that the block before has left": (
        "__shared__ int s[128]; COPY(&s[threadIdx.x], &x[threadIdx.x]); COMMIT;\n"
        "if (blockIdx.x) { WAIT(1); __syncthreads(); y[threadIdx.x] = s[127 - threadIdx.x]; }",
        "read of 4 bytes at .* copies to asynchronously at PTX",
    ),
    "copies into what another warp reads": (
        "__shared__ int s[128]; s[threadIdx.x] = 0; __syncthreads();\n"
        "y[threadIdx.x] = s[127 - threadIdx.x];\n"
        "COPY(&s[threadIdx.x], &x[threadIdx.x]); COMMIT; WAIT(0);",
        "asynchronous write of 4 bytes at .* reads at|read of 4 .* asynchronously",
    ),
    "copies that an mbarrier awaits": (
        "__shared__ u64 b; __shared__ int s[32]; if (threadIdx.x == 0) initialise(&b, 32);\n"
        "__syncthreads(); if (WARP == 0) { COPY(&s[LANE], &x[LANE]); asm volatile(\n"
        '"cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(near(&b)) : "memory"); }\n'
        "else if (WARP == 1) { wait(&b, 0); y[LANE] = s[31 - LANE]; }",
    ),
    "copies that an mbarrier awaits, before it ends": (
        "__shared__ u64 b; __shared__ int s[32]; if (threadIdx.x == 0) initialise(&b, 1);\n"
        "__syncthreads(); if (WARP == 0) { COPY(&s[LANE], &x[LANE]); asm volatile(\n"
        '"cp.async.mbarrier.arrive.shared.b64 [%0];" :: "r"(near(&b)) : "memory");\n'
        "__syncwarp(); if (FIRST) arrive(&b); } wait(&b, 0); y[threadIdx.x] = s[31 - LANE];\n"
        "__syncthreads(); if (threadIdx.x == 64)\n"
        'asm volatile("mbarrier.inval.shared.b64 [%0];" :: "r"(near(&b)) : "memory");',
    ),
    "copies that an arrival does not await": (
        "__shared__ u64 b; __shared__ int s[32]; if (threadIdx.x == 0) initialise(&b, 32);\n"
        "__syncthreads(); if (WARP == 0) { COPY(&s[LANE], &x[LANE]); arrive(&b); }\n"
        "else if (WARP == 1) { wait(&b, 0); y[LANE] = s[31 - LANE]; }",
        "copies to asynchronously",
    ),
    # --- libraries, matrices
    "reductions of cooperative groups": (
        "cg::thread_block b = cg::this_thread_block();\n"
        "auto t = cg::tiled_partition<32>(b); __shared__ int s[4];\n"
        "int v = cg::reduce(t, (int)threadIdx.x, cg::plus<int>());\n"
        "if (t.thread_rank() == 0) s[WARP] = v; b.sync();\n"
        "if (WARP == 0) { v = cg::reduce(t, LANE < 4 ? s[LANE] : 0, cg::plus<int>()); y[0] = v; }\n"
        "auto half = cg::tiled_partition<16>(t); y[1] = cg::reduce(half, v, cg::greater<int>());",
    ),
    "tiles of several warps": (
        "__shared__ cg::block_tile_memory<128> memory;\n"
        "auto b = cg::this_thread_block(memory); auto t = cg::tiled_partition<64>(b);\n"
        "int v = cg::reduce(t, (int)threadIdx.x, cg::plus<int>()); t.sync();\n"
        "y[threadIdx.x] = v + t.shfl(v, 3); v = cg::reduce(t, v, cg::plus<int>());\n"
        "y[threadIdx.x] += v;",
    ),
    "a matrix that is overwritten": (
        "__shared__ __align__(16) short s[64]; if (WARP == 0) s[2 * LANE] = s[2 * LANE + 1] = 1;\n"
        "__syncthreads(); unsigned r; if (WARP == 0) { asm volatile(\n"
        '"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r)\n'
        ': "r"(near(s + 8 * (LANE % 8)))); y[LANE] = r; } if (threadIdx.x == 40) s[63] = 2;',
        "write of 2 bytes at address 0x7e .* reads at|read of 16 bytes",
    ),
}

PROGRAM = """
import json, sys
import numpy as np
import cyrt
groups, prelude, cases, options = json.load(open(sys.argv[1]))
head = '\\nextern "C" __global__ void k(const int* x, int* y) {\\n'
results = {}
for name, (body, threads, cluster) in cases.items():
    source = (groups if "cg::" in body else "") + prelude + head + body + "\\n}"
    kernel = cyrt.Kernel(source, "k", options=tuple(options))
    x = cyrt.asarray(np.arange(4096, dtype=np.int32))
    y = cyrt.zeros(4096, dtype="int32")
    try:
        cyrt.synchronize()
        cyrt.current_encoder().add_kernel(kernel, 2 * cluster, threads, (x, y),
                                          cluster=cluster if cluster > 1 else None)
        y.numpy()
        results[name] = ""
    except cyrt.CudaError as error:
        results[name] = str(error)
        cyrt.Device().reset()
print(json.dumps(results))
"""


def run_cases(python, folder, cases, options=(), prelude=PRELUDE):
    path = folder / "cases.json"
    path.write_text(json.dumps([GROUPS, prelude, cases, options]))
    program = PROGRAM.replace("sys.argv[1]", repr(str(path)))
    done = python(program, seconds=600, CYRT_CHECK="1")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def parts(case):
    """Return the body, the expected report, the threads of a block and the blocks of a cluster."""
    return *case, *(None, 128, 1)[len(case) - 1 :]


@pytest.fixture(scope="module")
def reports(emulated, python, tmp_path_factory):
    if not emulated:  # a fixture of the module comes before `only_emulated`
        pytest.skip("shows the emulated device's own checks")
    cases = {name: (body, threads, cluster) for name, case in CASES.items()
             for body, _, threads, cluster in [parts(case)]}  # fmt: skip
    return run_cases(python, tmp_path_factory.mktemp("hazards"), cases)


@pytest.mark.parametrize("name", CASES)
def test_hazards(reports, name):
    expected = parts(CASES[name])[1]
    if expected is None:
        assert reports[name] == ""
    else:
        assert "no synchronisation orders the two accesses of different warps" in reports[name]
        assert re.search(expected, reports[name]), reports[name]


def test_lines_of_the_source(python, tmp_path):
    body = "\n__shared__ int s[2];\nif (threadIdx.x == 0) s[1] = x[5];\nif (WARP) y[0] = s[1];"
    cases = {"k": (body, 64, 1)}
    first = PRELUDE.count("\n") + 5  # the line of the write
    with_lines = run_cases(python, tmp_path, cases, options=["-lineinfo"])["k"]
    assert re.search(
        rf"thread \(\d+,0,0\), PTX line \d+ \([^ ]*:{first + 1}\): read .* thread \(0,0,0\) "
        rf"writes at PTX line \d+ \([^ ]*:{first}\):",
        with_lines,
    ), with_lines
    without = run_cases(python, tmp_path, cases)["k"]
    assert re.search(r"PTX line \d+: read .* writes at PTX line \d+:", without), without


def test_an_order_that_another_block_hands_on(python):
    """A barrier of a grid's warps, whose end one of them tells."""
    done = python(
        """
        import cyrt

        kernel = cyrt.Kernel('''
            extern "C" __global__ void k(int* count, volatile int* go, int* y) {
                __shared__ int s[64];
                s[threadIdx.x] = threadIdx.x;
                __syncwarp();
                if (threadIdx.x % 32 == 0) {
                    __threadfence();
                    atomicAdd(count, 1);
                    if (blockIdx.x == 0 && threadIdx.x == 0) {
                        while (atomicAdd(count, 0) < 4);
                        *go = 1;
                    }
                    while (!*go);
                    __threadfence();
                }
                __syncwarp();
                y[64 * blockIdx.x + threadIdx.x] = s[63 - threadIdx.x];
            }''', "k")
        count, go, y = (cyrt.zeros(n, dtype="int32") for n in (1, 1, 128))
        cyrt.current_encoder().add_kernel(kernel, 2, 64, (count, go, y), cooperative=True)
        print(y.numpy().sum())
        """,
        seconds=600,
        CYRT_CHECK="1",
    )
    assert done.stdout == "4032\n", done.stderr


CUB = r"""
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
template <cub::BlockReduceAlgorithm A> __device__ void reduce(const int* x, int* y) {
    using Reduce = cub::BlockReduce<int, 128, A>;
    __shared__ typename Reduce::TempStorage memory;
    for (int i = 0; i < 2; ++i) {
        int sum = Reduce(memory).Sum(x[threadIdx.x]);
        if (threadIdx.x == 0) y[i] = sum;
        __syncthreads();
    }
}
template <cub::BlockScanAlgorithm A> __device__ void scan(const int* x, int* y) {
    using Scan = cub::BlockScan<int, 128, A>;
    __shared__ typename Scan::TempStorage memory;
    int v = x[threadIdx.x];
    Scan(memory).InclusiveSum(v, v);
    __syncthreads();
    Scan(memory).ExclusiveSum(v, v);
    y[threadIdx.x] = v;
}
__device__ void sort(const int* x, int* y) {
    using Sort = cub::BlockRadixSort<int, 128, 2>;
    __shared__ typename Sort::TempStorage memory;
    int v[2] = {-x[threadIdx.x], x[threadIdx.x]};
    Sort(memory).Sort(v);
    y[2 * threadIdx.x] = v[0], y[2 * threadIdx.x + 1] = v[1];
}
"""
CUB_CALLS = {
    "reduce": "RAKING_COMMUTATIVE_ONLY RAKING WARP_REDUCTIONS",
    "scan": "RAKING RAKING_MEMOIZE WARP_SCANS",
}


def test_cub(python, tmp_path):
    """Its block reductions, scans and sorts give no report."""
    packages = Path(sysconfig.get_path("purelib"))
    folders = [
        *packages.glob("nvidia/cu*/include/cccl"),
        *packages.glob("nvidia/cuda_cccl/include"),
    ]
    if not folders:
        pytest.skip("needs CUB: pip install nvidia-cuda-cccl")
    calls = ["sort(x, y);"]
    for call, algorithms in CUB_CALLS.items():
        calls += [f"{call}<cub::BLOCK_{call.upper()}_{how}>(x, y);" for how in algorithms.split()]
    path = tmp_path / "cub.cu"
    path.write_text(
        CUB
        + "\n".join(
            f'extern "C" __global__ void k{i}(const int* x, int* y) {{ {body} }}'
            for i, body in enumerate(calls)
        )
    )
    done = python(
        f"""
        import numpy as np

        import cyrt

        source = open({str(path)!r}).read()
        module = cyrt.Module(source, options=("-I{folders[0]}", "-std=c++17"))
        x, y = cyrt.asarray(np.arange(128, dtype=np.int32)), cyrt.zeros(256, dtype="int32")
        for i in range({len(calls)}):
            module[f"k{{i}}"][2, 128](x, y)
            print(y.numpy().sum())
        """,
        seconds=600,
        CYRT_CHECK="1",
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == len(calls)
