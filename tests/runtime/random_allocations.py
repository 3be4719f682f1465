"""Random allocations and frees of large Buffers, and a model of them: the driver's allocations, and
the addresses and sizes of what is in use."""

from __future__ import annotations

import ctypes

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cyrt
from cyrt.driver import table

UNIT = 1 << 18
LIMIT = 64 << 20
REPLACED = []  # keeps the callbacks
steps = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), st.integers(0, 1), st.integers(4, 48)),
        st.tuples(st.just("free"), st.integers(0, 1), st.integers(0, 100)),
        st.tuples(st.just("wait"), st.just(0), st.just(0)),
        st.tuples(st.just("trim"), st.just(0), st.just(0)),
    ),
    min_size=30,
    max_size=100,
)


def address(buffer):
    return int(repr(buffer).partition(" at ")[2].rstrip(">"), 16)


def note_driver_calls(allocated):
    """Keep the sizes of the driver's allocations by their addresses."""

    def allocate(start, size):
        result = original_allocate(start, size)
        if result == 0:
            allocated[ctypes.c_uint64.from_address(start).value] = size
        return result

    def free(start):
        allocated.pop(start, None)
        return original_free(start)

    def replace(name, function, *types):
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *types)
        REPLACED.append(prototype(function))
        callback = ctypes.cast(REPLACED[-1], ctypes.c_void_p).value
        return prototype(table.replace(name, callback, 0))

    original_allocate = replace("cuMemAlloc", allocate, ctypes.c_size_t, ctypes.c_size_t)
    original_free = replace("cuMemFree", free, ctypes.c_size_t)


class Allocations:
    def __init__(self, allocated, streams):
        self.allocated, self.streams = allocated, streams
        self.used = {}  # Buffers by their addresses

    def allocate(self, stream, units):
        """A block is at most a quarter larger than what is wanted, and a quarter of the memory may
        be in blocks that are split: what fits beside these is always to be had."""
        size = units * UNIT
        in_use = sum(buffer.nbytes for buffer in self.used.values())
        if 1.25 * (in_use + size) > 0.75 * LIMIT:
            return
        with self.streams[stream % len(self.streams)]:
            buffer = cyrt.Buffer(size)
        start = address(buffer)
        for other, used in self.used.items():
            assert start + size <= other or other + used.nbytes <= start
        assert any(
            first <= start and start + size <= first + whole
            for first, whole in self.allocated.items()
        )
        self.used[start] = buffer

    def free(self, stream, index):
        """A stream writes the memory, and it is freed."""
        if self.used:
            start = sorted(self.used)[index % len(self.used)]
            self.used[start][:64].fill(1, self.streams[stream % len(self.streams)])
            del self.used[start]

    def run(self, steps):
        for kind, stream, value in steps:
            if kind == "wait":
                cyrt.synchronize()
            elif kind == "trim":
                cyrt.trim_memory()
            else:
                getattr(self, kind)(stream, value)
            stats = cyrt.memory_stats()
            assert stats["in_use"] == sum(buffer.nbytes for buffer in self.used.values())
            assert stats["reserved"] == sum(self.allocated.values()) <= LIMIT

    def join(self):
        """The free parts make up the driver's allocations again, if one stream has them all."""
        self.used.clear()
        with self.streams[0]:
            calls, wholes = cyrt.memory_stats()["driver_allocations"], dict(self.allocated)
            buffers = [cyrt.Buffer(size) for size in wholes.values()]
            assert {address(buffer): buffer.nbytes for buffer in buffers} == wholes
            assert cyrt.memory_stats()["driver_allocations"] == calls


def check(num_streams):
    """CYRT_MEMORY_LIMIT is `LIMIT`, and nothing was allocated yet."""
    allocated = {}
    note_driver_calls(allocated)
    streams = [cyrt.Stream() for _ in range(num_streams)]

    @settings(
        max_examples=300,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(steps)
    def run(steps):
        allocations = Allocations(allocated, streams)
        try:
            allocations.run(steps)
            if num_streams == 1:
                allocations.join()
        finally:
            allocations.used.clear()
            cyrt.trim_memory()
        assert not allocated
        assert cyrt.memory_stats()["reserved"] == 0

    run()
