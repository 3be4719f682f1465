from collections.abc import Callable

_Size = tuple[int, int, int]

def launches_of(function: Callable[[], object]) -> list[tuple[int, bytes, _Size, _Size, int]]: ...
