"""Load mutated PTX on the emulated device and run it, under the compiler's sanitizers.

    python tools/fuzz_ptx.py --seconds 600 [FILE.ptx ...]

Builds the device and tools/fuzz_ptx.cpp with the address and the undefined-behaviour sanitizer in
build/fuzz, and sends the program mutations of the files and of small built-in modules. A text that
crashes the program or exceeds the time limit is written to build/fuzz/findings; the exit status is
then 1.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import random
import re
import selectors
import struct
import subprocess
import sys
import time
from pathlib import Path

from ptx_mutations import cut, mutate, own_seeds

ROOT = Path(__file__).resolve().parent.parent
EMULATOR = ROOT / "cyrt" / "emulator"
BUILD = ROOT / "build" / "fuzz"
PATIENCE = 30  # seconds for one text
# Findings are distinguished by the location that the sanitizer reports.
KIND = re.compile(r"[\w/.]+:\d+:\d+: runtime error|SUMMARY: \w+: [^\n(]+")


def cuda_include() -> Path:
    for entry in map(Path, [*sys.path, "/usr/local/cuda"]):
        for folder in (entry / "nvidia" / "cu13" / "include", entry / "include"):
            if (folder / "cuda.h").exists() and "linux" not in str(folder):
                return folder
    sys.exit("cuda.h is not found: pip install nvidia-cuda-runtime")


def build() -> Path:
    """Build the program; an object older than one of its sources is compiled again."""
    BUILD.mkdir(parents=True, exist_ok=True)
    flags = [
        "-std=c++17",
        "-O1",
        "-g",
        "-fsanitize=address,undefined",
        "-fno-omit-frame-pointer",
        "-fno-sanitize-recover=undefined",
        "-ffp-contract=off",
        "-fno-sanitize=vptr",
        f"-I{EMULATOR}",
        f"-isystem{cuda_include()}",
        "-pthread",
    ]
    isas: dict[str, list[str]] = {"base": [], "v3": ["-march=x86-64-v3"]}
    jobs = []
    for source in [*sorted(EMULATOR.glob("*/*.cpp")), ROOT / "tools" / "fuzz_ptx.cpp"]:
        handlers = source.name.startswith("handlers_")
        for isa, options in (isas if handlers else {"": []}).items():
            output = BUILD / f"{source.parent.name}_{source.stem}{isa}.o"
            name = [f"-DCYRT_EMU_ISA={isa}"] if handlers else []
            jobs.append((source, output, [*flags, *options, *name]))
    compiler = os.environ.get("CXX", "c++").split()

    def compile_one(job: tuple[Path, Path, list[str]]) -> None:
        source, output, options = job
        made_of = output.with_suffix(".d")
        if output.exists() and made_of.exists():
            files = made_of.read_text().replace("\\\n", " ").partition(":")[2].split()
            if all(
                Path(file).exists() and Path(file).stat().st_mtime < output.stat().st_mtime
                for file in files
            ):
                return
        subprocess.run(
            [*compiler, *options, "-MMD", "-MF", made_of, "-c", source, "-o", output], check=True
        )

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(compile_one, jobs))
    program = BUILD / "fuzz_ptx"
    subprocess.run(
        [
            *compiler,
            "-fsanitize=address,undefined",
            "-pthread",
            *[output for _, output, _ in jobs],
            "-o",
            program,
        ],
        check=True,
    )
    return program


class Program:
    """The device in a separate process, which ends at the first error."""

    def __init__(self, command: list[Path]) -> None:
        self.command = command
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "CYRT_EMULATED_MEMORY": "64M",
            "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
        return subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(BUILD / "stderr").open("wb"),
            env=environment,
        )

    def run(self, text: str) -> str | None:
        """The process's answer, or None if the process ended or did not answer."""
        if self.process is None:
            self.process = self.start()
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        data = text.encode("latin-1").replace(b"\0", b" ")
        try:
            process.stdin.write(struct.pack("=I", len(data)) + data)
            process.stdin.flush()
        except BrokenPipeError:
            pass
        selector = selectors.DefaultSelector()
        selector.register(process.stdout, selectors.EVENT_READ)
        answer = process.stdout.readline() if selector.select(PATIENCE) else b""
        selector.close()
        if answer.endswith(b"\n"):
            return answer.decode().strip().rpartition("\n")[2]
        process.kill()
        process.wait()
        self.process = None
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="PTX to mutate")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    program = Program([build()])
    chance = random.Random(arguments.seed)
    seeds = own_seeds() + [path.read_text("latin-1") for path in arguments.files]
    findings = BUILD / "findings"
    end = time.monotonic() + arguments.seconds
    known = set()
    tried = loaded = found = 0
    while time.monotonic() < end:
        seed = chance.choice(seeds)
        text = mutate(chance, cut(seed, chance))
        answer = program.run(text)
        tried += 1
        loaded += answer is not None and answer.startswith("0")
        if answer is not None:
            continue
        report = (BUILD / "stderr").read_text("latin-1")
        match = KIND.search(report)
        kind = match.group() if match else "no report"
        known.add(kind)
        if len(known) == found:
            continue
        found = len(known)
        findings.mkdir(exist_ok=True)
        (findings / f"{found}.ptx").write_text(text, "latin-1")
        (findings / f"{found}.txt").write_text(report, "latin-1")
        print(f"finding {found}: {kind}")
    print(f"{tried} texts, {loaded} of them loaded, {found} findings")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
