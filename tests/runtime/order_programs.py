"""What the tests of order among streams share: kernels, marks, arrays and threads."""

from __future__ import annotations

import threading

import pytest

import cyrt
from cyrt import settings

N = 64
SOURCE = r"""
extern "C" {
__device__ int counter;
__global__ void increment(int* x) { x[threadIdx.x] += 1; }
__global__ void count() { counter += 1; }
__global__ void copy(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void put(int* x, int value) { x[threadIdx.x] = value; }
}
"""
graphs = pytest.mark.skipif(
    not settings.get("CYRT_GRAPHS") or settings.get("CYRT_LAUNCH_BLOCKING"),
    reason="forces what happens inside a graph's launch: CYRT_GRAPHS=0 and CYRT_LAUNCH_BLOCKING=1 "
    "have none",
)
asynchronous = pytest.mark.skipif(
    settings.get("CYRT_LAUNCH_BLOCKING"),
    reason="kernels wait for the host while it records: CYRT_LAUNCH_BLOCKING=1 waits for each",
)


def ints(value=0, count=N):
    array = cyrt.full(count, value, dtype=cyrt.int32)
    array.numpy()
    return array


def in_thread(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def ends(thread):
    thread.join(150)  # enough for a machine that is five times as slow
    return not thread.is_alive()
