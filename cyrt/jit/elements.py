"""The arrays that fit a pointer: element types, size and alignment, from its C++ type.

The vector types are those of `vector_types.h`, `cuda_fp16.h` and `cuda_bf16.h`.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

from cyrt.dtypes import DTYPES
from cyrt.jit.parameters import Parameter, type_layout

_EVERY = frozenset(dtype.name for dtype in DTYPES)
_BYTES = frozenset({"bool", "int8", "uint8"})
_POINTERS = frozenset({"int64", "uint64"})

# Keys are codes of scalars. A byte may be part of any type; complex numbers are pairs.
_SCALARS: dict[str, Set[str]] = {
    "bool": _BYTES,
    "i8": _EVERY, "i16": {"int16"}, "i32": {"int32"}, "i64": {"int64"},
    "u8": _EVERY, "u16": {"uint16"}, "u32": {"uint32"}, "u64": {"uint64"},
    "f16": {"float16"}, "bf16": {"bfloat16"}, "f32": {"float32"}, "f64": {"float64"},
    "c64": {"complex64", "float32"}, "c128": {"complex128", "float64"},
}  # fmt: skip

_VECTOR = re.compile(
    r"(?P<unsigned>u?)(?P<base>char|short|int|long|longlong|float|double)(?P<count>[1-4])(_\d\da)?"
    r"|_*(?P<half>half|nv_bfloat16)2"
)
_QUALIFIERS = re.compile(r"^((const|volatile) )+|( (const|volatile))+$")


@dataclass(frozen=True, slots=True)
class Elements:
    """The arrays that fit a pointer.

    Attributes
    ----------
    Names of `cyrt.dtypes`; all of them if the pointee is bytes or an unknown struct.
    size, align : int
        Bytes of the pointee; 1 if every type fits.
    """

    types: frozenset[str]
    size: int
    align: int


def elements(parameter: Parameter) -> Elements | None:
    """Return which arrays fit a parameter.

    Parameters
    ----------
    parameter : Parameter
        A parameter from a declaration, a mangled name or the compiler.

    Returns
    -------
    Elements or None
        None if it is not a pointer, or if only PTX declares it as one.
    """
    if parameter.code != "pointer" or "*" not in parameter.type:
        return None
    name = _pointee(parameter.type)
    if name.endswith("*"):
        return Elements(_POINTERS, 8, 8)
    code, size, align = type_layout(name)
    types = _vector(name) or _SCALARS.get(code)
    return Elements(frozenset(types), size, align) if types else Elements(_EVERY, 1, 1)


def _pointee(type: str) -> str:
    """The unqualified type without its last star; for a pointer to an array, its element type."""
    name, group, rest = type.partition(" (")
    if group and not rest.startswith("*)"):
        return "*"
    return _QUALIFIERS.sub("", name if group else name.removesuffix("*"))


def _vector(name: str) -> Set[str] | None:
    """Element types of a CUDA vector type; None for other types."""
    found = _VECTOR.fullmatch(name.removeprefix("::"))
    if not found:
        return None
    if found["half"]:
        return {"float16" if found["half"] == "half" else "bfloat16"}
    base = found["base"].replace("longlong", "long long")
    code, size, _ = type_layout(f"unsigned {base}" if found["unsigned"] else base)
    pairs = {f"complex{16 * size}"} if code in ("f32", "f64") and found["count"] in "24" else set()
    return _SCALARS[code] | pairs
