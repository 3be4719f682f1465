"""The reference has every public name once, and each with the installed docstring."""

from __future__ import annotations

import ast
import collections
import importlib.util
import re

import pytest
from blocks import DOCS, ROOT

import cyrt
from cyrt.public_modules import NAMES

_BLOCK = re.compile(r"^::: (cyrt[.\w]*)\n((?:    .*\n)*)", re.MULTILINE)
_MEMBER = re.compile(r"^        - (\w+)$", re.MULTILINE)


def load(tool):
    spec = importlib.util.spec_from_file_location(tool, ROOT / "tools" / f"{tool}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stubs():
    return load("reference_stubs")


@pytest.fixture(scope="module")
def folder(stubs, tmp_path_factory):
    path = tmp_path_factory.mktemp("reference")
    stubs.write(path)
    return path


def listed():
    """The names of each module that the pages list; None where a page has all of a module."""
    found = collections.defaultdict(list)
    for page in sorted((DOCS / "reference").glob("*.md")):
        for module, options in _BLOCK.findall(page.read_text()):
            found[module] += _MEMBER.findall(options) or [None]
    return found


def declared(folder, module):
    """The declarations of a module by name: the node, and its docstring."""
    body = ast.parse(folder.joinpath(*module.split("."), "__init__.py").read_text()).body
    found = {}
    for node, behind in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node, ast.get_docstring(node)
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node, ast.literal_eval(behind.value)
    return found


def check_listed(names, public):
    """Check that the pages of docs/reference list each public name once, and no other."""
    counts = collections.Counter(names)
    missing, others = public - counts.keys(), counts.keys() - public
    assert not missing, f"no page of docs/reference lists {sorted(missing)}"
    assert not others, f"docs/reference lists {sorted(others)}, which are not public"
    repeated = [name for name in counts if counts[name] > 1]
    assert not repeated, f"docs/reference lists {repeated} more than once"


def test_every_public_name_is_on_one_page():
    pages = listed()
    check_listed(pages["cyrt"], set(cyrt.__all__) - set(NAMES))
    check_listed(pages["cyrt.kernels"], set(cyrt.kernels.__all__) - {"Kernel", "Module"})
    for module in pages.keys() - {"cyrt", "cyrt.kernels"}:
        assert pages[module] == [None], module
    assert pages.keys() == {"cyrt", *(f"cyrt.{name}" for name in NAMES)}


def test_the_page_of_names_has_a_line_for_each():
    tool = load("names_table")
    text = tool.TARGET.read_text()
    assert text == tool.table(), "run tools/run.py format"
    lines = dict(re.findall(r"^\| \[?`(\w+)`\S* \| (.*) \|$", text, re.MULTILINE))
    assert lines.keys() == {*cyrt.__all__, *NAMES}
    assert all(lines.values())


@pytest.mark.parametrize("module", ["cyrt", *(f"cyrt.{name}" for name in NAMES)])
def test_every_name_is_declared_with_a_docstring(folder, module):
    found = declared(folder, module)
    names = set(importlib.import_module(module).__all__)
    if module == "cyrt":
        names -= set(NAMES)
    assert names <= found.keys()
    assert all(found[name][1] for name in names), [n for n in names if not found[n][1]]


def test_docstrings_and_signatures_are_the_package_s(folder):
    found = declared(folder, "cyrt")
    _, text = found["sum"]
    assert text.startswith("Compute the sum over axes")
    assert text.partition("\n")[0] in cyrt.sum.__doc__
    assert [each.arg for each in found["sum"][0].args.args] == [
        "axis",
        "dtype",
        "out",
        "keepdims",
        "initial",
        "where",
    ]
    defaults = [ast.unparse(each) for each in found["sum"][0].args.defaults]
    assert defaults == ["None", "None", "None", "False", "None", "None"]
    members = {each.name: each for each in found["Kernel"][0].body if hasattr(each, "name")}
    assert "occupancy" in ast.get_docstring(members["suggest"])
    assert "property" in ast.unparse(members["registers"].decorator_list[0])
    array = {each.name for each in found["Array"][0].body if hasattr(each, "name")}
    assert {"numpy", "sum", "T", "astype"} <= array


def test_roles_and_tables_become_markdown(stubs):
    text = "See :func:`~cyrt.sum`, :func:`layer_norm` and :meth:`tune`."
    assert stubs.markdown(text) == (
        "See [`cyrt.sum`][cyrt.sum], [`layer_norm`][cyrt.nn.layer_norm] and `tune`."
    )
    table = "===  ===\na    b\n===  ===\n1    2\n===  ===\n"
    assert stubs.markdown(f"Text\n\n{table}\nmore") == (
        f"Text\n\n```text\n{table.rstrip()}\n```\n\nmore"
    )
