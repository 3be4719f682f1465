"""What tests of the emulated device's ABI share."""

from __future__ import annotations

from ctypes import c_void_p

import graph_abi
import pytest


@pytest.fixture(scope="session")
def session_driver(emulated):
    if not emulated:
        pytest.skip("shows the emulated device")
    driver = graph_abi.Driver()
    driver("cuCtxSetCurrent", None)
    yield driver
    driver.close()


@pytest.fixture
def driver(session_driver):
    """The driver's ABI, its own context current."""
    before = session_driver.make("cuCtxGetCurrent")
    session_driver("cuCtxSetCurrent", c_void_p(session_driver.context))
    yield session_driver
    session_driver("cuCtxSetCurrent", c_void_p(before))


@pytest.fixture
def stream(driver):
    return driver.stream()
