"""What the tests of the built-in kernels share."""

from __future__ import annotations

import functools

import pytest


@pytest.fixture(scope="module")
def whole_module():
    """Compile the rows of a module that the wheel does not hold; once."""
    import cyrt
    from cyrt.builtin import catalogue, loading

    compiled = loading.compile_rows

    @functools.cache
    def whole(name):
        return compiled(
            [row for row in catalogue.modules()[name] if not row.prebuilt], cyrt.Device()
        )

    return whole


@pytest.fixture
def compiled_at_once(whole_module, monkeypatch):
    """What the wheel does not hold is compiled a module at a time: it takes a tenth of the time."""
    from cyrt.builtin import loading

    monkeypatch.setattr(loading, "compile_rows", lambda rows, device: whole_module(rows[0].module))
