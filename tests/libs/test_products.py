"""Products by the library: the stand-in's on the emulated device, cuBLASLt's on a GPU."""

from __future__ import annotations

import threading
from ctypes import c_uint64
from functools import partial

import numpy as np
import pytest
import standin as standins
from explaining import explain
from threads import run_in_threads

import cyrt
from cyrt.builtin import library_product
from cyrt.graph import template
from cyrt.libs import cublaslt

FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


@pytest.fixture(scope="module")
def built(tmp_path_factory, emulated):
    if not emulated:
        pytest.skip("on a GPU the library is NVIDIA's")
    made = standins.build(tmp_path_factory.mktemp("standin"))
    made.use_driver()
    return made


@pytest.fixture
def standin(built, monkeypatch):
    built.library.standin_reset()
    opened = cublaslt.open_library(built.path)
    monkeypatch.setattr(cublaslt, "find", lambda: opened)
    template.forget()
    library_product.decide(0, True)
    yield built
    library_product.decide(0)
    template.forget()
    built.library.standin_reset()


def numbers(shape, dtype, rng):
    """Small whole numbers, whose sums are exact."""
    found = rng.integers(-2, 3, shape)
    if dtype.startswith("complex"):
        found = found + 1j * rng.integers(-2, 3, shape)
    return found.astype(cyrt.dtype(dtype).numpy)


def wide(array):
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def check(a, b, x=None, y=None):
    found = cyrt.matmul(cyrt.asarray(a) if x is None else x, cyrt.asarray(b) if y is None else y)
    assert str(found.dtype) == str(cyrt.asarray(a).dtype)
    np.testing.assert_array_equal(wide(found.numpy()), wide(a) @ wide(b))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("workspace", [0, 4096])
def test_every_type(standin, rng, dtype, workspace):
    standin.set(workspace=workspace)
    a, b = numbers((90, 70), dtype, rng), numbers((70, 80), dtype, rng)
    for _ in range(3):
        check(a, b)
    assert standin.asked == 1
    assert standin.products == 3 or standin.products == 4, "learned once"
    assert cyrt.current_encoder().stats()["templates"] == 1


@pytest.mark.parametrize("tf32", [False, True])
def test_the_type_of_the_computation(standin, rng, setting, tf32):
    setting(CYRT_TF32=str(int(tf32)))
    library_product.decide(0, True)
    for dtype, compute in (
        ("float16", cublaslt.COMPUTE_32F),
        ("bfloat16", cublaslt.COMPUTE_32F),
        ("float32", cublaslt.COMPUTE_32F_FAST_TF32 if tf32 else cublaslt.COMPUTE_32F),
        ("complex64", cublaslt.COMPUTE_32F),
        ("float64", cublaslt.COMPUTE_64F),
        ("complex128", cublaslt.COMPUTE_64F),
    ):
        check(numbers((90, 70), dtype, rng), numbers((70, 80), dtype, rng))
        assert standin.compute == compute, dtype


