"""The page of environment variables is that of ``cyrt/settings.py``."""

from __future__ import annotations

import re

from blocks import DOCS

from cyrt.settings import SETTINGS

_ROW = re.compile(r"^\| `(CYRT_\w+)` \| (?:none|`([^`]*)`) \| (.*) \|$", re.MULTILINE)


def test_variables_and_their_defaults():
    rows = _ROW.findall((DOCS / "environment.md").read_text())
    assert sorted(name for name, _, _ in rows) == sorted(SETTINGS)
    for name, text, meaning in rows:
        setting = SETTINGS[name]
        assert meaning
        if text:
            assert setting.parse(text) == setting.default, name
        else:
            assert setting.default is None, name


def test_variables_that_pages_name_are_there():
    for page in DOCS.rglob("*.md"):
        named = set(re.findall(r"CYRT_[A-Z][A-Z0-9_]*[A-Z0-9]", page.read_text()))
        assert named <= {*SETTINGS}, page
