from cyrt.dtypes import DType
from cyrt.ndarray import Array

def cumulative_sum(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Array: ...
def cumulative_prod(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Array: ...
def cumsum(
    x: Array, axis: int | None = None, dtype: DType | None = None, out: Array | None = None
) -> Array: ...
def cumprod(
    x: Array, axis: int | None = None, dtype: DType | None = None, out: Array | None = None
) -> Array: ...
def diff(
    x: Array,
    /,
    n: int = 1,
    axis: int = -1,
    prepend: Array | float | None = None,
    append: Array | float | None = None,
) -> Array: ...
