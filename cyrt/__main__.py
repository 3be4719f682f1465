"""``python -m cyrt``: what is installed, benchmarks, pictures of batches, the kernel cache."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import Any, TextIO


class _OutputLost(Exception):
    """Standard output takes no more; the cause is the system's error."""


class _Output:
    """Standard output, whose faults are told from those of other files."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        try:
            return self._file.write(text)
        except OSError as error:
            raise _OutputLost from error

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            raise _OutputLost from error


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status, 1 where its output cannot be written."""
    options, others = _parsed(sys.argv[1:] if arguments is None else arguments)
    try:
        if options.command == "graph":
            from cyrt import show

            # The script's output is its own, and so are its faults.
            status = show.run(options.script, others, options.svg, options.dot)
            with contextlib.suppress(AttributeError, ValueError):    # it has closed it
                _Output(sys.stdout).flush()
            return status
        with contextlib.ExitStack() as closing:
            # None where the process was started without one: nobody wants to read.
            output = _Output(sys.stdout or closing.enter_context(open(os.devnull, "w")))
            closing.enter_context(contextlib.redirect_stdout(output))
            status = _run(options)
            output.flush()
            return status
    except _OutputLost as lost:
        cause = lost.__cause__
        # A reader that has gone wants to hear no more.
        if not isinstance(cause, BrokenPipeError) and sys.stderr is not None:
            print(f"cyrt: the output cannot be written: {cause.strerror}", file=sys.stderr)
        # The interpreter's exit would write what is left once more.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        with contextlib.suppress(OSError):
            os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return 1


def _parsed(given: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options, and the arguments of a script."""
    parser = argparse.ArgumentParser(prog="python -m cyrt", description="cyrt's tools")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("info", help="driver, devices, compiler, libraries, and what is missing")
    bench = commands.add_parser("bench", help="microbenchmarks; each checks its results first")
    bench.add_argument("--case", action="append", metavar="NAME", help="only this case; repeatable")
    bench.add_argument("--peers", nargs="?", const="all", metavar="NAMES",
                       help="beside other libraries: all, or names with commas between")
    bench.add_argument("--rounds", type=int, default=60, metavar="N",
                       help="how often each is measured; the median counts (default: 60)")
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    bench.add_argument("--plot", type=Path, metavar="FILE", help="draw them: .svg, .png or .pdf")
    graph = commands.add_parser(
        "graph", help="run a script and draw the batches that it launched", allow_abbrev=False,
        usage="%(prog)s [-h] SCRIPT [ARGUMENT ...] -o FILE [--dot FILE] [-- ARGUMENT ...]",
        description="Run a script and draw the batches that it launched. Arguments that are not "
                    "named here are the script's, and so is everything after --.")
    graph.add_argument("script", metavar="SCRIPT", help="a Python file")
    graph.add_argument("-o", required=True, metavar="FILE", dest="svg",
                       help="the picture to write, an SVG")
    graph.add_argument("--dot", metavar="FILE", help="write Graphviz's language there as well")
    cache = commands.add_parser("cache", help="the compiled kernels kept on disk")
    actions = cache.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="kernels, architecture, size and age of each entry")
    show = actions.add_parser("show", help="one entry in full")
    show.add_argument("key", metavar="KEY", help="as `list` shows it, or how it begins")
    actions.add_parser("clear", help="remove all entries")
    actions.add_parser("verify", help="check every entry's checksum")

    end = given.index("--") if "--" in given else len(given)
    options, others = parser.parse_known_args(given[:end])
    others += given[end + 1 :]
    if others and options.command != "graph":
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    return options, others


def _run(options: argparse.Namespace) -> int:
    """Run any command but ``graph``; returns the exit status."""
    if options.command == "info":
        from cyrt import info

        return info.show()
    if options.command == "cache":
        from cyrt.jit import listing

        return listing.run(options.action, getattr(options, "key", None))
    from cyrt import bench

    return bench.run(options.case, rounds=options.rounds, others=options.peers,
                     json_file=options.json, picture=options.plot)


if __name__ == "__main__":
    sys.exit(main())
