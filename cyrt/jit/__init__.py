"""Source to code for a device: NVRTC, and what a kernel's parameters are.

Its modules are imported at their first use: a program that compiles nothing pays for nothing.
"""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name in ("compiler", "signature"):
        return import_module(f"cyrt.jit.{name}")
    raise AttributeError(f"module 'cyrt.jit' has no attribute {name!r}")
