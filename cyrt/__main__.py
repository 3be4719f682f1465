"""``python -m cyrt``: what is installed, and the benchmarks."""

from __future__ import annotations

import argparse
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m cyrt", description="cyrt's tools")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("info", help="driver, devices, compiler, libraries, and what is missing")
    bench = commands.add_parser("bench", help="microbenchmarks; each checks its results first")
    bench.add_argument("--case", action="append", metavar="NAME", help="only this case; repeatable")
    bench.add_argument("--json", metavar="FILE", help="write the figures there as well")
    options = parser.parse_args(arguments)
    if options.command == "info":
        from cyrt import info

        return info.show()
    from cyrt import bench as benchmarks

    return benchmarks.run(options.case, options.json)


if __name__ == "__main__":
    sys.exit(main())
