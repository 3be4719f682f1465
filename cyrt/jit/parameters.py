"""Kernel parameters: their kinds, sizes and offsets.

Sizes and alignments of the built-in types are those of CUDA C++ ("Built-in Vector Types" in the
CUDA C++ Programming Guide, and `vector_types.h`); `long` has the width of the host's `long`, as in
NVRTC.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

_LONG = 4 if sys.platform == "win32" else 8

_SCALARS = {
    "bool": ("bool", 1),
    "char": ("i8", 1),
    "signed char": ("i8", 1),
    "unsigned char": ("u8", 1),
    "char8_t": ("u8", 1),
    "short": ("i16", 2),
    "unsigned short": ("u16", 2),
    "char16_t": ("u16", 2),
    "int": ("i32", 4),
    "unsigned int": ("u32", 4),
    "char32_t": ("u32", 4),
    "wchar_t": ("u16", 2) if sys.platform == "win32" else ("i32", 4),
    "long": (f"i{8 * _LONG}", _LONG),
    "unsigned long": (f"u{8 * _LONG}", _LONG),
    "long long": ("i64", 8),
    "unsigned long long": ("u64", 8),
    "float": ("f32", 4),
    "double": ("f64", 8),
    "long double": ("f64", 8),  # a double on the device
    "_Float16": ("f16", 2),
    "__half": ("f16", 2),
    "half": ("f16", 2),
    "__half_raw": ("f16", 2),
    "__nv_bfloat16": ("bf16", 2),
    "nv_bfloat16": ("bf16", 2),
    "__nv_bfloat16_raw": ("bf16", 2),
    "__bf16": ("bf16", 2),
    "size_t": ("u64", 8),
    "ssize_t": ("i64", 8),
    "ptrdiff_t": ("i64", 8),
    "intptr_t": ("i64", 8),
    "uintptr_t": ("u64", 8),
    "intmax_t": ("i64", 8),
    "uintmax_t": ("u64", 8),
    "clock_t": (f"i{8 * _LONG}", _LONG),
    "uchar": ("u8", 1),
    "ushort": ("u16", 2),
    "uint": ("u32", 4),
    "ulong": (f"u{8 * _LONG}", _LONG),
    "CUdeviceptr": ("u64", 8),
    "cudaTextureObject_t": ("u64", 8),
    "cudaSurfaceObject_t": ("u64", 8),
    "CUtexObject": ("u64", 8),
    "CUsurfObject": ("u64", 8),
}
for _bits in (8, 16, 32, 64):
    for _sign in ("", "u"):
        _SCALARS[f"{_sign}int{_bits}_t"] = (f"{_sign or 'i'}{_bits}", _bits // 8)
        _SCALARS[f"{_sign}int_least{_bits}_t"] = (f"{_sign or 'i'}{_bits}", _bits // 8)

# name: (code, size, alignment)
_TYPES = {name: (code, size, size) for name, (code, size) in _SCALARS.items()}

# CUDA's vector types: aligned to their size where that is a power of two, to 16 bytes at most.
for _base, _width in {
    "char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "float": 4,
    "long": _LONG, "ulong": _LONG, "longlong": 8, "ulonglong": 8, "double": 8,
}.items():  # fmt: skip
    for _count in (1, 2, 3, 4):
        _align = _width if _count in (1, 3) else min(_count * _width, 16)
        _TYPES[f"{_base}{_count}"] = ("bytes", _count * _width, _align)
    if _width == 8:
        _TYPES[f"{_base}4_16a"] = ("bytes", 32, 16)
        _TYPES[f"{_base}4_32a"] = ("bytes", 32, 32)

# A Python complex number fits every pair of floats.
for _name in ("float2", "cuFloatComplex", "cuComplex"):
    _TYPES[_name] = ("c64", 8, 8)
for _name in ("double2", "cuDoubleComplex"):
    _TYPES[_name] = ("c128", 16, 16)
for _space in ("thrust", "cuda::std"):
    _TYPES[f"{_space}::complex<float>"] = ("c64", 8, 8)
    _TYPES[f"{_space}::complex<double>"] = ("c128", 16, 16)
_TYPES["std::complex<float>"] = ("c64", 8, 4)
_TYPES["std::complex<double>"] = ("c128", 16, 8)

_TYPES |= {
    "dim3": ("bytes", 12, 4),
    "__half2": ("bytes", 4, 4),
    "half2": ("bytes", 4, 4),
    "__nv_bfloat162": ("bytes", 4, 4),
    "nv_bfloat162": ("bytes", 4, 4),
    "__int128": ("bytes", 16, 16),
    "unsigned __int128": ("bytes", 16, 16),
    "CUtensorMap": ("bytes", 128, 64),
}

#: Namespaces whose types have the same names as the unqualified types above.
_STANDARD = ("::", "std::", "cuda::std::")
#: Inline namespaces that a library's version adds; users do not write them.
_VERSIONED = re.compile(r"\b(?:__\d+|_V\d+|__cxx11|(?:THRUST|CUB|CCCL)_\w+_NS)::")


def type_layout(name: str) -> tuple[str, int, int]:
    """Return (code, size, alignment) of a type taken by value.

    Parameters
    ----------
    name : str
        A C++ type without qualifiers, its words in their usual order (``unsigned long long``).

    Returns
    -------
    tuple
        An unknown name is a struct or an enumeration: ``("unknown", 0, 1)``, as is its size.
    """
    name = _VERSIONED.sub("", name)
    for space in ("", *_STANDARD):
        if name.startswith(space):
            found = _TYPES.get(name[len(space) :])
            # Only scalars have standard names: std::float2 would be another type.
            if found and (not space or space == "::" or found[0] != "bytes"):
                return found
    return "unknown", 0, 1


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel.

    Attributes
    ----------
    type : str
        The C++ type in its usual spelling, e.g. ``const float*``.
    code : str
        ``"pointer"``; ``"reference"``, which no kernel takes; ``"bool"``;
        ``"i8" … "i64"``, ``"u8" … "u64"``; ``"f16"``, ``"bf16"``,
        ``"f32"``, ``"f64"``; ``"c64"``, ``"c128"`` (two floats or doubles); ``"bytes"``, a struct
        by value; ``"unknown"``, a struct or an enumeration by value; ``"word8" … "word64"``, from
        PTX alone: an integer of unknown sign; a ``"word64"`` may also be a pointer.
    size, align : int
        In bytes; size 0 is unknown and to be completed.
    writes : bool
        True if the kernel may write through it: ``T*``, not ``const T*``.
    name : str
        Empty if the source of the signature has no names.
    """

    type: str
    code: str
    size: int
    align: int
    writes: bool
    name: str = ""

    @property
    def indirect(self) -> bool:
        """True if it points to pointers, so that the kernel accesses memory without an argument."""
        return self.code == "pointer" and self.type.count("*") > 1

    @property
    def holds_pointers(self) -> bool:
        """True if it points to pointers, or to structs, which may hold some."""
        if self.code != "pointer" or "*" not in self.type:
            return False
        pointee = " ".join(
            word
            for word in self.type.partition("*")[0].split()
            if word not in ("const", "volatile")
        )
        return self.indirect or (pointee != "void" and type_layout(pointee)[0] == "unknown")

    def __str__(self) -> str:
        if not self.name:
            return self.type
        if "(*)" in self.type:
            return self.type.replace("(*)", f"(*{self.name})", 1)
        return f"{self.type} {self.name}"


