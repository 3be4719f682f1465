"""Programs that repeat a round: they come to launch what their graphs hold, and patch nothing."""

from __future__ import annotations

import random
from collections import deque

import numpy as np
import pytest
from rounds.adam import Adam
from rounds.k_means import KMeans
from rounds.keeping import Keeping
from rounds.mlp import Training
from rounds.program import Rounds
from rounds.stencil import Stencil
from rounds.transformer import Decoding
from settling import settle

import cyrt

pytestmark = pytest.mark.usefixtures("pooled", "batched")
WIDTHS = 16, 32, 32, 10  # a perceptron's: its operations count, not how long they take
both = pytest.mark.parametrize("commit", [True, False], ids=["a commit a round", "no commit"])


def changes(work):
    encoder = cyrt.current_encoder()
    before = encoder.stats()
    work()
    after = encoder.stats()
    return {key: after[key] - before[key] for key in before}


def run(program, rounds, commit):
    for _ in range(rounds):
        program.run()
        if commit:
            cyrt.commit()


def share_patched(program, rounds, commit):
    found = changes(lambda: run(program, rounds, commit))
    return found["patched"] / found["operations"]


@both
@pytest.mark.parametrize(
    "make",
    [
        lambda: Adam(50, kept=True),
        lambda: Adam(50, kept=False),
        lambda: Stencil(32),
        lambda: Training(WIDTHS),
        Keeping,
        lambda: KMeans(256),
    ],
    ids=["Adam", "Adam thrown away", "stencil", "training", "keeping", "k-means"],
)
def test_a_program_settles(make, commit):
    with cyrt.Stream():
        program = make()
        settle(program, commit=commit)
        assert share_patched(program, 4, commit) <= 0.02
        program.check()


@both
def test_a_cache_that_grows_is_patched_alone(commit):
    """A layer writes two rows, and reads both caches up to the new length: twelve operations of
    the products and of the softmax have another size every round."""
    with cyrt.Stream():
        program = Decoding()
        settle(program, commit=commit)
        assert share_patched(program, 8, commit) <= 0.35
        program.check()


def test_a_program_settles_beside_one_that_has_ended():
    """The streams keep blocks for the rounds of programs that do not run any more: together they
    are as many as the pool may have."""
    cyrt.synchronize()
    cyrt.trim_memory()
    streams = [cyrt.Stream() for _ in range(3)]
    for stream in streams:
        with stream:
            program = Adam(50, kept=True)
            run(program, 12, False)
            assert share_patched(program, 2, False) <= 0.02
            program.check()
            cyrt.synchronize()
        del program


@pytest.mark.parametrize(
    "make",
    [lambda: Adam(30, kept=True), lambda: Adam(7, kept=True), Keeping, lambda: Training(WIDTHS)],
    ids=["Adam of 30", "Adam of 7", "keeping", "training"],
)
def test_a_shorter_program_settles_after_a_longer_one(make):
    """The round of the longer one, 700 operations, is no multiple of theirs; the operations of the
    shorter Adams equal those 700 before."""
    cyrt.synchronize()
    cyrt.trim_memory()
    with cyrt.Stream():
        program = Adam(50, kept=True)
        run(program, 12, False)
        program = make()
        run(program, 16, False)
        assert share_patched(program, 6, False) <= 0.02
        program.check()


def evaluate(x, length):
    """Run operations of other kernels than the programs, and wait."""
    for _ in range(length):
        x = cyrt.tanh(cyrt.exp(-cyrt.abs(x)))
    return float(x.sum())


@pytest.mark.parametrize("length", [10, 100])
@pytest.mark.parametrize(
    "make", [lambda: Adam(30, kept=True), lambda: Training(WIDTHS)], ids=["Adam of 30", "training"]
)
def test_a_program_goes_on_after_evaluations(make, length):
    """The first evaluations move the boundaries to where the program goes on after them. The long
    one, of 400 operations, looks like another program for a while."""
    x = cyrt.ones(1000)
    cyrt.synchronize()
    cyrt.trim_memory()
    with cyrt.Stream():
        program = make()
        for _ in range(5):
            run(program, 12, False)
            expected = evaluate(x, length)
        found = [changes(lambda: run(program, 1, False)) for _ in range(4)]
        patched, operations = (
            sum(each[key] for each in found) for key in ("patched", "operations")
        )
        assert patched <= 0.02 * operations, found
        assert evaluate(x, length) == expected
        program.check()


