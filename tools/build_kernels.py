"""Compile the catalogue's prebuilt kernels: cubins for GPUs, and PTX for newer ones and the
emulated device.

``python tools/build_kernels.py FOLDER`` requires NVRTC 12.9 from its wheel, so that drivers of CUDA
12 and 13 both load the result; it requires no GPU and no nvcc. Only changed kernels are compiled
again. ``--check FOLDER`` reports whether a folder matches the current sources.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import hashlib
import json
import os
import re
import sys
import time
import types
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "kernels_cu"
WHEEL = "nvidia-cuda-nvrtc-cu12"
VERSION = (12, 9)
DOTTED = "12.9"
INSTALL = f"pip install '{WHEEL}=={DOTTED}.*'"
ARCHS = ("8.0", "8.6", "8.9", "9.0", "10.0", "12.0")
PTX_ARCH = "9.0"
OPTIONS = ("-std=c++17", f"-I{KERNELS}", f"-I{KERNELS / 'include'}")
MANIFEST = "manifest.json"


def load_catalogue() -> types.ModuleType:
    """Import cyrt.builtin.catalogue from a package that is not built yet."""
    for name in ("cyrt", "cyrt.builtin"):
        package = types.ModuleType(name)
        package.__path__ = [str(ROOT.joinpath(*name.split(".")))]
        sys.modules[name] = package
    from cyrt.builtin import catalogue

    return catalogue


catalogue = load_catalogue()


class CompilationFailed(Exception):
    """The compiler refuses a module; the text is its message."""


class Nvrtc:
    """The NVRTC functions that the build calls."""

    def __init__(self) -> None:
        try:
            files = metadata.files(WHEEL) or []
        except metadata.PackageNotFoundError:
            files = []
        paths = [
            str(f.locate())
            for f in files
            if re.fullmatch(r"libnvrtc\.so\.\d+|nvrtc64_\d+_0\.dll", f.name)
        ]
        if not paths:
            sys.exit(
                f"the built-in kernels are compiled by NVRTC {DOTTED}, and {sys.executable} has no "
                f"wheel {WHEEL}: {INSTALL}; or -Dprebuilt=off leaves them to be compiled at run "
                "time, -Dprebuilt=FOLDER takes a folder made by tools/build_kernels.py elsewhere."
            )
        self.library = ctypes.CDLL(paths[0])
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.check(self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        if (major.value, minor.value) != VERSION:
            sys.exit(
                f"{paths[0]} is NVRTC {major.value}.{minor.value}; what drivers of CUDA 12 "
                f"load is made by {DOTTED}: {INSTALL}"
            )

    def check(self, status: int, log: str = "") -> None:
        if status:
            raise CompilationFailed(log + self.library.nvrtcGetErrorString(status).decode())

    def text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self.check(getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        data = ctypes.create_string_buffer(size.value)
        self.check(getattr(self.library, f"nvrtcGet{what}")(program, data))
        return data.raw

    def compile(self, source: str, name: str, target: str) -> bytes:
        program = ctypes.c_void_p()
        self.check(
            self.library.nvrtcCreateProgram(
                ctypes.byref(program), source.encode(), name.encode(), 0, None, None
            )
        )
        options = [o.encode() for o in (*OPTIONS, f"-arch={target}")]
        status = self.library.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*options)
        )
        log = self.text(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        self.check(status, f"{log}\n{name} for {target}: ")
        code = (
            self.text(program, "CUBIN")
            if target.startswith("sm_")
            else self.text(program, "PTX").rstrip(b"\0")
        )
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return code


@functools.cache
def nvrtc() -> Nvrtc:
    """One instance per process."""
    return Nvrtc()


def target_of(arch: str) -> str:
    """Return ``"sm_90"`` for ``"9.0"``."""
    if arch not in ARCHS:
        sys.exit(f"archs: {arch!r} is none of {', '.join(ARCHS)}, all, native")
    return f"sm_{arch.replace('.', '')}"


def sources() -> dict[str, str]:
    """The source text of every module with prebuilt kernels."""
    prebuilt = {
        name: [row for row in rows if row.prebuilt] for name, rows in catalogue.modules().items()
    }
    return {name: catalogue.source(rows) for name, rows in prebuilt.items() if rows}


def included(text: str, found: dict[str, str]) -> dict[str, str]:
    """The files of kernels_cu that a text includes, directly or indirectly, by name."""
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE):
        if name not in found:
            path = KERNELS / name
            found[name] = (path if path.exists() else KERNELS / "include" / name).read_text()
            included(found[name], found)
    return found


def digest(text: str) -> str:
    """The inputs that decide the compiled code, except for the compiler."""
    files = included(text, {})
    parts = [text, *OPTIONS[:1], *(files[name] for name in sorted(files))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_manifest(folder: Path) -> dict[str, str]:
    """The digest of each compiled file, by its path in the folder."""
    try:
        found = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def make(job: tuple[str, str, str, Path]) -> str:
    """Compile one module for one target."""
    name, text, target, path = job
    code = nvrtc().compile(text, f"{name}.cu", target)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(code)
    return f"{path.parent.name}/{path.name}"


def installed() -> list[str]:
    """The compute capabilities to compile for, so that the installed GPUs run what comes out."""
    count, device, value = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    found = set()
    for ordinal in range(count.value):
        driver.cuDeviceGet(ctypes.byref(device), ordinal)
        capability = []
        for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
            driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
            capability.append(value.value)
        # A GPU runs cubins of its own major version and of no later minor one.
        found.update(
            [
                arch
                for arch in ARCHS
                if (version := [int(part) for part in arch.split(".")])[0] == capability[0]
                and version <= capability
            ][-1:]
        )
    return [arch for arch in ARCHS if arch in found]


def archs_of(text: str) -> list[str]:
    """The compute capabilities that ``--archs`` names."""
    if text in ("native", "none"):
        return installed() if text == "native" else []
    return list(ARCHS) if text == "all" else [arch for arch in text.split(",") if arch]


def targets_of(archs: list[str]) -> list[tuple[str, str]]:
    """Each target and the suffix of its files; PTX is always included."""
    targets = [(target_of(arch), "cubin") for arch in dict.fromkeys(archs)]
    return [*targets, (f"compute_{PTX_ARCH.replace('.', '')}", "ptx")]


def build(folder: Path, archs: list[str], workers: int) -> None:
    """Compile missing and outdated files, and delete files that are no longer needed."""
    begin = time.monotonic()
    targets = targets_of(archs)
    done = read_manifest(folder)
    wanted, jobs = {}, []
    for name, text in sources().items():
        key = digest(text)
        for target, ending in targets:
            path = folder / target / f"{name}.{ending}"
            entry = f"{target}/{path.name}"
            wanted[entry] = key
            if done.get(entry) != key or not path.exists():
                jobs.append((name, text, target, path))
    if not jobs and done == wanted:
        return
    nvrtc()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    jobs.sort(key=lambda job: -len(job[1]))
    try:
        with ProcessPoolExecutor(workers) as pool:
            last_line = begin
            for count, entry in enumerate(pool.map(make, jobs), 1):
                done[entry] = wanted[entry]
                if time.monotonic() - last_line > 4:
                    last_line = time.monotonic()
                    print(f"{count} of {len(jobs)} modules compiled", flush=True)
    except CompilationFailed as failed:
        sys.exit(str(failed))  # without the traces of two processes above it
    finally:
        kept = {entry: key for entry, key in done.items() if wanted.get(entry) == key}
        (folder / MANIFEST).write_text(json.dumps(kept, indent=0, sort_keys=True))
    for path in folder.glob("*/*"):
        if f"{path.parent.name}/{path.name}" not in wanted:
            path.unlink()
    nbytes = sum(path.stat().st_size for path in folder.glob("*/*"))
    print(
        f"{len(jobs)} of {len(wanted)} modules compiled for "
        f"{', '.join(target for target, _ in targets)} in {time.monotonic() - begin:.0f} s; "
        f"{nbytes / 1e6:.1f} MB"
    )


def check(folder: Path) -> None:
    """Exit with an error if the folder was compiled from other sources."""
    found = read_manifest(folder)
    if not found:
        sys.exit(f"{folder} is no folder made by tools/build_kernels.py: it has no {MANIFEST}")
    expected = {name: digest(text) for name, text in sources().items()}
    targets = {entry.partition("/")[0] for entry in found}
    for target in sorted(targets | {f"compute_{PTX_ARCH.replace('.', '')}"}):
        ending = "cubin" if target.startswith("sm_") else "ptx"
        for name, key in expected.items():
            entry = f"{target}/{name}.{ending}"
            if found.get(entry) != key or not (folder / entry).exists():
                sys.exit(
                    f"{folder}: {entry} is missing or was made of other sources; make the "
                    "folder again with tools/build_kernels.py"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--check", action="store_true", help="compile nothing")
    parser.add_argument(
        "--probe", action="store_true", help="only look for the compiler, and check --archs"
    )
    parser.add_argument(
        "--archs",
        default="all",
        help="compute capabilities, with commas; all; native: the GPUs present; none: PTX only",
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    archs = archs_of(arguments.archs)
    if arguments.probe:
        targets_of(archs)
        nvrtc()
    elif arguments.folder is None:
        parser.error("name a folder")
    elif arguments.check:
        check(arguments.folder)
    else:
        build(arguments.folder, archs, arguments.jobs)


if __name__ == "__main__":
    main()
