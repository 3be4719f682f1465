"""A kernel's signature, from wherever it can be had.

From the compiler's own symbols (`from_mangled`, `from_probe`), from a C++ declaration
(`from_declaration`), or, knowing sizes but neither signs nor pointers, from PTX (`from_ptx`).
Which arrays fit its pointers: `elements`.
"""

from __future__ import annotations

from cyrt.jit.declaration import from_declaration
from cyrt.jit.elements import Elements, elements
from cyrt.jit.mangling import from_mangled, from_probe, variable_name
from cyrt.jit.parameters import Parameter, Signature
from cyrt.jit.ptx import entries, from_ptx

__all__ = [
    "Elements",
    "Parameter",
    "Signature",
    "elements",
    "entries",
    "from_declaration",
    "from_mangled",
    "from_probe",
    "from_ptx",
    "variable_name",
]
