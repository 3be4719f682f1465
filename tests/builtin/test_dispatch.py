"""Which kernel an operation gets, and that every variant reads and writes what it should."""

from __future__ import annotations

import numpy as np
import pytest
from applying import apply
from explaining import explain

import cyrt
from cyrt.builtin import catalogue
from cyrt.builtin.rows import elementwise
from cyrt.dtypes import dtype

GUARD = 64  # elements around every operand, which nobody writes
ITEMS = {"uint8": 8, "float16": 8, "float32": 4, "float64": 2, "complex128": 1}


class Operand:
    """A NumPy view and the Buffer that holds its base."""

    def __init__(self, view):
        base = view
        while base.base is not None:
            base = base.base
        self.view, self.base = view, base
        self.buffer = cyrt.Buffer(base.nbytes)
        self.buffer.copy_from(base)
        first = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        self.place = (self.buffer, first // base.itemsize)
        self.strides = tuple(s // base.itemsize for s in view.strides)

    def check(self, wanted):
        """The Buffer holds the base with `wanted` in the view's place, and nothing else changed."""
        self.view[...] = wanted
        found = np.zeros_like(self.base)
        self.buffer.copy_to(found)
        np.testing.assert_array_equal(found, self.base)


def filled(rng, name, *shape):
    each = dtype(name).numpy
    if each.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(each)
    return rng.integers(0, 100, shape).astype(each)


def guarded(rng, name, n, offset=0):
    return filled(rng, name, n + 2 * GUARD)[GUARD + offset : GUARD + offset + n]


def perform(op, name, out, *inputs):
    """Apply an operation to views; check the output and all that lies around it."""
    out, operands = Operand(out), [Operand(view) for view in inputs]
    apply(
        op,
        [o.place for o in operands],
        out.place,
        name,
        out.view.shape,
        [o.strides for o in (out, *operands)],
    )
    return out, [o.view for o in operands]


def sizes(name):
    items = ITEMS[name]
    near = {0, 1, 2, items, 32 * items, 256, 256 * items, 512 * items}
    return sorted({n for size in near for n in (size - 1, size, size + 1) if n >= 0})


@pytest.mark.parametrize("name", ITEMS)
def test_sizes_around_vectors_and_blocks(name, rng):
    for n in sizes(name):
        a, b, out = (guarded(rng, name, n) for _ in range(3))
        result, (a, b) = perform("add", name, out, a, b)
        result.check(a + b)


@pytest.mark.parametrize(("more", "offset"), [(0, 0), (1, 0), (700, 0), (5, 1)])
def test_large_arrays_take_several_steps(more, offset, rng):
    n = 5462 * 3 * 256 * ITEMS["float64"] + more
    assert explain("negative", "float64", n).grid == (5463 if more else 5462)
    x = np.arange(n + 2.0)
    source, out = cyrt.Buffer(x.nbytes), cyrt.Buffer(x.nbytes)
    source.copy_from(x)
    apply("copy", [7.0], out, "float64", n + 2)
    apply("negative", [(source, offset)], (out, offset), "float64", n)
    found = np.empty_like(x)
    out.copy_to(found)
    x = -x
    x[:offset] = x[n + offset :] = 7
    assert (found == x).all()


@pytest.mark.parametrize("name", ["uint8", "float16", "float32"])
def test_misaligned_slices(name, rng):
    for offset in range(1, ITEMS[name] + 1):
        for which in range(3):
            views = [guarded(rng, name, 1037, offset if which == i else 0) for i in range(3)]
            result, (a, b) = perform("add", name, *views)
            result.check(a + b)


@pytest.mark.parametrize("n", [700, 704, 703])  # whole vectors of some types, of all, of none
@pytest.mark.parametrize("name", ITEMS)
def test_one_element_for_all(name, n, rng):
    a, one, out = guarded(rng, name, n), filled(rng, name, 1), guarded(rng, name, n)
    for left in (False, True):
        inputs = [np.broadcast_to(one, n), a] if left else [a, np.broadcast_to(one, n)]
        result, (x, y) = perform("subtract", name, out.copy(), *inputs)
        result.check(x - y)
        # The number itself, in the parameters.
        operand, result = Operand(a), Operand(out.copy())
        numbers = [one[0], operand.place] if left else [operand.place, one[0]]
        apply("subtract", numbers, result.place, name, n)
        result.check(x - y)


def random_view(rng, name, shape):
    """A view of that shape: sliced, stepped, reversed, transposed or broadcast."""
    order = rng.permutation(len(shape))
    broadcast = rng.random(len(shape)) < 0.15
    steps = rng.integers(1, 4, len(shape)) * np.where(rng.random(len(shape)) < 0.3, -1, 1)
    steps = np.where(rng.random(len(shape)) < 0.5, 1, steps)
    extents = [
        1 if broadcast[d] else abs(int(steps[d])) * shape[d] + int(rng.integers(0, 2))
        for d in order
    ]
    view = filled(rng, name, *extents).transpose(np.argsort(order))
    view = view[
        (
            ...,
            *(
                slice(None) if broadcast[d] else slice(None, None, int(steps[d]))
                for d in range(len(shape))
            ),
        )
    ]
    view = view[(..., *(slice(0, n) for n in shape))]
    return view if view.shape == shape else np.broadcast_to(view, shape)


@pytest.mark.parametrize("seed", range(40))
def test_any_strides(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 5, 8, 17, 40], rng.integers(0, 5)))
    name = str(rng.choice(list(ITEMS)))
    a, b, out = (random_view(rng, name, shape) for _ in range(3))
    if 0 in out.strides or not out.flags.writeable:
        out = filled(rng, name, *shape)
    result, (a, b) = perform("subtract", name, out, a, b)
    with np.errstate(over="ignore"):
        result.check(a - b)
    source = random_view(rng, name, shape)
    result, (source,) = perform("copy", name, out.copy(), source)
    result.check(source)


