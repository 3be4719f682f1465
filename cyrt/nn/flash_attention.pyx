"""Attention of many rows of queries, of 16-bit floats, in a launch, and its gradients in two."""

from libc.string cimport memset

from cyrt.builtin.attention cimport Steps
from cyrt.builtin.flash_attention cimport (
    BOOL_MASK, FLASH_OPERANDS, FLOAT_MASK, KEYS, MASK, MOST_FEATURES, MOST_KEYS, OUT, OWN_MASK,
    QUERIES, SINKS, VALUES, FlashSpace, record_flash_attention,
)
from cyrt.builtin.flash_attention_vjp cimport (
    OF_KEYS, OF_QUERIES, OF_VALUES, VJP_GRADIENT, VJP_KEYS, VJP_OPERANDS, VJP_QUERIES, VJP_VALUES,
    VjpSpace, record_flash_attention_vjp,
)
from cyrt.builtin.launch cimport VECTOR_BYTES
from cyrt.builtin.library_attention cimport is_for_library
from cyrt.builtin.operand cimport Operand
from cyrt.driver.errors import OutOfMemoryError
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, device_of, itemsizes, new_array, set_operand, view_of
from cyrt.nn.attention_operands cimport set_sinks, set_steps
from cyrt.ops.copy cimport assign_array, broadcast_steps, cast
from cyrt.ops.creation import full
from cyrt.ops.ternary import where
from cyrt.runtime.stream cimport current_state

# The maximum numbers of features, and of keys or rows of queries, in the kernels.
MAX_WIDTH = <int>MOST_FEATURES
MAX_KEYS = <int>MOST_KEYS

cdef int BOOL = _dtype("bool").code, FLOAT32 = _dtype("float32").code


cdef Array with_vectors(Array x, Steps* steps):
    """Return x, or a copy of it in which every row begins at a vector; set the steps."""
    cdef int vector = VECTOR_BYTES // itemsizes[x.code]
    cdef long long[4] dims
    cdef Array rows
    set_steps(steps, x)
    if (x.dims[3] <= 1 or x.steps[3] == 1) and x.address % VECTOR_BYTES == 0 \
            and (steps.batch | steps.head | steps.row) % vector == 0:
        return x
    dims[0], dims[1], dims[2] = x.dims[0], x.dims[1], x.dims[2]
    dims[3] = (x.dims[3] + vector - 1) // vector * vector
    rows = new_array(device_of(x), x.code, 4, dims)
    rows = view_of(rows, x.code, 4, x.dims, rows.steps, 0)
    assign_array(rows, x)
    set_steps(steps, rows)
    return rows


cdef Array additive_mask(Array mask, const long long* dims, Array queries):
    """Return 0 where a mask of bool is True and -infinity where it is not, of the queries' type: an
    array (B or 1, H or 1, T, S) whose rows begin at vectors."""
    cdef int d, vector = VECTOR_BYTES // itemsizes[queries.code]
    cdef long long[4] steps, own, padded
    cdef Array chosen, rows
    broadcast_steps(mask, 4, dims, steps)
    own[0], own[1], own[2], own[3] = dims[0], dims[1], dims[2], dims[3]
    for d in range(2):
        if steps[d] == 0:
            own[d] = 1
    shown, hidden = [full((), each, dtype=queries.dtype, device=queries.device)
                     for each in (0.0, float("-inf"))]
    chosen = where(view_of(mask, mask.code, 4, own, steps, 0), shown, hidden)
    if own[3] % vector == 0:
        return chosen
    padded[0], padded[1], padded[2] = own[0], own[1], own[2]
    padded[3] = (own[3] + vector - 1) // vector * vector
    rows = new_array(device_of(queries), queries.code, 4, padded)
    rows = view_of(rows, queries.code, 4, own, rows.steps, 0)
    assign_array(rows, chosen)
    return rows


