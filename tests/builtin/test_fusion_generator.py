"""Kernels of several operations: what they store is bit for bit what the plain kernels store."""

from __future__ import annotations

import dataclasses
import os
import re
import struct

import numpy as np
import pytest
from applying import apply

import cyrt
from cyrt import jit
from cyrt.builtin import catalogue, fusion, loading
from cyrt.builtin.fusion import compilers, compiling, generator
from cyrt.builtin.fusion.compilers import makes_equal
from cyrt.builtin.fusion.description import Access, Operation
from cyrt.builtin.launch import launches_of
from cyrt.dtypes import DTYPES, dtype

# Kernels write into memory of intermediate results, which checking mode returns to the driver.
pytestmark = pytest.mark.usefixtures("pooled")
ELEMENTWISE = [row for row in catalogue.ROWS if catalogue.family(row) == "elementwise"]


@pytest.fixture(params=["vectors", "elements"])
def items(request, monkeypatch):
    """With whole vectors in a thread, as large arrays have it, or one element, as small ones."""
    if request.param == "vectors":
        monkeypatch.setattr(generator, "SMALL", 0)
    return request.param


class Recorded:
    """What a function launches, as operations, and the arrays that it returns."""

    def __init__(self, function):
        arrays = []
        with cyrt.Stream():
            self.nodes = launches_of(lambda: arrays.append(function()))
        (self.arrays,) = arrays
        self.operations = [fusion.describe(*node) for node in self.nodes]
        self.run = fusion.Run()
        for node, operation in enumerate(self.operations):
            assert operation is not None, self.nodes[node]
            assert self.run.add(node, operation), operation


def launch(fused):
    """Compile kernels as one module, and launch them."""
    fused = list(fused)
    device = cyrt.Device()
    arch = jit.compiler.architecture(device.compute_capability, device.emulated)
    code = jit.compiler.compile(
        "\n".join(dict.fromkeys(each.source for each in fused)),
        arch=arch,
        options=compiling.options(arch),
    ).code
    for each in fused:
        kernel = cyrt.Kernel(code, each.name, signature=f"void {each.name}(Args)")
        kernel[each.grid, each.block, each.smem](each.params)


def bits(array):
    return array.numpy().tobytes()


def check(*functions):
    """Compare the results of functions, launched plain, with those of a fused kernel for each."""
    recorded = [Recorded(function) for function in functions]
    kernels = [fusion.generate([each.run], [each.run.outputs]) for each in recorded]
    for fused, each in zip(kernels, recorded, strict=True):
        assert_copies(fused, each)
    launch(kernels)
    for each, function in zip(recorded, functions, strict=True):
        for k, (found, wanted) in enumerate(zip(each.arrays, function(), strict=True)):
            assert bits(found) == bits(wanted), (each.operations, k)
    return kernels


def assert_copies(fused, recorded):
    """What a node's parameters have too is where the copies say, and nothing else."""
    copied = set()
    for each in fused.copies:
        wanted = recorded.nodes[each.node][1][each.source : each.source + each.size]
        assert fused.params[each.target : each.target + each.size] == wanted
        copied |= set(range(each.target, each.target + each.size))
    assert len(copied) == sum(each.size for each in fused.copies)
    for at, mask in fused.aligned:
        assert struct.unpack_from("<Q", fused.params, at)[0] & mask == 0
        assert at in copied


# -- every operation -------------------------------------------------------------------------------


