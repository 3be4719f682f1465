"""The attributes ``flat`` and ``flags`` of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops.shapes import reshape
from cyrt.ops.views import layout
from cyrt.tape import follows


class Flat:
    """The elements of an array in C order, as ``x.flat`` gives them.

    Indices are those of an array of one dimension. Iteration waits, and yields NumPy's scalars.
    """

    __slots__ = ("_base",)

    def __init__(self, base: Array):
        self._base = base

    @property
    def base(self) -> Array:
        """The array whose elements these are."""
        return self._base

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.base.numpy().flat)

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> np.ndarray:
        return self.base.__array__(dtype, copy=copy).reshape(-1)

    def __getitem__(self, key: Any) -> Array:
        return reshape(self.base, (-1,))[key].copy()

    def __setitem__(self, key: Any, value: Any) -> None:
        if not follows([self.base, value]):  # the array itself is written where it is followed
            try:
                reshape(self.base, (-1,), copy=False)[key] = value
                return
            except ValueError:  # no view is possible, or the value does not fit: it raises again
                pass
        line = self.base.flatten()
        line[key] = value
        self.base[...] = reshape(line, self.base.shape)

    def copy(self) -> Array:
        """Return a copy of the elements, an array of one dimension."""
        return self.base.flatten()


class Flags:
    """An array's memory layout by NumPy's names, ``flags.c_contiguous``, ``flags["C_CONTIGUOUS"]``.

    Attributes
    ----------
    c_contiguous, f_contiguous : bool
        Whether the elements are contiguous, in C order or in Fortran order.
    writeable : bool
        Whether the array may be written. This is False for a view whose elements share memory, and
        for every view of it.
    owndata : bool
        Whether the array is not a view.
    """

    c_contiguous: bool
    f_contiguous: bool
    writeable: bool
    owndata: bool
    contiguous: bool

    def __init__(self, x: Array):
        names = ("c_contiguous", "f_contiguous", "writeable", "owndata")
        vars(self).update(zip(names, layout(x), strict=True))
        vars(self)["contiguous"] = self.c_contiguous

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"flags: {name} follows from the array and cannot be set")

    def __getitem__(self, name: str) -> bool:
        try:
            return bool(vars(self)[name.lower()])
        except KeyError:
            raise KeyError(
                f"flags: there are {', '.join(vars(self)).upper()}, not {name}"
            ) from None

    def __repr__(self) -> str:
        return "\n".join(f"  {name.upper()} : {value}" for name, value in vars(self).items())
