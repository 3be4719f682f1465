"""Driver calls that may wait for work in flight are made without the GIL.

A callback in that work may need it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOM = Path(__file__).resolve().parents[2] / "cyrt"
# They put work on a stream, allocate, or may load a kernel's code.
BLOCKING = (
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuEventSynchronize",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuGraphLaunch",
    "cuMemcpyAsync",
    "cuMemcpyHtoDAsync",
    "cuMemcpyDtoHAsync",
    "cuMemsetD8Async",
    "cuMemsetD16Async",
    "cuMemsetD32Async",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemFreeHost",
    "cuMemAllocManaged",
    "cuMemHostAlloc",
    "cuStreamCreateWithPriority",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxReset",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuModuleGetGlobal",
    "cuModuleEnumerateFunctions",
    "cuFuncGetName",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuFuncGetParamInfo",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuOccupancyMaxPotentialBlockSize",
    "cuGraphAddKernelNode",
    "cuGraphAddChildGraphNode",
    "cuGraphClone",
    "cuGraphInstantiateWithFlags",
    "cuGraphExecChildGraphNodeSetParams",
    "cuGraphExecDestroy",
    "cuGraphExecUpdate",
)
CALL = re.compile(rf"\bcu\.({'|'.join(BLOCKING)})\(")
SOURCES = sorted(path for path in ROOM.rglob("*.pyx") if "bench" not in path.parts)


def indent(line):
    return len(line) - len(line.lstrip())


def header(lines, index):
    """A line that opens a block, with the lines that it goes on in."""
    end = index
    while not lines[end].rstrip().endswith(":"):
        end += 1
    return " ".join(lines[index : end + 1]).strip()


def releases(lines, index):
    """Whether a block without the GIL, or a function without it, is around the line."""
    depth = indent(lines[index])
    for i in range(index - 1, -1, -1):
        if lines[i].strip() and indent(lines[i]) < depth:
            depth = indent(lines[i])
            if re.fullmatch(r"with nogil:.*|cdef .* nogil:", header(lines, i)):
                return True
    return False


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOM)))
def test_no_call_that_may_block_holds_the_gil(path):
    lines = path.read_text().splitlines()
    held = [
        f"{path.name}:{i + 1}: {line.strip()}"
        for i, line in enumerate(lines)
        if CALL.search(line) and not releases(lines, i)
    ]
    assert held == []