@pytest.mark.parametrize("end", [cyrt.commit, cyrt.synchronize], ids=["commit", "wait"])
@pytest.mark.parametrize("length", [200, 300])
def test_an_evaluation_may_end_with_a_whole_batch(length, end):
    """The wait behind it finds nothing recorded, and still shows where the program goes on."""

    def train(x, rounds):
        for _ in range(rounds):
            for i in range(50):
                x = x * 0.5 + b
                if i % 9 == 3:
                    kept.append(x)
        return x

    kept = deque(maxlen=20)
    with cyrt.Stream():
        b = cyrt.ones(1024)
        kept.append(train(b, 60))
        end()
        for epoch in range(6):
            found = changes(lambda: kept.append(train(b, 20)))
            assert epoch < 3 or found["patched"] <= 0.02 * found["operations"]
            y = b
            for _ in range(length):
                y = cyrt.tanh(y)
            end()
    assert abs(float(kept[-1][0]) - 2) < 1e-5


@pytest.mark.parametrize("end", [cyrt.commit, cyrt.synchronize], ids=["commit", "wait"])
def test_a_program_of_equal_length_takes_over_the_round(end):
    """Results live for a time that changes, so no round shows in them: the operations alone repeat,
    and their period divides the known round."""
    cyrt.synchronize()
    cyrt.trim_memory()
    x, b, kept = cyrt.ones(1024), cyrt.ones(1024), []
    with cyrt.Stream():

        def rounds(operation, count):
            nonlocal x
            for _ in range(count):
                for i in range(50):
                    x = operation(x)
                    if i % 7 == 3:
                        kept.append(x)
                del kept[: 3 if len(kept) > 13 else 0]
                end()

        rounds(lambda x: x * 0.5 + b, 60)
        rounds(lambda x: cyrt.maximum(x - b, 0.25), 60)
        found = changes(lambda: rounds(lambda x: cyrt.maximum(x - b, 0.25), 20))
        assert found["commits"] == 20
        assert found["patched"] <= 20 * 17  # the seven results that are kept, and what reads them
        assert x[0].item() == 0.25


class Script(Rounds):
    """Operations in no order on results that live for any time, the same every round."""

    def __init__(self, seed, length):
        super().__init__()
        rng = random.Random(seed)
        self.kept, self.young = rng.randint(2, 12), rng.randint(2, 20)
        self.start = [np.full(rng.choice((16, 300, 2000)), i, np.float32) for i in range(self.kept)]
        self.state = [cyrt.array(x) for x in self.start]
        self.script = [
            (
                rng.randrange(4),
                rng.random(),
                rng.choice((8, 64, 500, 1500)),
                rng.randrange(self.kept) if rng.random() < 0.12 else None,
            )
            for _ in range(length)
        ]

    def step(self):
        self.run_script(cyrt, self.state)

    def run_script(self, xp, state):
        young = []
        for kind, choice, size, target in self.script:
            pool = state + young
            x = pool[int(choice * len(pool))]
            x = x[:size]
            y = (x + 1, x * 0.5, xp.maximum(x, 1), -x)[kind]
            if target is not None:
                state[target] = y
            else:
                young = [*young, y][-self.young :]

    def results(self):
        return self.state

    def expected(self):
        state = list(self.start)
        for _ in range(self.rounds):
            self.run_script(np, state)
        return state


@both
@pytest.mark.parametrize(("seed", "length"), list(enumerate([90, 200, 300, 451, 700, 1000])))
def test_a_random_program_settles(seed, length, commit):
    with cyrt.Stream():
        program = Script(seed, length)
        settle(program, commit=commit)
        assert share_patched(program, 4, commit) <= 0.02
        program.check()


