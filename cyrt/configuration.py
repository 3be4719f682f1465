"""The configuration of cyrt: versions, driver, compiler, libraries, devices and settings.

``python -m cyrt info`` prints the same.
"""

from __future__ import annotations

import os
import platform
import sys
import textwrap
import warnings
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from cyrt import settings
from cyrt.builtin import loading
from cyrt.driver import library, table
from cyrt.driver.errors import CompileError, CudaError
from cyrt.jit import compiler
from cyrt.jit.cache import Cache
from cyrt.jit.headers import include_directories
from cyrt.libs import cublaslt, cudnn, cufft, cusolver
from cyrt.runtime.device import Device
from cyrt.version import __version__

# For each library: its name in cuda.pathfinder, its use, and the extra that installs it.
_LIBRARIES = {
    "cuBLASLt": ("cublasLt", "matrix products", "cublas"),
    "cuDNN": ("cudnn", "convolutions", "cudnn"),
    "cuFFT": ("cufft", "Fourier transforms", "cufft"),
    "cuSOLVER": ("cusolver", "factorizations of matrices", "cusolver"),
}
_BINDINGS: dict[str, Any] = {
    "cublasLt": cublaslt,
    "cudnn": cudnn,
    "cufft": cufft,
    "cusolver": cusolver,
}

Rows = list[tuple[str, str]]


def show_config(mode: Literal["stdout", "dicts"] = "stdout") -> dict[str, Any] | None:
    """Print the configuration of cyrt, for bug reports; ``python -m cyrt info`` prints the same.

    It consists of the versions of cyrt, Python, NumPy and Cython; the driver, NVRTC, CUDA's headers
    and libraries, with the places where they were found; the ``CYRT_`` variables that are not at
    their defaults; the folder of compiled kernels and its size; the devices; and the parts that are
    missing, each with the command that installs it.

    Parameters
    ----------
    mode : {"stdout", "dicts"}
        ``"stdout"`` prints, ``"dicts"`` returns the facts.

    Returns
    -------
    dict or None
        For ``"dicts"`` the facts that ``python -m cyrt info --json`` prints, otherwise None.

    Raises
    ------
    ValueError
        `mode` has another value, or a variable has a value that is not allowed.

    Examples
    --------
    >>> cyrt.show_config(mode="dicts")["devices"][0]["index"]
    0
    """
    if mode not in ("stdout", "dicts"):
        raise ValueError(f"show_config: mode: expected 'stdout' or 'dicts', got {mode!r}")
    facts = collect()
    if mode == "dicts":
        return facts
    print("\n".join(layout(rows(facts))))
    return None


def collect() -> dict[str, Any]:
    """Return the facts, whose values are those of JSON."""
    facts: dict[str, Any] = {
        "cyrt": __version__,
        "python": f"{platform.python_version()}, {sys.executable}",
        "platform": platform.platform(),
        "numpy": np.__version__,
        "cython": table.CYTHON_VERSION,
        "driver": _driver(),
        "nvrtc": _nvrtc(),
        "headers": _headers(),
        "libraries": {title: _library(name) for title, (name, _, _) in _LIBRARIES.items()},
        "settings": settings.changed(),
        "cache": _cache(),
        "devices": [],
    }
    if facts["driver"]["error"] is None:
        facts["devices"] = [_device(Device(index)) for index in range(Device.count())]
    facts["missing"] = _missing(facts)
    return facts


def _driver() -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(("kind", "cuda", "path", "error", "call"))
    found["warnings"] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            path, emulated, version = table.driver_info()
    except CudaError as error:
        return found | {"error": str(error), "call": error.call}
    return found | {
        "kind": "emulated device" if emulated else "NVIDIA driver",
        "cuda": f"{version // 1000}.{version % 1000 // 10}",
        "path": path,
        "warnings": [str(each.message) for each in caught],
    }


def _nvrtc() -> dict[str, Any]:
    try:
        version = ".".join(map(str, compiler.nvrtc_version()))
    except CompileError as error:
        return {"version": None, "path": None, "error": error.text}
    return {"version": version, "path": compiler.library_path(), "error": None}


def _headers() -> list[str]:
    try:
        return list(include_directories(compiler.nvrtc_version()[0]))
    except CompileError:
        return list(include_directories())


def _find(name: str) -> str | None:
    """The path of a library, or None. Pathfinder also loads the library."""
    from cuda import pathfinder  # it is not loaded before it is needed

    try:
        return str(pathfinder.load_nvidia_dynamic_lib(name).abs_path)
    except pathfinder.DynamicLibNotFoundError:
        return None


def _library(name: str) -> dict[str, Any]:
    path, version, problem = _find(name), None, ""
    if path is not None and name in _BINDINGS:
        opened, problem = _BINDINGS[name].find()
        version = None if opened is None else opened.dotted
    return {"version": version, "path": path, "error": problem or (None if path else "not found")}