def values(name, count, rng):
    """Special values, each meeting each of another order, and random ones."""
    each = dtype(name)
    if each.kind == "b":
        return rng.random(count) < 0.5
    if each.kind in "iu":
        limits = np.iinfo(each.numpy)
        special = np.array([0, 1, 2, 3, 31, 64, limits.max, limits.min, limits.max - 1], each.numpy)
        found = rng.integers(limits.min, limits.max, count, each.numpy, endpoint=True)
        found = np.where(rng.random(count) < 0.4, found, rng.integers(0, 20, count)).astype(
            found.dtype
        )
    else:
        real = np.float64 if each.kind == "c" else each.numpy
        with np.errstate(over="ignore"):
            special = np.array(
                [
                    *(0, -0.0, 1, -1, 0.5, 1.5, -2.5, 3, np.inf, -np.inf, np.nan, -np.nan, 1e-3),
                    *(88, 1e-39, -1e-41, 6e-8, 3e38, 65504, 1 / 3, np.pi),
                ],
                np.float64,
            ).astype(real)
        found = (rng.normal(size=count) * 10.0 ** rng.integers(-3, 3, count)).astype(real)
        if each.kind == "f":
            # A NaN with a payload.
            unsigned = found.view(f"u{each.itemsize}")
            unsigned[-1:] = (1 << 8 * each.itemsize - 1) - 5
    chosen = rng.random(count) < 0.6
    found[chosen] = rng.choice(special, chosen.sum())
    if each.kind == "c":
        found = np.stack([found, np.roll(found, 7)], 1).astype(f"f{each.itemsize // 2}")
        return found.view(each.numpy).ravel()
    return found


