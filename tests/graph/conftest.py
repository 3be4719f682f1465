"""Fixtures of kernels and their encoder, of calls of another library, of signals, and of streams
that are kept busy."""

from __future__ import annotations

import pytest
from calls import Calls
from gates import Gate
from interrupts import Interrupts
from outside import SOURCE

import cyrt
from cyrt.graph import plan_cache, template


@pytest.fixture(autouse=True)
def no_plans():
    """Other tests' plans: a new stream would have those of one that has ended, which decide when
    its batches come round."""
    plan_cache.forget()


@pytest.fixture(scope="module")
def library():
    return Calls()


@pytest.fixture(scope="module")
def module():
    return cyrt.Module(SOURCE)


@pytest.fixture
def encoder():
    with cyrt.CommandEncoder() as encoder:
        yield encoder


@pytest.fixture
def gate():
    """Its kernel keeps a stream busy, so that a commit waits for room."""
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def interrupt(tmp_path):
    """Raise SIGINT in a call of a driver function."""
    interrupts = Interrupts(tmp_path)
    yield interrupts
    interrupts.end()


@pytest.fixture
def fresh_templates():
    """Run the test on a stream of its own, with no templates of other tests."""
    template.forget()
    with cyrt.Stream():
        yield
    template.forget()
