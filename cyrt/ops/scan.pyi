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
def cumsum(x: Array, axis: int | None = None, dtype: DType | None = None) -> Array: ...
def cumprod(x: Array, axis: int | None = None, dtype: DType | None = None) -> Array: ...
def diff(
    x: Array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array: ...
