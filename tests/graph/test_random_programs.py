"""Random operations on random overlapping memory, against NumPy; also under other settings.

``CYRT_TEST_EXAMPLES`` sets how many programs are tried, ``CYRT_TEST_SEED`` which ones.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import processes
import pytest
from batch_log import logged
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import cyrt

from_seed = seed(int(os.environ.get("CYRT_TEST_SEED", "0")))
examples = settings(
    max_examples=int(os.environ.get("CYRT_TEST_EXAMPLES", "40")),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

# mix1 ... mix4: the last of their buffers becomes 3a + 5b + 7c + 11d + 1 of all of them, modulo
# 2^32, so that what runs twice, not at all, or in another order shows. Buffers may overlap.
HEAD = """
#ifdef EARLY
#define BEGIN asm volatile("griddepcontrol.launch_dependents;"); \\
              asm volatile("griddepcontrol.wait;" ::: "memory");
#else
#define BEGIN
#endif
typedef unsigned int u32;
extern "C" __global__ void put(const u32* x, u32* y, int n) {
    BEGIN
    int i = threadIdx.x;
    u32 v = 0;
    if (i < n) v = 3 * x[i] + 1;
    __syncthreads();
    if (i < n) y[i] = v;
}
"""
FACTORS = 3, 5, 7, 11


def mixing(arity):
    names = "abcd"[:arity]
    parameters = ", ".join(f"{'const ' * (name != names[-1])}u32* {name}" for name in names)
    total = " + ".join(f"{f} * {name}[i]" for f, name in zip(FACTORS, names, strict=False))
    return f"""
