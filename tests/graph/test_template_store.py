"""The store of templates: keys, and threads that share one; test_exact_key has what is dropped."""

from __future__ import annotations

import gc
import threading
from functools import partial

import numpy as np
import pytest
from calls import Vectors, record
from threads import run_in_threads

import cyrt
from cyrt.graph import template

pytestmark = pytest.mark.usefixtures("fresh_templates")


def test_the_key_has_the_alignments(library):
    before = library.count
    for shift in (0, 16, 4, 20, 8):
        vectors = Vectors(1, shift)
        record(library.add, vectors)
        np.testing.assert_array_equal(vectors.result(), vectors.host[0] + vectors.host[1])
    assert template.count_templates() == 3  # vectors of 16, 4 and 8 bytes
    assert library.count == before + 9


def test_calls_of_other_keys_are_others(library):
    vectors = Vectors()
    for scale in (1.0, 2.0, 4.0):
        record(
            lambda stream, where, scale=scale: library.scaled(stream, where, scale=scale),
            vectors,
            key=(5, int(scale)),
        )
        np.testing.assert_array_equal(vectors.result(), vectors.host[0] + scale * vectors.host[1])
    assert template.count_templates() == 3


def test_an_evicted_one_in_a_recording_runs(library):
    vectors = Vectors()
    record(library.add, vectors)
    template.forget()
    gc.collect()
    np.testing.assert_array_equal(vectors.result(), vectors.host[0] + vectors.host[1])


def test_stats_count_them(library):
    vectors = Vectors()
    before = cyrt.current_encoder().stats()
    for _ in range(5):
        record(library.chain, vectors, workspace=4096)
    after = cyrt.current_encoder().stats()
    assert after["repoints"] == before["repoints"] + 5
    assert after["templates"] == 1
    assert after["operations"] == before["operations"] + 20


def test_two_threads_and_streams_share_one(library):
    record(library.chain, Vectors(), workspace=4096)
    count = library.count

    def work(seed):
        with cyrt.Stream():
            sets = [Vectors(seed + i) for i in range(3)]
            for _ in range(20):
                for vectors in sets:
                    record(library.chain, vectors, workspace=4096)
            for vectors in sets:
                a, b = vectors.host
                assert (vectors.result() == a + 2 * b + 1).all()

    assert run_in_threads(*(partial(work, 10 * i) for i in range(4))) == []
    assert library.count == count
    assert template.count_templates() == 1


def test_two_threads_may_learn_at_once(library):
    barrier = threading.Barrier(4)

    def work(seed):
        with cyrt.Stream():
            vectors = Vectors(seed)
            barrier.wait()
            record(library.chain, vectors, workspace=4096)
            a, b = vectors.host
            assert (vectors.result() == a + 2 * b + 1).all()

    assert run_in_threads(*(partial(work, i) for i in range(4))) == []
    assert template.count_templates() == 1
