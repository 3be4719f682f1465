"""User objects by the driver's ABI: the destructor runs when the last reference is dropped."""

from __future__ import annotations

import ctypes
from ctypes import c_void_p

import pytest
from graph_abi import Graph, refused

pytestmark = pytest.mark.usefixtures("only_emulated")

INVALID_VALUE = 1
NO_SYNC = MOVE = 1


@pytest.fixture
def ended():
    """The values whose destructors have run, and a destructor."""
    values = []
    return values, ctypes.CFUNCTYPE(None, c_void_p)(values.append)


def create(driver, ended, value, count=1):
    found = c_void_p()
    driver("cuUserObjectCreate", ctypes.byref(found), c_void_p(value), ended[1], count, NO_SYNC)
    return found


def test_graph_and_its_copies_have_references(driver, ended):
    item = create(driver, ended, 7, 2)
    graph, copy = Graph(driver), c_void_p()
    graph.memset(driver.memory([0] * 32), 1)
    driver("cuGraphRetainUserObject", graph.handle, item, 1, MOVE)
    executable = graph.instantiate()
    driver("cuGraphClone", ctypes.byref(copy), graph.handle)
    driver("cuUserObjectRetain", item, 1)
    driver("cuUserObjectRelease", item, 2)
    with refused(INVALID_VALUE):  # the program has none left
        driver("cuUserObjectRelease", item, 1)
    driver("cuGraphDestroy", graph.handle)
    driver("cuGraphDestroy", copy)
    assert ended[0] == []
    driver("cuGraphExecDestroy", executable)
    assert ended[0] == [7]


def test_references_that_a_graph_gives_back(driver, ended):
    item = create(driver, ended, 8)
    graph = Graph(driver)
    driver("cuGraphRetainUserObject", graph.handle, item, 3, 0)
    with refused(INVALID_VALUE):
        driver("cuGraphReleaseUserObject", graph.handle, item, 4)
    driver("cuGraphReleaseUserObject", graph.handle, item, 3)
    with refused(INVALID_VALUE):
        driver("cuGraphReleaseUserObject", graph.handle, item, 1)
    assert ended[0] == []
    driver("cuUserObjectRelease", item, 1)
    assert ended[0] == [8]


def test_invalid_user_objects(driver, ended):
    found = c_void_p()
    for destroy, count, flags in ((None, 1, 1), (ended[1], 0, 1), (ended[1], 1, 0)):
        with refused(INVALID_VALUE):
            driver("cuUserObjectCreate", ctypes.byref(found), None, destroy, count, flags)
    item = create(driver, ended, 9)
    with refused(INVALID_VALUE):
        driver("cuGraphRetainUserObject", Graph(driver).handle, item, 2, MOVE)
    with refused(INVALID_VALUE):
        driver("cuGraphRetainUserObject", Graph(driver).handle, item, 1, 2)
    driver("cuUserObjectRelease", item, 1)
