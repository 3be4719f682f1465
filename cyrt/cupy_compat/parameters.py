"""Lists of parameters such as ``"T x, raw float32 y"``, and the types of their placeholders."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cyrt.dtypes import DTYPES, DType, dtype

#: The types' names in C++.
CPP: dict[str, str] = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "complex<float>",
    "complex128": "complex<double>",
}
_NAMES = {
    **{each.name: each for each in DTYPES},
    "complex<float>": dtype("complex64"),
    "complex<double>": dtype("complex128"),
}
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PARAMETER = re.compile(
    r"\s*(?P<keywords>(\w+\s+)*)(?P<type>\w+(\s*<\s*\w+\s*>)?)\s+(?P<name>[A-Za-z_]\w*)\s*",
    re.ASCII,
)
_KEYWORDS = ("raw", "const", "_non_const")


@dataclass(frozen=True, slots=True)
class UserParameter:
    """A parameter of an elementwise kernel or of a reduction.

    Attributes
    ----------
    name : str
        Its name in the kernel's code.
    type : DType or str
        An element type, or the letter of a placeholder.
    raw : bool
        Whether the code indexes the array itself, so that it takes no part in broadcasting.
    const : bool
        Whether the code only reads it.
    """

    name: str
    type: DType | str
    raw: bool
    const: bool

    @property
    def cpp(self) -> str:
        """Its type in the kernel's code."""
        return self.type if isinstance(self.type, str) else CPP[self.type.name]

    def dtype(self, types: Mapping[str, DType]) -> DType:
        """Its element type, once those of the placeholders are known."""
        return types[self.type] if isinstance(self.type, str) else self.type


def check_name(name: str) -> str:
    """Return a kernel's name if C++ allows it."""
    if not isinstance(name, str):
        raise TypeError(f"name: expected a str, got {type(name).__name__}")
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"Invalid kernel name: {name!r}; expected letters, digits and underscores")
    return name


def parse(text: str, *, const: bool) -> tuple[UserParameter, ...]:
    """Read a list of parameters; an empty text has none."""
    if not isinstance(text, str):
        raise TypeError(
            f"expected a list of parameters such as 'T x, raw float32 y', got {type(text).__name__}"
        )
    return tuple(_parse_one(each, const) for each in text.split(",")) if text.strip() else ()


def _parse_one(text: str, const: bool) -> UserParameter:
    found = _PARAMETER.fullmatch(text)
    if not found:
        raise ValueError(f"parameter {text.strip()!r}: expected a type and a name")
    keywords, kind = found["keywords"].split(), re.sub(r"\s", "", found["type"])
    for each in keywords:
        if each not in _KEYWORDS:
            raise ValueError(f"parameter {text.strip()!r}: unknown keyword {each!r}")
    placeholder = len(kind) == 1 and kind.isalpha()
    if not placeholder and kind not in _NAMES:
        raise ValueError(
            f"parameter {text.strip()!r}: expected one letter or the name of a type, such as T or "
            f"float32, got {kind!r}"
        )
    const = "const" in keywords or (const and "_non_const" not in keywords)
    named: DType | str = kind if placeholder else _NAMES[kind]
    return UserParameter(found["name"], named, "raw" in keywords, const)


def resolve(
    kernel: str,
    parameters: Sequence[UserParameter],
    arrays: Sequence[DType | None],
    scalars: Sequence[DType | None],
    outputs: int,
) -> dict[str, DType]:
    """Find the types of placeholders.

    Parameters
    ----------
    kernel : str
        The name of the kernel, for messages.
    parameters : sequence of UserParameter
        Inputs, then outputs.
    arrays, scalars : sequence of DType or None
        For each argument its element type if it is an array, and if it is a number; both are None
        for outputs that are to be allocated.
    outputs : int
        Number of outputs; their types take precedence over those of inputs.

    Returns
    -------
    dict
        The type of each placeholder. Numbers decide it only if there is no array.
    """
    found: dict[str, tuple[DType, str]] = {}
    order = [*range(len(parameters) - outputs, len(parameters)), *range(len(parameters) - outputs)]
    for i in order:
        parameter, given = parameters[i], arrays[i]
        if given is None:
            continue
        if not isinstance(parameter.type, str):
            if given is not parameter.type:
                raise TypeError(
                    f"{kernel}: Type is mismatched: argument {parameter.name}: expected an array "
                    f"of {parameter.type.name}, got one of {given.name}"
                )
        elif found.setdefault(parameter.type, (given, parameter.name))[0] is not given:
            other, name = found[parameter.type]
            raise TypeError(
                f"{kernel}: Type is mismatched: argument {parameter.name}: expected an array of "
                f"{other.name}, which argument {name} gives to {parameter.type}, got one of "
                f"{given.name}"
            )
    types = {letter: each for letter, (each, _) in found.items()}
    for parameter, number in zip(parameters, scalars, strict=True):
        if number is not None and isinstance(parameter.type, str) and parameter.type not in found:
            known = types.setdefault(parameter.type, number)
            types[parameter.type] = dtype(_wider(known, number))
    for parameter in parameters:
        if isinstance(parameter.type, str) and parameter.type not in types:
            raise TypeError(
                f"{kernel}: the type {parameter.type} of {parameter.name} follows from no "
                "argument; pass the output, too"
            )
    return types


def _wider(one: DType, other: DType) -> str:
    import numpy as np

    return one.name if one is other else np.result_type(one.numpy, other.numpy).name
