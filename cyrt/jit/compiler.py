"""CUDA C++ to code for a device, from the disk cache or by NVRTC.

If the cache has the image, neither NVRTC is loaded nor its bindings are imported. All other modules
are imported with the package: a signal handler that compiles could otherwise find a module that is
only partly imported.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from cyrt import settings
from cyrt.driver import table
from cyrt.driver.errors import CompileError
from cyrt.jit import cache, toolchain
from cyrt.jit.build import build
from cyrt.jit.image import Image, from_facts
from cyrt.jit.job import Job
from cyrt.jit.nvrtc import library_path, nvrtc_version, supported_archs
from cyrt.logger import logger

__all__ = [
    "Image",
    "architecture",
    "compile",
    "compile_many",
    "library_path",
    "nvrtc_version",
    "supported_archs",
]


def architecture(compute_capability: tuple[int, int], emulated: bool = False) -> str:
    """Return the `arch` to compile for.

    Parameters
    ----------
    compute_capability : (int, int)
        Compute capability of the device, e.g. ``(9, 0)``.
    emulated : bool
        True for the emulated device, which runs PTX of its compute capability or less.

    Returns
    -------
    str
        ``"sm_90"``: code for the GPU itself, which a driver older than NVRTC can load, too, if its
        major version is the same. For a GPU that NVRTC does not know, PTX of the highest
        architecture below it.

    Raises
    ------
    CompileError
        If the GPU is older than all architectures of NVRTC, the driver's major version is below
        NVRTC's, or there is no NVRTC.
    """
    library = toolchain.library()
    wanted = compute_capability[0] * 10 + compute_capability[1]
    version = ".".join(map(str, library.version))
    driver = 0 if emulated else table.driver_info()[2]
    if driver and driver // 1000 < library.version[0]:
        raise CompileError(
            "nvrtcVersion",
            -1,
            "NVRTC_TOO_NEW",
            f"code of NVRTC {version} needs a driver of CUDA {library.version[0]}, this one "
            f"supports CUDA {driver // 1000}.{driver % 1000 // 10}: "
            f"pip install 'cyrt[cu{driver // 1000}]', or update the driver",
        )
    if wanted in library.archs and not emulated:
        return f"sm_{wanted}"
    below = [arch for arch in library.archs if arch <= wanted]
    if not below:
        raise CompileError(
            "nvrtcGetSupportedArchs",
            -1,
            "NVRTC_ERROR_UNSUPPORTED_ARCH",
            f"NVRTC {version} compiles for compute capability {library.archs[0] / 10} and up, "
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
    filename: str | None = None,
) -> Image:
    """Compile CUDA C++, or read the result of an earlier compilation from the disk cache.

    Parameters
    ----------
    source : str
        CUDA C++. It may include the parts of the C and C++ standard headers that suit device code,
        and NVIDIA's headers if their wheels or a toolkit are installed.
    names : sequence of str
        Kernels and variables wanted: ``"saxpy"``, ``"ns::axpy<float>"`` (which instantiates it),
        ``"&counter"``, or a mangled symbol. ``extern "C"`` kernels and non-template kernels are
        always compiled.
    arch : str
        ``"sm_90"`` or ``"sm_90a"`` for a cubin, ``"compute_90"`` for PTX.
    options : sequence of str
        Options of NVRTC, such as ``"-use_fast_math"``, in order. C++17 is the default standard.
    headers : mapping of str to str
        Further headers: the name in ``#include`` to its text.
    define : mapping of str to object
        Macros: ``{"BLOCK": 128, "T": "float"}``. None and True define 1, as ``-DNAME`` does.
    filename : str
        Name of the source in errors; ``#include "…"`` searches its folder first.

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
    job = Job(source, names, arch, options, headers, define, filename)
    # A dump requires a compilation.
    store = None if settings.get("CYRT_JIT_DUMP") else cache.current()
    if store is None:
        return _build(job)
    library = toolchain.library()
    key = job.key(library)
    image = _kept(store, key)
    if image is None and toolchain.confirmed_library() != library:
        library = toolchain.library()
        key = job.key(library)
        image = _kept(store, key)
    if image is None:
        image = _build(job)
        # A header may have changed during the compilation, or the compiler may have been replaced.
        if key is not None and key == job.key(library) and toolchain.is_current():
            store.put(key, _facts(job, library, image), image.code)
    else:
        logger.debug("%s for %s was compiled before: %s", job.filename, job.arch, key)
    return image


def compile_many(
    source: str,
    groups: Sequence[Sequence[str]],
    *,
    arch: str,
    options: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    define: Mapping[str, object] | None = None,
    filename: str | None = None,
    threads: int | None = None,
) -> list[Image]:
    """Compile a source once for each group of names, several at a time.

    NVRTC compiles one instantiation after the other, and releases the GIL.

    Parameters
    ----------
    source, arch, options, headers, define, filename
        As for `compile`.
    groups : sequence of sequence of str
        The names for each image.
    threads : int, optional
        Number of simultaneous compilations; by default the number of processors.

    Returns
    -------
    list of Image
        In the order of `groups`.

    Raises
    ------
    CompileError, ValueError, TypeError
        The errors of `compile`, from the first group that fails; later groups are not started.
    """
    from concurrent.futures import ThreadPoolExecutor

    if isinstance(groups, str) or any(isinstance(names, str) for names in groups):
        raise TypeError(f"groups is a sequence of sequences of names, got {groups!r}")
    with ThreadPoolExecutor(threads or os.cpu_count()) as executor:
        pending = [
            executor.submit(
                compile,
                source,
                names,
                arch=arch,
                options=options,
                headers=headers,
                define=define,
                filename=filename,
            )
            for names in groups
        ]
        try:
            return [future.result() for future in pending]
        except BaseException:
            executor.shutdown(cancel_futures=True)
            raise


def _build(job: Job) -> Image:
    """Compile a job, and log it."""
    begin = time.perf_counter()
    image = build(job)
    milliseconds = 1e3 * (time.perf_counter() - begin)
    logger.info("compiled %s for %s in %.0f ms", job.filename, job.arch, milliseconds)
    return image


def _kept(store: cache.Cache, key: str | None) -> Image | None:
    found = store.get(key) if key else None
    try:
        return from_facts(*found) if found else None
    except ValueError:
        return None


def _facts(job: Job, library: toolchain.Library, image: Image) -> dict[str, Any]:
    return {
        "kind": "kernel",
        "file": job.filename,
        "names": job.names,
        "arch": job.arch,
        "options": job.options,
        "macros": job.macros,
        "nvrtc": [".".join(map(str, library.version)), library.files[0][0]],
        **image.facts(),
    }