class Pool:
    """Device memory for arrays whose addresses operations are made of."""

    def __init__(self, nbytes):
        self.buffer = cyrt.Buffer(nbytes)
        self.buffer.fill(0)
        self.used = 0

    def access(self, name, size):
        access = Access(self.buffer.ptr + self.used, name, ((size, 1),), 0)
        self.used += -(-size * dtype(name).itemsize // 64) * 64
        assert self.used <= self.buffer.nbytes
        return access

    def put(self, array, name):
        access = self.access(name, len(array))
        at = access.address - self.buffer.ptr
        self.buffer[at : at + array.nbytes].copy_from(np.ascontiguousarray(array).view(np.uint8))
        return access

    def contents(self):
        """Return a function that returns the bytes of `size` elements, as they are now."""
        found = np.zeros(self.used, np.uint8)
        self.buffer[: self.used].copy_to(found)
        begin = self.buffer.ptr

        def get(access, size):
            at = access.address - begin
            return found[at : at + size * access.itemsize].tobytes()

        return get


def plain(calls):
    """What the operations' own kernels make of arrays: pairs of a row and its operands. They are
    launched together."""
    outputs = []
    for row, arrays in calls:
        buffers = []
        for array in arrays:
            buffers.append(cyrt.Buffer(array.nbytes))
            buffers[-1].copy_from(np.ascontiguousarray(array).view(np.uint8))
        outputs.append(cyrt.Buffer(len(arrays[0]) * dtype(row.output).itemsize))
        apply(row.op, buffers, outputs[-1], row.dtype, len(arrays[0]))
    for (row, _), out in zip(calls, outputs, strict=True):
        found = np.zeros(out.nbytes, np.uint8)
        out.copy_to(found)
        yield found.view(dtype(row.output).numpy)


def is_fused(row):
    """Another compiler made the prebuilt kernels: what this one makes otherwise is not fused."""
    return makes_equal(row, "prebuilt" if row.prebuilt else "JIT")


def is_tested(row, emulated):
    """On the emulated device, the rows whose plain kernels need no compiler."""
    return row.prebuilt or not emulated


@pytest.mark.parametrize("name", [each.name for each in DTYPES])
@pytest.mark.usefixtures("compiled_at_once")
def test_each_operation_alone(name, items, rng, emulated):
    size = 512
    rows = [row for row in ELEMENTWISE if row.dtype == name and is_tested(row, emulated)]
    if not rows:
        pytest.skip("the plain kernels of this type are compiled at first use, for minutes")
    pool = Pool(16 * size * (len(rows) + 8))
    types = {each for row in rows for each in row.inputs}
    arrays = {each: [values(each, size, rng) for _ in range(3)] for each in sorted(types)}
    inputs = {each: [pool.put(x, each) for x in found] for each, found in arrays.items()}
    kernels, outputs = [], []
    # Kernels of several operations each, so that not every value takes a register of its own.
    for chunk in (rows[i : i + 24] for i in range(0, len(rows), 24)):
        run = fusion.Run()
        for node, row in enumerate(chunk):
            out = pool.access(row.output, size)
            operands = [inputs[each][i] for i, each in enumerate(row.inputs)]
            assert run.add(node, Operation(row, size, (out, *operands)))
            outputs.append(out)
        kernels.append(fusion.generate([run], [run.outputs]))
    launch(kernels)
    get = pool.contents()
    operands = [[arrays[each][i] for i, each in enumerate(row.inputs)] for row in rows]
    wanted = plain(list(zip(rows, operands, strict=True)))
    failures = [
        row
        for row, out, found in zip(rows, outputs, wanted, strict=True)
        if get(out, size) != found.tobytes()
    ]
    assert not [row.op for row in failures if is_fused(row)]


# -- pairs of operations ---------------------------------------------------------------------------


def pairs(rows, others, inputs, pool, size):
    """Yield a kernel for each of the rows, and its outputs: what the others make of the result, as
    one of their operands."""
    for first in rows:
        run = fusion.Run()
        result = pool.access(first.output, size)
        operands = inputs[: len(first.inputs)]
        assert run.add(0, Operation(first, size, (result, *operands)))
        outputs = []
        for node, (second, place) in enumerate(others, 1):
            out = pool.access(second.output, size)
            operands = [*inputs[: len(second.inputs)]]
            operands[place] = result
            assert run.add(node, Operation(second, size, (out, *operands)))
            outputs.append(out)
        yield fusion.generate([run], [run.outputs]), outputs


PRODUCTS_AND_SUMS = {"add", "subtract", "multiply", "divide", "multiply_add", "scale_centered"}


def check_pairs(name, firsts, seconds, rng):
    """Compare every first operation followed by every second one with two plain kernels."""
    size = 96
    others = [
        (row, place)
        for row in seconds
        for place in range(len(row.inputs) if row.op in PRODUCTS_AND_SUMS else 1)
    ]
    arrays = [values(name, size, rng) for _ in range(3)]
    pool = Pool(16 * size * (len(firsts) + 1) * (len(others) + 4))
    inputs = [pool.put(x, name) for x in arrays]
    found = list(pairs(firsts, others, inputs, pool, size))
    launch(fused for fused, _ in found)
    get = pool.contents()
    results = np.concatenate(list(plain([(row, arrays[: len(row.inputs)]) for row in firsts])))
    repeated = [np.tile(x, len(firsts)) for x in arrays]
    calls = []
    for second, place in others:
        operands = repeated[: len(second.inputs)]
        operands[place] = results
        calls.append((second, operands))
    failures = []
    for k, wanted in enumerate(plain(calls)):
        for first, (_, outputs), part in zip(
            firsts, found, np.split(wanted, len(firsts)), strict=True
        ):
            if get(outputs[k], size) != part.tobytes():
                failures.append((first, *others[k]))
    assert not [
        (first.op, second.op, place)
        for first, second, place in failures
        if is_fused(first) and is_fused(second)
    ]


def rows_of(name):
    """The operations from and to a type whose text is part of a kernel's, not a function that it
    calls: a compiler could join two."""
    headers = (loading.TEMPLATES / "include").glob("*_math.cuh")
    text = "".join(header.read_text() for header in headers)
    called = re.findall(r"CYRT_CALLED, (\w+)|__noinline__ (?!complex)[^;{]*?(\w+)\(", text)
    called = {a or b for a, b in called}
    return [
        row
        for row in ELEMENTWISE
        if {row.output, *row.inputs} == {name}
        and row.template in ("unary", "binary", "ternary")
        and not called & set(re.findall(r"\w+", row.expression))
        and row.prebuilt
    ]


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "float64", "int32", "int64"])
def test_pairs_of_operations(name, rng):
    """Those of float32 with each other, and of other types with products and sums; with
    CYRT_TEST_PAIRS=all, those of every type with each other."""
    rows = rows_of(name)
    assert len(rows) >= 15
    firsts = rows
    if name != "float32" and os.environ.get("CYRT_TEST_PAIRS") != "all":
        firsts = [row for row in rows if row.op in {*PRODUCTS_AND_SUMS, "negative"}]
    check_pairs(name, firsts, rows, rng)


# -- operands --------------------------------------------------------------------------------------


def array(rng, *shape, name="float32"):
    size = int(np.prod(shape))
    return cyrt.asarray(values(name, size, rng).reshape(shape), dtype=name)


