"""Matrices without a result: NaN, and an error of whatever waits next, or `info`."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import cyrt
from cyrt import linalg


def batch(*failing, count=5):
    """Matrices, some of which are neither positive definite nor regular."""
    x = np.broadcast_to(4 * np.eye(3), (count, 3, 3)).copy()
    x[list(failing)] = 0
    return cyrt.asarray(x)


def inverse(x, **keywords):
    return linalg.inv(x, **keywords)


def solution(x, **keywords):
    return linalg.solve(x, cyrt.ones(3, dtype="float64"), **keywords)


def triangular(x, **keywords):
    return linalg.solve_triangular(x, cyrt.ones(3, dtype="float64"), **keywords)


FUNCTIONS = [linalg.cholesky, inverse, solution, triangular]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_failed_matrix_is_nan_and_raises_once(function):
    found = function(batch(1, 3))
    with pytest.raises(linalg.LinAlgError, match=r"matrix 1 is .* \(called in .*test_failures.py:"):
        found.numpy()
    values = found.numpy()
    assert np.isnan(values[[1, 3]]).all()
    assert np.isfinite(values[[0, 2, 4]]).all()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_info(function):
    found, info = function(batch(1, 3), check=False)
    assert info.dtype == "int32"
    assert info.tolist() == [0, 1, 0, 1, 0]
    assert np.isnan(found.numpy()[[1, 3]]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    "function",
    [linalg.svd, linalg.svdvals, linalg.eigh, linalg.eigvalsh, linalg.eig, linalg.eigvals],
)
def test_values_that_are_not_finite(function, value):
    x = np.broadcast_to(np.eye(4), (3, 4, 4)).copy()
    x[1, 2, 2] = value
    found, info = function(cyrt.asarray(x), check=False)
    assert (info.numpy() != 0).tolist() == [False, True, False]
    for each in found if isinstance(found, tuple) else [found]:
        assert np.isnan(each.numpy()[1]).all()
        assert np.isfinite(each.numpy()[[0, 2]]).all()
    function(cyrt.asarray(x))
    with pytest.raises(linalg.LinAlgError, match="matrix 1 is not finite"):
        cyrt.synchronize()


def test_the_order_of_the_leading_minor():
    x = np.diag([1.0, 2.0, -1.0, 5.0])
    assert linalg.cholesky(cyrt.asarray(x), check=False)[1].item() == 3


@pytest.mark.parametrize(
    "wait", [cyrt.synchronize, lambda: cyrt.ones(3).tolist(), lambda: bool(cyrt.ones(1))]
)
def test_whatever_waits_raises(wait):
    linalg.cholesky(batch(0))
    with pytest.raises(linalg.LinAlgError, match="cholesky: matrix 0 is not positive definite"):
        wait()
    wait()


def test_the_error_counts_the_failures_behind_the_first():
    for _ in range(2):
        linalg.inv(cyrt.zeros((3, 2, 2)))
        linalg.cholesky(-cyrt.eye(2))
        with pytest.raises(linalg.LinAlgError, match=r"inv: matrix 0 is .*; 3 more failed$"):
            cyrt.synchronize()
    linalg.inv(cyrt.zeros((2, 2)))
    with pytest.raises(linalg.LinAlgError, match=r"inv: matrix 0 is [^;]*$"):
        cyrt.synchronize()


@pytest.mark.parametrize("commit", ["", "cyrt.commit()"])
def test_failures_that_no_call_has_raised_are_printed_at_exit(python, commit):
    done = python(f"""
        import cyrt
        cyrt.linalg.inv(cyrt.zeros((2, 2)))
        {commit}
        with cyrt.Stream():
            cyrt.linalg.cholesky(-cyrt.eye(2))
        """)
    assert done.returncode == 1
    lines = sorted(done.stderr.splitlines())
    begin = "cyrt: work that nobody waited for failed: "
    assert [each.partition(" (")[0] for each in lines] == [
        begin + "cholesky: matrix 0 is not positive definite",
        begin + "inv: matrix 0 is singular",
    ]


def test_a_stream_raises_its_own_failures():
    stream = cyrt.Stream()
    with stream:
        found = linalg.inv(batch(2))
    cyrt.ones(3).numpy()
    with pytest.raises(linalg.LinAlgError, match="inv: matrix 2 is singular"):
        stream.synchronize()
    with stream:
        again = linalg.inv(batch(2))
    with pytest.raises(linalg.LinAlgError, match="inv: matrix 2"):
        again.numpy()  # on another stream
    assert np.isnan(found.numpy()[2]).all()


def test_threads():
    errors = {}

    def run(count):
        with cyrt.Stream():
            try:
                linalg.inv(batch(count, count=count + 1)).numpy()
            except linalg.LinAlgError as error:
                errors[count] = str(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(errors) == [0, 1, 2, 3]
    assert all(f"matrix {i} is singular" in text for i, text in errors.items())


def test_a_repeated_failure_names_each_line():
    found = []
    for _ in range(3):
        linalg.inv(batch(0))
        with pytest.raises(linalg.LinAlgError) as caught:
            cyrt.synchronize()
        found.append(str(caught.value))
    assert len(set(found)) == 1
    linalg.inv(batch(0))
    with pytest.raises(linalg.LinAlgError) as caught:
        cyrt.synchronize()
    assert str(caught.value) not in found


def test_calls_add_no_references_to_the_code_that_calls():
    def count():
        for _ in range(20):
            linalg.inv(batch())
        return sys.getrefcount(count.__code__)

    count()  # The interpreter specialises its instructions, which are sites of their own.
    assert count() == count()


def test_pivots_of_another_matrix():
    lu, pivots = linalg.lu_factor(batch())
    linalg.lu_solve((lu, pivots + 7), cyrt.ones(3))
    with pytest.raises(linalg.LinAlgError, match="lu_solve: matrix 0 has pivots"):
        cyrt.synchronize()


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_info_tells_pivots_of_another_matrix(trans):
    pivots = cyrt.asarray([[0, 1, 2], [7, 1, 2], [0, 0, 2]], dtype="int32")
    lu = cyrt.stack([cyrt.eye(3), cyrt.eye(3), cyrt.zeros((3, 3))])
    lu = cyrt.concat([lu, lu[:1]])
    pivots = cyrt.concat([pivots, pivots[2:]])
    found, info = linalg.lu_solve((lu, pivots), cyrt.ones((4, 3, 1)), trans, check=False)
    cyrt.synchronize()
    assert info.tolist() == [0, 1, 1, 1]
    assert np.isnan(found.numpy()).all(axis=(1, 2)).tolist() == [False, True, True, True]


# Functions that call others: calls with a matrix, and a number for all elements of one that fails.
COMPOSED = {
    "cond": (linalg.cond, np.nan),
    "expm": (linalg.expm, None),  # NaN without an error
    "lstsq": (lambda x: linalg.lstsq(x, x), np.nan),
    "matrix_norm": (lambda x: linalg.matrix_norm(x, ord=2), np.nan),
    "matrix_power": (lambda x: linalg.matrix_power(x, -1), 1.0),
    "matrix_rank": (linalg.matrix_rank, np.nan),
    "norm": (lambda x: linalg.norm(x, "nuc"), np.nan),
    "pinv": (linalg.pinv, np.nan),
    "polyfit": (lambda x: linalg.polyfit(x[:, 0], x[:, 1], 1), np.nan),
    "roots": (lambda x: linalg.roots(x.ravel()), np.nan),
    "tensorinv": (lambda x: linalg.tensorinv(x, 1), 1.0),
    "tensorsolve": (lambda x: linalg.tensorsolve(x, x[0]), 1.0),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_errors_name_the_function_that_was_called(name):
    function, number = COMPOSED[name]
    with pytest.raises(TypeError, match=f"^{name}: float16 is not supported"):
        function(cyrt.ones((2, 2), dtype="float16"))
    if number is not None:
        function(cyrt.full((2, 2), number))
        with pytest.raises(linalg.LinAlgError, match=f"^{name}: matrix 0 is "):
            cyrt.synchronize()


@pytest.mark.parametrize("order", [None, 1, -1, "fro", "nuc", cyrt.inf])
def test_the_condition_of_a_singular_matrix(order):
    x = cyrt.asarray([[[1.0, 0.0], [0.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]])
    expected = {None: 1, 1: 1, -1: 1, "fro": 2, "nuc": 4, cyrt.inf: 1}[order]
    np.testing.assert_allclose(linalg.cond(x, order).numpy(), [np.inf, expected], rtol=1e-6)


def test_refusals():
    square = cyrt.ones((2, 2))
    with pytest.raises(TypeError, match="cholesky: x: expected an Array, got list"):
        linalg.cholesky([[1.0]])
    with pytest.raises(TypeError, match="inv: float16 is not supported"):
        linalg.inv(cyrt.ones((2, 2), dtype="float16"))
    with pytest.raises(TypeError, match="svd: bfloat16 is not supported"):
        linalg.svd(cyrt.ones((2, 2), dtype="bfloat16"))
    with pytest.raises(ValueError, match=r"det: x: expected square matrices, got shape \(2, 3\)"):
        linalg.det(cyrt.ones((2, 3)))
    with pytest.raises(ValueError, match=r"qr: x: expected matrices, .* got shape \(3,\)"):
        linalg.qr(cyrt.ones(3))
    with pytest.raises(ValueError, match="qr: mode: expected 'reduced'"):
        linalg.qr(square, mode="full")
    with pytest.raises(ValueError, match="eigh: UPLO: expected 'L' or 'U', got 'X'"):
        linalg.eigh(square, "X")
    with pytest.raises(ValueError, match="solve: .* the sizes 2 and 3 must be equal"):
        linalg.solve(square, cyrt.ones(3))
    with pytest.raises(ValueError, match="solve_triangular: trans"):
        linalg.solve_triangular(square, square, trans="X")
    with pytest.raises(TypeError, match="cholesky: upper"):
        linalg.cholesky(square, upper="yes")
    with pytest.raises(ValueError, match="lu_solve: expected int32 pivots"):
        linalg.lu_solve((square, cyrt.ones(2)), square)
    for pair in (None, square, (square,) * 3):
        with pytest.raises(TypeError, match="lu_solve: lu_and_pivots: expected the two Arrays"):
            linalg.lu_solve(pair, square)
    for function, x in (
        (linalg.lu_solve, linalg.lu_factor(square)),
        (linalg.solve_triangular, square),
    ):
        with pytest.raises(ValueError, match=r"trans: expected 0, 1.* got an Array of float32"):
            function(x, square, trans=square)
    with pytest.raises(ValueError, match="eigh: UPLO: .* got an Array of float32"):
        linalg.eigh(square, square)


@pytest.mark.parametrize("name", ["solve", "solve_triangular", "lstsq"])
def test_right_hand_sides_that_are_refused(name):
    function = getattr(linalg, name)
    with pytest.raises(
        ValueError,
        match=rf"{name}: matrices of shape \(2, 3, 3\) and right-hand "
        r"sides of shape \(4, 3, 1\): their leading dimensions do not broadcast",
    ):
        function(cyrt.ones((2, 3, 3)), cyrt.ones((4, 3, 1)))
    with pytest.raises(TypeError, match=f"{name}: float16 is not supported"):
        function(cyrt.eye(3), cyrt.ones(3, dtype="float16"))


def test_sizes_that_kernels_cannot_count():
    long = cyrt.broadcast_to(cyrt.ones(()), (1, 1 << 31))
    for call in (
        lambda: linalg.qr(long),
        lambda: linalg.svdvals(long.mT),
        lambda: linalg.solve(cyrt.ones((1, 1)), long),
        lambda: linalg.solve_triangular(cyrt.ones((1, 1)), long),
        lambda: linalg.lu_solve(linalg.lu_factor(cyrt.ones((1, 1))), long),
    ):
        with pytest.raises(ValueError, match=r"at most 2\*\*31 - 1 rows and columns, got shape"):
            call()


@pytest.mark.parametrize("tolerance", ["a", [0.1], 1j, cyrt.asarray(1j)])
def test_tolerances_are_real_numbers(tolerance):
    x, b = cyrt.eye(3), cyrt.ones(3)
    for name, call in {
        "matrix_rank: rtol": lambda: linalg.matrix_rank(x, rtol=tolerance),
        "pinv: rtol": lambda: linalg.pinv(x, rtol=tolerance),
        "lstsq: rcond": lambda: linalg.lstsq(x, b, tolerance),
        "polyfit: rcond": lambda: linalg.polyfit(b, b, 1, tolerance),
    }.items():
        with pytest.raises(TypeError, match=f"{name}: expected a (number|real type)"):
            call()


def test_integers_become_float32():
    assert linalg.inv(cyrt.asarray([[2, 0], [0, 4]])).tolist() == [[0.5, 0], [0, 0.25]]
    assert linalg.det(cyrt.asarray([[2, 0], [0, 4]])).dtype == "float32"


def test_explain_names_the_kernels():
    found = cyrt.explain(linalg.cholesky, cyrt.Example((1000, 16, 16)))
    assert (found.kernel, found.grid, found.launches) == ("cyrt_cholesky_float32_small", 1000, 1)
    assert cyrt.explain(linalg.cholesky, cyrt.Example((40, 40))).kernel == "cyrt_cholesky_float32"
    found = cyrt.explain(linalg.svdvals, cyrt.Example((4, 4)))
    assert (found.kernel, found.launches) == ("cyrt_jacobi_float32", 1)


def test_many_lines_are_told_apart():
    inverses = []
    for number in range(150):
        space = {"inv": linalg.inv}
        exec(compile("def f(x):\n    return inv(x)", f"program {number}", "exec"), space)
        inverses.append(space["f"])
    for _ in range(2):
        for number, each in enumerate(inverses):
            each(batch(0))
            with pytest.raises(linalg.LinAlgError, match=rf"called in program {number}:2\)"):
                cyrt.synchronize()


@pytest.mark.usefixtures("batched")
def test_a_replayed_call_from_another_line(pooled):
    good, x = batch(), batch()

    def usual():
        linalg.cholesky(x)

    def another():
        linalg.cholesky(x)

    with cyrt.Stream():
        for _ in range(8):
            linalg.cholesky(good)
            usual()
            cyrt.commit()
        x[...] = 0
        cyrt.commit()
        before = cyrt.current_encoder().stats()["replayed"]
        for each in (usual, another):
            linalg.cholesky(good)
            each()
            line = each.__code__.co_firstlineno + 1
            with pytest.raises(linalg.LinAlgError, match=rf"test_failures.py:{line}\)"):
                cyrt.synchronize()
        assert cyrt.current_encoder().stats()["replayed"] == before + 4
