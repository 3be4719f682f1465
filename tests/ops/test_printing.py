"""Arrays as text: NumPy's own, and no more of a large one comes to the host than is shown."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cyrt
from cyrt.dtypes import dtype

quick = settings(max_examples=50, deadline=None)
SHAPES = [
    (),
    (0,),
    (0, 3),
    (2, 0, 2),
    (1,),
    (7,),
    (3, 4),
    (2, 3, 2),
    (1001,),
    (8, 300),
    (400, 3),
    (2, 7, 100),
    (7, 7, 7, 7),
]


def numpys(host, name):
    """What NumPy writes of it, with our class and type."""
    text = repr(host).replace("array(", "Array(").rsplit(")", 1)[0]
    return text if f"dtype={name}" in text else f"{text}, dtype={name}"


def squeezed(text):
    return "".join(text.split())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["bool", "int64", "float16", "float32", "complex64"])
def test_as_numpy_prints(name, shape):
    host = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    host = np.asarray(host * 3 % 1000 / 7, dtype=name)
    x = cyrt.asarray(host)
    assert str(x) == str(host)
    # The type is written where NumPy leaves a default one out, which may break lines elsewhere.
    assert squeezed(repr(x)) == squeezed(numpys(host, name) + ")")
    if f"dtype={name}" in repr(host):
        assert repr(x) == repr(host).replace("array(", "Array(")


@quick
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple),
    st.integers(1, 3),
    st.integers(0, 20),
)
def test_numpys_options_hold(shape, edge, threshold):
    host = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 3
    x = cyrt.asarray(host.T).T
    with np.printoptions(edgeitems=edge, threshold=threshold, precision=3, linewidth=40):
        assert str(x) == str(host)
        assert repr(x) == repr(host).replace("array(", "Array(")


def test_only_what_is_shown_is_copied(monkeypatch):
    from cyrt.ops import printing

    copied = []
    monkeypatch.setattr(
        printing,
        "_corners",
        lambda x, *rest, real=printing._corners: (copied.append(found := real(x, *rest)), found)[1],
    )
    x = cyrt.zeros((100, 3, 200))
    str(x)
    assert copied[-1].shape == (7, 3, 7)
    copied.clear()
    str(cyrt.zeros((10, 100)))
    assert not copied


def test_bfloat16():
    x = cyrt.asarray([1.0, -0.5, np.inf, np.nan], dtype=cyrt.bfloat16)
    assert str(x) == "[ 1.  -0.5  inf  nan]"
    assert repr(x) == "Array([ 1. , -0.5,  inf,  nan], dtype=bfloat16)"
    assert str(x[0]) == "1.0"
    assert repr(x[0]) == "Array(1., dtype=bfloat16)"
    assert str(cyrt.zeros((0, 2), dtype=dtype("bfloat16"))) == "[]"


def test_format():
    assert f"{cyrt.asarray(1.5):.3f}" == "1.500"
    assert f"{cyrt.asarray([1, 2])}" == "[1 2]"
    assert f"{cyrt.asarray([1, 2]):>8}" == "   [1 2]"
    for spec in (".2f", "d", "8.3e", ".2", "x"):
        with pytest.raises(TypeError, match=r"an array of no dimensions, got shape \(2,\)"):
            format(cyrt.ones(2), spec)
    with pytest.raises(ValueError, match="format"):
        f"{cyrt.asarray(1.5):d}"


def test_html_of_a_matrix():
    x = cyrt.asarray([[1.5, 2.0], [3.0, float("nan")]])
    text = x._repr_html_()
    assert f"Array (2, 2), float32, device {x.device.index}" in text
    rows = re.findall(r"<tr>(.*?)</tr>", text)
    assert rows[0] == "<th></th><th>0</th><th>1</th>"
    assert rows[2] == "<th>1</th><td>3.0</td><td>nan</td>"


def test_html_of_other_shapes():
    assert re.findall("<td>(.*?)</td>", cyrt.arange(3)._repr_html_()) == ["0", "1", "2"]
    for x in (cyrt.asarray(2.5), cyrt.ones((2, 1, 2)), cyrt.zeros((0, 3))):
        assert f"<pre>{x}</pre>" in x._repr_html_()


@pytest.mark.parametrize("shape", [(1000, 1000), (7, 500), (500, 7), (2000,)], ids=str)
def test_html_of_the_corners_of_a_large_array(shape):
    x = cyrt.arange(math.prod(shape)).reshape(shape)
    text = x._repr_html_()
    host = x.numpy().reshape(shape if len(shape) == 2 else (1, -1))
    rows = [re.findall("<t[dh]>(.*?)</t[dh]>", each) for each in text.split("</tr>")[:-1]]
    columns = rows[0][1:]
    for name, *cells in rows[1:]:
        for column, cell in zip(columns, cells, strict=True):
            if "…" in (name, column):
                assert cell == "…"
            else:
                assert cell == str(host[int(name), int(column)])
    assert len(rows) <= 8
    assert len(text) < 4000
    assert len(columns) <= 7
