"""Compilation of source for a device with NVRTC, and kernels' parameters."""

from cyrt.jit import compiler, signature

__all__ = ["compiler", "signature"]
