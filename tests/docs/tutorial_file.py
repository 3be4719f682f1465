"""``examples/tutorial.py`` from the lessons: the same code, with the imports at the top.

Run as a program, this module writes the file.
"""

from __future__ import annotations

import re
import subprocess
import sys

from blocks import DOCS, ROOT, blocks_of

LESSONS = sorted((DOCS / "tutorial").glob("*.md"))
FILE = ROOT / "examples" / "tutorial.py"
_HEAD = '''"""The six lessons of docs/tutorial in one file.

It is made from them: ``python tests/docs/tutorial_file.py`` writes it.
"""

from __future__ import annotations

'''
_IMPORT = re.compile(r"^(?:import|from) .*\n", re.MULTILINE)


def tutorial() -> str:
    """The text of the file, formatted."""
    imports: set[str] = set()
    parts = []
    for lesson in LESSONS:
        text = lesson.read_text()
        title = text.partition("\n")[0].removeprefix("# ")
        parts.append(f'# {lesson.relative_to(ROOT)}\nprint("\\n{title}")\n\n')
        for block in blocks_of(text):
            imports.update(_IMPORT.findall(block.code))
            parts.append(_IMPORT.sub("", block.code).lstrip("\n") + "\n")
    own = sorted(imports - {"import cyrt\n", "import numpy as np\n"})
    head = "".join(own) + "\nimport numpy as np\n\nimport cyrt\n\n"
    return subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", FILE, "-"],
        input=_HEAD + head + "".join(parts),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout


if __name__ == "__main__":
    FILE.write_text(tutorial())
