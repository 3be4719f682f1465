"""Discrete Fourier transforms by the library: the stand-in's on the emulated device, cuFFT's on a
GPU."""

from __future__ import annotations

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from standin_cufft import Standin
from threads import run_in_threads

import cyrt
from cyrt.builtin import library_fft
from cyrt.graph import template
from cyrt.libs import cufft

EPSILON = {np.float32: 2.0**-23, np.float64: 2.0**-52}
NAMES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn")
REAL = ("rfft", "ihfft", "rfftn")


@pytest.fixture(scope="module")
def built(emulated):
    if not emulated:
        pytest.skip("on a GPU the library is NVIDIA's")
    return Standin()


@pytest.fixture
def standin(built, monkeypatch):
    built.reset()
    monkeypatch.setattr(cufft, "find", lambda: (built, ""))
    template.forget()
    library_fft.decide(0, True, every=True)
    yield built
    library_fft.decide(0)
    template.forget()


@pytest.fixture
def library(emulated):
    if emulated or cufft.find()[0] is None:
        pytest.skip("there is no cuFFT")
    library_fft.decide(0, True, every=True)
    yield
    library_fft.decide(0)


def numbers(shape, real, width=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    found = rng.normal(size=shape).astype(width)
    return (
        found
        if real
        else (found + 1j * rng.normal(size=shape)).astype(np.result_type(width, np.complex64))
    )


def check(name, x, array=None, width=np.float32, **options):
    array = cyrt.asarray(x) if array is None else array
    found = getattr(cyrt.fft, name)(array, **options).numpy()
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    wanted = getattr(np.fft, name)(wide, **options)
    assert found.shape == wanted.shape
    assert found.dtype.kind == wanted.dtype.kind
    assert found.real.dtype == width
    error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    assert error < 12 * EPSILON[width], error / EPSILON[width]
    np.testing.assert_array_equal(array.numpy(), x, "the input is written")


@pytest.mark.parametrize("width", [np.float32, np.float64])
@pytest.mark.parametrize("workspace", [0, 4096])
def test_every_function(standin, width, workspace):
    standin.workspace = workspace
    before = cyrt.current_encoder().stats()
    for name in NAMES:
        for shape in ((20,), (3, 11), (2, 3, 8)):
            check(name, numbers(shape, name in REAL, width), width=width)
    stats = cyrt.current_encoder().stats()
    assert stats["templates"] > 10
    opaque = stats["opaque_captures"] - before["opaque_captures"]
    assert opaque == 0, "memory of the plan's own is not the program's"
    assert standin.calls == 3 * standin.made or standin.calls == 4 * standin.made


def test_norms_axes_and_lengths(standin):
    x = numbers((6, 5, 8), False)
    for options in ({"axis": 0}, {"axis": 1}, {"n": 6}, {"n": 11}, {"norm": "ortho"}):
        for name in ("fft", "ifft", "irfft"):
            check(name, x, **options)
    for axes in ((0, 1), (1, 2), (0, 2), (2, 1)):
        check("fftn", x, axes=axes, norm="forward")
        check("rfftn", x.real.copy(), axes=axes)
    check("fft2", x, s=(4, 4))
    check("fft", x[::2, :, ::2], cyrt.asarray(x)[::2, :, ::2])
    check("fft2", x[:, ::2], cyrt.asarray(x)[:, ::2])
    check("fft", x.real.copy())


def test_imaginary_parts_that_have_no_effect(standin):
    for n in (8, 9):
        check("irfft", numbers((3, n // 2 + 1), False), n=n)
        check("irfft", numbers((n // 2 + 1, 3), False), n=n, axis=0)
    assert standin.made == 4


@pytest.mark.parametrize("status", [0, 16])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in REAL])
def test_real_inputs_count_as_complex_numbers(standin, name, status):
    standin.status = status
    for dtype in (np.float32, np.float64, np.int32):
        for shape in ((20,), (3, 11), (2, 3, 8)):
            x = (10 * numbers(shape, True, np.float64)).astype(dtype)
            check(name, x, width=np.float64 if dtype is np.float64 else np.float32)


def test_a_known_transform_is_not_learned_again(standin):
    x = numbers((4, 12), False)
    for _ in range(3):
        check("fft", x)
    assert standin.made == 1


def test_alignments_are_part_of_the_key(standin):
    x = numbers(40, False)
    array = cyrt.asarray(x)
    for begin in (0, 1, 2, 3):
        check("fft", x[begin : begin + 30], array[begin : begin + 30])
    assert standin.made == 2


def test_what_the_library_refuses_is_computed_by_own_kernels(standin):
    standin.status = 16
    x = numbers((4, 12), False)
    check("fft", x)
    check("fft2", x)
    assert cyrt.explain(cyrt.fft.fft, cyrt.asarray(x)).kernel.startswith("cyrt_fft")
    assert standin.calls == 0


def test_other_statuses_are_errors_with_sizes_and_types(standin):
    standin.status = 5
    with pytest.raises(
        cyrt.CudaError, match=r"complex64 to complex64, 4 x \(12,\) points"
    ) as caught:
        cyrt.fft.fft(cyrt.asarray(numbers((4, 12), False)))
    assert (caught.value.call, caught.value.code) == ("cufftXtMakePlanMany", 5)
    standin.status = 2
    with pytest.raises(cyrt.OutOfMemoryError, match="CUFFT_ALLOC_FAILED"):
        cyrt.fft.fft(cyrt.asarray(numbers((4, 12), False)))


def test_plans_end(standin):
    x = numbers((4, 12), False)
    check("fft", x)
    assert len(standin.plans) == 1
    standin.status = 16
    check("fft", x, n=11)  # its plan is made, and then refused
    template.forget()
    for _ in range(3):
        check("fft", x, n=12)
        cyrt.synchronize()
    assert standin.plans == {}


def test_plans_begin_and_end_during_the_capture_of_another_library(standin):
    """In the global mode of captures, an allocation of any thread ends a capture."""
    x = numbers((4, 12), False)
    stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
    with standin.driver:
        standin.driver("cuStreamCreate", ctypes.byref(stream), 1)

    def use_and_drop():
        check("fft", x)
        assert len(standin.plans) == 1
        template.forget()
        cyrt.ones(3)
        cyrt.synchronize()
        assert standin.plans == {}

    def capture(function):
        with standin.driver:
            standin.driver("cuStreamBeginCapture_v2", stream, 0)
        function()
        with standin.driver:
            standin.driver("cuStreamEndCapture", stream, ctypes.byref(graph))
            standin.driver("cuGraphDestroy", graph)

    capture(use_and_drop)
    with ThreadPoolExecutor(1) as threads:
        capture(lambda: threads.submit(use_and_drop).result(60))
    with standin.driver:
        standin.driver("cuStreamDestroy_v2", stream)


def test_single_transforms_are_the_librarys(standin):
    """cuFFT refuses a distance of 0, which transforms that are alone do not need."""
    for name, shape in (("fft", (12,)), ("rfft", (1, 12)), ("irfft", (7,)), ("fftn", (4, 2, 3))):
        check(name, numbers(shape, name in REAL))
    assert standin.made == 4
    assert standin.calls >= 3 * 4


def test_explain_names_the_library(standin):
    found = cyrt.explain(cyrt.fft.fft2, cyrt.Example((8, 8), "complex64"))
    assert (found.kernel, found.launches, found.origin) == ("dft", 1, "cuFFT 12.0.0")


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "launches"),
    [
        ("fft", (64, 1024), "complex64", ["library"]),
        ("fft", (64, 1023), "complex64", ["library"]),
        ("fft", (8,), "complex64", ["library"]),
        ("fft", (2, 100_003), "complex64", ["library"]),
        ("fft", (64, 1024), "float32", ["own"]),  # complex numbers are the library's input
        ("ifft", (64, 1024), "complex64", ["own"]),
        ("ifft", (1024, 1024), "complex64", ["library", "own"]),  # the factor
        ("ifft", (8192, 64), "complex64", ["own"]),
        ("ifft", (1, 4096), "complex64", ["library", "own"]),
        ("ifft", (15, 1009), "complex64", ["library", "own"]),
        ("rfft", (64, 1024), "float32", ["library"]),
        ("irfft", (4096, 513), "complex64", ["own"]),
        ("irfft", (16, 506), "complex64", ["own", "own"]),
        ("irfft", (512, 506), "complex64", ["own", "own", "library", "own"]),
        # A copy, whose first imaginary part is cleared, is overwritten; then comes the factor.
        ("irfft", ((1 << 19) + 1,), "complex64", ["own", "own", "library", "own"]),
        ("fft2", (8, 8), "complex64", ["library"]),
        ("rfft2", (8, 8), "float32", ["library"]),
        ("ifft2", (128, 128), "complex64", ["own", "own"]),
        ("ifft2", (256, 256), "complex64", ["library", "own"]),
        ("irfft2", (256, 129), "complex64", ["own", "own"]),
    ],
)
def test_the_faster_one_computes(standin, name, shape, dtype, launches):
    library_fft.decide(0, True)
    found = cyrt.explain(getattr(cyrt.fft, name), cyrt.Example(shape, dtype))
    assert ["library" if each[0] == "dft" else "own" for each in found.kernels] == launches


@pytest.mark.parametrize(("axis", "launches"), [(0, "library"), (1, "own"), (2, "library")])
def test_lines_of_one_distance_are_the_librarys(standin, axis, launches):
    library_fft.decide(0, True)
    found = cyrt.explain(cyrt.fft.fft, cyrt.Example((4, 6, 8), "complex64"), axis=axis)
    assert ["library" if each[0] == "dft" else "own" for each in found.kernels] == [launches]
    x = numbers((4, 6, 8), False)
    check("fft", x, axis=axis)


def test_versions_and_absence(monkeypatch, tmp_path):
    path = tmp_path / "libcufft.so"
    path.write_text("no library")
    found, reason = cufft.open_library(str(path))
    assert found is None
    assert "cuFFT cannot be opened" in reason


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("width", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_values_on_a_gpu(library, name, width):
    before = cyrt.current_encoder().stats()["opaque_captures"]
    if name not in ("irfft", "hfft", "irfftn"):  # a spectrum of one element has no points to guess
        check(name, numbers((3, 1), name in REAL, width), width=width)
    for n in (2, 3, 7, 16, 97, 128, 251, 1000, 1009, 4099, 8192, 10007, 16384, 30030, 1 << 17):
        check(name, numbers((3, n), name in REAL, width), width=width)
    for shape in ((2, 30, 64), (64, 128), (32, 16, 8), (1_000_003,), (1 << 20,), ((1 << 20) + 1,)):
        if (
            name not in ("irfftn", "fftn", "ifftn", "rfftn")
            or len(shape) < 2
            or width is np.float32
        ):
            check(name, numbers(shape, name in REAL, width), width=width)
    assert cyrt.current_encoder().stats()["opaque_captures"] == before


@pytest.mark.gpu
@pytest.mark.parametrize("width", [np.float32, np.float64])
def test_odd_and_even_lengths_from_half_a_spectrum_on_a_gpu(library, width):
    """With imaginary parts that the definition ignores."""
    for n in (1, 2, 3, 4, 5, 96, 97, 1008, 1009, 10006, 10007):
        for lines in (1, 5):
            check("irfft", numbers((lines, n // 2 + 1), False, width), width=width, n=n)
        check("irfft", numbers((n // 2 + 1, 3), False, width), width=width, n=n, axis=0)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "shape"),
    [("fft", (1009,)), ("fft", (8, 64)), ("fft2", (12, 30)), ("rfftn", (3, 8, 16, 10))],
)
def test_the_library_computes_on_a_gpu(library, name, shape):
    dtype = "float32" if name in REAL else "complex64"
    found = cyrt.explain(getattr(cyrt.fft, name), cyrt.Example(shape, dtype))
    assert found.origin.startswith("cuFFT")


@pytest.mark.gpu
def test_axes_on_a_gpu(library):
    x = numbers((96, 100, 64), False)
    for axis in (0, 1, 2):
        for name in ("fft", "ifft", "irfft"):
            check(name, x, axis=axis)
    for axes in ((0, 1), (1, 2), (0, 2)):
        check("fftn", x, axes=axes)
    check("fft", x[::2, :, 1::2], cyrt.asarray(x)[::2, :, 1::2])


def test_no_plan_is_made_while_another_thread_captures(standin, monkeypatch):
    """cuFFT waits for the whole context where it makes a plan, which ends a capture."""
    inside, most = 0, 0

    def count(original):
        def call(*arguments):
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            time.sleep(0.005)  # other threads run
            try:
                return original(*arguments)
            finally:
                inside -= 1

        return call

    make = standin.functions["cufftXtMakePlanMany"]
    monkeypatch.setitem(standin.functions, "cufftXtMakePlanMany", count(make))
    monkeypatch.setattr(cufft.Transform, "__call__", count(cufft.Transform.__call__))

    def work(length):
        with cyrt.stream(cyrt.Stream()):
            check("fft", numbers((2, length), False))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(20, 28)))
    assert most == 1


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", ["cufftSetStream", "cufftSetWorkArea", "cufftXtExec"])
def test_a_signal_handler_calls_the_plan_that_it_interrupts(standin, monkeypatch, name, after):
    standin.workspace = 64
    points = cufft.Points("complex64", (8,), 1, 8)
    transform = cufft.Transform(standin, 0, 0, (8,), points, points, 1, False)
    found = []

    def execute(plan, source, target, direction):
        used = standin.plans[plan.value]
        found.append((used["stream"], used["area"], source, target))
        return 0

    def interrupted(*arguments):
        nonlocal handler
        handle, handler = handler, lambda: None
        if not after:
            handle()
        status = original(*arguments)
        if after:
            handle()
        return status

    def handler():
        transform(1, (11, 12, 13))

    monkeypatch.setitem(standin.functions, "cufftXtExec", execute)
    original = standin.functions[name]
    monkeypatch.setitem(standin.functions, name, interrupted)
    transform(2, (21, 22, 23))
    transform(3, (31, 32, 33))
    assert sorted(found) == [(1, 13, 12, 11), (2, 23, 22, 21), (3, 33, 32, 31)]


@pytest.mark.gpu
def test_threads_on_a_gpu(library):
    """Two threads with streams of their own, which have no workspace in common."""

    def work(seed):
        with cyrt.stream(cyrt.Stream()):
            for i in range(20):
                check("fft", numbers((2, 10007 + i % 3), False, seed=seed + i))

    assert run_in_threads(*(partial(work, 100 * i) for i in range(2))) == []


@pytest.mark.gpu
def test_plans_end_without_leaks(library):
    x = cyrt.asarray(numbers((1 << 16,), False))
    cyrt.fft.fft(x, n=10007)
    cyrt.synchronize()
    template.forget()
    cyrt.synchronize()
    check("fft", numbers((10007,), False))
