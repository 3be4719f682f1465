"""The house: which room may import from which, and what every module ships."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "cyrt"

# Floor of each room: a room imports from lower floors and itself. The file that makes a room's
# public names has a floor of its own where it takes names from rooms above the rest of its own.
FLOORS = {
    name.strip(" `"): int(floor)
    for floor, names in re.findall(
        r"^\| (\d+) \| ([^|]*) \|",
        (ROOT.parent / "docs" / "architecture.md").read_text(),
        re.MULTILINE,
    )
    for name in names.split(",")
}
CIMPORT = re.compile(
    r"^\s*(?:from\s+(cyrt[\w.]*)\s+c?import|c?import\s+(cyrt[\w.]*))", re.MULTILINE
)


def room_of(module):
    """``cyrt.driver.table`` -> ``driver``; the package itself is ``__init__``."""
    if module.removeprefix("cyrt.") + "/__init__" in FLOORS:
        return module.removeprefix("cyrt.") + "/__init__"
    return module.split(".")[1] if "." in module else "__init__"


def is_module(name):
    place = ROOT.parent.joinpath(*name.split("."))
    return place.is_dir() or any(place.with_suffix(f".{s}").exists() for s in ("py", "pyx"))


def imports(path):
    text = path.read_text()
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cyrt"):
                # A package's own file is imported too, unless only its modules are named.
                for alias in node.names:
                    module = f"{node.module}.{alias.name}"
                    yield module if is_module(module) else node.module
            elif isinstance(node, ast.Import):
                yield from (a.name for a in node.names if a.name.startswith("cyrt"))
    else:
        for plain, bare in CIMPORT.findall(text):
            found = plain or bare
            if found == "cyrt":
                for names in re.findall(r"from cyrt c?import (.*)", text):
                    yield from (f"cyrt.{name.split()[0]}" for name in names.split(","))
            else:
                yield found


SOURCES = sorted(
    p for s in ("py", "pyx", "pxd") for p in ROOT.rglob(f"*.{s}") if "emulator" not in p.parts
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_import_downward(path):
    relative = path.relative_to(ROOT)
    room = str(relative.with_suffix(""))
    if room not in FLOORS:
        room = relative.parts[0].removesuffix(path.suffix)
    for module in imports(path):
        other = room_of(module)
        if other == room:
            continue
        assert other in FLOORS, f"{relative} imports {module}, which is no room"
        assert FLOORS[other] < FLOORS[room], (
            f"{relative} (floor {FLOORS[room]}) imports {module} (floor {FLOORS[other]})"
        )


def test_calls_upward_go_through_seams():
    """A room below calls one above through the struct that the upper room's seam fills."""
    assignment = re.compile(r"^(\w+)\.[\w.]+ = \w+$", re.MULTILINE)
    for path in ROOT.rglob("*.pyx"):
        if path.stem == "seam":
            continue
        text, room = path.read_text(), path.relative_to(ROOT).parts[0]
        for name in assignment.findall(text):
            found = re.search(
                rf"^from cyrt(?:\.(\w+))? c?import [^\n]*\b{name}\b", text, re.MULTILINE
            )
            found = found or re.search(
                rf"^from cyrt\.(\w+) c?import \w+ as {name}$", text, re.MULTILINE
            )
            assert found is None or found[1] == room, f"{path} sets {name} of another room"


def test_the_command_line_alone_needs_rich():
    users = {
        p for p in ROOT.rglob("*.py") if re.search(r"^\s*(from|import) rich\b", p.read_text(), re.M)
    }
    assert {path.parent.name for path in users} == {"cli"}


def test_the_runtime_has_one_path_to_a_commit():
    calls = [
        path.name
        for path in sorted((ROOT / "runtime").glob("*.p*"))
        for _ in re.findall(r"\bgraph\.commit\b", path.read_text())
    ]
    assert calls == ["stream_state.pxd"]


def test_the_page_of_the_architecture_has_every_room():
    rooms = {path.stem.partition(".")[0] for path in ROOT.iterdir()}
    rooms -= {"emulator", "meson", "py", "__pycache__"}
    assert {name.partition("/")[0] for name in FLOORS} == rooms


def test_installed_with_its_types():
    import cyrt

    package = Path(cyrt.__file__).parent
    assert package != ROOT, "the tests run against the installed package"
    assert (package / "py.typed").exists()
    assert (package / "runtime" / "memory.pyi").exists()
    assert not list(package.rglob("*.pxd"))
    ours = {p.relative_to(ROOT) for p in ROOT.rglob("*.py")}
    assert ours <= {p.relative_to(package) for p in package.rglob("*.py")}


def test_stubs_name_what_there_is():
    import importlib

    for stub in ROOT.rglob("*.pyi"):
        module = importlib.import_module(
            "cyrt." + ".".join(stub.relative_to(ROOT).with_suffix("").parts)
        )
        for node in ast.parse(stub.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                assert callable(getattr(module, node.name)), (stub, node.name)
            elif isinstance(node, ast.ClassDef) and not any(
                isinstance(b, ast.Name) and b.id == "Protocol" for b in node.bases
            ):
                found = getattr(module, node.name)
                declared = {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
                missing = {n for n in declared if not hasattr(found, n)} - {"__buffer__"}
                assert not missing, (stub, node.name, missing)
                public = {n for n in vars(found) if not n.startswith("_") and hasattr(found, n)}
                known = declared | {f.target.id for f in node.body if isinstance(f, ast.AnnAssign)}
                assert public <= known, (stub, node.name, public - known)


def test_public_objects_are_documented():
    import cyrt

    for name in cyrt.__all__:
        assert name == "newaxis" or getattr(cyrt, name).__doc__, name


def test_no_two_classes_share_a_name():
    found = {}
    for path in ROOT.rglob("*.p*"):
        if path.suffix in (".py", ".pyx", ".pxd"):
            for name in re.findall(r"^(?:cdef )?class (\w+)", path.read_text(), re.MULTILINE):
                found.setdefault(name, set()).add(path.with_suffix(""))
    assert len(found) > 100
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}
