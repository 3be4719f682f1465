"""The stand-in for cuDNN, on the emulated device."""

from __future__ import annotations

import pytest
from standin_cudnn import Frontend

from cyrt.builtin import library_attention, library_conv
from cyrt.graph import template
from cyrt.libs import cudnn


@pytest.fixture(scope="session")
def built(emulated):
    if not emulated:
        pytest.skip("on a GPU the library is NVIDIA's")
    made = Frontend()
    made.use_driver()
    return made


@pytest.fixture
def standin(built, monkeypatch):
    built.reset()
    opened = cudnn.open_frontend(built)
    monkeypatch.setattr(cudnn, "find", lambda: opened)
    monkeypatch.setattr(cudnn, "_handles", cudnn.Handles())
    template.forget()
    library_conv.decide(0, True, 1)
    library_attention.decide(0, True, from_=1, behind=0)
    yield built
    library_conv.decide(0)
    library_attention.decide(0)
    template.forget()
