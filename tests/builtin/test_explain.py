"""The launches that are listed are the launches that are recorded."""

from __future__ import annotations

import contextlib
import math
import threading

import numpy as np
import pytest
from explaining import explain

import cyrt
from cyrt import Example, nn
from cyrt.builtin import catalogue


def recorded(work):
    """The kernel, the blocks of the grid, and the block of each launch that a function records."""
    work()  # allocates, so that the second one records nothing else
    with cyrt.Stream() as stream:
        work()
        encoder = cyrt.current_encoder()
        encoder.commit()
        nodes = encoder.last_plan().nodes
        stream.synchronize()
    return [
        (node.name, math.prod(node.grid), node.block[:2]) for node in nodes if node.kind == "kernel"
    ]


CASES = {
    "sum of columns": lambda d: cyrt.sum(d.x, axis=0),
    "sum of all": lambda d: cyrt.sum(d.long),
    "max": lambda d: cyrt.max(d.x, axis=1),
    "transposed max": lambda d: cyrt.max(d.x.T, axis=1),
    "product": lambda d: d.x @ d.y,
    "batched product": lambda d: cyrt.reshape(d.x, (3, 100, 200)) @ d.y,
    "product of a few rows": lambda d: d.x[:16] @ cyrt.reshape(d.long[: 200 * 256], (200, 256)),
    "layer of one row": lambda d: nn.linear(d.x[0], d.x, activation="relu"),
    "layer of one row with rms_norm": lambda d: nn.linear(d.x[0], d.x, rms_norm=(d.row, 1e-5)),
    "layer of one row with layer_norm": lambda d: nn.linear(
        d.x[0], d.x, layer_norm=(d.row, d.row, 1e-5)
    ),
    "layer of two rows with layer_norm": lambda d: nn.linear(
        d.x[:2], d.x, layer_norm=(d.row, d.row, 1e-5)
    ),
    "gated layer": lambda d: nn.linear(
        cyrt.reshape(d.x[:10], (2, 5, 200)), d.x, activation="swiglu"
    ),
    "product with a column": lambda d: d.x @ d.y[:, :1].copy(),
    "take of rows": lambda d: cyrt.take(d.x, d.index, axis=0),
    "take of columns": lambda d: cyrt.take(d.x, d.index, axis=1),
    "sort": lambda d: cyrt.sort(d.x),
    "sort of one row": lambda d: cyrt.sort(d.long),
    "top_k": lambda d: cyrt.top_k(d.x, 9),
    "top_k of one row": lambda d: cyrt.top_k(d.long, 100),
    "swiglu_vjp": lambda d: nn.swiglu_vjp(d.x, d.x, d.x),
    "scan of columns": lambda d: cyrt.cumulative_sum(d.x, axis=0),
    "scan of rows": lambda d: cyrt.cumulative_sum(d.x, axis=1),
    "search": lambda d: cyrt.searchsorted(d.sorted, d.values),
    "add": lambda d: d.x + d.x,
    "layer_norm": lambda d: nn.layer_norm(d.x, d.row, d.row),
    "rms_norm": lambda d: nn.rms_norm(d.x, d.row),
    "gradients of layer_norm": lambda d: nn.layer_norm_vjp(d.x, d.x, d.row, d.row),
    "softmax": lambda d: nn.softmax(d.x),
    "softmax of one row": lambda d: nn.softmax(d.long),
    "gradient of softmax": lambda d: nn.softmax_vjp(d.x, d.x),
    "rope": lambda d: nn.rope(d.x, 200),
    "attention": lambda d: nn.attention(*d.heads, cache=d.cache, position=100),
    "convolution": lambda d: nn.conv2d(d.image, d.filters, 2, 1),
    "gradient of a convolution's weight": lambda d: nn.conv_weight_vjp(
        d.image, d.image, (16, 1, 1, 1), groups=16
    ),
    "gradient of a convolution's input": lambda d: nn.conv_input_vjp(
        d.image, (2, 30, 20, 24), cyrt.permute_dims(d.filters, (3, 1, 2, 0)), padding=1
    ),
    "gradient of max_pool": lambda d: nn.max_pool_vjp(d.pooled, d.image, 2),
    "copy of a transposed matrix": lambda d: d.x.T.copy(),
}


