"""What every public name tells of itself, and what mistyped ones do."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import sys
import traceback
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import cyrt
from cyrt import other_names
from cyrt.dtypes import DTYPES
from cyrt.ops import functions
from cyrt.public_modules import NAMES

PACKAGES = (cyrt, *(getattr(cyrt, name) for name in NAMES))
# The others are NumPy's own.
OURS = [name for name in cyrt.numpy.__all__ if getattr(cyrt.numpy, name) is not getattr(np, name)]


def public_callables():
    for module in PACKAGES:
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
        for module in PACKAGES
        if module is not cyrt.numpy  # it has NumPy's objects
        for name in module.__all__
        for each in [getattr(module, name)]
        if callable(each)
        and hasattr(each, "__name__")  # element types have none
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
    with pytest.raises(
        TypeError, match=r"^4 is not an element type; a shape is one argument, such as \(3, 4\)"
    ):
        make(3, 4)


def test_names_of_numpy_s_that_are_no_functions_of_arrays_have_a_module_of_their_own():
    for name in cyrt.numpy.__all__:
        assert not hasattr(cyrt, name), name
        assert hasattr(np, name), name
    assert cyrt.numpy.errstate is np.errstate


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: module.__name__)
def test_dir_lists_public_names_only(module):
    more = {"__version__", *NAMES} if module is cyrt else set()
    assert sorted(dir(module)) == sorted({*module.__all__, *more})


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: module.__name__)
def test_lists_of_public_names_are_literals(module):
    """Type checkers read no others."""
    tree = ast.parse(Path(module.__file__).read_text())
    found = [
        ast.literal_eval(each.value)
        for each in ast.walk(tree)
        if isinstance(each, (ast.Assign, ast.AugAssign)) and "__all__" in ast.unparse(each)
    ]
    assert found == [module.__all__]
    assert len(set(module.__all__)) == len(module.__all__)


def names_of_files(package):
    """The names that the files of a package list."""
    return {
        name
        for path, file in sys.modules.items()
        if path.startswith(f"{package.__name__}.") and not hasattr(file, "__path__")
        for name in getattr(file, "__all__", ())
    }


def test_lists_of_public_names_have_those_of_their_files():
    elementwise = {
        name for name, each in vars(functions).items() if isinstance(each, functions._Elementwise)
    }
    types = {each.name for each in DTYPES}
    everything = {*cyrt.__all__, *cyrt.numpy.__all__}
    for names in (elementwise, types, names_of_files(cyrt.ops), names_of_files(cyrt.numpy)):
        assert not names - everything
    for package in set(PACKAGES) - {cyrt, cyrt.numpy}:
        assert not names_of_files(package) - set(package.__all__)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("softmax", "cyrt.nn.softmax"),
        ("solve", "cyrt.linalg.solve"),
        ("floating", "cyrt.numpy.floating"),
        ("cat", "cyrt.concat(arrays, axis=0)"),
        ("ReLU", "cyrt.nn.relu"),
    ],
)
def test_a_name_that_cyrt_has_elsewhere(name, instead):
    with pytest.raises(AttributeError) as caught:
        getattr(cyrt, name)
    assert f"module 'cyrt' has no attribute '{name}'; instead: {instead}" in str(caught.value)
    assert not hasattr(cyrt, name)


@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for module, names in other_names.TABLES.items() for name in names],
)
def test_a_name_of_other_libraries(module, name):
    module = sys.modules[module]
    hint = other_names.TABLES[module.__name__][name]
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert str(caught.value).endswith(f"has no attribute '{name}'; instead: {hint}")
    assert not hasattr(module, name)
    # Python does not add a name that looks similar.
    assert "Did you mean" not in "".join(traceback.format_exception(caught.value))


def test_a_name_of_cyrt_is_found_from_its_modules():
    for module in (cyrt.numpy, cyrt.nn, cyrt.optim, cyrt.random):
        with pytest.raises(AttributeError, match="has no attribute 'arange'; instead: cyrt.arange"):
            _ = module.arange
        with pytest.raises(AttributeError, match=f"^module '{module.__name__}' has no .* 'zerso'$"):
            _ = module.zerso


def test_a_name_that_nobody_has():
    with pytest.raises(AttributeError, match="^module 'cyrt' has no attribute 'zerso'$"):
        _ = cyrt.zerso


KERNEL = 'extern "C" __global__ void f(float* x) {}'
OBJECTS = {
    "Array": lambda: cyrt.zeros((2, 3)),
    "Device": cyrt.Device,
    "Event": cyrt.Event,
    "Kernel": lambda: cyrt.Kernel(KERNEL, "f"),
    "Module": lambda: cyrt.Module(KERNEL),
    "Optimizer": lambda: cyrt.optim.adam(0.1),
    "Stream": cyrt.Stream,
}
CLASSES = {"Array": other_names.ARRAY} | other_names.CLASSES


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in CLASSES for name in CLASSES[kind]]
)
def test_an_attribute_of_other_libraries_classes(kind, name):
    x = OBJECTS[kind]()
    article = "an" if kind[0] in "AEIOU" else "a"
    message = f"{article} {kind} has no attribute '{name}'; instead: {CLASSES[kind][name]}"
    with pytest.raises(AttributeError, match=f"^{re.escape(message)}$") as caught:
        getattr(x, name)
    assert "Did you mean" not in "".join(traceback.format_exception(caught.value))
    if not hasattr(x, "__dict__"):
        with pytest.raises(AttributeError, match=f"^{re.escape(message)}$"):
            setattr(x, name, None)
    assert not hasattr(x, name)
    assert not hasattr(type(x), name)
    assert name not in dir(x)
    assert "__class__" in dir(x)
    if kind != "Module":
        missing = inspect.getattr_static(x, name)
        assert (
            inspect.getdoc(missing) == f"There is no such attribute; {message.partition('; ')[2]}"
        )


def test_functions_that_are_methods_of_other_libraries_arrays():
    x = cyrt.zeros(3)
    for name in ("exp", "isnan", "maximum", "bitwise_and"):
        with pytest.raises(AttributeError, match=f"'{name}'; instead: cyrt.{name}$"):
            getattr(x, name)
        assert name not in dir(x)
    assert {"sum", "conj", "round", "real"} <= set(dir(x))


def test_a_class_that_derives_from_array_may_have_an_attribute_of_that_name():
    class Tensor(cyrt.Array):
        pass

    x = Tensor.__new__(Tensor)
    with pytest.raises(AttributeError, match="^a Tensor has no attribute 'grad'; instead: cyrt.gr"):
        _ = x.grad
    x.grad = 3
    assert x.grad == 3


def test_rooms_do_not_hide_what_is_written_instead_of_a_decorator():
    with pytest.raises(AttributeError, match="no attribute 'jit'; instead: nothing, as ordinary"):
        _ = cyrt.jit
    importlib.import_module("cyrt.jit.cache")
    importlib.import_module("cyrt.nn.losses")
    assert not hasattr(cyrt, "jit")
    assert not hasattr(cyrt.nn, "losses")


def test_what_is_named_instead_exists():
    tables = (*CLASSES.values(), *other_names.TABLES.values())
    for text in (text for table in tables for text in table.values()):
        for name in re.findall(r"\bcyrt((?:\.\w+)+)", text):
            functools.reduce(getattr, name.split(".")[1:], cyrt)
        for variable, name in re.findall(r"\b(\w+)\.(\w+)", text):
            kind = {"x": "Array"}.get(variable, variable.capitalize())
            if kind in OBJECTS:
                assert hasattr(OBJECTS[kind](), name), text


def test_cupy_compat_is_imported_when_it_is_used(python):
    done = python(
        """
        import sys
        import cyrt
        assert "cyrt.cupy_compat" not in sys.modules
        print(cyrt.cupy_compat.RawKernel.__name__)
        """
    )
    assert done.stdout == "RawKernel\n", done.stderr
