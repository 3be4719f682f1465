"""An error names the driver function that returned it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "cyrt"
HEAD = r"^(?:    )?(?:cdef|cpdef|def)\b[^=\n]*\("
FUNCTION = re.compile(rf"{HEAD}.*?(?={HEAD}|\Z)", re.M | re.S)
NAME = re.compile(r'b"(cu[A-Z]\w+)"')
CHECKED = re.compile(
    r'\b(?:leave|check)\((?:[^()]|\([^()]*\)|\((?:[^()]|\([^()]*\))*\))*?b"(cu[A-Z]\w+)"'
)


def listed():
    """The names in the table of driver functions."""
    text = (SOURCES / "driver" / "functions.h").read_text()
    return set(re.findall(r"F\((cu\w+),", text)) | set(re.findall(r"ALIAS\(\w+, (cu\w+),", text))


def files():
    return sorted(str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.pyx"))


@pytest.mark.parametrize("file", files())
def test_names_are_those_of_the_calls(file):
    """A name is in the table; where a function checks a call of its own, the name is the call's."""
    for function in FUNCTION.findall((SOURCES / file).read_text()):
        calls = set(re.findall(r"\bcu\.(cu\w+)\(", function))
        assert set(NAME.findall(function)) <= listed(), function
        assert not calls or set(CHECKED.findall(function)) <= calls, function
