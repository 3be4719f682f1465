"""Fixtures of calls of another library."""

from __future__ import annotations

import pytest
from calls import Calls
from interrupts import Interrupts

import cyrt
from cyrt.graph import template


@pytest.fixture(scope="module")
def library():
    return Calls()


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
