"""What the command encoder takes and refuses, how it ends, and what it tells of itself."""

from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest
from outside import Library, N, Tensor, device, edges, host, only_batches, only_graphs, zeros

import cyrt


@pytest.fixture
def x():
    return zeros()


# --- making and ending one ---


def test_of_a_stream_of_its_own_or_a_given_one(module, x):
    stream = cyrt.Stream(priority=-1)
    with cyrt.CommandEncoder(stream) as given, cyrt.CommandEncoder() as own:
        assert given.stream == stream != own.stream != cyrt.stream()
        given.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
        own.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
        with stream:
            assert cyrt.current_encoder() is given
        with pytest.raises(ValueError, match="another CommandEncoder was made for the stream"):
            cyrt.CommandEncoder(stream)
        assert cyrt.current_encoder() is not given
    assert (host(x) == 2).all()
    with stream:
        implied = cyrt.current_encoder()
        assert implied is cyrt.current_encoder()
        module["axpb"][1, N](x, 1.0, 1.0, N)
    with cyrt.CommandEncoder(stream):  # takes the place of the stream's own
        with pytest.raises(RuntimeError, match="closed"):
            implied.commit()
        assert (host(x) == 3).all()


def test_of_a_stream_that_another_stream_left_behind(module, x):
    """Ended streams' driver streams are used again, not their encoders."""
    for _ in range(20):
        stream = cyrt.Stream()
        with stream:
            module["axpb"][1, N](x, 1.0, 1.0, N)
            cyrt.synchronize()
            old = cyrt.current_encoder()
        del stream
        with cyrt.CommandEncoder() as encoder:
            encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
            assert encoder.stats()["operations"] == 1
            assert encoder is not old
            encoder.commit()
    assert (host(x) == 40).all()


def test_another_thread_gets_the_stream_that_one_left_behind():
    failures = []

    def use():
        try:
            with cyrt.batch() as encoder:
                encoder.keep(encoder.num_ops)
                encoder.commit()
        except BaseException as error:
            failures.append(error)

    for _ in range(8):
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    assert not failures


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"stream": "x"}, TypeError),
        ({"max_ops": 0}, ValueError),
        ({"max_ops": 1.5}, TypeError),
        ({"max_ops": True}, TypeError),
        ({"max_mb": -1}, ValueError),
        ({"max_mb": "1"}, TypeError),
        ({"max_ops": 1 << 40}, ValueError),
        ({"graphs": 1}, TypeError),
        ({"nonsense": 1}, TypeError),
    ],
)
def test_bad_options(bad, error):
    with pytest.raises(error, match=next(iter(bad))):
        cyrt.CommandEncoder(**bad)


@only_batches
def test_max_ops_and_max_mb(module, x):
    with cyrt.CommandEncoder(max_ops=4) as encoder:
        for _ in range(20):
            encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
            assert encoder.num_ops <= 4
        assert encoder.stats()["commits"] >= 4
    buffers = [zeros(150_000) for _ in range(8)]
    with cyrt.CommandEncoder(max_mb=1) as encoder:
        for _ in range(20):  # bytes touched count once
            encoder.add_kernel(module["axpb"], 1, N, (buffers[0], 0.0, 1.0, N))
        assert encoder.stats()["commits"] == 0
        for buffer in buffers:
            encoder.add_kernel(module["axpb"], 1, N, (buffer, 0.0, 1.0, N))
        assert encoder.stats()["commits"] == 3
    assert (host(x) == 20).all()
    assert all((host(b)[:N] == 1).all() for b in buffers)


def test_without_graphs(module, x):
    with cyrt.CommandEncoder(graphs=False) as encoder:
        with encoder.concurrent():
            for _ in range(3):
                encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
        encoder.add_kernel(module["axpb"], 2, N // 2, (x, 1.0, 1.0, N), cooperative=True)
        assert encoder.num_ops == 0
        assert encoder.last_plan() is None
        stats = encoder.stats()
        assert stats["operations"] == 4
        assert stats["launches"] == 0
    assert (host(x) == 4).all()


def test_closed(encoder, module, x):
    encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
    encoder.close()
    encoder.close()
    assert (host(x) == 1).all()
    for call in (
        encoder.commit,
        encoder.synchronize,
        encoder.__enter__,
        lambda: encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N)),
        lambda: encoder.add_memcpy(x, bytes(4 * N)),
        lambda: encoder.add_memset(x, 1),
        lambda: encoder.add_graph(1),
        lambda: encoder.capture().__enter__(),
        lambda: encoder.concurrent().__enter__(),
        lambda: encoder.keep(1),
        lambda: encoder.record(cyrt.Event()),
        lambda: encoder.wait(cyrt.Event()),
        lambda: encoder.add_completed_handler(print),
    ):
        with pytest.raises(RuntimeError, match="the CommandEncoder is closed"):
            call()
    assert "closed" in repr(encoder)
    assert encoder.num_ops == 0
    assert encoder.stats()["operations"] == 1
    with encoder.stream:  # the stream goes on without it
        module["axpb"][1, N](x, 1.0, 1.0, N)
    assert (host(x) == 2).all()


