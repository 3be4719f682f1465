"""Gradients of random programs, beside those of a reference tape over NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from random_functions import differentiate, differentiate_by_reference

import cyrt

COUNT = 16  # programs of a run; `check` has compared thousands by hand
REPEATED = range(3)  # programs that run several times, so that their graphs are replayed
ROUNDS = 6


def check(seed):
    for found, wanted in zip(
        differentiate(cyrt, seed), differentiate_by_reference(seed), strict=True
    ):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(
            found, wanted, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(wanted).max()), err_msg=str(seed)
        )


@pytest.mark.parametrize("seed", range(COUNT))
def test_gradients_are_those_of_a_reference(seed):
    check(seed)


def digest():
    """The bits of the gradients of some programs; each round gives the same."""
    rounds = [
        [each.tobytes() for seed in REPEATED for each in differentiate(cyrt, seed)]
        for _ in range(ROUNDS)
    ]
    for other in rounds[1:]:
        assert other == rounds[0]
    return [each.hex() for each in rounds[0]]


@pytest.mark.parametrize(
    "environment",
    [{"CYRT_GRAPHS": "0"}, {"CYRT_REPLAY": "0"}, {"CYRT_FUSE": "1", "CYRT_FUSE_AFTER": "2"}],
)
def test_gradients_are_the_same_however_they_run(python, environment):
    done = python(
        "import test_random_programs; print(*test_random_programs.digest())",
        folders=[Path(__file__).parent],
        **environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == digest()