def test_broadcast_operands(items, rng):
    x, row, column, one = array(rng, 12, 20), array(rng, 20), array(rng, 12, 1), array(rng, 1)
    cube, plane = array(rng, 3, 4, 8), array(rng, 4, 1)

    def rows():
        centered = x - column
        scaled = centered * row
        return centered, scaled, scaled + one, scaled * x

    def dimensions():
        product = cube * plane
        first = product + 2.5
        mask = first > 0
        return (
            *(product, first, mask),
            *(first - cube[:1], first * cube[:, :1], cyrt.where(mask, first, plane)),
        )

    def outer():
        products = column * row
        return products, products + x

    for fused in check(rows, dimensions, outer):
        assert ("Items<float, 4>" in fused.source) == (items == "vectors")


def test_views(items, rng):
    x, y = array(rng, 16, 24), array(rng, 24, 16)

    def transposed():
        found = x + y.T
        return found, found * y.T

    def shifted():
        middle = x[1:-1, 1:-1] * 4
        return (middle - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:],)

    def reversed_():
        found = x[::-1, ::2] - x[:, ::-2]
        return found, found / 3

    def halves():
        return x[:, :8] + x[:, 8:16], x[:, :8] * x[:, 16:]

    check(transposed, shifted, reversed_, halves)


def test_outputs_with_strides(items, rng):
    x, y = array(rng, 16, 24), array(rng, 14, 22)

    def inner():
        target = cyrt.zeros((16, 24), dtype="float32")
        target[1:-1, 1:-1] = x[1:-1, 1:-1] + y
        return (target,)

    def recorded():
        target = cyrt.zeros((16, 24), dtype="float32")
        cyrt.synchronize()
        arrays = []
        with cyrt.Stream():
            nodes = launches_of(lambda: arrays.append(x[1:-1, 1:-1] + y))
            nodes += launches_of(
                lambda: target.__setitem__((slice(1, -1), slice(1, -1)), arrays[0])
            )
        run = fusion.Run()
        for node, each in enumerate(nodes):
            assert run.add(node, fusion.describe(*each))
        return fusion.generate([run], [[len(nodes) - 1]]), target

    fused, target = recorded()
    launch([fused])
    assert bits(target) == bits(inner()[0])


def test_types(items, rng):
    """Casts between all types with others around them, comparisons, and bits as another type."""
    x = array(rng, 100, name="float32")
    small = cyrt.asarray(rng.integers(-100, 100, 100), dtype="int32")

    def casts():
        wide = small.astype("float32")
        product = wide * x
        names = ("float16", "bfloat16", "float64", "int32", "uint8", "bool")
        return [wide, product, product.astype("float16"), *(small.astype(name) for name in names)]

    def narrow():
        half = x.astype("float16")
        square = half * half
        total = square + half
        other = total.astype("bfloat16")
        return half, square, total, other, other * 3, total > half

    def views():
        twice = x * 2
        whole = twice.view("int32")
        masked = whole & 0x7FFFFFFF
        return twice, whole ^ small, masked, masked.view("float32") + 1

    def chosen():
        positive, other = x > 0, small != 3
        mask = cyrt.logical_and(positive, other)
        square = small * small
        return (
            positive,
            other,
            mask,
            square,
            cyrt.where(mask, x, -1.0),
            cyrt.where(mask, small, square),
        )

    check(casts, narrow, views, chosen)


def test_fills_and_copies(items, rng):
    x = array(rng, 64, 16)

    def fills():
        ones = cyrt.ones((64, 16), dtype="float32")
        return ones, ones * 3 + x, cyrt.full((64, 16), 2.5) - x

    def copies():
        found = cyrt.asarray(x, copy=True)
        return found, found + x, cyrt.asarray(found, copy=True) * 2

    check(fills, copies)


def test_in_place(items, rng):
    host = values("float32", 256, rng)

    def run(target):
        target += 1
        target *= target
        return cyrt.sqrt(target)

    target, other = cyrt.asarray(host), cyrt.asarray(host)
    cyrt.synchronize()
    recorded = Recorded(lambda: [run(target)])
    assert recorded.run.outputs == {1, 2}
    fused = fusion.generate([recorded.run], [recorded.run.outputs])
    launch([fused])
    assert bits(recorded.arrays[0]) == bits(run(other))
    assert bits(target) == bits(other)


