"""No disk cache, unless a test asks for one; a count of compilations."""

from __future__ import annotations

import pytest

from cyrt.jit import nvrtc


@pytest.fixture(autouse=True)
def uncached(setting):
    """What a test compiles is compiled."""
    setting(CYRT_CACHE="0")


@pytest.fixture
def runs(monkeypatch):
    """Counts NVRTC's runs."""
    found = []
    run = nvrtc.run
    monkeypatch.setattr(nvrtc, "run", lambda *a, **k: found.append(a) or run(*a, **k))
    return found
