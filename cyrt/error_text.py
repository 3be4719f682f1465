"""How errors show an argument: an array by its type and shape, any other value by a short repr."""

from __future__ import annotations

from reprlib import Repr
from typing import Any


class _Short(Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxtuple = self.maxlist = self.maxdict = 12
        self.maxstring = self.maxother = 80

    def repr1(self, x: Any, level: int) -> str:
        # NumPy's numbers, too, have a dtype and a shape, but no length. The elements of an array
        # on a device are not read: that would wait for it.
        if all(hasattr(type(x), each) for each in ("dtype", "shape", "__len__")):
            name = f"{type(x).__module__}.{type(x).__name__}".removeprefix("cyrt.ndarray.")
            article = "an" if name[0] in "AEIOUaeiou" else "a"
            return f"{article} {name} of {x.dtype}, shape {tuple(x.shape)}"
        return super().repr1(x, level)


show = _Short().repr
