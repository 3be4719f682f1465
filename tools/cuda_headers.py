"""Print the folder of the CUDA headers in this Python's wheels, for the build.

13.x wheels (nvidia-cuda-runtime) and 12.x wheels (nvidia-cuda-runtime-cu12) have different folder
layouts; if both are installed, the newer one is printed.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

WHEELS = ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12")


def find() -> Path | None:
    """The folder that holds ``cudaTypedefs.h`` and ``cuda.h``, or None."""
    for wheel in WHEELS:
        try:
            files = metadata.files(wheel) or []
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name == "cudaTypedefs.h":
                folder = Path(str(file.locate())).resolve().parent
                if (folder / "cuda.h").exists():
                    return folder
    return None


if __name__ == "__main__":
    folder = find()
    if folder is None:
        sys.exit(
            f"cuda.h not found: no wheel of {' or '.join(WHEELS)} is installed for "
            f"{sys.executable}. Install one (pip install {WHEELS[0]}), or name a folder with "
            "-Dheaders=FOLDER."
        )
    print(folder)
