from collections.abc import Sequence

from cyrt.builtin.launch import Explainer
from cyrt.builtin.row import Row

def param_bytes(row: Row) -> Sequence[int]: ...
def explain(
    explainer: Explainer,
    op: str,
    dtype: str,
    shapes: Sequence[tuple[int, ...]],
    *,
    activation: str | None = None,
    rms_norm: bool = False,
    layer_norm: bool = False,
) -> str: ...
