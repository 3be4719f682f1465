"""What checking mode finds in graphs, and kernels that start early."""

from __future__ import annotations

import graph_abi
import pytest

pytestmark = pytest.mark.usefixtures("only_emulated")

LAUNCH_FAILED = 719

CHECKED = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from ctypes import c_void_p
from graph_abi import *

driver = Driver()
stream, graph = driver.stream(), Graph(driver)
a, b = driver.memory(np.arange(32)), driver.memory(np.arange(32))
w = driver.memory(np.full(32, 2))
{body}
exec_ = graph.instantiate()
codes = []
for _ in range(2):
    codes.append(driver.call("cuGraphLaunch", exec_, stream) or
                 driver.call("cuStreamSynchronize", stream))
print(codes[0], codes[1], driver.fault())
if codes == [0, 0]:
    print(driver.read(b).tolist())
"""


@pytest.fixture
def checked(python):
    def check(body, **environment):
        folder = str(graph_abi.Path(graph_abi.__file__).parent)
        done = python(CHECKED.format(folder=folder, body=body), **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return check


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "graph.kernel('add', a, b, 1); graph.kernel('scale', b, 2)",
            ["kernel add", "kernel scale"],
        ),
        ("graph.kernel('add', a, b, 1); graph.memset(b, 2)", ["kernel add", "a fill"]),
        ("graph.copy(a, b); graph.memset(a + 4, 2, width=1)", ["a copy", "a fill"]),
        ("graph.kernel('count', a); graph.kernel('scale', a, 1)", ["kernel count", "kernel scale"]),
    ],
)
def test_unordered_nodes_are_reported(checked, body, words):
    text = checked(body, CYRT_CHECK="1")
    assert text.startswith(f"{LAUNCH_FAILED} {LAUNCH_FAILED}")
    assert "no path of edges" in text
    assert "128-byte allocation" in text
    assert all(word in text for word in words)


@pytest.mark.parametrize(
    "body",
    [
        "graph.kernel('add', a, b, 1); graph.copy(w, b)",  # both only read b
        "graph.kernel('count', a); graph.kernel('count', a)",  # atomics
        "graph.kernel('scale', b, 2, after=[graph.kernel('add', a, b, 1)])",
        "graph.memset(a, 2, width=1); graph.memset(a + 4, 2, width=1)",
    ],
)
def test_what_may_be_unordered_is_not(checked, body):
    assert checked(body, CYRT_CHECK="1").startswith("0 0 \n")


EARLY = """
up = graph.kernel("triggering", a, 7)
down = graph.kernel("{kernel}", b, a{more})
graph.edge(up, down, PROGRAMMATIC)
"""


def test_an_access_before_the_wait_is_reported(checked):
    text = checked(EARLY.format(kernel="early", more=""), CYRT_CHECK="1")
    assert text.startswith(f"{LAUNCH_FAILED} ")
    assert all(
        word in text
        for word in ("kernel early", "thread", "before griddepcontrol.wait", "kernel triggering")
    )


@pytest.mark.usefixtures("unchecked")
def test_dependents_start_early(checked):
    wrong = checked(EARLY.format(kernel="early", more="") + "graph.memset(a, 1, after=[down])")
    assert str([1] * 32) in wrong  # what the launch that started early read
    right = checked(EARLY.format(kernel="late", more=", w"), CYRT_CHECK="1")
    assert str([14] * 32) in right
    assert str([14] * 32) in checked(EARLY.format(kernel="late", more=", w"))


CHAIN = """
up = graph.kernel("triggering", a, 7)
for kernel in {between!r}:
    step = graph.kernel(kernel, w)
    graph.edge(up, step, PROGRAMMATIC)
    up = step
down = graph.kernel("early", b, a)
graph.edge(up, down, PROGRAMMATIC)
"""


@pytest.mark.parametrize("between", [["relay"], ["relay", "relay"], ["relay"] * 6])
def test_an_access_before_the_wait_is_reported_through_kernels(checked, between):
    """Those between let their dependents start before they wait."""
    text = checked(CHAIN.format(between=between), CYRT_CHECK="1")
    assert text.startswith(f"{LAUNCH_FAILED} ")
    assert "before griddepcontrol.wait: kernel triggering" in text


@pytest.mark.parametrize("between", [["orderly"], ["relay", "orderly"], ["orderly", "relay"]])
def test_what_a_kernel_between_has_waited_for_is_not_reported(checked, between):
    text = checked(CHAIN.format(between=between), CYRT_CHECK="1")
    assert text.startswith("0 0 \n")
    assert str([7] * 32) in text


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("between", "stale"),
    [
        (["relay", "relay"], True),
        (["relay"] * 6, True),
        (["orderly", "relay"], False),
        (["relay", "orderly"], False),
    ],
)
def test_dependents_start_early_through_kernels(checked, between, stale):
    again = "graph.memset(a, 1, after=[down])"  # so that each launch has something to miss
    text = checked(CHAIN.format(between=between) + again)
    assert str([1 if stale else 7] * 32) in text