def test_values_that_nobody_sees_are_not_written(items, rng):
    x = array(rng, 256)
    recorded = Recorded(lambda: [a := x + 1, b := a * x, b - a])
    first, second, last = recorded.arrays
    for each in (first, second):
        each[:] = 7
    cyrt.synchronize()
    fused = fusion.generate([recorded.run], [[2]])
    # Two writes, and four reads of what is in registers.
    assert fused.saved == 6 * 4 * 256
    launch([fused])
    assert bits(last) == bits((x + 1) * x - (x + 1))
    assert np.all(first.numpy() == 7)
    assert np.all(second.numpy() == 7)


def test_one_element(rng):
    x = array(rng, 1)
    check(lambda: [x + x, (x * 2).reshape(()) + 1])


# -- rows ------------------------------------------------------------------------------------------


def softmax(x):
    most = cyrt.max(x, axis=-1, keepdims=True)
    lower = x - most
    powers = cyrt.exp(lower)
    total = cyrt.sum(powers, axis=-1, keepdims=True)
    return most, lower, powers, total, powers / total


def layer_norm(x, weight, bias):
    mean = cyrt.mean(x, axis=-1, keepdims=True)
    centered = x - mean
    squares = centered * centered
    variance = cyrt.mean(squares, axis=-1, keepdims=True)
    shifted = variance + 1e-5
    deviation = cyrt.sqrt(shifted)
    normal = centered / deviation
    scaled = normal * weight
    return mean, centered, squares, variance, shifted, deviation, normal, scaled, scaled + bias


ROWS = [(64, 96), (5, 100), (7, 33), (3, 1024), (40, 16), (1, 512), (300, 8)]


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_operations_around_reductions_of_rows(name, rng):
    """In rows of a few threads, a warp and a block, in whole vectors and not."""
    functions = []
    for rows, columns in ROWS[: None if name == "float32" else 4]:
        x, weight = array(rng, rows, columns, name=name), array(rng, columns, name=name)
        plain = cyrt.asarray(rng.normal(size=(rows, columns)), dtype=name)
        functions += [lambda x=x: softmax(x), lambda x=plain: softmax(x)]
        functions.append(lambda x=plain, weight=weight: layer_norm(x, weight, weight))
    check(*functions)


def test_reductions_of_rows(rng):
    x, counts = array(rng, 24, 40), array(rng, 24, 40, name="int32")

    def extremes():
        least, most = cyrt.min(x, axis=1), cyrt.max(x, axis=1)
        return least, most, most - least, x - least[:, None], x * most[:, None]

    def integers():
        even = counts & 1
        total = cyrt.sum(even, axis=1)
        narrow = total.astype("int32")
        return even, total, cyrt.max(counts, axis=1), narrow, even * narrow[:, None]

    def truths():
        positive = x > 0
        return positive, cyrt.any(positive, axis=1), cyrt.all(positive, axis=1)

    def count():
        return cyrt.count_nonzero(x, axis=1), cyrt.max(x, axis=1)

    def loss():
        error = x - 1.5
        square = error * error
        total = cyrt.mean(square)
        return error, square, total, square / total

    check(extremes, integers, truths, count, loss)


def test_a_reduction_that_nobody_sees(rng):
    """What else has one element a row stays a value of rows."""
    x, scale = array(rng, 6, 100), array(rng, 6)

    def run():
        total, doubled = cyrt.sum(x, axis=1), scale + scale
        return total, doubled, x * doubled[:, None]

    recorded = Recorded(run)
    fused = fusion.generate([recorded.run], [[1, 2]])
    assert "reduce_row<" not in fused.source
    launch([fused])
    for found, wanted in zip(recorded.arrays[1:], run()[1:], strict=True):
        assert bits(found) == bits(wanted)


@pytest.mark.parametrize("columns", [7, 32])
def test_order_of_many_elements_of_a_thread(columns, rng):
    """In so many rows two threads share one; nothing between the operations is seen."""
    x = cyrt.asarray(rng.normal(size=(70_000, columns)), dtype="float32")

    def run():
        square = x * x
        return square, cyrt.sum(square, axis=1)

    recorded = Recorded(run)
    assert recorded.operations[1].reduction.block[0] == 2
    launch([fusion.generate([recorded.run], [[1]])])
    assert bits(recorded.arrays[1]) == bits(run()[1])


