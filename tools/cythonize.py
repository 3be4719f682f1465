"""Translate the package's changed Cython modules to C, in few processes.

``cythonize.py FOLDER MODULE...`` writes ``FOLDER/room.name.c`` for each ``room/name.pyx`` of the
package. A separate process for each module takes four times as long: each process loads Cython and
parses its utility code and our shared declarations. Files whose text stays the same are not
written, so that their objects are not rebuilt. Where no source has changed since the last time,
Cython is not even imported.

What Cython adds to every module, such as its type of functions, goes into
``FOLDER/cython_utility.c``, the module ``cyrt.cython_utility``, which the others import: otherwise
a sixth of all that is compiled would be copies of it.

Cython's warnings are errors.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = "cython_utility"
DIRECTIVES = {"language_level": 3, "boundscheck": False, "wraparound": False}


def state() -> str:
    """All that decides the translation: the tool, the modules, and the times of the sources."""
    sources = [each for each in (ROOT / "cyrt").rglob("*.p*") if each.suffix in (".pyx", ".pxd")]
    times = [f"{each} {each.stat().st_mtime_ns}" for each in sorted([*sources, Path(__file__)])]
    return "\n".join([metadata.version("Cython"), *sys.argv[1:], *times])


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    stamp, now = folder / "cythonize.txt", state()
    if stamp.exists() and stamp.read_text() == now:
        return
    stamp.unlink(missing_ok=True)
    from Cython.Build import cythonize
    from Cython.Compiler import Options
    from setuptools import Extension

    # A warning, such as that a negative index is used although DIRECTIVES exclude it, is an error.
    Options.warning_errors = True
    multiprocessing.set_start_method("fork")  # Cython's processes have the option, too

    # A syntax tree holds many objects and leaves little garbage: with Python's own threshold the
    # collector takes a fifth of the time.
    gc.set_threshold(200_000, 20, 100)
    os.chdir(ROOT)  # tracebacks name sources by the paths passed to Cython
    extensions = [
        Extension(f"cyrt.{module.replace('/', '.')}", [f"cyrt/{module}.pyx"])
        for module in sys.argv[2:]
    ]
    extensions.append(Extension(f"cyrt.{SHARED}", [f"cyrt/{SHARED}.c"]))
    translated = cythonize(  # type: ignore[no-untyped-call]  # its stub has no types
        extensions,
        build_dir=str(folder / "translated"),
        include_path=["."],
        compiler_directives=DIRECTIVES,
        nthreads=len(os.sched_getaffinity(0)),
        quiet=True,
        shared_utility_qualified_name=f"cyrt.{SHARED}",
    )
    for module, extension in zip([*sys.argv[2:], SHARED], translated, strict=True):
        text = Path(extension.sources[0]).read_bytes()
        target = folder / f"{module.replace('/', '.')}.c"
        if not target.exists() or target.read_bytes() != text:
            target.write_bytes(text)
    stamp.write_text(now)


if __name__ == "__main__":
    main()
