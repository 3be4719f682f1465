"""Ctrl-C inside a call of the driver."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from cyrt.driver import table


class Interrupts:
    """Makes one of the next calls of a driver function end with a SIGINT.

    A Python function in the driver function's place would meet the signal itself.
    """

    def __init__(self, folder):
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            pytest.skip("there is no C compiler for a function that raises a signal")
        self.folder, self.replaced, self.libraries = folder, [], {}
        self.compiler = compiler

    def replace(self, name):
        if name not in self.libraries:
            target = self.folder / f"{name}.so"
            source = Path(__file__).with_name("interrupts.c")
            subprocess.run([self.compiler, "-shared", "-fPIC", "-o", target, source], check=True)
            library = self.libraries[name] = ctypes.CDLL(str(target))
            address = ctypes.cast(library.interrupt, ctypes.c_void_p).value
            before = table.replace(name, address)
            ctypes.c_void_p.in_dll(library, "original").value = before
            self.replaced.append((name, before))
        return self.libraries[name]

    def countdown(self, name):
        return ctypes.c_int.in_dll(self.replace(name), "countdown")

    def __call__(self, name, calls=1):
        """The signal comes in this call of the function from now on."""
        self.countdown(name).value = calls

    def came(self, name):
        return self.countdown(name).value == 0

    def end(self):
        for name, before in reversed(self.replaced):
            table.replace(name, before)
