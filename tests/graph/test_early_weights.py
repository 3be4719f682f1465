"""Weights of products that may be loaded before ``griddepcontrol.wait``, and others."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import cyrt
from cyrt import settings

pytestmark = [
    pytest.mark.skipif(
        not all(map(settings.get, ("CYRT_GRAPHS", "CYRT_PDL", "CYRT_EARLY_LOADS")))
        or settings.get("CYRT_LAUNCH_BLOCKING"),
        reason="looks at weights that come early, which they do in batches only",
    )
]

LENGTH, WIDTH = 256, 192


@functools.cache
def ones(dtype):
    return cyrt.ones(LENGTH, dtype=dtype)


def layer(x, w):
    return cyrt.nn.linear(x, w, activation="silu", rms_norm=(ones(x.dtype), 1e-5))


# Shapes of the weights, and the product: of one row along and across the summed dimension, of four
# rows of 16-bit floats, which are another kernel's, and in layers.
PRODUCTS = {
    "along": (1, (WIDTH, LENGTH), "float32", lambda x, w: x @ w.T),
    "across": (1, (LENGTH, WIDTH), "float32", lambda x, w: x @ w),
    "skinny along": (4, (WIDTH, LENGTH), "bfloat16", lambda x, w: x @ w.T),
    "skinny across": (4, (LENGTH, WIDTH), "bfloat16", lambda x, w: x @ w),
    "layer of one row": (1, (WIDTH, LENGTH), "bfloat16", layer),
    "layer of four rows": (4, (WIDTH, LENGTH), "bfloat16", layer),
}
FILL = r"""
#ifdef PDL
#define WAIT asm volatile("griddepcontrol.launch_dependents; griddepcontrol.wait;" ::: "memory")
#else
#define WAIT
#endif
extern "C" __global__ void fill(float* x, float value, int n) {
    WAIT;
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = value;
}
extern "C" __global__ void opaque(float** unused) { WAIT; }
"""


@pytest.fixture(scope="module", autouse=True)
def capable():
    if cyrt.Device().compute_capability < (9, 0):
        pytest.skip("needs compute capability 9.0")


@pytest.fixture(scope="module")
def streams():
    """Three streams whose handle nobody has read: a new one may have that of one that ended."""
    found, passed = [], []
    x, w = cyrt.ones((1, LENGTH)), cyrt.ones((LENGTH, WIDTH))
    while len(found) < 3 and len(passed) < 100:
        stream = cyrt.Stream()
        with cyrt.CommandEncoder(stream) as encoder, cyrt.stream(stream):
            x @ w
            (found if encoder.stats()["early_loads"] else passed).append(stream)
    assert len(found) == 3
    return found


@pytest.fixture(autouse=True)
def encoder(streams):
    with cyrt.CommandEncoder(streams[0], max_ops=128) as encoder, cyrt.stream(streams[0]):
        yield encoder


class Case:
    """Rows of ones, weights, and what a test does with them."""

    def __init__(self, name):
        self.rows, self.shape, self.dtype, self.product = PRODUCTS[name]
        self.x = cyrt.ones((self.rows, LENGTH), dtype=self.dtype)
        self.w = self.full(0)
        ones(self.x.dtype)
        self.fill = cyrt.Kernel(FILL, "fill", pdl=True, define={"PDL": 1})
        self.plain = cyrt.Kernel(FILL, "fill")
        self.opaque = cyrt.Kernel(FILL, "opaque", pdl=True, define={"PDL": 1})
        self.other = cyrt.Stream()

    def full(self, value):
        return cyrt.full(self.shape, value, dtype=self.dtype)

    def host(self, value):
        return np.full(self.shape, value, cyrt.dtype(self.dtype).numpy)


def in_place(case, value):
    case.w += 1


def by_assignment(case, value):
    case.w[...] = value


def in_parts(case, value):
    case.w[:100] = value
    case.w[100:] = value


def by_a_kernel(case, value):
    case.fill[1, 256](case.w, value, case.w.size)


def by_a_plain_kernel(case, value):
    case.plain[1, 256](case.w, value, case.w.size)


def in_a_group(case, value):
    with cyrt.current_encoder().concurrent():
        case.fill[1, 256](case.w, value, case.w.size)


def by_a_fill(case, value):
    case.w.buffer.fill(np.float32(value))


def by_a_copy(case, value):
    case.w.buffer.copy_from(case.full(value).buffer)


def by_a_product(case, value):
    left = cyrt.full((case.shape[0], 1), value, dtype=case.dtype)
    case.w = left @ cyrt.ones((1, case.shape[1]), dtype=case.dtype)


def by_a_reduction(case, value):
    case.w = cyrt.sum(cyrt.full((2, *case.shape), value / 2, dtype=case.dtype), axis=0)


def by_a_permutation(case, value):
    case.w = cyrt.take(case.full(value), cyrt.arange(case.shape[0]), axis=0)


def before_others(case, value):
    """Through kernels that do not touch the weights."""
    case.w[...] = value
    case.x = case.x * 2 - case.x


WRITES = [
    in_place,
    by_assignment,
    in_parts,
    by_a_kernel,
    by_a_plain_kernel,
    in_a_group,
    by_a_fill,
    by_a_copy,
    by_a_product,
    by_a_reduction,
    by_a_permutation,
    before_others,
]


def run(case, write, rounds=8):
    """Write and multiply; return how many of the products might load their weights early."""
    encoder = cyrt.current_encoder()
    cyrt.commit()
    before = encoder.stats()["early_loads"]
    for value in range(1, rounds + 1):
        write(case, value)
        y = case.product(case.x, case.w)
        found = y.numpy()
        assert found.shape == (case.rows, WIDTH)
        assert (found == LENGTH * value).all(), (value, found)
    return encoder.stats()["early_loads"] - before


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", ["along", "across"])
def test_weights_written_in_the_batch_come_late(name, write):
    assert run(Case(name), write) == 0


@pytest.mark.parametrize("write", [in_place, by_assignment, by_a_copy, by_a_reduction])
@pytest.mark.parametrize("name", ["skinny along", "skinny across"])
def test_weights_of_halves_written_in_the_batch_come_late(name, write):
    assert run(Case(name), write) == 0


def in_the_batch_before(case, value):
    case.w[...] = value
    cyrt.commit()
    case.x = case.x * 2 - case.x


def on_another_stream(case, value):
    case.x = case.x * 2 - case.x
    with cyrt.stream(case.other):
        case.w[...] = value


def by_the_host(case, value):
    case.w.copy_from(case.host(value))
    case.x = case.x * 2 - case.x


@pytest.mark.parametrize("write", [in_the_batch_before, on_another_stream, by_the_host])
@pytest.mark.parametrize("name", PRODUCTS)
def test_other_weights_come_early(name, write):
    assert run(Case(name), write) == 8


@pytest.mark.parametrize("written", range(3), ids=["norm", "norm's bias", "bias"])
@pytest.mark.parametrize("late", [True, False])
def test_what_else_a_layer_of_one_row_reads(written, late):
    """A norm and biases come early with the weights, or all of them late."""
    x = np.where(np.arange(LENGTH) % 2, 1, -1).astype(np.float32)
    w = np.random.default_rng(1).integers(-2, 3, (WIDTH, LENGTH)).astype(np.float32)
    host = [np.ones(n, np.float32) for n in (LENGTH, LENGTH, WIDTH)]
    arrays, row, matrix = [cyrt.asarray(each) for each in host], cyrt.asarray(x), cyrt.asarray(w)
    cyrt.commit()
    encoder = cyrt.current_encoder()
    before = encoder.stats()["early_loads"]
    for _ in range(8):
        arrays[written] += 1
        host[written] += 1
        if not late:
            cyrt.commit()
        row = row * 2 - row
        y = cyrt.nn.linear(row, matrix, arrays[2], layer_norm=(arrays[0], arrays[1], 0.0))
        found = y.numpy()
        np.testing.assert_array_equal(found, w @ (x * host[0] + host[1]) + host[2])
    assert encoder.stats()["early_loads"] - before == (0 if late else 8)


def count(work):
    """How many of the products of `work` might load their weights early."""
    encoder = cyrt.current_encoder()
    before = encoder.stats()["early_loads"]
    work()
    return encoder.stats()["early_loads"] - before


@pytest.fixture
def case():
    case = Case("along")
    cyrt.commit()
    return case


def multiply(case):
    return case.product(case.x, case.w)


def test_of_memory_that_others_may_use(case):
    assert count(lambda: multiply(case)) == 1
    address = case.w.ptr
    assert count(lambda: multiply(case)) == 0
    buffer = cyrt.pointer(address, case.w.nbytes)
    case.w = cyrt.asarray(buffer, dtype="float32", shape=case.shape)
    assert count(lambda: multiply(case)) == 0


def test_of_a_stream_that_others_may_use(case, streams):
    with cyrt.stream(streams[2]):
        assert count(lambda: multiply(case)) == 1
        assert streams[2].handle
        assert count(lambda: multiply(case)) == 0


def test_in_and_behind_a_group(case):
    with cyrt.current_encoder().concurrent():
        assert count(lambda: multiply(case)) == 0
    assert count(lambda: multiply(case)) == 0
    cyrt.commit()
    assert count(lambda: multiply(case)) == 1


def test_behind_an_operation_that_may_write_anything(case):
    pointers = cyrt.zeros(1, dtype=cyrt.int64)
    with cyrt.batch():  # else a commit follows it where memory was exported
        case.opaque[1, 1](pointers)
        assert count(lambda: multiply(case)) == 0
    assert count(lambda: multiply(case)) == 1


def test_of_the_memory_of_the_result(case):
    """A kernel that writes into the block of the weights."""
    both = cyrt.zeros((WIDTH + 1, LENGTH))
    cyrt.commit()
    case.w, out = both[:WIDTH], both[WIDTH:, :WIDTH]
    assert count(lambda: cyrt.matmul(case.x, case.w.T, out=out)) == 0


def test_the_setting(case, setting, streams):
    setting(CYRT_EARLY_LOADS="0")
    with cyrt.CommandEncoder(streams[1]), cyrt.stream(streams[1]):
        assert count(lambda: multiply(case)) == 0


# --- results, and steady loops ---


class Steps:
    """A chain of products whose weights change between the steps: some in the batch of the
    products, some on another stream, some from the host, some never."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)

        def weights(*shape, dtype="float32"):
            return cyrt.asarray(rng.standard_normal(shape).astype(np.float32) / 16).astype(dtype)

        self.x, self.few = weights(1, 256), weights(4, 256, dtype="bfloat16")
        self.up, self.down = weights(512, 256), weights(512, 256)
        self.fixed = weights(256, 256, dtype="bfloat16")
        self.across = weights(256, 256, dtype="bfloat16")
        self.host = rng.standard_normal((512, 256)).astype(np.float32) / 16
        self.gain = cyrt.ones(256)

    def run(self, step, other):
        y = cyrt.nn.rms_norm(self.x, self.gain)
        y = cyrt.nn.silu(y @ self.up.T)
        self.x = self.x * 0.5 + y @ self.down
        self.few = self.few + (self.few @ self.fixed.T) @ self.across
        self.few = cyrt.nn.linear(self.few, self.across, activation="silu", residual=self.few)
        self.across *= 0.75
        if step % 3 == 1:
            with cyrt.stream(other):
                self.up += 0.125
        if step % 4 == 3:
            self.down.copy_from(self.host * step)


