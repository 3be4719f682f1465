"""Whether the installed compiler translates an operation as the prebuilt kernels' compiler did.

NVRTC's versions differ in functions such as erf. An operation whose kernel is prebuilt is fused
only if the arithmetic of both is equal, instruction for instruction and number for number. So its
results do not depend on whether it is fused.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from itertools import product
from pathlib import Path

from cyrt import jit
from cyrt.builtin import catalogue, loading
from cyrt.builtin.row import Row
from cyrt.driver.errors import CompileError

_HEADER = re.compile(
    r"^(?:\.visible |\.weak )?\.(?:entry|func)\s*(?:\([^)]*\))?\s*([\w$]+)\s*\([^)]*\)[^{;]*(?=\{)",
    re.MULTILINE,
)
# Moves and bitwise operations are not compared: copysign is one instruction or four.
_ARITHMETIC = re.compile(
    r"^\s*(?:@\S+ )?"
    r"((?:add|sub|mul|fma|mad|div|rcp|sqrt|rsqrt|ex2|lg2|sin|cos|tanh|min|max|cvt|setp)\.\S*\.?(?:f16|bf16|f32|f64)|(?:mul|mad)\.hi\.\w+|(?:div|rem)\.\w+)\s+(.*);$",
    re.MULTILINE,
)
_CONSTANT = re.compile(r"^\s*mov\.\w+\s+(%\w+), (0[fd][0-9A-F]+);$", re.MULTILINE)
_CALLED = re.compile(r"\bcall(?:\.uni)?\s*(?:\([^)]*\),\s*)?([\w$]+),")

# Whose own kernels the assembler contracts: what it joins depends on what is around it. A fused
# kernel is assembled without that (see `compiling`).
_CONTRACTED = {
    *product(("multiply", "divide", "square", "pow", "atan", "atanh"), ("complex64", "complex128")),
    ("sin", "complex64"),
    ("gelu_vjp", "float64"),
}
# Constants, with which the assembler replaces the operation that follows.
_CONSTANTS = {*product(("imag",), ("float16", "bfloat16", "float32", "float64"))}


def makes_equal(row: Row, origin: str) -> bool:
    """Return whether a fused kernel computes an operation as its own kernel does.

    Parameters
    ----------
    row : Row
    origin : str
        The origin of its kernel's code.
    """
    if (row.op, row.dtype) in _CONTRACTED | _CONSTANTS or _chooses_nan(row):
        return False
    if not origin.startswith("prebuilt"):
        return True  # NVRTC compiles both
    # Every compiler multiplies and adds as kernels_cu/include/product.cuh says.
    if row.template == "matmul":
        return True
    # C's operators are what they are, but for products and sums of parts.
    if "(" not in row.expression and not row.dtype.startswith("complex"):
        return True
    return _is_equal(row)


def _chooses_nan(row: Row) -> bool:
    """Return whether the assembler chooses which of several NaNs comes out: a product or a sum of
    float64 has the payload of an operand, and their order is the assembler's."""
    return row.dtype == "float64" and (
        row.op in ("sum", "prod") or (len(row.inputs) == 3 and row.op != "clip")
    )


@functools.lru_cache(maxsize=1 << 12)
def _is_equal(row: Row) -> bool:
    name = f"compute_{loading.PTX_ARCH}"
    try:
        prebuilt = _prebuilt(loading.PREBUILT / name / f"{row.module}.ptx")
        code = jit.compiler.compile(
            catalogue.source([row]),
            arch=name,
            options=(f"-I{loading.TEMPLATES}", f"-I{loading.TEMPLATES / 'include'}"),
            filename=f"{row.kernels[0]}.cu",
        ).code
    except (CompileError, OSError):
        return False
    compiled = functions(code.decode())
    return all(arithmetic(each, prebuilt) == arithmetic(each, compiled) for each in row.kernels)


@functools.lru_cache(maxsize=4)
def _prebuilt(path: Path) -> dict[str, str]:
    return functions(loading.read(path).decode())


def functions(ptx: str) -> dict[str, str]:
    """Return the text of each function by its name."""
    found = {}
    for header in _HEADER.finditer(ptx):
        depth = 0
        for brace in re.finditer("[{}]", ptx[header.end() :]):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                found[header[1]] = ptx[header.start() : header.end() + brace.end()]
                break
    return found


def arithmetic(name: str, functions: dict[str, str]) -> dict[str, Counter[str]]:
    """Return how often each instruction of arithmetic is in a function and in those that it calls.
    What is told of an instruction's operands are the constants."""
    found: dict[str, Counter[str]] = {}
    left = [name]
    while left:
        each = left.pop()
        if each in found or each not in functions:
            continue
        text = functions[each]
        constants = dict(_CONSTANT.findall(text))
        found[each] = Counter(
            f"{opcode} "
            + ", ".join(
                constants.get(operand, operand if operand[0] in "-0123456789" else "%")
                for operand in operands.split(", ")
            )
            for opcode, operands in _ARITHMETIC.findall(text)
        )
        left += _CALLED.findall(text)
    return found
