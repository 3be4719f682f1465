"""Schedules on the host; tests of optimizers compare the kernels with them."""

from __future__ import annotations

import math

import pytest

from cyrt import optim


def test_a_constant_rate():
    assert [optim.constant(0.3)(step) for step in (0, 1, 10**9)] == [0.3] * 3


def test_a_cosine_falls_to_its_end():
    rate = optim.cosine(2.0, 10, end=0.5)
    for step in range(15):
        part = min(step / 10, 1)
        assert rate(step) == pytest.approx(0.5 + 1.5 * (1 + math.cos(math.pi * part)) / 2)


def test_a_line_reaches_its_end():
    rate = optim.linear(2.0, 8, end=1.0)
    assert [rate(step) for step in (0, 2, 4, 8, 100)] == [2.0, 1.75, 1.5, 1.0, 1.0]
    assert [optim.linear(0.0, 2, end=1.0)(step) for step in range(4)] == [0.0, 0.5, 1.0, 1.0]


def test_an_exponential_decay_stops_at_the_least_rate():
    rate = optim.exponential(3.0, 10, 0.5, end=0.2)
    for step in (0, 1, 5, 10, 25, 10**6):
        assert rate(step) == pytest.approx(max(3.0 * 0.5 ** (step / 10), 0.2))
    assert optim.exponential(3.0, 1, 0.5)(10**9) == 0.0
    assert optim.exponential(3.0, 1, 1.0)(10**9) == 3.0


def test_a_warmup_rises_to_the_first_rate_of_what_is_behind_it():
    rate = optim.warmup(optim.cosine(2.0, 10, end=0.5), 4, start=1.0)
    assert [rate(step) for step in range(5)] == [1.0, 1.25, 1.5, 1.75, 2.0]
    assert [rate(4 + step) for step in range(12)] == [
        optim.cosine(2.0, 10, end=0.5)(step) for step in range(12)
    ]
    assert [optim.warmup(1, 2)(step) for step in range(4)] == [0.0, 0.5, 1.0, 1.0]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.constant("1"), TypeError, "constant: rate: expected a number, got str"),
        (lambda: optim.cosine(math.inf, 3), ValueError, "cosine: rate: expected a finite number"),
        (lambda: optim.cosine(1.0, 3.0), TypeError, "cosine: steps: expected an int, got float"),
        (
            lambda: optim.cosine(1.0, 0),
            ValueError,
            r"cosine: steps: .* from 1 to 2147483647, got 0",
        ),
        (lambda: optim.cosine(1.0, 1 << 31), ValueError, "cosine: steps: .* got 2147483648"),
        (lambda: optim.cosine(1.0, 3, end=None), TypeError, "cosine: end: expected a number"),
        (lambda: optim.linear(1.0, 0), ValueError, "linear: steps: expected an int from 1"),
        (lambda: optim.linear("a", 1), TypeError, "linear: rate: expected a number, got str"),
        (lambda: optim.exponential(1.0, 3, 0.0), ValueError, "factor: expected a number above 0"),
        (lambda: optim.exponential(1.0, 3, 1.5), ValueError, "factor: .* from 0 to 1, got 1.5"),
        (lambda: optim.exponential(-1.0, 3, 0.5), ValueError, "exponential: rate: .* 0 or more"),
        (lambda: optim.exponential(1.0, 3, 0.5, 2.0), ValueError, "end: .* from 0 to 1.0, got 2"),
        (lambda: optim.warmup([1], 3), TypeError, "warmup: rate: expected a number, got list"),
        (lambda: optim.warmup(1.0, -1), ValueError, "warmup: steps: expected an int from 1"),
        (lambda: optim.warmup(optim.warmup(1.0, 2), 2), ValueError, "without a warmup"),
        (lambda: optim.Schedule(lambda step: 0.1), TypeError, "rate: expected a number, got func"),
        (lambda: optim.Schedule(0.1, decay_steps=0.5), TypeError, "decay_steps: expected an int"),
        (
            lambda: optim.Schedule(0.1, factor=2),
            ValueError,
            "factor: expected a number from 0 to 1",
        ),
        (lambda: optim.constant(-0.1), ValueError, "constant: rate: expected a finite number of 0"),
        (lambda: optim.linear(1.0, 3, -1), ValueError, "linear: end: .* 0 or more, got -1"),
        (lambda: optim.warmup(1.0, 3, -1), ValueError, "warmup: start: .* 0 or more, got -1"),
        (lambda: optim.constant(1.0)(-1), ValueError, "Schedule: step: expected an int from 0"),
        (lambda: optim.constant(1.0)(0.5), TypeError, "Schedule: step: expected an int"),
    ],
)
def test_other_arguments_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
