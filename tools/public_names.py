"""Check a program that uses every public name of cyrt, by mypy and basedpyright.

``python -P tools/public_names.py FOLDER`` writes it there; it needs the installed package, whose
types are checked as those of users' programs are. A name that a type checker does not find is an
error, and so is one that is ``Any`` to it, which it reports as a comment ``ignore`` that is not
needed.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from cyrt.public_modules import NAMES

MODULES = ("cyrt", *(f"cyrt.{name}" for name in NAMES))
HEAD = '''\
"""Every public name of cyrt has a type: only a value of the type Any may be passed as `Never`."""

from typing import Never

{imports}


def refuse(value: Never) -> None: ...


x: cyrt.Array = cyrt.exp(cyrt.array([1.0])) == 1
near: cyrt.Array | bool = cyrt.allclose(x, x)
joined: cyrt.Array = cyrt.concatenate([x, cyrt.arccos(x), cyrt.fmod(x, 2), cyrt.rad2deg(x)], axis=0)
'''
# Wrong calls: an alias has the signature of its function.
WRONG = ("cyrt.arccos(x, x, x)", "cyrt.concatenate(x, axes=0)", "cyrt.rad2deg()", "cyrt.mod(x)")
EXPECTED = "  # type: ignore[{}]  # pyright: ignore[{}]"
MYPY = "[mypy]\nstrict = True\n"
PYRIGHT = """\
{"typeCheckingMode": "strict", "enableTypeIgnoreComments": false,
 "reportUnnecessaryTypeIgnoreComment": true}
"""


def program() -> str:
    """Return the program's text."""
    lines = [HEAD.format(imports="\n".join(f"import {module}" for module in MODULES))]
    wrong, typed = (
        EXPECTED.format("call-arg", "reportCallIssue"),
        EXPECTED.format("arg-type", "reportArgumentType"),
    )
    lines += [f"{call}{wrong}" for call in WRONG]
    for module in MODULES:
        lines += [f"refuse({module}.{name}){typed}" for name in import_module(module).__all__]
    return "\n".join(lines) + "\n"


def main(folder: Path) -> int:
    """Write the program and its checkers' settings, and check it; return the status."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program.py").write_text(program())
    (folder / "mypy.ini").write_text(MYPY)
    (folder / "pyrightconfig.json").write_text(PYRIGHT)
    checkers = (["mypy"], ["basedpyright", "--pythonpath", sys.executable])
    # In the folder: the sources in the project's root are not what users import.
    return max(
        subprocess.run(
            [Path(sys.executable).with_name(checker), *options, "program.py"],
            cwd=folder,
            check=False,
        ).returncode
        for checker, *options in checkers
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
