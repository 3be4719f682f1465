"""``concurrent()``: no order inside, everything joined after."""

from __future__ import annotations

import gc
from ctypes import c_void_p

import numpy as np
import pytest
from outside import Library, N, edges, host, only_batches, zeros

import cyrt


def parts(buffer, count):
    step = buffer.nbytes // count
    return [buffer[i * step : (i + 1) * step] for i in range(count)]


@only_batches
@pytest.mark.usefixtures("pooled")
def test_memory_freed_inside_while_the_batch_before_is_launched(module, replaced):
    """The memory is not reused until its own batch is launched."""
    encoder, source, addresses = cyrt.current_encoder(), zeros(), []
    group = encoder.concurrent()

    def add():
        scratch = cyrt.Buffer(1 << 20)
        encoder.add_kernel(module["add"], 1, N, (source, source, scratch, N))
        addresses.append(repr(scratch))

    def launch(original, *arguments):
        if not addresses:
            group.__enter__()
            add()
        return original(*arguments)

    encoder.commit()
    replaced("cuGraphLaunch", [c_void_p, c_void_p], launch)
    encoder.add_kernel(module["axpb"], 1, N, (source, 1.0, 1.0, N))
    encoder.commit()
    add()
    group.__exit__(None, None, None)
    assert len(set(addresses)) == 2
    encoder.synchronize()


@only_batches
@pytest.mark.usefixtures("pooled")
def test_memory_that_another_stream_has_read_is_not_reused_inside(module):
    """The block stores how the other stream's recording uses it, and beside that how the group
    does; from the second time on it is a block of the stream's sequences."""
    encoder, side, out, other = cyrt.current_encoder(), cyrt.Stream(), zeros(), zeros()
    for _ in range(4):
        x = cyrt.Buffer(4 * N)
        x.copy_from(np.full(N, 7, np.float32))
        cyrt.synchronize()
        with encoder.concurrent():
            with side:
                module["axpb"][1, N](other, 1.0, 1.0, N)
                module["add"][1, N](x, x, other, N)
            module["add"][1, N](x, x, out, N)
            with side:
                module["add"][1, N](x, x, other, N)
            address = repr(x).split(" at ")[1]
            del x
            y = cyrt.Buffer(4 * N)
            module["axpb"][1, N](y, 0.0, 9.0, N)
            assert repr(y).split(" at ")[1] != address
        assert (host(out) == 14).all()
        del y


@only_batches
@pytest.mark.parametrize("before", range(10))
def test_no_edges_inside_and_a_join_after(module, encoder, before):
    """As wide as graphs are: whatever was recorded before it, and on whatever it was."""
    x, others = zeros(), [zeros() for _ in range(9)]
    encoder.commit()
    for i in range(before):
        encoder.add_kernel(module["axpb"], 1, N, (others[i], 1.0, 1.0, N))
    with encoder.concurrent() as inside:
        assert inside is encoder
        for i, part in enumerate(parts(x, 8)):  # one memory: ordered anywhere else
            n = N // 8
            encoder.add_kernel(module["add"], 1, n, (others[(5 * i + 3) % 9], part, part, n))
    encoder.add_kernel(module["axpb"], 1, N, (x, 2.0, 1.0, N))
    encoder.add_kernel(module["axpb"], 1, N, (others[0], 2.0, 0.0, N))
    encoder.commit()
    found, join = edges(encoder), before + 8
    assert [edge for edge in found if edge[0] >= before and edge[1] < join] == []
    assert {(i, join) for i in range(before, join)} <= set(found)
    assert (join, join + 1) in found
    assert (join, join + 2) in found
    wanted = np.repeat([1.0 if (5 * i + 3) % 9 < before else 0.0 for i in range(8)], N // 8)
    assert (host(x) == 2 * wanted + 1).all()
    assert (host(others[0]) == (2 if before else 0)).all()


@only_batches
def test_follows_what_it_uses(module, encoder):
    x, y = zeros(), zeros()
    encoder.commit()
    encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))  # 0
    encoder.add_kernel(module["axpb"], 1, N, (y, 1.0, 2.0, N))  # 1
    with encoder.concurrent():
        encoder.add_kernel(module["axpb"], 1, 128, (x[:512], 2.0, 0.0, 128))  # 2
        encoder.add_kernel(module["add"], 1, 128, (x[512:], x[512:], y[:512], 128))  # 3
    encoder.commit()
    assert {(0, 2), (0, 3), (1, 3)} <= set(edges(encoder))
    assert (2, 3) not in edges(encoder)
    assert (host(x) == [2.0] * 128 + [1.0] * 128).all()
    assert (host(y)[:128] == 2).all()


