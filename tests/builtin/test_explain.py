"""The launches that are listed are the launches that are recorded."""

from __future__ import annotations

import math

import pytest

import cyrt
from cyrt.builtin import catalogue
from cyrt.kernels import explain

SHAPES = {
    "matmul": [(33, 17), (17, 9)],
    "linear": [(3, 16), (10, 16)],
    "take": [(40, 6), (5,)],
    "put": [(40, 6), (5,)],
    "places": [(40, 6), (5,)],
    "add_at": [(40,), (5000,)],
    "search": [(100,), (7,)],
    "rope": [(12, 6)],
    "attention": [(1, 4, 1, 8), (1, 2, 12, 8)],
    "flash_attention": [(1, 4, 20, 8), (1, 2, 30, 8)],
    "max_pool": [(2, 12, 8), 3],
    "avg_pool": [(2, 12, 8), 3],
    "max_pool_vjp": [(2, 12, 8), 3],
    "avg_pool_vjp": [(2, 12, 8), 3],
    "conv": [(2, 12, 8), (6, 3, 8)],
    "conv_input_vjp": [(2, 12, 8), (6, 3, 8)],
    "conv_weight_vjp": [(2, 12, 8), (6, 3, 8)],
}


def test_every_operation_is_explained():
    for row in catalogue.ROWS:
        if not row.prebuilt:
            continue
        explained = explain(row.op, row.dtype, *SHAPES.get(row.op, [(12, 5)]))
        assert explained.launches == len(explained.kernels) >= 1, row.op
        assert (explained.kernel, explained.grid, explained.block) == explained.kernels[0]
        assert explained.origin.startswith("prebuilt"), (row.op, row.dtype, explained.origin)
        assert explained.kernel.startswith("cyrt_"), explained


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
    "sum of columns": (lambda d: cyrt.sum(d.x, axis=0), "sum", [(300, 200)], {"axis": 0}),
    "sum of all": (lambda d: cyrt.sum(d.long), "sum", [3_000_000], {}),
    "max": (lambda d: cyrt.max(d.x, axis=1), "max", [(300, 200)], {"axis": (-1,)}),
    "transposed max": (
        lambda d: cyrt.max(d.x.T, axis=1),
        "max",
        [(200, 300)],
        {"axis": 1, "strides": (1, 200)},
    ),
    "product": (lambda d: d.x @ d.y, "matmul", [(300, 200), (200, 40)], {}),
    "batched product": (
        lambda d: cyrt.reshape(d.x, (3, 100, 200)) @ d.y,
        "matmul",
        [(3, 100, 200), (200, 40)],
        {},
    ),
    "product of a few rows": (
        lambda d: d.x[:16] @ cyrt.reshape(d.long[: 200 * 256], (200, 256)),
        "matmul",
        [(16, 200), (200, 256)],
        {},
    ),
    "layer of one row": (
        lambda d: cyrt.nn.linear(d.x[0], d.x, activation="relu"),
        "linear",
        [200, (300, 200)],
        {"activation": "relu"},
    ),
    "layer of one row with rms_norm": (
        lambda d: cyrt.nn.linear(d.x[0], d.x, rms_norm=(d.row, 1e-5)),
        "linear",
        [200, (300, 200)],
        {"rms_norm": True},
    ),
    "layer of one row with layer_norm": (
        lambda d: cyrt.nn.linear(d.x[0], d.x, layer_norm=(d.row, d.row, 1e-5)),
        "linear",
        [200, (300, 200)],
        {"layer_norm": True},
    ),
    "layer of two rows with layer_norm": (
        lambda d: cyrt.nn.linear(d.x[:2], d.x, layer_norm=(d.row, d.row, 1e-5)),
        "linear",
        [(2, 200), (300, 200)],
        {"layer_norm": True},
    ),
    "gated layer": (
        lambda d: cyrt.nn.linear(cyrt.reshape(d.x[:10], (2, 5, 200)), d.x, activation="swiglu"),
        "linear",
        [(2, 5, 200), (300, 200)],
        {"activation": "swiglu"},
    ),
    "product with a column": (
        lambda d: d.x @ d.y[:, :1].copy(),
        "matmul",
        [(300, 200), (200, 1)],
        {},
    ),
    "take of rows": (lambda d: cyrt.take(d.x, d.index, axis=0), "take", [(300, 200), (7,)], {}),
    "take of columns": (
        lambda d: cyrt.take(d.x, d.index, axis=1),
        "take",
        [(300, 200), (7,)],
        {"axis": 1},
    ),
    "sort": (lambda d: cyrt.sort(d.x), "sort", [(300, 200)], {}),
    "sort of one row": (lambda d: cyrt.sort(d.long), "sort", [3_000_000], {}),
    "top_k": (lambda d: cyrt.top_k(d.x, 9), "top_k", [(300, 200)], {"k": 9}),
    "top_k of one row": (lambda d: cyrt.top_k(d.long, 100), "top_k", [3_000_000], {"k": 100}),
    "swiglu_vjp": (lambda d: cyrt.nn.swiglu_vjp(d.x, d.x, d.x), "swiglu_vjp", [(300, 200)], {}),
    "scan of columns": (
        lambda d: cyrt.cumulative_sum(d.x, axis=0),
        "cumulative_sum",
        [(300, 200)],
        {"axis": 0},
    ),
    "scan of rows": (
        lambda d: cyrt.cumulative_sum(d.x, axis=1),
        "cumulative_sum",
        [(300, 200)],
        {},
    ),
    "search": (lambda d: cyrt.searchsorted(d.sorted, d.values), "search", [1000, 7], {}),
    "add": (lambda d: d.x + d.x, "add", [(300, 200)], {}),
    "layer_norm": (lambda d: cyrt.nn.layer_norm(d.x, d.row, d.row), "layer_norm", [(300, 200)], {}),
    "rms_norm": (lambda d: cyrt.nn.rms_norm(d.x, d.row), "rms_norm", [(300, 200)], {}),
    "gradients of layer_norm": (
        lambda d: cyrt.nn.layer_norm_vjp(d.x, d.x, d.row, d.row),
        "layer_norm_vjp",
        [(300, 200)],
        {},
    ),
    "softmax": (lambda d: cyrt.nn.softmax(d.x), "softmax", [(300, 200)], {}),
    "softmax of one row": (lambda d: cyrt.nn.softmax(d.long), "softmax", [3_000_000], {}),
    "gradient of softmax": (
        lambda d: cyrt.nn.softmax_vjp(d.x, d.x),
        "softmax_vjp",
        [(300, 200)],
        {},
    ),
    "rope": (lambda d: cyrt.nn.rope(d.x, 200), "rope", [(300, 200)], {}),
    "attention": (
        lambda d: cyrt.nn.attention(*d.heads, cache=d.cache, position=100),
        "attention",
        [(1, 6, 4, 64), (1, 2, 700, 64)],
        {},
    ),
    "convolution": (
        lambda d: cyrt.nn.conv2d(d.image, d.filters, 2, 1),
        "conv",
        [(2, 30, 20, 16), (24, 3, 3, 16)],
        {"stride": 2, "padding": 1},
    ),
    "gradient of a convolution's weight": (
        lambda d: cyrt.nn.conv_weight_vjp(d.image, d.image, (16, 1, 1, 1), groups=16),
        "conv_weight_vjp",
        [(2, 30, 20, 16), (16, 1, 1, 1)],
        {"groups": 16},
    ),
    "gradient of a convolution's input": (
        lambda d: cyrt.nn.conv_input_vjp(
            d.image, (2, 30, 20, 24), cyrt.permute_dims(d.filters, (3, 1, 2, 0)), padding=1
        ),
        "conv_input_vjp",
        [(2, 30, 20, 24), (16, 3, 3, 24)],
        {"padding": 1},
    ),
    "gradient of max_pool": (
        lambda d: cyrt.nn.max_pool_vjp(d.pooled, d.image, 2),
        "max_pool_vjp",
        [(2, 30, 20, 16), (2, 2)],
        {},
    ),
    "copy of a transposed matrix": (lambda d: d.x.T.copy(), "transpose", [(200, 300)], {}),
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
    work, op, shapes, options = CASES[case]
    explained = list(explain(op, "float32", *shapes, **options).kernels)
    found = recorded(lambda: work(data))
    assert found[-len(explained) :] == explained  # after copies of operands


