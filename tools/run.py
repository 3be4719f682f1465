"""The project's commands, each with its complete set-up, in a virtual environment ``.venv``.

``python3 tools/run.py demo``  builds and installs the package, then compiles a real kernel,
launches it on data, compares the result with NumPy and prints the cost of a launch.

``python3 tools/run.py test``  builds and installs the package as a wheel, lints, builds the
documentation, and runs the tests; further arguments go to pytest.

``python3 tools/run.py suite``  builds, installs and runs the tests, without the rest.

``python3 tools/run.py matrix``  runs the tests in each mode, and with another Python where one is
installed; further arguments go to pytest.

``python3 tools/run.py build``  builds the changes since then and copies them into the installed
package, which takes seconds.

``python3 tools/run.py lint``  builds the changes and lints, as ``test`` does first.

``python3 tools/run.py format``  formats the Python, C, C++ and CUDA sources in place, builds the
changes, and writes the pages docs/catalogue.md and docs/reference/names.md.

``python3 tools/run.py docs``  builds the documentation into ``build/site``; a warning is an error.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
import tomllib
from pathlib import Path

import list_sources

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / os.environ.get("VENV", ".venv")
PYTHON = VENV / "bin" / "python"
WHEELS = ROOT / "build" / "wheels"
STUBTEST = [
    "cyrt",
    "--concise",
    "--mypy-config-file",
    "tools/stubtest.ini",
    "--allowlist",
    "tools/stubtest_allowlist.txt",
    "--ignore-unused-allowlist",
    "--ignore-missing-stub",
    "--ignore-positional-only",
    "--ignore-disjoint-bases",
]
# What `matrix` sets, and so what the tests have to pass with.
MODES = ({"CYRT_GRAPHS": "0"}, {"CYRT_CHECK": "1"}, {"CYRT_TEST_GC": "1"})
BUILD = ROOT / "build" / f"cp{sys.version_info[0]}{sys.version_info[1]}"


def call(*command: object, **environment: str) -> int:
    """Run a command in the project's root and return its status."""
    print("$", textwrap.shorten(" ".join(map(str, command)), 200), flush=True)
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        check=False,
        env={
            **os.environ,
            "PATH": f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}",
            **environment,
        },
    ).returncode


def run(*command: object, **environment: str) -> None:
    """Run a command in the project's root; end with its status where it fails."""
    status = call(*command, **environment)
    if status:
        sys.exit(status)


def run_build(*command: object) -> None:
    """Run a command that builds; print a line of its progress every few seconds.

    The build's whole output is printed only if it fails.
    """
    print("$", textwrap.shorten(" ".join(map(str, command)), 200), flush=True)
    begin = last_line = time.monotonic()
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "PATH": f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}"},
    )
    lines = []
    for line in process.stdout or ():
        lines.append(line)
        step = re.search(r"\[\d+/\d+\] \w+ .*|\d+ of \d+ modules compiled", line)
        now = time.monotonic()
        if step and now - last_line > 4:
            last_line = now
            print(f"  {now - begin:3.0f} s  {textwrap.shorten(step[0], 90)}", flush=True)
    if process.wait():
        print("".join(lines), end="", flush=True)
        sys.exit(process.returncode)


def toolkit() -> str:
    """The extra for the driver: ``cu12`` below CUDA 13, else ``cu13``."""
    version = ctypes.c_int()
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except OSError:
        return "cu13"
    return "cu12" if 0 < version.value < 13000 else "cu13"


