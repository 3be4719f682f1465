from typing import Any

from cyrt.runtime.memory import Buffer

def as_buffer(obj: Any, write: bool, layout: list[Any] | None = None) -> Buffer: ...
