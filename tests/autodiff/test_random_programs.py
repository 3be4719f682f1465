"""Gradients of random programs, beside those of a reference tape over NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from random_functions import differentiate, differentiate_by_reference

import cyrt
from cyrt.builtin import background
from cyrt.graph import fusion

COUNT = 16  # programs of a run; `check` has compared thousands by hand
REPEATED = (5, 9, 11)  # programs that run so often that they are replayed and fused
ROUNDS = 12


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
    """Whether the programs were replayed, whether they were fused, and the bits of their values and
    gradients, which each round gives."""
    found, replayed, fused, streams = [], [], [], []
    fusion.set_timed(False)  # a plan that is timed runs plain every other time
    for seed in REPEATED:
        streams.append(cyrt.Stream())  # kept: a new one would have the plans of one that has ended
        with streams[-1]:
            rounds = []
            for _ in range(2):
                for _ in range(ROUNDS):
                    rounds.append([each.tobytes() for each in differentiate(cyrt, seed)])
                assert background.wait()  # until what is launched often has been compiled
            assert rounds == [rounds[0]] * len(rounds)
            found += [each.hex() for each in rounds[0]]
            stats = cyrt.current_encoder().stats()
        replayed.append(stats["replayed"] > 0)
        fused.append(stats["fused_plans"] > 0)
    fusion.set_timed(None)
    return [str(all(replayed)), str(all(fused)), *found]


# What all modes have, whatever the process of the tests has.
OWN = {
    **{"CYRT_GRAPHS": "1", "CYRT_REPLAY": "1", "CYRT_CHECK": "0", "CYRT_POOL": "1"},
    "CYRT_LAUNCH_BLOCKING": "0",
}
MODES = {
    "recorded": ({"CYRT_REPLAY": "0", "CYRT_FUSE": "0"}, ["False", "False"]),
    "replayed": ({"CYRT_FUSE": "0"}, ["True", "False"]),
    "fused": ({"CYRT_FUSE": "1", "CYRT_FUSE_AFTER": "2"}, ["True", "True"]),
    "without graphs": ({"CYRT_GRAPHS": "0"}, ["False", "False"]),
}


def test_gradients_are_the_same_however_they_run(python):
    found = {}
    for name, (environment, ran) in MODES.items():
        done = python(
            "import test_random_programs; print(*test_random_programs.digest())",
            folders=[Path(__file__).parent],
            **{**OWN, **environment},
        )
        assert done.returncode == 0, done.stderr
        *how, found[name] = done.stdout.split(maxsplit=2)
        assert how == ran, name
    for name, each in found.items():
        assert each == found["recorded"], name