@both
def test_a_round_is_cut_at_the_same_operations(commit):
    """700 operations of 14 kinds: by their kinds alone they would come round after 14."""
    with cyrt.Stream():
        program = Adam(50, kept=True)
        settle(program, commit=commit)
        encoder = cyrt.current_encoder()
        found = set()
        for _ in range(4):
            ended = encoder.stats()["commits"]
            run(program, 1, commit)
            found.add((encoder.stats()["commits"] - ended, encoder.num_ops))
        assert len(found) == 1
        assert found.pop()[0] == 6  # as few as can be


@pytest.mark.parametrize(("every", "least"), [(7, 100), (30, 240), (2, 100)])
def test_an_operation_of_every_nth_round_settles(every, least):
    """A batch is several rounds of 11: the operation is at the same place of it soon."""
    with cyrt.Stream():
        x = cyrt.ones(64)

        def rounds(first, last):
            nonlocal x
            for i in range(first, last):
                y, z = cyrt.sin(x), cyrt.cos(x)
                y = cyrt.tanh(z - (y * z + 0.1))
                x = cyrt.exp(-y * y) * 0.5 + 0.2
                if i % every == every - 1:
                    x.mean()

        rounds(0, least)
        found = changes(lambda: rounds(least, least + 10 * every))
        assert found["patched"] <= 0.02 * found["operations"]
        assert found["operations"] / found["launches"] >= 60


@both
def test_results_that_are_kept_for_ever_move_no_other_address(commit):
    """Each round keeps one: its writer is patched, and nothing else."""
    with cyrt.Stream():
        x, b, kept = cyrt.zeros(1024), cyrt.ones(1024), []

        def rounds(count):
            nonlocal x
            for _ in range(count):
                for i in range(100):
                    x = x * 0.5 + b
                    if i == 40:
                        kept.append(x)
                if commit:
                    cyrt.commit()

        rounds(20)
        found = changes(lambda: rounds(8))
        assert found["patched"] <= 0.03 * found["operations"]
        assert len({y.ptr for y in kept}) == 28


def test_a_longer_round_is_cut_at_the_commits():
    """Every tenth result is kept: ten rounds of 80 operations repeat, with a commit after each."""
    with cyrt.Stream():
        x, kept = cyrt.ones(400), []

        def rounds(count):
            nonlocal x
            for i in range(count):
                for _ in range(20):
                    x = cyrt.cos(x) * 0.5 + 0.3 * x
                if i % 10 == 9:
                    kept.append(x)
                cyrt.commit()

        rounds(90)
        found = changes(lambda: rounds(30))
        assert found["launches"] == 30
        assert found["patched"] <= 0.02 * found["operations"]


@pytest.mark.parametrize("end", [cyrt.commit, cyrt.synchronize])
def test_a_program_that_waits_for_each_operation_makes_no_later_batch_short(end):
    with cyrt.Stream():
        x, kept = cyrt.ones(100), []
        functions = cyrt.cos, cyrt.sin, cyrt.tanh, cyrt.exp
        for _ in range(60):
            for i in range(200):
                x = functions[i * i % 7 % 4](x)
                if i % 50 == 0:
                    kept.append(x)
                end()

        def go_on():
            for _ in range(640):
                _ = x * 0.5 + 1

        assert changes(go_on)["launches"] <= 20


def test_a_history_patches_its_results_alone():
    """The carried value takes turns between two blocks: each has its graph, and in both the mean
    that is kept gets another address."""
    with cyrt.Stream():
        x, history = cyrt.ones(200), []

        def rounds(count):
            nonlocal x
            for _ in range(count):
                for _ in range(30):
                    x = x * 0.99 + 0.01
                history.append((x * x).mean())
                cyrt.commit()

        rounds(30)
        found = changes(lambda: rounds(10))
        assert found["patched"] == 10
        assert found["instantiations"] == 0
        assert history[-1].item() == pytest.approx(1)