def by_value(type: str, name: str = "") -> Parameter:
    """Return the parameter of a non-pointer type, with the layout from `type_layout`."""
    return Parameter(type, *type_layout(type), writes=False, name=name)


def pointer(pointee: str, *, const: bool, name: str = "") -> Parameter:
    """Return the parameter of type ``pointee*``; `const` says that the pointee is not written."""
    return Parameter(f"{pointee}*", "pointer", 8, 8, not const, name)


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel's name and parameters, in order.

    The layout is a C struct's: each parameter at the next multiple of its alignment.
    """

    name: str
    parameters: tuple[Parameter, ...]

    def __str__(self) -> str:
        return f"void {self.name}({', '.join(map(str, self.parameters))})"

    @property
    def complete(self) -> bool:
        """True if every size is known."""
        return all(p.size for p in self.parameters)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Byte offset of each parameter.

        Raises
        ------
        ValueError
            If a size is unknown.
        """
        return tuple(offset for offset, _ in self.extents)

    @property
    def extents(self) -> tuple[tuple[int, int], ...]:
        """(offset, size) of each parameter in bytes; a `ValueError` if a size is unknown."""
        start, found = 0, []
        for number, p in enumerate(self.parameters, 1):
            if not p.size:
                raise ValueError(
                    f"parameter {number} ({p}) of `{self}` has a type of unknown size; "
                    "declare it with a built-in type of its size, or give source or PTX, which "
                    "tell the size"
                )
            start = -(-start // p.align) * p.align
            found.append((start, p.size))
            start += p.size
        return tuple(found)

    def completed(self, sizes: Sequence[tuple[int, int]]) -> Signature:
        """Return this signature with unknown sizes filled in and known ones checked.

        Parameters
        ----------
        sizes : sequence of (offset, size)
            Bytes, one pair per parameter, from ``cuFuncGetParamInfo``.

        Raises
        ------
        ValueError
            If the number of parameters, a size or an offset differs from this signature.
        """
        if len(sizes) != len(self.parameters):
            raise ValueError(
                f"`{self}` has {len(self.parameters)} parameters, the compiled kernel {len(sizes)}"
            )
        end, filled = 0, []
        for number, (p, (offset, size)) in enumerate(zip(self.parameters, sizes, strict=True), 1):
            if not p.size:
                p = replace(p, size=size, align=_alignment(end, offset, size))
            start = -(-end // p.align) * p.align
            if (start, p.size) != (offset, size):
                raise ValueError(
                    f"parameter {number} ({p}) of `{self}` takes {p.size} bytes at offset {start}, "
                    f"the compiled kernel's {size} bytes at offset {offset}"
                )
            filled.append(p)
            end = offset + size
        return Signature(self.name, tuple(filled))

    def refined(self, compiled: Signature) -> Signature:
        """Return this signature, completed from the one that the compiled code declares.

        If this one has only a type's name and PTX passes it in a register type, it is an
        enumeration: an integer of unknown sign.
        """
        if len(compiled.parameters) == len(self.parameters):
            pairs = zip(self.parameters, compiled.parameters, strict=True)
            return Signature(
                self.name,
                tuple(
                    p
                    if p.size
                    else replace(p, code=c.code, size=c.size, align=c.align, writes=c.writes)
                    for p, c in pairs
                ),
            ).completed(compiled.extents)
        return self.completed(compiled.extents)

    def without_last(self, count: int) -> Signature:
        """Return this signature without its last `count` parameters."""
        return Signature(self.name, self.parameters[: len(self.parameters) - count])

    def with_names(self, names: Sequence[str]) -> Signature:
        """Return this signature with parameter names filled in, if there is one for each."""
        if len(names) != len(self.parameters):
            return self
        pairs = zip(self.parameters, names, strict=True)
        return Signature(self.name, tuple(replace(p, name=p.name or n) for p, n in pairs))


def _alignment(end: int, offset: int, size: int) -> int:
    # The largest power of two that is consistent with the parameter's offset and divides its size.
    # Offsets that only a wide alignment explains (an over-aligned struct) are covered too.
    for align in (128, 64, 32, 16, 8, 4, 2, 1):
        if offset % align == 0 and size % align == 0 and -(-end // align) * align == offset:
            return align
    return 1
