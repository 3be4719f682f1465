"""Random operations on random overlapping memory, against NumPy; also under other settings.

``CYRT_TEST_EXAMPLES`` sets how many programs are tried, ``CYRT_TEST_SEED`` which ones.
"""

from __future__ import annotations

import contextlib
import operator
import os
import sys
from collections import deque

import numpy as np
import processes
import pytest
from batch_log import logged
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import cyrt

SEED = int(os.environ.get("CYRT_TEST_SEED", "0"))
from_seed = seed(SEED)
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

# Calls on arrays. Each is a matrix of int32 in both libraries, which wrap around.
array = st.integers(0, 2)
FUNCTIONS = {"add": "add", "sub": "subtract", "mul": "multiply"}  # operator: function
function = st.sampled_from(list(FUNCTIONS))
# Numbers of these types, the second one in every other round.
number = st.tuples(
    st.sampled_from([int, np.int32, np.int64, bool]), st.integers(-3, 3), st.integers(-3, 3)
)
way = st.sampled_from(["new", "in place", "out", "copied"])
ROWS, PART = 8, 4
PARTS = {  # functions of both libraries: views of one shape, and views that are broadcast to it
    "corner": lambda x, k: x[k : k + PART, 1 : 1 + PART],
    "transposed": lambda x, k: x.T[:PART, k : k + PART],
    "backwards": lambda x, k: x[PART - 1 :: -1, k : k + PART],
    "steps": lambda x, k: x[::2, k % 2 :: 2],
    "row": lambda x, k: x[k, :PART],
    "column": lambda x, k: x[:PART, k : k + 1],
}
target = st.tuples(array, st.sampled_from(list(PARTS)[:4]), st.integers(0, PART))
source = st.tuples(array, st.sampled_from(list(PARTS)), st.integers(0, PART))
calculation = st.one_of(
    st.tuples(st.just("of_arrays"), function, way, array, array, array),
    st.tuples(st.just("with_number"), function, way, array, number, array),
    st.tuples(st.just("parts"), function, source, source, target),
    st.tuples(st.just("assign"), source, target),
    st.tuples(st.just("assign_number"), number, target),
    st.tuples(
        st.just("reduce"),
        st.sampled_from(["sum", "max"]),
        st.sampled_from([0, 1, None]),
        array,
        st.tuples(array, st.integers(0, ROWS - 1)),
    ),
    st.tuples(st.just("product"), st.sampled_from(["int32", "float32"]), array, array, array),
    st.tuples(st.just("keep"), st.sampled_from(["a result", "a view", "the array"]), array),
    st.tuples(st.just("look"), array),
    st.tuples(st.just("refuse"), array),
)
operation = st.one_of(
    mix,
    mix,
    mix,
    calculation,
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


class Stopped(Exception):
    """Ends a round in the middle."""


class Machine:
    """The same memory twice: Buffers, and NumPy arrays; and arrays of both libraries."""

    def __init__(self, kernels, encoders):
        self.kernels = kernels
        self.encoder = cyrt.CommandEncoder()
        self.streams = [cyrt.Stream(), self.encoder.stream][:encoders]
        self.blocks = contextlib.ExitStack()  # no block ends before all do: its end is a commit
        self.arrays = [np.arange(SIZE, dtype=np.uint32) + i for i in range(BUFFERS)]
        self.buffers = [self.fresh(array) for array in self.arrays]
        first = np.arange(ROWS * ROWS, dtype=np.int32).reshape(ROWS, ROWS)
        self.values = [(cyrt.asarray(first * k), first * k) for k in (1, -5, 77)]
        self.kept, self.round = deque(maxlen=3), 0

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

    def run(self, program):
        for kind, *args in program:
            getattr(self, kind)(*args)

    def stream(self, number):
        self.blocks.enter_context(self.streams[number % len(self.streams)])

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

    def calculate(self, name, how, a, b, at):
        """Calculate in both libraries, each of which has its own of the operands."""
        if how == "new":
            self.values[at] = tuple(map(getattr(operator, name), a, b))
            return
        for library, x, y, target in zip((cyrt, np), a, b, self.values[at], strict=True):
            if how == "in place":
                getattr(operator, f"i{name}")(target, y)
            elif how == "copied":
                target[...] = getattr(operator, name)(x, y)
            else:
                getattr(library, FUNCTIONS[name])(x, y, out=target)

    def current(self, number):
        kind, even, odd = number
        return kind(odd if self.round % 2 else even)

    def of_arrays(self, name, how, a, b, at):
        self.calculate(name, how, self.values[a], self.values[b], at)

    def with_number(self, name, how, a, number, at):
        value = self.current(number)
        # NumPy's numbers have a type that promotes; those of cyrt have none.
        self.calculate(name, how, self.values[a], (value, int(value)), at)

    def parts(self, name, a, b, target):
        for i in range(2):
            x, y, z = (PARTS[part](self.values[at][i], k) for at, part, k in (a, b, target))
            z[...] = getattr(operator, name)(x, y)

    def assign(self, a, target):
        for i in range(2):  # They may overlap.
            x, y = (PARTS[part](self.values[at][i], k) for at, part, k in (a, target))
            y[...] = x

    def assign_number(self, number, target):
        at, part, k = target
        for each in self.values[at]:
            PARTS[part](each, k)[...] = self.current(number)

    def reduce(self, name, axis, a, target):
        at, row = target
        for x, y in zip(self.values[a], self.values[at], strict=True):
            y[row] = x.max(axis) if name == "max" else x.sum(axis, dtype="int32")

    def product(self, dtype, a, b, at):
        x, y = self.values[a], self.values[b]
        if dtype == "float32":  # small numbers, so that all sums are exact
            x, y = ([(each % 7).astype(dtype) for each in pair] for pair in (x, y))
        self.values[at] = tuple((x @ y).astype("int32") for x, y in zip(x, y, strict=True))

    def keep(self, what, at):
        """Keep memory for a while: longer than a round, and not always equally long."""
        pair = self.values[at]
        if what == "a result":
            pair = tuple(x + 1 for x in pair)
        elif what == "a view":
            pair = tuple(x[1:] for x in pair)
        self.kept.append(pair)

    def look(self, at):
        own, host = self.values[at]
        np.testing.assert_array_equal(own.numpy(), host)

    def refuse(self, at):
        """Calls that raise, some of them after their first arguments were compared."""
        x = self.values[at][0]
        with pytest.raises(ValueError, match="shape"):
            x + x[:3]
        with pytest.raises(TypeError):
            self.kernels["plain", "mix2"][1, CHUNK](self.buffers[0], "x", CHUNK)
        with pytest.raises(IndexError):
            x[ROWS]

    def stop(self, inside, at):
        """Raise in the middle of the round."""
        with cyrt.batch() if inside else contextlib.nullcontext():
            self.with_number("add", "in place", at, (int, 1, 2), at)
            raise Stopped

    def check(self):
        for own, host in [*self.values, *self.kept]:
            np.testing.assert_array_equal(own.numpy(), host)
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
    with machine.blocks:
        machine.run([("stream", 0), *program])
    machine.check()


def run_rounds(kernels, encoders, program, rounds, edits, commit):
    """Run the program so many times with the edits. Return the machine and its batches."""
    cyrt.synchronize()
    cyrt.trim_memory()
    machine = Machine(kernels, encoders)
    with machine.blocks, logged() as batches:
        for number in range(rounds):
            operations, machine.round = list(program), number
            for where, place, how, other in edits:
                if where == number:
                    place %= len(operations)
                    operations[place : place + (how != "insert")] = [other] if how != "skip" else []
                    operations = operations or [other]
            with contextlib.suppress(Stopped):
                machine.run([("stream", 0), *operations])
            if commit:
                machine.commit()
    return machine, batches


def stats_of(stream):
    with stream:
        return cyrt.current_encoder().stats()


ROUNDS = 16
usual = st.one_of(mix, mix, mix, mix, calculation)  # most of them are replayed
replayable = st.one_of(usual, usual, usual, operation)
stop = st.tuples(st.just("stop"), st.booleans(), array)
edit = st.tuples(
    st.integers(4, ROUNDS - 1),
    st.integers(0, 30),
    st.sampled_from(["replace", "skip", "insert"]),
    st.one_of(replayable, replayable, replayable, stop),
)
all_streams = []  # a new one would else have the plans of one that has ended


def compare_rounds(kernels, setting, encoders, program, edits, commit):
    """Run them with replay, without it, and verified: the batches are the same."""
    found = []
    for mode in ("0", "1", "verify"):
        # When a fused plan is ready is no part of what is compared.
        setting(CYRT_REPLAY=mode, CYRT_FUSE="0")
        machine, batches = run_rounds(kernels, encoders, program, ROUNDS, edits, commit)
        stats = [stats_of(stream) for stream in machine.streams]
        all_streams.extend([*machine.streams, machine.encoder.stream])
        found.append((batches, [(each["operations"], each["commits"]) for each in stats]))
        machine.check()
    assert found[1] == found[0]
    assert found[2] == found[0]
    return sum(each["replayed"] for each in stats), sum(each["operations"] for each in stats)


@pytest.mark.usefixtures("batched", "pooled")
def test_random_rounds(kernels, setting):
    """Each seed draws the simplest example, and one at random. Further ones would differ from these
    in little."""
    replayed = operations = 0
    for number in range(examples.max_examples):

        @seed(SEED + number)
        @settings(examples, max_examples=2)
        @given(
            st.integers(1, 2),
            st.lists(usual, min_size=8, max_size=25)
            | st.lists(replayable, min_size=8, max_size=25),
            st.lists(edit, min_size=3, max_size=8),
            st.sampled_from([True, True, False]),
        )
        def compare(encoders, program, edits, commit):
            nonlocal replayed, operations
            found = compare_rounds(kernels, setting, encoders, program, edits, commit)
            replayed, operations = replayed + found[0], operations + found[1]

        compare()
    assert replayed > operations / 4


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
