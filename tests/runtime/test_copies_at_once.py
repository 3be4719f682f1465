"""Copies of page-locked memory that return at once: ``blocking=False``."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest
from gates import Gate

import cyrt

N = 1 << 18  # bytes: more than the driver copies into its command buffer


def other_librarys(pinned):
    """Memory that only the driver knows to be page-locked, and not cyrt."""
    address = np.frombuffer(pinned, np.uint8).ctypes.data
    return np.frombuffer((ctypes.c_uint8 * pinned.nbytes).from_address(address), np.uint8)


@pytest.fixture
def gate(unchecked):
    """It opens at last, so that a copy that waits makes a test fail and not hang."""
    made = Gate()
    timer = made.open_in(30)
    yield made
    made.open()
    timer.cancel()


KINDS = {
    "PinnedBuffer": lambda pinned: pinned,
    "array": lambda pinned: np.frombuffer(pinned, np.uint8),
    "memoryview": memoryview,
    "view of an array": lambda pinned: np.frombuffer(pinned, np.uint32).reshape(-1, 4),
    "other library's": other_librarys,
}


@pytest.mark.parametrize("kind", KINDS)
def test_they_return_before_the_work_they_wait_for(kind, gate):
    """A kernel waits for the host, and both copies come after it."""
    into, outof = cyrt.PinnedBuffer(N), cyrt.PinnedBuffer(N)
    seen = np.frombuffer(outof, np.uint8)
    np.frombuffer(into, np.uint8)[:] = np.arange(N) % 251
    seen[:] = 7
    device = cyrt.Buffer(N)
    gate.wait()
    device.copy_from(KINDS[kind](into), blocking=False)
    device.copy_to(KINDS[kind](outof), blocking=False)
    assert (seen == 7).all()
    gate.open()
    cyrt.synchronize()
    assert np.array_equal(seen, np.arange(N) % 251)


def test_operations_recorded_before_and_after_are_in_order(gate):
    pinned, result = cyrt.PinnedBuffer(4 * 1000), cyrt.PinnedBuffer(4 * 1000)
    np.frombuffer(pinned, np.float32)[:] = 3
    x = cyrt.zeros(1000)
    (x + (x + 1) * 1).numpy()  # loads the kernels: a driver may not do so while another one waits
    gate.wait()
    x += 1
    y = x * 1
    x.copy_from(np.frombuffer(pinned, np.float32), blocking=False)
    x += y
    with cyrt.batch() as encoder:
        encoder.add_memcpy(result, x, blocking=False)
    gate.open()
    cyrt.synchronize()
    assert (np.frombuffer(result, np.float32) == 4).all()


def test_a_view_of_pinned_memory_is_ordered_as_that_memory(gate):
    """A kernel of another stream writes what the copy of a NumPy view reads."""
    pinned = cyrt.PinnedBuffer(4000)
    view = np.frombuffer(pinned, np.int32)
    view[:] = 0
    device, side = cyrt.Buffer(4000), cyrt.Stream()
    with side:
        gate.write(pinned, 5, 1000)
        cyrt.commit()
    device.copy_from(view, blocking=False)
    gate.open()
    found = np.empty(1000, np.int32)
    device.copy_to(found)
    assert (found == 5).all()


def test_host_memory_lives_until_the_copy_has_ended(gate):
    class Host(np.ndarray):
        pass

    pinned, device = cyrt.PinnedBuffer(N), cyrt.Buffer(N)
    view = other_librarys(pinned).view(Host)
    dropped = weakref.ref(view)
    gate.wait()
    device.copy_from(view, blocking=False)
    cyrt.commit()
    del view
    gc.collect()
    assert dropped() is not None
    gate.open()
    cyrt.synchronize()
    cyrt.zeros(1)
    cyrt.synchronize()
    gc.collect()
    assert dropped() is None


def test_both_ends_may_be_dropped(gate):
    """Memory that is reused meanwhile is reused in order."""
    pinned, device, target = cyrt.PinnedBuffer(N), cyrt.Buffer(N), cyrt.Buffer(N)
    np.frombuffer(pinned, np.uint8)[:] = 9
    gate.wait()
    device.copy_from(pinned, blocking=False)
    target.copy_from(device)
    del pinned, device
    others = [cyrt.PinnedBuffer(N) for _ in range(2)]
    for each in others:
        np.frombuffer(each, np.uint8)[:] = 1
    cyrt.Buffer(N).fill(1)
    gate.open()
    found = bytearray(N)
    target.copy_to(found)
    assert found == bytes([9]) * N


@pytest.mark.parametrize("make", [bytearray, lambda n: np.zeros(n, np.uint8)])
def test_pageable_memory_is_refused(make):
    x = cyrt.zeros(16, cyrt.uint8)
    for call in (
        lambda: x.buffer.copy_from(make(16), blocking=False),
        lambda: x.buffer.copy_to(make(16), blocking=False),
        lambda: x.copy_from(make(16), blocking=False),
        lambda: x.copy_to(make(16), blocking=False),
        lambda: cyrt.current_encoder().add_memcpy(x, make(16), blocking=False),
    ):
        with pytest.raises(ValueError, match="expected page-locked host memory.*got pageable"):
            call()


def test_memory_that_is_page_locked_in_part_is_refused():
    """An array that begins in page-locked memory and ends beyond it."""
    pinned = cyrt.PinnedBuffer(4096)
    address = np.frombuffer(pinned, np.uint8).ctypes.data
    n = 1 << 34
    beyond = (ctypes.c_uint8 * n).from_address(address)
    with pytest.raises(ValueError, match="page-locked"):
        cyrt.pointer(cyrt.Buffer(8).ptr, n).copy_from(beyond, blocking=False)


def test_within_the_device_it_changes_nothing():
    a, b = cyrt.Buffer(64), cyrt.Buffer(64)
    a.fill(4)
    b.copy_from(a, blocking=False)
    found = bytearray(64)
    b.copy_to(found)
    assert found == bytes([4]) * 64
