"""The functions behind the methods of arrays."""

from __future__ import annotations

from cyrt import numpy_names, ops
from cyrt.numpy_names.attributes import Flags, Flat
from cyrt.operators import functions
from cyrt.ops.copy import assign
from cyrt.ops.creation import sequence_beside
from cyrt.ops.inspection import namespace
from cyrt.ops.printing import repr_of, text_of
from cyrt.ops.take import get_by_arrays, set_by_arrays
from cyrt.ops.views import viewed

for _each in (Flags, Flat, assign, get_by_arrays, namespace, repr_of, sequence_beside,
              set_by_arrays, text_of, viewed):
    setattr(functions, _each.__name__, _each)
for _room in (ops, numpy_names):
    for _name in _room.__all__:
        setattr(functions, _name, getattr(_room, _name))
