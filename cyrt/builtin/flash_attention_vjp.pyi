from collections.abc import Sequence

from cyrt.builtin.row import Row

def param_bytes(row: Row) -> Sequence[int]: ...
