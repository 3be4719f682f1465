"""Count the instructions that the host executes for an operation, and compare them with a table.

``python tools/instruction_counts.py`` counts on the emulated device, with valgrind's callgrind,
what the calling thread executes, and subtracts that of the same loop over Python's floats. It fails
where a count is more than 3 % above that of tools/instruction_counts.json. Counts depend on
the compiler and on Python: where the table has none for these, they are printed and nothing is
compared. ``--write`` puts the counts into the table.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools" / "instruction_counts.json"
LIMIT = 1.03  # the greatest ratio to the table's count
WARM = 3  # sections until a program has settled
SECTIONS, ROUNDS = 7, 1000  # measured ones, the least of which counts, and operations of each
FLOATS = "floats"
NAMES = (
    FLOATS,
    "x + b",
    "kernel[grid, block](...)",
    "x[1:-1, 1:-1]",
    "x.sum(axis=1)",
    "x + b, commit()",
    "x + b of another stream",
    "encoder.add_kernel(...)",
    "linalg.solve(m, b)",
    "linalg.eigh(m)",
    "fft.fft(z)",
)

Loop = Callable[[int], None]


def programs() -> tuple[Loop, ...]:
    """The loops, in the order of `NAMES`, which tell what each round has."""
    import cyrt

    a, b = cyrt.zeros(16), cyrt.ones(16)
    matrix, y = cyrt.ones((16, 16)), cyrt.ones(16)
    kernel = cyrt.Kernel(
        "__global__ void add_one(const float* x, float* y, int n) {"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;"
        "  if (i < n) y[i] = x[i] + 1;"
        "}",
        "add_one",
    )

    def floats(rounds: int) -> None:
        x, y = 1.0, 2.0
        for _ in range(rounds):
            x = x + y

    def add(rounds: int) -> None:
        x = a
        for _ in range(rounds):
            x = x + b

    def launch(rounds: int) -> None:
        launch = kernel[1, 32]
        for _ in range(rounds):
            launch(b, y, 16)

    def take_slice(rounds: int) -> None:
        x = matrix
        for _ in range(rounds):
            x[1:-1, 1:-1]

    def sum_rows(rounds: int) -> None:
        x = matrix
        for _ in range(rounds):
            x.sum(axis=1)

    def add_and_commit(rounds: int) -> None:
        x, commit = a, cyrt.commit
        for _ in range(rounds):
            x = x + b
            commit()

    def add_of_another_stream(rounds: int) -> None:
        with stream:
            x = c
            for _ in range(rounds):
                x = x + b

    def add_kernel(rounds: int) -> None:
        add_kernel = encoder.add_kernel
        for _ in range(rounds):
            add_kernel(kernel, 1, 32, (own, z, 16))

    def solve(rounds: int) -> None:
        solve = cyrt.linalg.solve
        for _ in range(rounds):
            solve(square, square)

    def find_eigenvalues(rounds: int) -> None:
        eigh = cyrt.linalg.eigh
        for _ in range(rounds):
            eigh(square)

    def transform(rounds: int) -> None:
        fft = cyrt.fft.fft
        for _ in range(rounds):
            fft(complexes)

    square, complexes = cyrt.eye(4), cyrt.ones(16, dtype="complex64")
    stream, encoder = cyrt.Stream(), cyrt.CommandEncoder()
    own = cyrt.zeros(16)  # This stream writes it, and only the encoder's stream reads it.
    with stream:
        c = cyrt.zeros(16)
    with encoder.stream:
        z = cyrt.zeros(16)
    return (
        floats,
        add,
        launch,
        take_slice,
        sum_rows,
        add_and_commit,
        add_of_another_stream,
        add_kernel,
        solve,
        find_eigenvalues,
        transform,
    )


def run_programs() -> None:
    """Run the loops. Callgrind ends a part of its output where ``getppid`` is called."""
    import cyrt
    from cyrt.driver import table

    table.replace("cyrtEmuSetRanges", 0)  # launches as those on a GPU, which carry no ranges
    loops, kept = programs(), []
    gc.disable()
    for loop in loops:
        for _ in range(WARM):
            loop(ROUNDS)
            cyrt.synchronize()
        for _ in range(SECTIONS):
            # An operation whose objects are at the end of a pool of Python's allocator frees and
            # takes the pool each time: each section begins elsewhere in the pools.
            kept.append([bytes(size) for size in range(1, 480, 16)])
            os.getppid()
            loop(ROUNDS)
            os.getppid()
            cyrt.synchronize()


def parts(folder: Path) -> list[int]:
    """The instructions of the first thread in each part of callgrind's output."""
    counts = {}
    for file in folder.glob("out.*-01"):
        number = int(file.suffixes[-1][1:].partition("-")[0])
        found = re.search(r"^(?:totals|summary): (\d+)", file.read_text(), re.MULTILINE)
        counts[number] = int(found[1]) if found else 0
    return [counts[number] for number in sorted(counts)]


