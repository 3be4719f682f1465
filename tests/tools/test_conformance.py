"""The report of the array API test suite, read."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parent.parent.parent / "tools" / "conformance.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("conformance", PATH)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_rate_counts_expected_failures(tool):
    report = {
        "tests": [
            {"nodeid": str(i), "outcome": outcome}
            for i, outcome in enumerate(
                ["passed"] * 5 + ["xpassed", "failed", "xfailed", "error", "skipped", "skipped"]
            )
        ]
    }
    found = tool.outcomes(report)
    assert found["5"] == "passed"
    assert tool.rate(found) == pytest.approx(100 * 6 / 9)


def test_each_expected_failure_has_a_reason(tool):
    assert tool.read_expected("# head\n\na.py::test[x(1) -> y] # because\n") == {
        "a.py::test[x(1) -> y]": "because"
    }
    with pytest.raises(ValueError, match="line 2: expected 'TEST # REASON'"):
        tool.read_expected("# head\na.py::test\n")
    assert all(tool.read_expected(tool.EXPECTED.read_text()).values())


def test_the_error_of_a_failure(tool):
    assert tool.first_line({"setup": {}, "call": {"crash": {"message": "E: a\nb"}}}) == "E: a"
    assert tool.first_line({"setup": {}}) == ""
