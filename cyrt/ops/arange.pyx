"""Evenly spaced numbers."""

import cmath
import math

from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from libc.string cimport memset

from cyrt.builtin.arange cimport record_arange
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.rows.arange import WIDE
from cyrt.dtypes import DEFAULTS, DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, device_of, new_array, set_operand, view_of
from cyrt.ops.arguments import check_flags, count_of
from cyrt.ops.copy cimport cast, fill
from cyrt.ops.creation cimport chosen_device, make, number_of
from cyrt.ops.elementwise cimport binary, unary
from cyrt.ops.promotion cimport FLOAT64, INT64, NUM_DTYPES, put_number
from cyrt.runtime.stream cimport current_state

cdef int ADD = op_code("add"), FLOOR = op_code("floor")
cdef long long SMALL = 1 << 61
# The type in which arange's kernel computes, by element type.
cdef int[NUM_DTYPES] wide_codes
for _each in DTYPES:
    wide_codes[<int>_each.code] = _dtype(WIDE[_each.kind]).code if _each.kind in WIDE else -1


def arange(start, stop=None, step=1, dtype=None, *, device=None):
    """Create evenly spaced numbers in [start, stop).

    Parameters
    ----------
    start, stop, step : number
        The bounds and the spacing. A single number is the stop, and the start is 0.
    dtype : DType, optional
        The element type. Default: int64 if all three are ints, otherwise float32.
    device : Device or int, optional
        Default: the current device.

    Returns
    -------
    Array
        A one-dimensional array of ``ceil((stop - start) / step)`` elements.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.arange(5)
    Array([0, 1, 2, 3, 4], dtype=int64)
    >>> cyrt.arange(1, 2, 0.25)
    Array([1.  , 1.25, 1.5 , 1.75], dtype=float32)
    """
    cdef Array x
    if stop is None:
        start, stop = 0, start
    if dtype is None and is_small(start) and is_small(stop) and is_small(step) and step != 0:
        return int_range(start, stop, step, device)
    start, stop, step = [number_of(each, "arange", name) for each, name in (
        (start, "start"), (stop, "stop"), (step, "step"))]
    if isinstance(start, complex) or isinstance(stop, complex) or isinstance(step, complex):
        raise TypeError(f"arange: expected real numbers, got {start}, {stop} and {step}")
    if step == 0:
        raise ValueError("arange: step is 0")
    whole = isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)
    found = _dtype(dtype) if dtype is not None else DEFAULTS["i" if whole else "f"]
    if found.kind == "b":
        raise TypeError("arange: dtype: expected a numeric type, got bool")
    if whole:
        count = -((start - stop) // step)
    else:
        count = (stop - start) / step
        if not math.isfinite(count):
            raise ValueError(f"arange: from {start} to {stop} by {step} is not a finite number of "
                             "elements")
        # A step that is infinite, or too large for the quotient, ends after the start.
        count = int(math.copysign(1, count)) if count == 0 != stop - start else math.ceil(count)
    count = max(0, count)
    if count == 1:
        step = 0                # The kernel's product with an infinite step would be NaN.
    x = make((count,), found.code, device)
    if count and found.kind in "iu":
        start, step = int(start), int(start + step) - int(start)
        check_range_of(found, start, count, step)
    write_range(x, start, step)
    return x


cdef inline bint is_small(object number):
    """Return whether a number is an int so small that 64 bits hold the distance of two such
    ints."""
    cdef int overflow = 0
    cdef long long value
    if not PyLong_CheckExact(number):
        return False
    value = PyLong_AsLongLongAndOverflow(number, &overflow)
    return overflow == 0 and -SMALL < value < SMALL


cdef Array int_range(long long start, long long stop, long long step, object device):
    """Create a range of ints in the default type."""
    cdef long long count
    if step > 0:
        count = (stop - start + step - 1) // step if stop > start else 0
    else:
        count = (start - stop - step - 1) // -step if start > stop else 0
    cdef Array x = new_array(chosen_device(device), INT64, 1, &count)
    cdef Operand[3] operands
    if count:
        memset(operands, 0, sizeof(operands))
        operands[1].value[0] = <unsigned long long>start
        operands[2].value[0] = <unsigned long long>step
        record_range(x, operands)
    return x


cdef int record_range(Array x, Operand* operands) except -1:
    """Record the kernel on the operands of the start and the step."""
    set_operand(&operands[0], x)
    record_arange(encoder_of(current_state(device_of(x))), x.code, operands, x.count)
    return 0


cdef int check_range_of(object dtype, object start, object count, object step) except -1:
    """Raise an OverflowError if the first or the last number is out of the integer type's range."""
    span = 1 << 8 * dtype.itemsize
    least = -span // 2 if dtype.kind == "i" else 0
    for each in (start, start + (count - 1) * step):
        if not least <= each < least + span:
            raise OverflowError(f"arange: the integer {each} is out of range of {dtype}")
    return 0


cdef object wrap_number(object number, object dtype):
    """Wrap an integer to 64 bits; the kernel treats signed and unsigned integers in the same
    way."""
    if dtype.kind not in "iu":
        return number
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


cdef int write_range(Array x, start, step) except -1:
    """Write start + i * step into the elements of a dense array."""
    cdef Operand[3] operands
    cdef int wide = wide_codes[x.code]
    if x.count == 0:
        return 0
    dtype = DTYPES[x.code]
    memset(operands, 0, sizeof(operands))
    put_number(wide, wrap_number(start, dtype), operands[1].value)
    put_number(wide, wrap_number(step, dtype), operands[2].value)
    return record_range(x, operands)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, *, device=None):
    """Create evenly spaced numbers over an interval, with exact ends.

    Parameters
    ----------
    start, stop : number
        The first number and, with `endpoint`, the last one.
    num : int
        The number of elements.
    dtype : DType, optional
        The element type. Default: float32, or complex64 if an end is complex. For an integer type,
        the numbers are rounded down.
    device : Device or int, optional
        Default: the current device.
    endpoint : bool
        Whether stop is the last number. Otherwise the last number is one step before stop.
    retstep : bool
        Whether to return the spacing, too.

    Returns
    -------
    Array
        An array of shape ``(num,)``; with `retstep` a tuple of the array and the spacing, which is
        NaN if there is no spacing.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    cdef Array x, result
    cdef long long count
    ends = [number_of(each, "linspace", name) for each, name in ((start, "start"), (stop, "stop"))]
    num = count_of(num, "linspace: num")
    check_flags("linspace", endpoint=endpoint, retstep=retstep)
    complex_ = isinstance(ends[0], complex) or isinstance(ends[1], complex)
    found = _dtype(dtype) if dtype is not None else DEFAULTS["c" if complex_ else "f"]
    if complex_ and found.kind != "c":
        raise TypeError(f"linspace: dtype: expected a complex type for complex ends, got {found}")
    # Integers are converted from floats.
    result = x = make((num,), found.code if found.kind in "fc" else FLOAT64, device)
    count = x.count
    intervals = max(1, count - 1 if endpoint else count)
    step = (ends[1] - ends[0]) / intervals
    if not cmath.isfinite(step) and all(map(cmath.isfinite, ends)):   # The distance overflows.
        step = ends[1] / intervals - ends[0] / intervals
    write_range(x, 0 if found.kind in "iu" else ends[0], step)
    if found.kind in "iu":
        # Whole steps stay exact because the step is rounded before the sum.
        binary(ADD, x, ends[0], x)
        result = cast(unary(FLOOR, x, None), found.code)
        ends = [math.floor(each) for each in ends]
        if count:
            fill(view_of(result, result.code, 0, NULL, NULL, 0), ends[0])
    elif found.kind == "b":
        result = cast(x, found.code)
    if endpoint and count > 1:
        fill(view_of(result, result.code, 0, NULL, NULL, count - 1), ends[1])
    if not retstep:
        return result
    return result, step if count > (1 if endpoint else 0) else math.nan
