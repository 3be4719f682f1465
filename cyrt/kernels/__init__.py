"""Kernels from CUDA C++, PTX, cubin or fatbin, and the built-in kernels."""

import cyrt.kernels.seam as _seam  # noqa: F401
from cyrt.kernels.kernel import Kernel
from cyrt.kernels.module import Module

__all__ = ["Kernel", "Module"]


def __dir__() -> list[str]:
    return list(__all__)
