"""Calls of other libraries that captures do not explain, and captures that fail."""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_uint64, c_void_p

import numpy as np
import pytest
from calls import N, Packed, Vectors, record

import cyrt
from cyrt.graph import template

pytestmark = pytest.mark.usefixtures("fresh_templates")


def opaque(library, call, message, **options):
    """Record a call at several addresses; check that it is captured each time, and right."""
    before = cyrt.current_encoder().stats()
    for seed in range(3):
        vectors = Vectors(seed, spare=seed)
        learned = record(call, vectors, **options)
        assert message in learned.reason
        yield vectors
    assert cyrt.current_encoder().stats()["opaque_captures"] == before["opaque_captures"] + 3
    assert cyrt.current_encoder().stats()["repoints"] == before["repoints"]


def test_an_address_that_is_no_operand(library):
    own = Vectors(7)
    where_own = own.b.ptr

    def call(stream, where):
        library.add(stream, (where[0], where_own, where[2]))

    for vectors in opaque(library, call, "memory that is no operand"):
        np.testing.assert_array_equal(vectors.result(), vectors.host[0] + own.host[1])


@pytest.mark.parametrize(
    ("low", "high", "small"), [(224, 1, True), (0, 29, True), (1 << 21, 3, False)]
)
def test_two_small_numbers_are_no_address(library, replaced, low, high, small):
    """Another framework may have reserved the addresses that two numbers look like."""

    def find(original, value, attribute, address):
        return 0 if address == high << 32 | low else original(value, attribute, address)

    def call(stream, where):
        count = high << 32 | low
        library.put(
            stream, "scaled", Packed(where[0], b"\1", b"", count, where[1], where[2], 1.0, b"")
        )

    replaced("cuPointerGetAttribute", [c_void_p, c_int, c_uint64], find)
    vectors = Vectors(5)
    learned = record(call, vectors)
    assert (learned.reason is None) == small, learned.reason
    np.testing.assert_array_equal(vectors.result(), vectors.host[0] + vectors.host[1])


def test_a_difference_of_addresses(library):
    def call(stream, where):
        step = (where[1] - where[0]) // 4
        library.put(
            stream, "distance", [c_uint64(where[0]), ctypes.c_longlong(step), c_uint64(where[2])]
        )

    for vectors in opaque(library, call, "no operand's address"):
        np.testing.assert_array_equal(vectors.result(), vectors.host[1])


def test_a_word_that_may_be_half_an_address(library):
    """All captures have the same upper halves, so a lower half alone would look like an address."""

    def call(stream, where):
        library.put(
            stream,
            "distance",
            [c_uint64(where[1]), ctypes.c_longlong(0), c_uint64(where[2])],
            attributes=(),
        )
        low = (where[0] & 0xFFFF_FFFF) | 77 << 32
        library.put(stream, "scaled", Packed(low, b"\1", b"", 0, low, low, 0.0, b""))

    for vectors in opaque(library, call, "no operand's address"):
        np.testing.assert_array_equal(vectors.result(), vectors.host[1])


def test_a_third_capture_that_disagrees(library):
    calls = iter(range(100))

    def call(stream, where):
        n = N - 1 if next(calls) == 2 else N
        library.scaled(stream, where, n=n)

    for vectors in opaque(library, call, "differ"):
        np.testing.assert_array_equal(vectors.result(), vectors.host[0] + 2 * vectors.host[1])


def test_other_kernels_for_other_addresses(library):
    calls = iter(range(100))

    def call(stream, where):
        library.add(stream, where)
        if next(calls) == 1:
            library.put(stream, "increase", [c_uint64(where[2]), c_int(0)])

    for vectors in opaque(library, call, "kernels in one capture"):
        np.testing.assert_array_equal(vectors.result(), vectors.host[0] + vectors.host[1])


def test_a_node_that_is_no_kernel(library):
    def call(stream, where):
        with library:
            library(
                "cuMemcpyDtoDAsync_v2",
                c_uint64(where[2]),
                c_uint64(where[0]),
                ctypes.c_size_t(4 * N),
                c_void_p(stream),
            )

    for vectors in opaque(library, call, "neither kernel nor memset"):
        np.testing.assert_array_equal(vectors.result(), vectors.host[0])


def test_a_call_that_fails_is_raised_and_not_kept(library):
    def call(stream, where):
        raise ZeroDivisionError

    vectors = Vectors()
    with pytest.raises(ZeroDivisionError):
        record(call, vectors)
    assert template.count_templates() == 0
    assert record(library.add, vectors).reason is None
    np.testing.assert_array_equal(vectors.result(), vectors.host[0] + vectors.host[1])


@pytest.mark.parametrize("first", [True, False])
def test_a_capture_that_somebody_else_ended_is_repeated(library, first):
    calls = iter(range(100))

    def call(stream, where):
        ended = next(calls) == 0  # as a finalizer may do
        if not first:
            library.add(stream, where)
        if ended:
            with library:
                library.driver.cuCtxSynchronize()
        if first:
            library.add(stream, where)

    vectors = Vectors()
    assert record(call, vectors).reason is None
    assert next(calls) == 4
    np.testing.assert_array_equal(vectors.result(), vectors.host[0] + vectors.host[1])


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_a_capture_that_never_succeeds(library, error):
    calls = iter(range(100))

    def call(stream, where):
        next(calls)
        with library:
            library.driver.cuCtxSynchronize()
        raise error

    with pytest.raises(error):
        record(call, Vectors())
    assert next(calls) == (1 if error is KeyboardInterrupt else 3)
    assert template.count_templates() == 0
