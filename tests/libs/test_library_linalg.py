"""Factorizations by the library, called between batches: the stand-in's on the emulated device,
cuSOLVER's on a GPU."""

from __future__ import annotations

import ctypes
import faulthandler
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest
from linalg_matrices import (
    TYPES,
    adjoint,
    error,
    hermitian,
    norm,
    normal,
    off_orthonormal,
    positive,
    wide,
    with_condition,
)
from standin_cusolver import Standin
from threads import run_in_threads

import cyrt
from cyrt import linalg
from cyrt.builtin.linalg import limit_shared_bytes
from cyrt.libs import cusolver
from cyrt.linalg import library_calls


@pytest.fixture(autouse=True)
def bounded():
    """A call that does not return ends the process after five minutes."""
    faulthandler.dump_traceback_later(300, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def built(emulated):
    if not emulated:
        pytest.skip("on a GPU the library is NVIDIA's")
    return Standin()


@pytest.fixture
def standin(built, monkeypatch):
    """The stand-in, which factors all matrices."""
    built.reset()
    library_calls.known_call.cache_clear()
    monkeypatch.setattr(cusolver, "find", lambda: (built, ""))
    library_calls.decide(0, True, every=True)
    yield built
    library_calls.decide(0)
    assert not built.errors, built.errors


@pytest.fixture
def library(emulated):
    """cuSOLVER, which factors all matrices."""
    if emulated or cusolver.find()[0] is None:
        pytest.skip("there is no cuSOLVER")
    library_calls.decide(0, True, every=True)
    yield
    library_calls.decide(0)


@pytest.fixture
def either(request, emulated):
    """The stand-in, or None for cuSOLVER."""
    return request.getfixturevalue("standin" if emulated else "library")


# -- values, on both devices -----------------------------------------------------------------------


def check_cholesky(rng, n, dtype, condition=100):
    x = np.stack([positive(rng, n, condition, dtype) for _ in range(2)])
    for upper in (False, True):
        found = wide(linalg.cholesky(cyrt.asarray(x), upper=upper).numpy())
        product = adjoint(found) @ found if upper else found @ adjoint(found)
        assert error(product, x, dtype) < 8 + n
        assert not (np.tril(found, -1) if upper else np.triu(found, 1)).any()


def check_solve(rng, n, dtype, condition=1e3):
    x = np.stack([with_condition(rng, n, n, c, dtype) for c in (10, condition)])
    array = cyrt.asarray(x)
    for b in (normal(rng, (2, n, 3), dtype), normal(rng, (2, n, 1), dtype)):
        found = linalg.solve(array, cyrt.asarray(b)).numpy()
        assert error(wide(x) @ wide(found), b, dtype, norm(x) * norm(found)) < 8 + n
    inverse = linalg.inv(array).numpy()
    identity = np.broadcast_to(np.eye(n), x.shape)
    assert error(wide(x) @ wide(inverse), identity, dtype, norm(x) * norm(inverse)) < 8 + n
    factors = linalg.lu_factor(array)
    found = linalg.lu_solve(factors, cyrt.asarray(b)).numpy()
    assert error(wide(x) @ wide(found), b, dtype, norm(x) * norm(found)) < 8 + n
    np.testing.assert_array_equal(array.numpy(), x, "the input is written")


def check_determinants(rng, n, dtype):
    x = np.stack([with_condition(rng, n, n, 10, dtype) for _ in range(2)]) * 2
    sign, logarithm = np.linalg.slogdet(wide(x))
    found = linalg.slogdet(cyrt.asarray(x))
    np.testing.assert_allclose(found.sign.numpy(), sign, atol=1e-3)
    np.testing.assert_allclose(found.logabsdet.numpy(), logarithm, rtol=1e-3)


def check_qr(rng, shape, dtype, condition=1e5):
    x = np.stack([normal(rng, shape, dtype), with_condition(rng, *shape, condition, dtype)])
    x[0, :, 2] = x[0, :, 1]
    for mode in ("reduced", "complete"):
        q, r = (each.numpy() for each in linalg.qr(cyrt.asarray(x), mode=mode))
        k = shape[0] if mode == "complete" else min(shape)
        assert q.shape == (2, shape[0], k)
        assert r.shape == (2, k, shape[1])
        assert error(wide(q) @ wide(r), x, dtype) < 8 + max(shape)
        assert off_orthonormal(q, dtype) < 8
        assert not np.tril(r, -1).any()
    only = linalg.qr(cyrt.asarray(x), mode="r").numpy()
    assert error(only, r[:, : min(shape)], dtype) < 8 + max(shape)


def check_hermitian(rng, n, dtype):
    x = hermitian(rng, (2, n, n), dtype)
    expected = np.linalg.eigvalsh(wide(x))
    for UPLO in "LU":
        stored = np.tril(x) if UPLO == "L" else np.triu(x)  # the other triangle is not read
        values, v = (each.numpy() for each in linalg.eigh(cyrt.asarray(stored), UPLO))
        v = wide(v)
        assert error(wide(x) @ v, v * wide(values)[:, None], dtype, norm(x)) < 8 + n
        assert off_orthonormal(v, dtype) < 8
        assert np.abs(values - expected).max() < (8 + n) * norm(x) * np.finfo(dtype).eps
    assert np.abs(linalg.eigvalsh(cyrt.asarray(x)).numpy() - expected).max() < (
        (8 + n) * norm(x) * np.finfo(dtype).eps
    )


def check_singular(x, dtype):
    m, n = x.shape[-2:]
    k = min(m, n)
    expected = np.linalg.svd(wide(x), compute_uv=False)
    for full in (True, False):
        u, s, v = (each.numpy() for each in linalg.svd(cyrt.asarray(x), full_matrices=full))
        assert u.shape[-2:] == (m, m if full else k)
        assert v.shape[-2:] == (n if full else k, n)
        assert s.dtype == np.zeros((), dtype).real.dtype
        product = (wide(u)[..., :k] * wide(s)[..., None, :]) @ wide(v)[..., :k, :]
        assert error(product, x, dtype) < 8 + max(m, n)
        assert off_orthonormal(u, dtype) < 8
        assert off_orthonormal(adjoint(v), dtype) < 8
        assert np.abs(s - expected).max() <= (8 + k) * norm(x) * np.finfo(dtype).eps
        assert (np.diff(s) <= 0).all()
    values = linalg.svdvals(cyrt.asarray(x)).numpy()
    assert np.abs(values - expected).max() <= (8 + k) * norm(x) * np.finfo(dtype).eps


def check_singulars(rng, n, dtype):
    condition = 1e6 if np.finfo(dtype).eps > 1e-10 else 1e13
    for shape in ((n, n), (n + 3, n), (n, n + 2)):
        check_singular(normal(rng, (2, *shape), dtype), dtype)
        check_singular(with_condition(rng, *shape, condition, dtype), dtype)
    deficient = normal(rng, (n, 2), dtype) @ normal(rng, (2, n), dtype)
    for x in (deficient, np.zeros((n, n), dtype), np.eye(n, dtype=dtype), deficient * 1e-30):
        check_singular(x, dtype)


def check_general(rng, n, dtype):
    x = normal(rng, (2, n, n), dtype)
    values, v = (each.numpy() for each in linalg.eig(cyrt.asarray(x)))
    v = wide(v)
    assert error(wide(x) @ v, v * wide(values)[:, None], dtype, norm(x)) < 8 * n
    np.testing.assert_allclose((np.abs(v) ** 2).sum(-2), 1, rtol=1e-4)
    only = linalg.eigvals(cyrt.asarray(x)).numpy()
    distance = np.abs(only[..., :, None] - values[..., None, :]).min(-1).max()
    assert distance < 100 * n * norm(x) * np.finfo(dtype).eps


# -- the emulated device ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_values(standin, rng, dtype):
    standin.workspace, standin.host = (4096, 64) if dtype == "float32" else (0, 0)
    for shape in ((6, 6), (7, 4), (4, 7)):
        check_qr(rng, shape, dtype)
    check_singulars(rng, 6, dtype)
    if dtype in ("float32", "complex128"):  # each kernel of other types is compiled here
        check_cholesky(rng, 6, dtype)
        check_solve(rng, 6, dtype)
        check_determinants(rng, 6, dtype)
        check_hermitian(rng, 6, dtype)
        check_general(rng, 6, dtype)
        assert set(standin.calls) >= {"Xpotrf", "Xgetrf", "Xgetrs", "Xgeev"}
    q = {"float32": "Sorgqr", "float64": "Dorgqr", "complex64": "Cungqr", "complex128": "Zungqr"}
    assert set(standin.calls) >= {"Xgeqrf", q[dtype]}
    assert ("Xgesvd" in standin.calls) == (dtype in ("float64", "complex128"))
    assert standin.parameters_made == 1


def test_shapes(either):
    for shape in ((0, 6, 6), (2, 0, 6, 6)):
        x = cyrt.ones(shape)
        assert linalg.cholesky(x).shape == shape
        assert linalg.eigh(x).eigenvalues.shape == shape[:-1]
        assert linalg.svd(x).S.shape == shape[:-1]
    assert linalg.solve(cyrt.eye(6), cyrt.ones((6, 0))).shape == (6, 0)
    for m, n in ((6, 0), (0, 6), (0, 100_000)):
        q, r = linalg.qr(cyrt.ones((m, n)))
        assert (q.shape, r.shape) == ((m, 0), (0, n))
    if either:
        assert "Xgetrs" not in either.calls
    x = cyrt.asarray(np.arange(2 * 3 * 36).reshape(2, 3, 6, 6) % 7 + 9 * np.eye(6))
    x = x + x.mT
    assert linalg.cholesky(x).shape == x.shape
    if either:
        assert either.calls.count("Xpotrf") == 6


def test_order_among_operations(either, rng):
    """What is recorded before a call is launched before it, and its input may be overwritten."""
    first, second = (positive(rng, 6, 10, "float64") for _ in range(2))
    a = cyrt.zeros((6, 6), dtype="float64")
    found = []
    for _ in range(3):
        for x in (first, second):
            a[:] = cyrt.asarray(x) * 4
            factor = linalg.cholesky(a)
            a[:] = 0
            found.append(factor @ factor.mT + a)
            del factor
    with cyrt.batch():
        a += cyrt.asarray(second)
        inverse = linalg.inv(a)
        a *= 0
        inverse *= 2
    for i, each in enumerate(found):
        np.testing.assert_allclose(each.numpy(), 4 * (second if i % 2 else first), rtol=1e-9)
    np.testing.assert_allclose(inverse.numpy(), 2 * np.linalg.inv(second), rtol=1e-9)
    if either:
        assert either.calls.count("Xpotrf") == 6


def test_order_among_streams(either, rng):
    x = positive(rng, 6, 10, "float64")
    one, two = cyrt.Stream(), cyrt.Stream()
    with cyrt.stream(one):
        a = cyrt.asarray(x) * 2
    with cyrt.stream(two):
        inverse = linalg.inv(a)
    with cyrt.stream(one):
        a[:] = 0
        result = inverse + a
    np.testing.assert_allclose(result.numpy(), np.linalg.inv(x) / 2, rtol=1e-9)
    if either:
        assert [either.streams[handle] for handle in either.threads] == [two.handle]


def test_failures_inside_a_batch(either, rng):
    x = np.stack([positive(rng, 6, 10, "float32") for _ in range(4)])
    x[1, 3, 3] = -1
    x[2, 0, 5] = x[2, 5, 0] = np.nan
    found, info = linalg.cholesky(cyrt.asarray(x), check=False)
    assert info.tolist()[:2] == [0, 4]
    assert (info.numpy() != 0).tolist() == [False, True, True, False]
    assert np.isnan(found.numpy()[[1, 2]]).all()
    assert np.isfinite(found.numpy()[[0, 3]]).all()
    linalg.cholesky(cyrt.asarray(x))
    with pytest.raises(
        linalg.LinAlgError, match=r"cholesky: matrix 1 is not .* \(called in .*test_library_linalg"
    ):
        cyrt.synchronize()
    cyrt.synchronize()  # it is raised once
    x[1] = 0
    b = cyrt.ones((6, 2))
    for name, call in (("inv", linalg.inv), ("solve", lambda a, **k: linalg.solve(a, b, **k))):
        found, info = call(cyrt.asarray(x), check=False)
        assert (info.numpy() != 0).tolist() == [False, True, False, False]
        assert np.isnan(found.numpy()[1]).all()
        assert np.isfinite(found.numpy()[[0, 3]]).all()
        call(cyrt.asarray(x))
        with pytest.raises(linalg.LinAlgError, match=f"{name}: matrix 1 is singular"):
            cyrt.synchronize()


@pytest.mark.parametrize(
    "function",
    [linalg.svd, linalg.svdvals, linalg.eigh, linalg.eigvalsh, linalg.eig, linalg.eigvals],
)
def test_values_that_are_not_finite(either, function):
    x = np.broadcast_to(np.eye(5, dtype=np.float32), (4, 5, 5)).copy()
    x[1, 2, 2], x[3, 4, 1] = np.nan, np.inf
    found, info = function(cyrt.asarray(x), check=False)
    assert (info.numpy() != 0).tolist() == [False, True, False, True]
    for each in found if isinstance(found, tuple) else [found]:
        assert np.isnan(each.numpy()[[1, 3]]).all()
        assert np.isfinite(each.numpy()[[0, 2]]).all()
    function(cyrt.asarray(x))
    with pytest.raises(linalg.LinAlgError, match="matrix 1 is not finite"):
        cyrt.synchronize()
    if either:
        assert either.calls


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("where", [np.s_[:], np.s_[0, 0], np.s_[3, 5], np.s_[5, 1]])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_factors_of_what_is_not_finite(either, value, where, dtype):
    """Libraries lose NaN: cuSOLVER takes it for 0, and says that the matrix is singular. It makes
    no matrix singular, as in NumPy, and the results of one matrix are NaN."""
    x = np.broadcast_to(np.eye(6, dtype=dtype), (2, 6, 6)).copy()
    x[1][where] = value
    a, b = cyrt.asarray(x), cyrt.ones((2, 6, 1), dtype=dtype)
    for check in (True, False):
        for function in (lambda check: linalg.solve(a, b, check=check), partial(linalg.inv, a)):
            found = function(check=check)
            found, info = (found, cyrt.zeros(2)) if check else found
            assert not info.numpy().any()
            assert np.isfinite(found.numpy()[0]).all()
            assert np.isnan(found.numpy()[1]).all()
    factors, pivots = linalg.lu_factor(a)
    assert np.isnan(factors.numpy()[1]).all()
    np.testing.assert_array_equal(factors.numpy()[0], np.eye(6))
    assert pivots.numpy().min() >= 0
    assert pivots.numpy().max() < 6
    assert np.isnan(linalg.det(a).numpy()).tolist() == [False, True]


def test_pivots_of_an_overflow_are_rows(either):
    """A library's pivots of NaN may be out of range, and NaN may appear while it factors."""
    x = np.full((6, 6), 1.7e308)
    x[::2, ::2] *= -1
    with np.errstate(all="ignore"):
        pivots = linalg.lu_factor(cyrt.asarray(x)).pivots.numpy()
    assert pivots.min() >= 0
    assert pivots.max() < 6
    if either:
        assert either.calls == ["Xgetrf"]


def test_a_status_that_is_no_refusal_is_an_error(standin):
    x = cyrt.asarray(4 * np.eye(6, dtype=np.float32))
    for name in ("Xpotrf_bufferSize", "Xpotrf"):
        standin.status = {name: 7}
        with pytest.raises(cyrt.CudaError, match="6 x 6 matrix of float32") as caught:
            linalg.cholesky(x)
        assert (caught.value.call, caught.value.code) == (f"cusolverDn{name}", 7)
    standin.status = {}
    np.testing.assert_allclose(linalg.cholesky(x).numpy(), 2 * np.eye(6))


def works(x):
    return np.allclose(linalg.cholesky(x).numpy(), 2 * np.eye(6))


@pytest.fixture
def x():
    return cyrt.asarray(4 * np.eye(6, dtype=np.float32))


@pytest.mark.parametrize("status", [2, 9])
def test_what_is_refused_is_computed_by_own_kernels(standin, x, status):
    for name in ("Xpotrf", "Xpotrf_bufferSize"):
        library_calls.known_call.cache_clear()
        standin.status = {name: status}
        assert works(x)
        standin.status = {}
        assert works(x)
        # A refusal is remembered, but there may be memory again.
        assert standin.calls == (["Xpotrf"] if status == 2 else [])
        standin.calls.clear()


def test_functions_and_memory_that_are_not_there(standin, x):
    standin.absent = {"Xpotrf"}
    assert works(x)
    assert cyrt.explain(linalg.cholesky, x).kernel.startswith("cyrt_")
    library_calls.known_call.cache_clear()
    standin.absent, standin.workspace = set(), 1 << 55
    assert works(x)
    assert standin.calls == []


def test_no_call_in_a_group_or_a_capture(standin, x):
    with cyrt.concurrent():
        found = linalg.cholesky(x)
    assert np.allclose(found.numpy(), 2 * np.eye(6))
    encoder = cyrt.current_encoder()
    with pytest.raises(RuntimeError, match="a capture is open on the stream"), encoder.capture():
        linalg.cholesky(x)
    assert standin.calls == []
    assert works(x)
    assert standin.calls == ["Xpotrf"]


def test_no_call_in_the_capture_of_another_library(standin, x):
    stream, graph = cyrt.Stream(), ctypes.c_void_p()
    raw = ctypes.c_void_p(stream.handle)
    with cyrt.stream(stream):
        with standin.driver:
            standin.driver("cuStreamBeginCapture_v2", raw, 1)
        with pytest.raises(RuntimeError, match="another library captures the stream"):
            linalg.cholesky(x).numpy()
        with standin.driver:
            standin.driver("cuStreamEndCapture", raw, ctypes.byref(graph))
        assert standin.calls == []
        assert works(x)
    assert standin.calls == ["Xpotrf"]


def test_explain_names_the_function(standin, x):
    found = cyrt.explain(linalg.cholesky, x)
    assert len(found.kernels) == 3
    assert found.kernels[1] == ("cusolverDnXpotrf", 1, (1, 1))
    assert found.kernels[-1][0] == "cyrt_lower_factor_float32"
    assert standin.calls == []


def test_threads(either, rng):
    """Streams have handles of their own, and one thread at a time uses a stream's."""
    x = np.stack([positive(rng, 6, 10, "float64") for _ in range(3)])
    expected, shared = np.linalg.inv(x), cyrt.Stream()
    ready = threading.Barrier(4)

    def work(number):
        with cyrt.stream(shared if number % 2 else cyrt.Stream()):
            ready.wait(60)
            for i in range(6):
                found = linalg.inv(cyrt.asarray(x) * (i + 1))
                np.testing.assert_allclose(found.numpy() * (i + 1), expected, rtol=1e-9)

    assert run_in_threads(*(partial(work, i) for i in range(4))) == []
    if either:
        assert (
            len({either.streams[handle] for handle in either.threads}) == len(either.threads) == 3
        )
        assert max(len(users) for users in either.threads.values()) == 2


def test_handles_end_with_the_context(standin, python_with_standin):
    done = python_with_standin(
        """
        for _ in range(2):
            x = cyrt.asarray(4 * np.eye(6, dtype=np.float32))
            assert np.allclose(cyrt.linalg.cholesky(x).numpy(), 2 * np.eye(6))
            del x
            cyrt.Device(0).reset()
            library.driver = Driver()
        print(len(library.streams), library.errors)
        # Only the handles still refer to the library.
        cusolver.find = lambda: (None, "")
        library_calls.known_call.cache_clear()
        known = weakref.ref(library)
        del library
        gc.collect()
        print(known())
        """
    )
    assert (done.returncode, done.stdout) == (0, "2 []\nNone\n"), done.stderr


def test_a_handle_without_its_stream_is_destroyed(standin, python_with_standin):
    done = python_with_standin(
        """
        library.status["SetStream"] = 7
        for _ in range(2):
            try:
                cyrt.linalg.cholesky(cyrt.asarray(4 * np.eye(6, dtype=np.float32)))
            except cyrt.CudaError as error:
                print(error.call, error.name)
        print(library.streams, library.errors)
        """
    )
    failure = "cusolverDnSetStream CUSOLVER_STATUS_INTERNAL_ERROR\n"
    assert (done.returncode, done.stdout) == (0, 2 * failure + "{} []\n"), done.stderr


def test_imaginary_parts_on_a_diagonal_are_not_read(either, rng):
    x = hermitian(rng, (6, 6), "complex64")
    other = x + np.diag(1j * rng.standard_normal(6)).astype("complex64")
    other[1, 1] = complex(x[1, 1].real, np.nan)
    for function in (linalg.eigvalsh, lambda x: linalg.eigh(x).eigenvalues):
        np.testing.assert_array_equal(function(cyrt.asarray(other)), function(cyrt.asarray(x)))


def test_columns_of_calls():
    """By them, the commands are counted that a call puts on a stream."""
    calls = {
        "cholesky": ((7,), 7),
        "lu": ((7, 5), 5),
        "lu_solve": ((7, 2, False), 7),
        "qr": ((7, 9), 7),
        "q": ((9, 7, 5), 7),
        "hermitian": ((7, True, True), 7),
        "singular": ((9, 7, True, True), 7),
        "general": ((7, True), 7),
    }
    for name, (options, columns) in calls.items():
        assert getattr(cusolver.Solver("float32"), name)(*options).columns == columns


@pytest.fixture
def python_with_standin(python):
    def run(program):
        from textwrap import dedent

        return python(
            "import sys; sys.path[:0] = ['tests/libs', 'tests/graph']\n"
            "import gc, weakref, numpy as np, cyrt\n"
            "from outside import Library as Driver\n"
            "from standin_cusolver import Standin\n"
            "from cyrt.libs import cusolver\n"
            "from cyrt.linalg import library_calls\n"
            "library = Standin()\n"
            "cusolver.find = lambda: (library, '')\n"
            "library_calls.decide(0, True, every=True)\n" + dedent(program)
        )

    return run


def test_memory_is_flat(either, rng):
    x = cyrt.asarray(positive(rng, 6 if either else 256, 10, "float32"))

    def use(times):
        for _ in range(times):
            linalg.cholesky(x), linalg.solve(x, x), linalg.inv(x), linalg.eigh(x), linalg.qr(x)
        cyrt.synchronize()
        stats = cyrt.memory_stats()
        return stats["in_use"], stats["reserved"]

    # A round may need more than those before it, if the host has run further ahead of the device.
    times = 3 if either else 30
    found = [use(times)]
    while len(found) < 2 or found[-1] != found[-2]:
        assert len(found) < 6, f"bytes in use, and reserved: {found}"
        found.append(use(times))
    assert found[-1][0] == found[0][0]


def test_gradients(either, rng):
    x = cyrt.asarray(positive(rng, 5, 10, "float64"))

    def logarithm(a):
        return 2 * cyrt.log(cyrt.linalg.diagonal(linalg.cholesky(a))).sum()

    gradient = cyrt.grad(logarithm)(x).numpy()
    np.testing.assert_allclose(gradient + gradient.T, 2 * np.linalg.inv(x.numpy()), rtol=1e-8)
    if either:
        assert either.calls


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "function"),
    [
        ("cholesky", (200, 200), "float32", None),
        ("cholesky", (200, 200), "float64", "Xpotrf"),
        ("cholesky", (2, 200, 200), "float64", None),
        ("cholesky", (4, 256, 256), "float32", "Xpotrf"),
        ("cholesky", (5, 1024, 1024), "float32", None),
        ("inv", (256, 256), "float32", "Xgetrf"),
        ("inv", (2, 256, 256), "float32", "Xgetrf"),
        ("inv", (4, 256, 256), "float32", None),
        ("det", (1000, 1000), "complex128", "Xgetrf"),
        ("qr", (180, 180), "float32", None),
        ("qr", (256, 256), "float32", "Xgeqrf"),
        ("qr", (100, 256, 256), "float64", None),
        ("eigh", (128, 128), "float32", None),
        ("eigh", (128, 128), "float64", "Xsyevd"),
        ("eigh", (150, 150), "float32", "Xsyevd"),
        ("eigh", (2, 150, 150), "float32", None),
        ("eigh", (7, 256, 256), "float32", "Xsyevd"),
        ("eigh", (100, 256, 256), "float32", None),
        ("svd", (128, 128), "float32", None),
        ("svd", (150, 150), "float32", "Xsyevd"),
        ("svd", (2, 500, 128), "float32", None),
        ("svd", (256, 256), "complex64", "Xsyevd"),
        ("svd", (1024, 512), "float64", "Xgeqrf"),  # own kernels compute the rest
        ("svd", (1024, 700), "float64", "Xgesvd"),
        ("eig", (150, 150), "float32", None),
        ("eig", (256, 256), "float32", "Xgeev"),
    ],
)
def test_the_faster_one_computes(standin, name, shape, dtype, function):
    library_calls.decide(0, True)
    before = limit_shared_bytes(227 << 10)  # an H100's
    try:
        found = cyrt.explain(getattr(linalg, name), cyrt.Example(shape, dtype))
    finally:
        limit_shared_bytes(before)
    called = [each[0] for each in found.kernels if each[0].startswith("cusolverDn")]
    assert called[:1] == ([f"cusolverDn{function}"] if function else [])


