"""The functions behind the methods of arrays."""

from __future__ import annotations

from cyrt import ops
from cyrt.operators import functions
from cyrt.ops.copy import assign
from cyrt.ops.inspection import namespace
from cyrt.ops.printing import repr_of, text_of
from cyrt.ops.take import get_by_arrays, set_by_arrays

for _each in (assign, namespace, repr_of, text_of, get_by_arrays, set_by_arrays):
    setattr(functions, _each.__name__, _each)
for _name in ops.__all__:
    setattr(functions, _name, getattr(ops, _name))
