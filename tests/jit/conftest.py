"""Settings of one test, and a disk cache of its own or none."""

from __future__ import annotations

import pytest

from cyrt import settings
from cyrt.jit import cache, toolchain


@pytest.fixture
def setting(monkeypatch):
    """Sets ``CYRT_`` variables for the test."""

    def forget():
        settings.get.cache_clear()
        cache.current.cache_clear()

    def set(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        forget()

    yield set
    monkeypatch.undo()
    forget()


@pytest.fixture(autouse=True)
def uncached(setting):
    """What a test compiles is compiled."""
    setting(CYRT_CACHE="0")


@pytest.fixture
def folder(setting, monkeypatch, tmp_path):
    """The folder of a cache that is used."""
    monkeypatch.setattr(toolchain, "_library", None)
    setting(CYRT_CACHE="1", CYRT_CACHE_DIR=str(tmp_path / "cache"))
    return tmp_path / "cache"
