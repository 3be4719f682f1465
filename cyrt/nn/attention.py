"""Scaled dot-product attention, and its gradients."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from cyrt import settings
from cyrt.builtin import catalogue
from cyrt.dtypes import dtype
from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.nn.attention_operands import check_cache, check_operands
from cyrt.nn.cached_attention import MAX_KEYS, MAX_ROWS, MAX_WIDTH, attend
from cyrt.nn.checks import number_of
from cyrt.nn.flash_attention import MAX_KEYS as FLASH_KEYS
from cyrt.nn.flash_attention import MAX_WIDTH as FLASH_WIDTH
from cyrt.nn.flash_attention import attend as attend_by_tiles
from cyrt.nn.flash_attention import gradients as gradients_by_tiles
from cyrt.nn.rope import rope as _rope
from cyrt.nn.softmax import softmax, softmax_vjp
from cyrt.ops.arange import arange
from cyrt.ops.arguments import check_array
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy import check_device
from cyrt.ops.creation import empty, zeros
from cyrt.ops.manipulation import concat
from cyrt.ops.matmul import matmul
from cyrt.ops.reduce import max as _max
from cyrt.ops.shapes import reshape
from cyrt.ops.ternary import clip, where
from cyrt.tape import differentiable

_KERNEL_TYPES = frozenset(row.dtype for row in catalogue.ROWS if row.op == "attention")
_FLASH_TYPES = frozenset(row.dtype for row in catalogue.ROWS if row.op == "flash_attention")
_WEIGHTS = 256 << 20  # maximum bytes of weights in memory, if products compute attention
_ROPE_ARGUMENTS = ("dims", "traditional", "base", "scale", "freqs")


def attention(
    q: Array,
    k: Array,
    v: Array,
    scale: float | None = None,
    mask: Array | str | None = None,
    *,
    sinks: Array | None = None,
    cache: tuple[Array, Array] | None = None,
    position: Array | int | None = None,
    rope: dict[str, Any] | None = None,
) -> Array:
    """Compute scaled dot-product attention: ``softmax(scale * q @ k.mT + mask) @ v``.

    Weights and their sums are float32 (for float64, float64). How they are computed depends on the
    operands; the first line that fits is used:

    | rows of queries | features | mask | computed by |
    |---|---|---|---|
    | at most 16 | at most 256 | None, "causal" | one launch; two if there are many keys |
    | any, of a 16-bit type | at most 128 | any | one launch, or cuDNN |
    | any | any | any | products, with the weights in memory |

    The first line is for 16-bit types and float32. Tensor cores, which the first two lines use for
    16-bit types, round the weights to that type before they multiply them with the values. If cuDNN
    is installed, it is used for shapes that have occurred often enough to be worth making a plan,
    which takes 40 ms or more. Products keep at most 256 MiB of weights at a time, or the weights of
    one row of queries of all heads if these are more.

    Parameters
    ----------
    q : Array
        Queries of a floating-point type and shape (B, H, T, D).
    k, v : Array
        Keys and values of q's type and shape (B, H', S, D). H is a multiple of H': H / H'
        neighbouring heads of queries share a head of keys and values.
    scale : float, optional
        By default ``D ** -0.5``.
    mask : Array or "causal", optional
        An array broadcasts to (B, H, T, S). If its type is bool, a query uses the keys where the
        mask is True; if its type is real floating-point, it is added to the logits. With "causal",
        query i uses the keys up to S - T + i. The result of a query that uses no key is 0. Masked
        keys and values must be finite: their weight is 0, and 0 times NaN or infinity, which some
        kernels compute, is NaN.
    sinks : Array, optional
        Shape (H,): for each head a logit, whose exponential is added to the denominator of the
        softmax.
    cache : tuple of Array, optional
        Arrays for the keys and the values of all positions, (B, H', capacity, D), that share no
        element. The new keys and values, k and v with T rows, are written into them from `position`
        on. Each query uses the positions up to its own. Values in the cache after the new rows have
        no effect, even if they are NaN.
    position : int or Array, optional
        The position of the first of the new rows. An Array of integers on q's device is read when
        the operation runs: one number, or one for each batch. If such a number is out of range, it
        is clipped, or with ``CYRT_CHECK=1`` an IndexError is raised. Without a cache, `position` is
        the position of the first key for `rope`.
    rope : dict, optional
        Arguments of :func:`cyrt.nn.rope` (``dims``, by default D; ``traditional``, ``base``,
        ``scale``, ``freqs``), by which queries and keys are rotated first. The last query has the
        position of the last key.

    Returns
    -------
    Array
        An array of q's shape and type.

    Raises
    ------
    ValueError
        Shapes do not fit, the cache is full, or the position is out of range.
    TypeError
        An operand is of another type.
    IndexError
        A position on the device is out of range, with ``CYRT_CHECK=1``.

    Notes
    -----
    Attention is that of Vaswani et al., arXiv:1706.03762. Heads of queries share keys as in Ainslie
    et al., arXiv:2305.13245; sinks are those of Xiao et al., arXiv:2309.17453. The computation by
    tiles is that of Dao et al., arXiv:2205.14135.

    Examples
    --------
    >>> import cyrt
    >>> q, k = cyrt.zeros((1, 2, 1, 4)), cyrt.zeros((1, 1, 2, 4))
    >>> v = cyrt.asarray([[[[1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0]]]])
    >>> cyrt.nn.attention(q, k, v)[0, 0]
    Array([[2., 3., 4., 5.]], dtype=float32)
    """
    check_operands("attention", q, k, v)
    factor = _scale_of("attention", scale, q)
    turn = None if rope is None else _rope_arguments(rope, q.shape[3])
    if sinks is not None:
        _check_sinks(sinks, q)
    if cache is not None:
        return attend_with_cache(q, k, v, factor, mask, sinks, cache, position, turn)
    _check_mask("attention", mask, q, k)
    if turn is not None:
        first = 0 if position is None else _checked_position(position, q)
        q = _rope(q, **turn, offset=first + (k.shape[2] - q.shape[2]))
        k = _rope(k, **turn, offset=first)
    elif position is not None:
        raise ValueError(
            "attention: position: expected None without a cache and without rope: nothing depends "
            "on the rows' positions"
        )
    return attend_to_all(q, k, v, factor, mask, sinks)


@differentiable
def attend_to_all(
    q: Array, k: Array, v: Array, scale: float, mask: Array | str | None, sinks: Array | None
) -> Array:
    """Compute attention to all keys. The operands have been checked and rotated."""
    rows, keys = q.shape[2], k.shape[2]
    if not isinstance(mask, Array) and _is_for_kernels(q) and keys <= MAX_KEYS:
        if mask is None:
            return attend(q, k, v, None, None, False, keys, None, scale, sinks)
        if rows <= keys:
            old = keys - rows
            parts = k[:, :, :old], v[:, :, :old], k[:, :, old:], v[:, :, old:]
            return attend(q, *parts, False, old, None, scale, sinks)
    return _attend(q, k, v, scale, mask, sinks)


@differentiable
def attend_with_cache(
    q: Array,
    k: Array,
    v: Array,
    scale: float,
    mask: Array | str | None,
    sinks: Array | None,
    cache: tuple[Array, Array],
    position: Array | int | None,
    rope: dict[str, Any] | None,
) -> Array:
    if not (mask is None or (isinstance(mask, str) and mask == "causal")):
        raise ValueError(
            'attention: mask: expected None or "causal" beside a cache, where both are causal, got '
            f"{mask.shape if isinstance(mask, Array) else repr(mask)}"
        )
    keys, values = check_cache(cache, q, k)
    if position is None:
        raise ValueError(
            "attention: position: expected the number of rows that the cache holds, where the new "
            "ones go, got None"
        )
    at = _checked_position(position, q)
    rows, capacity = q.shape[2], keys.shape[2]
    if rows > capacity:
        raise ValueError(f"attention: {rows} rows do not fit in a cache of {capacity}")
    if not isinstance(at, Array) and not 0 <= at <= capacity - rows:
        raise ValueError(
            f"attention: position: {rows} rows at {at} do not fit in a cache of {capacity}"
        )
    if isinstance(at, Array) and settings.get("CYRT_CHECK"):
        for each in at.numpy().flat:
            if not 0 <= each <= capacity - rows:
                raise IndexError(
                    f"attention: position: {rows} rows at {each} do not fit in a cache of "
                    f"{capacity}"
                )
    if _is_for_kernels(q):
        return attend(q, keys, values, k, v, True, at, rope, scale, sinks)
    if isinstance(at, Array):
        if q.dtype.name not in _KERNEL_TYPES:
            catalogue.row("attention", q.dtype.name)  # raises: it lists the types
        if q.shape[3] > MAX_WIDTH:
            raise ValueError(
                f"attention: with a position on the device: expected at most {MAX_WIDTH} features, "
                f"got {q.shape[3]}"
            )
        at, done = clip(at, 0, capacity - rows), []
        for i in range(0, rows, MAX_ROWS):
            some_q, some_k, some_v = (each[:, :, i : i + MAX_ROWS] for each in (q, k, v))
            done.append(
                attend(some_q, keys, values, some_k, some_v, True, at + i, rope, scale, sinks)
            )
        return concat(done, axis=2)
    if rope is not None:
        q, k = _rope(q, **rope, offset=at), _rope(k, **rope, offset=at)
    end = at + rows
    keys[:, :, at:end] = k
    values[:, :, at:end] = v
    return _attend(q, keys[:, :, :end], values[:, :, :end], scale, "causal", sinks)


def _attend(
    q: Array, k: Array, v: Array, scale: float, mask: Array | str | None, sinks: Array | None
) -> Array:
    if _is_for_tiles(q, k):
        array = mask if isinstance(mask, Array) else None
        return attend_by_tiles(q, k, v, array, isinstance(mask, str), scale, sinks)
    return _multiply(q, k, v, scale, mask, sinks)


def attention_vjp(
    g: Array,
    q: Array,
    k: Array,
    v: Array,
    scale: float | None = None,
    mask: Array | str | None = None,
) -> tuple[Array, Array, Array]:
    """Compute the gradients of :func:`attention` from that of its result.

    Sums are float32 (for float64, float64). How the gradients are computed depends on the operands;
    the first line that fits is used:

    | type | features | mask | computed by |
    |---|---|---|---|
    | 16 bits | at most 128 | None, "causal" | two launches, with tensor cores |
    | any | any | any | products, with the weights in memory |

    Tensor cores compute weights, and gradients of their logits, from tiles of the operands. They
    round both to the operands' type before they multiply them; a gradient of float16 beyond 65,504
    becomes infinity. Memory holds 8 bytes for each row of queries. Products keep weights and their
    gradients in memory for some heads at a time: at most 256 MiB of weights, or, if these are more,
    the weights of the heads of queries that share a head of keys.

    Parameters
    ----------
    g : Array
        The gradient of the result, of q's shape and type.
    q, k, v : Array
        As for :func:`attention`.
    scale : float, optional
        As for :func:`attention`.
    mask : Array or "causal", optional
        As for :func:`attention`.

    Returns
    -------
    tuple of Array
        The gradients of q, k and v, of their shapes and type.

    Raises
    ------
    ValueError, TypeError
        The errors of :func:`attention`; or g differs from q in shape or type.

    Notes
    -----
    The computation by tiles is that of Dao et al., arXiv:2205.14135.

    Examples
    --------
    >>> import cyrt
    >>> q, k, v = (cyrt.random.normal(shape=(1, 2, 5, 8)) for _ in range(3))
    >>> g = cyrt.ones_like(cyrt.nn.attention(q, k, v, mask="causal"))
    >>> of_q, of_k, of_v = cyrt.nn.attention_vjp(g, q, k, v, mask="causal")
    >>> of_k.shape
    (1, 2, 5, 8)
    """
    name = "attention_vjp"
    check_operands(name, q, k, v)
    check_array(g, f"{name}: g")
    if g.shape != q.shape:
        raise ValueError(f"{name}: g: expected shape {q.shape}, that of q, got {g.shape}")
    if g.dtype != q.dtype:
        raise TypeError(f"{name}: g: expected {q.dtype}, the type of q, got {g.dtype}")
    check_device(g, q, name, "g")
    _check_mask(name, mask, q, k)
    factor = _scale_of(name, scale, q)
    if not isinstance(mask, Array) and _is_for_tiles(q, k):
        return gradients_by_tiles(g, q, k, v, mask is not None, factor)
    (batches, heads, rows, _), (_, shared, keys, _) = q.shape, k.shape
    group = heads // shared if shared else 0
    head_nbytes = group * rows * keys * dtype(_wide(q)).itemsize
    some_heads = _at_once(shared, head_nbytes)
    some_batches = _at_once(batches, some_heads * head_nbytes)
    if some_heads >= shared and some_batches >= batches:
        return _multiply_gradients(g, q, k, v, factor, mask)
    gq, gk, gv = (empty(each.shape, dtype=q.dtype, device=q.device) for each in (q, k, v))
    if isinstance(mask, Array):
        mask = broadcast_to(mask, (batches, heads, rows, keys))
    for i in range(0, batches, some_batches):
        for j in range(0, shared, some_heads):
            key_part = slice(i, i + some_batches), slice(j, j + some_heads)
            query_part = key_part[0], slice(j * group, (j + some_heads) * group)
            part = mask[query_part] if isinstance(mask, Array) else mask
            gq[query_part], gk[key_part], gv[key_part] = _multiply_gradients(
                g[query_part], q[query_part], k[key_part], v[key_part], factor, part
            )
    return gq, gk, gv


# -- by products ----------------------------------------------------------------------------------


def _wide(q: Array) -> str:
    """The type of logits and weights."""
    return "float64" if q.dtype.name == "float64" else "float32"


def _at_once(count: int, nbytes: int) -> int:
    """The number of parts that are computed together, given the bytes of the weights of each."""
    return max(1, min(count, _WEIGHTS // max(1, nbytes)))


def _group_heads(x: Array, k: Array) -> Array:
    """View (B, H, T, N) as (B, H', H / H' * T, N): rows that share keys, one after the other."""
    batches, heads, rows, n = x.shape
    shared = k.shape[1]
    return reshape(x, (batches, shared, heads // shared * rows if shared else 0, n))


def _multiply(
    q: Array, k: Array, v: Array, scale: float, mask: Array | str | None, sinks: Array | None
) -> Array:
    """Compute some batches and rows of queries at a time, so that memory stays bounded."""
    batches, heads, rows, _ = q.shape
    keys = k.shape[2]
    row_nbytes = heads * keys * dtype(_wide(q)).itemsize
    some_rows = _at_once(rows, row_nbytes)
    some_batches = _at_once(batches, some_rows * row_nbytes)
    if some_rows >= rows and some_batches >= batches:
        return multiply_attention(q, k, v, scale, mask, sinks)
    out = empty(q.shape, dtype=q.dtype, device=q.device)
    if isinstance(mask, Array):
        mask = broadcast_to(mask, (batches, heads, rows, keys))
    for i in range(0, batches, some_batches):
        batch = slice(i, i + some_batches)
        for first in range(0, rows, some_rows):
            last, end, part = min(first + some_rows, rows), keys, mask
            if isinstance(mask, Array):
                part = mask[batch, :, first:last]
            elif mask is not None:
                end = max(0, keys - rows + last)  # the keys that the last of these rows uses
            out[batch, :, first:last] = multiply_attention(
                q[batch, :, first:last], k[batch, :, :end], v[batch, :, :end], scale, part, sinks
            )
    return out


def multiply_attention(
    q: Array, k: Array, v: Array, scale: float, mask: Array | str | None, sinks: Array | None
) -> Array:
    if k.shape[2] == 0:
        return zeros(q.shape, dtype=q.dtype, device=q.device)
    weights = _weights(q, k, scale, mask, sinks)
    product = matmul(_group_heads(weights, k), v, dtype=_wide(q))
    return reshape(product, q.shape).astype(q.dtype)


def _multiply_gradients(
    g: Array, q: Array, k: Array, v: Array, scale: float, mask: Array | str | None
) -> tuple[Array, Array, Array]:
    wide = _wide(q)
    weights = _group_heads(_weights(q, k, scale, mask, None), k)
    slopes = _group_heads(g, k)
    gradient = softmax_vjp(matmul(slopes, v.mT, dtype=wide), weights)
    gradient = gradient * scale
    gq = reshape(matmul(gradient, k, dtype=wide), q.shape)
    gk = matmul(gradient.mT, _group_heads(q, k), dtype=wide)
    gv = matmul(weights.mT, slopes, dtype=wide)
    return gq.astype(q.dtype), gk.astype(q.dtype), gv.astype(q.dtype)


def _weights(
    q: Array, k: Array, scale: float, mask: Array | str | None, sinks: Array | None
) -> Array:
    """The weights of all keys for each query, (B, H, T, S)."""
    wide = _wide(q)
    _, heads, rows, _ = q.shape
    keys = k.shape[2]
    logits = matmul(_group_heads(q.astype(wide) * scale, k), k.mT, dtype=wide)
    logits = reshape(logits, (*q.shape[:3], keys))
    if isinstance(mask, Array):
        logits = (
            where(mask, logits, -math.inf)
            if mask.dtype.name == "bool"
            else (logits + mask.astype(wide))
        )
    elif mask is not None:
        last = arange(rows, device=q.device) + (keys - rows)
        seen = arange(keys, device=q.device) <= reshape(last, (rows, 1))
        logits = where(seen, logits, -math.inf)
    if sinks is not None:
        column = broadcast_to(reshape(sinks.astype(wide), (1, heads, 1, 1)), (*logits.shape[:3], 1))
        logits = concat([logits, column], axis=-1)
    weights = softmax(logits)[..., :keys]
    if keys and (isinstance(mask, Array) or (mask is not None and rows > keys)):
        weights = where(_max(logits, axis=-1, keepdims=True) == -math.inf, 0.0, weights)
    return weights


# -- checks ---------------------------------------------------------------------------------------


def _is_for_kernels(q: Array) -> bool:
    return q.dtype.name in _KERNEL_TYPES and q.shape[2] <= MAX_ROWS and q.shape[3] <= MAX_WIDTH


def _is_for_tiles(q: Array, k: Array) -> bool:
    return (
        q.dtype.name in _FLASH_TYPES
        and q.shape[3] <= FLASH_WIDTH
        and max(q.shape[2], k.shape[2]) <= FLASH_KEYS
    )


def _scale_of(name: str, scale: float | None, q: Array) -> float:
    if scale is None:
        return q.shape[3] ** -0.5 if q.shape[3] else 1.0
    return number_of(scale, name, "scale")


def _rope_arguments(rope: dict[str, Any], features: int) -> dict[str, Any]:
    if not isinstance(rope, dict):
        raise TypeError(f"attention: rope: expected a dict, got {type(rope).__name__}")
    if not rope.keys() <= set(_ROPE_ARGUMENTS):
        other = next(key for key in rope if key not in _ROPE_ARGUMENTS)
        raise TypeError(
            f"attention: rope: expected arguments {', '.join(_ROPE_ARGUMENTS)}, got {show(other)}"
        )
    return {"dims": features, **rope}


def _check_sinks(sinks: Array, q: Array) -> None:
    check_array(sinks, "attention: sinks")
    if sinks.dtype.kind != "f":
        raise TypeError(f"attention: sinks: expected a real floating-point type, got {sinks.dtype}")
    check_device(sinks, q, "attention", "sinks")
    if sinks.shape != q.shape[1:2]:
        raise ValueError(
            f"attention: sinks: expected shape {q.shape[1:2]}, a logit of each head, got "
            f"{sinks.shape}"
        )


def _check_mask(name: str, mask: Array | str | None, q: Array, k: Array) -> None:
    if mask is None or (isinstance(mask, str) and mask == "causal"):
        return
    if isinstance(mask, str):
        raise ValueError(f'{name}: mask: expected None, "causal" or an Array, got {show(mask)}')
    check_array(mask, f"{name}: mask")
    if mask.dtype.kind not in "bf":
        raise TypeError(
            f"{name}: mask: expected bool or a real floating-point type, got {mask.dtype}"
        )
    check_device(mask, q, name, "mask")
    shape = (*q.shape[:3], k.shape[2])
    try:
        fits = np.broadcast_shapes(mask.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name}: mask: expected a shape that broadcasts to {shape}, got {mask.shape}"
        )


def _checked_position(position: Array | int, q: Array) -> Array | int:
    if not isinstance(position, Array):
        if isinstance(position, bool):
            raise TypeError("attention: position: expected an int or an Array, got bool")
        try:
            return operator.index(position)
        except TypeError:
            raise TypeError(
                "attention: position: expected an int or an Array of integers, got "
                f"{type(position).__name__}"
            ) from None
    if position.dtype.kind not in "iu":
        raise TypeError(f"attention: position: expected integers, got {position.dtype}")
    if position.size != 1 and position.shape != q.shape[:1]:
        raise ValueError(
            f"attention: position: expected one number, or shape ({q.shape[0]},), for q of shape "
            f"{q.shape}, got {position.shape}"
        )
    check_device(position, q, "attention", "position")
    # Sums of positions have the type of the positions, and small types would wrap.
    return position if position.dtype.name in ("int32", "int64") else position.astype("int64")


__all__ = ["attention", "attention_vjp"]
