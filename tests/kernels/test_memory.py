"""Memory that a kernel reaches without an argument: ``reads=`` and ``writes=``."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt

SOURCE = r"""
struct View { float* data; int n; };
extern "C" __global__ void store(View v, float value) { v.data[threadIdx.x] = value; }
extern "C" __global__ void load(View v, float* out) { out[threadIdx.x] = v.data[threadIdx.x]; }
extern "C" __global__ void through(float** table, float value) { table[1][threadIdx.x] = value; }
extern "C" __global__ void inc(float* x) { x[threadIdx.x] += 1; }
"""
VIEW = np.dtype([("data", "u8"), ("n", "i4")], align=True)
N = 32
only_graphs = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')",
    reason="looks into batches; CYRT_GRAPHS=0 has none",
)


@pytest.fixture(scope="module")
def module():
    return cyrt.Module(SOURCE)


@pytest.fixture
def memory():
    """Three buffers of zeros, and a table of their addresses; addresses are out already."""
    buffers = [cyrt.Buffer(4 * N) for _ in range(3)]
    for buffer in buffers:
        buffer.fill(0)
    table = cyrt.Buffer(8 * len(buffers))
    table.copy_from(np.array([b.ptr for b in buffers], np.uint64))
    return buffers, table


@pytest.fixture
def encoder():
    """One whose batches its user commits: memory whose address is out commits at once else."""
    made = cyrt.CommandEncoder()
    with cyrt.stream(made.stream):
        yield made


def view(buffer):
    return np.array((buffer.ptr, N), VIEW)[()]


def first(buffer):
    out = np.zeros(N, np.float32)
    buffer.copy_to(out)
    assert (out == out[0]).all()
    return out[0]


def edges(encoder):
    encoder.commit()
    return {(source, target) for source, target, _ in encoder.last_plan().edges}


@only_graphs
def test_undeclared_is_ordered_against_everything(module, memory, encoder):
    (x, y, z), _ = memory
    v = view(y)
    module["inc"][1, N](x)
    module["store"][1, N](v, 5.0)
    module["inc"][1, N](z)
    assert edges(encoder) == {(0, 1), (1, 2)}
    assert [first(b) for b in (x, y, z)] == [1, 5, 1]


@only_graphs
def test_declared_is_ordered_by_what_is_listed(module, memory, encoder):
    (x, y, z), _ = memory
    v = view(y)
    module["inc"][1, N](x)
    module["store"][1, N](v, 5.0, writes=[y])
    module["inc"][1, N](y)
    module["load"][1, N](v, z, reads=[y])
    module["store"][1, N](v, 7.0, writes=(y,))
    module["inc"][1, N](z)
    assert edges(encoder) == {(1, 2), (2, 3), (3, 4), (3, 5)}  # 2 to 4 follows
    assert [first(b) for b in (x, y, z)] == [1, 7, 7]


@only_graphs
def test_pointers_to_pointers(module, memory, encoder):
    (x, y, z), table = memory
    module["inc"][1, N](x)
    module["through"][1, N](table, 3.0, writes=[y])
    module["inc"][1, N](y)
    module["inc"][1, N](z)
    assert edges(encoder) == {(1, 2)}
    assert first(y) == 4


@only_graphs
def test_an_empty_list_says_that_there_is_nothing_more(module, memory, encoder):
    (x, _, _), _ = memory
    outside = cyrt.PinnedBuffer(4 * N)
    module["inc"][1, N](x)
    module["store"][1, N](view(outside), 2.0, writes=[])
    assert edges(encoder) == set()


@only_graphs
def test_declared_foreign_memory_commits(module, memory):
    (_, y, _), _ = memory
    x = cyrt.Buffer(4 * N)
    x.fill(0)
    v = view(y)
    cyrt.commit()
    module["inc"][1, N](x)
    assert cyrt.current_encoder().num_ops == 1
    module["store"][1, N](v, 6.0, writes=[cyrt.pointer(y.ptr, y.nbytes)])
    assert cyrt.current_encoder().num_ops == 0
    assert first(y) == 6


def test_more_memory_than_fits_the_stack(module, memory):
    (_, y, _), _ = memory
    many = [cyrt.Buffer(512) for _ in range(100)]
    module["store"][1, N](view(y), 8.0, reads=many, writes=[y])
    assert first(y) == 8


@pytest.mark.parametrize(
    ("declared", "error", "match"),
    [
        (
            {"writes": 5},
            TypeError,
            r"store: writes: expected a list of Buffers and arrays, got int",
        ),
        ({"reads": [None]}, TypeError, r"reads\[0\]: expected a Buffer, .* got NoneType"),
        ({"writes": [7]}, TypeError, r"writes\[0\]: expected a Buffer, .* got int"),
        ({"writes": [np.zeros(4)]}, TypeError, r"writes\[0\]: .*got ndarray"),
        ({"read": []}, TypeError, r"store: .* by name only reads=, writes=, cluster=; not read="),
    ],
)
def test_what_is_no_memory(module, memory, declared, error, match):
    (_, y, _), _ = memory
    with pytest.raises(error, match=match):
        module["store"][1, N](view(y), 9.0, **declared)
    assert first(y) == 0


def test_a_buffer_is_no_list(module, memory):
    (_, y, _), _ = memory
    with pytest.raises(TypeError, match=r"writes: expected a list of Buffers and arrays, got Buff"):
        module["store"][1, N](view(y), 9.0, writes=y)


def test_freed_and_read_only_memory(module, memory):
    (_, y, z), _ = memory
    v = view(y)
    z.free()
    with pytest.raises(ValueError, match=r"store: reads: .* was freed already"):
        module["store"][1, N](v, 9.0, reads=[z])

    class ReadOnly:
        __cuda_array_interface__ = {  # noqa: RUF012
            "shape": (N,),
            "typestr": "<f4",
            "data": (y.ptr, True),
            "version": 3,
        }

    with pytest.raises(ValueError, match=r"writes\[0\]: .*read-only"):
        module["store"][1, N](v, 9.0, writes=[ReadOnly()])
    assert first(y) == 0
