from collections.abc import Sequence

def explain_reduction(
    op: str, dtype: str, shape: Sequence[int], axes: Sequence[int],
    strides: Sequence[int] | None = ...,
) -> list[tuple[str, int, tuple[int, int]]]: ...
