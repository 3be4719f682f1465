"""Loads before ``griddepcontrol.wait``: when they are stale.

What decides whether kernels of cyrt load early builds on these cases: see cyrt/graph/early.pxd.
"""

from __future__ import annotations

import pytest

import cyrt
from cyrt import settings

pytestmark = [
    pytest.mark.usefixtures("batched"),
    pytest.mark.skipif(not settings.get("CYRT_PDL"), reason="looks at kernels that start early"),
]

# `write` lets its dependents start, and writes x some 20 us later. `relay` lets them start before
# it waits, `orderly` afterwards; each passes a token on. `read` loads x before it waits.
SOURCE = r"""
#define TRIGGER asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define WAIT asm volatile("griddepcontrol.wait;" ::: "memory")
#define PLACE int i = blockIdx.x * blockDim.x + threadIdx.x
extern "C" {
__global__ void write(int* x, int value, int* token) {
    TRIGGER;
    WAIT;
    PLACE;
    for (long long begin = clock64(); clock64() - begin < 40000;) {}
    x[i] = token[i] = value;
}
__global__ void relay(const int* token, int* next) { TRIGGER; WAIT; PLACE; next[i] = token[i]; }
__global__ void orderly(const int* token, int* next) { WAIT; TRIGGER; PLACE; next[i] = token[i]; }
__global__ void read(const int* x, const int* token, int* out) {
    PLACE;
    int early = x[i];
    WAIT;
    out[i] = token[i] < early ? token[i] : early;
}
}
"""
BLOCKS, THREADS = 4, 256
SIZE = BLOCKS * THREADS
ROUNDS = 32  # each reads SIZE elements


@pytest.fixture(scope="module", autouse=True)
def capable():
    if cyrt.Device().compute_capability < (9, 0):
        pytest.skip("needs compute capability 9.0")


@pytest.fixture(autouse=True)
def encoder():
    with cyrt.CommandEncoder(max_ops=128) as encoder, cyrt.stream(encoder.stream):
        yield encoder


@pytest.fixture(scope="module")
def kernels():
    found = {name: cyrt.Kernel(SOURCE, name, pdl=True) for name in ("write", "relay", "orderly")}
    return found | {
        "plain": cyrt.Kernel(SOURCE, "orderly"),
        "read": cyrt.Kernel(SOURCE, "read", pdl=True),
    }


def number_of_stale_reads(kernels, between):
    """How many of ROUNDS * SIZE reads, behind `write` and these, missed what it wrote."""
    x, out = (cyrt.zeros(SIZE, dtype=cyrt.int32) for _ in range(2))
    tokens = [cyrt.zeros(SIZE, dtype=cyrt.int32) for _ in range(len(between) + 1)]
    other, stale = cyrt.Stream(), 0
    cyrt.commit()
    for value in range(1, ROUNDS + 3):
        if "another stream" in between:
            with cyrt.stream(other):
                kernels["write"][BLOCKS, THREADS](x, value, tokens[0])
        else:
            kernels["write"][BLOCKS, THREADS](x, value, tokens[0])
        token = tokens[0]
        for name, following in zip(between, tokens[1:], strict=True):
            if name == "another graph":
                cyrt.commit()
            elif name != "another stream":
                kernels[name][BLOCKS, THREADS](token, following)
                token = following
        kernels["read"][BLOCKS, THREADS](x, token, out)
        if value > 2:  # a topology's own graph runs it from the second time on
            stale += int((out.numpy() != value).sum())
    return stale


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("between", [[], ["relay"], ["relay"] * 3], ids=" ".join)
def test_reads_that_can_be_stale(kernels, between):
    assert number_of_stale_reads(kernels, between) > 0


@pytest.mark.parametrize(
    "between",
    [
        ["orderly"],
        ["relay", "orderly"],
        ["orderly", "relay", "relay"],
        ["plain"],
        ["plain", "relay"],
        ["another graph"],
        ["another stream"],
    ],
    ids=" ".join,
)
def test_reads_that_are_never_stale(kernels, between):
    assert number_of_stale_reads(kernels, between) == 0


@pytest.mark.usefixtures("only_emulated")
@pytest.mark.parametrize("between", [[], ["relay"], ["relay"] * 3], ids=" ".join)
def test_checking_mode_reports_what_can_be_stale(python, between):
    done = python(
        f"""
        import cyrt
        from test_early import BLOCKS, SOURCE, THREADS, number_of_stale_reads
        names = ("write", "relay", "read")
        kernels = {{name: cyrt.Kernel(SOURCE, name, pdl=True) for name in names}}
        number_of_stale_reads(kernels, {between})
        """,
        folders=[__file__.rpartition("/")[0]],
        CYRT_CHECK="1",
    )
    assert done.returncode == 1
    assert "kernel read" in done.stderr
    assert "before griddepcontrol.wait: kernel write" in done.stderr
