"""A compilation's checked arguments, and the key of everything that can change the code."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import operator
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from cyrt import settings
from cyrt.jit import toolchain
from cyrt.jit.includes import Undecidable, dependencies, includes_anything

# Patterns are compiled at their first use: most programs give no options.
_ARCH = r"(sm|compute)_\d{2,3}[af]?"
_MACRO = r"[A-Za-z_]\w*(\([\w, .]*\))?"
_OWN_OPTION = r"(-arch|--gpu-architecture)\b"
_STD_OPTION = r"(-std|--std)\b"
_FOLDER_OPTION = r"(?:-I|--include-path\b)((?s:.*))"
_HEADER_OPTION = r"(?:-include|--pre-include)\b((?s:.*))"
# These options read or write additional files, or produce output that differs each time.
_TRANSIENT_OPTION = (
    r"--?(pch|create-pch|use-pch|pch-dir|pch-messages|instantiate-templates-in-pch|time"
    r"|fdevice-time-trace|no-cache)\b"
    # ptxas options, inside an option that forwards them.
    r"|(?s:.*)-(options-file|optf)\b"
)
_PLACED_OPTION = r"(-lineinfo|--generate-line-info|-G|--device-debug)\b"


class Job:
    """The checked arguments of `cyrt.jit.compiler.compile`."""

    def __init__(
        self,
        source: str,
        names: Sequence[str],
        arch: str,
        options: Sequence[str],
        headers: Mapping[str, str] | None,
        define: Mapping[str, object] | None,
        filename: str | None,
    ) -> None:
        _check_text("source", source, "a str of CUDA C++")
        if not isinstance(arch, str) or not re.fullmatch(_ARCH, arch):
            raise ValueError(f"arch is like 'sm_90', 'sm_90a' or 'compute_90', got {arch!r}")
        for kind, texts in (("names", names), ("options", options)):
            if not isinstance(texts, Sequence) or isinstance(texts, (str, bytes)):
                raise TypeError(f"{kind} is a sequence of str, got {texts!r}")
            for text in texts:
                _check_text(f"{kind}: {text!r}", text, f"one of a sequence of str for {kind}")
        if not all(name.strip() for name in names):
            raise ValueError(f"names holds an empty one: {names!r}")
        # NVRTC ignores spaces around an option.
        self.user_options = tuple(option.strip() for option in options)
        for option in self.user_options:
            if not option:
                raise ValueError(f"options holds an empty one: {list(options)!r}")
            if re.match(_OWN_OPTION, option):
                raise ValueError(
                    f"options: {option!r} cannot be given: code is compiled for the device's "
                    "architecture"
                )
        for kind, mapping in (("headers", headers), ("define", define)):
            if mapping is not None and not isinstance(mapping, Mapping):
                raise TypeError(f"{kind} is a mapping from names, got {type(mapping).__name__}")
        for name, text in (headers or {}).items():
            _check_text(f"headers: {name!r}", name, "the str name of a header")
            _check_text(f"headers[{name!r}]", text, "the header's text as a str")
        if filename is not None:
            _check_text("filename", filename, "a str")
        self.source, self.arch = source, arch
        self.filename = filename or "cyrt_kernel.cu"
        self.names = tuple(dict.fromkeys(names))
        self.headers = dict(headers or {})
        self.macros = tuple(_macro(name, value) for name, value in (define or {}).items())
        self.texts = (source, *self.headers.values(), *self.user_options, *self.macros)
        self.includes = any(map(includes_anything, self.texts))

    @property
    def cubin(self) -> bool:
        """True if code for a GPU itself is requested, rather than PTX."""
        return self.arch.startswith("sm_")

    @property
    def expressions(self) -> list[str]:
        """The names that NVRTC looks up; symbols are excluded."""
        return [name for name in self.names if not name.startswith("_Z")]

    @functools.cached_property
    def options(self) -> tuple[str, ...]:
        """The options of NVRTC, without those that a build adds."""
        std = [] if _any(_STD_OPTION, self.user_options) else ["-std=c++17"]
        lines = settings.get("CYRT_LINEINFO") and not _any(_PLACED_OPTION, self.user_options)
        # nvcc supports __int128 by default.
        own = [f"-arch={self.arch}", "-device-int128", *std, *(["-lineinfo"] if lines else [])]
        # The user's folders are searched before NVIDIA's.
        folders = [f"-I{f.path}" for f in toolchain.header_folders()] if self.includes else []
        return (*own, *self.user_options, *folders)

    def key(self, library: toolchain.Library) -> str | None:
        """Return a hash of everything that can change the result; None if that is unknown."""
        if not library.files or _any(_TRANSIENT_OPTION, self.user_options):
            return None
        folders = _values(self.user_options, _FOLDER_OPTION)
        known = toolchain.header_folders() if self.includes else ()
        known += toolchain.toolkit_folders(folders)
        try:
            read = dependencies(
                self.source,
                self.filename,
                self.headers,
                _values(self.user_options, _HEADER_OPTION),
                folders,
                [folder.path for folder in known],
                lambda: toolchain.lacking_names(known),
                "\n".join((*self.user_options, *self.macros)),
            )
        except (Undecidable, OSError):
            return None
        # Line tables contain the folder of a relative file name.
        placed = _any(_PLACED_OPTION, self.options)
        facts = (
            *(_recipe(), library.files, library.version),
            *(self.names, self.options, self.macros),
            *(self.filename, os.getcwd() if placed else None),
            *([(f.path, f.changed, f.packages) for f in known], read),
            *(self.headers, hashlib.sha256(self.source.encode()).hexdigest()),
        )
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _check_text(what: str, text: object, wanted: str) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{what}: expected {wanted}, got {type(text).__name__}")
    if "\0" in text:
        raise ValueError(f"{what} holds a NUL character; CUDA C++ is text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} is not text that UTF-8 can hold: {error}") from None


def _macro(name: object, value: object) -> str:
    if not isinstance(name, str) or not re.fullmatch(_MACRO, name):
        raise ValueError(f"define has {name!r}, which is not a macro's name")
    if value is None or value is True:
        return f"#define {name} 1"
    if isinstance(value, str):
        _check_text(f"define[{name!r}]", value, "a str")
        if "\n" in value or "\r" in value:
            raise ValueError(f"define[{name!r}] holds a line's end: {value!r}")
        if value.endswith("\\"):
            raise ValueError(f"define[{name!r}] ends in a backslash, which joins lines: {value!r}")
        return f"#define {name} {value}"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"define[{name!r}] is {value}, for which C++ has no literal")
        return f"#define {name} {float.__repr__(value)}"
    try:
        # A value without an index raises.
        return f"#define {name} {int(operator.index(value))}"  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"define[{name!r}]: expected None, a bool, int, float or str, got "
            f"{type(value).__name__}"
        ) from None


def _any(pattern: str, options: Sequence[str]) -> bool:
    return any(re.match(pattern, option) for option in options)


def _values(options: Sequence[str], wanted: str) -> list[str]:
    """Return the values of an option, which follow it in its text or are the next one's."""
    found = []
    for option, following in zip(options, (*options[1:], ""), strict=False):
        if match := re.match(wanted, option):
            found.append(match[1].strip().removeprefix("=").strip() or following)
    return found


@functools.cache
def _recipe() -> str:
    """A hash of the modules that compile: this package's."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parent.iterdir()):
        if path.is_file():
            found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()
