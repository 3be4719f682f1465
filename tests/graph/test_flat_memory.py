"""Memory stays flat, however many batches and topologies there are.

``CYRT_TEST_BATCHES`` and ``CYRT_TEST_TOPOLOGIES`` set how many, ``CYRT_GRAPH_CACHE_SIZE`` how many
of the latter are kept.
"""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')", reason="of graphs; CYRT_GRAPHS=0 has none"
)

PROGRAM = r"""
import gc, os, warnings
import numpy as np, cyrt

warnings.simplefilter("ignore")
kernel = cyrt.Kernel('extern "C" __global__ void add(int* x, const int* y) { *x += *y; }', "add")
a, b, c, *many = buffers = [cyrt.Buffer(4) for _ in range(10)]
for buffer in buffers:
    buffer.fill(1)
launch = kernel[1, 1]

def taken():
    '''Bytes of the host's memory and of the device's.'''
    cyrt.synchronize()
    gc.collect()
    free, total = cyrt.Device().memory_info()
    pages = int(open("/proc/self/statm").read().split()[1])
    return np.array([pages * os.sysconf("SC_PAGE_SIZE"), total - free])

def batches(count):
    encoder = cyrt.current_encoder()
    for _ in range(count):
        encoder.keep(object())
        launch(a, b)
        launch(c, a)
        cyrt.commit()

def addresses(count):
    for i in range(count):
        launch(many[i % 7], b)
        launch(many[i % 5], many[i % 7])
        cyrt.commit()

def topologies(first, last):
    for number in range(first, last):
        for _ in range(3):                      # a chain, a graph, the same graph again
            for bit in range(14):
                launch(a, c if number >> bit & 1 else b)
                launch(b if number >> bit & 1 else c, c if number & 1 else b)
            cyrt.commit()

BODY
print(*(taken() - before), {k: v for k, v in cyrt.current_encoder().stats().items() if v})
"""


@pytest.mark.parametrize(
    ("body", "slack"),
    [
        ("batches(3000); before = taken(); batches({batches})", 0),
        ("addresses(500); before = taken(); addresses({batches} // 5)", 0),
        ("topologies(0, {warm}); before = taken(); topologies({warm}, {topologies})", 512),
    ],
    ids=["batches", "addresses", "topologies"],
)
def test_memory_stays_flat(python, emulated, body, slack):
    """`slack`: bytes a topology that the tables of handles may grow for a while."""
    if not emulated and "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("other test processes use the GPU's memory: without -n")
    kept = int(os.environ.get("CYRT_GRAPH_CACHE_SIZE", "50"))
    numbers = {
        "batches": int(os.environ.get("CYRT_TEST_BATCHES", "20000")),
        "warm": 6 * kept,
        "topologies": int(os.environ.get("CYRT_TEST_TOPOLOGIES", "600")),
    }
    done = python(
        PROGRAM.replace("BODY", body.format(**numbers)),
        seconds=3600,
        fresh=True,  # the pages of a forked process are counted when it first uses them
        CYRT_GRAPH_CACHE_SIZE=str(kept),
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    host, device = map(int, done.stdout.split()[:2])
    assert host < (1 << 20) + slack * numbers["topologies"], done.stdout
    assert device <= 0, done.stdout
