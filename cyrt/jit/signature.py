"""A kernel's signature, from every available source.

The sources are the compiler's own symbols (`from_mangled`, `from_probe`), a C++ declaration
(`from_declaration`), and PTX (`from_ptx`), which has sizes but neither signs nor pointers.
`elements` gives the arrays that fit a pointer.
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