def test_a_streams_own_encoder_is_not_closed():
    with pytest.raises(ValueError, match="a stream's own encoder ends with its stream"):
        cyrt.current_encoder().close()


def test_one_that_was_not_initialised():
    encoder = cyrt.CommandEncoder.__new__(cyrt.CommandEncoder)
    for call in (
        encoder.commit,
        encoder.synchronize,
        encoder.close,
        lambda: encoder.keep(1),
        lambda: encoder.stream,
    ):
        with pytest.raises(RuntimeError, match="not initialised|is closed"):
            call()
    assert encoder.num_ops == 0
    assert encoder.last_plan() is None
    assert repr(encoder)
    with pytest.raises(RuntimeError, match="initialised once"):
        cyrt.current_encoder().__init__()


def test_closed_inside_its_own_blocks(module, x):
    encoder = cyrt.CommandEncoder()
    with encoder.stream, cyrt.batch(), encoder.concurrent():
        encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
        encoder.close()
    assert (host(x) == 1).all()


def test_dropped_ones_run_their_work_and_leave_nothing(module, x):
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("reads /proc")

    def resident():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    streams = set()

    def use(count):
        for _ in range(count):
            encoder = cyrt.CommandEncoder()
            streams.add(encoder.stream.handle)
            encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))

    use(200)
    before = resident()
    use(2000)
    assert (host(x) == 2200).all()
    assert len(streams) <= 40
    assert resident() - before < 16 << 20


def test_another_threads_encoder(module, encoder, x):
    errors = []

    def use():
        for call in (
            encoder.commit,
            encoder.close,
            encoder.synchronize,
            lambda: encoder.keep(1),
            lambda: encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N)),
        ):
            try:
                call()
            except RuntimeError as error:
                errors.append(str(error))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert errors == ["the CommandEncoder belongs to another thread"] * 5
    assert encoder.num_ops == 0


# --- add_kernel ---


@pytest.mark.parametrize(
    ("bad", "error", "text"),
    [
        ({"kernel": "axpb"}, TypeError, "expected a Kernel, got str"),
        ({"grid": 0}, ValueError, "grid"),
        ({"block": (1, 2, 3, 4)}, (TypeError, ValueError), "block"),
        ({"block": 2000}, ValueError, "2000|1,?024"),
        ({"smem": -1}, ValueError, "smem|shared"),
        ({"smem": 1 << 30}, ValueError, "shared"),
        ({"args": ()}, TypeError, "expected 4 arguments"),
        ({"args": 5}, TypeError, "int"),
        ({"cluster": 0}, ValueError, "cluster"),
        ({"cluster": "2"}, TypeError, "cluster"),
        ({"grid": 3, "cluster": 2}, ValueError, "cluster"),
        ({"grid": 1 << 24, "cooperative": True}, ValueError, "at once"),
        ({"reads": 5}, TypeError, "reads: expected a list"),
        ({"writes": np.zeros(2)}, TypeError, "writes: expected a list"),
        ({"writes": [np.zeros(2), 7]}, (TypeError, ValueError), "writes|DLPack"),
        ({"reads": ["x"]}, TypeError, r"reads\[0\]: expected a Buffer, .* got str"),
    ],
)
def test_bad_kernels_leave_the_recording_as_it_was(module, encoder, x, bad, error, text):
    given = {"kernel": module["axpb"], "grid": 1, "block": N, "args": (x, 1.0, 1.0, N), **bad}
    encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
    before = encoder.num_ops
    with pytest.raises(error, match=text):
        encoder.add_kernel(**given)
    assert encoder.num_ops == before
    encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
    assert (host(x) == 2).all()


