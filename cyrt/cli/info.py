"""``python -m cyrt info``: driver, devices, compiler and libraries, and those that are missing."""

from __future__ import annotations

import argparse
import importlib.metadata
import warnings
from pathlib import Path

from cuda import pathfinder
from rich.table import Table

import cyrt
from cyrt import settings
from cyrt.builtin import loading
from cyrt.cli.output import Refusal, check_cache_folder, one_line
from cyrt.cli.output import console as output_console
from cyrt.driver import library, table
from cyrt.jit import compiler
from cyrt.jit.cache import Cache
from cyrt.jit.headers import include_directories
from cyrt.libs import cublaslt, cudnn

# For each library: its name in cuda.pathfinder, its use, and the extra that installs it.
_LIBRARIES = {
    "cuBLASLt": ("cublasLt", "matrix products", "cublas"),
    "cuDNN": ("cudnn", "convolutions", "cudnn"),
}


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def _find(name: str) -> str | None:
    """The path of a library, or None. Pathfinder also loads the library."""
    try:
        return str(pathfinder.load_nvidia_dynamic_lib(name).abs_path)
    except pathfinder.DynamicLibNotFoundError:
        return None


def _add_device(facts: Table, device: cyrt.Device) -> None:
    free, total = device.memory_info()
    managed = "concurrent" if device.concurrent_managed_access else "not concurrent"
    lines = (
        f"{device.name}, compute capability {'.'.join(map(str, device.compute_capability))}, "
        f"{device.multiprocessors} multiprocessors",
        f"memory: {free / 2**30:.1f} of {total / 2**30:.1f} GiB free, managed access {managed}",
        f"built-in kernels: {loading.best_origin(device)}",
        device.uuid,
    )
    facts.add_row(f"device {device.index}", "\n".join(lines))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no arguments."""


def run(options: argparse.Namespace) -> int:
    """Print the tables; returns 1 if kernels cannot be compiled.

    Raises
    ------
    Refusal
        The cache folder cannot be used, and nothing was printed; or no device opens.
    """
    cache = Path(Cache(settings.cache_dir(), 0).root)
    check_cache_folder(cache)
    console = output_console()
    facts = Table.grid(padding=(0, 2))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    missing: list[tuple[str, str]] = []
    facts.add_row("cyrt", importlib.metadata.version("cyrt"))
    emulated, version = True, 0
    refusal = None
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            path, emulated, version = table.driver_info()
        origin = "emulated device" if emulated else "NVIDIA driver"
        facts.add_row("driver", f"{origin}, CUDA {_dotted(version)}, {path}")
        for warning in caught:
            facts.add_row("", str(warning.message))
    except cyrt.CudaError as error:
        refusal = error
        facts.add_row("driver", f"none: {error}")
    if emulated and (refusal is None or refusal.call == "dlopen"):
        missing.append(
            (
                f"the NVIDIA driver ({library.driver_name()})",
                "install it from nvidia.com or the distribution; the emulated device needs none",
            )
        )
    generation = "12" if version and version < 13000 else "13"
    compiles = True
    try:
        major, minor = compiler.nvrtc_version()
        facts.add_row("NVRTC", f"{major}.{minor}, {compiler.library_path()}")
        generation = str(major)
    except cyrt.CompileError as error:
        compiles = False
        facts.add_row("NVRTC", f"none: {error.text}")
        missing.append(
            ("NVRTC, to compile kernels from source", f"pip install 'cyrt[cu{generation}]'")
        )
    headers = include_directories()
    facts.add_row("CUDA headers", "\n".join(map(str, headers)) or "not found")
    if not headers:
        missing.append(("CUDA's headers (cuda_fp16.h ...)", f"pip install 'cyrt[cu{generation}]'"))
    for title, (name, use, extra) in _LIBRARIES.items():
        found, problem = _find(name), ""
        if name == "cublasLt" and found is not None:
            cublas, problem = cublaslt.find()
            found = f"{cublas.dotted}, {found}" if cublas is not None else found
        if name == "cudnn" and found is not None:
            opened_cudnn, problem = cudnn.find()
            found = f"{opened_cudnn.dotted}, {found}" if opened_cudnn is not None else found
        facts.add_row(title, problem or found or "not found")
        if found is None or problem:
            missing.append(
                (f"{title}, for {use} on a GPU", f"pip install 'cyrt[{extra}{generation}]'")
            )
    facts.add_row("cache folder", f"{cache}{'' if cache.exists() else ' (not made yet)'}")
    for index in range(0 if refusal else cyrt.Device.count()):
        _add_device(facts, cyrt.Device(index))
    for what, advice in missing:
        facts.add_row("missing", f"{what}:\n{advice}")
    console.print(facts)
    if refusal is not None:
        raise Refusal(one_line(refusal))
    return 0 if compiles else 1
