"""Functions that rearrange elements in new memory: join, roll, repeat."""

from libc.string cimport memcpy

import numpy as np

from cyrt.builtin.space cimport MAX_NDIM
from cyrt.ndarray cimport Array, device_of, new_array, shape_of, view_of
from cyrt.ops.arguments import check_array, is_int
from cyrt.ops.copy cimport assign_array, check_device, write_out
from cyrt.ops.creation import asarray, weak_array
from cyrt.ops.promotion cimport promote
from cyrt.ops.shapes import atleast_1d, atleast_2d, reshape
from cyrt.ops.shapes cimport array_of, axis_at, narrow_axis, plus, reshape_array, times
from cyrt.ops.gather import take
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call


# -- joining ---------------------------------------------------------------------------------------


cdef list coerce_sequences(list found, str name):
    """Convert sequences next to arrays to arrays of weak numbers, on the device of the first
    array."""
    first = next((each for each in found if isinstance(each, Array)), None)
    return [check_array(each, name) if not isinstance(each, (list, tuple)) else
            asarray(each) if first is None else weak_array(first, each) for each in found]


cdef list arrays_of(object arrays, str name, object axis=None):
    """Return the arrays of an argument: at least one, all on one device."""
    cdef list found
    if isinstance(axis, Array):
        raise TypeError(f"{name}: axis: expected an int, got Array; the arrays are one argument, "
                        f"such as {name}([x, y])")
    try:
        found = list(arrays)
    except TypeError:
        raise TypeError(f"{name}: expected a sequence of arrays, got {type(arrays).__name__}") \
            from None
    if not found:
        raise ValueError(f"{name}: expected at least one array")
    for each in found:
        if not isinstance(each, Array):
            found = coerce_sequences(found, name)
            break
    for i, each in enumerate(found):
        check_device(each, found[0], f"{name}: arrays[{i}]")
    return found


cdef bint is_any_followed(list arrays) except -1:
    for each in arrays:
        if is_followed(each):
            return True
    return False


cdef int joint_code(list arrays) except -1:
    cdef int code = (<Array>arrays[0]).code
    for each in arrays:
        if (<Array>each).code != code:
            code = promote(code, (<Array>each).code)
    return code


def concat(arrays, /, axis=0, out=None):
    """Join arrays along an axis.

    Parameters
    ----------
    arrays : sequence of Array or sequence of numbers
        Arrays whose shapes are equal except along the axis.
    axis : int, optional
        The axis to join along. None flattens the arrays first.
    out : Array, optional
        An array that receives the result, and is returned. It has the result's shape, and a type of
        the same kind.

    Returns
    -------
    Array
        An array of the type that the types of the arrays promote to.

    Raises
    ------
    ValueError
        There are no arrays, the shapes differ in another axis, or the arrays are on two devices.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.concat([cyrt.arange(2), cyrt.arange(3)])
    Array([0, 1, 0, 1, 2], dtype=int64)
    """
    cdef long long[MAX_NDIM] dims
    cdef list parts = arrays_of(arrays, "concat", axis)
    if recording and is_any_followed(parts):
        if axis is None:
            return record_call(concat, ([reshape(each, (-1,)) for each in parts], 0, out))
        return record_call(concat, (parts, axis, out))
    cdef Array first, x, result
    cdef long long start = 0
    cdef int along, d
    if axis is None:
        parts = [reshape_array(<Array>each, 1, &(<Array>each).count, False) for each in parts]
        axis = 0
    first = <Array>parts[0]
    along = axis_at(axis, first.ndim_)
    memcpy(dims, first.dims, first.ndim_ * sizeof(long long))
    dims[along] = 0
    for each in parts:
        x = <Array>each
        for d in range(first.ndim_):
            if x.ndim_ != first.ndim_ or d != along and x.dims[d] != dims[d]:
                raise ValueError("concat: expected shapes that are equal except along axis "
                                 f"{along}, got {shape_of(first)} and {shape_of(x)}")
        dims[along] = plus(dims[along], x.dims[along])
    result = new_array(device_of(first), joint_code(parts), first.ndim_, dims)
    for each in parts:
        x = <Array>each
        assign_array(narrow_axis(result, along, start, x.dims[along]), x)
        start += x.dims[along]
    return write_out("concat", result, out)


