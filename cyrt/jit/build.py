"""Compile one source to one image with NVRTC: learn parameters, and explain errors.

INVARIANTS
- The user's source reaches the compiler byte for byte; added code is in headers included before it,
  so every line keeps its number.
- Added code never decides the outcome: if a probe fails, the source is compiled without it.
- Probes leave nothing in the code.
- A name that may be that of a template reaches the compiler only with a source whose declarations
  it accepts: NVRTC 12.9 to 13.5 end the process where the type of the named template's first
  parameter is not declared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from cyrt.driver.errors import CompileError
from cyrt.jit import headers as _headers
from cyrt.jit import nvrtc
from cyrt.jit.dump import dump
from cyrt.jit.image import Image
from cyrt.jit.job import Job
from cyrt.jit.mangling import from_mangled, from_probe
from cyrt.jit.parameters import Signature
from cyrt.jit.ptx import all_from_ptx
from cyrt.jit.source import DeclaredKernel, declared_kernels
from cyrt.jit.standard import STANDARD_HEADERS

# The lowered name of an instance of a template that is declared and never defined holds the
# template's argument, mangled, and puts nothing into the code. The argument is a kernel's type as
# the compiler has it: typedefs, macros and template parameters resolved, enumerations replaced
# by the integers they are passed as.
_PROBE_HEADER = "cyrt_probe.h"
# Names are reserved ones, which no macro of the user's replaces.
_PROBE_TEXT = """\
template<class __T, bool = __is_enum(__T)> struct cyrt_probe_value { typedef __T __type; };
template<class __T> struct cyrt_probe_value<__T, true> { typedef __underlying_type(__T) __type; };
template<class> struct cyrt_probe_of;
template<class... __T> struct cyrt_probe_of<void (*)(__T...)> {
    typedef void __type(typename cyrt_probe_value<__T>::__type...);
};
template<class> __global__ void cyrt_probe();
"""

# A header, not -D: NVRTC's own headers precede it, and use unreserved names like T.
_MACROS_HEADER = "cyrt_macros.h"

_PLACE = re.compile(r"^(?P<file>.*)\((?P<line>\d+)\): (?:catastrophic error|error|warning|note)\b")
_NAME_MAP_ERROR = re.compile(
    r"^__nv_name_map\(\d+\): error: (?P<why>.*)\n +#pragma nv_mangled_name (?P<name>.*)$",
    re.MULTILINE,
)
# All messages of NVRTC on the names: they are about lines of a file that is not the user's.
_NAME_MAP_DIAGNOSTIC = re.compile(
    r"^__nv_name_map\(\d+\): .*\n(?:[ \t].*\n|\n)*|^\d+ errors? detected in the compilation .*\n?",
    re.MULTILINE,
)
_NO_HEADER = re.compile(r'(?:could not|cannot) open source file "([^"]+)"')


def build(job: Job) -> Image:
    """Compile a job.

    Raises
    ------
    CompileError
        If the source does not compile, a name is not in it, or there is no NVRTC.
    """
    declared = declared_kernels(job.source)
    probes = _probes(job.names, declared)
    implied: list[str] = []
    further: list[str] = []
    as_written: nvrtc.Result | None = None
    checked = not _may_name_templates(job, declared)
    while True:
        if checked:
            result = _run(job, [*job.expressions, *probes], implied, further)
        else:
            result = _run(job, [], implied, [*further, "--fdevice-syntax-only"])
        if not checked and not result.status:
            checked = True
            continue
        if not result.status:
            dump(job, result)
            if not result.ptx.strip():
                _raise(
                    result,
                    f"the options {' '.join(job.user_options)} make NVRTC give neither PTX nor a "
                    "cubin, which are what a driver loads",
                    result.log,
                )
            return _image(job, result, declared, probes)
        more = [h for h in _headers.wanted_headers(result.log) if h not in implied]
        failed = {m["name"] for m in _NAME_MAP_ERROR.finditer(result.log)} & set(probes)
        if more:
            implied += more
        elif failed or (probes and "cyrt_probe" in result.log):
            # Often another error in the source made the probe fail: this run reports that error.
            probes = {p: k for p, k in probes.items() if p not in failed} if failed else {}
        elif "-default-device" in result.log and as_written is None:
            # nvcc accepts unmarked host functions and variables in the same source; NVRTC compiles
            # them for the device only with an option. Errors are reported for the source without
            # that option.
            as_written = result
            further.append("-default-device")
        else:
            dump(job, as_written or result)
            _fail(job, as_written or result, declared)


def _may_name_templates(job: Job, declared: list[DeclaredKernel]) -> bool:
    """Return whether a name may be, or may become by a macro, that of a template's instance."""
    known = {k.name for k in declared if not k.template}
    names = [name for name in job.expressions if name.removeprefix("&") not in known]
    return any("<" in name for name in names) or (
        bool(names) and (job.includes or any("template" in text for text in job.texts))
    )


