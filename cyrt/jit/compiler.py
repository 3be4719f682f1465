"""Compiling CUDA C++ with NVRTC, and learning what parameters its kernels take.

INVARIANTS
- The user's source reaches the compiler byte for byte; whatever else is compiled with it stands
  in headers included before it, so every line keeps its number.
- What cyrt adds never decides the outcome: if a probe fails, the source is compiled without.
- Probes leave nothing in the code.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NoReturn

from cyrt.driver.errors import CompileError
from cyrt.jit import headers as _headers
from cyrt.jit.mangling import from_mangled, from_probe
from cyrt.jit.parameters import Signature
from cyrt.jit.ptx import all_from_ptx
from cyrt.jit.source import DeclaredKernel, declared_kernels
from cyrt.jit.standard import STANDARD_HEADERS

_INSTALL = (
    "NVRTC compiles CUDA C++ at run time: pip install 'cyrt[cuda13]' "
    "(or 'cyrt[cuda12]' for a driver of CUDA 12)"
)

# The lowered name of an instance of a template that is declared and never defined holds the
# template's argument, mangled, and puts nothing into the code. The argument is a kernel's type as
# the compiler has it: typedefs, macros and template parameters resolved, enumerations replaced
# by the integers they are passed as.
_PROBE_HEADER = "cyrt_probe.h"
_PROBE_TEXT = """\
template<class T, bool = __is_enum(T)> struct cyrt_probe_plain { typedef T type; };
template<class T> struct cyrt_probe_plain<T, true> { typedef __underlying_type(T) type; };
template<class> struct cyrt_probe_of;
template<class... T> struct cyrt_probe_of<void (*)(T...)> {
    typedef void type(typename cyrt_probe_plain<T>::type...);
};
template<class> __global__ void cyrt_probe();
"""

_ARCH = re.compile(r"(sm|compute)_\d{2,3}[af]?$")
_OWN_OPTION = re.compile(r"(-arch|--gpu-architecture)\b")
_STD_OPTION = re.compile(r"(-std|--std)\b")
_PLACE = re.compile(r"^(?P<file>.*)\((?P<line>\d+)\): (?:catastrophic error|error|warning|note)\b")
_NAME_MAP_ERROR = re.compile(
    r"^__nv_name_map\(\d+\): error: (?P<why>.*)\n +#pragma nv_mangled_name (?P<name>.*)$",
    re.MULTILINE,
)
_NO_HEADER = re.compile(r'(?:could not|cannot) open source file "([^"]+)"')


@dataclass(frozen=True)
class Image:
    """Code for a device, and what its kernels are called and take.

    Attributes
    ----------
    code : bytes
        PTX, as text, or a cubin.
    format : str
        ``"ptx"`` or ``"cubin"``.
    lowered : dict of str to str
        The symbol of each name asked for; every kernel's symbol is there too, as itself.
    signatures : dict of str to Signature
        The parameters of each kernel, under the same keys as in `lowered`, all sizes known.
        Names of variables have none.
    log : str
        What the compiler said: warnings, or nothing.
    """

    code: bytes
    format: str
    lowered: dict[str, str]
    signatures: dict[str, Signature]
    log: str = ""


@functools.cache
def _nvrtc() -> ModuleType:
    try:
        from cuda.bindings import nvrtc

        # The first call opens the library.
        nvrtc.nvrtcVersion()
    except Exception as error:
        raise CompileError(
            "nvrtcVersion", -1, "NVRTC_NOT_FOUND", f"NVRTC cannot be loaded ({error})", _INSTALL
        ) from error
    return nvrtc


def nvrtc_version() -> tuple[int, int]:
    """Return NVRTC's version, e.g. ``(13, 0)``; a `CompileError` if there is no NVRTC."""
    status, major, minor = _nvrtc().nvrtcVersion()
    _check("nvrtcVersion", status)
    return major, minor


def library_path() -> str | None:
    """Return the path of the NVRTC library, or None if there is none."""
    try:
        from cuda import pathfinder

        return pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path
    except (ImportError, RuntimeError):
        return None


@functools.cache
def _archs() -> tuple[int, ...]:
    status, archs = _nvrtc().nvrtcGetSupportedArchs()
    _check("nvrtcGetSupportedArchs", status)
    return tuple(archs)


def supported_archs() -> list[int]:
    """Return the architectures that this NVRTC compiles for, ascending: 90 is ``sm_90``."""
    return sorted(_archs())