def stack(arrays, axis=0, out=None):
    """Join arrays along a new axis.

    Parameters
    ----------
    arrays : sequence of Array or sequence of numbers
        Arrays of one shape.
    axis : int
        The new axis in the result.
    out : Array, optional
        An array that receives the result, and is returned. It has the result's shape, and a type of
        the same kind.

    Returns
    -------
    Array
        An array of the type that the types of the arrays promote to.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.stack([cyrt.arange(3), cyrt.arange(3, 6)])
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int64)
    """
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef list parts = arrays_of(arrays, "stack", axis)
    if recording and is_any_followed(parts):
        return record_call(stack, (parts, axis, out))
    cdef Array first = <Array>parts[0], x, result
    cdef long long offset = 0
    cdef int along = axis_at(axis, first.ndim_ + 1), d
    for each in parts:
        x = <Array>each
        for d in range(max(x.ndim_, first.ndim_)):
            if x.ndim_ != first.ndim_ or x.dims[d] != first.dims[d]:
                raise ValueError(f"stack: expected arrays of one shape, got {shape_of(first)} and "
                                 f"{shape_of(x)}")
    if first.ndim_ == MAX_NDIM:
        raise ValueError(f"stack: the result would have more than {MAX_NDIM} dimensions")
    for d in range(first.ndim_ + 1):
        dims[d] = len(parts) if d == along else first.dims[d if d < along else d - 1]
    result = new_array(device_of(first), joint_code(parts), first.ndim_ + 1, dims)
    for d in range(first.ndim_):
        steps[d] = result.steps[d if d < along else d + 1]
    for each in parts:
        assign_array(view_of(result, result.code, first.ndim_, first.dims, steps, offset),
                     <Array>each)
        offset += result.steps[along]
    return write_out("stack", result, out)


def concatenate(arrays, /, axis=0, out=None):
    """Join arrays along an axis: NumPy's name of :func:`cyrt.concat`.

    Parameters
    ----------
    arrays, axis, out
        As for :func:`cyrt.concat`.

    Returns
    -------
    Array
    """
    return concat(arrays, axis, out)


def hstack(arrays, /):
    """Join arrays along the second axis, or along the first if they have one dimension.

    Parameters
    ----------
    arrays : sequence of Array or sequence of numbers
        Arrays whose shapes are equal except along that axis.

    Returns
    -------
    Array
        An array of the type to which the types of the arrays promote.
    """
    parts = [atleast_1d(each) for each in arrays_of(arrays, "hstack")]
    return concat(parts, axis=0 if parts[0].ndim == 1 else 1)


def vstack(arrays, /):
    """Join arrays along the first axis; one-dimensional arrays become rows.

    Parameters
    ----------
    arrays : sequence of Array or sequence of numbers
        Arrays whose shapes are equal except along that axis.

    Returns
    -------
    Array
        An array of the type to which the types of the arrays promote.
    """
    return concat([atleast_2d(each) for each in arrays_of(arrays, "vstack")])


# -- rolling ---------------------------------------------------------------------------------------


cdef int paste_rolled(Array target, Array source, const int* axes, const long long* shifts,
                      int count) except -1:
    """Copy both parts along each of the axes to their new positions."""
    cdef int axis
    cdef long long shift, size
    if count == 0:
        return assign_array(target, source)
    axis, shift = axes[0], shifts[0]
    size = source.dims[axis]
    paste_rolled(narrow_axis(target, axis, shift, size - shift),
                 narrow_axis(source, axis, 0, size - shift), axes + 1, shifts + 1, count - 1)
    if shift:
        paste_rolled(narrow_axis(target, axis, 0, shift),
                     narrow_axis(source, axis, size - shift, shift), axes + 1, shifts + 1,
                     count - 1)
    return 0


