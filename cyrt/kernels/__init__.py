"""Kernels of one's own: from CUDA C++, PTX, cubin or fatbin to a launch."""

from cyrt.kernels.kernel import Kernel
from cyrt.kernels.module import Module

__all__ = ["Kernel", "Module"]