@pytest.mark.parametrize(("pitch", "width"), [(16, 13), (16, 8), (17, 8), (24, 16)])
@pytest.mark.parametrize("name", ["uint8", "float32"])
def test_rows_of_whole_vectors_and_others(name, pitch, width, rng):
    """Each operand in turn has rows that are, or are not, of whole vectors at aligned places."""
    for which in range(3):
        views = [filled(rng, name, 7, pitch if i == which else 32)[:, :width] for i in range(3)]
        result, (a, b) = perform("add", name, *views)
        result.check(a + b)
    column = np.broadcast_to(filled(rng, name, 7, 1), (7, width))
    result, (a, b) = perform(
        "add",
        name,
        filled(rng, name, 7, pitch)[:, :width],
        np.broadcast_to(filled(rng, name, width), (7, width)),
        column,
    )
    result.check(a + b)


def test_more_dimensions_than_a_kernel_has(rng):
    a = filled(rng, "float32", *(3,) * 11)[(slice(0, 2),) * 11]
    out = filled(rng, "float32", *(2,) * 11)
    operands = [(2**11 - 1) // (1 << d) for d in range(11)]
    assert (
        explain("negative", "float32", a.shape, strides=(None, Operand(a).strides)).launches == 4
    ), operands
    result, (a,) = perform("negative", "float32", out, a)
    result.check(-a)


def test_many_rows(rng):
    a, out = filled(rng, "uint8", 70_001, 5)[:, :3], filled(rng, "uint8", 70_001, 4)[:, ::2]
    a = a[:, :2]
    assert explain("bitwise_invert", "uint8", (2**24, 3), strides=(None, (4, 1))).grid > 65_535
    result, (a,) = perform("bitwise_invert", "uint8", out, a)
    result.check(~a)


@pytest.mark.parametrize("name", ["uint8", "uint16", "float32", "float64", "complex128"])
def test_transposing_copies(name, rng):
    for rows, columns in ((8, 8), (31, 33), (32, 32), (64, 129), (130, 66), (200, 9)):
        for offset in (0, 1):
            source = filled(rng, name, rows, columns + offset)[:, offset:]
            out = filled(rng, name, columns, rows)
            result, (x,) = perform("copy", name, out, source.T)
            result.check(x)
    batched = filled(rng, name, 3, 40, 2, 36)
    result, (x,) = perform(
        "copy", name, filled(rng, name, 2, 36, 3, 40), batched.transpose(2, 3, 0, 1)
    )
    result.check(x)
    # Batches that begin at odd elements, of rows that do not.
    flat = filled(rng, name, 3 * 1441)
    source = np.lib.stride_tricks.as_strided(
        flat, (3, 36, 40), [n * flat.itemsize for n in (1441, 1, 36)]
    )
    result, (x,) = perform("copy", name, filled(rng, name, 3, 36, 40), source)
    result.check(x)
    explained = explain("copy", name, (64, 64), strides=(None, (1, 64)))
    assert "transpose" in explained.kernel
    assert "transpose" not in explain("copy", name, (64, 4), strides=(None, (1, 64))).kernel


def test_fill_is_a_copy_of_a_number(rng):
    for name, value in (
        ("uint8", 7),
        ("float16", -2.5),
        ("float64", np.pi),
        ("complex128", 1 - 2j),
    ):
        out = Operand(guarded(rng, name, 301, 1))
        apply("copy", [value], out.place, name, 301)
        out.check(value)
        out = Operand(filled(rng, name, 20, 30)[::2, 1:])
        apply("copy", [value], out.place, name, (10, 29), (out.strides, None))
        out.check(value)


def test_in_place(rng):
    x = guarded(rng, "float32", 1000)
    both = Operand(x)
    apply("add", [both.place, both.place], both.place, "float32", 1000)
    both.check(x + x)


def test_operations_wait_for_what_they_read(rng):
    n, buffers = 3000, [cyrt.Buffer(12000) for _ in range(4)]
    apply("arange", [0, 1], buffers[0], "float32", n)
    for i in range(60):
        apply("add", [buffers[i % 4], 1.0], buffers[(i + 1) % 4], "float32", n)
    found = np.zeros(n, np.float32)
    buffers[0].copy_to(found)
    np.testing.assert_array_equal(found, np.arange(n) + 60)


@pytest.mark.gpu
def test_more_than_two_to_the_31_elements():
    n = 2**31 + 2**20 + 3
    x, out = cyrt.Buffer(n), cyrt.Buffer(n)
    tail = np.zeros(1 << 16, np.uint8)
    for op, strides, wanted in (("add", None, 7), ("subtract", ((1,), (-1,), None), 1)):
        apply("copy", [4], x, "uint8", n)
        apply("copy", [0], out, "uint8", n)
        first = n - 1 if strides else 0
        apply(op, [(x, first), 3], out, "uint8", n, strides)
        for start in (0, 2**31 - (1 << 15), n - (1 << 16)):
            out[start : start + (1 << 16)].copy_to(tail)
            assert (tail == wanted).all()


def test_explain():
    explained = explain("add", "float32", (1000, 1000))
    assert (explained.kernel, explained.grid, explained.block) == (
        "cyrt_add_float32_aligned",
        977,
        (256, 1),
    )
    assert explain("add", "float32", 1001).kernel == "cyrt_add_float32"  # no whole vectors
    assert explain("add", "float32", 2**24).kernel == "cyrt_add_float32"  # no small array
    assert explain("add", "float32", 8, strides=(None, (0,), None)).kernel == "cyrt_add_float32"
    assert explained.expression == "a + b"
    assert explained.launches == 1
    assert explain("add", "float32", 100).block == (32, 1)
    assert explain("add", "float32", (0, 5)) is None
    rows = explain("add", "float32", (100, 64), strides=(None, (64, 1), (0, 1)))
    assert (rows.kernel, rows.block) == ("cyrt_add_float32_strided", (16, 16))
    # Contiguous alike in another order of dimensions is contiguous.
    assert explain("add", "float32", (3, 5), strides=((1, 3),) * 3).kernel == "cyrt_add_float32"
    assert (
        explain("add", "float32", (4, 5), strides=((1, 4),) * 3).kernel
        == "cyrt_add_float32_aligned"
    )
    assert explain("copy", "bfloat16", 800).kernel == "cyrt_copy_complex128"
    # What is more than 32-bit counts hold is split.
    assert explain("negative", "float32", 2**33).launches == 1
    assert explain("negative", "float32", 2**33, strides=((1,), (-1,))).launches == 8
    assert explain("negative", "float32", (2**32, 3), strides=((5, 1), (4, 1))).launches == 4
    assert explain("arange", "int64", 10).kernel == "cyrt_arange_int64"
    assert explain("to_int8", "float32", 10).expression == "a"


BAD = [
    (lambda: catalogue.row("plus", "float32"), ValueError, "'plus' is not a built-in"),
    (lambda: catalogue.row("add", "float33"), TypeError, "'float33' is not an element type"),
    (lambda: catalogue.row("sqrt", "int32"), TypeError, "sqrt has no kernel for int32"),
    (lambda: explain("add", "int31", 4), TypeError, "'int31'"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD)
def test_bad_input(call, error, text):
    before = cyrt.current_encoder().num_ops
    with pytest.raises(error, match=text):
        call()
    assert cyrt.current_encoder().num_ops == before


def test_freed_operands(rng):
    a, b = cyrt.Buffer(64), cyrt.Buffer(64)
    b.free()
    with pytest.raises(ValueError, match="freed"):
        apply("add", [a, b], a, "float32", 16)


def test_every_row_says_which_kernel_it_gets():
    for row in catalogue.ROWS:
        if row.prebuilt and (row.template in elementwise.TEMPLATES or row.template == "arange"):
            assert explain(row.op, row.dtype, 33).kernel == row.kernels[0]
            if len(row.kernels) > 2:
                assert explain(row.op, row.dtype, 32).kernel == row.kernels[2]