cdef Array roll_axes(Array x, const int* axes, const long long* shifts, int count):
    """Roll two axes at a time, in four parts."""
    cdef Array result = new_array(device_of(x), x.code, x.ndim_, x.dims)
    if x.count == 0:
        return result
    if count <= 2:
        paste_rolled(result, x, axes, shifts, count)
        return result
    paste_rolled(result, x, axes, shifts, 2)
    return roll_axes(result, axes + 2, shifts + 2, count - 2)


def roll(x, /, shift, axis=None):
    """Shift elements along axes; those shifted beyond the end reappear at the beginning.

    Parameters
    ----------
    x : Array
    shift : int or sequence of ints
        The number of positions: one for all axes, or one for each.
    axis : int or tuple of int, optional
        The axes to shift along. Default: the array is rolled as if it had one dimension.

    Returns
    -------
    Array
        A copy.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.roll(cyrt.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(roll, (x, shift, axis))
    cdef long long[MAX_NDIM] sums
    cdef int[MAX_NDIM] moved
    cdef long long[MAX_NDIM] shifts
    cdef Array array = array_of("roll", x), flat
    cdef int count = 0, d
    if axis is None:
        if not is_int(shift) and hasattr(shift, "__len__"):
            raise ValueError(f"roll: axis: expected an axis for each shift of {shift}, got None")
        flat = reshape_array(array, 1, &array.count, False)
        shifts[0] = whole_number(shift, "roll: shift") % flat.count if flat.count else 0
        moved[0] = 0
        return reshape_array(roll_axes(flat, moved, shifts, 1), array.ndim_, array.dims, False)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    by = several(shift)
    if len(by) != len(axes) and len(by) != 1 and len(axes) != 1:
        raise ValueError(f"roll: {len(by)} shifts {shift} for {len(axes)} axes {axis}")
    for d in range(array.ndim_):
        sums[d] = 0
    for i in range(max(len(by), len(axes)) if by and axes else 0):
        d = axis_at(axes[i if len(axes) > 1 else 0], array.ndim_)
        if array.dims[d]:
            sums[d] += whole_number(by[i if len(by) > 1 else 0], "roll: shift") % array.dims[d]
            sums[d] %= array.dims[d]
    for d in range(array.ndim_):
        if sums[d]:
            moved[count] = d
            shifts[count] = sums[d]
            count += 1
    return roll_axes(array, moved, shifts, count)


cdef tuple several(object numbers):
    """Return the numbers of a sequence or of NumPy's array, or the one number."""
    if is_int(numbers) or not hasattr(numbers, "__len__"):
        return (numbers,)
    return tuple(numbers)


cdef object whole_number(object value, str what):
    if not is_int(value):
        raise TypeError(f"{what}: expected an int, got {type(value).__name__}")
    return value.__index__()


# -- repeating -------------------------------------------------------------------------------------


cdef long long how_often(object value, str what) except -1:
    often = whole_number(value, what)
    if not 0 <= often < 1 << 58:
        raise ValueError(f"{what}: expected 0 or more, and no more than memory can hold, got "
                         f"{often}")
    return often