LAYOUTS = {
    "plain": lambda a, b: (a, b),
    "first transposed": lambda a, b: (cyrt.asarray(a.numpy().T).mT, b),
    "second transposed": lambda a, b: (a, cyrt.asarray(b.numpy().T).mT),
    "both transposed": lambda a, b: (cyrt.asarray(a.numpy().T).mT, cyrt.asarray(b.numpy().T).mT),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_without_a_copy(standin, rng, layout):
    a, b = numbers((66, 70), "float32", rng), numbers((70, 72), "float32", rng)
    x, y = LAYOUTS[layout](cyrt.asarray(a), cyrt.asarray(b))
    before = cyrt.current_encoder().stats()
    check(a, b, x, y)
    after = cyrt.current_encoder().stats()
    assert after["repoints"] == before["repoints"] + 1
    assert after["operations"] == before["operations"] + 1


def test_parts_of_larger_matrices(standin, rng):
    a, b = numbers((100, 100), "float32", rng), numbers((100, 100), "float32", rng)
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    check(a[3:80, 8:90], b[8:90, 5:99], x[3:80, 8:90], y[8:90, 5:99])
    check(a.T[3:80, 8:90], b[8:90, 5:99], x.T[3:80, 8:90], y[8:90, 5:99])
    assert standin.asked == 2


def test_strides_that_the_library_does_not_read(standin, rng):
    a, b = numbers((160, 160), "float32", rng), numbers((160, 80), "float32", rng)
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    check(a[::2, ::2], b[::2], x[::2, ::2], y[::2])
    check(a[::-1, ::-1], b, x[::-1, ::-1], y)
    assert standin.asked == 0


BATCHES = [
    ((5, 40, 50), (5, 50, 60)),
    ((5, 40, 50), (50, 60)),
    ((40, 50), (5, 50, 60)),
    ((2, 3, 40, 50), (2, 3, 50, 60)),
    ((1, 40, 50), (7, 50, 60)),
]


@pytest.mark.parametrize(("a", "b"), BATCHES)
@pytest.mark.parametrize("workspace", [0, 256])
def test_batches(standin, rng, a, b, workspace):
    standin.set(workspace=workspace)
    check(numbers(a, "float32", rng), numbers(b, "float32", rng))
    assert standin.asked == 1


def test_a_batch_that_broadcasts_in_two_ways(standin, rng):
    check(numbers((3, 1, 40, 50), "float32", rng), numbers((1, 4, 50, 60), "float32", rng))
    assert standin.asked == 0


@pytest.mark.parametrize(
    "shape",
    [(1, 700, 700), (700, 700, 1), (20, 20, 20), (0, 70, 700), (700, 0, 700), (700, 700, 0)],
)
def test_products_that_own_kernels_multiply(standin, rng, shape):
    m, k, n = shape
    check(numbers((m, k), "float32", rng), numbers((k, n), "float32", rng))
    assert standin.asked == 0


@pytest.mark.parametrize(
    ("dtype", "rows", "asked"),
    [
        ("bfloat16", 8, 0),
        ("bfloat16", 32, 0),
        ("bfloat16", 33, 1),
        ("float32", 8, 0),
        ("float32", 16, 0),
        ("float32", 17, 1),
    ],
)
def test_skinny_products_of_few_rows_are_own_kernels(standin, rng, rows, asked, dtype):
    check(numbers((rows, 256), dtype, rng), numbers((256, 512), dtype, rng))
    assert standin.asked == asked


def test_integers_are_own_kernels(standin, rng):
    check(numbers((90, 70), "int32", rng), numbers((70, 80), "int32", rng))
    assert standin.asked == 0


def test_int8_to_int32(standin, rng):
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((96, 64), (64, 80)))
    before = cyrt.current_encoder().stats()["operations"]
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    found = cyrt.matmul(x, y, dtype=cyrt.int32)
    assert cyrt.current_encoder().stats()["operations"] == before + 1
    np.testing.assert_array_equal(found.numpy(), a.astype(np.int32) @ b.astype(np.int32))
    assert standin.asked == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (0.5, -2), (2, 0)])
def test_addmm_is_one_launch(standin, rng, dtype, alpha, beta):
    shapes = (90, 80), (90, 70), (70, 80)
    c, a, b = (numbers(shape, dtype, rng) for shape in shapes)
    if beta == 0:
        c[:] = np.nan
    arrays = [cyrt.asarray(each) for each in (c, a, b)]
    before = cyrt.current_encoder().stats()["operations"]
    found = cyrt.addmm(*arrays, alpha=alpha, beta=beta)
    assert cyrt.current_encoder().stats()["operations"] == before + 1
    wanted = alpha * (wide(a) @ wide(b)) + (beta * wide(c) if beta else 0)
    np.testing.assert_array_equal(wide(found.numpy()), wanted)


def test_factors_are_part_of_the_key(standin, rng):
    c, a, b = (cyrt.asarray(numbers((70, 70), "float32", rng)) for _ in "cab")
    for alpha, beta in ((1, 1), (2, 1), (1, 2), (2, 1)):
        found = cyrt.addmm(c, a, b, alpha=alpha, beta=beta).numpy()
        np.testing.assert_array_equal(found, alpha * (a.numpy() @ b.numpy()) + beta * c.numpy())
    assert standin.asked == 3


