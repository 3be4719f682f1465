"""The command line, ``python -m cyrt COMMAND``.

There is one module for each command. It has ``add_arguments(parser)``, which adds the command's
arguments to a parser, and ``run(options)``, which returns the exit status.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from cyrt import settings
from cyrt.cli.output import (
    OutputLost,
    Refusal,
    checked_output,
    flush_script_output,
    report_lost_output,
    say,
)

__all__ = ["main"]

COMMANDS = {
    "info": "show the driver, devices, compiler and libraries, and what is missing",
    "bench": "run microbenchmarks, each of which checks its results",
    "graph": "run a script and draw the batches that it launched",
    "cache": "list, show, verify or remove the compiled kernels on disk",
}
# The distribution of a package whose name it does not have.
_DISTRIBUTIONS = {"cuda": "cuda-pathfinder"}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        name = self.prog.removeprefix("python -m ")
        self.exit(2, f"{name}: {message} (see {self.prog} --help)\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        The arguments after the program's name; by default those of the process.

    Returns
    -------
    int
        The exit status: 1 if the output cannot be written, 2 if the command refuses its arguments
        or lacks something that it needs.
    """
    if arguments is None:
        arguments = sys.argv[1:]
    try:
        command, options = _parse(arguments)
        _check_settings()
        if options.command == "graph":  # the script's output and its errors are its own
            status: int = command.run(options)
            flush_script_output()
            return status
        with checked_output():
            return int(command.run(options))
    except OutputLost as lost:
        report_lost_output(lost)
        return 1
    except Refusal as refusal:
        say(f"cyrt {_find_command(arguments)}: {refusal}")
        return 2


def _find_command(arguments: list[str]) -> str | None:
    """The command's name, if there is one."""
    return next((each for each in arguments if not each.startswith("-")), None)


def _check_settings() -> None:
    for name in settings.SETTINGS:
        try:
            settings.get.__wrapped__(name)  # not cached: the script may still set variables
        except ValueError as error:
            raise Refusal(str(error)) from None


def _import(name: str) -> ModuleType:
    try:
        return import_module(f"cyrt.cli.{name}")
    except ModuleNotFoundError as error:
        missing = (error.name or "cyrt").partition(".")[0]
        if missing == "cyrt":
            raise
        raise Refusal(
            f"it needs {missing}, which is not installed: "
            f"pip install {_DISTRIBUTIONS.get(missing, missing)}"
        ) from None


def _parse(arguments: list[str]) -> tuple[ModuleType, argparse.Namespace]:
    """The command's module, and its options; a script's own arguments are ``script_arguments``."""
    parser = _Parser(prog="python -m cyrt", description="The tools of cyrt.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = _find_command(arguments)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary)
        if name == chosen:  # the other commands' imports take time
            command = _import(name)
            command.add_arguments(subparser)

    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, others = parser.parse_known_args(arguments[:end])
    others += arguments[end + 1 :]
    if others and options.command != "graph":
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    options.script_arguments = others
    return command, options