def architecture(compute_capability: tuple[int, int], emulated: bool = False) -> str:
    """Return the `arch` to compile for.

    Parameters
    ----------
    compute_capability : (int, int)
        The device's, e.g. ``(9, 0)``.
    emulated : bool
        The emulated device runs PTX, that of its own compute capability or less.

    Returns
    -------
    str
        ``"sm_90"``: code for the GPU itself, which a driver older than NVRTC loads too. PTX of the
        highest architecture below for a GPU that NVRTC does not know.

    Raises
    ------
    CompileError
        If the GPU is older than all that NVRTC compiles for.
    """
    wanted = compute_capability[0] * 10 + compute_capability[1]
    archs = supported_archs()
    if wanted in archs and not emulated:
        return f"sm_{wanted}"
    below = [arch for arch in archs if arch <= wanted]
    if not below:
        version = ".".join(map(str, nvrtc_version()))
        raise CompileError(
            "nvrtcGetSupportedArchs",
            -1,
            "NVRTC_ERROR_UNSUPPORTED_ARCH",
            f"NVRTC {version} compiles for compute capability {archs[0] / 10} and up, "
            f"the device has {wanted / 10}: install an older NVRTC",
        )
    return f"compute_{below[-1]}"


def compile(
    source: str,
    names: Sequence[str] = (),
    *,
    arch: str,
    options: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    define: Mapping[str, object] | None = None,
    filename: str = "cyrt_kernel.cu",
) -> Image:
    """Compile CUDA C++.

    Parameters
    ----------
    source : str
        CUDA C++. The C and C++ standard headers' part for device code may be included, and
        NVIDIA's headers where their wheels or a toolkit are installed.
    names : sequence of str
        Kernels and variables wanted: ``"saxpy"``, ``"ns::axpy<float>"`` (which instantiates it),
        ``"&counter"``, or a mangled symbol. ``extern "C"`` kernels and the non-templates are
        compiled unasked.
    arch : str
        ``"sm_90"`` or ``"sm_90a"`` for a cubin, ``"compute_90"`` for PTX.
    options : sequence of str
        For NVRTC, such as ``"-use_fast_math"``. C++17 unless one says otherwise.
    headers : mapping of str to str
        Further headers: the name in ``#include`` to its text.
    define : mapping of str to object
        Macros: ``{"BLOCK": 128, "FAST": True, "T": "float"}``; None defines an empty one.
    filename : str
        What errors call the source.

    Returns
    -------
    Image

    Raises
    ------
    CompileError
        If the source does not compile, a name is not in it, or there is no NVRTC.
    ValueError, TypeError
        If an argument is not as described.
    """
    job = _Job(source, names, arch, options, headers, define, filename)
    nvrtc = _nvrtc()
    declared = declared_kernels(source)
    probes = _probes(job.names, declared)
    implied: list[str] = []
    as_written: _Result | None = None
    while True:
        result = _run(nvrtc, job, list(probes), implied)
        if result.status == nvrtc.nvrtcResult.NVRTC_SUCCESS:
            return _image(job, result, declared, probes)
        more = [h for h in _headers.wanted_headers(result.log) if h not in implied]
        failed = {m["name"] for m in _NAME_MAP_ERROR.finditer(result.log)} & set(probes)
        if more:
            implied += more
        elif failed or (probes and "cyrt_probe" in result.log):
            # Often another fault of the source made the probe fail: its own errors come now.
            probes = {p: k for p, k in probes.items() if p not in failed} if failed else {}
        elif "-default-device" in result.log and as_written is None:
            # nvcc lets host functions and variables stand unmarked beside the kernels; NVRTC
            # takes them for the device's if told to. What is wrong is told of the source as it is.
            as_written = result
            job.options.append("-default-device")
        else:
            _fail(job, as_written or result, declared)


