"""``python -m cyrt graph``: run a script, and draw the batches that it launched."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import cyrt
from cyrt import settings
from cyrt.cli.graph_png import png, problem
from cyrt.cli.graph_svg import svg, titles
from cyrt.cli.output import Refusal, one_line, say, unwritable
from cyrt.graph import plan_cache
from cyrt.graph.drawing import dot
from cyrt.graph.fusion import Fusion
from cyrt.graph.plan import Plan
from cyrt.jit.mangling import readable_name
from cyrt.runtime import waiting

PICTURES = (".svg", ".png")
DOTS = (".dot", ".gv")
# A built-in kernel that moves whole elements serves all types of the same size, although it is
# compiled for one of them. A copy of contiguous memory moves 16 bytes at a time, whatever its type.
_MOVE = re.compile("cyrt_(copy|where|transpose)_(uint8|uint16|uint32|uint64|complex128)(.*)")
_WORDS = {"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "complex128": 16}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments. All other arguments belong to the script."""
    parser.allow_abbrev = False
    parser.usage = "%(prog)s [-h] SCRIPT [ARGUMENT ...] [-o FILE] [--dot FILE] [-- ARGUMENT ...]"
    parser.description = (
        "Run a script and draw the batches that it launched. Arguments that are not listed here, "
        "and all arguments after --, are passed to the script."
    )
    parser.add_argument(
        "script", metavar="SCRIPT", help="a Python file, or a folder or archive with a __main__.py"
    )
    parser.add_argument(
        "-o",
        metavar="FILE",
        dest="picture",
        help="the picture's file: .svg or .png; by default SCRIPT_graph.svg in the current folder",
    )
    parser.add_argument(
        "--dot",
        metavar="FILE",
        help="also write every operation to FILE in Graphviz's language: .dot or .gv",
    )


def run(options: argparse.Namespace) -> int:
    """Run a script as ``__main__``, and draw the distinct batches in order of their first use.

    The batches that were compiled into fewer kernels follow.

    Returns
    -------
    int
        The script's own exit status, if it sets one; 1 if the script raises or records nothing, or
        if a picture cannot be written.

    Raises
    ------
    Refusal
        The script is not run at all, or it finds no device.
    """
    script = options.script
    # Absolute before the script runs: it may change the current folder.
    source = Path(script).absolute()
    picture = options.picture or f"{source.stem}_graph.svg"
    names = [name for name in (picture, options.dot) if name is not None]
    targets = [Path(name).absolute() for name in names]
    refusal = _refusal(script, source, names, targets)
    if refusal is not None:
        raise Refusal(refusal)
    process = os.getpid()
    status = _run_script(script, options.script_arguments)
    if os.getpid() != process:
        return status  # a forked child that reached the script's end
    waiting.drain(settings.get("CYRT_EXIT_TIMEOUT"))  # launch what is recorded, as at exit
    batches: list[Plan | Fusion] = [*plan_cache.list_plans(), *plan_cache.list_fused_plans()]
    if not batches:
        _say(
            "nothing is batched with CYRT_GRAPHS=0, so there is nothing to draw"
            if not settings.get("CYRT_GRAPHS")
            else f"{script} recorded nothing, so there is nothing to draw"
        )
        return 1
    drawn = svg(batches, _label)
    contents = [png(drawn) if targets[0].suffix.lower() == ".png" else drawn.encode()]
    if options.dot is not None:
        contents.append(
            "\n".join(
                dot(batch.nodes, batch.edges, title=title, label=_label)
                for batch, title in zip(batches, titles(batches), strict=True)
            ).encode()
        )
    for target, content in zip(targets, contents, strict=True):
        # The script may have linked them since.
        if _is_source(source, target):
            _say(f"{target} is the script's own file: nothing is written there")
            return 1
        try:
            target.write_bytes(content)
        except OSError as error:
            _say(f"{target} cannot be written: {error.strerror}")
            return 1
    _say(f"{picture}: {len(batches)} batch{'es' * (len(batches) > 1)}")
    return status


def _label(symbol: str) -> str:
    """The name to show for a symbol."""
    found = _MOVE.fullmatch(symbol)
    if found is None:
        return readable_name(symbol)
    return f"cyrt_{found[1]}{found[3]}, {8 * _WORDS[found[2]]}-bit words"


def _flush() -> None:
    """Write what the script has printed, if its output is still open and read."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stdout.flush()


def _say(text: str) -> None:
    _flush()  # the script's own output first
    say(f"cyrt graph: {text}")


def _refusal(
    script: str, source: Path, names: Sequence[str], targets: Sequence[Path]
) -> str | None:
    if not any(file.is_file() for file in _sources(source)):
        return f"{script}: there is no such script"
    if any(_is_source(source, target) for target in targets) or (
        len(targets) > 1 and _is_same(*targets)
    ):
        return "the script and the files to write must be different ones"
    for name, target, endings in zip(names, targets, (PICTURES, DOTS), strict=False):
        if target.suffix.lower() not in endings:
            return f"{name}: expected a name that ends in {' or '.join(endings)}"
        reason = unwritable(target)
        if reason is not None:
            return f"{target} cannot be written: {reason}"
    return problem() if targets[0].suffix.lower() == ".png" else None


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
        say(str(request.code))
        return 1
    except BaseException as error:
        _flush()
        if isinstance(error, cyrt.CudaError) and error.name == "CUDA_ERROR_NO_DEVICE":
            raise Refusal(one_line(error)) from None
        # The script's part of the traceback: none where it does not compile.
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_globals.get("__name__") != "__main__":
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0
