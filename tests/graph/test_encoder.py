"""Recording, batches, plans: what the encoder does with operations."""

from __future__ import annotations

import gc
import threading
from ctypes import c_void_p
from functools import partial

import numpy as np
import pytest
from outside import only_batches
from threads import run_in_threads

import cyrt

SOURCE = r"""
extern "C" __global__ void add(const float* x, const float* b, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + b[i];
}
extern "C" __global__ void axpb(float* x, float a, float b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = a * x[i] + b;
}
"""
N = 256


@pytest.fixture(scope="module")
def module():
    return cyrt.Module(SOURCE)


@pytest.fixture
def encoder():
    """A fresh encoder, current on this thread."""
    stream = cyrt.Stream()
    with stream:
        found = cyrt.current_encoder()
        found.commit()
        yield found
        found.commit()


def device(array):
    buffer = cyrt.Buffer(array.nbytes)
    buffer.copy_from(array)
    return buffer


def host(buffer):
    out = np.empty(buffer.nbytes // 4, np.float32)
    buffer.copy_to(out)
    return out


def graphs_on():
    from cyrt import settings

    return settings.get("CYRT_GRAPHS")


only_graphs = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')",
    reason="counts batches; CYRT_GRAPHS=0 has none",
)


def changes(encoder, work):
    before = encoder.stats()
    work()
    after = encoder.stats()
    return {key: after[key] - before[key] for key in before}


@only_graphs
def test_operations_are_recorded_until_a_result_is_wanted(module, encoder):
    x = device(np.zeros(N, np.float32))
    for _ in range(10):
        module["axpb"][1, N](x, 1.0, 1.0, N)
    assert encoder.num_ops == 10
    assert (host(x) == 10).all()
    assert encoder.num_ops == 0


@only_graphs
@pytest.mark.parametrize(
    "ask",
    [
        "ptr",
        "handle",
        "done",
        "event",
        "event_wait",
        "synchronize",
        "copy_to",
        "commit",
        "other_stream",
        "protocol",
    ],
)
def test_what_commits(module, encoder, ask):
    x = device(np.zeros(N, np.float32))
    module["axpb"][1, N](x, 1.0, 1.0, N)
    assert encoder.num_ops == 1
    stream = cyrt.stream()
    {
        "ptr": lambda: x.ptr,
        "handle": lambda: stream.handle,
        "protocol": stream.__cuda_stream__,
        "done": lambda: stream.done,
        "event": lambda: cyrt.Event().record(),
        "event_wait": lambda: cyrt.Event().record(cyrt.Stream()).wait(),
        "synchronize": cyrt.synchronize,
        "copy_to": lambda: host(x),
        "commit": cyrt.commit,
        "other_stream": lambda: cyrt.Stream().wait(stream),
    }[ask]()
    assert encoder.num_ops == 0


