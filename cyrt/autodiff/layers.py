"""The gradients of linear layers, attention, rotary embeddings, embedding tables and dropout."""

from __future__ import annotations

from typing import Any

from cyrt import tape
from cyrt.autodiff.activations import relu_slope
from cyrt.autodiff.adapting import unread
from cyrt.autodiff.compositions import through
from cyrt.dtypes import DType
from cyrt.ndarray import Array
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
    return gradients(relu_slope(g, result) if activation else g, x, weight, bias, wanted)


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
    """The kernels compute no gradients of sinks or of a mask."""
    if sinks is None and not wanted[3]:
        return (*attention_vjp(g, q, k, v, scale, mask), None, None)
    return _composed_attention(g, q, k, v, scale, mask, sinks, wanted)


def _composed_attention(
    g: Array,
    q: Array,
    k: Array,
    v: Array,
    scale: float,
    mask: Any,
    sinks: Array | None,
    wanted: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    """The gradients of the products that compute attention."""

    def products(q: Array, k: Array, v: Array, mask: Any, sinks: Array | None) -> Array:
        return multiply_attention(q, k, v, scale, mask, sinks)

    return through(products, g, (q, k, v, mask, sinks), wanted)


# -- gradients that are linear in `slope`, whose own gradients are the functions themselves --------


@tape.differentiable
def _rotated_back(slope: Array, arguments: tuple[Any, ...]) -> Array:
    return rope_vjp(slope, *arguments)


@tape.differentiable
def _dropped(slope: Array, p: float, key: Key) -> Array:
    return dropout_vjp(slope, slope, p, key=key)


@tape.differentiable
def _rows_added(slope: Array, x: Array, shape: tuple[int, ...], dtype: DType) -> Array:
    return embedding_vjp(slope, x, unread(slope, shape, dtype))


def _rope(
    g: Array,
    dims: int,
    traditional: bool,
    base: float,
    scale: float,
    offset: Any,
    freqs: Array | None,
) -> Array:
    return _rotated_back(g, (dims, traditional, base, scale, offset, freqs))


tape.register(linear, ("x", "weight", "bias"), _linear)
tape.register(
    attend_to_all, ("q", "k", "v", "mask", "sinks"), _attention, composed=_composed_attention
)
tape.refuse(attend_with_cache, "attention with a cache writes into the cache, and has no gradient")
tape.register(rope, "x", _rope)
tape.register(_rotated_back, "slope", lambda g, arguments: rope(g, *arguments))
tape.register(
    embedding,
    "weight",
    lambda g, x, weight_shape, weight_dtype: _rows_added(g, x, weight_shape, weight_dtype),
)
tape.register(_rows_added, "slope", lambda g, x: embedding(x, g))
tape.register(dropout, "x", lambda g, p, key: _dropped(g, p, key))
tape.register(_dropped, "slope", lambda g, p, key: dropout(g, p, key=key))
