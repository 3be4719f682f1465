"""Write the names and values of cuda.h's CUdevice_attribute into a Python module."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def attributes(header: str) -> dict[str, int]:
    """Map each name (without the common prefix) to its value, in the header's order."""
    (body,) = re.findall(r"typedef enum CUdevice_attribute_enum \{(.*?)\}", header, re.DOTALL)
    found: dict[str, int] = {}
    for name, value in re.findall(r"CU_DEVICE_ATTRIBUTE_(\w+)\s*=\s*(\w+)", body):
        found[name] = (
            int(value) if value.isdigit() else found[value.removeprefix("CU_DEVICE_ATTRIBUTE_")]
        )
    found.pop("MAX", None)
    return found


def main(folder: str, target: str) -> None:
    header = Path(folder, "cuda.h").read_text()
    (version,) = re.findall(r"#define CUDA_VERSION (\d+)", header)
    lines = [
        f'"""CUdevice_attribute of cuda.h {version}: name to value."""\n\n',
        "DEVICE_ATTRIBUTES = {\n",
        *(f'    "{name}": {value},\n' for name, value in attributes(header).items()),
        "}\n",
    ]
    Path(target).write_text("".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
