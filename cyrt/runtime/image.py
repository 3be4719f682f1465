"""Properties of code images, read without the driver: kind, target architecture, variables."""

from __future__ import annotations

import re
import struct

_FATBIN = b"\x50\xed\x55\xba"
# Only comments precede .version, the first directive, and C++ cannot begin with it.
_PTX = re.compile(rb"(?>\s+|//[^\n]*\n|/\*.*?\*/)*+\.version\b", re.DOTALL)
_PTX_TARGET = re.compile(rb"^\s*\.target\s+sm_(\d+)", re.MULTILINE)
_PTX_VARIABLE = re.compile(
    rb"^\s*(?:\.(?:visible|weak|extern|common)\s+)*\.(?P<space>global|const)\b[^;={]*?\s"
    rb"(?P<name>[A-Za-z_$%][\w$]*)\s*(?:\[[^\]]*\]\s*)*[;=,]",
    re.MULTILINE,
)
_PTX_CLUSTER_GRID = re.compile(
    rb"\.entry\s+(?P<name>[A-Za-z_$%][\w$]*)[^{;]*?\.blocksareclusters\b", re.MULTILINE
)
# Symbols that the compiler adds and no kernel writes: printf's texts, tables of libdevice.
_OWN = re.compile(r"\$str|__cudart_|__const_\$|\.nv\.")

# Structures of ELF64 (Tool Interface Standard, "Executable and Linking Format"): header (ABI
# version, machine, offset of the section headers, flags, size and number of section headers, index
# of the section with their names), section (name, type, offset, size, link), symbol (name, type,
# section).
_ELF = struct.Struct("<8xB9xH20xQI6x3H")
_SECTION = struct.Struct("<II16xQQI20x")
_SYMBOL = struct.Struct("<IBxH16x")
_EM_CUDA, _SHT_SYMTAB, _STT_OBJECT = 190, 2, 1
# Sections .nv.info.KERNEL: attributes of a format, a number and 16 bits, which are a length of more
# bytes in the format 4. (NVRTC 13 writes this number for .blocksareclusters.)
_ATTRIBUTE = struct.Struct("<BBH")
_HAS_LENGTH, _BLOCKS_ARE_CLUSTERS = 4, 0x5B


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


def cluster_grids(code: bytes) -> set[str]:
    """Return the kernels in PTX or a cubin whose launches' grids count clusters, not blocks."""
    which = kind(code)
    if which == "ptx" and b".blocksareclusters" in code:
        return {found["name"].decode() for found in _PTX_CLUSTER_GRID.finditer(code)}
    if which != "cubin":
        return set()
    try:
        return _cubin_cluster_grids(code)
    except (struct.error, IndexError, ValueError):
        return set()


def _cubin_cluster_grids(code: bytes) -> set[str]:
    *_, names = _ELF.unpack_from(code)
    sections = _cubin_sections(code)
    found = set()
    for name, _, place, size, _ in sections:
        title = _cubin_text(code, sections[names], name)
        at = place
        while title.startswith(".nv.info.") and at < place + size:
            form, number, value = _ATTRIBUTE.unpack_from(code, at)
            at += _ATTRIBUTE.size + (value if form == _HAS_LENGTH else 0)
            if number == _BLOCKS_ARE_CLUSTERS:
                found.add(title.removeprefix(".nv.info."))
    return found


def _cubin_sections(code: bytes) -> list[tuple[int, ...]]:
    _, _, table, _, width, count, _ = _ELF.unpack_from(code)
    return [_SECTION.unpack_from(code, table + i * width) for i in range(count)]


def _cubin_text(code: bytes, table: tuple[int, ...], offset: int) -> str:
    start = table[2] + offset
    return code[start : code.index(b"\0", start)].decode()


def _cubin_variables(code: bytes) -> dict[str, bool] | None:
    *_, count, names = _ELF.unpack_from(code)
    sections = _cubin_sections(code)
    tables = [section for section in sections if section[1] == _SHT_SYMTAB]
    if not tables:
        return None
    found = {}
    for _, _, place, size, strings in tables:
        for name, info, home in _SYMBOL.iter_unpack(code[place : place + size]):
            if info & 15 == _STT_OBJECT and 0 < home < count:
                symbol = _cubin_text(code, sections[strings], name)
                if not _OWN.match(symbol):
                    space = _cubin_text(code, sections[names], sections[home][0])
                    found[symbol] = space.startswith(".nv.constant")
    return found
