"""The examples in the docstrings of the functions of arrays."""

from __future__ import annotations

import doctest
import importlib
import io
import pkgutil

import pytest

import cyrt.ops


def _examples():
    """Parse the examples of every function that a module of cyrt.ops defines."""
    parser = doctest.DocTestParser()
    found = {}
    for each in pkgutil.iter_modules(cyrt.ops.__path__, "cyrt.ops."):
        module = importlib.import_module(each.name)
        for name, value in vars(module).items():
            doc = getattr(value, "__doc__", None)
            own = callable(value) and getattr(value, "__module__", None) == module.__name__
            if own and isinstance(doc, str) and ">>>" in doc:
                found[name] = parser.get_doctest(doc, {}, name, module.__name__, None)
    return found


_EXAMPLES = _examples()


def test_most_used_functions_have_examples():
    most_used = {
        "arange",
        "argmax",
        "asarray",
        "astype",
        "clip",
        "concat",
        "cumulative_sum",
        "empty",
        "full",
        "matmul",
        "max",
        "mean",
        "ones",
        "reshape",
        "sort",
        "stack",
        "sum",
        "take",
        "where",
        "zeros",
    }
    assert most_used <= _EXAMPLES.keys()


@pytest.mark.parametrize("name", sorted(_EXAMPLES))
def test_example(name):
    report = io.StringIO()
    results = doctest.DocTestRunner().run(_EXAMPLES[name], out=report.write)
    assert results.attempted
    assert not results.failed, report.getvalue()
