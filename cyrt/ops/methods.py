"""The functions behind the methods of arrays."""

from __future__ import annotations

from cyrt.operators import functions
from cyrt.ops import copy, creation, elementwise

for _module, _names in {
    copy: ("astype", "copy", "to_device"),
    creation: ("asarray", "zeros_like"),
    elementwise: ("clip",),
}.items():
    for _name in _names:
        setattr(functions, _name, getattr(_module, _name))
