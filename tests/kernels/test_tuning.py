"""Launches over n elements, and the block that is fastest for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cyrt
from cyrt import settings
from cyrt.jit import cache

ADD = """
extern "C" __global__ void add(int* x, int by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += by;
}
"""
# Slow but with blocks of 64: on a GPU by more than the launches of other processes vary.
TURNS = 300 if cyrt.Device().emulated else 30_000
PICKY = """
extern "C" __global__ void picky(int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int turns = blockDim.x == 64 ? 1 : TURNS;
    for (int t = 0; t < turns; ++t) if (i < n) atomicAdd(x + i, 1);
}
""".replace("TURNS", str(TURNS))
BLOCKS = (32, 64, 128)


@pytest.fixture(scope="module")
def add():
    return cyrt.Kernel(ADD, "add")


@pytest.fixture
def store(tmp_path, monkeypatch):
    if not settings.get("CYRT_CACHE"):
        pytest.skip("shows the cache: CYRT_CACHE=0")
    found = cache.Cache(tmp_path / "cache", 1 << 20)
    monkeypatch.setattr(cache, "current", lambda: found)
    return found


def choices(store):
    """The facts of every choice that is kept, by its key."""
    found = {entry.key: store.load(entry)[0] for entry in store.entries()}
    return {key: facts for key, facts in found.items() if facts["kind"] == "tuning"}


def zeros(n):
    buffer = cyrt.Buffer(4 * n)
    buffer.fill(0)
    return buffer


def ints(buffer):
    out = np.zeros(buffer.nbytes // 4, np.int32)
    buffer.copy_to(out)
    return out


@pytest.mark.parametrize("n", [1, 31, 32, 33, 1000, 100_003, np.int64(77)])
def test_for_each_reaches_every_element(add, n):
    x = zeros(n + 5)
    add.for_each(n, x, 3, int(n))
    assert (ints(x) == [3] * n + [0] * 5).all()


def test_no_elements_launch_nothing(add):
    x = zeros(4)
    operations = cyrt.current_encoder().stats()["operations"]
    add.for_each(0, x, 3, 4)
    assert cyrt.current_encoder().stats()["operations"] == operations
    assert add.suggest(0)[0] == 0


@pytest.mark.parametrize("n", [1, 64, 5000, 10**6, 10**9, 2**40])
def test_suggestions_cover_the_elements(add, n):
    grid, block = add.suggest(n)
    assert (grid - 1) * block < n <= grid * block
    assert block % 32 == 0
    assert block <= add.max_threads


def test_few_elements_spread_over_the_device(add):
    multiprocessors = cyrt.Device().multiprocessors
    grid, _ = add.suggest(128 * multiprocessors)
    assert grid >= multiprocessors
    assert add.suggest(10**8)[1] >= add.suggest(128 * multiprocessors)[1]


@pytest.mark.parametrize(
    ("n", "error", "match"),
    [
        (-1, ValueError, "n: expected a number of elements of 0 or more, got -1"),
        (1.0, TypeError, "n: expected a number of elements, got 1.0"),
        (True, TypeError, "n: expected a number of elements, got True"),
        (2**50, ValueError, "at most 2,147,483,647; launch them in parts"),
    ],
)
def test_elements_refused(add, n, error, match):
    with pytest.raises(error, match=f"add: .*{match}"):
        add.for_each(n, zeros(1), 1, 1)


def test_shared_memory_of_for_each(add):
    x = zeros(8)
    add.for_each(8, x, 1, 8, smem=1024)
    assert (ints(x) == 1).all()
    with pytest.raises(ValueError, match=r"1,000,000 bytes of dynamic"):
        add.for_each(8, x, 1, 8, smem=1_000_000)
    with pytest.raises(ValueError, match=r"smem: expected"):
        add.suggest(8, smem=-1)


def test_for_each_takes_declared_memory(add):
    with pytest.raises(TypeError, match=r"add: reads: expected a list"):
        add.for_each(1, zeros(1), 1, 1, reads=5)


def test_tuning_picks_the_fastest_and_leaves_the_arguments(store):
    kernel = cyrt.Kernel(PICKY, "picky")
    x = zeros(256)
    kernel.suggest(256)  # what was chosen before is forgotten
    assert kernel.tune(256, (x, 256), BLOCKS) == 64
    assert (ints(x) == 0).all()
    assert kernel.suggest(256) == (4, 64)
    assert kernel.suggest(511) == (8, 64)
    kernel.for_each(256, x, 256)
    assert (ints(x) == 1).all()


def test_choices_are_kept_for_later_processes(store):
    cyrt.Kernel(PICKY, "picky").tune(256, [zeros(256), 256], [96])
    (stored,) = choices(store).values()
    assert (stored["kernel"], stored["block"], stored["elements"]) == ("picky", 96, [256, 511])
    assert stored["device"] == cyrt.Device().name
    again = cyrt.Kernel(PICKY, "picky")
    assert again.suggest(300) == (4, 96)
    assert again.suggest(512)[1] != 96
    assert again.suggest(300, smem=64)[1] != 96
    assert cyrt.Kernel(PICKY + "\n", "picky").suggest(300)[1] != 96


def test_choices_go_with_the_cache(store):
    untuned = cyrt.Kernel(PICKY, "picky").suggest(256)
    cyrt.Kernel(PICKY, "picky").tune(256, [zeros(256), 256], [96])
    store.clear()
    assert cyrt.Kernel(PICKY, "picky").suggest(256) == untuned


def test_a_damaged_choice_counts_for_nothing(store):
    untuned = cyrt.Kernel(PICKY, "picky").suggest(256)
    cyrt.Kernel(PICKY, "picky").tune(256, [zeros(256), 256], [96])
    (key,) = choices(store)
    path = Path(store.path(key))
    path.write_bytes(path.read_bytes().replace(b"96", b"64"))
    assert cyrt.Kernel(PICKY, "picky").suggest(256) == untuned


def test_a_cache_that_cannot_be_written_warns(store):
    kernel = cyrt.Kernel(ADD, "add")
    store.clear()
    Path(store.root).rmdir()
    Path(store.root).write_text("a file")
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        block = kernel.tune(64, (zeros(64), 1, 64), [32])
    assert kernel.suggest(64) == (2, block)


def test_without_a_cache_the_choice_lasts_as_long_as_the_kernel(python, tmp_path):
    done = python(
        f"""
        import cyrt
        kernel, x = cyrt.Kernel({ADD!r}, "add"), cyrt.Buffer(256)
        x.fill(0)
        print(kernel.tune(64, (x, 1, 64), [96]), kernel.suggest(64))
    """,
        CYRT_CACHE="0",
        CYRT_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert done.stdout.split() == ["96", "(1,", "96)"], done.stderr
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("blocks", "error", "match"),
    [
        ([], ValueError, "threads or fewer"),
        ([2048], ValueError, r"got \[2048\]"),
        ([0], ValueError, "at least 1, got 0"),
        ([1.5], TypeError, "got 1.5"),
    ],
)
def test_blocks_refused(add, blocks, error, match):
    with pytest.raises(error, match=match):
        add.tune(8, (zeros(8), 1, 8), blocks)


def test_arguments_of_tuning_refused(add, store):
    x = zeros(8)
    with pytest.raises(ValueError, match="at least 1 element"):
        add.tune(0, (x, 1, 8))
    with pytest.raises(TypeError, match=r"add: argument 2 \(int by\)"):
        add.tune(8, (x, "1", 8))
    with pytest.raises(TypeError, match=r"expected 3 arguments, got 2"):
        add.tune(8, (x, 1))
    assert (ints(x) == 0).all()
    assert not choices(store)


def test_declared_memory_is_left_as_it_was(store):
    kernel = cyrt.Kernel(
        "struct View { int* data; int n; };"
        'extern "C" __global__ void k(View v) { if (threadIdx.x < v.n) v.data[threadIdx.x]++; }',
        "k",
    )
    x = zeros(8)
    view = np.array((x.ptr, 8), np.dtype([("data", "u8"), ("n", "i4")], align=True))[()]
    kernel.tune(8, [view], [32], writes=[x])
    assert (ints(x) == 0).all()
    kernel.for_each(8, view, writes=[x])
    assert (ints(x) == 1).all()