def tile(x, /, reps):
    """Repeat an array along its axes.

    Parameters
    ----------
    x : Array
    reps : int, or sequence or Array of ints
        The repetitions along each of the last axes; additional numbers create new leading axes.

    Returns
    -------
    Array
        A copy.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.tile(cyrt.asarray([1, 2]), 3)
    Array([1, 2, 1, 2, 1, 2], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(tile, (x, reps))
    cdef long long[MAX_NDIM] times_each
    cdef long long[MAX_NDIM] sizes
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] to
    cdef long long[MAX_NDIM] out_of
    cdef Array array = array_of("tile", x), result
    cdef int num_reps = 0, ndim, d, own, split = 0
    if isinstance(reps, Array):
        reps = reps.tolist()
    often = several(reps)
    ndim = max(len(often), array.ndim_)
    if ndim > MAX_NDIM:
        raise ValueError(f"tile: expected at most {MAX_NDIM} repetitions, got {len(often)}")
    for each in often:
        times_each[num_reps] = how_often(each, "tile: reps")
        num_reps += 1
    for d in range(ndim - 1, -1, -1):
        own = d + num_reps - ndim
        times_each[d] = times_each[own] if own >= 0 else 1
        own = d + array.ndim_ - ndim
        sizes[d] = times(times_each[d], array.dims[own] if own >= 0 else 1)
    result = new_array(device_of(array), array.code, ndim, sizes)
    if result.count == 0:
        return result
    for d in range(ndim):                   # Dimensions of size 1 are skipped.
        own = d + array.ndim_ - ndim
        if times_each[d] > 1:
            dims[split] = times_each[d]
            to[split] = result.steps[d] * (array.dims[own] if own >= 0 else 1)
            out_of[split] = 0
            split += 1
        if own >= 0 and array.dims[own] > 1:
            dims[split] = array.dims[own]
            to[split] = result.steps[d]
            out_of[split] = array.steps[own]
            split += 1
    assign_array(view_of(result, array.code, split, dims, to, 0),
                 view_of(array, array.code, split, dims, out_of, 0))
    return result


def repeat(x, /, repeats, axis=None):
    """Repeat each element of an array.

    Parameters
    ----------
    x : Array
    repeats : int, Array of int, or sequence of int
        The numbers of repetitions: one for all elements, or one for each along the axis. The call
        waits for the values of an Array, because the result's shape depends on them.
    axis : int, optional
        The axis to repeat along. Default: x is flattened first.

    Returns
    -------
    Array
        A copy of x's type, whose shape differs from x's only along the axis.

    Raises
    ------
    ValueError
        A number of repetitions is negative, or there are more or fewer of them than the axis has
        elements.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.repeat(cyrt.asarray([1, 2]), 3)
    Array([1, 1, 1, 2, 2, 2], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(repeat, (x, repeats, axis))
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Array array = array_of("repeat", x), result
    cdef long long often
    cdef int along, d
    if axis is None:
        array = reshape_array(array, 1, &array.count, False)
        axis = 0
    along = axis_at(axis, array.ndim_)
    if isinstance(repeats, Array) or not is_int(repeats):
        counts = counts_of(repeats, array.dims[along])
        if counts.size != 1:
            return take(array, asarray(np.repeat(np.arange(counts.size), counts),
                                       device=device_of(array)), axis=along)
        repeats = counts.item()
    often = how_often(repeats, "repeat: repeats")
    if array.ndim_ == MAX_NDIM:
        raise ValueError(f"repeat: expected fewer than {MAX_NDIM} dimensions")
    memcpy(dims, array.dims, array.ndim_ * sizeof(long long))
    dims[along] = times(dims[along], often)
    result = new_array(device_of(array), array.code, array.ndim_, dims)
    # Each element is treated as if it had a separate axis.
    for d in range(array.ndim_ + 1):
        dims[d] = often if d == along + 1 else array.dims[d if d <= along else d - 1]
        steps[d] = 0 if d == along + 1 else array.steps[d if d <= along else d - 1]
    assign_array(reshape_array(result, array.ndim_ + 1, dims, False),
                 view_of(array, array.code, array.ndim_ + 1, dims, steps, 0))
    return result


cdef object counts_of(object repeats, long long size):
    """Read the repetitions on the host: one for all, or one for each."""
    counts = repeats.numpy() if isinstance(repeats, Array) else np.asarray(repeats)
    if counts.dtype.kind not in "iu" and counts.size:
        raise TypeError(f"repeat: repeats: expected ints, got {counts.dtype}")
    if counts.ndim > 1 or counts.size != 1 and counts.size != size:
        raise ValueError(f"repeat: repeats: expected one int, or one for each of {size} elements, "
                         f"got shape {counts.shape}")
    if counts.size and counts.min() < 0:
        raise ValueError(f"repeat: repeats: expected 0 or more, got {counts.min()}")
    return counts.astype(np.int64)