@only_batches
def test_reads_and_writes_replace_what_the_signature_says(module, encoder):
    a, b, c = zeros(), zeros(), zeros()
    encoder.commit()
    add, args = module["add"], (a, b, c, 0)  # the size is 0: what is said of it is not true
    encoder.add_kernel(module["axpb"], 1, N, (a, 1.0, 1.0, N))  # 0
    encoder.add_kernel(add, 1, N, args, reads=[])  # 1: not after 0
    encoder.add_kernel(add, 1, N, args, reads=[a], writes=[])  # 2: after 0 alone
    encoder.add_kernel(add, 1, N, (b, b, c, 0), reads=[a, b], writes={c})  # 3: after 0 and 1
    encoder.commit()
    assert edges(encoder) == [(0, 2), (0, 3), (1, 3)]


GRID_SYNC = r"""
extern "C" __global__ void rotate(unsigned* arrived, int* x, int rounds) {
    int i = blockIdx.x, n = gridDim.x;
    for (int round = 1; round <= rounds; ++round) {
        int next = ((volatile int*)x)[(i + 1) % n];
        for (int half = 0; half < 2; ++half) {
            if (half) x[i] = next;
            __threadfence();
            atomicAdd(arrived, 1u);
            while (*(volatile unsigned*)arrived < (2 * (round - 1) + half + 1) * n) {}
        }
    }
}
"""


@pytest.mark.parametrize("graphs", [True, False])
def test_a_cooperative_launch_synchronises_its_grid(graphs):
    rotate = cyrt.Kernel(GRID_SYNC, "rotate")
    blocks = 16
    with cyrt.CommandEncoder(graphs=graphs) as encoder:
        for rounds in (3, 5):
            arrived, values = cyrt.Buffer(4), device(np.arange(blocks, dtype=np.int32))
            arrived.fill(0)
            encoder.add_kernel(rotate, blocks, 1, (arrived, values, rounds), cooperative=True)
            out = np.empty(blocks, np.int32)
            encoder.add_memcpy(out, values)
            assert out.tolist() == np.roll(np.arange(blocks), -rounds).tolist()
        if graphs and encoder.last_plan() is not None:
            assert encoder.last_plan().nodes[0].cooperative


CLUSTERS = r"""
extern "C" __global__ void size(int* out) {
    unsigned n;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(n));
    if (threadIdx.x == 0) out[blockIdx.x] = n;
}
"""


@pytest.mark.gpu
@pytest.mark.parametrize("graphs", [True, False])
def test_clusters_that_change_from_batch_to_batch(graphs):
    if cyrt.Device().compute_capability < (9, 0):
        pytest.skip("clusters need compute capability 9.0")
    size, out = cyrt.Kernel(CLUSTERS, "size"), np.empty(8, np.int32)
    buffer = cyrt.Buffer(out.nbytes)
    with cyrt.CommandEncoder(graphs=graphs) as encoder:
        for cluster in (1, 2, 4, (8, 1, 1), 2, 1, None, 8) * 3:
            encoder.add_kernel(size, 8, 32, (buffer,), cluster=cluster)
            encoder.add_memcpy(out, buffer)
            wanted = cluster[0] if isinstance(cluster, tuple) else cluster or 1
            assert (out == wanted).all(), cluster


@only_graphs
def test_stats(module, encoder, x):
    assert encoder.stats().keys() == {
        "operations",
        "commits",
        "hits",
        "misses",
        "chained",
        "patched",
        "instantiations",
        "launches",
        "evictions",
        "repoints",
        "opaque_captures",
        "early_loads",
        "replayed",
        "fused_plans",
        "fused_nodes",
        "bytes_saved",
        "hot_plans",
        "rejected_plans",
        "plans",
        "bytes_held",
        "templates",
    }
    for _ in range(5):
        encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
        encoder.commit()
    stats = encoder.stats()
    assert stats["operations"] == stats["commits"] == stats["launches"] == 5
    assert stats["hits"] + stats["misses"] == 5
    assert stats["misses"] <= 1
    assert stats["plans"] >= 1
    assert stats["bytes_held"] > 0


def test_an_exception_inside_batch_launches_what_was_recorded(module, x):
    tensor = Tensor(Library())

    def fail():
        module["axpb"][1, N](tensor, 1.0, 1.0, N)
        with cyrt.batch():
            module["axpb"][1, N](tensor, 1.0, 1.0, N)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), cyrt.batch():
        fail()
    assert (tensor.values() == 2).all()
    module["axpb"][1, N](tensor, 1.0, 1.0, N)  # commits by itself again
    assert (tensor.values() == 3).all()
