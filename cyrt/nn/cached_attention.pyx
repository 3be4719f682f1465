"""Attention of a few rows of queries to the keys and values of a cache, in a launch or two."""

from libc.string cimport memset

from cyrt.builtin.attention cimport (
    ATTENTION_OPERANDS, FREQS, KEYS, MAX_CAPACITY, MAX_FEATURES, NEW_KEYS, NEW_ROWS, NEW_VALUES,
    OUT, POSITIONS, QUERIES, SINKS, VALUES, AttentionSpace, record_attention,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.rope cimport RopeSpace
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array, overlaps, set_operand
from cyrt.nn.attention_operands cimport set_sinks, set_steps
from cyrt.nn.rope cimport set_angles
from cyrt.ops.copy import copy as duplicate
from cyrt.ops.copy cimport cast
from cyrt.runtime.stream cimport current_state

# The maximum numbers of rows of queries, of features, and of keys of a cache in the kernels.
MAX_ROWS = <int>NEW_ROWS
MAX_WIDTH = <int>MAX_FEATURES
MAX_KEYS = <int>MAX_CAPACITY

cdef int INT32 = _dtype("int32").code, INT64 = _dtype("int64").code


cdef Array with_rows(Array x):
    """Return x, or a copy of it whose features are contiguous."""
    return x if x.dims[3] <= 1 or x.steps[3] == 1 else as_contiguous(x)


cdef Array apart_from(Array x, Array keys, Array values):
    """Return x, or a copy if it may share memory with the cache, to which other blocks write while
    x is read."""
    return duplicate(x) if overlaps(x, keys) or overlaps(x, values) else x


def attend(q, keys, values, k, v, bint append, position, rope, double scale, sinks):
    """Compute attention to the first `position` keys of a cache, and to new keys with a causal
    mask.

    The arguments have been checked: q (B, H, T, D), k and v (B, H', T, D) or None, a cache of keys
    and values (B, H', capacity, D), all of one type of the kernels; MAX_ROWS rows and MAX_WIDTH
    features at most.

    Parameters
    ----------
    append : bool
        Whether the new keys and values are written to the cache. Its features must be contiguous,
        because it is not copied.
    position : int or Array of integers
        One number, or one for each batch.
    rope : dict, optional
        Arguments of :func:`cyrt.nn.rope`, by which q and k are rotated.
    scale : float
        The factor of the products.
    sinks : Array, optional
        An array of shape (H,) and a real floating-point type.
    """
    cdef Operand[ATTENTION_OPERANDS] operands
    cdef AttentionSpace space
    cdef RopeSpace angles
    cdef Array queries = with_rows(q), cached_keys = keys, cached_values = values
    cdef Array new_keys = None, new_values = None, positions = None, divisors = None, _logits
    cdef Array out = new_array(device_of(queries), queries.code, 4, queries.dims)
    memset(operands, 0, sizeof(operands))
    memset(&space, 0, sizeof(space))
    if append:
        queries = apart_from(queries, cached_keys, cached_values)
    else:
        cached_keys, cached_values = with_rows(cached_keys), with_rows(cached_values)
    set_operand(&operands[OUT], out)
    set_operand(&operands[KEYS], cached_keys)
    set_operand(&operands[VALUES], cached_values)
    set_operand(&operands[QUERIES], queries)
    set_steps(&space.keys, cached_keys)
    set_steps(&space.values, cached_values)
    set_steps(&space.queries, queries)
    space.batches, space.heads, space.key_heads = (queries.dims[0], queries.dims[1],
                                                   cached_keys.dims[1])
    space.rows, space.features = queries.dims[2], queries.dims[3]
    space.capacity, space.append, space.scale = cached_keys.dims[2], append, scale
    if k is not None:
        new_keys, new_values = with_rows(k), with_rows(v)
        if append:
            new_keys = apart_from(new_keys, cached_keys, cached_values)
            new_values = apart_from(new_values, cached_keys, cached_values)
        set_operand(&operands[NEW_KEYS], new_keys)
        set_operand(&operands[NEW_VALUES], new_values)
        set_steps(&space.new_keys, new_keys)
        set_steps(&space.new_values, new_values)
        space.fresh = new_keys.dims[2]
    if isinstance(position, Array):
        positions = position
        if positions.code != INT32:
            positions = cast(positions, INT64)
        set_operand(&operands[POSITIONS], positions)
        space.positions_step = positions.steps[0] if positions.count > 1 else 0
        space.wide_positions = positions.code == INT64
    else:
        space.first = position
    if rope is not None:
        memset(&angles, 0, sizeof(angles))
        divisors = set_angles(
            &angles, "attention: rope", queries, rope["dims"], rope.get("traditional", False),
            rope.get("base", 10000.0), rope.get("scale", 1.0), rope.get("freqs"), 1)
        space.pairs, space.traditional = angles.pairs, angles.traditional
        space.turns, space.log2_step = angles.turns, angles.log2_step
        if divisors is not None:
            set_operand(&operands[FREQS], divisors)
            space.freqs_step, space.wide_freqs = angles.freqs_step, angles.wide_freqs
    # The array lives until the launch is recorded.
    _logits = set_sinks(&operands[SINKS], sinks, queries.code, &space.sinks_step,
                        &space.wide_sinks)
    record_attention(encoder_of(current_state(device_of(queries))), queries.code, operands, &space)
    return out
