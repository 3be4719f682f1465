"""What every public name tells of itself, and what mistyped ones do."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import cyrt

# The others are NumPy's own.
OURS = [name for name in cyrt.numpy.__all__ if getattr(cyrt.numpy, name) is not getattr(np, name)]


def public_callables():
    for module in (cyrt, cyrt.nn, cyrt.random, cyrt.kernels, cyrt.numpy):
        for name in dir(module) if module is not cyrt.numpy else OURS:
            each = getattr(module, name)
            if not name.startswith("_") and callable(each):
                yield pytest.param(each, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("each", list(public_callables()))
def test_a_signature(each):
    inspect.signature(each)
    if inspect.isclass(each) and not issubclass(each, Exception):
        for name, member in vars(each).items():
            if not name.startswith("_") and callable(member):
                inspect.signature(member)


def test_names_are_the_public_ones():
    other = [
        f"{module.__name__}.{name}: {each.__name__}"
        for module in (cyrt, cyrt.nn, cyrt.random, cyrt.kernels)
        for name, each in vars(module).items()
        if not name.startswith("_")
        and callable(each)
        and hasattr(each, "__name__")  # which element types do not have
        and each.__name__ != name
        # Names of one function: cyrt.abs is cyrt.absolute, for NumPy's programs.
        and getattr(module, each.__name__, None) is not each
    ]
    assert other == []


def test_the_parameters_of_a_class():
    assert list(inspect.signature(cyrt.Buffer).parameters) == ["nbytes", "device"]
    assert "priority" in inspect.signature(cyrt.Stream).parameters
    assert "defines" not in inspect.signature(cyrt.Kernel).parameters
    assert inspect.getdoc(cyrt.Buffer).startswith("Bytes of device memory")


def test_the_version_is_the_packages():
    assert cyrt.__version__ == metadata.version("cyrt")


def test_a_mistyped_variable(python):
    done = python("import cyrt", CYRT_GRAPH="0", CYRT_TEST_X="1", PYTHONWARNINGS="default")
    assert "CYRT_GRAPH has no effect; CYRT_GRAPHS exists" in done.stderr
    assert "CYRT_TEST_X" not in done.stderr


@pytest.mark.parametrize("make", [cyrt.zeros, cyrt.ones, cyrt.empty])
def test_a_shape_of_two_arguments(make):
    with pytest.raises(TypeError, match=r"A shape is one argument, such as \(3, 4\)"):
        make(3, 4)


def test_type_checkers_see_public_names(tmp_path):
    pytest.importorskip("mypy")
    file = tmp_path / "program.py"
    file.write_text(
        f"from cyrt import {', '.join(cyrt.__all__)}\n"
        f"from cyrt.nn import {', '.join(cyrt.nn.__all__)}\n"
        f"from cyrt.numpy import {', '.join(cyrt.numpy.__all__)}\n"
        "import cyrt\n"
        "x: cyrt.Array = cyrt.exp(cyrt.array([1.0])) == 1\n"
        "near: cyrt.Array = cyrt.allclose(x, x)\n"
    )
    cache = Path(__file__).resolve().parent.parent / ".mypy_cache" / "installed"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "mypy", "--strict", "--cache-dir", cache, file],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout


def test_names_of_numpy_s_that_are_no_functions_of_arrays_have_a_module_of_their_own():
    for name in cyrt.numpy.__all__:
        assert not hasattr(cyrt, name), name
        assert hasattr(np, name), name
    assert cyrt.numpy.errstate is np.errstate


def test_dir_lists_public_names_only():
    assert set(dir(cyrt)) == {*cyrt.__all__, "__version__", "kernels", "numpy"}
