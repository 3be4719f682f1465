"""Unique elements and membership, by sorting and by comparison of neighbours."""

from collections import namedtuple

from cyrt.dtypes import DTYPES
from cyrt.ndarray cimport Array, device_of
from cyrt.ops.arguments import check_array, check_flags
from cyrt.ops.compact cimport positions_where, select_where
from cyrt.ops.copy cimport cast, check_device
from cyrt.ops.creation import asarray, empty, full, ones
from cyrt.ops.promotion cimport is_number, promote, promote_number
from cyrt.ops.scan import cumulative_sum, diff
from cyrt.ops.search import contains
from cyrt.ops.sort import argsort, sort
from cyrt.ops.gather import take
from cyrt.ops.shapes cimport flat
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

UniqueAll = namedtuple("UniqueAll", ["values", "indices", "inverse_indices", "counts"])
UniqueCounts = namedtuple("UniqueCounts", ["values", "counts"])
UniqueInverse = namedtuple("UniqueInverse", ["values", "inverse_indices"])
for _each in (UniqueAll, UniqueCounts, UniqueInverse):
    _each.__module__ = "cyrt"


cdef object order_of(Array x):
    """Return the indices that sort the elements; complex numbers by real, then by imaginary
    parts."""
    if DTYPES[x.code].kind != "c":
        return argsort(x)
    indices = argsort(x.imag)
    return take(indices, argsort(take(x.real, indices)))


cdef tuple sort_with_indices(Array x):
    """Return the sorted elements, and their indices before sorting."""
    indices = order_of(x)
    return take(x, indices), indices


cdef Array sorted_of(Array x):
    return sort_with_indices(x)[0] if DTYPES[x.code].kind == "c" else sort(x)


cdef Array mark_first(Array ordered):
    """Mark the elements that differ from the element before; a NaN differs from everything."""
    flags = ones(ordered.count, dtype="bool", device=device_of(ordered))
    if ordered.count > 1:
        flags[1:] = ordered[1:] != ordered[:ordered.count - 1]
    return flags


cdef object lengths(object starts, Array ordered):
    end = full(1, ordered.count, dtype="int64", device=device_of(ordered))
    return diff(starts, append=end)


cdef Array inverse_of(Array x, object indices, Array flags):
    """Return for each element of x the index of its value in the unique elements."""
    inverse = empty(x.shape, dtype="int64", device=device_of(x))
    if x.count:
        flat(inverse)[indices] = cumulative_sum(flags) - 1
    return inverse


def unique_all(x, /):
    """Find the unique elements, ascending, with their first indices, the inverse, and their counts.

    Each NaN is unique; -0.0 and 0.0 are equal. The function waits for the number of unique
    elements.

    Parameters
    ----------
    x : Array

    Returns
    -------
    values : Array
        A one-dimensional array of x's type.
    indices : Array
        For each value the index of its first occurrence in the flattened x, int64.
    inverse_indices : Array
        For each element of x its index in `values`, int64, of x's shape.
    counts : Array
        For each value the number of its occurrences, int64.
    """
    if recording and is_followed(x):
        return record_call(unique_all, (x,))
    cdef Array array = check_array(x, "unique_all: x")
    ordered, indices = sort_with_indices(flat(array))
    flags = mark_first(ordered)
    starts = positions_where(flags)
    return UniqueAll(take(ordered, starts), take(indices, starts),
                     inverse_of(array, indices, flags), lengths(starts, ordered))


def unique_counts(x, /):
    """Find the unique elements, ascending, and their counts; see :func:`unique_all`.

    Parameters
    ----------
    x : Array

    Returns
    -------
    values : Array
        A one-dimensional array of x's type.
    counts : Array
        For each value the number of its occurrences, int64.
    """
    if recording and is_followed(x):
        return record_call(unique_counts, (x,))
    ordered = sorted_of(flat(check_array(x, "unique_counts: x")))
    starts = positions_where(mark_first(ordered))
    return UniqueCounts(take(ordered, starts), lengths(starts, ordered))


def unique_inverse(x, /):
    """Find the unique elements, ascending, and the index among them of each element of x; see
    :func:`unique_all`.

    Parameters
    ----------
    x : Array

    Returns
    -------
    values : Array
        A one-dimensional array of x's type.
    inverse_indices : Array
        For each element of x its index in `values`, int64, of x's shape.
    """
    if recording and is_followed(x):
        return record_call(unique_inverse, (x,))
    cdef Array array = check_array(x, "unique_inverse: x")
    ordered, indices = sort_with_indices(flat(array))
    flags = mark_first(ordered)
    return UniqueInverse(select_where(ordered, flags), inverse_of(array, indices, flags))


def unique_values(x, /):
    """Find the unique elements, ascending; see :func:`unique_all`.

    Parameters
    ----------
    x : Array

    Returns
    -------
    Array
        A one-dimensional array of x's type.
    """
    if recording and is_followed(x):
        return record_call(unique_values, (x,))
    ordered = sorted_of(flat(check_array(x, "unique_values: x")))
    return select_where(ordered, mark_first(ordered))


def isin(x1, /, test_elements, assume_unique=False, *, invert=False):
    """Test which elements equal an element of another array. A NaN equals nothing.

    Parameters
    ----------
    x1, test_elements : Array, number or sequence of these
        At least one is an Array; both are cast to their common type.
    assume_unique : bool
        Whether the elements of each array are unique. It has no effect.
    invert : bool
        Whether to mark the elements that equal none, instead.

    Returns
    -------
    Array
        bool, of x1's shape.

    Raises
    ------
    TypeError
        Neither is an Array, or their types have no common type.
    """
    cdef int code
    check_flags("isin", assume_unique=assume_unique, invert=invert)
    if isinstance(test_elements, (list, tuple, range)):
        test_elements = asarray(test_elements, device=check_array(x1, "isin: x1").device)
    if is_number(x1):
        there = check_array(test_elements, "isin: test_elements")
        code = promote_number((<Array>there).code, x1)
        x1 = asarray(x1, dtype=DTYPES[code], device=there.device)
    elif is_number(test_elements):
        here = check_array(x1, "isin: x1")
        code = promote_number((<Array>here).code, test_elements)
        test_elements = asarray(test_elements, dtype=DTYPES[code], device=here.device)
    else:
        code = promote((<Array>check_array(x1, "isin: x1")).code,
                       (<Array>check_array(test_elements, "isin: test_elements")).code)
        check_device(test_elements, x1, "isin: test_elements")
    if DTYPES[code].kind == "c":
        return is_in_complex(cast(x1, code), flat(cast(test_elements, code)), invert)
    return contains(sort(flat(cast(test_elements, code))), cast(x1, code), invert)


cdef object is_in_complex(Array x, Array others, bint invert):
    """Compare the indices of the elements in the unique elements of both arrays."""
    both = empty(x.count + others.count, dtype=x.dtype, device=device_of(x))
    both[:x.count] = flat(x)
    both[x.count:] = others
    values, inverse = unique_inverse(both)
    known = full(values.size, invert, dtype="bool", device=device_of(x))
    known[inverse[x.count:]] = not invert
    result = empty(x.shape, dtype="bool", device=device_of(x))
    flat(result)[:] = known[inverse[:x.count]]
    return result
