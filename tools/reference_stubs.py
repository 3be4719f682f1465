"""Stubs of the public names with their docstrings, from which the reference is made.

``python tools/reference_stubs.py FOLDER`` writes ``FOLDER/cyrt``: the declarations of each public
module. The tool that renders the reference reads Python, and cannot read Cython. So signatures are
taken from the stubs that the package ships, or from its Python source, and docstrings from the
installed package.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cyrt
from cyrt.public_modules import NAMES

MODULES = ("cyrt", *(f"cyrt.{name}" for name in NAMES))
Definition = ast.FunctionDef | ast.ClassDef
_ROLE = re.compile(r":(?:func|class|meth|mod|attr):`~?([^`]*)`")
# A table of reStructuredText: rulers of "=", a head, lines between them.
_RULER = r"=+(?: +=+)+\n"
_TABLE = re.compile(rf"^{_RULER}(?:[^=\n].*\n)+{_RULER}(?:[^=\n].*\n)+{_RULER}", re.MULTILINE)


def public_path(name: str) -> str | None:
    """Where the reference has a name, which may stand without its module."""
    for module in map(importlib.import_module, MODULES):
        short = name.removeprefix(f"{module.__name__}.")
        if short in module.__all__ and not isinstance(getattr(module, short), ModuleType):
            return f"{module.__name__}.{short}"
    return None


def link(role: re.Match[str]) -> str:
    path = public_path(role[1])
    return f"`{role[1]}`" if path is None else f"[`{role[1]}`][{path}]"


def markdown(text: str) -> str:
    """A docstring whose roles are links, and whose tables are kept as they stand."""
    text = _ROLE.sub(link, inspect.cleandoc(text) + "\n")
    return _TABLE.sub(lambda match: f"```text\n{match[0]}```\n", text).rstrip()


def definitions() -> dict[str, dict[str, Definition]]:
    """The functions and classes of every module that is installed, by module and name."""
    package = Path(cyrt.__file__).parent
    found: dict[str, dict[str, Definition]] = {}
    for path in sorted([*package.rglob("*.pyi"), *package.rglob("*.py")]):
        parts = path.relative_to(package.parent).with_suffix("").parts
        module = ".".join(parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.setdefault(module, {})[node.name] = node
    return found


class Writer:
    """Writes the declarations of one public module."""

    def __init__(self, module: ModuleType, known: dict[str, dict[str, Definition]]) -> None:
        self.module = module
        self.known = known

    def text(self) -> str:
        names = sorted(set(self.module.__all__), key=str.lower)
        return "\n\n".join(
            self.declaration(name, getattr(self.module, name))
            for name in names
            if not isinstance(getattr(self.module, name), ModuleType)
        )

    def declaration(self, name: str, value: Any) -> str:
        """What stands for a name: a class, a function, or a variable with a docstring."""
        own = value.name if isinstance(value, cyrt.DType) else getattr(value, "__name__", name)
        origin = getattr(value, "__module__", None) or ""
        if origin.partition(".")[0] == "numpy":
            return variable(name, "Any", f"NumPy's own `numpy.{name}`.")
        if own != name and getattr(self.module, own, None) is value:
            return variable(name, "Any", f"Another name of `{own}`.")
        if isinstance(value, cyrt.DType):
            return variable(name, "DType", f"The element type {name}.")
        if not callable(value):
            return variable(name, "Any", constant(value))
        node = self.find(origin, own)
        if isinstance(node, ast.ClassDef):
            found: Definition = self.of_class(node, value)
        else:
            if node is None:  # an operation element by element, which is an object
                made = ast.parse(f"def {name}{inspect.signature(value)} -> Array: ...").body[0]
                assert isinstance(made, ast.FunctionDef)
                node = made
            found = documented(node, value)
        found.name = name
        return ast.unparse(found)

    def find(self, module: str, name: str) -> Definition | None:
        """A definition by the module that its object names, or by its name alone."""
        if name in self.known.get(module, {}):
            return self.known[module][name]
        # Some classes say that they are of the package itself, which imports them.
        found = [names[name] for names in self.known.values() if name in names]
        classes = [node for node in found if isinstance(node, ast.ClassDef)]
        return classes[0] if classes else None

    def of_class(self, node: ast.ClassDef, value: type) -> ast.ClassDef:
        """A class with its public members, those of its own bases included."""
        members: dict[str, ast.stmt] = {}
        for base in value.__mro__:
            stub = node if base is value else self.find(base.__module__, base.__name__)
            if isinstance(stub, ast.ClassDef) and base.__module__.startswith("cyrt"):
                for name, member in self.members(stub, base):
                    members.setdefault(name, member)
        node = copy.deepcopy(node)
        node.bases, node.keywords, node.decorator_list = [], [], []
        node.body = [docstring(value), *members.values()]
        return node

    @staticmethod
    def members(node: ast.ClassDef, value: type) -> Iterator[tuple[str, ast.stmt]]:
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                public = not each.name.startswith("_") or each.name == "__init__"
                setter = any(isinstance(d, ast.Attribute) for d in each.decorator_list)
                if public and not setter:
                    found = getattr(value, each.name, None)
                    method = documented(each, found)
                    if found is not None and found is getattr(cyrt, each.name, None):
                        text = markdown(f"See :func:`cyrt.{each.name}`.")
                        method.body[0] = ast.Expr(ast.Constant(text))
                    yield each.name, method
            elif isinstance(each, ast.AnnAssign):
                name = ast.unparse(each.target)
                if not name.startswith("_"):
                    yield name, each


def docstring(value: Any) -> ast.Expr:
    return ast.Expr(ast.Constant(markdown(getattr(value, "__doc__", None) or "")))


def documented(node: ast.FunctionDef, value: Any) -> ast.FunctionDef:
    """The declaration of a function with its object's docstring, and its defaults."""
    node = copy.deepcopy(node)
    node.body = [ast.Expr(ast.Constant(...))]
    set_defaults(node.args, value)
    own = getattr(value, "__doc__", None)
    if own and node.name != "__init__":  # the class's docstring tells its arguments
        node.body.insert(0, docstring(value))
    return node


def set_defaults(arguments: ast.arguments, value: Any) -> None:
    """Write the defaults that a stub leaves out, as "..."."""
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):  # a property, or a method of Cython's without a signature
        return
    positional = [*arguments.posonlyargs, *arguments.args]
    first = len(positional) - len(arguments.defaults)
    for names, defaults in (
        (positional[first:], arguments.defaults),
        (arguments.kwonlyargs, arguments.kw_defaults),
    ):
        for i, (argument, default) in enumerate(zip(names, defaults, strict=True)):
            if isinstance(default, ast.Constant) and default.value is ...:
                found = parameters[argument.arg].default
                defaults[i] = ast.Name(found.__name__ if callable(found) else repr(found))


def variable(name: str, kind: str, text: str) -> str:
    return f'{name}: {kind}\n"""{text}"""'


def constant(value: Any) -> str:
    if isinstance(value, (bool, int, float, str)):
        return f"The value `{value!r}`."
    if value is None:
        return "None, as an index: a new dimension of one element."
    return markdown(type(value).__doc__ or "").replace('"""', "'''")


def write(folder: Path) -> None:
    """Write the declarations of every public module."""
    known = definitions()
    for name in MODULES:
        module = importlib.import_module(name)
        path = folder.joinpath(*name.split("."))
        path.mkdir(parents=True, exist_ok=True)
        head = "from __future__ import annotations\n\n"
        (path / "__init__.py").write_text(head + Writer(module, known).text() + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(textwrap.dedent(__doc__ or ""))
    write(Path(sys.argv[1]))
