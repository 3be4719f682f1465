"""Fixtures of the tests of order: kernels, a gate, and the driver as another library uses it."""

from __future__ import annotations

import ctypes
from ctypes import c_void_p
from pathlib import Path

import pytest
from gates import Gate
from order_programs import SOURCE

import cyrt


@pytest.fixture(scope="module")
def module():
    return cyrt.Module(SOURCE)


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()
    cyrt.synchronize()


@pytest.fixture
def driver():
    """The driver itself, as another library uses it."""
    folder = Path(cyrt.__file__).parent
    library = ctypes.CDLL(
        str(folder / "emulator/libcyrt_emu.so") if cyrt.Device().emulated else "libcuda.so.1"
    )
    context = c_void_p()
    library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    library.cuCtxPushCurrent_v2(context)
    yield library
    library.cuCtxPopCurrent_v2(ctypes.byref(context))