def test_results_are_those_of_late_weights(setting, streams):
    def results(early):
        setting(CYRT_EARLY_LOADS=early)
        steps, found, other = Steps(3), [], cyrt.Stream()
        cyrt.synchronize()
        with cyrt.CommandEncoder(streams[1]) as encoder, cyrt.stream(streams[1]):
            for step in range(24):
                steps.run(step, other)
                if step % 5 == 4:
                    found += [steps.x.numpy().tobytes(), steps.few.numpy().tobytes()]
            return encoder.stats()["early_loads"], found

    count, early = results("1")
    assert count > 40
    assert results("0") == (0, early)


@pytest.mark.usefixtures("pooled")
@pytest.mark.parametrize("max_ops", [8, 24, 128])
def test_a_steady_loop_patches_nothing(max_ops, streams):
    """Whether weights come early depends on where the batch is cut, which comes to be the same in
    each round."""
    steps = Steps(5)
    cyrt.commit()
    with cyrt.CommandEncoder(streams[1], max_ops=max_ops) as encoder, cyrt.stream(streams[1]):

        def rounds(count):
            before = encoder.stats()
            for _ in range(count):
                steps.run(0, None)
            after = encoder.stats()
            return [after[key] - before[key] for key in ("operations", "patched", "early_loads")]

        rounds(120)
        operations, patched, early = rounds(64)
        assert patched == 0
        assert 64 <= early < operations
