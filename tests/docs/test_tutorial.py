"""The lessons of the tutorial run, print what they say, and are the example's code."""

from __future__ import annotations

import pytest
from blocks import blocks_of
from test_pages import run_page
from tutorial_file import FILE, LESSONS, tutorial


def test_there_are_six_lessons():
    assert [path.name[0] for path in LESSONS] == list("123456")


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_lesson(fork_server, lesson):
    assert blocks_of(lesson.read_text())
    run_page(fork_server, lesson)


def test_the_example_is_made_from_the_lessons():
    pytest.importorskip("ruff", reason="ruff, which formats the example, is not installed")
    assert FILE.read_text() == tutorial(), "python tests/docs/tutorial_file.py writes it"