class Data:
    def __init__(self):
        self.x = cyrt.ones((300, 200), dtype=cyrt.float32)
        self.y = cyrt.ones((200, 40), dtype=cyrt.float32)
        self.row = cyrt.ones(200, dtype=cyrt.float32)
        self.long = cyrt.zeros(3_000_000, dtype=cyrt.float32)
        self.index = cyrt.asarray([0, 3, 5, 1, 4, 2, 6])
        self.sorted = cyrt.arange(1000, dtype=cyrt.float32)
        self.image = cyrt.ones((2, 30, 20, 16), dtype=cyrt.float32)
        self.pooled = cyrt.ones((2, 15, 10, 16), dtype=cyrt.float32)
        self.filters = cyrt.ones((24, 3, 3, 16), dtype=cyrt.float32)
        self.values = cyrt.ones(7, dtype=cyrt.float32)
        self.heads = [cyrt.ones((1, n, 4, 64), dtype=cyrt.float32) for n in (6, 2, 2)]
        self.cache = tuple(cyrt.zeros((1, 2, 700, 64), dtype=cyrt.float32) for _ in range(2))


@pytest.fixture(scope="module")
def data():
    return Data()


@pytest.mark.usefixtures("batched")
@pytest.mark.parametrize("case", CASES)
def test_explanations_are_what_is_recorded(case, data):
    found = cyrt.explain(CASES[case], data)
    assert list(found.kernels) == recorded(lambda: CASES[case](data))
    assert found.complete
    assert found.launches == len(found.kernels)
    assert (found.kernel, found.grid, found.block) == found.kernels[0]


def test_arrays_and_examples_are_alike(data):
    """In shape, type, strides and alignment, also inside of lists and dicts."""
    flat = cyrt.ones(1001)
    for x in data.x, data.x.T, data.x[::2, 3:], data.x[:, ::-1], data.y, flat[1:], flat[:0]:
        found = cyrt.explain(cyrt.exp, x)
        assert found == cyrt.explain(lambda _, x=x: cyrt.exp(x), None)
        if x is not flat:
            assert found == cyrt.explain(lambda nest: cyrt.exp(nest["x"][0]), {"x": [x]})
    transposed = Example((200, 300), "float32", (1, 200))
    assert cyrt.explain(cyrt.exp, transposed) == cyrt.explain(cyrt.exp, data.x.T)
    assert cyrt.explain(cyrt.exp, flat[1:]) != cyrt.explain(cyrt.exp, flat[:1000])


@pytest.mark.parametrize(
    "row",
    [
        row
        for row in catalogue.ROWS
        if row.prebuilt
        and row.template in ("elementwise", "reduce", "scan")
        and row.op not in ("copy", "where")
    ],
    ids=lambda row: f"{row.op}-{row.dtype}",
)
def test_origin_and_expression(row):
    options = {"axis": 1} if row.template == "scan" else {}
    found = explain(row.op, row.dtype, (12, 5), **options)
    assert found.origin.startswith("prebuilt"), found
    assert found.kernels[-1][0] in row.kernels
    assert found.expression == row.expression


@pytest.mark.usefixtures("batched")
def test_an_array_that_occurs_twice_is_one(data):
    x, same = data.x.T, []
    cyrt.explain(lambda a, b, rest: same.append(a is b is rest["c"][0]), x, x, {"c": [x]})
    assert same == [True]
    found = cyrt.explain(nn.rms_norm_vjp, x, x)
    assert list(found.kernels) == recorded(lambda: nn.rms_norm_vjp(x, x))


def test_an_example_that_occurs_twice_is_two_arrays():
    x, same = Example((2, 3, 40, 64)), []
    cyrt.explain(lambda a, b: same.append(a is b), x, x)
    assert same == [False]
    new = Example((2, 3, 1, 64))
    assert cyrt.explain(nn.attention, new, new, new, cache=(x, x), position=39).launches