def test_addmm_with_an_addend_that_is_broadcast(standin, rng):
    c, a, b = (numbers(shape, "float32", rng) for shape in ((80,), (90, 70), (70, 80)))
    found = cyrt.addmm(*map(cyrt.asarray, (c, a, b)))
    np.testing.assert_array_equal(found.numpy(), a @ b + c)


def test_alignments_are_part_of_the_key(standin, rng):
    values, b = numbers(90 * 70 + 4, "float32", rng), numbers((70, 80), "float32", rng)
    whole, y = cyrt.asarray(values), cyrt.asarray(b)
    for shift, alignment, asked in ((0, 16, 1), (1, 4, 2), (2, 8, 3), (3, 4, 3), (4, 16, 3)):
        x = cyrt.reshape(whole[shift : shift + 90 * 70], (90, 70))
        check(values[shift : shift + 90 * 70].reshape(90, 70), b, x, y)
        assert standin.asked == asked
        if shift < 3:
            assert standin.preference[2:] == [16, alignment, 16, 16]


def test_a_planned_product_keeps_its_template(standin, rng, setting):
    setting(CYRT_TEMPLATE_CACHE_SIZE="1")
    template.forget()
    factors = [[numbers(shape, "float32", rng) for shape in ((90, k), (k, 80))] for k in (70, 72)]
    with cyrt.CommandEncoder(cyrt.Stream(), graphs=False):
        for _ in range(2):
            for a, b in factors:
                check(a, b)
        assert standin.asked == 2
        assert template.count_templates() == 2
    library_product.decide(0, True)  # no plan holds any more
    check(numbers((90, 74), "float32", rng), numbers((74, 80), "float32", rng))
    assert template.count_templates() == 1


def test_what_is_not_provided_runs_on_own_kernels_and_is_asked_once(standin, rng):
    for options in ({"heuristic": 15}, {"heuristic": 7}, {"algorithms": 0}, {"matmul": 15}):
        template.forget()
        standin.library.standin_reset()
        standin.set(**options)
        for _ in range(3):
            check(numbers((90, 70), "float32", rng), numbers((70, 80), "float32", rng))
        assert standin.asked == 1


def test_other_statuses_are_raised_each_time(standin, rng):
    a, b = numbers((90, 70), "float32", rng), numbers((70, 80), "float32", rng)
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    for options in ({"heuristic": 14}, {"matmul": 13}):
        standin.set(**options)
        for _ in range(2):
            with pytest.raises(cyrt.CudaError, match=r"A float32 \(80, 70\)"):
                cyrt.matmul(x, y)
        assert template.count_templates() == 0
    standin.set()
    check(a, b, x, y)


def test_a_workspace_that_cannot_be_allocated(standin, rng, replaced):
    from ctypes import c_size_t, c_void_p

    standin.set(workspace=3 << 20)
    a, b = numbers((90, 70), "float32", rng), numbers((70, 80), "float32", rng)
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    check(a, b, x, y)
    cyrt.synchronize()
    cyrt.trim_memory()
    refusing = [True]
    replaced(
        "cuMemAlloc",
        [c_void_p, c_size_t],
        lambda original, *arguments: 2 if refusing[0] else original(*arguments),
    )
    operations = cyrt.current_encoder().num_ops
    with cyrt.Stream():
        with pytest.raises(cyrt.OutOfMemoryError):
            cyrt.matmul(x, y)
        assert cyrt.current_encoder().num_ops == operations == 0
    refusing[0] = False
    check(a, b, x, y)


def test_without_scratch_memory_the_call_is_captured_where_it_is(standin, rng, replaced):
    from ctypes import c_size_t, c_void_p

    a, b = numbers((90, 70), "float32", rng), numbers((70, 80), "float32", rng)
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    out = cyrt.empty((90, 80))
    cyrt.synchronize()
    cyrt.trim_memory()
    refusing = [True]
    replaced(
        "cuMemAlloc",
        [c_void_p, c_size_t],
        lambda original, *arguments: 2 if refusing[0] else original(*arguments),
    )
    before = cyrt.current_encoder().stats()["opaque_captures"]
    try:
        cyrt.matmul(x, y, out=out)
    finally:
        refusing[0] = False
    captured = cyrt.current_encoder().stats()["opaque_captures"] - before
    assert captured in (0, 1)  # the pool may have had room
    np.testing.assert_array_equal(out.numpy(), a @ b)