class _Job:
    """The checked arguments of `compile`."""

    def __init__(
        self,
        source: str,
        names: Sequence[str],
        arch: str,
        options: Sequence[str],
        headers: Mapping[str, str] | None,
        define: Mapping[str, object] | None,
        filename: str,
    ) -> None:
        if not isinstance(source, str):
            raise TypeError(f"source is a str of CUDA C++, got {type(source).__name__}")
        if "\0" in source:
            raise ValueError("the source holds a NUL character; CUDA C++ is text")
        if not _ARCH.match(arch):
            raise ValueError(f"arch is like 'sm_90', 'sm_90a' or 'compute_90', got {arch!r}")
        for kind, texts in (("names", names), ("options", options)):
            if isinstance(texts, str) or not all(isinstance(t, str) for t in texts):
                raise TypeError(f"{kind} is a sequence of str, got {texts!r}")
        if not all(name.strip() for name in names):
            raise ValueError(f"names holds an empty one: {names!r}")
        for option in options:
            if _OWN_OPTION.match(option):
                raise ValueError(f"the architecture is given as arch=, not as option {option!r}")
        self.source, self.arch, self.filename = source, arch, filename
        self.names = tuple(dict.fromkeys(names))
        self.headers = dict(headers or {})
        std = [] if any(map(_STD_OPTION.match, options)) else ["-std=c++17"]
        # nvcc has __int128 unasked.
        own = [f"-arch={arch}", "-device-int128", *std]
        self.options = [*own, *options, *map(_macro, (define or {}).items())]
        texts = (source, *self.headers.values(), *options)
        if any("include" in text for text in texts):
            self.options += [f"-I{folder}" for folder in _headers.include_directories()]

    @property
    def cubin(self) -> bool:
        return self.arch.startswith("sm_")

    @property
    def expressions(self) -> list[str]:
        """The names that NVRTC is to look up; a symbol is not one."""
        return [name for name in self.names if not name.startswith("_Z")]


def _macro(item: tuple[str, object]) -> str:
    name, value = item
    if not re.match(r"[A-Za-z_]\w*(\([\w, .]*\))?$", name):
        raise ValueError(f"define has {name!r}, which is no macro's name")
    if value is None:
        return f"-D{name}="
    return f"-D{name}={int(value) if isinstance(value, bool) else value}"


def _probes(names: Sequence[str], declared: list[DeclaredKernel]) -> dict[str, str]:
    """Return name expressions that tell parameters, each with the kernel it tells them of."""
    wanted = [name for name in names if not name.startswith(("&", "_Z", "("))]
    wanted += [k.name for k in declared if k.extern_c and not k.template]
    return {
        f"cyrt_probe<typename cyrt_probe_of<decltype(&{name})>::type>": name
        for name in dict.fromkeys(wanted)
    }


# -- one run of the compiler -----------------------------------------------------------------------


@dataclass
class _Result:
    status: Any
    log: str
    lowered: dict[str, str] = field(default_factory=dict)
    ptx: str = ""
    cubin: bytes = b""


def _check(call: str, status: Any) -> None:
    if status:
        raise CompileError(call, int(status), status.name)


def _run(nvrtc: ModuleType, job: _Job, probes: list[str], implied: list[str]) -> _Result:
    """Compile once, with `implied` standard headers included before the source."""
    included = [*implied, *([_PROBE_HEADER] if probes else [])]
    known = {**STANDARD_HEADERS, **job.headers, _PROBE_HEADER: _PROBE_TEXT}
    status, program = nvrtc.nvrtcCreateProgram(
        job.source.encode(),
        job.filename.encode(),
        len(known),
        [text.encode() for text in known.values()],
        [name.encode() for name in known],
    )
    _check("nvrtcCreateProgram", status)
    try:
        expressions = [*job.expressions, *probes]
        for name in expressions:
            _check("nvrtcAddNameExpression", *nvrtc.nvrtcAddNameExpression(program, name.encode()))
        options = [o.encode() for o in (*job.options, *(f"-include={h}" for h in included))]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _bytes(nvrtc, "ProgramLog", program).rstrip(b"\0\n ").decode(errors="replace")
        result = _Result(status, log)
        if status == nvrtc.nvrtcResult.NVRTC_SUCCESS:
            for name in expressions:
                status, symbol = nvrtc.nvrtcGetLoweredName(program, name.encode())
                _check("nvrtcGetLoweredName", status)
                result.lowered[name] = symbol.decode()
            result.ptx = _bytes(nvrtc, "PTX", program).rstrip(b"\0").decode()
            if job.cubin:
                result.cubin = _bytes(nvrtc, "CUBIN", program)
        return result
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _bytes(nvrtc: ModuleType, what: str, program: Any) -> bytes:
    status, size = getattr(nvrtc, f"nvrtcGet{what}Size")(program)
    _check(f"nvrtcGet{what}Size", status)
    data = bytearray(size)
    _check(f"nvrtcGet{what}", *getattr(nvrtc, f"nvrtcGet{what}")(program, data))
    return bytes(data)


# -- what came out ---------------------------------------------------------------------------------


