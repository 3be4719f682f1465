"""Translate the package's changed Cython modules to C.

``cythonize.py FOLDER MODULE...`` writes ``FOLDER/room.name.c`` for each ``room/name.pyx`` of the
package. One process loads Cython, its utility code and the declarations (.pxd) that most modules
cimport, and forks for each module: loading them again for each takes longer than the rest. Files
whose text stays the same are not written, so that their objects are not rebuilt. Where no source
has changed since the last time, Cython is not even imported.

What Cython adds to every module, such as its type of functions, goes into
``FOLDER/cython_utility.c``, the module ``cyrt.cython_utility``, which the others import: otherwise
a sixth of all that is compiled would be copies of it.

Cython's warnings are errors.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHARED = "cython_utility"
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "emit_code_comments": False,  # a fourth of the text, which Cython writes and GCC reads
}


def state() -> str:
    """All that decides the translation: the tool, the modules, and the times of the sources."""
    sources = [each for each in (ROOT / "cyrt").rglob("*.p*") if each.suffix in (".pyx", ".pxd")]
    times = [f"{each} {each.stat().st_mtime_ns}" for each in sorted([*sources, Path(__file__)])]
    return "\n".join([metadata.version("Cython"), *sys.argv[1:], *times])


def declarations(source: str) -> list[str]:
    """The modules whose declarations a source cimports, directly or indirectly."""
    from Cython.Build.Dependencies import create_dependency_tree
    from Cython.Compiler.Main import standard_include_path

    names = []
    for path in create_dependency_tree().all_dependencies(source):  # type: ignore[no-untyped-call]
        if path.endswith(".pxd"):
            parts = Path(os.path.relpath(path, standard_include_path)).parts
            if parts[0] == os.pardir:
                parts = Path(os.path.relpath(path)).parts
            names.append(".".join(parts).removesuffix(".pxd").removesuffix(".__init__"))
    return names


def translate(tasks: list[tuple[Any, ...]], sources: list[str]) -> None:
    """Translate modules, each in a process that is forked once the declarations are loaded which it
    shares with most of the sources."""
    from Cython.Compiler import Main

    needs = {source: set(declarations(source)) for source in sources}
    users = Counter(name for names in needs.values() for name in names)
    # A declaration that another one cimports has at least as many users, so it comes first.
    common = [name for name, _ in sorted(users.items(), key=lambda item: (-item[1], item[0]))]

    def number_shared(task: tuple[Any, ...]) -> int:
        """How many of the most common declarations a module needs without exception."""
        return next((i for i, name in enumerate(common) if name not in needs[task[0]]), len(common))

    context = Main.Context.from_options(tasks[0][4])  # type: ignore[no-untyped-call]
    running: dict[int, str] = {}
    refused: list[str] = []
    loaded = 0

    def wait() -> None:
        pid, status = os.wait()
        source = running.pop(pid)
        if status:
            refused.append(source)

    for task in sorted(tasks, key=number_shared):
        for name in common[loaded : number_shared(task)]:
            context.find_module(name)
            loaded += 1
        if len(running) == len(os.sched_getaffinity(0)):
            wait()
        pid = os.fork()
        if pid == 0:
            source, c_file, _, _, options, _, description, module, *_ = task
            options.output_file, options.embedded_metadata = c_file, description
            errors = 1
            try:
                done = Main.compile_single(  # type: ignore[no-untyped-call]
                    source, options, module, context=context
                )
                errors = done.num_errors
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(errors > 0)
        running[pid] = task[0]
    while running:
        wait()
    if refused:
        sys.exit(f"Cython refuses {', '.join(sorted(refused))}")


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    stamp, now = folder / "cythonize.txt", state()
    if stamp.exists() and stamp.read_text() == now:
        return
    stamp.unlink(missing_ok=True)
    from Cython.Build import Dependencies, cythonize
    from Cython.Compiler import Options
    from setuptools import Extension

    # A warning, such as that a negative index is used although DIRECTIVES exclude it, is an error.
    Options.warning_errors = True
    # A syntax tree holds many objects and leaves little garbage, and each process ends with its
    # module: the collector would take a fifth of the time.
    gc.disable()
    os.chdir(ROOT)  # tracebacks name sources by the paths passed to Cython
    extensions = [
        Extension(f"cyrt.{module.replace('/', '.')}", [f"cyrt/{module}.pyx"])
        for module in sys.argv[2:]
    ]
    extensions.append(Extension(f"cyrt.{SHARED}", [f"cyrt/{SHARED}.c"]))
    # `cythonize` says what has changed: it calls this function for each such module.
    tasks: list[tuple[Any, ...]] = []
    Dependencies.cythonize_one = lambda *task: tasks.append(task)
    translated = cythonize(  # type: ignore[no-untyped-call]  # its stub has no types
        extensions,
        build_dir=str(folder / "translated"),
        include_path=["."],
        compiler_directives=DIRECTIVES,
        quiet=True,
        shared_utility_qualified_name=f"cyrt.{SHARED}",
    )
    if tasks:
        translate(tasks, [f"cyrt/{module}.pyx" for module in sys.argv[2:]])
    for module, extension in zip([*sys.argv[2:], SHARED], translated, strict=True):
        text = Path(extension.sources[0]).read_bytes()
        target = folder / f"{module.replace('/', '.')}.c"
        if not target.exists() or target.read_bytes() != text:
            target.write_bytes(text)
    stamp.write_text(now)


if __name__ == "__main__":
    main()
