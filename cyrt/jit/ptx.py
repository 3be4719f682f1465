"""Reading the entries of PTX: names, and each parameter's size and offset.

Source of the syntax: "PTX ISA", sections "Kernel Function Directives" and "Parameter State Space".
"""

from __future__ import annotations

import re

from cyrt.jit.parameters import Parameter, Signature

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = r"[A-Za-z_$%][\w$]*"
_ENTRY = re.compile(rf"\.entry\s+({_NAME})\s*(?:\(([^)]*)\))?")
_PARAM = re.compile(
    rf"\.param\s+(?:\.align\s+(?P<before>\d+)\s+)?\.(?P<type>\w+)"
    rf"(?P<pointer>\s+\.ptr(?:\s+\.(?:const|global|local|shared))?)?(?:\s+\.align\s+(?P<after>\d+))?"
    rf"\s+{_NAME}\s*(?:\[\s*(?P<count>\d*)\s*\])?\s*$"
)
_FLOATS = {"f16": ("f16", 2), "bf16": ("bf16", 2), "f32": ("f32", 4), "f64": ("f64", 8)}


def entries(text: str) -> list[str]:
    """Return the names of the kernels (``.entry``) in PTX, in its order."""
    return list(_find_declarations(text))


def all_from_ptx(text: str) -> dict[str, Signature]:
    """Return the result of `from_ptx` for every entry."""
    return {name: _signature(name, declared) for name, declared in _find_declarations(text).items()}


def from_ptx(text: str, entry: str) -> Signature:
    """Read the parameters that PTX declares for an entry.

    PTX has no signs, and seldom marks pointers: an integer is ``"word8" … "word64"``, and the
    last may be a pointer, through which the kernel may write.

    Parameters
    ----------
    text : str
        PTX.
    entry : str
        The kernel's symbol.

    Raises
    ------
    ValueError
        If there is no such entry (the message names the existing ones), or its parameters do not
        follow the PTX ISA.
    """
    declared = _find_declarations(text)
    if entry not in declared:
        known = ", ".join(declared) or "none"
        raise ValueError(f"the PTX has no entry {entry!r}; its entries: {known}")
    return _signature(entry, declared[entry])


def _find_declarations(text: str) -> dict[str, str]:
    # Entry name: the text between its parentheses.
    return {m[1]: (m[2] or "").strip() for m in _ENTRY.finditer(_COMMENT.sub(" ", text))}


def _signature(entry: str, declared: str) -> Signature:
    parts = declared.split(",") if declared else []
    return Signature(entry, tuple(_parameter(part.strip(), entry) for part in parts))


def _parameter(text: str, entry: str) -> Parameter:
    found = _PARAM.match(text)
    width = found and re.fullmatch(r"[usbf]+(\d+)", found["type"])
    if not found or not width:
        raise ValueError(f"cannot read the parameter `{text}` of the PTX entry {entry!r}")
    size, align = int(width[1]) // 8, int(found["before"] or 0)
    if found["count"] is not None:
        count = int(found["count"] or 0)
        return Parameter(f"struct[{count * size}]", "bytes", count * size, align or size, False)
    if found["type"] in _FLOATS:
        code, size = _FLOATS[found["type"]]
        return Parameter(f".{found['type']}", code, size, align or size, False)
    if found["pointer"]:
        return Parameter(f".{found['type']} .ptr", "pointer", 8, 8, True)
    return Parameter(f".{found['type']}", f"word{8 * size}", size, align or size, size == 8)