def _probes(names: Sequence[str], declared: list[DeclaredKernel]) -> dict[str, str]:
    """Return name expressions that reveal parameters, each with its kernel."""
    wanted = [name for name in names if not name.startswith(("&", "_Z", "("))]
    wanted += [k.name for k in declared if k.extern_c and not k.template]
    return {
        f"cyrt_probe<typename cyrt_probe_of<decltype(&{name})>::__type>": name
        for name in dict.fromkeys(wanted)
    }


def _run(
    job: Job, expressions: Sequence[str], implied: Sequence[str], further: Sequence[str]
) -> nvrtc.Result:
    """Compile once, with `implied` standard headers included before the source."""
    before = [*implied, *([_MACROS_HEADER] if job.macros else [])]
    after = [_PROBE_HEADER] if len(expressions) > len(job.expressions) else []
    own = {_PROBE_HEADER: _PROBE_TEXT, _MACROS_HEADER: "\n".join((*job.macros, ""))}
    return nvrtc.run(
        job.source,
        job.filename,
        # Headers included by the user's options follow, and see the macros.
        [*map(_including, before), *job.options, *further, *map(_including, after)],
        {**STANDARD_HEADERS, **job.headers, **own},
        expressions,
        cubin=job.cubin,
    )


def _including(header: str) -> str:
    return f"-include={header}"


# -- results ---------------------------------------------------------------------------------------


def _image(
    job: Job, result: nvrtc.Result, declared: list[DeclaredKernel], probes: Mapping[str, str]
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
    """Return the most complete signature of a compiled kernel, completed from its PTX."""
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


# -- errors ----------------------------------------------------------------------------------------


def _fail(job: Job, result: nvrtc.Result, declared: list[DeclaredKernel]) -> NoReturn:
    refused = [m for m in _NAME_MAP_ERROR.finditer(result.log) if m["name"] in job.expressions]
    others = re.search(r"^(?!__nv_name_map).*\): (?:catastrophic )?error", result.log, re.MULTILINE)
    if refused and not others:
        _fail_name(refused[0]["name"], refused[0]["why"], job, declared, [], result)
    advice = [
        _headers.header_advice(header, nvrtc.nvrtc_version()[0])
        for header in dict.fromkeys(_NO_HEADER.findall(result.log))
    ]
    if result.name == "NVRTC_ERROR_INVALID_OPTION" and job.user_options:
        advice.append(f"NVRTC refuses one of the options {' '.join(job.user_options)}")
    if "gpu-architecture" in result.log:
        archs = ", ".join(map(str, nvrtc.supported_archs()))
        advice.append(f"NVRTC {'.'.join(map(str, nvrtc.nvrtc_version()))} compiles for sm_ {archs}")
    text = "; ".join([f"{job.filename} does not compile for {job.arch}", *advice])
    log = _NAME_MAP_DIAGNOSTIC.sub("", result.log).strip() if others else result.log
    _raise(result, text, _annotated(log, job))


def _fail_name(
    name: str,
    why: str,
    job: Job,
    declared: list[DeclaredKernel],
    symbols: list[str],
    result: nvrtc.Result | None = None,
) -> NoReturn:
    known = [k.name + ("<…>" if k.template else "") for k in declared] or symbols
    text = f"{name!r} is not in {job.filename}: {why}; its kernels: "
    text += ", ".join(dict.fromkeys(known)) or "none"
    if result is None:
        raise CompileError("nvrtcGetLoweredName", 10, "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID", text)
    _raise(result, text, _NAME_MAP_DIAGNOSTIC.sub("", result.log).strip())


def _raise(result: nvrtc.Result, text: str, log: str) -> NoReturn:
    raise CompileError("nvrtcCompileProgram", result.status, result.name, text, log)


def _annotated(log: str, job: Job) -> str:
    """Return the log with line numbers added to the source lines that it quotes."""
    source, lines, out = job.source.split("\n"), log.split("\n"), []
    shift = 0
    for i, line in enumerate(lines):
        found = _PLACE.match(lines[i - 1]) if i else None
        number = int(found["line"]) if found and found["file"] == job.filename else 0
        if 0 < number <= len(source) and line.strip() == source[number - 1].strip():
            out.append(f"{number:5} | {line[2:]}")
            shift = 6
        elif shift and line.strip() == "^":
            out.append(" " * shift + line)
        else:
            shift = 0
            out.append(line)
    return "\n".join(out)
