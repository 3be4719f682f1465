"""Other people's array API code, run on cyrt's arrays as it is.

array-api-compat; array-api-extra (0.11); scikit-learn (1.9): scalers, features, GaussianNB,
cross_val_predict, metrics; SciPy (1.17): special, stats, integrate, optimize.
"""

import numpy as np
import pytest

import cyrt

PROGRAM = """
    import numpy as np
    import cyrt

    host = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    x = cyrt.asarray(host)

    def same(found, wanted, tolerance=1e-5):
        if isinstance(found, cyrt.Array):
            found = found.numpy()
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
"""


def test_the_namespace_is_found():
    compat = pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    x = cyrt.zeros(3)
    assert compat.array_namespace(x, cyrt.ones(2)) is cyrt
    assert compat.is_array_api_obj(x)
    assert compat.device(x) == cyrt.Device()
    assert compat.size(x) == 3


def test_array_api_extra():
    xpx = pytest.importorskip("array_api_extra", reason="array-api-extra is not installed")
    host = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    whole = np.array([3, 1, 3, 0])

    def calls(xp):
        x, i = xp.asarray(host + 0), xp.asarray(whole)
        yield xpx.at(x)[1:3, 0].add(2.0, copy=True)
        yield xpx.at(x, x > 0).set(0.0, copy=True)
        yield xpx.apply_where(x > 0, (x, x), lambda a, b: xp.log(a) * b, lambda a, b: a - b)
        yield xpx.cov(x)
        yield xpx.create_diagonal(x, offset=1)
        yield xpx.isclose(x, x + 1e-9)
        yield xpx.kron(x, x[:2])
        yield xpx.one_hot(i, 4, dtype=xp.float32)
        yield xpx.pad(x, ((1, 0), (0, 2)), constant_values=3)
        yield xpx.nan_to_num(xp.where(x > 0, xp.nan, x), fill_value=2.0)
        yield xpx.setdiff1d(xp.arange(6), i)
        yield xpx.sinc(x)

    for found, wanted in zip(calls(cyrt), calls(np), strict=True):
        assert isinstance(found, cyrt.Array)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_scikit_learn(python):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    done = python(
        PROGRAM
        + """
    from sklearn import config_context, metrics
    from sklearn.metrics import r2_score
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB
    from sklearn.preprocessing import (
        MaxAbsScaler, MinMaxScaler, Normalizer, PolynomialFeatures, StandardScaler)

    for scaler in MinMaxScaler, StandardScaler, MaxAbsScaler:
        wanted = scaler().fit(host)
        with config_context(array_api_dispatch=True):
            fitted = scaler().fit(x)
            found = fitted.transform(x)
            assert isinstance(found, cyrt.Array)
            same(found, wanted.transform(host))
            same(fitted.inverse_transform(found), host)
    with config_context(array_api_dispatch=True):
        same(r2_score(x[:, 0], x[:, 1]), r2_score(host[:, 0], host[:, 1]))

    classes = (host[:, 0] > 0.3).astype(np.int64)
    y = cyrt.asarray(classes)

    def results(x, y):
        yield Normalizer().fit_transform(x)
        yield PolynomialFeatures(2).fit_transform(x)
        yield GaussianNB().fit(x, y).predict_proba(x)
        guessed = cross_val_predict(GaussianNB(), x, y, cv=3)
        yield guessed
        yield metrics.confusion_matrix(y, guessed)
        yield metrics.f1_score(y, guessed, average="macro")
        first, *rest = metrics.roc_curve(y, x[:, 0])
        yield first
        yield metrics.pairwise.rbf_kernel(x)

    wanted = list(results(host, classes))
    with config_context(array_api_dispatch=True):
        for found, each in zip(results(x, y), wanted, strict=True):
            assert isinstance(found, cyrt.Array) == isinstance(each, np.ndarray)
            same(found, each, 1e-4)
    print("done")
    """,
        SCIPY_ARRAY_API="1",
    )
    assert done.stdout == "done\n", done.stderr


def test_scipy(python):
    pytest.importorskip("scipy", reason="SciPy is not installed")
    done = python(
        PROGRAM
        + """
    from scipy import integrate, special, stats
    from scipy.optimize import elementwise

    for axis in None, 0, 1:
        found = special.logsumexp(x, axis=axis)
        assert isinstance(found, cyrt.Array)
        same(found, special.logsumexp(host, axis=axis))
        found = special.softmax(x, axis=axis)
        assert isinstance(found, cyrt.Array)
        same(found, special.softmax(host, axis=axis))

    def results(xp, x):
        yield integrate.cumulative_trapezoid(x, axis=0)
        yield special.rel_entr(abs(x), x * x)
        yield stats.kurtosis(x, axis=1)
        yield stats.rankdata(x, axis=0)
        yield stats.ttest_ind(x[:25, :], x[25:, :]).pvalue
        roots = xp.asarray([1.0, 2.0, 3.0], dtype=xp.float64)
        yield elementwise.find_root(lambda v, c: v**3 - c, (0 * roots, 5 + roots), args=(roots,)).x

    for found, wanted in zip(results(cyrt, x), results(np, host), strict=True):
        assert isinstance(found, cyrt.Array)
        same(found, wanted, 1e-4)
    print("done")
    """,
        SCIPY_ARRAY_API="1",
    )
    assert done.stdout == "done\n", done.stderr