def test_nothing_is_allocated():
    before = cyrt.memory_stats()
    assert explain("sum", "float32", (1 << 40, 4), axis=0).launches >= 2
    assert cyrt.memory_stats() == before


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("summ", "float32", 4), {}, ValueError, "'summ' is no .*; did you mean 'sum'"),
        (("sum", "float31", 4), {}, TypeError, "'float31'"),
        (("sum", "float32"), {}, ValueError, "sum: expected 1 shapes, of the input, got 0"),
        (("sum", "float32", 4), {"axis": 1}, ValueError, r"axis 1 is out of bounds .* \(4,\)"),
        (("sum", "float32", 4), {"strides": (1, 2)}, ValueError, "expected 1 numbers"),
        (("sum", "float32", (4, -1)), {}, ValueError, "expected sizes of 0 or more"),
        (("sum", "float32", "four"), {}, TypeError, "an int or a sequence of int, got 'four'"),
        (("sort", "float32", 4), {"axis": 0}, TypeError, "sort has no option 'axis'; it has none"),
        (
            ("sum", "float32", 4),
            {"groups": 2},
            TypeError,
            "no option 'groups'; it has axis, strides",
        ),
        (("sum", "float32", 4), {"axis": "0"}, TypeError, "sum: axis: expected an int, got '0'"),
        (("sum", "float32", 4), {"axis": 0.5}, TypeError, "sum: axis: expected an int, got 0.5"),
        (("sum", "float32", 4), {"strides": 1}, TypeError, "strides: expected a sequence of int"),
        (("add", "float32", 4), {"strides": 1}, TypeError, "strides: expected"),
        (("add", "float32", 4), {"strides": [1, 2, 3]}, TypeError, "strides: expected"),
        (("take", "float32", 4, 2), {"axis": None}, TypeError, "take: axis: expected an int"),
        (("cumulative_sum", "float32", 4), {"axis": "0"}, TypeError, "axis: expected an int"),
        (("conv", "float32", (1, 5, 4), (2, 3, 4)), {"groups": "2"}, TypeError, "groups: expected"),
        (("conv", "float32", (1, 5, 4), (2, 3, 4)), {"stride": "2"}, TypeError, "stride"),
        (("max_pool", "float32", (1, 5, 4), 2), {"stride": "2"}, TypeError, "stride"),
        (("sort", "complex64", 4), {}, TypeError, "complex64"),
        (("top_k", "float32", 4), {"k": 5}, ValueError, "k: expected an int from 1 to 4, got 5"),
        (("top_k", "float32", 4), {"k": 2.0}, TypeError, "k: expected an int, got float"),
        (("matmul", "float32", (3, 4)), {}, ValueError, "expected 2 shapes, of the first factor"),
        (("matmul", "float32", (3, 4), (3, 4)), {}, ValueError, r"\(\.\.\., m, k\)"),
        (("matmul", "bool", (3, 4), (4, 3)), {}, TypeError, "numeric"),
        (("linear", "float32", (3, 4), (6, 5)), {}, ValueError, r"got \(3, 4\) and \(6, 5\)"),
        (("linear", "float32", (17, 4), (6, 4)), {}, ValueError, "1 to 16 rows of a multiple of 4"),
        (("linear", "bfloat16", (3, 4), (6, 4)), {}, ValueError, "multiple of 8 elements"),
        (("linear", "float64", (3, 4), (6, 4)), {}, TypeError, "no kernel for float64"),
        (("linear", "float32", (3, 4), (6, 4)), {"activation": 3}, ValueError, "'relu'.* got 3"),
        (
            ("linear", "float32", (3, 4), (6, 4)),
            {"rms_norm": True, "layer_norm": True},
            TypeError,
            "linear: rms_norm and layer_norm: expected at most one of them, got both",
        ),
        (
            ("linear", "float32", (3, 4), (6, 4)),
            {"rms_norm": 1},
            TypeError,
            "linear: rms_norm: expected a bool, got 1",
        ),
        (("take", "float32", (0, 4), 3), {}, ValueError, "at least one element"),
        (("conv", "float32", (1, 5, 4)), {}, ValueError, "2 shapes, of the input and the weight"),
        (("conv", "float32", (1, 5, 4), (2, 3, 3)), {}, ValueError, r"\(1, 5, 4\), \(2, 3, 3\)"),
        (("conv", "float32", (1, 5, 4), (2, 3, 4)), {"stride": 0}, ValueError, "stride"),
        (("max_pool", "float32", (1, 5, 4), (2, 2)), {}, ValueError, r"\(1, 5, 4\) and \(2, 2\)"),
        (("add", "float32", (1,) * 65), {}, ValueError, "at most 64 dimensions, got 65"),
        (("attention", "float32", (1, 3, 1, 8), (1, 2, 9, 8)), {}, ValueError, "heads a multiple"),
        (("attention", "float64", (1, 2, 1, 8), (1, 2, 9, 8)), {}, TypeError, "no kernel"),
    ],
)
def test_wrong_questions(arguments, options, error, message):
    with pytest.raises(error, match=message):
        explain(*arguments, **options)


def test_no_elements():
    assert explain("sort", "float32", (0, 4)) is None
    assert explain("matmul", "float32", (0, 4), (4, 2)) is None
    assert explain("linear", "float32", (0, 4), (2, 4)) is None
    assert explain("take", "float32", (3, 4), (0,)) is None
