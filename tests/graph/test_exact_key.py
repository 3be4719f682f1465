"""Plans and templates under exact keys: hits, misses, equal hashes, what leaves and what stays."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest
from calls import Vectors, record

import cyrt
from cyrt.graph import exact_key, template

WAYS = 4  # plans whose keys have one hash
MOST_WORDS = 72


class Held:
    pass


@pytest.fixture(autouse=True)
def forgotten():
    template.forget()
    yield
    template.forget()


@pytest.fixture
def equal_hashes():
    """All keys of one length have one hash."""
    exact_key.set_multipliers(equal=True)
    yield
    exact_key.set_multipliers()


# -- plans -----------------------------------------------------------------------------------------


def test_a_plan_is_found_by_its_key_alone():
    for length in (1, 2, 17, MOST_WORDS):
        words = [2**64 - 1 - i for i in range(length)]
        assert exact_key.plan_of(words, length) is None
        assert exact_key.plan_of(words, -1) == length
        assert exact_key.plan_of(words[:-1]) is (length - 1 if length == 2 else None)
        assert exact_key.plan_of(words[::-1] if length > 1 else [5]) is None


@pytest.mark.parametrize("hashes", ["various", "equal"])
def test_keys_that_differ_in_a_byte(hashes, request):
    if hashes == "equal":
        request.getfixturevalue("equal_hashes")
    words = [0x0123_4567_89AB_CDEF + i for i in range(9)]
    assert exact_key.plan_of(words, 7) is None
    for i in range(len(words)):
        for byte in range(8):
            other = [*words]
            other[i] ^= 1 << 8 * byte
            assert exact_key.plan_of(other) is None
    assert exact_key.plan_of(words) == 7


def test_a_key_that_is_too_long_has_no_plan():
    words = [1] * (MOST_WORDS + 1)
    assert exact_key.plan_of(words, 1) is None
    assert exact_key.plan_of(words) is None


def test_the_oldest_plan_leaves_a_full_set(equal_hashes):
    held = [Held() for _ in range(WAYS + 2)]
    kept = [weakref.ref(each) for each in held]
    for i, each in enumerate(held):
        assert exact_key.plan_of((i, 1), i, each) is None
    del each
    held.clear()
    gc.collect()
    assert [exact_key.plan_of((i, 1)) for i in range(WAYS + 2)] == [None, None, 2, 3, 4, 5]
    assert [each() is not None for each in kept] == [False, False, True, True, True, True]
    template.forget()
    assert not any(each() for each in kept)
    assert exact_key.plan_of((5, 1)) is None


def test_a_plan_whose_end_stores_another_one(equal_hashes):
    """A finalizer runs where a plan leaves."""

    class Storing:
        def __del__(self):
            exact_key.plan_of((99, 1), 99)

    for i in range(WAYS + 1):
        exact_key.plan_of((i, 1), i, Storing() if i == 0 else None)
    assert exact_key.plan_of((99, 1)) == 99
    assert exact_key.plan_of((WAYS, 1)) == WAYS


def test_operations_whose_keys_have_one_hash(equal_hashes, rng):
    """Their plans have parameters of their own, whatever leaves."""
    a = rng.standard_normal((6, 7)).astype(np.float32)
    x = cyrt.asarray(a)
    for _ in range(3):
        for size in range(1, 7):
            part = a[:, :size]
            np.testing.assert_allclose(cyrt.sum(x[:, :size], axis=1), part.sum(1), 1e-5, 1e-6)
            np.testing.assert_array_equal(x[:, :size] + x[:, 7 - size :], part + a[:, 7 - size :])
            np.testing.assert_allclose(x[:, :size] @ x[:size, :], part @ a[:size], 1e-5, 1e-5)
            image, filters = x.reshape((1, 6, 7, 1)), cyrt.ones((1, size, 1, 1))
            rows = [a[i : i + size].sum(0) for i in range(7 - size)]
            found = cyrt.nn.conv2d(image, filters)[0, :, :, 0]
            np.testing.assert_allclose(found, rows, 1e-5, 1e-5)


def test_a_plan_leaves_while_its_launch_is_recorded(equal_hashes, replaced, batched):
    """The launch waits for another stream, which is committed before; others store plans then."""
    x, others = cyrt.ones((64, 48)), [cyrt.ones((i + 2, 3)) for i in range(WAYS + 1)]
    streams = [cyrt.Stream() for _ in range(3)]
    cyrt.sum(x, axis=1)
    cyrt.synchronize()
    stored = []

    def launch(original, *arguments):
        if not stored:
            stored.append(True)
            with streams[2]:
                for each in others:
                    cyrt.sum(each, axis=1)
        return original(*arguments)

    replaced("cuGraphLaunch", [ctypes.c_void_p] * 2, launch)
    with streams[0]:
        x += 1
        with streams[1]:
            assert not stored
            found = cyrt.sum(x, axis=1)
            assert stored
    np.testing.assert_array_equal(found, np.full(64, 2 * 48))


# -- templates -------------------------------------------------------------------------------------


@pytest.fixture
def unrecorded():
    """A stream on which no recording outlives its work, so that none holds a template."""
    with cyrt.Stream() as stream, cyrt.CommandEncoder(stream, graphs=False):
        yield


def record_all(library, vectors, keys):
    for key in keys:
        record(library.add, vectors, key=(key,))
        cyrt.synchronize()


def test_the_least_recently_used_is_dropped(library, setting, unrecorded):
    setting(CYRT_TEMPLATE_CACHE_SIZE="3")
    template.forget()
    vectors = Vectors()
    record_all(library, vectors, (1, 2, 3, 1, 4))  # 2 was used longest ago
    assert template.count_templates() == 3
    before = library.count
    record_all(library, vectors, (1, 3, 4))
    assert library.count == before
    record_all(library, vectors, (2,))
    assert library.count == before + 3
    assert template.count_templates() == 3


@pytest.mark.parametrize("hashes", ["various", "equal"])
def test_many_templates(library, setting, unrecorded, hashes, request):
    if hashes == "equal":
        request.getfixturevalue("equal_hashes")
        template.forget()
    setting(CYRT_TEMPLATE_CACHE_SIZE="40")
    template.forget()
    vectors, kept = Vectors(), []
    for key in range(100):
        kept.append(weakref.ref(record(library.add, vectors, key=(key, key * 2**40))))
        cyrt.synchronize()
    gc.collect()
    assert template.count_templates() == 40
    assert [each() is not None for each in kept] == [False] * 60 + [True] * 40
    before = library.count
    record(library.add, vectors, key=(70, 70 * 2**40))
    assert library.count == before
    template.forget()
    cyrt.synchronize()
    assert template.count_templates() == 0
    assert not any(each() for each in kept)


def test_what_a_recording_holds_is_not_dropped(library, setting, batched):
    setting(CYRT_TEMPLATE_CACHE_SIZE="1")
    template.forget()
    vectors = Vectors()
    with cyrt.Stream() as stream, cyrt.CommandEncoder(stream):
        for key in (1, 2, 3):
            record(library.add, vectors, key=(key,))
        gc.collect()
        assert template.count_templates() == 3
        before = library.count
        for key in (1, 2, 3):
            record(library.add, vectors, key=(key,))
        assert library.count == before
        np.testing.assert_array_equal(vectors.result(), vectors.host[0] + vectors.host[1])
    # The recordings have ended with their encoder.
    with cyrt.Stream() as stream, cyrt.CommandEncoder(stream, graphs=False):
        record_all(library, vectors, (4,))
    assert template.count_templates() == 1


def test_what_somebody_holds_is_not_dropped(library, setting, unrecorded):
    setting(CYRT_TEMPLATE_CACHE_SIZE="1")
    template.forget()
    vectors = Vectors()
    first = record(library.add, vectors, key=(1,))
    record_all(library, vectors, (2, 3))
    assert template.count_templates() == 2
    before = library.count
    assert record(library.add, vectors, key=(1,)) is first
    assert library.count == before
    del first
    record_all(library, vectors, (4,))
    assert template.count_templates() == 1
