"""``python -m cyrt graph``: run a script, and draw the batches that it launched."""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from cyrt import settings
from cyrt.cli.graph_svg import svg, titles
from cyrt.graph import plan
from cyrt.graph.drawing import dot
from cyrt.jit.mangling import readable_name
from cyrt.runtime import waiting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments; further ones are the script's."""
    parser.allow_abbrev = False
    parser.usage = "%(prog)s [-h] SCRIPT [ARGUMENT ...] -o FILE [--dot FILE] [-- ARGUMENT ...]"
    parser.description = (
        "Run a script and draw the batches that it launched. Arguments that are not named here are "
        "the script's, and so is everything after --."
    )
    parser.add_argument(
        "script", metavar="SCRIPT", help="a Python file, or a folder or archive with a __main__.py"
    )
    parser.add_argument(
        "-o", required=True, metavar="FILE", dest="svg", help="the picture to write, an SVG"
    )
    parser.add_argument("--dot", metavar="FILE", help="write Graphviz's language there as well")


def run(options: argparse.Namespace) -> int:
    """Run a script as ``__main__`` and draw the distinct batches, in order of their first use.

    Returns
    -------
    int
        The script's own exit status, if it sets one; 1 if the script raises or records nothing, or
        if a picture cannot be written; 2 if the script is not run at all.
    """
    script = options.script
    # Absolute before the script runs: it may change the current folder.
    source = Path(script).absolute()
    targets = [Path(name).absolute() for name in (options.svg, options.dot) if name is not None]
    refusal = _refusal(script, source, targets)
    if refusal is not None:
        _say(refusal)
        return 2
    process = os.getpid()
    status = _run_script(script, options.script_arguments)
    if os.getpid() != process:
        return status  # a forked child that reached the script's end
    waiting.drain(settings.get("CYRT_EXIT_TIMEOUT"))  # launch what is recorded, as at exit
    batches = plan.cached()
    if not batches:
        _say(
            "nothing is batched with CYRT_GRAPHS=0, so there is nothing to draw"
            if not settings.get("CYRT_GRAPHS")
            else f"{script} recorded nothing, so there is nothing to draw"
        )
        return 1
    texts = [svg(batches, readable_name)]
    if options.dot is not None:
        texts.append(
            "\n".join(
                dot(batch.nodes, batch.edges, title=title, label=readable_name)
                for batch, title in zip(batches, titles(batches), strict=True)
            )
        )
    for target, text in zip(targets, texts, strict=True):
        # The script may have linked them since.
        if _is_source(source, target):
            _say(f"{target} is the script's own file: nothing is written there")
            return 1
        try:
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            _say(f"{target} cannot be written: {error.strerror}")
            return 1
    _say(f"{options.svg}: {len(batches)} batch{'es' * (len(batches) > 1)}")
    return status


def _flush() -> None:
    """Write what the script has printed, if its output is still open and read."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stdout.flush()


def _say(text: str) -> None:
    _flush()  # the script's own output first
    # There may be no stderr.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(f"cyrt graph: {text}\n")


def _refusal(script: str, source: Path, targets: Sequence[Path]) -> str | None:
    if not any(file.is_file() for file in _sources(source)):
        return f"{script}: there is no such script"
    if any(_is_source(source, target) for target in targets) or (
        len(targets) > 1 and _is_same(*targets)
    ):
        return "the script and the files to write must be different ones"
    for target in targets:
        if not target.parent.is_dir():
            return f"{target} cannot be written: there is no folder {target.parent}"
        if target.is_dir():
            return f"{target} cannot be written: it is a folder"
    return None


def _sources(source: Path) -> tuple[Path, Path]:
    """The files that Python may run for a script: the script, or a folder's ``__main__.py``."""
    return source, source / "__main__.py"


def _is_source(source: Path, target: Path) -> bool:
    return any(_is_same(file, target) for file in _sources(source))


def _is_same(one: Path, other: Path) -> bool:
    """Whether two names are of one file, or will be once it exists."""
    try:
        return one.samefile(other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


def _run_script(script: str, arguments: Sequence[str]) -> int:
    """Run a script as Python would; returns its exit status."""
    sys.argv = [script, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as request:
        if request.code is None or isinstance(request.code, int):
            return request.code or 0
        _flush()
        with contextlib.suppress(AttributeError, OSError, ValueError):
            sys.stderr.write(f"{request.code}\n")
        return 1
    except BaseException as error:
        _flush()
        # The script's part of the traceback: none where it does not compile.
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_globals.get("__name__") != "__main__":
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0
