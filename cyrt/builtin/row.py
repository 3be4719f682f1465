"""A row of the catalogue: one built-in operation on operands of given types."""

from __future__ import annotations

from dataclasses import dataclass

PREBUILT = frozenset(
    {"bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"}
)
# Operations that only move bits use the type of the element's size.
BY_SIZE = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}
MOVES = frozenset({"copy", "transpose", "where"})


@dataclass(frozen=True, slots=True)
class Row:
    """One operation on operands of given types.

    Attributes
    ----------
    op : str
        The operation's name, such as ``"add"``; a cast is ``"to_float32"``.
    template : str
        The template of its kernels.
    inputs : tuple of str
        The element types of the inputs.
    output : str
        The element type of the output.
    expression : str
        The C++ expression of the result, with the inputs ``a``, ``b``, ``c`` in their compute
        types; ``T`` is the last input's type in memory.
    prebuilt : bool
        Whether the wheel holds the compiled kernels.
    variants : tuple of str
        The suffixes of its kernels' names.
    """

    op: str
    template: str
    inputs: tuple[str, ...]
    output: str
    expression: str
    prebuilt: bool
    variants: tuple[str, ...] = ("",)

    @property
    def dtype(self) -> str:
        """The element type of the last input, by which the row is looked up."""
        return self.inputs[-1] if self.inputs else self.output

    @property
    def module(self) -> str:
        """The name of the module of code that holds all rows of its template and type."""
        return f"{self.template}_{self.dtype}"

    @property
    def kernels(self) -> tuple[str, ...]:
        """The symbols of its kernels, one per variant."""
        return tuple(f"cyrt_{self.op}_{self.dtype}{end}" for end in self.variants)


def is_prebuilt(*types: str) -> bool:
    """Return whether the wheel has kernels for these types; others are compiled at first use."""
    return PREBUILT.issuperset(types)
