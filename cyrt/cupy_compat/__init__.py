"""CuPy's classes of user-defined kernels, with CuPy's arguments, on cyrt's arrays."""

from __future__ import annotations

from cyrt.cupy_compat.elementwise import ElementwiseKernel
from cyrt.cupy_compat.fusion import fuse
from cyrt.cupy_compat.raw import RawKernel, RawModule
from cyrt.cupy_compat.reduction import ReductionKernel

__all__ = ["ElementwiseKernel", "RawKernel", "RawModule", "ReductionKernel", "fuse"]


def __dir__() -> list[str]:
    return list(__all__)
