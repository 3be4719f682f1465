"""The folders of a CUDA source's headers, and the packages that install missing ones."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence

from cyrt.jit.includes import included_names
from cyrt.jit.standard import GLOBAL_NAMES, STD_NAMES

# `cuda.pathfinder`'s names of the libraries whose folders are searched; "nvcc" has crt/.
_LIBRARIES = ("cudart", "cccl", "nvcc", "curand")
# The folders of the wheels for CUDA 12; those for later versions share the folder "cu13".
_WHEELS_OF_12 = {
    "cudart": "cuda_runtime",
    "cccl": "cuda_cccl",
    "nvcc": "cuda_nvcc",
    "curand": "curand",
}
_WHEEL_FOLDER = re.compile(rf"(.*/nvidia)/(?:cu\d+|{'|'.join(_WHEELS_OF_12.values())})/include.*")

# Pattern of a header's path, its wheel for CUDA 13 and for CUDA 12; the first match is used.
_WHEELS = (
    (r"(cub|thrust|cuda|nv)/", "nvidia-cuda-cccl", "nvidia-cuda-cccl-cu12"),
    (r"crt/", "nvidia-cuda-crt", "nvidia-cuda-nvcc-cu12"),
    (r"curand", "nvidia-curand", "nvidia-curand-cu12"),
    (r"cublas", "nvidia-cublas", "nvidia-cublas-cu12"),
    (r"cufft", "nvidia-cufft", "nvidia-cufft-cu12"),
    (r"cusparse", "nvidia-cusparse", "nvidia-cusparse-cu12"),
    (r"cusolver", "nvidia-cusolver", "nvidia-cusolver-cu12"),
    (r"cudnn", "nvidia-cudnn-cu13", "nvidia-cudnn-cu12"),
    (r"nvtx3?/|nvToolsExt", "nvidia-nvtx", "nvidia-nvtx-cu12"),
    (
        r"cuda[\w.]*$|cooperative_groups|cuComplex\.h|mma\.h|math_(constants|functions)\.h"
        r"|vector_(types|functions)\.|device_[\w]+\.h|sm_\d+_|texture_|surface_|driver_types\.h"
        r"|host_(config|defines)\.h|builtin_types\.h|library_types\.h|channel_descriptor\.h",
        "nvidia-cuda-runtime",
        "nvidia-cuda-runtime-cu12",
    ),
)

_CUDA_VERSION = re.compile(r"^#define CUDA_VERSION (\d+)", re.MULTILINE)
_UNDEFINED = re.compile(r'identifier "(\w+)" is undefined')
_NO_MEMBER = re.compile(r'namespace "std" has no member[^"\n]*"(\w+)"')
_AMBIGUOUS = re.compile(r'more than one instance of overloaded function "(\w+)"')


@functools.cache
def include_directories(major: int = 0) -> tuple[str, ...]:
    """Return the folders of NVIDIA's headers that are installed, as wheels or as a toolkit.

    Found by `cuda.pathfinder`: wheels first, then conda, ``CUDA_PATH`` and ``CUDA_HOME``, then
    the system's toolkit. If wheels for several versions of CUDA are installed, those for the major
    version `major`, that of the compiler, come before newer ones.
    """
    from cuda import pathfinder

    found: dict[str, None] = {}
    for library in _LIBRARIES:
        try:
            folder = pathfinder.find_nvidia_header_directory(library)
        except RuntimeError:
            # This pathfinder does not know the library yet.
            continue
        if folder:
            found[_of_major(major, library, folder)] = None
    return tuple(found)


def are_installed(major: int) -> bool:
    """Return whether the headers of a major version are installed: ``cuda.h`` tells its version."""
    return any(_major_of(folder) == major for folder in include_directories(major))


def _major_of(folder: str) -> int:
    """The major version of the ``cuda.h`` in a folder; 0 if there is none."""
    try:
        with open(os.path.join(folder, "cuda.h"), encoding="utf-8", errors="replace") as file:
            found = _CUDA_VERSION.search(file.read())
    except OSError:
        return 0
    return int(found[1]) // 1000 if found else 0


def _of_major(major: int, library: str, folder: str) -> str:
    """The folder of the library's wheel for a major version, if it is beside that of another."""
    there = _WHEEL_FOLDER.fullmatch(folder)
    if not there or not major:
        return folder
    if major == 12:
        own = f"{there[1]}/{_WHEELS_OF_12[library]}/include"
    else:
        own = f"{there[1]}/cu{major}/include{'/cccl' if library == 'cccl' else ''}"
    return own if os.path.isdir(own) else folder


def lacking_names(folders: Sequence[str]) -> tuple[str, ...]:
    """Return the names that the headers in these folders include and none of them has, ascending.

    Names produced by macros are ignored.
    """
    lacking: set[str] = set()
    for top in folders:
        for folder, _, files in os.walk(top):
            for file in files:
                try:
                    with open(
                        os.path.join(folder, file), encoding="utf-8", errors="surrogateescape"
                    ) as opened:
                        text = opened.read()
                except OSError:
                    continue
                for name, quoted in included_names(text):
                    searched = [folder, *folders] if quoted else folders
                    if not any(os.path.exists(os.path.join(place, name)) for place in searched):
                        lacking.add(name)
    return tuple(sorted(lacking))


def wanted_headers(log: str) -> tuple[str, ...]:
    """Return the standard headers that declare the names a compiler's log reports as undefined.

    nvcc includes much of the C library in every source, NVRTC includes nothing.
    """
    found = [GLOBAL_NAMES.get(name) for name in _UNDEFINED.findall(log)]
    found += [STD_NAMES.get(name) for name in _NO_MEMBER.findall(log)]
    # The standard library, and so nvcc, declares sin(int); for NVRTC the overloads are ambiguous.
    found += [
        "math.h" if STD_NAMES.get(name) == "cmath" else None for name in _AMBIGUOUS.findall(log)
    ]
    return tuple(dict.fromkeys(header for header in found if header))


def header_advice(header: str, cuda_major: int) -> str:
    """Return advice for a header that NVRTC did not find."""
    for pattern, current, older in _WHEELS:
        if re.match(pattern, header):
            wheel = current if cuda_major >= 13 else older
            return f"<{header}> is in the wheel {wheel}: pip install {wheel}"
    if re.fullmatch(r"[a-z_]+", header):
        return (
            f"<{header}> is the host's: NVRTC compiles device code only; much of the standard "
            f"library is in <cuda/std/…> (pip install "
            f"nvidia-cuda-cccl{'' if cuda_major >= 13 else '-cu12'})"
        )
    return f"give headers={{{header!r}: …}}, or its folder as the option '-I…'"
