"""The project's two commands, each with all its own set-up, in a virtual environment ``.venv``.

``python3 tools/run.py demo``  builds and installs the package, then compiles a real kernel,
launches it on data, checks it against NumPy and prints what a launch costs.

``python3 tools/run.py test``  builds and installs the package as a wheel, lints, and runs the
tests; further arguments go to pytest.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
WHEELS = ROOT / "build" / "wheels"


def run(*command: object, **environment: str) -> None:
    """Run a command in the project's root; end with its status where it fails."""
    print("$", *command, flush=True)
    status = subprocess.run(
        [str(part) for part in command], cwd=ROOT, check=False,
        env={**os.environ, "PATH": f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}",
             **environment},
    ).returncode
    if status:
        sys.exit(status)


def toolkit() -> str:
    """The extra that fits the driver: ``cuda12`` below CUDA 13, else ``cuda13``."""
    version = ctypes.c_int()
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except OSError:
        return "cuda13"
    return "cuda12" if 0 < version.value < 13000 else "cuda13"


def architectures() -> str:
    """Of the GPUs here, with commas: what kernels are compiled for beside PTX."""
    found = set()
    count, device = ctypes.c_int(), ctypes.c_int()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return ""
    for ordinal in range(count.value):
        driver.cuDeviceGet(ctypes.byref(device), ordinal)
        parts = []
        for attribute in (75, 76):      # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
            value = ctypes.c_int()
            driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
            parts.append(str(value.value))
        found.add(".".join(parts))
    known = re.findall(r"'(\d+\.\d)'", (ROOT / "meson.options").read_text())
    return ",".join(sorted(found.intersection(known)))


def set_up() -> None:
    """A virtual environment with the package, built as a wheel, and what its tests need."""
    begin = time.monotonic()
    if not PYTHON.exists():
        print(f"$ {sys.executable} -m venv {VENV}", flush=True)
        if subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=False).returncode:
            sys.exit("no virtual environment could be made; on Debian and Ubuntu: "
                     "apt install python3-venv")
    pip = (PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check")
    for old in WHEELS.glob("cyrt-*.whl"):
        old.unlink()
    # Without isolation a second run builds only what changed.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # The pip that comes with older Pythons does not know -C.
    run(*pip, "install", "pip>=23.1", *project["build-system"]["requires"], "ninja")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", WHEELS,
        f"-Cbuild-dir={ROOT / 'build' / f'cp{sys.version_info[0]}{sys.version_info[1]}'}",
        f"-Csetup-args=-Darchs={architectures()}", ROOT)
    (wheel,) = WHEELS.glob("cyrt-*.whl")
    run(*pip, "install", f"{wheel}[{toolkit()},test]")
    run(*pip, "install", "--force-reinstall", "--no-deps", wheel)
    print(f"set up in {time.monotonic() - begin:.0f} s", flush=True)


def demo() -> None:
    """The main job."""
    run(PYTHON, ROOT / "examples" / "saxpy.py")


def test(arguments: list[str]) -> None:
    """Lint, then the suite: on the emulated device unless ``CYRT_DEVICE`` says otherwise."""
    begin = time.monotonic()
    run(PYTHON, "-m", "ruff", "check", ".")
    run(VENV / "bin" / "cython-lint", "cyrt")
    device = os.environ.get("CYRT_DEVICE", "emulated")
    workers = [] if device == "cuda" else ["-n", str(len(os.sched_getaffinity(0)))]
    run(VENV / "bin" / "pytest", *workers, *arguments, CYRT_DEVICE=device)
    print(f"lint and tests in {time.monotonic() - begin:.0f} s", flush=True)


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in ("demo", "test"):
        sys.exit(__doc__)
    set_up()
    if sys.argv[1] == "demo":
        demo()
    else:
        test(sys.argv[2:])


if __name__ == "__main__":
    main()
