from collections.abc import Sequence
from typing import NamedTuple

from cyrt.ndarray import Array

class UniqueAll(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array

class UniqueCounts(NamedTuple):
    values: Array
    counts: Array

class UniqueInverse(NamedTuple):
    values: Array
    inverse_indices: Array

def unique_all(x: Array, /) -> UniqueAll: ...
def unique_counts(x: Array, /) -> UniqueCounts: ...
def unique_inverse(x: Array, /) -> UniqueInverse: ...
def unique_values(x: Array, /) -> Array: ...
def isin(
    x1: Array | float,
    /,
    test_elements: Array | float | Sequence[float],
    assume_unique: bool = False,
    *,
    invert: bool = False,
) -> Array: ...
