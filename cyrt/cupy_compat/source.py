"""The text of a kernel: its parameters, and the code that makes arrays and numbers from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cyrt.cupy_compat import device_code
from cyrt.cupy_compat.parameters import CPP, UserParameter
from cyrt.dtypes import DType

_HALVES = ("float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class Argument:
    """The properties of an argument on which the source depends.

    Attributes
    ----------
    parameter : UserParameter
        Its declaration.
    dtype : DType
        Its element type.
    ndim : int
        Number of axes that the kernel sees; -1 for a number.
    contiguous : bool
        Whether its elements lie in C order without gaps.
    small : bool
        Whether sizes, strides and distances have 32 bits.
    """

    parameter: UserParameter
    dtype: DType
    ndim: int
    contiguous: bool
    small: bool

    @property
    def pointer(self) -> str:
        """The kernel's parameter for the memory of an array, or those for a number."""
        name, cpp = self.parameter.name, CPP[self.dtype.name]
        if self.ndim >= 0:
            return f"{'const ' if self.parameter.const else ''}{cpp}* _data_{name}"
        if self.dtype.kind == "c":
            part = CPP[self.dtype.real]
            return f"{part} _real_{name}, {part} _imag_{name}"
        if self.dtype.name in _HALVES:
            return f"unsigned short _bits_{name}"
        return f"{cpp} {name}"

    @property
    def numbers(self) -> list[str]:
        """The kernel's parameters for shape and strides."""
        return [
            f"{_number(self.small)} _{what}{axis}_{self.parameter.name}"
            for what in ("shape", "stride")
            for axis in range(self.ndim)
        ]

    @property
    def declaration(self) -> str:
        """The C++ statement that makes an array or a number of the kernel's parameters."""
        name, cpp = self.parameter.name, CPP[self.dtype.name]
        if self.ndim < 0:
            if self.dtype.kind == "c":
                return f"const {cpp} {name}(_real_{name}, _imag_{name});"
            if self.dtype.name in _HALVES:
                return f"const {cpp} {name} = {cpp}::from_bits(_bits_{name});"
            return ""
        sizes = [f"_shape{axis}_{name}" for axis in range(self.ndim)]
        steps = [f"_stride{axis}_{name}" for axis in range(self.ndim)]
        flags = f"{_truth(self.contiguous)}, {_truth(self.small)}"
        variable = name if self.parameter.raw else f"_raw_{name}"
        return (
            f"[[maybe_unused]] {'const ' if self.parameter.const else ''}"
            f"CArray<{cpp}, {self.ndim}, {flags}> {variable} = "
            f"{{const_cast<{cpp}*>(_data_{name}), {' * '.join(sizes) or '1'}, "
            f"{{{', '.join(sizes) or '1'}}}, {{{', '.join(steps) or '0'}}}}};"
        )

    def element(self, indexer: str, index: str, *, copy: bool = False) -> str:
        """Return the C++ declaration of the element of an array that is not raw."""
        if self.ndim < 0 or self.parameter.raw:
            return ""
        name, cpp = self.parameter.name, CPP[self.dtype.name]
        const = "const " if self.parameter.const else ""
        where = index if self.contiguous else f"{indexer}.get()"
        return f"[[maybe_unused]] {const}{cpp}{'' if copy else '&'} {name} = _raw_{name}[{where}];"


def indexer_parameters(name: str, ndim: int, small: bool) -> list[str]:
    """The kernel's parameters for the shape of an indexer."""
    return [f"{_number(small)} {name}{axis}" for axis in range(ndim)]


def indexer_declaration(name: str, ndim: int, small: bool) -> str:
    """Return the C++ declaration of an indexer, made of the kernel's parameters."""
    sizes = [f"{name}{axis}" for axis in range(ndim)]
    return (
        f"[[maybe_unused]] CIndexer<{ndim}, {_truth(small)}> {name} = "
        f"{{{' * '.join(sizes)}, {{{', '.join(sizes)}}}, {{}}}};"
    )


def prelude(types: Mapping[str, DType], arguments: Sequence[Argument], texts: str) -> str:
    """The lines before the kernel: headers, and the types of placeholders."""
    used = {each.dtype for each in arguments} | set(types.values())
    lines = [device_code.ARRAYS.replace("#pragma once\n", "")]
    if any(each.name in _HALVES for each in used) or "float16" in texts:
        lines.append(device_code.HALVES.replace("#pragma once\n", ""))
    if any(each.kind == "c" for each in used) or "complex" in texts:
        lines.append("#include <cupy/complex.cuh>\n")
    lines += [f"typedef {CPP[each.name]} {letter};\n" for letter, each in sorted(types.items())]
    return "".join(lines)


def _number(small: bool) -> str:
    return "int" if small else "long long"


def _truth(value: bool) -> str:
    return "true" if value else "false"
