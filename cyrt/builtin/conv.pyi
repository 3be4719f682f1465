from collections.abc import Sequence
from typing import Any

from cyrt.builtin.launch import Explainer
from cyrt.builtin.row import Row

def param_bytes(row: Row) -> Sequence[int]: ...
def explain(
    explainer: Explainer,
    op: str,
    dtype: str,
    shapes: Sequence[tuple[int, ...]],
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    input_dilation: Any = ...,
    groups: int = ...,
    flip: bool = ...,
) -> str: ...