def test_values_of_rows_in_place(rng):
    """Other threads of a row have read what its first thread writes."""
    host, x = values("float32", 6, rng), array(rng, 6, 1024)

    def run(target):
        target *= 2
        return x * target[:, None], cyrt.sum(x, axis=1)

    target, other = cyrt.asarray(host), cyrt.asarray(host)
    cyrt.synchronize()
    with cyrt.Stream():
        arrays = []
        nodes = launches_of(lambda: arrays.append(run(target)))
    operations = [fusion.describe(*node) for node in nodes]
    fused_run = fusion.Run()
    # The reduction comes first: it tells what a row is.
    for node in (2, 0, 1):
        assert fused_run.add(node, operations[node])
    fused = fusion.generate([fused_run], [fused_run.outputs])
    assert fused.source.count("__syncthreads();\n    if (threadIdx.x == 0") == 1
    launch([fused])
    for found, wanted in zip((*arrays[0], target), (*run(other), other), strict=True):
        assert bits(found) == bits(wanted)


def test_reductions_that_divide_rows_otherwise_are_refused(rng):
    x, wide = array(rng, 24, 40), array(rng, 24, 4096)
    assert refused(lambda: [cyrt.max(x, axis=1), cyrt.max(x.astype("float64"), axis=1)])
    assert refused(lambda: [cyrt.sum(x, axis=1), cyrt.sum(x * 2)])
    assert refused(lambda: [z := cyrt.sum(x, axis=1), cyrt.sum(z)])
    with cyrt.Stream():
        columns, parts = (
            launches_of(lambda: cyrt.sum(x, axis=0)),
            launches_of(lambda: cyrt.sum(wide)),
        )
    with pytest.raises(
        ValueError, match="neither elementwise, nor a reduction along rows, nor a product"
    ):
        fusion.describe(*columns[0])
    with pytest.raises(ValueError, match="several parts, or several rows"):
        fusion.describe(*parts[0])


# -- what is described -------------------------------------------------------------------------


@pytest.mark.usefixtures("own_products")
def test_what_is_not_described(rng):
    x, matrix = array(rng, 64), array(rng, 40, 30)
    wide, double = array(rng, 512, 512), array(rng, 30, 40, name="float64")
    with cyrt.Stream():
        ((serial, params, grid, block, _),) = launches_of(lambda: x + 1)
        others = launches_of(lambda: cyrt.cumulative_sum(x))
        tiles = launches_of(lambda: wide.T.copy())
        parts = launches_of(lambda: array(rng, 16, 2048) @ array(rng, 2048, 16))[-2:]
        others += launches_of(lambda: double @ double.T)
        # Which of several NaNs comes out is the assembler's choice.
        others += launches_of(lambda: cyrt.sum(matrix.astype("float64"), axis=1))[-1:]
    assert fusion.describe(serial, params, grid, block).row.op == "add"
    with pytest.raises(ValueError, match="bytes of parameters, expected"):
        fusion.describe(serial, params + bytes(16), grid, block)
    with pytest.raises(ValueError, match="no built-in kernel"):
        fusion.describe(1 << 60, params, grid, block)
    for node in others:
        with pytest.raises(
            ValueError, match="another result, to the bit|neither elementwise|make different code"
        ):
            fusion.describe(*node)
    with pytest.raises(ValueError, match="a transposition of a large array"):
        fusion.describe(*tiles[0])
    with pytest.raises(ValueError, match="parts are summed by another kernel"):
        fusion.describe(*parts[0])
    assert fusion.describe(*parts[1]).product is not None


# -- what is one kernel ----------------------------------------------------------------------------


def refused(function, *others):
    """Whether the last operation of a function cannot join those before it."""
    arrays = []
    with cyrt.Stream():
        nodes = launches_of(lambda: arrays.append(function()))
    operations = [fusion.describe(*node) for node in nodes]
    run = fusion.Run()
    for node, operation in enumerate(operations[:-1]):
        assert run.add(node, operation)
    before = fusion.generate([run], [run.outputs])
    added = run.add(len(operations) - 1, operations[-1])
    assert added or fusion.generate([run], [run.outputs]) == before
    return not added


