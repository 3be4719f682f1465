"""Memory stays flat over 10,000 steps of training."""

from __future__ import annotations

import os

import pytest

PROGRAM = r"""
import gc, os
import numpy as np, cyrt

rng = np.random.default_rng(0)
x = cyrt.asarray(rng.standard_normal((8, 3)).astype(np.float32))
y = cyrt.asarray(rng.standard_normal(8).astype(np.float32))
params = {
    "hidden": cyrt.asarray(rng.standard_normal((3, 4)).astype(np.float32)),
    "last": cyrt.zeros(4),
}

def loss(params):
    return cyrt.mean((cyrt.tanh(x @ params["hidden"]) @ params["last"] - y) ** 2)

step, optimizer = cyrt.value_and_grad(loss), cyrt.optim.adam(1e-3)
state = optimizer.init(params)
first = loss(params).item()

def train(steps):
    global params, state
    for i in range(steps):
        value, grads = step(params)
        params, state = optimizer.update(grads, state, params)
        if i % 500 == 499:
            cyrt.synchronize()

def taken():
    '''Bytes of the host's memory, of the device's, and of the arrays.'''
    cyrt.synchronize()
    gc.collect()
    free, total = cyrt.Device().memory_info()
    pages = int(open("/proc/self/statm").read().split()[1])
    stats = cyrt.memory_stats()
    return np.array([pages * os.sysconf("SC_PAGE_SIZE"), total - free, stats["in_use"]])

train(2000)
before = taken()
train(10_000)
print(*(taken() - before))
assert loss(params).item() < first
"""


def test_10_000_steps_keep_memory_flat(python, emulated):
    if not emulated and "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("other test processes use the GPU's memory: without -n")
    done = python(
        PROGRAM,
        seconds=3600,
        fresh=True,  # the pages of a forked process are counted when it first uses them
        CYRT_CHECK="0",  # checking mode, and no pool: freed memory is kept for a while
        CYRT_POOL="1",
    )
    assert done.returncode == 0, done.stderr
    host, device, arrays = map(int, done.stdout.split())
    assert host < 1 << 20, done.stdout  # 105 bytes a step
    assert device <= 0, done.stdout
    assert arrays == 0, done.stdout
