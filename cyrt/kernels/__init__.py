"""Kernels: one's own, from CUDA C++, PTX, cubin or fatbin, and the built-in ones."""

from cyrt.kernels import fills as _fills  # noqa: F401
from cyrt.kernels.builtin import Explanation, explain
from cyrt.kernels.kernel import Kernel
from cyrt.kernels.module import Module

__all__ = ["Explanation", "Kernel", "Module", "explain"]
