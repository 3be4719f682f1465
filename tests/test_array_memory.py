"""What arrays keep of memory, and what their loops make of graphs."""

import gc
import sys
import weakref

import numpy as np
import pytest

import cyrt

LARGE = 1 << 20  # floats: 4 MB, reused at once


@pytest.mark.usefixtures("pooled")
def test_a_loop_keeps_two_blocks_of_a_large_array():
    gc.collect()  # arrays of other tests
    x, b = cyrt.zeros(LARGE), cyrt.ones(LARGE)
    cyrt.synchronize()
    cyrt.trim_memory()
    before = cyrt.memory_stats()
    for _ in range(40):
        x = x + b
    cyrt.synchronize()
    after = cyrt.memory_stats()
    assert after["in_use"] == before["in_use"]
    assert after["cached"] <= before["cached"] + 4 * LARGE  # before: slabs still in use
    assert x[:: LARGE // 4].tolist() == [40] * 4


@pytest.mark.usefixtures("pooled")
@pytest.mark.parametrize(
    "step",
    [
        lambda x, b: x.__iadd__(b),
        lambda x, b: x.__imul__(1),
        lambda x, b: cyrt.clip(x, 0, 9, out=x),
    ],
    ids=["x += b", "x *= 1", "out=x"],
)
def test_in_place_takes_no_memory(step):
    x, b = cyrt.zeros(LARGE), cyrt.ones(LARGE)
    address = x.ptr
    cyrt.synchronize()
    before = cyrt.memory_stats()
    y = step(x, b)
    cyrt.synchronize()
    assert y is x
    assert x.ptr == address
    assert cyrt.memory_stats()["in_use"] == before["in_use"]
    assert cyrt.memory_stats()["cached"] == before["cached"]


@pytest.mark.usefixtures("pooled")
def test_arrays_free_their_memory():
    gc.collect()
    cyrt.synchronize()
    before = cyrt.memory_stats()["in_use"]
    x = cyrt.zeros((4, 4, 4, 4, 4, 4))
    views = [x[1], x.T, x[:, None], x[..., ::2]]
    del x
    assert cyrt.memory_stats()["in_use"] > before
    assert float(views[1][0, 0, 0, 0, 0, 0]) == 0
    del views
    assert cyrt.memory_stats()["in_use"] == before


@pytest.mark.usefixtures("pooled", "batched")
def test_a_steady_loop_patches_nothing():
    x, b = cyrt.zeros(1024), cyrt.ones(1024)
    for _ in range(3000):
        x = x + b
    before = cyrt.current_encoder().stats()
    for _ in range(3000):
        x = x + b
    after = cyrt.current_encoder().stats()
    assert after["patched"] == before["patched"]
    assert after["misses"] == before["misses"]
    assert after["commits"] >= before["commits"] + 20
    assert x.tolist() == [6000] * 1024


@pytest.mark.usefixtures("pooled", "batched")
@pytest.mark.parametrize(("length", "most"), [(100, 0), (1000, 50)])
def test_a_loop_that_waits_patches_little(length, most):
    with cyrt.Stream():  # what other tests left in the pool and the encoder does not count
        gc.collect()
        cyrt.trim_memory()
        x, b = cyrt.zeros(1024), cyrt.ones(1024)
        for _ in range(20):
            for _ in range(length):
                x = x + b
            cyrt.synchronize()
        before = cyrt.current_encoder().stats()["patched"]
        for _ in range(length):
            x = x + b
        cyrt.synchronize()
        assert cyrt.current_encoder().stats()["patched"] - before <= most


def test_an_operation_leaves_its_operands():
    x, b = cyrt.full(100, 2), cyrt.full(100, 3)
    held = x.numpy()
    y = x + b
    z = -x
    w = x * 2
    np.testing.assert_array_equal(x.numpy(), held)
    assert {y.tolist()[0], z.tolist()[0], w.tolist()[0]} == {5, -2, 4}
    assert (cyrt.full(10, 2) + cyrt.full(10, 3)).tolist() == [5] * 10  # none held


def test_an_array_dropped_before_its_batch():
    x = cyrt.zeros(1000)
    for _ in range(50):
        x + 1  # nobody wants it
    x += 1
    assert x.tolist() == [1] * 1000


@pytest.mark.usefixtures("batched")
def test_nothing_is_sent_before_a_value_is_wanted():
    x = cyrt.zeros((5, 20))
    cyrt.synchronize()
    commits = cyrt.current_encoder().stats()["commits"]
    y = (x + 1)[:, ::2].T * 3
    assert y.shape == (10, 5)
    assert cyrt.current_encoder().stats()["commits"] == commits
    assert float(y[0, 0]) == 3
    assert cyrt.current_encoder().stats()["commits"] == commits + 1


def test_two_streams_see_each_others_arrays():
    streams = [cyrt.Stream() for _ in range(3)]
    x = cyrt.zeros(1000)
    for i in range(60):
        with streams[i % 3]:
            x = x + 1
    assert x.tolist() == [60] * 1000


def test_dropped_results_release_what_they_refer_to():
    """A result's deallocation is short: its references to None are its own, and no other's."""
    x = cyrt.zeros(8)
    before = sys.getrefcount(None)
    for _ in range(5000):
        x + 1
    assert abs(sys.getrefcount(None) - before) < 1000


def test_weak_references_are_told_of_a_dropped_result():
    dropped = []
    result = cyrt.zeros(8) + 1
    reference = weakref.ref(result, dropped.append)
    del result
    assert dropped == [reference]
    assert reference() is None


def test_an_array_has_nothing_of_a_view_that_died():
    whole = cyrt.arange(24, dtype="float32").reshape(2, 3, 4)
    references, nones = sys.getrefcount(whole), sys.getrefcount(None)
    for _ in range(2000):
        view = whole[:, ::2].T
        del view
        result = whole + whole  # takes the place of the view
        assert result.shape == (2, 3, 4)
    assert sys.getrefcount(whole) == references
    assert abs(sys.getrefcount(None) - nones) < 100
    assert (result + result).strides == (48, 16, 4)
    assert result.tolist() == (2 * np.arange(24).reshape(2, 3, 4)).tolist()


def test_many_arrays_that_died_together():
    for shape in ((3,), (2, 2, 2, 2, 2), (), (5, 1)):
        arrays = [cyrt.full(shape, i, dtype="int64") for i in range(1000)]
        results = [each + 1 for each in arrays]
        assert {each.shape for each in results} == {shape}
        assert [each.flags.c_contiguous for each in results] == [True] * 1000
        assert int(results[999].sum()) == 1000 * results[999].size


def test_a_result_has_the_strides_of_a_contiguous_array():
    # The stride of a dimension of size 1 may be any in a view.
    view = cyrt.ones((4, 4))[:1, :]
    assert (view + view).strides == cyrt.ones((1, 4)).strides
    assert (view == view).strides == cyrt.ones((1, 4), dtype=bool).strides