@pytest.mark.usefixtures("batched")
@pytest.mark.parametrize("refused", [0, 1, 2])
def test_a_kernel_that_the_driver_refuses_loses_the_product(standin, rng, replaced, refused):
    from ctypes import c_void_p

    standin.set(workspace=4096)
    a, b = numbers((90, 70), "float32", rng), numbers((70, 80), "float32", rng)
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    check(a, b, x, y)
    cyrt.synchronize()
    state = {"on": True, "count": 0}

    def launch_kernel(original, *arguments):
        state["count"] += state["on"]
        return 801 if state["on"] and state["count"] == refused + 1 else original(*arguments)

    replaced(
        "cuGraphLaunch",
        [c_void_p] * 2,
        lambda original, *rest: 801 if state["on"] else original(*rest),
    )
    replaced("cuLaunchKernelEx", [c_void_p] * 4, launch_kernel)
    product = cyrt.matmul(x, y)
    with pytest.raises(cyrt.CudaError, match="The operation refused is the kernel"):
        cyrt.commit()
    state["on"] = False
    # What comes after the refused kernel did not run on what it would have written.
    assert state["count"] == refused + 1
    with pytest.raises(cyrt.CudaError, match="801"):
        product.numpy()
    check(a, b, x, y)


def test_threads_and_streams_have_workspaces_of_their_own(standin, rng):
    standin.set(workspace=1 << 20)

    def work(seed):
        own = np.random.default_rng(seed)
        a, b = numbers((90, 70), "float32", own), numbers((70, 80), "float32", own)
        with cyrt.Stream():
            x, y = cyrt.asarray(a), cyrt.asarray(b)
            found = [cyrt.matmul(x, y) for _ in range(20)]
            assert all((each.numpy() == a @ b).all() for each in found)

    assert run_in_threads(*(partial(work, i) for i in range(3))) == []


def test_an_opaque_call_on_a_thread_without_a_handle(standin, rng):
    """The handle is made before the capture, in which the library could not allocate."""
    a, b = numbers((90, 70), "float32", rng), numbers((70, 80), "float32", rng)
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    foreign = cyrt.zeros(64)
    standin.library.standin_memory(c_uint64(foreign.__cuda_array_interface__["data"][0]))
    try:
        check(a, b, x, y)
        before, during = standin.handles, []

        def work():
            with cyrt.Stream():
                check(a, b, x, y)
                during.append(cyrt.current_encoder().stats()["opaque_captures"])

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        standin.library.standin_memory(c_uint64(0))
    assert during == [1]
    assert standin.handles == before


def test_explain_tells_the_library(standin):
    explained = explain("matmul", "float32", (256, 768), (768, 768))
    assert explained.origin == "cuBLASLt 13.0.0"
    assert explained.kernel == "gemm_float32"
    assert explained.grid == 256 * 768 // 128
    library_product.decide(0, False)
    explained = explain("matmul", "float32", (256, 768), (768, 768))
    assert explained.kernel.startswith("cyrt_")
    assert explained.origin.startswith("prebuilt")


def test_a_library_that_is_too_old_is_not_used(standin, monkeypatch, rng):
    standin.set(version=111103)
    opened = cublaslt.open_library(standin.path)
    monkeypatch.setattr(cublaslt, "find", lambda: opened)
    library_product.decide(0)
    check(numbers((90, 70), "float32", rng), numbers((70, 80), "float32", rng))
    assert standin.asked == 0


def test_the_emulated_device_has_own_kernels(standin, rng):
    library_product.decide(0)
    check(numbers((90, 70), "float32", rng), numbers((70, 80), "float32", rng))
    assert standin.asked == 0


def test_a_chain(standin, rng):
    x = cyrt.asarray(numbers((64, 64), "float64", rng))
    w = cyrt.eye(64, dtype=cyrt.float64)
    y = x
    for _ in range(300):
        y = y @ w
    np.testing.assert_array_equal(y.numpy(), x.numpy())
    assert standin.asked == 1


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.fixture
def library():
    found, reason = cublaslt.find()
    if found is None:
        pytest.skip(reason)
    return found