def test_overlapping_accesses(rng):
    x, y = array(rng, 8, 8), array(rng, 64)

    def assign(index, value):
        x[index] = value
        return x

    assert refused(lambda: [z := x + 1, z + z[::-1]])  # written, and read in another order
    assert refused(lambda: [z := x + 1, x + z[0]])  # broadcast
    assert refused(lambda: [z := x + 1, z.T * z.T])
    assert refused(lambda: [x[1:] + 1, assign(slice(0, -1), x[1:])])  # read, and written shifted
    assert refused(lambda: [z := x + 1, z.view("int16") + 1])  # elements of another size
    assert refused(lambda: [x + 1, y[:32] + 1])  # another number of elements
    assert not refused(lambda: [z := x + 1, z.view("int32") + 1])
    assert not refused(lambda: [x[1:] + 1, x[:-1] * x[1:]])  # only read


def test_index_spaces_that_do_not_divide_each_other(rng):
    """Rows of 6 and rows of 4 elements."""
    x, y = array(rng, 4, 6), array(rng, 6, 4)
    assert refused(lambda: [x + x[:1], y + y[:1]])
    assert not refused(lambda: [x + x[:1], y * y])


def test_equal_programs_have_equal_text(items, rng):
    """At other addresses, of other sizes and with other numbers."""

    def text(rows, columns, number):
        x, row = array(rng, rows, columns), array(rng, columns)
        recorded = Recorded(lambda: [y := x * row, z := y + number, z.astype("float16")])
        return fusion.generate([recorded.run], [[2]]).source

    assert text(8, 16, 1.5) == text(40, 24, -3)
    assert text(8, 16, 1.5) != text(1, 16, 1.5)


def test_independent_runs_in_one_launch(items, rng):
    """Of one shape class: other sizes, addresses and numbers."""

    def step(x, gradient, rate):
        moment = x * 0.9 + gradient
        return [moment, x - moment * rate]

    sizes = (64, 4, 4000, 256, 8)
    tensors = [(array(rng, size), array(rng, size), 0.1 * k) for k, size in enumerate(sizes)]
    recorded = [Recorded(lambda each=each: step(*each)) for each in tensors]
    runs = [each.run for each in recorded]
    stored = [each.run.outputs for each in recorded]
    assert len({fusion.key(*each) for each in zip(runs, stored, strict=True)}) == 1
    fused = fusion.generate(runs, stored)
    launch([fused])
    for each, tensor in zip(recorded, tensors, strict=True):
        for found, wanted in zip(each.arrays, step(*tensor), strict=True):
            assert bits(found) == bits(wanted)
    assert fusion.generate(runs * 20, stored * 20) is None  # too many bytes of parameters
    assert fusion.generate(runs * 20, stored * 20, limit=32764) is not None


def test_too_many_values_at_a_time(rng):
    """A run that would need more registers than a thread has refuses what is too much."""
    x, rows = array(rng, 64), array(rng, 300, 8)

    def tree():
        found = [x + k for k in range(128)]
        return [*found, sum(found[1:], found[0])]

    def along_rows():
        found = [rows * k for k in range(20)]
        return [cyrt.max(rows, axis=1), *found, sum(found[1:], found[0])]

    for function, least in ((tree, 100), (along_rows, 10)):
        arrays = []
        with cyrt.Stream():
            nodes = launches_of(lambda: arrays.append(function()))  # noqa: B023
        operations = [fusion.describe(*node) for node in nodes]
        run = fusion.Run()
        count = 0
        while run.add(count, operations[count]):
            count += 1
        assert least < count < len(operations) - 1
        assert run.nodes == list(range(count))
        assert fusion.generate([run], [run.outputs]) is not None


def test_operands_that_divide_rows_are_refused(rng):
    x, halves = array(rng, 12, 16), array(rng, 12, 2, 1)
    column = array(rng, 16, 12)
    assert refused(lambda: [cyrt.max(x, axis=1), x.reshape(12, 2, 8) * halves])
    assert refused(lambda: [cyrt.max(x, axis=1), x * column.T])
    assert refused(lambda: [x.reshape(12, 2, 8) * halves, cyrt.max(x, axis=1)])
    assert not refused(lambda: [cyrt.max(x, axis=1), x * halves[0, 0]])