def test_a_commit_in_the_middle(module, encoder):
    """Asked for, or by a limit: results are those of one batch."""
    x = zeros()
    for how in (encoder.commit, lambda: encoder.stream.handle, lambda: host(x), gc.collect):
        with encoder.concurrent():
            for i, part in enumerate(parts(x, 16)):
                encoder.add_kernel(module["axpb"], 1, 16, (part, 1.0, 1.0, 16))
                if i % 5 == 4:
                    how()
        encoder.add_kernel(module["axpb"], 1, N, (x, 2.0, 0.0, N))
    with encoder.concurrent():
        for part in parts(x, 256):  # more than a batch takes
            encoder.add_kernel(module["axpb"], 1, 1, (part, 1.0, 1.0, 1))
    encoder.add_kernel(module["axpb"], 1, N, (x, 2.0, 0.0, N))
    assert (host(x) == 62).all()


def test_memory_that_ends_inside(module, encoder):
    """Pinned memory, a driver allocation of its own, goes at once."""
    x, y = zeros(), zeros()
    with encoder.concurrent():
        for i in range(60):
            scratch = cyrt.PinnedBuffer(4 * N) if i % 2 else cyrt.Buffer(4 * N)
            encoder.add_kernel(module["add"], 1, N, (x, x, scratch, N))
            del scratch
    encoder.add_kernel(module["axpb"], 1, N, (y, 1.0, 1.0, N))
    assert (host(y) == 1).all()


@only_batches
def test_what_is_ordered_against_everything_is_so_inside(module, encoder):
    library, x, y = Library(), zeros(), zeros()
    graph = library.filling(x.ptr, 0)
    encoder.commit()
    with encoder.concurrent():
        encoder.add_kernel(module["axpb"], 1, 64, (y[:256], 1.0, 1.0, 64))  # 0, 1 joins
        encoder.add_graph(graph)  # 2
        encoder.add_kernel(module["axpb"], 1, 64, (y[256:512], 1.0, 1.0, 64))  # 3
        encoder.add_kernel(module["axpb"], 1, 64, (y[512:768], 1.0, 1.0, 64))  # 4, 5 joins
    encoder.commit()
    assert set(edges(encoder)) == {(0, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5)}


def test_nested_is_refused_and_the_outer_goes_on(module, encoder):
    x = zeros()
    with encoder.concurrent():
        encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
        with (
            pytest.raises(RuntimeError, match="concurrent: one is open on the encoder already"),
            encoder.concurrent(),
        ):
            pass
        with cyrt.concurrent():  # the current encoder's is another one
            pass
    with encoder.concurrent():
        pass
    assert (host(x) == 1).all()


@only_batches
def test_an_exception_inside_closes_it(module, encoder):
    x = zeros()
    encoder.commit()

    def fail():
        encoder.add_kernel(module["axpb"], 1, 64, (x[:256], 1.0, 1.0, 64))
        encoder.add_kernel(module["axpb"], 1, 64, (x[256:512], 1.0, 1.0, 64))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), encoder.concurrent():
        fail()
    encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
    encoder.add_kernel(module["axpb"], 1, N, (x, 1.0, 1.0, N))
    encoder.commit()
    assert edges(encoder) == [(0, 2), (1, 2), (2, 3), (3, 4)]
    assert (host(x) == [3.0] * 128 + [2.0] * 128).all()


def test_the_current_encoders(module):
    x = zeros()
    with cyrt.concurrent() as encoder:
        assert encoder is cyrt.current_encoder()
        for part in parts(x, 4):
            module["axpb"][1, 64](part, 1.0, 1.0, 64)
    module["axpb"][1, N](x, 1.0, 1.0, N)
    assert (host(x) == 2).all()


def test_operations_of_arrays_are_ordered_inside(rng):
    """Several kernels each, and each reads what the one before wrote."""
    x = rng.random(100_000, np.float32)
    array = cyrt.asarray(x)
    with cyrt.concurrent():
        ordered = cyrt.sort(array)
        places = cyrt.argsort(array)
        sums = cyrt.cumulative_sum(cyrt.ones(100_000, dtype="int64")) * 2
        chosen = array[places[::-1]]
    wanted = np.sort(x)
    np.testing.assert_array_equal(ordered.numpy(), wanted)
    np.testing.assert_array_equal(sums.numpy(), 2 * np.arange(1, 100_001))
    np.testing.assert_array_equal(chosen.numpy(), wanted[::-1])


def test_kernels_follow_operations_of_arrays_inside(module):
    with cyrt.concurrent() as encoder:
        x, y = cyrt.ones(N), cyrt.zeros(N)
        encoder.add_kernel(module["axpb"], 1, N, (x, 2.0, 1.0, N))
        encoder.add_kernel(module["axpb"], 1, N, (y, 2.0, 1.0, N))
    assert x.tolist() == [3] * N
    assert y.tolist() == [1] * N
