"""The examples in the docstrings of public functions run, and what docstrings name."""

from __future__ import annotations

import doctest
import inspect
import io
import re

import pytest

import cyrt
from cyrt.public_modules import NAMES

# Most names of cyrt.numpy are NumPy's; pages of the other two have their examples.
_MODULES = [getattr(cyrt, name) for name in NAMES if name not in ("cupy_compat", "numpy", "torch")]


def _public():
    """Return every public function and class by its names."""
    return {
        name if module is cyrt else f"{module.__name__}.{name}": getattr(module, name)
        for module in (cyrt, *_MODULES)
        for name in module.__all__
    }


def _examples():
    """Parse the examples of everything public, and those of methods that are no functions, too."""
    parser = doctest.DocTestParser()
    values, found = _public(), {}

    def add(name, value):
        doc = getattr(value, "__doc__", None)
        own = str(getattr(value, "__module__", "")).partition(".")[0] != "numpy"
        if own and callable(value) and isinstance(doc, str) and ">>>" in doc:
            found[name] = parser.get_doctest(doc, {"cyrt": cyrt}, name, None, None)

    for name, value in values.items():
        add(name, value)
    functions = {id(value) for value in values.values()}
    for name, value in values.items():
        for method, each in vars(value).items() if inspect.isclass(value) else ():
            if id(each) not in functions:
                add(f"{name}.{method}", each)
    return found


_EXAMPLES = _examples()


# What programs use most, beside the modules that test_all_of_a_module_have_examples lists.
_MOST_USED = re.findall(
    r"\w+",
    """
    Array Buffer CommandEncoder Device Event Kernel Module Stream
    abs add all allclose any arange argmax argmin argsort asarray asnumpy astype batch broadcast_to
    clip concat concurrent cumulative_sum divide einsum empty equal exp expand_dims eye flip
    full linspace load log logical_and matmul max maximum mean median min minimum multiply nonzero
    ones pad permute_dims pow prod repeat reshape roll round save searchsorted sigmoid sin sort
    split sqrt squeeze stack std subtract sum synchronize take tanh tensordot tile top_k transpose
    tril unique var where zeros
""",
)


def test_most_used_functions_have_examples():
    assert sorted(set(_MOST_USED) - _EXAMPLES.keys()) == []


@pytest.mark.parametrize("module", _MODULES, ids=lambda module: module.__name__)
def test_all_of_a_module_have_examples(module):
    names = {
        f"{module.__name__}.{name}"
        for name in module.__all__
        if not inspect.isclass(getattr(module, name)) or module is not cyrt.linalg  # an exception
    }
    assert sorted(names - _EXAMPLES.keys()) == []


def test_operations_of_neural_networks_name_their_source():
    """A paper or a library; or the function of which they are another form or a gradient."""
    source = re.compile(r"arXiv:|ICML \d|NIPS \d|PyTorch's|MLX's|:func:`(\w+)`")
    for name in set(cyrt.nn.__all__) - set(cyrt.__all__):
        found = source.search(getattr(cyrt.nn, name).__doc__)
        assert found, name
        assert found[1] is None or found[1] in cyrt.nn.__all__, name


@pytest.mark.parametrize("name", sorted(_EXAMPLES))
def test_example(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    report = io.StringIO()
    results = doctest.DocTestRunner().run(_EXAMPLES[name], out=report.write)
    assert results.attempted
    assert not results.failed, report.getvalue()