def _cache() -> dict[str, Any]:
    cache = Cache(settings.cache_dir(), settings.get("CYRT_CACHE_SIZE"))
    entries = cache.entries()
    return {
        "folder": cache.root,
        "exists": os.path.exists(cache.root),
        "used": settings.get("CYRT_CACHE"),
        "entries": len(entries),
        "bytes": sum(entry.nbytes for entry in entries),
        "limit": cache.limit,
    }


def _device(device: Device) -> dict[str, Any]:
    free, total = device.memory_info()
    return {
        "index": device.index,
        "name": device.name,
        "emulated": device.emulated,
        "compute_capability": ".".join(map(str, device.compute_capability)),
        "multiprocessors": device.multiprocessors,
        "memory_free": free,
        "memory_total": total,
        "concurrent_managed_access": device.concurrent_managed_access,
        "built_in_kernels": loading.best_origin(device),
        "uuid": device.uuid,
    }


def _missing(facts: dict[str, Any]) -> list[dict[str, str]]:
    """Return the parts that are not installed, each with advice how to install it."""
    driver, nvrtc = facts["driver"], facts["nvrtc"]
    missing = []
    if driver["kind"] == "emulated device" or driver["call"] == "dlopen":
        missing.append(
            (
                f"the NVIDIA driver ({library.driver_name()})",
                "install it from nvidia.com or the distribution; the emulated device needs none",
            )
        )
    version = nvrtc["version"] or driver["cuda"] or "13.0"
    generation = "12" if version.startswith("12.") else "13"
    if nvrtc["error"]:
        missing.append(
            (
                "NVRTC, to compile kernels from source, and to fuse operations",
                f"pip install 'cyrt[cu{generation}]'",
            )
        )
    if not facts["headers"]:
        missing.append(("CUDA's headers (cuda_fp16.h ...)", f"pip install 'cyrt[cu{generation}]'"))
    for title, (_, use, extra) in _LIBRARIES.items():
        if facts["libraries"][title]["error"]:
            missing.append(
                (f"{title}, for {use} on a GPU", f"pip install 'cyrt[{extra}{generation}]'")
            )
    return [{"what": what, "advice": advice} for what, advice in missing]


def amount(nbytes: float) -> str:
    """Return a number of bytes in the unit that gives it one to four digits."""
    for unit in ("bytes", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "bytes" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} GiB"


def rows(facts: dict[str, Any]) -> Rows:
    """Return the facts as titles and texts, which may have several lines."""
    driver, nvrtc, cache = facts["driver"], facts["nvrtc"], facts["cache"]
    found = [(title, facts[title.lower()]) for title in ("cyrt", "Python", "NumPy", "Cython")]
    found.append(("platform", facts["platform"]))
    found.append(
        ("driver", f"none: {driver['error']}")
        if driver["error"]
        else ("driver", f"{driver['kind']}, CUDA {driver['cuda']}, {driver['path']}")
    )
    found += [("", text) for text in driver["warnings"]]
    found.append(("NVRTC", _place(nvrtc, "none: ")))
    found.append(("CUDA headers", "\n".join(facts["headers"]) or "not found"))
    found += [(title, _place(each)) for title, each in facts["libraries"].items()]
    found.append(
        ("settings", "\n".join(f"{k}={v}" for k, v in facts["settings"].items()) or "defaults")
    )
    state = f"{cache['entries']} entries, {amount(cache['bytes'])} of {amount(cache['limit'])}"
    state = state if cache["exists"] else "not made yet"
    unused = "" if cache["used"] else "\nnot used: CYRT_CACHE=0"
    found.append(("cache folder", f"{cache['folder']}\n{state}{unused}"))
    for device in facts["devices"]:
        managed = "concurrent" if device["concurrent_managed_access"] else "not concurrent"
        free, total = amount(device["memory_free"]), amount(device["memory_total"])
        lines = (
            f"{device['name']}, compute capability {device['compute_capability']}, "
            f"{device['multiprocessors']} multiprocessors",
            f"memory: {free} of {total} free, managed access {managed}",
            f"built-in kernels: {device['built_in_kernels']}",
            device["uuid"],
        )
        found.append((f"device {device['index']}", "\n".join(lines)))
    return found + [("missing", f"{each['what']}:\n{each['advice']}") for each in facts["missing"]]


def _place(found: dict[str, Any], before: str = "") -> str:
    if found["error"]:
        return f"{before}{found['error']}"
    return ", ".join(filter(None, (found["version"], found["path"])))


def layout(titled: Iterable[tuple[str, str]], width: int | None = None) -> list[str]:
    """Return the lines of titles and, beside them, their texts, which are wrapped at a width."""
    titled = list(titled)
    indent = max((len(title) for title, _ in titled), default=0) + 2
    lines = []
    for title, text in titled:
        for line in text.splitlines() or [""]:
            room = max(20, width - indent) if width else 0
            for part in (textwrap.wrap(line, room) if room else [line]) or [""]:
                lines.append(f"{title:<{indent}}{part}".rstrip())
                title = ""
    return lines