def tolerance(dtype, depth):
    """The error of a sum of `depth` products of numbers around 1, relative to its square root."""
    return {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "complex64": 1e-5}.get(
        dtype, 1e-13
    ) * (1 if dtype in ("float16", "bfloat16") else np.sqrt(depth))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(256, 768, 768), (257, 769, 771), (130, 65, 1025), (1000, 3, 1000), (128, 4096, 33)]
)
@pytest.mark.parametrize("layout", ["nn", "tn", "nt", "tt"])
@pytest.mark.parametrize("shift", [0, 1])
def test_against_numpy(library, rng, dtype, shape, layout, shift):
    m, k, n = shape

    def operand(rows, columns, turned):
        values = rng.normal(size=rows * columns)
        if dtype.startswith("complex"):
            values = values + 1j * rng.normal(size=rows * columns)
        values = values.astype(cyrt.dtype(dtype).numpy)
        padded = np.concatenate([values[:shift], values])
        flat = cyrt.asarray(padded)[shift:]
        sizes = (columns, rows) if turned else (rows, columns)
        matrix, array = values.reshape(sizes), cyrt.reshape(flat, sizes)
        return (matrix.T, array.mT) if turned else (matrix, array)

    a, x = operand(m, k, layout[0] == "t")
    b, y = operand(k, n, layout[1] == "t")
    first, second = (x @ y).numpy(), (x @ y).numpy()
    np.testing.assert_array_equal(first, second, "results differ from run to run")
    wanted = wide(a) @ wide(b)
    scale = np.sqrt(k)
    np.testing.assert_allclose(
        wide(first) / scale, wanted / scale, rtol=tolerance(dtype, k), atol=tolerance(dtype, k)
    )


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("a", "b"), BATCHES)
def test_batches_on_a_gpu(library, rng, dtype, a, b):
    check(numbers(a, dtype, rng), numbers(b, dtype, rng))


@pytest.mark.gpu
def test_operands_far_apart(library, rng):
    """Addresses that differ by more than 4 GiB, in both orders, with one template."""
    try:
        whole = cyrt.empty(3 << 29, dtype=cyrt.float32)
    except cyrt.OutOfMemoryError:
        pytest.skip("there are no 6 GiB of device memory")
    a, b = numbers((512, 512), "float32", rng), numbers((512, 512), "float32", rng)
    low, high = whole[: a.size], whole[-b.size :]
    for first, second in ((low, high), (high, low)):
        first[:] = cyrt.asarray(a.ravel())
        second[:] = cyrt.asarray(b.ravel())
        found = cyrt.reshape(first, a.shape) @ cyrt.reshape(second, b.shape)
        np.testing.assert_array_equal(found.numpy(), a @ b)


@pytest.mark.gpu
def test_int8_on_a_gpu(library, rng):
    for shape in ((256, 768, 512), (255, 767, 511)):
        m, k, n = shape
        a, b = (rng.integers(-128, 128, each).astype(np.int8) for each in ((m, k), (k, n)))
        found = cyrt.matmul(cyrt.asarray(a), cyrt.asarray(b), dtype=cyrt.int32)
        np.testing.assert_array_equal(found.numpy(), a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_beside_pytorch(library, rng, dtype):
    torch = pytest.importorskip("torch")
    a, b = (rng.normal(size=(512, 512)).astype(np.float32) for _ in "ab")
    x, y = (cyrt.asarray(each).astype(cyrt.dtype(dtype)) for each in (a, b))
    left, right = (torch.from_numpy(each).cuda().to(getattr(torch, dtype)) for each in (a, b))
    wanted = (left @ right).float().cpu().numpy()
    found = (x @ y).astype(cyrt.float32).numpy()
    limit = 0.3 if dtype == "bfloat16" else 1e-3
    np.testing.assert_allclose(found, wanted, rtol=2e-2, atol=limit)
    explained = explain("matmul", dtype, (512, 512), (512, 512))
    assert explained.origin.startswith("cuBLASLt")