def test_absence(tmp_path, emulated):
    path = tmp_path / "libcusolver.so"
    path.write_text("no library")
    found, reason = cusolver.open_library(str(path))
    assert found is None
    assert "cuSOLVER cannot be opened" in reason
    if emulated:  # without a stand-in
        library_calls.decide(0, every=True)
        found = cyrt.explain(linalg.cholesky, cyrt.Example((6, 6)))
        library_calls.decide(0)
        assert all(each[0].startswith("cyrt_") for each in found.kernels)


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 7, 65, 130, 256])
def test_values_on_a_gpu(library, rng, n, dtype):
    single = np.finfo(dtype).eps > 1e-10
    check_cholesky(rng, n, dtype, 1e4 if single else 1e13)
    check_solve(rng, n, dtype, 1e6 if single else 1e13)
    check_determinants(rng, n, dtype)
    for shape in ((n, n), (n + 40, n), (n, n + 40)):
        if min(shape) > 2:
            check_qr(rng, shape, dtype, 1e6 if single else 1e13)
    check_hermitian(rng, n, dtype)
    check_singulars(rng, n, dtype)
    if n < 256:
        check_general(rng, n, dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_larger_matrices_on_a_gpu(library, rng, dtype):
    check_cholesky(rng, 1024, dtype)
    check_solve(rng, 1024, dtype)
    check_qr(rng, (1500, 1024), dtype)
    check_hermitian(rng, 1024, dtype)
    check_singular(normal(rng, (1024, 700), dtype), dtype)


@pytest.mark.gpu
def test_threads_on_a_gpu(library, rng):
    """Large matrices of one stream while another thread uses it, and beside another stream."""
    x = np.stack([positive(rng, 300, 10, "float64") for _ in range(2)])
    expected, eigenvalues = np.linalg.inv(x), np.linalg.eigvalsh(x)
    shared = cyrt.Stream()

    def work(number):
        with cyrt.stream(shared if number % 2 else cyrt.Stream()):
            for i in range(10):
                found = linalg.inv(cyrt.asarray(x) * (i + 1))
                values = linalg.eigh(cyrt.asarray(x)).eigenvalues
                np.testing.assert_allclose(found.numpy() * (i + 1), expected, atol=1e-9)
                np.testing.assert_allclose(values.numpy(), eigenvalues, atol=1e-9)

    assert run_in_threads(*(partial(work, i) for i in range(4))) == []


@pytest.mark.gpu
def test_interrupts_on_a_gpu(library, rng):
    """A signal that comes inside a call is handled after it, and the stream goes on."""
    x = positive(rng, 300, 10, "float64")
    array = cyrt.asarray(x)

    def interrupt(*_):
        raise KeyboardInterrupt

    def call():
        end = time.monotonic() + 20
        while time.monotonic() < end:
            linalg.eigh(array), linalg.inv(array)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for i in range(5):
            signal.setitimer(signal.ITIMER_REAL, 0.02 + 0.003 * i)
            with pytest.raises(KeyboardInterrupt):
                call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_allclose(linalg.inv(array).numpy(), np.linalg.inv(x), atol=1e-9)
    found = linalg.eigh(array).eigenvalues.numpy()
    np.testing.assert_allclose(found, np.linalg.eigvalsh(x), atol=1e-9)