@only_graphs
@pytest.mark.usefixtures("pooled")
def test_a_fill_is_a_kernel_of_the_batch(module, encoder):
    x = cyrt.Buffer(4 * N)
    x.fill(np.float32(2.5))
    x[: 2 * N].fill(0)
    x[2 * N : 3 * N].fill(np.float16(1))
    assert encoder.num_ops == 3
    module["axpb"][1, N](x, 2.0, 1.0, N)
    expected = np.full(N, 2.5, np.float32)
    expected.view(np.uint8)[: 2 * N] = 0
    expected.view(np.float16)[N : 3 * N // 2] = 1
    assert host(x).tolist() == (2 * expected + 1).tolist()


@only_graphs
def test_a_steady_loop_hits_and_patches_nothing(module, encoder):
    x, b = device(np.zeros(N, np.float32)), device(np.ones(N, np.float32))

    def loop():
        for _ in range(2000):
            module["add"][1, N](x, b, x, N)

    loop()
    cyrt.commit()
    found = changes(encoder, loop)
    assert found["patched"] == found["instantiations"] == found["misses"] == 0
    assert found["hits"] == found["commits"] >= 2000 // 128
    assert (host(x) == 4000).all()


@only_graphs
def test_batches_lock_to_the_loop(module, encoder):
    """Loops of other lengths than the batch: after the first rounds every commit hits."""
    buffers = [device(np.full(N, i, np.float32)) for i in range(8)]
    for length in (7, 50, 90, 1009):

        def loop(rounds, length=length):
            for _ in range(rounds):
                for i in range(length):
                    module["axpb"][1, 32 + 32 * (i == 0)](buffers[i % 8], 1.0, 0.0, N)

        loop(130 if length > 1000 else 6000 // length)
        found = changes(encoder, lambda: loop(20))
        assert found["misses"] <= 0.05 * found["commits"] + 1, (length, found)


@only_graphs
def test_new_addresses_and_sizes_are_patched(module, encoder):
    one = device(np.ones(N, np.float32))
    results = []
    before = encoder.stats()
    for n in (N, N // 2, N, 64, 128, 32, N, 96):
        y = cyrt.Buffer(4 * N)
        y.fill(0)
        cyrt.commit()
        module["add"][(n + 31) // 32, 32](one, one, y, n)
        cyrt.commit()
        results.append((n, y))
    for n, y in results:
        assert host(y).tolist() == [2.0] * n + [0.0] * (N - n)
    after = encoder.stats()
    assert after["misses"] - before["misses"] <= 2  # the fill's batch and the addition's
    assert after["patched"] > before["patched"]


@only_graphs
def test_edges_are_those_of_the_memory(module, encoder):
    a, b, c, d = (device(np.ones(N, np.float32)) for _ in range(4))
    cyrt.commit()
    module["add"][1, N](a, b, c, N)  # 0
    module["add"][1, N](a, b, d, N)  # 1: reads what 0 reads
    module["axpb"][1, N](a, 2.0, 0.0, N)  # 2: writes what 0 and 1 read
    module["add"][1, N](c, d, b, N)  # 3: reads 0's and 1's, writes what they read
    cyrt.commit()
    edges = {(source, target) for source, target, _ in encoder.last_plan().edges}
    assert edges == {(0, 2), (1, 2), (0, 3), (1, 3)}
    assert (host(b) == 4).all()


@only_graphs
def test_edges_that_follow_from_others_are_left_out(module, encoder):
    a, b, c, d, e = (device(np.ones(N, np.float32)) for _ in range(5))
    cyrt.commit()
    module["add"][1, N](a, a, b, N)  # 0
    module["add"][1, N](a, b, c, N)  # 1: after 0
    module["add"][1, N](b, c, d, N)  # 2: after 1, and so after 0
    module["add"][1, N](a, b, e, N)  # 3: beside 1 and 2
    module["add"][1, N](d, e, a, N)  # 4: after 2 and 3, and so after 0 and 1
    cyrt.commit()
    edges = {(source, target) for source, target, _ in encoder.last_plan().edges}
    assert edges == {(0, 1), (1, 2), (0, 3), (2, 4), (3, 4)}
    assert (host(a) == 8).all()


@only_graphs
def test_views_share_their_memory(module, encoder):
    whole = device(np.zeros(2 * N, np.float32))
    module["axpb"][1, N](whole[: 4 * N], 0.0, 5.0, N)
    module["add"][1, N](whole[: 4 * N], whole[: 4 * N], whole[4 * N :], N)
    cyrt.commit()
    assert (0, 1) in {(s, t) for s, t, _ in encoder.last_plan().edges}
    assert (host(whole)[N:] == 10).all()


@only_graphs
def test_width_is_capped(module, encoder):
    buffers = [device(np.zeros(N, np.float32)) for _ in range(50)]
    cyrt.commit()
    for buffer in buffers:
        module["axpb"][1, N](buffer, 1.0, 1.0, N)
    cyrt.commit()
    assert len(encoder.last_plan().edges) == 50 - 8
    assert all((host(buffer) == 1).all() for buffer in buffers)


@only_graphs
def test_freed_memory_rests_until_the_commit(module, encoder):
    x = device(np.zeros(N, np.float32))
    addresses = []
    for _ in range(5):
        scratch = cyrt.Buffer(4 * N)
        module["add"][1, N](x, x, scratch, N)
        addresses.append(scratch)
        scratch = None
        addresses[-1] = repr(addresses[-1])
    assert len(set(addresses)) == 5
    cyrt.commit()


@only_graphs
def test_large_memory_freed_inside_concurrent_rests(module, encoder):
    """What uses it inside is not ordered, whatever its size."""
    sources = [device(np.full(N, i, np.float32)) for i in range(3)]
    sums, addresses = [], []
    with encoder.concurrent():
        for source in sources:
            scratch = cyrt.Buffer(1 << 20)
            module["add"][1, N](source, source, scratch, N)
            addresses.append(repr(scratch))
            scratch = None
    assert len(set(addresses)) == 3
    for source in sources:  # reused now, in order
        scratch = cyrt.Buffer(1 << 20)
        module["add"][1, N](source, source, scratch, N)
        sums.append(device(np.zeros(N, np.float32)))
        module["add"][1, N](scratch, source, sums[-1], N)
        scratch = None
    assert [host(each)[0] for each in sums] == [0, 3, 6]


@only_batches
@pytest.mark.usefixtures("pooled")
def test_a_pool_that_grows_commits_nothing_inside_concurrent(module, encoder):
    """Returning memory to the driver launches what is recorded, where freed memory is reused."""
    source = device(np.ones(N, np.float32))
    gc.collect()
    cyrt.trim_memory()  # more than a block of that size is more than the peak
    with encoder.concurrent():
        for _ in range(3):
            scratch = cyrt.Buffer(1 << 26)
            module["add"][1, N](source, source, scratch, N)
            scratch = None
        assert encoder.num_ops == 3
    assert cyrt.memory_stats()["reserved"] >= 3 << 26


def test_a_stream_that_is_used_again_has_no_encoder(module):
    for _ in range(3):
        stream = cyrt.Stream()
        with stream:
            x = device(np.zeros(N, np.float32))
            module["axpb"][1, N](x, 1.0, 1.0, N)
            assert (host(x) == 1).all()
        stream = None
        encoder = cyrt.CommandEncoder(cyrt.Stream())
        encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
        encoder.synchronize()
        assert (host(x) == 2).all()
        with pytest.raises(ValueError, match="another CommandEncoder was made"):
            cyrt.CommandEncoder(encoder.stream)
        encoder.close()


@only_graphs
@pytest.mark.usefixtures("pooled")
def test_a_loop_with_allocation_alternates_between_two_sets(module, encoder):
    b = device(np.ones(N, np.float32))

    x = device(np.zeros(N, np.float32))
    for i in range(5120):
        if i == 2560:  # the addresses are known by now
            before = encoder.stats()
        y = cyrt.Buffer(4 * N)
        module["add"][1, N](x, b, y, N)
        x = y
    after = encoder.stats()
    assert after["commits"] - before["commits"] >= 20
    assert after["patched"] == before["patched"]
    assert after["instantiations"] == before["instantiations"]
    assert (host(x) == 5120).all()


def test_ten_thousand_operations(module, encoder):
    x = device(np.zeros(N, np.float32))
    for _ in range(10_000):
        module["axpb"][1, N](x, 1.0, 1.0, N)
    assert (host(x) == 10_000).all()


def test_commit_of_nothing(encoder):
    before = encoder.stats()["commits"]
    cyrt.commit()
    encoder.synchronize()
    assert encoder.stats()["commits"] == before


def test_more_topologies_than_the_cache_holds(python):
    done = python(
        """
        import numpy as np, cyrt
        m = cyrt.Module('extern "C" __global__ void inc(int* x) { *x += 1; }')
        a, b = cyrt.Buffer(4), cyrt.Buffer(4)
        a.fill(0); b.fill(0)
        total = 0
        for _ in range(2):
            for n in range(1, 40):
                for i in range(n):
                    m["inc"][1, 1](a)
                    m["inc"][1, 1](b if i % 2 else a)
                    total += 2
                cyrt.commit()
        out = np.zeros(1, np.int32); got = 0
        for buffer in (a, b):
            buffer.copy_to(out); got += int(out[0])
        assert got == total, (got, total)
        stats = cyrt.current_encoder().stats()
        from cyrt import settings
        if settings.get("CYRT_GRAPHS"):
            assert stats["plans"] <= 5 and stats["evictions"] > 50, stats
        """,
        CYRT_GRAPH_CACHE_SIZE="5",
    )
    assert done.returncode == 0, done.stderr


def test_sizes_and_parameters_that_change(python):
    done = python(
        """
        import numpy as np, cyrt
        m = cyrt.Module('extern "C" __global__ void set(int* x, int v) { x[threadIdx.x] = v; }')
        buffers = [cyrt.Buffer(256) for _ in range(12)]
        for buffer in buffers:
            buffer.fill(0)
        for round in range(6):
            for i in range(12):
                m["set"][1, 8 * (1 + (i + round) % 8)](
                    buffers[(i * 5 + round) % 12], 100 * round + i)
            cyrt.commit()
        out = np.zeros(64, np.int32)
        for i in range(12):
            buffers[(i * 5 + 5) % 12].copy_to(out)
            assert out[0] == 500 + i, (i, out[0])
        """
    )
    assert done.returncode == 0, done.stderr


def test_writable_globals_order_their_kernels(encoder):
    count = cyrt.Kernel(
        '__device__ int calls = 0;extern "C" __global__ void count(int* out) { *out = ++calls; }',
        "count",
    )
    outs = [cyrt.Buffer(4) for _ in range(20)]
    for out in outs:
        count[1, 1](out)
    values = []
    for out in outs:
        raw = np.zeros(1, np.int32)
        out.copy_to(raw)
        values.append(int(raw[0]))
    assert values == list(range(values[0], values[0] + 20))


def test_two_threads_two_streams(module):
    shared = device(np.zeros(N, np.float32))
    private = [device(np.zeros(N, np.float32)) for _ in range(4)]

    def work(index):
        for _ in range(300):
            module["add"][1, N](shared, private[index], private[index], N)
            module["axpb"][1, N](private[index], 1.0, 1.0, N)

    assert run_in_threads(*(partial(work, i) for i in range(4))) == []
    for buffer in private:
        assert (host(buffer) == 300).all()


@only_graphs
def test_read_beside_read_costs_no_commit(module, encoder):
    shared = device(np.ones(N, np.float32))
    mine, theirs = device(np.zeros(N, np.float32)), device(np.zeros(N, np.float32))
    other = cyrt.CommandEncoder()

    def beside():
        other.add_kernel(module["add"], 1, N, (shared, theirs, theirs, N))

    beside()  # orders it after the copies above
    other.commit()
    for _ in range(10):
        module["add"][1, N](shared, mine, mine, N)
        beside()
    assert encoder.num_ops == other.num_ops == 10
    module["axpb"][1, N](shared, 0.0, 7.0, N)  # waits for the other's reads
    assert (host(mine) == 10).all()
    with cyrt.stream(other.stream):
        assert (host(theirs) == 11).all()
        assert (host(shared) == 7).all()


def test_exit_with_a_recording_open(python):
    done = python(
        """
        import cyrt
        k = cyrt.Kernel('extern "C" __global__ void k(int* x) { *x = 1; }', "k")
        buffer = cyrt.Buffer(4)
        k[1, 1](buffer)
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_launch_blocking_names_the_line(python, only_emulated):
    done = python(
        """
        import cyrt
        k = cyrt.Kernel('extern "C" __global__ void stray(int* p, long long n) { p[n] = 1; }',
                        "stray")
        x = cyrt.Buffer(64)
        k[1, 1](x, 0)
        try:
            k[1, 1](x, 1 << 40)
        except cyrt.CudaError as error:
            assert "recorded at <string>:8" in str(error), error
        else:
            raise AssertionError
        """,
        CYRT_LAUNCH_BLOCKING="1",
    )
    assert done.returncode == 0, done.stderr


@only_graphs
def test_a_fault_names_the_operations_in_flight(python, only_emulated):
    done = python(
        """
        import cyrt
        m = cyrt.Module('extern "C" __global__ void stray(int* p, long long n) { p[n] = 1; }'
                        'extern "C" __global__ void fine(int* p) { *p = 1; }')
        x, y = cyrt.Buffer(64), cyrt.Buffer(64)
        m["fine"][1, 1](y)
        m["stray"][1, 1](x, 1 << 40)
        m["fine"][1, 1](y)
        try:
            cyrt.synchronize()
        except cyrt.CudaError as error:
            assert "Operations in flight:" in str(error), error
            assert "stray" in str(error) and "fine x 2" in str(error), error
        else:
            raise AssertionError
        """
    )
    assert done.returncode == 0, done.stderr


def test_keep_holds_until_the_batch_has_run(module, encoder):
    import weakref

    class Thing:
        pass

    thing = Thing()
    seen = weakref.ref(thing)
    x = device(np.zeros(N, np.float32))
    module["axpb"][1, N](x, 1.0, 1.0, N)
    encoder.keep(thing)
    del thing
    assert seen() is not None or not graphs_on()
    encoder.commit()
    encoder.synchronize()
    encoder.keep(None)
    encoder.commit()  # looks back
    assert seen() is None


@pytest.mark.usefixtures("batched")
def test_two_threads_that_replace_a_streams_encoder(replaced):
    """Both wait for the launch of what the stream's own encoder recorded; one of them gets the
    stream, and keeps it."""
    stream, found = cyrt.Stream(), []
    reached, go, both = threading.Event(), threading.Event(), threading.Barrier(2)
    with stream:
        x = cyrt.zeros(8)

    def halt(original, *arguments):
        reached.set()
        go.wait(30)
        return original(*arguments)

    def replace():
        try:
            encoder = cyrt.CommandEncoder(stream)
        except ValueError as error:
            found.append(str(error))
            both.wait(30)
            return
        both.wait(30)
        with encoder, stream:
            cyrt.add(x, 1, out=x)
            found.append(encoder.num_ops)

    threads = [threading.Thread(target=replace) for _ in range(2)]
    with stream:
        x += 1
        replaced("cuEventRecord", [c_void_p] * 2, halt)
        threads[0].start()
        assert reached.wait(30)
        threads[1].start()
        threads[1].join(0.3)  # it waits for the launch, too
        go.set()
        for each in threads:
            each.join(30)
    assert sorted(found, key=str) == [1, "another CommandEncoder was made for the stream"]
    assert (x.numpy() == 2).all()


@pytest.mark.usefixtures("batched")
def test_ctrl_c_ends_the_wait_of_a_new_encoder(gate, interrupt):
    """The stream keeps the old one."""
    stream = cyrt.Stream()
    with stream:
        x = cyrt.zeros(8)
        x += 1
        gate.wait()
        cyrt.current_encoder().keep(x)
        done = cyrt.Event().record(stream)
    interrupt("cuEventQuery")
    with pytest.raises(KeyboardInterrupt):
        cyrt.CommandEncoder(stream)
    assert interrupt.came("cuEventQuery")
    assert not done.done
    gate.open()
    with stream:
        x += 1
    with cyrt.CommandEncoder(stream) as encoder:
        assert encoder.num_ops == 0
    assert (x.numpy() == 2).all()


def test_another_threads_encoder_is_refused(encoder):
    caught = []

    def work():
        try:
            encoder.commit()
        except RuntimeError as error:
            caught.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert caught == ["the CommandEncoder belongs to another thread"]


PDL = r"""
extern "C" __global__ void step(float* x, int n) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 2.0f * x[i] + 1.0f;
}
"""


@only_graphs
def test_programmatic_edges(encoder):
    kernel = cyrt.Kernel(PDL, "step", pdl=True)
    plain = cyrt.Kernel(PDL, "step")
    x = device(np.zeros(N, np.float32))
    cyrt.commit()
    for k in (kernel, kernel, plain, kernel):
        k[1, N](x, N)
    cyrt.commit()
    qualifies = cyrt.Device().compute_capability >= (9, 0)
    assert encoder.last_plan().edges == [(0, 1, qualifies), (1, 2, False), (2, 3, False)]
    assert (host(x) == 15).all()


@pytest.mark.parametrize("source", [SOURCE.replace("add", "step")])
def test_pdl_wants_the_instruction(source):
    with pytest.raises(ValueError, match="never executes griddepcontrol.wait"):
        cyrt.Kernel(source, "step", pdl=True)


@only_graphs
@pytest.mark.usefixtures("pooled")
def test_memory_of_one_stream_that_rests_on_another(python):
    """What is freed while another stream's recording uses it is that stream's to hand out."""
    done = python(
        """
        import numpy as np, cyrt
        inc = cyrt.Kernel('extern "C" __global__ void inc(int* x) { *x += 1; }', "inc")
        theirs, keep = cyrt.CommandEncoder(), cyrt.Buffer(4)
        keep.fill(0)
        for _ in range(20):
            cyrt.synchronize()
            x = cyrt.Buffer(4)                          # memory of the current stream
            resting = repr(x)
            theirs.add_kernel(inc, 1, 1, (x,))
            del x                                       # not reused before theirs
            inc[1, 1](keep)
            cyrt.commit()
            with theirs.stream:
                y = cyrt.Buffer(4)
                assert repr(y) != resting
                theirs.add_kernel(inc, 1, 1, (y,))
                del y
        for stream in (cyrt.stream(), theirs.stream):
            with stream:
                buffers = [cyrt.Buffer(4) for _ in range(50)]
                assert len({repr(b) for b in buffers}) == 50, "a block was handed out twice"
        """
    )
    assert done.returncode == 0, done.stderr