def test_nothing_is_done(data):
    x, encoder = cyrt.ones(100), cyrt.current_encoder()
    cyrt.synchronize()
    before, batches = cyrt.memory_stats(), encoder.stats()
    assert cyrt.explain(cyrt.sum, Example((1 << 40, 4)), axis=0).launches >= 2
    assert cyrt.explain(cyrt.add, x, 1, out=x).launches == 1
    assert cyrt.explain(lambda: x.fill(7)).launches == 1
    assert cyrt.explain(lambda: x.copy_from(np.zeros(100, np.float32))) is None
    assert cyrt.explain(x.__setitem__, slice(3), 5).launches == 1
    assert cyrt.memory_stats() == before
    assert encoder.stats() == batches
    assert encoder.num_ops == 0
    assert (x == 1).all()


def test_random_numbers_are_not_used_up():
    cyrt.random.seed(3)
    expected = cyrt.random.uniform(shape=5).tolist()
    cyrt.random.seed(3)
    assert cyrt.explain(cyrt.random.uniform, shape=5).kernel == "cyrt_uniform_float32"
    assert cyrt.random.uniform(shape=5).tolist() == expected


@pytest.mark.parametrize(
    ("function", "first"),
    [(cyrt.nonzero, "cyrt_to_bool_float32"), (cyrt.unique, "cyrt_sort_uint32_arg")],
)
def test_a_function_that_reads_its_results(function, first):
    found = cyrt.explain(function, Example(100))
    assert not found.complete
    assert found.kernel == first
    found = cyrt.explain(cyrt.Array.item, Example(1))
    assert (found.kernel, found.launches, found.complete) == ("", 0, False)
    found = cyrt.explain(lambda x: ((x + 1) * 2).copy_to(cyrt.PinnedBuffer(40)), Example(10))
    assert (found.launches, found.complete) == (2, False)


def in_a_batch(x):
    with cyrt.batch():
        y = x + 1
    with cyrt.concurrent():
        cyrt.commit()
        y * 2
    cyrt.synchronize()


@pytest.mark.parametrize(
    "function",
    [
        in_a_batch,
        lambda x: (cyrt.current_encoder().synchronize(), (x + 1) * 2),
        lambda x: (x + 1, cyrt.trim_memory(), x * 2),
    ],
)
def test_what_a_function_does_to_its_stream(function):
    found = cyrt.explain(function, Example(10))
    assert (found.launches, found.complete) == (2, True)


def test_a_function_makes_no_encoder_for_the_stream():
    with pytest.raises(RuntimeError, match="makes no CommandEncoder"):
        cyrt.explain(lambda: cyrt.CommandEncoder(cyrt.current_encoder().stream, graphs=False))


def test_kernels_of_the_program():
    kernel = cyrt.Kernel('extern "C" __global__ void f(float* x) { *x = 1; }', "f")
    found = cyrt.explain(lambda x: kernel[(2, 3), (4, 5)](x), Example(9))
    assert found.kernels == (("f", 6, (4, 5)),)
    assert (found.origin, found.expression) == ("the program", "")


def test_an_error_of_the_function_leaves_nothing_behind():
    with pytest.raises(ValueError, match="axis 3"):
        cyrt.explain(lambda x: (x + 1).sum(axis=3), Example((4, 5)))
    assert cyrt.explain(cyrt.exp, Example(4)).launches == 1


def test_what_leaves_the_function_has_no_memory():
    left, kernel = [], cyrt.Kernel('extern "C" __global__ void f(float* x) {}', "f")
    cyrt.explain(lambda x: left.append(x + 1), Example(10))
    for call in (
        lambda x: x + 1,
        lambda x: x.tolist(),
        lambda x: x.__cuda_array_interface__,
        kernel[1, 1],
        lambda x: x.fill(0),
    ):
        with pytest.raises(RuntimeError, match="a function that was explained"):
            call(left[0])
    left.clear()
    assert (cyrt.ones(10) + 1).sum() == 20


def explained_in_a_thread(x):
    found = []
    thread = threading.Thread(target=lambda: found.append(cyrt.explain(cyrt.exp, Example(9))))
    thread.start()
    thread.join()
    assert found[0].launches == 1
    x + 1


def explained_inside(x):
    assert cyrt.explain(lambda y: (y + 1) * 2, x).launches == 2
    x + 1


def test_a_function_may_explain_another():
    for function in explained_in_a_thread, explained_inside:
        found = cyrt.explain(function, Example(10))
        assert (found.launches, found.complete) == (1, True)


