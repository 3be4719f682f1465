"""What the tests of the built-in kernels share."""

from __future__ import annotations

import functools

import pytest


@pytest.fixture(scope="module")
def whole_module():
    """Compile the rows of a module that the wheel does not hold; once.

    For the emulated device NVRTC optimizes them less, in two thirds of the time: these tests are of
    what the sources compute, and what NVRTC makes of them for a GPU runs only there. Not so the
    operations of three arrays: a product and a sum are one operation only if NVRTC optimizes them.
    """
    import cyrt
    from cyrt.builtin import catalogue, loading
    from cyrt.jit.nvrtc import nvrtc_version

    compile = loading.jit.compiler.compile

    def compile_fast(source, *, options, **others):
        return compile(source, options=(*options, "--Ofast-compile=min"), **others)

    @functools.cache
    def whole(name):
        rows = [row for row in catalogue.modules()[name] if not row.prebuilt]
        with pytest.MonkeyPatch.context() as patch:
            fast = cyrt.Device().emulated and nvrtc_version() >= (12, 9)
            if fast and rows[0].template != "ternary":
                patch.setattr(loading.jit.compiler, "compile", compile_fast)
            return compiled(rows, cyrt.Device())

    compiled = loading.compile_rows

    return whole


@pytest.fixture
def compiled_at_once(whole_module, monkeypatch):
    """What the wheel does not hold is compiled a module at a time: it takes a tenth of the time."""
    from cyrt.builtin import loading

    monkeypatch.setattr(loading, "compile_rows", lambda rows, device: whole_module(rows[0].module))