def test_assembler_contracts_nothing():
    """The machine code has a product and a sum, not what is both and rounded once."""
    pool = Pool(1 << 16)
    x, y, z, product, total = (pool.access("float32", 512) for _ in range(5))
    run = fusion.Run()
    run.add(0, Operation(catalogue.row("multiply", "float32"), 512, (product, x, y)))
    run.add(1, Operation(catalogue.row("add", "float32"), 512, (total, product, z)))
    fused = fusion.generate([run], [[1]])
    code = jit.compiler.compile(fused.source, arch="sm_90", options=compiling.options("sm_90")).code
    assert count_instructions(code, fused.name) == {"FADD": 1, "FMUL": 1}


@pytest.mark.parametrize("op", ["negative", "abs"])
def test_assembler_changes_signs_by_an_instruction(op):
    """As in the plain kernel, of which a NaN comes without its payload; what follows keeps it."""
    pool = Pool(1 << 16)
    x, y, changed, most = (pool.access("float32", 512) for _ in range(4))
    run = fusion.Run()
    run.add(0, Operation(catalogue.row(op, "float32"), 512, (changed, x)))
    run.add(1, Operation(catalogue.row("maximum", "float32"), 512, (most, changed, y)))
    fused = fusion.generate([run], [[1]])
    code = jit.compiler.compile(fused.source, arch="sm_90", options=compiling.options("sm_90")).code
    assert count_instructions(code, fused.name) == {"FADD": 1}


def count_instructions(cubin, name):
    """The instructions of float32 in a kernel for compute capability 9.0."""
    sections = struct.unpack_from("<Q", cubin, 40)[0]
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, sections + i * size) for i in range(count)]
    text = headers[names][4]
    found = {}
    for each in headers:
        begin = text + each[0]
        if cubin[begin : cubin.index(b"\0", begin)] == f".text.{name}".encode():
            for at in range(each[4], each[4] + each[5], 16):
                code = struct.unpack_from("<Q", cubin, at)[0] & 0x1FF
                if code in (0x020, 0x021, 0x023):
                    kind = {0x020: "FMUL", 0x021: "FADD", 0x023: "FFMA"}[code]
                    found[kind] = found.get(kind, 0) + 1
    return found


def test_what_another_compiler_made_otherwise_is_not_fused():
    """The arithmetic of the prebuilt kernel is compared, with its constants."""
    row = catalogue.row("sigmoid", "float32")
    assert makes_equal(row, "prebuilt PTX compute_90")
    other = dataclasses.replace(row, expression="sigmoid(a * 1.0000001f)")
    assert not makes_equal(other, "prebuilt PTX compute_90")
    assert makes_equal(other, "JIT compute_90")
    functions = compilers.functions(
        ".func (.param .b32 func_retval0) part(\n.param .b32 p\n)\n{\n"
        "mov.f32 %f2, 0f3F800000;\nfma.rn.f32 %f3, %f1, %f2, %f1;\nret;\n}\n"
        ".visible .entry whole(\n.param .b32 p\n)\n{\n"
        "{\ncall.uni (retval0),\npart,\n(param0\n);\n}\n"
        "@%p1 mul.f32 %f1, %f2, 0f40000000;\n}\n"
    )
    assert compilers.arithmetic("whole", functions) == {
        "whole": {"mul.f32 %, %, 0f40000000": 1},
        "part": {"fma.rn.f32 %, %, 0f3F800000, %": 1},
    }


def test_what_the_assembler_joins_is_not_fused():
    """Without contraction the machine code is another one of operations that are not fused."""
    rows = [
        catalogue.row("multiply", "complex64"),
        catalogue.row("square", "complex64"),
        catalogue.row("subtract", "complex64"),
        catalogue.row("multiply_add", "float32"),
        catalogue.row("gelu_tanh", "float32"),
    ]
    found = []
    for row in rows:
        codes = [
            jit.compiler.compile(catalogue.source([row]), arch="sm_90", options=options).code
            for options in (compiling.options("sm_90"), compiling.options("compute_90"))
        ]
        counts = [count_instructions(code, row.kernels[0]) for code in codes]
        found.append(counts[0] == counts[1])
    assert found == [makes_equal(row, "JIT sm_90") for row in rows]
