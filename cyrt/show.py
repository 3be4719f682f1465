"""``python -m cyrt graph``: run a script, and draw the batches that it launched."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from cyrt import settings
from cyrt.graph import drawing, plan
from cyrt.jit.mangling import from_mangled
from cyrt.runtime import stream


def run(script: str, arguments: Sequence[str], svg: str, dot: str | None) -> int:
    """Run a script as ``__main__`` and draw the distinct batches, in order of their first use.

    Parameters
    ----------
    script : str
        A Python file, or what else Python runs: a folder or archive with a ``__main__.py``.
    arguments : sequence of str
        Its own.
    svg : str
        The picture to write.
    dot : str, optional
        A file to write them to in Graphviz's language as well.

    Returns
    -------
    int
        The exit status: the script's own where it asks for one, 1 where it raises, where it
        records nothing, or where a picture cannot be written; 2 where it is not run at all.
    """
    # Absolute from the beginning: the script may change the folder.
    source = Path(script).absolute()
    targets = [Path(name).absolute() for name in (svg, dot) if name is not None]
    refusal = _refusal(script, source, targets)
    if refusal is not None:
        _say(refusal)
        return 2
    process = os.getpid()
    status = _run(script, arguments)
    if os.getpid() != process:
        return status           # a forked child that came to the script's end
    stream.drain(settings.get("CYRT_EXIT_TIMEOUT"))     # as at exit: what is recorded is launched
    batches = plan.cached()
    if not batches:
        _say("nothing is batched with CYRT_GRAPHS=0, so there is nothing to draw"
             if not settings.get("CYRT_GRAPHS") else
             f"{script} recorded nothing, so there is nothing to draw")
        return 1
    titles = drawing.titles(batches)
    texts = [drawing.svg(batches, _readable)]
    if dot is not None:
        texts.append("\n".join(
            drawing.dot(batch.nodes, batch.edges, title=title, label=_readable)
            for batch, title in zip(batches, titles, strict=True)))
    for target, text in zip(targets, texts, strict=False):
        # The script may have linked them since.
        if _is_source(source, target):
            _say(f"{target} is the script's own file: nothing is written there")
            return 1
        try:
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            _say(f"{target} cannot be written: {error.strerror}")
            return 1
    _say(f"{svg}: {len(batches)} batch{'es' * (len(batches) > 1)}")
    return status


def _flush() -> None:
    """Write out what the script has printed; it may have closed its output, or nobody may read."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stdout.flush()


def _say(text: str) -> None:
    _flush()                    # the script's own output first
    # There may be no stderr to say it on.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(f"cyrt graph: {text}\n")


def _refusal(script: str, source: Path, targets: Sequence[Path]) -> str | None:
    if not any(file.is_file() for file in _sources(source)):
        return f"{script}: there is no such script"
    if any(_is_source(source, target) for target in targets) \
            or (len(targets) > 1 and _is_same(*targets)):
        return "the script and the files to write must be different ones"
    for target in targets:
        if not target.parent.is_dir():
            return f"{target} cannot be written: there is no folder {target.parent}"
        if target.is_dir():
            return f"{target} cannot be written: it is a folder"
    return None


def _sources(source: Path) -> tuple[Path, Path]:
    """The files that Python may run for a script: itself, or what a folder begins with."""
    return source, source / "__main__.py"


def _is_source(source: Path, target: Path) -> bool:
    return any(_is_same(file, target) for file in _sources(source))


def _is_same(one: Path, other: Path) -> bool:
    """Whether two names lead to one file, or will once it exists."""
    try:
        return one.samefile(other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


def _run(script: str, arguments: Sequence[str]) -> int:
    """Run it as Python would; its exit status."""
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


@cache
def _readable(symbol: str) -> str:
    """A kernel's name as it is written in source; the symbol where it cannot be read."""
    signature = from_mangled(symbol)
    return symbol if signature is None else signature.name