@pytest.mark.parametrize(
    ("end", "first_rate"), [(cyrt.commit, 0.1), (cyrt.synchronize, 0.07)], ids=["commit", "wait"]
)
def test_a_rate_that_changes_every_round_makes_no_graphs(end, first_rate):
    """The round is two batches of one topology. Which of the two a batch equals more, but for the
    rate, shows only if all nodes are compared."""
    with cyrt.Stream():
        start = np.linspace(-1, 1, 100, dtype=np.float32)
        w, expected, at = cyrt.array(start), start, 0

        def rounds(count):
            nonlocal w, expected, at
            for _ in range(count):
                rate = first_rate / (1 + at * 0.01)
                at += 1
                for _ in range(40):
                    w = w - rate * (w * w - 1) * w
                    expected = expected - np.float32(rate) * (expected * expected - 1) * expected
                end()

        rounds(40)
        found = changes(lambda: rounds(10))
        assert found["patched"] <= 410
        assert found["instantiations"] == 0
        np.testing.assert_allclose(w.numpy(), expected, rtol=1e-5)


def kernel_that_adds():
    return cyrt.Kernel(
        'extern "C" __global__ void add(float* y, const float* x, float a)'
        "{ y[threadIdx.x] = x[threadIdx.x] + a; }",
        "add",
    )


def test_a_size_that_changes_every_time_is_patched_alone():
    """The other nodes keep the addresses of two sets, and an exec each."""
    kernel = kernel_that_adds()
    with cyrt.Stream():
        x, y = cyrt.zeros(32), cyrt.zeros(32)
        encoder = cyrt.current_encoder()

        def rounds(first, last):
            nonlocal x, y
            for i in range(first, last):
                for k in range(20):
                    kernel[1, 32](y, x, float(i if k == 7 else 0))
                    x, y = y, x
                kernel[1, 32](y, x, 0.0)
                x, y = y, x
                cyrt.commit()

        rounds(0, 20)
        found = changes(lambda: rounds(20, 40))
        assert found["patched"] == 20
        assert found["instantiations"] == 0
        assert len(encoder.last_plan()._graphs) == 2
        assert x.tolist() == [sum(range(40))] * 32


def test_many_positions_that_repeat_get_few_graphs():
    """A decoder that begins again repeats each of its positions, each of which changes one node:
    a graph for each would cost more than all its patches."""
    kernel = kernel_that_adds()
    with cyrt.Stream():
        x, y = cyrt.zeros(32), cyrt.zeros(32)

        def rounds(count):
            nonlocal x, y
            for _ in range(count):
                for i in range(100):
                    for k in range(20):
                        kernel[1, 32](y, x, float(i if k == 7 else 0))
                        x, y = y, x
                    cyrt.commit()

        rounds(2)
        found = changes(lambda: rounds(4))
        assert found["instantiations"] <= 6  # 400 patches, 200 of which pay for a graph of 20 nodes
        assert found["patched"] <= 400
        assert len(cyrt.current_encoder().last_plan()._graphs) <= 40
        assert x.tolist() == [6 * sum(range(100))] * 32


def test_chains_and_direct_launches_count_as_patched():
    kernel = cyrt.Kernel(
        'extern "C" __global__ void once(float* x) { x[threadIdx.x] += 1; }', "once"
    )
    with cyrt.Stream():
        x = cyrt.zeros(32)

        def batch():
            for _ in range(5):
                kernel[1, 32](x)
            cyrt.commit()

        cyrt.commit()
        assert changes(batch)["patched"] == 5  # the first time, as a chain
        assert cyrt.current_encoder().last_plan().patched == []  # its own graph was not
        found = changes(batch)
        assert (found["patched"], found["instantiations"]) == (0, 1)
        assert x.tolist() == [10] * 32


def test_a_search_that_paused_begins_again():
    """Operations without a round, for longer than a search lasts; then rounds."""
    order = random.Random(3)
    many = [cyrt.zeros(8) for _ in range(200)]
    with cyrt.Stream():
        for _ in range(75_000):
            x, y = order.choice(many), order.choice(many)
            x += y
        program = Adam(50, kept=True, n=64)
        run(program, 90, False)
        assert share_patched(program, 10, False) <= 0.02


def test_another_program_ends_the_pause_of_a_search():
    """A number that changes every time is patched every time, for longer than a search lasts."""
    with cyrt.Stream():
        x = cyrt.zeros(8)
        for i in range(40_000):
            x += i
        program = Adam(50, kept=True, n=64)
        run(program, 30, False)
        assert share_patched(program, 10, False) <= 0.02
