"""The gradients of linear layers, attention, rotary embeddings, tables and dropout."""

from __future__ import annotations

from typing import Any

from cyrt import tape
from cyrt.autodiff.adapting import unread
from cyrt.autodiff.transforms import vjp
from cyrt.dtypes import DType
from cyrt.ndarray import Array
from cyrt.nn.activations import relu_vjp
from cyrt.nn.attention import attend_to_all, attend_with_cache, attention_vjp, multiply_attention
from cyrt.nn.dropout import dropout, dropout_vjp
from cyrt.nn.embedding import embedding, embedding_vjp
from cyrt.nn.linear import gradients, linear
from cyrt.nn.rope import rope, rope_vjp
from cyrt.random.keys import Key


def _linear(
    g: Array,
    x: Array,
    weight: Array,
    bias: Array | None,
    activation: str | None,
    result: Array,
    wanted: tuple[bool, ...],
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradients of a layer with relu or no activation."""
    return gradients(relu_vjp(g, result) if activation else g, x, weight, bias, wanted)


def _attention(
    g: Array,
    q: Array,
    k: Array,
    v: Array,
    scale: float,
    mask: Any,
    sinks: Array | None,
    wanted: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    """With sinks, or a mask that has a gradient: those of the products that compute attention."""
    if sinks is None and not wanted[3]:
        return (*attention_vjp(g, q, k, v, scale, mask), None, None)
    operands = (q, k, v, mask, sinks)
    places = [i for i, each in enumerate(wanted) if each]

    def products(*chosen: Array) -> Array:
        own = list(operands)
        for place, each in zip(places, chosen, strict=True):
            own[place] = each
        return multiply_attention(own[0], own[1], own[2], scale, own[3], own[4])

    _, pull = vjp(products, *(operands[i] for i in places))
    found: list[Array | None] = [None] * len(operands)
    for place, each in zip(places, pull(g), strict=True):
        found[place] = each
    return tuple(found)


def _rope(
    g: Array,
    dims: int,
    traditional: bool,
    base: float,
    scale: float,
    offset: Any,
    freqs: Array | None,
) -> Array:
    return rope_vjp(g, dims, traditional, base, scale, offset, freqs)


def _dropout(g: Array, x_shape: tuple[int, ...], x_dtype: DType, p: float, key: Key) -> Array:
    return dropout_vjp(g, unread(g, x_shape, x_dtype), p, key=key)


def _embedding(g: Array, x: Array, weight_shape: tuple[int, ...], weight_dtype: DType) -> Array:
    return embedding_vjp(g, x, unread(g, weight_shape, weight_dtype))


tape.register(linear, ("x", "weight", "bias"), _linear)
tape.register(attend_to_all, ("q", "k", "v", "mask", "sinks"), _attention)
tape.refuse(attend_with_cache, "attention with a cache writes into the cache, and has no gradient")
tape.register(rope, "x", _rope)
tape.register(embedding, "weight", _embedding)
tape.register(dropout, "x", _dropout)