def catches_the_error(x):
    with contextlib.suppress(RuntimeError):
        x.tolist()
    x + 1


def test_a_function_that_catches_every_error_is_not_complete():
    found = cyrt.explain(catches_the_error, Example(10))
    assert (found.launches, found.complete) == (1, False)
    assert cyrt.explain(cyrt.exp, Example(10)).complete


def test_an_error_of_the_function_shows_its_arrays():
    def fail(x):
        raise ValueError(f"got {x!r} and {x}")

    with pytest.raises(ValueError, match=r"got Array\(\.\.\., shape=\(2, 3\), .* and \.\.\."):
        cyrt.explain(fail, Example((2, 3)))


def test_threads_explain_at_once():
    failures = []

    def work(n):
        try:
            for _ in range(50):
                assert cyrt.explain(lambda x: x + x, Example(n)).launches == 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (10, 1000, 100_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_no_elements():
    assert cyrt.explain(cyrt.sort, Example((0, 4))) is None
    assert cyrt.explain(cyrt.matmul, Example((0, 4)), Example((4, 2))) is None
    assert cyrt.explain(nn.linear, Example((0, 4)), Example((2, 4))) is None
    assert cyrt.explain(cyrt.take, Example((3, 4)), Example(0, "int64")) is None


def on_another_stream():
    with cyrt.Stream():
        cyrt.ones(4) + 1


def on_another_device():
    with cyrt.Device(1):
        cyrt.ones(4) + 1


def nested():
    """A list that contains itself."""
    found = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cyrt.explain("add", 4), TypeError, "a function and its arguments, got 'add'"),
        (lambda: cyrt.explain(cyrt.exp, Example(4, "float31")), TypeError, "'float31'"),
        (lambda: cyrt.explain(cyrt.exp, Example((4, -1))), ValueError, "sizes of 0 or more"),
        (lambda: cyrt.explain(cyrt.exp, Example("four")), TypeError, "of int, got 'four'"),
        (lambda: cyrt.explain(cyrt.exp, Example(4, strides=(1, 2))), ValueError, "1 numbers, as"),
        (lambda: cyrt.explain(cyrt.exp, Example(4, strides="1")), TypeError, "of int, got '1'"),
        (lambda: cyrt.explain(cyrt.exp, Example((1,) * 65)), ValueError, "at most 64 dim.* got 65"),
        (lambda: cyrt.explain(cyrt.exp, Example(1 << 60)), ValueError, "more than an array can"),
        (lambda: cyrt.explain(cyrt.exp, Example((1 << 40,) * 2)), ValueError, "elements"),
        (lambda: cyrt.explain(cyrt.exp, Example(1 << 50)), cyrt.OutOfMemoryError, "bytes"),
        (lambda: cyrt.explain(cyrt.sum, Example(4), axis=1), ValueError, "axis 1"),
        (lambda: cyrt.explain(cyrt.sum, Example(4), groups=2), TypeError, "groups"),
        (lambda: cyrt.explain(on_another_stream), RuntimeError, "makes <cyrt.Stream .* current"),
        (lambda: cyrt.explain(cyrt.stack, nested()), RecursionError, "at most 100 nested"),
        (
            lambda: cyrt.explain(cyrt.exp, Example((1 << 33) + 1, strides=1 << 31)),
            ValueError,
            "strides: .2147483648,. is more than an array",
        ),
    ],
)
def test_wrong_questions(call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert cyrt.explain(cyrt.exp, Example(4)).launches == 1


def test_two_devices(python):
    python(
        """
        import cyrt
        x = cyrt.ones(4, device=1)
        for function, *args in (
            (cyrt.exp, x),
            (lambda: cyrt.Device(1).__enter__(),),
            (lambda: cyrt.Stream(1).__enter__(),),
        ):
            try:
                cyrt.explain(function, *args)
            except (ValueError, RuntimeError) as error:
                print(error)
        with cyrt.Device(1):
            assert cyrt.explain(cyrt.exp, x).launches == 1
            assert cyrt.Device(1).index == 1 and cyrt.Device().index == 1
        assert cyrt.memory_stats()["in_use"] == 0
        """,
        CYRT_EMULATED_DEVICES="2",
        CYRT_DEVICE="emulated",
    )