def count() -> dict[str, int]:
    """The instructions of one operation of each program, less those of the loop over floats."""
    command = [sys.executable, "-P", __file__, "--run"]
    environment = {
        **{name: each for name, each in os.environ.items() if not name.startswith("CYRT_")},
        "CYRT_DEVICE": "emulated",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as name:
        # What is compiled at first use comes from the cache on disk afterwards.
        subprocess.run(command, check=True, cwd=name, env=environment)
        subprocess.run(
            [
                *("valgrind", "-q", "--tool=callgrind", "--separate-threads=yes"),
                *("--dump-before=getppid", f"--callgrind-out-file={name}/out"),
                *command,
            ],
            check=True,
            cwd=name,
            env=environment,
        )
        found = parts(Path(name))
    names = NAMES
    # What comes before the first section, then by turns a section and what is between two.
    sections = found[1 : 2 * SECTIONS * len(names) : 2]
    if len(sections) != SECTIONS * len(names):
        sys.exit(f"callgrind wrote {len(found)} parts, which are no {len(names)} programs")
    least = {
        name: min(sections[i * SECTIONS : (i + 1) * SECTIONS]) / ROUNDS
        for i, name in enumerate(names)
    }
    floats = least.pop(FLOATS)
    return {name: round(each - floats) for name, each in least.items()}


def toolchain() -> str:
    """What counts depend on: the compiler of the package, and Python."""
    build = ROOT / "build" / f"cp{sys.version_info[0]}{sys.version_info[1]}"
    compilers = build / "meson-info" / "intro-compilers.json"
    compiler = "an unknown compiler"
    if compilers.exists():
        found = json.loads(compilers.read_text())["host"]["c"]
        compiler = f"{found['id']} {found['version']}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{compiler}, {python} of {platform.python_compiler()}, {platform.machine()}"


def compare(counts: dict[str, int], known: dict[str, int] | None) -> tuple[list[str], bool]:
    """Lines that tell of each count, and whether none has risen by more than the limit."""
    lines, good = [], True
    for name, each in counts.items():
        line = f"{name:<26} {each:>6,} instructions"
        if known is not None and name in known:
            change = each / known[name] - 1
            line += f", {known[name]:,} in the table: {change:+.1%}"
            if each > LIMIT * known[name]:
                line, good = f"{line}, which is more than {LIMIT - 1:+.0%}", False
        lines.append(line)
    return lines, good


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the counts into the table")
    options = parser.parse_args(arguments)
    if shutil.which("valgrind") is None:
        print("instructions are not counted: valgrind is missing")
        return 0
    tables: dict[str, dict[str, int]] = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    counts, key = count(), toolchain()
    lines, good = compare(counts, tables.get(key))
    print(*lines, sep="\n")
    if options.write:
        TABLE.write_text(json.dumps({**tables, key: counts}, indent=1, sort_keys=True) + "\n")
        print(f"written to {TABLE}, for {key}")
    elif key not in tables:
        print(f"nothing is compared: the table has no counts for {key}")
    elif not good:
        print("see what has become longer, or run tools/instruction_counts.py --write and say why")
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--run"]:
        run_programs()
    else:
        sys.exit(main(sys.argv[1:]))
