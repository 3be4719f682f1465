"""``python -m cyrt info``: the driver, devices, compiler, libraries, and the missing parts."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from cyrt import configuration, settings
from cyrt.cli.output import Refusal, check_cache_folder, one_line, print_rows
from cyrt.jit.cache import Cache


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")


def run(options: argparse.Namespace) -> int:
    """Print the facts, and return the exit status: 1 if kernels cannot be compiled.

    Raises
    ------
    Refusal
        The cache folder cannot be used, and nothing was printed; or no device opens.
    """
    check_cache_folder(Path(Cache(settings.cache_dir(), 0).root))
    facts = configuration.collect()
    if options.json:
        print(json.dumps(facts, indent=1, ensure_ascii=False))
    else:
        print_rows(configuration.rows(facts))
    if facts["driver"]["error"]:
        raise Refusal(one_line(facts["driver"]["error"]))
    return 1 if facts["nvrtc"]["error"] else 0