def attend(q, k, v, mask, bint causal, double scale, sinks):
    """Compute attention to all keys, to those that a mask selects, or with a causal mask.

    The arguments have been checked: q (B, H, T, D), k and v (B, H', S, D), of one type of the
    kernels; MAX_WIDTH features, MAX_KEYS rows and keys at most.

    Parameters
    ----------
    mask : Array, optional
        An array of bool or a real floating-point type; it broadcasts to (B, H, T, S).
    causal : bool
        Whether query i uses only the keys up to S - T + i. It cannot be combined with a mask.
    scale : float
        The factor of the products.
    sinks : Array, optional
        An array of shape (H,) and a real floating-point type.
    """
    cdef Operand[FLASH_OPERANDS] operands
    cdef FlashSpace space
    cdef Array out, queries, keys, values, added = None, _logits
    cdef long long[4] dims, steps
    memset(operands, 0, sizeof(operands))
    memset(&space, 0, sizeof(space))
    queries = with_vectors(q, &space.queries)
    keys, values = with_vectors(k, &space.key_steps), with_vectors(v, &space.values)
    out = new_array(device_of(queries), queries.code, 4, queries.dims)
    set_operand(&operands[OUT], out)
    set_operand(&operands[QUERIES], queries)
    set_operand(&operands[KEYS], keys)
    set_operand(&operands[VALUES], values)
    space.batches, space.heads, space.key_heads = queries.dims[0], queries.dims[1], keys.dims[1]
    space.rows, space.keys, space.features = queries.dims[2], keys.dims[2], queries.dims[3]
    space.causal, space.scale = causal, scale
    if mask is not None:
        added = mask
        if added.code != BOOL and added.code != queries.code:
            added = cast(added, FLOAT32)
        dims[0], dims[1], dims[2] = space.batches, space.heads, space.rows
        dims[3] = space.keys
        if added.code == BOOL and sinks is None and is_for_library(device_of(queries), &space):
            try:
                added = additive_mask(added, dims, queries)
                space.hides = True
            except OutOfMemoryError:        # the kernels read the mask as it is
                pass
        broadcast_steps(added, 4, dims, steps)
        space.mask.batch, space.mask.head, space.mask.row = steps[0], steps[1], steps[2]
        space.mask_key_step = steps[3]
        space.mask_type = (BOOL_MASK if added.code == BOOL else
                           OWN_MASK if added.code == queries.code else FLOAT_MASK)
        set_operand(&operands[MASK], added)
    # The array lives until the launch is recorded.
    _logits = set_sinks(&operands[SINKS], sinks, queries.code, &space.sinks_step,
                        &space.wide_sinks)
    record_flash_attention(encoder_of(current_state(device_of(queries))), queries.code, operands,
                           &space)
    return out


def gradients(g, q, k, v, bint causal, double scale):
    """Compute the gradients of `attend` without an array as a mask, and without sinks.

    The arguments have been checked as those of `attend`; g, the gradient of the result, has q's
    shape and type. The result is a tuple of the gradients of q, k and v.
    """
    cdef Operand[VJP_OPERANDS] operands
    cdef VjpSpace space
    cdef Array slopes, queries, keys, values, of_queries, of_keys, of_values
    memset(operands, 0, sizeof(operands))
    memset(&space, 0, sizeof(space))
    slopes, queries = with_vectors(g, &space.gradient), with_vectors(q, &space.queries)
    keys, values = with_vectors(k, &space.key_steps), with_vectors(v, &space.values)
    of_queries = new_array(device_of(queries), queries.code, 4, queries.dims)
    of_keys = new_array(device_of(keys), keys.code, 4, keys.dims)
    of_values = new_array(device_of(values), values.code, 4, values.dims)
    set_operand(&operands[OF_QUERIES], of_queries)
    set_operand(&operands[OF_KEYS], of_keys)
    set_operand(&operands[OF_VALUES], of_values)
    set_operand(&operands[VJP_GRADIENT], slopes)
    set_operand(&operands[VJP_QUERIES], queries)
    set_operand(&operands[VJP_KEYS], keys)
    set_operand(&operands[VJP_VALUES], values)
    space.batches, space.heads, space.key_heads = queries.dims[0], queries.dims[1], keys.dims[1]
    space.rows, space.keys, space.features = queries.dims[2], keys.dims[2], queries.dims[3]
    space.causal, space.scale = causal, scale
    record_flash_attention_vjp(encoder_of(current_state(device_of(queries))), queries.code,
                               operands, &space)
    return of_queries, of_keys, of_values
