"""A row of the catalogue: one built-in operation on operands of given types."""

from __future__ import annotations

from dataclasses import dataclass

PREBUILT = frozenset({
    "bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64",
})
# What only moves bits is served by the type of its size.
BY_SIZE = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}
MOVES = frozenset({"copy", "transpose", "where"})


@dataclass(frozen=True, slots=True)
class Row:
    """One operation on operands of given types.

    Attributes
    ----------
    op : str
        ``"add"``; a cast is ``"to_float32"``.
    family : str
        The template that the kernel is an instance of, and the module it is in.
    inputs : tuple of str
        Element types.
    output : str
        Element type.
    expression : str
        C++ of the result, of the inputs ``a``, ``b``, ``c`` in their compute types; ``T`` is the
        last input's type in memory.
    prebuilt : bool
        Whether the wheel holds it compiled.
    variants : tuple of str
        What its kernels' names end in.
    """

    op: str
    family: str
    inputs: tuple[str, ...]
    output: str
    expression: str
    prebuilt: bool
    variants: tuple[str, ...] = ("",)

    @property
    def dtype(self) -> str:
        """The element type that it is looked up by: that of the last input."""
        return self.inputs[-1] if self.inputs else self.output

    @property
    def module(self) -> str:
        """Name of the module that holds it, with all rows of its family and type."""
        return f"{self.family}_{self.dtype}"

    @property
    def kernels(self) -> tuple[str, ...]:
        """Symbols of its kernels, one a variant."""
        return tuple(f"cyrt_{self.op}_{self.dtype}{end}" for end in self.variants)


def is_prebuilt(*types: str) -> bool:
    """Whether the wheel holds kernels of such types; others are compiled at their first use."""
    return PREBUILT.issuperset(types)
