"""What the public function of an operation launches, by the operation's name in the catalogue."""

from __future__ import annotations

from functools import partial

import cyrt
from cyrt import Example, nn
from cyrt.builtin import catalogue
from cyrt.builtin.row import MOVES
from cyrt.nn import activations
from cyrt.ops.elementwise import Elementwise
from cyrt.ops.ternary import ternary


def explain(op, dtype, *shapes, strides=None, **options):
    """Explain the operation of arrays of these shapes; an elementwise one takes one for all.

    `strides`: of a reduction's input, or of the result and the operands of an elementwise
    operation, None for contiguous ones.
    """
    family = catalogue.family_of(op)
    if family in ("elementwise", "arange", "transpose"):
        return elementwise(op, dtype, *shapes, strides)
    if family in CALLS:
        return CALLS[family](op, [Example(shape, dtype) for shape in shapes], options)
    if op in ("argmax", "argmin") and options.get("axis") is not None:
        axes = options["axis"]  # one, or all
        options["axis"] = axes[0] if len(axes) == 1 else None
    example = Example(*shapes, dtype, strides)
    return cyrt.explain(getattr(cyrt, op, None) or getattr(nn, op), example, **options)


def elementwise(op, dtype, shape, strides):
    row = catalogue.row(op, dtype)
    if op == "arange":
        return cyrt.explain(cyrt.arange, shape, dtype=dtype)
    out, *steps = strides or (None,) * (1 + len(row.inputs))
    types = [dtype if op in MOVES and each != "bool" else each for each in row.inputs]
    examples = [Example(shape, *each) for each in zip(types, steps, strict=True)]
    if op.startswith("to_"):
        return cyrt.explain(cyrt.astype, *examples, op.removeprefix("to_"))
    if op == "copy":
        return cyrt.explain(cyrt.copy, *examples)
    function = function_of(op, len(examples))
    written = {} if out is None else {"out": Example(shape, row.output, out)}
    return cyrt.explain(function, *examples, **written)


def function_of(op, count):
    """The function that records an elementwise operation of that many operands."""
    if count == 3 and op not in ("clip", "where"):
        return partial(ternary, op)  # a step of other functions
    function = getattr(cyrt, op, None) or getattr(nn, op, None)
    if not isinstance(function, Elementwise):  # it takes a parameter as a number only
        function = getattr(activations, f"_{op}", function)
    return function


def convolution(op, examples, options):
    x, weight = examples
    if op == "conv":
        return cyrt.explain(nn.conv_general, x, weight, **options)
    g = Example(shape_of(nn.conv_general, x, weight, **options), x.dtype)
    if op == "conv_input_vjp":
        return cyrt.explain(nn.conv_input_vjp, g, x.shape, weight, **options)
    return cyrt.explain(nn.conv_weight_vjp, g, x, weight.shape, **options)


def pool(op, examples, options):
    x, window = examples[0], examples[1].shape
    if not op.endswith("_vjp"):
        return cyrt.explain(getattr(nn, op), x, window, **options)
    g = Example(shape_of(getattr(nn, op.removesuffix("_vjp")), x, window, **options), x.dtype)
    return cyrt.explain(getattr(nn, op), g, x, window, **options)


def shape_of(function, *args, **options):
    """The shape of a function's result."""
    found = []
    cyrt.explain(lambda *args: found.append(function(*args, **options).shape), *args)
    return found[0]


def attention(op, examples, options):
    q, keys = examples
    return cyrt.explain(nn.attention, q, keys, keys, **options)


def cached_attention(op, examples, options):
    q, keys = examples
    new = Example((*keys.shape[:2], q.shape[2], q.shape[3]), q.dtype)
    position = keys.shape[2] - q.shape[2]
    return cyrt.explain(
        nn.attention, q, new, new, cache=(keys, keys), position=position, mask="causal", **options
    )


CALLS = {
    "attention": cached_attention,
    "conv": convolution,
    "flash_attention": attention,
    "gated": lambda op, examples, options: cyrt.explain(getattr(nn, op), *examples * 3),
    "matmul": lambda op, examples, options: cyrt.explain(cyrt.matmul, *examples),
    "pool": pool,
    "top_k": lambda op, examples, options: cyrt.explain(cyrt.top_k, *examples, options["k"]),
    "rope": lambda op, examples, options: cyrt.explain(
        nn.rope, *examples, examples[0].shape[-1], **options
    ),
}