def _image(
    job: _Job, result: _Result, declared: list[DeclaredKernel], probes: Mapping[str, str]
) -> Image:
    compiled = all_from_ptx(result.ptx)
    lowered = {name: result.lowered.get(name, name) for name in job.names}
    for name in job.names:
        if name.startswith("_Z") and name not in compiled:
            _fail_name(name, "no kernel has this symbol", job, declared, [*compiled])
    lowered |= {symbol: symbol for symbol in compiled}

    probed: dict[str, Signature] = {}
    extern = {k.name: k.symbol for k in declared if k.extern_c}
    for probe, name in probes.items():
        parameters = from_probe(result.lowered[probe])
        symbol = lowered.get(name) or extern.get(name)
        if parameters is not None and symbol:
            probed[symbol] = Signature(name, parameters)
    by_symbol = {
        symbol: _signature(symbol, ptx, probed.get(symbol), declared)
        for symbol, ptx in compiled.items()
    }
    return Image(
        code=result.cubin if job.cubin else result.ptx.encode(),
        format="cubin" if job.cubin else "ptx",
        lowered=lowered,
        signatures={n: by_symbol[s] for n, s in lowered.items() if s in by_symbol},
        log=result.log,
    )


def _signature(
    symbol: str, ptx: Signature, probed: Signature | None, declared: list[DeclaredKernel]
) -> Signature:
    """Return the best that is known of a compiled kernel, completed from its PTX."""
    mangled = probed or from_mangled(symbol)
    name = re.sub("<.*", "", mangled.name) if mangled else symbol
    texts = [k for k in declared if k.name == name or (k.extern_c and k.symbol == symbol)]
    candidates = [mangled] if mangled else []
    if len(texts) == 1 and not texts[0].template:
        candidates += filter(None, [texts[0].signature()])
    for candidate in candidates:
        try:
            found = candidate.refined(ptx)
        except ValueError:
            # A declaration scanned from the text may be another branch of an #if.
            continue
        names = {k.parameter_names() for k in texts}
        return found.with_names(names.pop()) if len(names) == 1 else found
    return ptx


# -- what went wrong -------------------------------------------------------------------------------


def _fail(job: _Job, result: _Result, declared: list[DeclaredKernel]) -> NoReturn:
    refused = [m for m in _NAME_MAP_ERROR.finditer(result.log) if m["name"] in job.expressions]
    others = re.search(r"^(?!__nv_name_map).*\): (?:catastrophic )?error", result.log, re.MULTILINE)
    if refused and not others:
        _fail_name(refused[0]["name"], refused[0]["why"], job, declared, [], result)
    advice = [
        _headers.header_advice(header, nvrtc_version()[0])
        for header in dict.fromkeys(_NO_HEADER.findall(result.log))
    ]
    if "gpu-architecture" in result.log:
        archs = ", ".join(map(str, supported_archs()))
        advice.append(f"NVRTC {'.'.join(map(str, nvrtc_version()))} compiles for sm_ {archs}")
    text = "; ".join([f"{job.filename} does not compile for {job.arch}", *advice])
    _raise(result, text, _annotated(result.log, job))


def _fail_name(
    name: str,
    why: str,
    job: _Job,
    declared: list[DeclaredKernel],
    symbols: list[str],
    result: _Result | None = None,
) -> NoReturn:
    known = [k.name + ("<…>" if k.template else "") for k in declared] or symbols
    text = f"{name!r} is not in {job.filename}: {why}; its kernels: "
    text += ", ".join(dict.fromkeys(known)) or "none"
    if result is None:
        raise CompileError("nvrtcGetLoweredName", 10, "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID", text)
    _raise(result, text, result.log)


def _raise(result: _Result, text: str, log: str) -> NoReturn:
    raise CompileError("nvrtcCompileProgram", int(result.status), result.status.name, text, log)


def _annotated(log: str, job: _Job) -> str:
    """Return the log with the source's lines numbered where it quotes them."""
    source, lines, out = job.source.split("\n"), log.split("\n"), []
    shift = 0
    for i, line in enumerate(lines):
        place = _PLACE.match(lines[i - 1]) if i else None
        number = int(place["line"]) if place and place["file"] == job.filename else 0
        if 0 < number <= len(source) and line.strip() == source[number - 1].strip():
            out.append(f"{number:5} | {line[2:]}")
            shift = 6
        elif shift and line.strip() == "^":
            out.append(" " * shift + line)
        else:
            shift = 0
            out.append(line)
    return "\n".join(out)
