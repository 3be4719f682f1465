"""Checks of queries, keys, values and caches, which every layer of every token calls."""

from libc.stdlib cimport llabs

import numpy as np

from cyrt.builtin.attention cimport MAX_CAPACITY
from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.ndarray cimport Array, itemsizes, overlaps, set_operand, shape_of
from cyrt.ops.arguments import check_array
from cyrt.ops.copy cimport cast, check_device
from cyrt.ops.promotion cimport kinds
from cyrt.ops.views import outline
from cyrt.runtime.memory cimport READ_ONLY


cdef int FLOAT32 = _dtype("float32").code


cdef Array set_sinks(Operand* operand, object sinks, int code, long long* step, bint* wide):
    cdef Array logits = sinks
    if logits is None:
        return None
    if logits.code != code:
        logits = cast(logits, FLOAT32)
    set_operand(operand, logits)
    step[0] = logits.steps[0]
    wide[0] = logits.code == FLOAT32
    return logits


cdef inline Array array_of(str name, str argument, object x):
    return <Array>x if isinstance(x, Array) else check_array(x, f"{name}: {argument}")


def check_operands(str name, q, k, v):
    """Raise an error unless q is (B, H, T, D), k and v are (B, H', S, D), H a multiple of H', and
    all of one real floating-point type."""
    cdef Array queries = array_of(name, "q", q), keys = array_of(name, "k", k)
    cdef Array values = array_of(name, "v", v)
    cdef bint fits = queries.ndim_ == 4 and keys.ndim_ == 4 and values.ndim_ == 4
    cdef long long heads, shared
    cdef int d
    if kinds[queries.code] != c"f" or keys.code != queries.code or values.code != queries.code:
        raise TypeError(f"{name}: expected q, k and v of one real floating-point type, got "
                        f"{DTYPES[queries.code]}, {DTYPES[keys.code]} and {DTYPES[values.code]}")
    for d in range(4 if fits else 0):
        fits = fits and keys.dims[d] == values.dims[d]
    if not (fits and queries.dims[0] == keys.dims[0] and queries.dims[3] == keys.dims[3]):
        raise ValueError(f"{name}: expected q (B, H, T, D), k and v (B, H', S, D), got "
                         f"{shape_of(queries)}, {shape_of(keys)} and {shape_of(values)}")
    check_device(keys, queries, name, "k")
    check_device(values, queries, name, "v")
    heads, shared = queries.dims[1], keys.dims[1]
    if heads % shared if shared else heads:
        raise ValueError(f"{name}: {heads} heads of q are not a multiple of the {shared} heads of "
                         f"k and v: shapes {shape_of(queries)} and {shape_of(keys)}")


cdef bint are_distant(Array x, long long distance, unsigned done) noexcept:
    """Return whether two elements of x have a given distance, in elements, if their indices differ
    in dimensions that are not done. No two elements of x share memory."""
    cdef long long step = 0, rest = 0, times
    cdef int d, along = -1
    for d in range(x.ndim_):
        if not done >> d & 1 and x.dims[d] > 1:
            rest += (x.dims[d] - 1) * llabs(x.steps[d])
            if llabs(x.steps[d]) > step:
                along, step = d, llabs(x.steps[d])
    if along < 0:
        return distance == 0
    rest -= (x.dims[along] - 1) * step      # less than the step: at most two numbers of steps do
    for times in range(distance // step - 1, distance // step + 2):
        if llabs(times) < x.dims[along] and llabs(distance - times * step) <= rest:
            if are_distant(x, distance - times * step, done | 1 << along):
                return True
    return False


cdef bint share_elements(Array a, Array b) except -1:
    """Return whether an element of one array shares memory with an element of the other one, which
    has the same shape. Elements of the same array do not share memory."""
    cdef long long distance = <long long>(b.address - a.address), size = itemsizes[a.code]
    cdef int d
    cdef bint alike = distance % size == 0
    if not overlaps(a, b):
        return False
    for d in range(a.ndim_):
        alike = alike and (a.dims[d] <= 1 or a.steps[d] == b.steps[d])
    # NumPy's search takes a second for some layouts.
    if alike:
        return are_distant(a, distance // size, 0)
    return np.shares_memory(outline(a), outline(b))


cdef int check_rows(str name, Array x, Array q, Array k) except -1:
    """Check keys or values of a cache."""
    if x.code != q.code:
        raise TypeError(f"attention: cache: {name}: expected {DTYPES[q.code]}, the type of q, got "
                        f"{DTYPES[x.code]}")
    if x.ndim_ != 4 or x.dims[0] != k.dims[0] or x.dims[1] != k.dims[1] or x.dims[3] != k.dims[3]:
        raise ValueError(f"attention: cache: {name}: expected shape ({k.dims[0]}, {k.dims[1]}, "
                         f"capacity, {k.dims[3]}), got {shape_of(x)}")
    check_device(x, q, "attention", f"cache: {name}")
    if x.traits & READ_ONLY or x.dims[3] > 1 and x.steps[3] != 1:
        raise ValueError(f"attention: cache: {name}: expected an array whose elements share no "
                         f"memory, with contiguous features, got strides {x.strides} of shape "
                         f"{shape_of(x)}")
    return 0


def check_cache(cache, Array q, Array k):
    """Return keys and values; raise an error unless they are a valid cache for q and k, which have
    been checked."""
    cdef Array keys, values
    if not (isinstance(cache, (tuple, list)) and len(cache) == 2):
        raise TypeError("attention: cache: expected a tuple of keys and values, got "
                        f"{type(cache).__name__}")
    if k.dims[2] != q.dims[2]:
        raise ValueError("attention: expected as many new keys as queries beside a cache, got "
                         f"shapes {shape_of(q)} of q and {shape_of(k)} of k")
    keys = array_of("attention: cache", "keys", cache[0])
    values = array_of("attention: cache", "values", cache[1])
    check_rows("keys", keys, q, k)
    check_rows("values", values, q, k)
    if keys.dims[2] != values.dims[2] or keys.dims[2] > <long long>MAX_CAPACITY:
        raise ValueError("attention: cache: expected keys and values of one shape, and at most "
                         f"{<long long>MAX_CAPACITY:,} of them, got {shape_of(keys)} and "
                         f"{shape_of(values)}")
    if share_elements(keys, values):
        raise ValueError("attention: cache: expected keys and values that share no memory")
    return keys, values
