"""Several elementwise operations as one kernel, made from the catalogue's own expressions.

A node of a recording is read back as an operation (`describe`), operations that one thread can
compute are collected (`Run`), and their source, parameters and geometry are generated (`generate`).
The results are bit for bit those of the operations' own kernels.
"""

from cyrt.builtin.fusion.compiling import compile, load
from cyrt.builtin.fusion.description import Access, Operation, describe
from cyrt.builtin.fusion.generator import Copy, Fused, generate, key
from cyrt.builtin.fusion.run import Run

__all__ = [
    "Access",
    "Copy",
    "Fused",
    "Operation",
    "Run",
    "compile",
    "describe",
    "generate",
    "key",
    "load",
]
