"""The edges of a batch: exactly those that its memory asks for."""

from __future__ import annotations

from ctypes import c_uint, c_void_p

import numpy as np
import pytest

import cyrt

pytestmark = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')",
    reason="shows edges; CYRT_GRAPHS=0 has none",
)

N = 64


@pytest.fixture(scope="module")
def touch():
    return cyrt.Kernel(
        """
        extern "C" __global__ void touch(int* x, const int* y) { *x += *y; }
        """,
        "touch",
    )


@pytest.fixture
def encoder():
    """A stream's own encoder, current on this thread."""
    with cyrt.Stream():
        yield cyrt.current_encoder()


def memory(count):
    buffers = [cyrt.Buffer(4 * N) for _ in range(count)]
    for buffer in buffers:
        buffer.fill(0)
    cyrt.synchronize()
    return buffers


def edges(encoder):
    encoder.commit()
    return {(source, target) for source, target, _ in encoder.last_plan().edges}


class Foreign:
    """Another library's array over a part of a Buffer, in bytes."""

    def __init__(self, address, first, end, stream=None):
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (end - first,),
            "typestr": "|u1",
            "data": (address + first, False),
            "stream": stream,
        }


def test_each_encoder_has_its_own_readers(touch):
    """What one recording read is not forgotten while others read the same, and commit."""
    shared, last, *own = memory(11)
    encoders = [cyrt.CommandEncoder() for _ in range(3)]

    def read(i):
        encoders[i].add_kernel(touch, 1, 1, (own.pop(), shared))

    for i in range(3):  # from here on reading beside each other commits nothing
        read(i)
        encoders[i].synchronize()
    for i in (0, 1, 2, 0, 1, 2):
        read(i)
    assert [encoder.num_ops for encoder in encoders] == [2, 2, 2]
    encoders[0].add_kernel(touch, 1, 1, (shared, last))
    assert [encoder.num_ops for encoder in encoders] == [3, 0, 0]
    assert edges(encoders[0]) == {(0, 2), (1, 2)}
    for encoder in encoders:
        encoder.close()


def test_readers_of_one_recording_in_the_shade_of_another(touch):
    """A written block: its readers here are known after another recording read it, too."""
    shared, a, b, c = memory(4)
    first, second = cyrt.CommandEncoder(), cyrt.CommandEncoder()
    for encoder in (first, second):
        encoder.add_kernel(touch, 1, 1, (c, shared))
        encoder.synchronize()
    first.add_kernel(touch, 1, 1, (a, shared))  # 0
    second.add_kernel(touch, 1, 1, (b, shared))
    first.add_kernel(touch, 1, 1, (c, c))  # 1: elsewhere
    first.add_kernel(touch, 1, 1, (shared, shared))  # 2
    assert edges(first) == {(0, 2)}
    for encoder in (first, second):
        encoder.close()


def test_foreign_memory_is_ordered_by_address(touch, encoder):
    whole, other = memory(2)
    address = whole.ptr
    low, high, middle, inner = (
        Foreign(address, *ends) for ends in ((0, 64), (128, 192), (32, 160), (40, 48))
    )
    with cyrt.batch():
        touch[1, 1](low, low)  # 0
        touch[1, 1](high, high)  # 1: apart from 0
        touch[1, 1](low, low)  # 2: after 0
        touch[1, 1](other, other)  # 3: not foreign
        touch[1, 1](middle, middle)  # 4: across two ranges, so after everything
        touch[1, 1](other, other)  # 5: after everything up to there
        touch[1, 1](inner, inner)  # 6: in the joined range
        touch[1, 1](low, low)  # 7: likewise
        touch[1, 1](other, other)  # 8: after 5 only
        assert encoder.num_ops == 9
        assert edges(encoder) == {(0, 2), (1, 4), (2, 4), (3, 4), (4, 5), (4, 6), (6, 7), (5, 8)}


def test_opaque_memory_is_ordered_against_everything(touch, encoder):
    """What is behind a pointer that nobody named; twice in a row."""
    a, b, c, d = memory(4)
    hidden = cyrt.Kernel(
        """
        struct Pair { int* x; int* y; };
        extern "C" __global__ void hidden(Pair pair, int* z) { *z = *pair.x + *pair.y; }
        """,
        "hidden",
    )
    pair = np.array([a.ptr, b.ptr], np.uint64)
    encoder.commit()
    with cyrt.batch():  # addresses were handed out: else each commits
        touch[1, 1](c, c)  # 0
        touch[1, 1](d, d)  # 1
        hidden[1, 1](pair, d)  # 2: after everything
        touch[1, 1](c, c)  # 3
        touch[1, 1](d, d)  # 4
        hidden[1, 1](pair, d)  # 5: after everything since 2
        touch[1, 1](c, d)  # 6
    assert edges(encoder) == {(0, 2), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5), (5, 6)}


def test_a_wide_batch_runs_in_lanes(touch, encoder):
    """Eight of them, each a chain: what follows the end of one stays in it."""
    buffers = memory(19)
    for buffer in buffers:
        touch[1, 1](buffer, buffer)
    touch[1, 1](buffers[17], buffers[17])  # 19: the end of the lane of 1 and 9
    touch[1, 1](buffers[3], buffers[3])  # 20: joins a lane, the next one in turn
    touch[1, 1](buffers[17], buffers[17])  # 21
    lanes = {(i, i + 8) for i in range(11)}
    assert edges(encoder) == lanes | {(17, 19), (11, 20), (19, 21)}


def test_a_batch_of_foreign_memory_is_ordered_with_its_producer(touch, encoder, replaced):
    """After what the producer put on its stream; before what it, and the legacy stream, do next."""
    [buffer] = memory(1)
    producer = cyrt.Stream()
    names = {encoder.stream.handle: "mine", producer.handle: "producer", None: "legacy"}
    calls = []

    def note(what):
        def call(original, *arguments):
            calls.append((what, names[arguments[0 if what == "wait" else 1]]))
            return original(*arguments)

        return call

    array = Foreign(buffer.ptr, 0, 64, stream=producer.handle)
    replaced("cuStreamWaitEvent", [c_void_p, c_void_p, c_uint], note("wait"))
    replaced("cuGraphLaunch", [c_void_p] * 2, note("launch"))
    with cyrt.batch():
        touch[1, 1](array, array)
        touch[1, 1](array, array)
        assert calls == []
    assert calls[:2] == [("wait", "mine"), ("launch", "mine")]
    assert {("wait", "producer"), ("wait", "legacy")} <= set(calls[2:])
    calls.clear()
    touch[1, 1](buffer, buffer)  # its address was handed out: at once, as if foreign
    assert calls == [("wait", "mine"), ("launch", "mine"), ("wait", "legacy")]
