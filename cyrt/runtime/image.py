"""Properties of code images, read without the driver: kind, target architecture, variables,
required blocks."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

_FATBIN = b"\x50\xed\x55\xba"
# Only comments precede .version, the first directive, and C++ cannot begin with it.
_PTX = re.compile(rb"(?>\s+|//[^\n]*\n|/\*.*?\*/)*+\.version\b", re.DOTALL)
_PTX_TARGET = re.compile(rb"^\s*\.target\s+sm_(\d+)", re.MULTILINE)
_PTX_VARIABLE = re.compile(
    rb"^\s*(?:\.(?:visible|weak|extern|common)\s+)*\.(?P<space>global|const)\b[^;={]*?\s"
    rb"(?P<name>[A-Za-z_$%][\w$]*)\s*(?:\[[^\]]*\]\s*)*[;=,]",
    re.MULTILINE,
)
# A declaration of variables that are not floating-point numbers: their attributes, the vector, the
# bits of an element, and the names with their sizes.
_PTX_INTEGERS = re.compile(
    rb"^\s*(?:\.(?:visible|weak|extern|common)\s+)*\.(?:global|const)\b(?P<attributes>[^;={]*?)"
    rb"(?:\.v(?P<vector>[24])\s+)?\.[bus](?P<bits>8|16|32|64)\s+(?P<names>[^;={]*)",
    re.MULTILINE,
)
_PTX_ALIGN = re.compile(rb"\.align\s+(\d+)")
_PTX_NAME = re.compile(rb"([A-Za-z_$%][\w$]*)\s*(?:\[[^\]]*\]\s*)*(?:,|$)")
_PTX_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
# An entry's name, and the directives between its parameters and its body (PTX ISA, "Performance-
# Tuning Directives" and "Cluster Dimension Directives").
_PTX_ENTRY = re.compile(rb"\.entry\s+([A-Za-z_$%][\w$]*)\s*(?:\([^)]*\))?([^{;]*)")
_PTX_REQUIRED = re.compile(rb"\.reqntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")
# Symbols that the compiler adds and no kernel writes: printf's texts, tables of libdevice, and what
# Numba looks up on the host.
_OWN = re.compile(r"\$str|__cudart_|__const_\$|\.nv\.|_ZN08NumbaEnv")

# Structures of ELF64 (Tool Interface Standard, "Executable and Linking Format"): header (ABI
# version, machine, offset of the section headers, flags, size and number of section headers, index
# of the section with their names), section (name, type, offset, size, link), symbol (name, type,
# section).
_ELF = struct.Struct("<8xB9xH20xQI6x3H")
_SECTION = struct.Struct("<II16xQQI20x")
_SYMBOL = struct.Struct("<IBxH16x")
_EM_CUDA, _SHT_SYMTAB, _STT_OBJECT = 190, 2, 1
# A kernel's section .nv.info.NAME is a list of attributes: format, attribute, value; with the
# format _SIZED the value is the number of bytes that follow. (Read off cubins of ptxas 12.9, 13.0.)
_INFO, _ATTRIBUTE, _SIZED = ".nv.info.", struct.Struct("<BBH"), 4
_REQNTID, _BLOCKS_ARE_CLUSTERS = 0x10, 0x5B


class RequiredBlock(NamedTuple):
    """The block that a kernel was compiled for.

    Attributes
    ----------
    size : (int, int, int)
        Threads in x, y and z.
    counts_clusters : bool
        Whether the grid of a launch counts clusters instead of blocks.
    """

    size: tuple[int, int, int]
    counts_clusters: bool


def kind(code: bytes) -> str:
    """Return ``"ptx"``, ``"cubin"`` or ``"fatbin"``, or an empty string for other bytes."""
    if code.startswith(b"\x7fELF"):
        return "cubin"
    if code.startswith(_FATBIN):
        return "fatbin"
    return "ptx" if _PTX.match(code) else ""


def target(code: bytes) -> int | None:
    """Return the architecture that a cubin or PTX was made for, 90 for ``sm_90``, or None."""
    if kind(code) == "ptx":
        found = _PTX_TARGET.search(code)
        return int(found[1]) if found else None
    if kind(code) != "cubin" or len(code) < _ELF.size:
        return None
    abi: int
    flags: int
    abi, machine, _, flags, *_ = _ELF.unpack_from(code)
    if machine != _EM_CUDA:
        return None
    return flags >> 8 & 0xFF if abi >= 8 else flags & 0xFF


def misfit(code: bytes, compute_capability: tuple[int, int], emulated: bool) -> str:
    """Return why a device cannot run the code and what to use instead.

    The result is empty if no reason is known.
    """
    major, minor = compute_capability
    own = 10 * major + minor
    if emulated and kind(code) == "cubin":
        return "a cubin, and the emulated device runs PTX only: give source or PTX"
    wanted = target(code)
    if wanted is None:
        return ""
    if kind(code) == "ptx":
        if wanted <= own:
            return ""
        return (
            f"PTX for sm_{wanted}, and the device has compute capability {major}.{minor}: "
            f"compile it for compute_{own} or below"
        )
    if wanted // 10 == major and wanted <= own:
        return ""
    return (
        f"a cubin for sm_{wanted}, and the device has compute capability {major}.{minor}: "
        f"compile it for sm_{own}, or give source or PTX"
    )


def variables(code: bytes) -> dict[str, bool] | None:
    """Return the ``__device__`` and ``__constant__`` variables in code.

    Returns
    -------
    dict of str to bool, or None
        For each symbol, whether it is ``__constant__``: no kernel writes those. None if they
        cannot be read from the code: the parts of a fatbin are compressed.
    """
    which = kind(code)
    if which == "ptx":
        return {
            name: found["space"] == b"const"
            for found in _PTX_VARIABLE.finditer(code)
            if not _OWN.match(name := found["name"].decode())
        }
    if which != "cubin":
        return None
    try:
        return _cubin_variables(code)
    except (struct.error, IndexError, ValueError):
        return None


def may_hold_pointers(code: bytes) -> bool:
    """Return whether a variable that the code uses may hold a pointer.

    That is a variable of integers or bytes with the alignment of a pointer, which structs can have,
    too. Variables of a fatbin may always hold one."""
    if kind(code) != "ptx":
        return variables(code) != {}
    code = _PTX_COMMENT.sub(b" ", code)
    for found in _PTX_INTEGERS.finditer(code):
        aligned = _PTX_ALIGN.search(found["attributes"])
        width = int(found["bits"]) // 8 * int(found["vector"] or 1)
        if int(aligned[1] if aligned else width) >= 8 and any(
            code.count(name) > 1 and not _OWN.match(name.decode())
            for name in _PTX_NAME.findall(found["names"])
        ):
            return True
    return False


def required_blocks(code: bytes) -> dict[str, RequiredBlock]:
    """Return the blocks that kernels require, by their symbols.

    The result does not contain kernels that run with different blocks, or kernels of a fatbin,
    whose parts are compressed.
    """
    which = kind(code)
    if which == "ptx" and b".reqntid" in code:
        return _ptx_required_blocks(code)
    if which == "cubin" and _ATTRIBUTE.pack(_SIZED, _REQNTID, 12) in code:
        try:
            return _cubin_required_blocks(code)
        except (struct.error, IndexError, ValueError):
            return {}
    return {}


def _ptx_required_blocks(code: bytes) -> dict[str, RequiredBlock]:
    found = {}
    for name, directives in _PTX_ENTRY.findall(_PTX_COMMENT.sub(b" ", code)):
        required = _PTX_REQUIRED.search(directives)
        if required:
            x, y, z = (int(size or 1) for size in required.groups())
            found[name.decode()] = RequiredBlock((x, y, z), b".blocksareclusters" in directives)
    return found


def _cubin_required_blocks(code: bytes) -> dict[str, RequiredBlock]:
    found = {}
    for name, _, offset, size, _ in _sections(code):
        if not name.startswith(_INFO):
            continue
        attributes, position = {}, offset
        while position < offset + size:
            form, attribute, value = _ATTRIBUTE.unpack_from(code, position)
            position += _ATTRIBUTE.size
            attributes[attribute] = code[position : position + value] if form == _SIZED else b""
            position += len(attributes[attribute])
        if _REQNTID in attributes:
            required = struct.unpack("<3I", attributes[_REQNTID])
            found[name.removeprefix(_INFO)] = RequiredBlock(
                required, _BLOCKS_ARE_CLUSTERS in attributes
            )
    return found


class _Section(NamedTuple):
    """A section of an ELF file: its name, type, offset and size in bytes, and linked section."""

    name: str
    kind: int
    offset: int
    size: int
    link: int


def _sections(code: bytes) -> list[_Section]:
    _, _, table, _, width, count, names = _ELF.unpack_from(code)
    headers = [_SECTION.unpack_from(code, table + i * width) for i in range(count)]
    return [_Section(_text(code, headers[names][2] + name), *rest) for name, *rest in headers]


def _text(code: bytes, offset: int) -> str:
    return code[offset : code.index(b"\0", offset)].decode()


def _cubin_variables(code: bytes) -> dict[str, bool] | None:
    sections = _sections(code)
    tables = [section for section in sections if section.kind == _SHT_SYMTAB]
    if not tables:
        return None
    found = {}
    for table in tables:
        for name, info, home in _SYMBOL.iter_unpack(code[table.offset : table.offset + table.size]):
            if info & 15 == _STT_OBJECT and 0 < home < len(sections):
                symbol = _text(code, sections[table.link].offset + name)
                if not _OWN.match(symbol):
                    found[symbol] = sections[home].name.startswith(".nv.constant")
    return found
