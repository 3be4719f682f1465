"""The command line, ``python -m cyrt COMMAND``.

One module a command. Each has ``add_arguments(parser)``, which adds its arguments to a parser, and
``run(options)``, which returns the exit status.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from types import ModuleType

from cyrt.cli.output import OutputLost, checked_output, flush_script_output, report_lost_output

__all__ = ["main"]

COMMANDS = {
    "info": "driver, devices, compiler, libraries, and what is missing",
    "bench": "microbenchmarks; each checks its results first",
    "graph": "run a script and draw the batches that it launched",
    "cache": "the compiled kernels kept on disk",
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        The arguments behind the program's name; by default the process's.

    Returns
    -------
    int
        The exit status; 1 if the output cannot be written.
    """
    command, options = _parse(sys.argv[1:] if arguments is None else arguments)
    try:
        if options.command == "graph":  # the script's output and its errors are its own
            status = command.run(options)
            flush_script_output()
            return status
        with checked_output():
            return command.run(options)
    except OutputLost as lost:
        report_lost_output(lost)
        return 1


def _parse(arguments: list[str]) -> tuple[ModuleType, argparse.Namespace]:
    """The command's module, and its options; a script's own arguments are ``script_arguments``."""
    parser = argparse.ArgumentParser(prog="python -m cyrt", description="cyrt's tools")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = next((each for each in arguments if not each.startswith("-")), None)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary)
        if name == chosen:  # the other commands' imports take time
            command = import_module(f"cyrt.cli.{name}")
            command.add_arguments(subparser)

    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, others = parser.parse_known_args(arguments[:end])
    others += arguments[end + 1 :]
    if others and options.command != "graph":
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    options.script_arguments = others
    return command, options
