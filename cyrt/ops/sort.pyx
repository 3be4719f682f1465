"""Sorting along an axis: stable, whatever is asked for."""

from libc.string cimport memset

from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.kernels.sorting cimport record_sort
from cyrt.kernels.entries cimport Operand
from cyrt.ndarray cimport Array, device_of, new_array, set_operand
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.rows cimport flat, rows_along, rows_back
from cyrt.runtime.stream cimport current_state

cdef int INT64 = _dtype("int64").code
cdef tuple KINDS = ("quicksort", "mergesort", "heapsort", "stable")


cdef Array sorted_along(Array x, int axis, bint places, bint descending):
    cdef Operand[2] operands
    cdef Array rows = rows_along(x, axis), result
    cdef int ordinal = device_of(x)
    cdef long long n = rows.dims[rows.ndim_ - 1]
    result = new_array(ordinal, INT64 if places else x.code, rows.ndim_, rows.dims)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], result)
    set_operand(&operands[1], rows)
    record_sort(encoder_of(current_state(ordinal)), x.code, operands, rows.count // n if n else 0,
                n, places, descending)
    return rows_back(result, axis)


cdef tuple given(object x, object axis, object kind, str name):
    """The array, as one row without an axis, and the axis."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"{name}: kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    if not isinstance(x, Array):
        check_array(x, f"{name}: x")
    return (flat(x), 0) if axis is None else (x, axis_of(axis, x.ndim))


def sort(x, /, axis=-1, kind=None, *, descending=False, stable=True):
    """The elements in order along an axis.

    NaN counts as greater than every number: last, and first with `descending`. -0.0 equals 0.0.

    Parameters
    ----------
    x : Array
        Of a real type or bool.
    axis : int, optional
        None: x is flattened first.
    kind : str, optional
        NumPy's name of an algorithm, such as "stable"; one that is stable serves for all.
    descending : bool
    stable : bool
        Elements that are equal keep their order in either case.

    Returns
    -------
    Array
        Of x's shape and type; a copy.

    Raises
    ------
    TypeError
        Complex numbers have no order.
    """
    x, axis = given(x, axis, kind, "sort")
    return sorted_along(x, axis, False, descending)


def argsort(x, /, axis=-1, kind=None, *, descending=False, stable=True):
    """The indices that put the elements in order along an axis.

    Parameters
    ----------
    x : Array
        Of a real type or bool; see :func:`sort` for NaN and signed zeros.
    axis : int, optional
        None: x is flattened first.
    kind : str, optional
        NumPy's name of an algorithm, such as "stable"; one that is stable serves for all.
    descending : bool
    stable : bool
        Elements that are equal keep their order in either case.

    Returns
    -------
    Array
        int64, of x's shape.

    Raises
    ------
    TypeError
        Complex numbers have no order.
    """
    x, axis = given(x, axis, kind, "argsort")
    return sorted_along(x, axis, True, descending)
