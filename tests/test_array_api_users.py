"""Other people's array API code, run on cyrt's arrays as it is.

array-api-compat; scikit-learn (1.9): MinMaxScaler, StandardScaler, r2_score; SciPy (1.17):
special.logsumexp, special.softmax.
"""

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


def test_scikit_learn(python):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    done = python(PROGRAM + """
    from sklearn import config_context
    from sklearn.metrics import r2_score
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    for scaler in MinMaxScaler, StandardScaler:
        wanted = scaler().fit(host)
        with config_context(array_api_dispatch=True):
            fitted = scaler().fit(x)
            found = fitted.transform(x)
            assert isinstance(found, cyrt.Array)
            same(found, wanted.transform(host))
            same(fitted.inverse_transform(found), host)
    with config_context(array_api_dispatch=True):
        same(r2_score(x[:, 0], x[:, 1]), r2_score(host[:, 0], host[:, 1]))
    print("done")
    """, SCIPY_ARRAY_API="1")
    assert done.stdout == "done\n", done.stderr


def test_scipy(python):
    pytest.importorskip("scipy", reason="SciPy is not installed")
    done = python(PROGRAM + """
    from scipy import special

    for axis in None, 0, 1:
        found = special.logsumexp(x, axis=axis)
        assert isinstance(found, cyrt.Array)
        same(found, special.logsumexp(host, axis=axis))
        found = special.softmax(x, axis=axis)
        assert isinstance(found, cyrt.Array)
        same(found, special.softmax(host, axis=axis))
    print("done")
    """, SCIPY_ARRAY_API="1")
    assert done.stdout == "done\n", done.stderr
