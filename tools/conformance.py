"""Run the public array API test suite on cyrt, and print the percentage of passed tests.

``python tools/conformance.py FOLDER``, FOLDER a checkout of github.com/data-apis/array-api-tests
with its submodule; without an argument the environment variable ``ARRAY_API_TESTS`` names it. The
suite is run as it is, for version 2025.12 of the standard with its extensions, on the emulated
device unless ``CYRT_DEVICE`` says otherwise. Its requirements must be installed:
``pip install pytest-json-report pytest-xdist hypothesis ndindex``.

Known failures are listed in tools/conformance.txt, one test and its reason per line. The rate is
passed / (passed + failed + expected failures + errors). The exit status is 1 if a test fails that
is not in the list.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

EXPECTED = Path(__file__).with_name("conformance.txt")
COUNTED = ("passed", "failed", "xfailed", "error")


def read_expected(text: str) -> dict[str, str]:
    """Reasons by test; ValueError for a line without one."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        test, _, reason = map(str.strip, line.partition(" # "))
        if not reason:
            raise ValueError(f"line {number}: expected 'TEST # REASON', got {line!r}")
        found[test] = reason
    return found


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    """The outcome of each test; an expected failure that passes counts as passed."""
    return {
        each["nodeid"]: {"xpassed": "passed"}.get(each["outcome"], each["outcome"])
        for each in report["tests"]
    }


def rate(found: dict[str, str]) -> float:
    """Percentage of passed tests."""
    counts = Counter(found.values())
    return 100 * counts["passed"] / max(1, sum(counts[each] for each in COUNTED))


def first_line(test: dict[str, Any]) -> str:
    """The error of a test that failed."""
    for phase in ("setup", "call", "teardown"):
        message: str = test.get(phase, {}).get("crash", {}).get("message", "")
        if message:
            return message.splitlines()[0][:160]
    return ""


def run(folder: Path, expected: dict[str, str], options: argparse.Namespace) -> Any:
    """Run pytest in the suite's folder and return its report; nothing is written there."""
    with tempfile.TemporaryDirectory() as place:
        report, known = Path(place, "report.json"), Path(place, "expected.txt")
        known.write_text("\n".join(expected))
        # -P: import the installed package, not a package in the current folder.
        subprocess.run(
            [
                sys.executable,
                "-P",
                "-m",
                "pytest",
                "array_api_tests",
                "-p",
                "no:cacheprovider",
                "--derandomize",
                "--disable-deadline",
                f"--max-examples={options.examples}",
                f"-n{options.workers}",
                f"--xfails-file={known}",
                "--json-report",
                f"--json-report-file={report}",
                "--json-report-omit",
                "collectors",
                "log",
                "streams",
                "warnings",
                "keywords",
                "-q",
                "--tb=no",
                "--no-header",
                "--no-summary",
                "-W",
                "ignore",
                *(["-k", options.only] if options.only else []),
            ],
            cwd=folder,
            check=False,
            env={
                "CYRT_DEVICE": "emulated",
                **os.environ,
                "ARRAY_API_TESTS_MODULE": "cyrt",
                "ARRAY_API_TESTS_VERSION": "2025.12",
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": os.pathsep.join(
                    filter(None, (str(folder), os.environ.get("PYTHONPATH")))
                ),
                "HYPOTHESIS_STORAGE_DIRECTORY": place,
            },
        )
        if not report.exists():
            sys.exit("the suite did not run: its output says why")
        return json.loads(report.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder",
        nargs="?",
        default=os.environ.get("ARRAY_API_TESTS"),
        help="of the suite; default: ARRAY_API_TESTS",
    )
    parser.add_argument("--examples", type=int, default=20, help="a test (default: 20)")
    parser.add_argument("--workers", default="auto", help="processes (default: one a core)")
    parser.add_argument("--only", metavar="EXPRESSION", help="which tests, as pytest's -k")
    options = parser.parse_args()
    if not options.folder or not Path(options.folder, "array_api_tests").is_dir():
        sys.exit(f"expected the folder of array-api-tests, got {options.folder!r}")
    begin = time.monotonic()
    expected = read_expected(EXPECTED.read_text())
    report = run(Path(options.folder).resolve(), expected, options)
    found = outcomes(report)
    counts = Counter(found.values())
    unexpected = [each for each in report["tests"] if each["outcome"] in ("failed", "error")]
    print(
        f"passed {counts['passed']}, failed {counts['failed']}, expected failures "
        f"{counts['xfailed']}, errors {counts['error']}, skipped {counts['skipped']}"
    )
    print(
        f"rate: {rate(found):.2f} % with {options.examples} examples, in "
        f"{time.monotonic() - begin:.0f} s"
    )
    for each in unexpected:
        print(f"unexpected: {each['nodeid']}: {first_line(each)}")
    for test, reason in expected.items():
        if found.get(test) == "passed":
            print(f"passes, though expected to fail: {test} # {reason}")
        elif test not in found and not options.only:
            print(f"expected to fail, but there is no such test: {test}")
    if unexpected or not counts["passed"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