def set_up(*groups: str) -> None:
    """A virtual environment with the package, built as a wheel, the compiler, and what groups of
    dependencies list."""
    begin = time.monotonic()
    if not PYTHON.exists():
        print(f"$ {sys.executable} -m venv {VENV}", flush=True)
        if subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=False).returncode:
            sys.exit(
                "no virtual environment could be made; on Debian and Ubuntu: "
                "apt install python3-venv"
            )
    pip = (PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check")
    for old in WHEELS.glob("cyrt-*.whl"):
        old.unlink()
    # Without isolation a second run builds only what changed.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # The pip of older Python versions does not know -C.
    run(*pip, "install", "--no-compile", "pip>=23.1", *project["build-system"]["requires"], "ninja")
    # Dependencies are installed in the background while the package is built.
    extra = toolkit()
    needed = project["project"]["dependencies"] + project["project"]["optional-dependencies"][extra]
    for group in groups:
        needed += project["dependency-groups"][group]
    dependencies = subprocess.Popen(
        # Only imported modules get bytecode: compiling all takes longer than the installation.
        [*map(str, pip), "install", "--no-compile", *needed],
        cwd=ROOT,
    )
    try:
        run_build(
            *pip[:3],
            "--disable-pip-version-check",
            "--verbose",
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "--wheel-dir",
            WHEELS,
            f"-Cbuild-dir={BUILD}",
            "-Csetup-args=-Darchs=native",
            ROOT,
        )
    except BaseException:
        dependencies.terminate()
        raise
    if dependencies.wait():
        sys.exit(dependencies.returncode)
    (wheel,) = WHEELS.glob("cyrt-*.whl")
    # pip takes a wheel of the installed version for what is installed.
    if list(installed_folder().glob("cyrt-*.dist-info")):
        run(*pip, "uninstall", "--yes", "cyrt")
    run(*pip, "install", "--no-compile", f"{wheel}[{extra}]")
    print(f"set up in {time.monotonic() - begin:.0f} s", flush=True)


def install_plan() -> dict[Path, str]:
    """The destination of each file that the build installs, as Meson writes it."""
    plan = json.loads((BUILD / "meson-info" / "intro-install_plan.json").read_text())
    return {
        Path(source): entry["destination"]
        for section in plan.values()
        for source, entry in section.items()
    }


def installed_folder() -> Path:
    """The ``site-packages`` of the virtual environment."""
    return Path(
        subprocess.run(
            [PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
    )


def build() -> None:
    """Build the changes, copy them into the installed package, and remove what the build no longer
    has from it."""
    if not (PYTHON.exists() and BUILD.exists()):
        set_up("test")
        return
    # Meson lists the sources when it configures.
    stamp = BUILD / "sources.txt"
    sources = "\n".join(list_sources.names())
    if not stamp.exists() or stamp.read_text() != sources:
        run(PYTHON.parent / "meson", "setup", "--reconfigure", BUILD)
        stamp.write_text(sources)
    run(PYTHON.parent / "ninja", "-C", BUILD, "--quiet")
    folder, copied = installed_folder(), 0
    files = {
        source: folder / destination.removeprefix("{py_platlib}/")
        for source, destination in install_plan().items()
    }
    for source in [each for each in files if each.is_dir()]:
        target = files.pop(source)
        files.update(
            (each, target / each.relative_to(source))
            for each in source.rglob("*")
            if each.is_file()
        )
    targets = set(files.values())
    for source, target in files.items():
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            target.parent.mkdir(parents=True, exist_ok=True)
            # In one step: a process that runs keeps the module that it has loaded.
            new = target.with_name(f"{target.name}.new")
            shutil.copyfile(source, new)
            new.replace(target)
            copied += 1
    removed = [
        path
        for path in (folder / "cyrt").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__" and path not in targets
    ]
    for path in removed:
        path.unlink()
    for info in folder.glob("cyrt-*.dist-info"):
        write_entry_points(info)
    done = (
        f"{copied} copied to {folder}, {len(removed)} removed" if copied or removed else "unchanged"
    )
    print(f"installed files: {done}", flush=True)


def write_entry_points(info: Path) -> None:
    """Write the entry points of pyproject.toml to an installed package's metadata, as the wheel's
    installation does."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items()) + "\n"
        for group, entries in project["entry-points"].items()
    )
    path = info / "entry_points.txt"
    if path.exists() and path.read_text() == text:
        return
    listed = path.exists()
    path.write_text(text)
    if not listed:
        with (info / "RECORD").open("a") as record:  # pip removes what is in the list
            record.write(f"{info.name}/{path.name},,\n")


def demo() -> None:
    """The main job."""
    run(PYTHON, ROOT / "examples" / "saxpy.py")


def docs() -> None:
    """The documentation: the reference is made of the installed package's docstrings."""
    begin = time.monotonic()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pip = (PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "install", *project["dependency-groups"]["docs"])
    run(PYTHON, "-P", ROOT / "tools" / "reference_stubs.py", ROOT / "build" / "reference")
    # The variable turns off a message about another tool of the theme's makers.
    run(PYTHON, "-m", "mkdocs", "-q", "build", "--strict", "--clean", NO_MKDOCS_2_WARNING="1")
    print(f"documentation in {time.monotonic() - begin:.0f} s: build/site/index.html", flush=True)


def c_sources() -> list[Path]:
    """The project's C, C++ and CUDA sources."""
    return sorted(
        path
        for folder in ("cyrt", "kernels_cu", "tests", "tools")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".h", ".hpp", ".cpp", ".cu", ".cuh")
    )


def format_sources() -> None:
    """Format in place what ``lint`` checks the format of."""
    run(PYTHON, "-m", "ruff", "check", "--quiet", "--select", "I,RUF022", "--fix", ".")
    run(PYTHON, "-m", "ruff", "format", "--quiet", ".")
    run(VENV / "bin" / "clang-format", "-i", *c_sources())


def write_pages() -> None:
    """Write the pages that are made of the catalogue's rows and of the installed docstrings."""
    run(PYTHON, ROOT / "tools" / "catalogue_table.py")
    run(PYTHON, "-P", ROOT / "tools" / "names_table.py")


def lint() -> None:
    """Check style, format, types, and the stubs against the installed package."""
    run(PYTHON, "-m", "ruff", "check", ".")
    run(PYTHON, "-m", "ruff", "format", "--check", "--quiet", ".")
    run(VENV / "bin" / "clang-format", "--dry-run", "--Werror", *c_sources())
    run(VENV / "bin" / "cython-lint", "cyrt")
    run(PYTHON, "-m", "mypy")
    run(PYTHON, "-P", ROOT / "tools" / "public_names.py", ROOT / "build" / "public_names")
    run(VENV / "bin" / "stubtest", *STUBTEST)


def suite(arguments: list[str], **environment: str) -> int:
    """Run the tests, on the emulated device unless ``CYRT_DEVICE`` says otherwise."""
    device = os.environ.get("CYRT_DEVICE", "emulated")
    workers = [] if device == "cuda" else ["-n", str(len(os.sched_getaffinity(0)))]
    # The threads of NumPy's library wait busily, and the tests use all processors.
    environment = {"CYRT_DEVICE": device, "OPENBLAS_NUM_THREADS": "1", **environment}
    return call(VENV / "bin" / "pytest", *workers, *arguments, **environment)


def test(arguments: list[str]) -> None:
    """Lint, then the suite."""
    begin = time.monotonic()
    lint()
    docs()
    status = suite(arguments)
    if status:
        sys.exit(status)
    print(f"lint and tests in {time.monotonic() - begin:.0f} s", flush=True)


def starts(python: str) -> bool:
    """Whether a Python on PATH starts: the stand-in of a version manager may start nothing."""
    return not subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode


def another_python() -> str | None:
    """The newest installed Python of another version that the package supports."""
    for minor in range(sys.version_info[1] + 5, 10, -1):
        found = shutil.which(f"python3.{minor}")
        if minor != sys.version_info[1] and found is not None and starts(found):
            return found
    return None


def matrix(arguments: list[str]) -> None:
    """The suite in each mode, then with another Python, in a virtual environment of its own."""
    results = {}
    for mode in MODES:
        name = " ".join(f"{key}={value}" for key, value in mode.items())
        print(f"{name}:", flush=True)
        results[name] = suite(arguments, **mode)
    other = another_python()
    if other is None:
        print("no other Python is installed", flush=True)
    else:
        results[other] = call(
            other, ROOT / "tools" / "run.py", "suite", *arguments, VENV=f".venv-{Path(other).name}"
        )
    for name, status in results.items():
        print(f"{name}: {'failed' if status else 'passed'}", flush=True)
    if any(results.values()):
        sys.exit(1)


def main() -> None:
    # Hundreds of processes import the package, and an import without bytecode takes twice the time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    command = sys.argv[1] if len(sys.argv) > 1 else None
    if command == "demo":
        set_up()
        demo()
    elif command == "test":
        set_up("test")
        test(sys.argv[2:])
    elif command == "suite":
        set_up("test")
        sys.exit(suite(sys.argv[2:]))
    elif command == "matrix":
        build()
        matrix(sys.argv[2:])
    elif command == "format":
        if not PYTHON.exists():
            set_up("test")
        format_sources()
        build()
        write_pages()
    elif command == "build":
        build()
    elif command == "lint":
        build()
        lint()
    elif command == "docs":
        build()
        docs()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