extern "C" __global__ void mix{arity}({parameters}, int n) {{
    BEGIN
    int i = threadIdx.x;
    u32 v = 0;
    if (i < n) v = {total} + 1;
    __syncthreads();
    if (i < n) {names[-1]}[i] = v;
}}
"""


SOURCE = HEAD + "".join(mixing(arity) for arity in (1, 2, 3, 4))
BUFFERS, SIZE, CHUNK = 4, 128, 32
LARGE = 1 << 20

buffer = st.integers(0, BUFFERS - 1)
place = st.tuples(buffer, st.integers(0, SIZE // CHUNK - 1))
length = st.integers(1, CHUNK)
how = st.sampled_from(["plain", "early", "cooperative"])
mix = st.tuples(st.just("mix"), how, st.lists(place, min_size=1, max_size=4), length)
operation = st.one_of(
    mix,
    mix,
    mix,
    st.tuples(st.just("copy"), place, place),
    st.tuples(st.just("fill"), place, st.integers(0, 9)),
    st.tuples(st.just("write"), place, st.integers(0, 9)),
    st.tuples(st.just("read"), place),
    st.tuples(st.just("replace"), buffer),
    st.tuples(st.just("renew"), buffer, buffer),
    st.tuples(st.just("scratch"), how, place, place, st.sampled_from([4 * SIZE, LARGE])),
    st.tuples(st.just("group"), how, st.sets(place, min_size=1, max_size=12), st.lists(place)),
    st.tuples(
        st.just("batch"),
        st.lists(
            st.tuples(st.lists(st.tuples(place, st.booleans()), min_size=1, max_size=3), length),
            max_size=6,
        ),
    ),
    st.tuples(st.just("event"), st.integers(0, 1), st.integers(0, 1)),
    st.tuples(st.just("commit")),
    st.tuples(st.just("stream"), st.integers(0, 1)),
)


@pytest.fixture(scope="module")
def kernels():
    found = {}
    for how, define in (("plain", {}), ("early", {"EARLY": 1})):
        for name in ("put", "mix1", "mix2", "mix3", "mix4"):
            found[how, name] = cyrt.Kernel(SOURCE, name, define=define, pdl=how == "early")
    return found


class Foreign:
    """Another library's view of a Buffer's memory."""

    def __init__(self, address, nbytes):
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
        }


class Machine:
    """The same memory twice: Buffers, and NumPy arrays."""

    def __init__(self, kernels, encoders):
        self.kernels = kernels
        self.encoder = cyrt.CommandEncoder()
        self.streams = [cyrt.Stream(), self.encoder.stream][:encoders]
        self.stream = self.streams[0]
        self.arrays = [np.arange(SIZE, dtype=np.uint32) + i for i in range(BUFFERS)]
        self.buffers = [self.fresh(array) for array in self.arrays]

    @staticmethod
    def fresh(array):
        buffer = cyrt.Buffer(array.nbytes)
        buffer.copy_from(array)
        return buffer

    def both(self, where, count=None):
        index, chunk = where
        start = CHUNK * chunk
        end = SIZE if count is None else start + count
        return self.buffers[index][4 * start : 4 * end], self.arrays[index][start:end]

    def run(self, kind, *args):
        with self.stream:
            getattr(self, kind)(*args)

    def launch(self, how, name, memory, n):
        if how == "cooperative":
            cyrt.current_encoder().add_kernel(
                self.kernels["plain", name], 1, CHUNK, (*memory, n), cooperative=True
            )
        else:
            self.kernels[how, name][1, CHUNK](*memory, n)

    @staticmethod
    def mixed(arrays, n):
        return sum(
            (np.uint32(f) * x[:n] for f, x in zip(FACTORS, arrays, strict=False)),
            np.ones(n, np.uint32),
        )

    def mix(self, how, places, n):
        memory, arrays = zip(*map(self.both, places), strict=True)
        self.launch(how, f"mix{len(places)}", memory, n)
        arrays[-1][:n] = self.mixed(arrays, n)

    def copy(self, a, b):
        (dx, x), (dy, y) = self.both(a, CHUNK), self.both(b, CHUNK)
        if a != b:
            dy.copy_from(dx)
            y[:] = x

    def fill(self, a, value):
        dx, x = self.both(a, CHUNK)
        dx.fill(np.uint32(value))
        x[:] = value

    def write(self, a, value):
        dx, x = self.both(a, CHUNK)
        source = np.full(CHUNK, value, np.uint32)
        dx.copy_from(source)
        source[:] = 99  # staged at the call
        x[:] = value

    def read(self, a):
        dx, x = self.both(a, CHUNK)
        out = np.empty(CHUNK, np.uint32)
        dx.copy_to(out)
        np.testing.assert_array_equal(out, x)

    def replace(self, index):
        array = np.full(SIZE, index, np.uint32)
        self.buffers[index] = None  # freed with its operations recorded
        self.buffers[index] = self.fresh(array)
        self.arrays[index][:] = array

    def renew(self, index, other):
        """New memory, written by a kernel; the old is freed in the same batch."""
        fresh = cyrt.Buffer(4 * SIZE)
        self.kernels["plain", "put"][1, SIZE](self.buffers[other], fresh, SIZE)
        self.buffers[index] = fresh
        self.arrays[index][:] = np.uint32(3) * self.arrays[other] + np.uint32(1)

    def scratch(self, how, a, b, nbytes):
        (dx, x), (dy, y) = self.both(a, CHUNK), self.both(b, CHUNK)
        between = cyrt.Buffer(nbytes)
        self.launch(how, "put", (dx, between), CHUNK)
        self.launch(how, "mix2", (between, dy), CHUNK)
        y[:] = self.mixed((np.uint32(3) * x + np.uint32(1), y), CHUNK)

    def group(self, how, targets, sources):
        """What they write is theirs alone: chunks that no other one touches."""
        sources = [each for each in sources if each not in targets]
        with cyrt.concurrent():
            for i, target in enumerate(sorted(targets)):
                places = [*sources[i % len(sources) :][:2], target] if sources else [target]
                memory, arrays = zip(*(self.both(p, CHUNK) for p in places), strict=True)
                self.launch(how, f"mix{len(places)}", memory, CHUNK)
                arrays[-1][:] = self.mixed(arrays, CHUNK)

    def batch(self, operations):
        """Foreign arrays over the same memory, side by side with the Buffers."""
        addresses = [buffer.ptr for buffer in self.buffers]
        cyrt.synchronize()
        with cyrt.batch():
            for places, n in operations:
                memory, arrays = zip(*(self.both(p) for p, _ in places), strict=True)
                memory = [
                    Foreign(addresses[index] + 4 * CHUNK * chunk, 4 * n) if foreign else own
                    for own, ((index, chunk), foreign) in zip(memory, places, strict=True)
                ]
                self.kernels["plain", f"mix{len(places)}"][1, CHUNK](*memory, n)
                arrays[-1][:n] = self.mixed(arrays, n)

    def event(self, earlier, later):
        earlier, later = (self.streams[i % len(self.streams)] for i in (earlier, later))
        cyrt.Event().record(earlier).wait(later)

    def commit(self):
        cyrt.commit()

    def check(self):
        out = np.empty(SIZE, np.uint32)
        for buffer, array in zip(self.buffers, self.arrays, strict=True):
            buffer.copy_to(out)
            np.testing.assert_array_equal(out, array)
        self.encoder.close()


@from_seed
@examples
@given(st.integers(1, 2), st.lists(operation, min_size=15, max_size=60))
def test_random_program(kernels, encoders, program):
    machine = Machine(kernels, encoders)
    for kind, *args in program:
        if kind == "stream":
            machine.stream = machine.streams[args[0] % encoders]
        else:
            machine.run(kind, *args)
    machine.check()


def run_rounds(kernels, encoders, program, rounds, edits, commit):
    """Run the program so many times with the edits. Return the machine and its batches."""
    cyrt.synchronize()
    cyrt.trim_memory()
    machine = Machine(kernels, encoders)
    with logged() as batches:
        for number in range(rounds):
            operations = list(program)
            for where, place, how, other in edits:
                if where == number:
                    place %= len(operations)
                    operations[place : place + (how != "insert")] = [other] if how != "skip" else []
                    operations = operations or [other]
            machine.stream = machine.streams[0]
            for kind, *args in operations:
                if kind == "stream":
                    machine.stream = machine.streams[args[0] % encoders]
                else:
                    machine.run(kind, *args)
            if commit:
                machine.run("commit")
    return machine, batches


def stats_of(stream):
    with stream:
        return cyrt.current_encoder().stats()


ROUNDS = 10
replayed = st.one_of(mix, mix, mix, mix, operation)
edit = st.tuples(
    st.integers(4, ROUNDS - 1),
    st.integers(0, 30),
    st.sampled_from(["replace", "skip", "insert"]),
    replayed,
)
all_streams = []  # a new one would else have the plans of one that has ended


@pytest.mark.usefixtures("batched", "pooled")
@from_seed
@examples
@given(
    st.integers(1, 2),
    st.lists(replayed, min_size=1, max_size=25),
    st.lists(edit, max_size=5),
    st.sampled_from([True, True, False]),
)
def test_random_rounds(kernels, setting, encoders, program, edits, commit):
    """With replay, without it, and verified: the same batches."""
    found = []
    for mode in ("0", "1", "verify"):
        setting(CYRT_REPLAY=mode)
        machine, batches = run_rounds(kernels, encoders, program, ROUNDS, edits, commit)
        stats = [stats_of(stream) for stream in machine.streams]
        all_streams.extend([*machine.streams, machine.encoder.stream])
        found.append((batches, [(each["operations"], each["commits"]) for each in stats]))
        machine.check()
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.parametrize(
    "setting",
    [
        {"CYRT_GRAPHS": "0"},
        {"CYRT_MAX_OPS_PER_GRAPH": "1"},
        {"CYRT_MAX_OPS_PER_GRAPH": "5"},
        {"CYRT_GRAPH_CACHE_SIZE": "1"},
        {"CYRT_PDL": "0"},
        {"CYRT_POOL": "0"},
        {"CYRT_CHECK": "1"},
        {"CYRT_LAUNCH_BLOCKING": "1"},
    ],
    ids=lambda s: "=".join(*s.items()),
)
def test_the_same_under(setting):
    done = processes.run(
        [
            sys.executable,
            "-P",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            f"{__file__}::test_random_program",
        ],
        seconds=3600 if "CYRT_TEST_EXAMPLES" in os.environ else 500,
        env={"CYRT_TEST_EXAMPLES": "10", **os.environ, **setting},
    )
    assert done.returncode == 0, done.stdout[-3000:]
