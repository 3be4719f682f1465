"""Other shapes of the same memory: views if strides allow."""

from cpython.long cimport PyLong_CheckExact
from cpython.number cimport PyIndex_Check
from libc.string cimport memcpy

from cyrt.builtin.space cimport MAX_NDIM, tuple_of_sizes
from cyrt.error_text import show
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array, shape_of, view_of
from cyrt.ops.arguments import axes_of, axis_of, check_array, check_flags, is_int
from cyrt.ops.copy cimport assign_array
from cyrt.shape cimport read_sizes, tuple_of_shape
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1


# -- arguments -------------------------------------------------------------------------------------


cdef Array array_of(str name, object x):
    return <Array>x if isinstance(x, Array) else check_array(x, f"{name}: x")


cdef int axis_at(object axis, int ndim, str name=None, str argument="axis") except -1:
    cdef long long found
    cdef int overflow
    if PyLong_CheckExact(axis):
        found = PyLong_AsLongLongAndOverflow(axis, &overflow)
        if not overflow and -ndim <= found < ndim:
            return <int>(found + ndim if found < 0 else found)
    return axis_of(axis, ndim, argument if name is None else f"{name}: {argument}")


cdef int axes_at(object axis, int ndim, int* axes) except -1:
    cdef bint[MAX_NDIM] named
    cdef int i, count = 0
    if axis is None:
        for i in range(ndim):
            axes[i] = i
        return ndim
    if not isinstance(axis, (tuple, list)):
        axes[0] = axis_at(axis, ndim)
        return 1
    for i in range(ndim):
        named[i] = False
    for each in axis:
        i = axis_at(each, ndim)
        if named[i]:
            axes_of(axis, ndim)         # the error names the axis
        named[i] = True
        axes[count] = i
        count += 1
    return count


cdef long long times(long long a, long long b) except -1:
    if b and a > (<long long>1 << 58) // b:
        raise ValueError(f"{a} times {b} elements are more than memory can hold")
    return a * b


cdef long long plus(long long a, long long b) except -1:
    if a > (<long long>1 << 58) - b:
        raise ValueError(f"{a} and {b} elements are more than memory can hold")
    return a + b


cdef int check_ndim(long long ndim) except -1:
    if ndim > MAX_NDIM:
        raise ValueError(f"expected at most {MAX_NDIM} dimensions, the result would have {ndim}")
    return 0


cdef void contiguous_steps(int ndim, const long long* dims, long long* steps) noexcept:
    cdef long long step = 1
    cdef int d
    for d in range(ndim - 1, -1, -1):
        steps[d] = step
        step *= dims[d] if dims[d] else 1


# -- reshape ---------------------------------------------------------------------------------------


cdef int read_shape(Array x, object shape, long long* dims) except -1:
    """Read a requested shape of x's size; one size may be -1 and is computed."""
    cdef long long known = 1
    cdef int d, unknown = -1
    cdef int ndim = read_sizes(shape if type(shape) is tuple else tuple_of_shape(shape), dims,
                               &unknown)
    for d in range(ndim):
        if dims[d] == 0:
            known = 0
            break
        # A size beyond x's is an error already.
        known = x.count + 1 if known > x.count // dims[d] else known * dims[d]
    if unknown >= 0 and known and x.count % known == 0:
        dims[unknown] = x.count // known
    elif unknown >= 0 or known != x.count:
        raise ValueError(f"cannot reshape an array of {x.count} elements, shape {shape_of(x)}, "
                         f"into shape {shape}")
    return ndim


cdef bint restride(Array x, int ndim, const long long* dims, long long* steps) noexcept:
    """Compute x's steps in another shape of as many elements; return whether they exist."""
    cdef long long[MAX_NDIM] sizes      # runs of elements at one distance, innermost first
    cdef long long[MAX_NDIM] distances
    cdef long long left = 1, step = 1
    cdef int runs = 0, run = 0, d
    for d in range(x.ndim_ - 1, -1, -1):
        if x.dims[d] == 1:
            continue
        if runs and x.steps[d] == sizes[runs - 1] * distances[runs - 1]:
            sizes[runs - 1] *= x.dims[d]
        else:
            sizes[runs] = x.dims[d]
            distances[runs] = x.steps[d]
            runs += 1
    for d in range(ndim - 1, -1, -1):
        if left == 1 and dims[d] != 1:
            left = sizes[run]
            step = distances[run]
            run += 1
        if left % dims[d]:
            return False
        steps[d] = step
        step *= dims[d]
        left //= dims[d]
    return True


cdef Array reshape_array(Array x, int ndim, const long long* dims, bint copy):
    cdef long long[MAX_NDIM] steps
    cdef Array result
    if not copy:
        if x.dense:
            contiguous_steps(ndim, dims, steps)
            return view_of(x, x.code, ndim, dims, steps, 0)
        if restride(x, ndim, dims, steps):
            return view_of(x, x.code, ndim, dims, steps, 0)
    result = new_array(device_of(x), x.code, ndim, dims)
    contiguous_steps(x.ndim_, x.dims, steps)
    assign_array(view_of(result, x.code, x.ndim_, x.dims, steps, 0), x)
    return result


cdef int refuse_order(str name, object order) except -1:
    advice = "" if not PyIndex_Check(order) else "; a shape is one argument, such as (3, 2)" \
        if name == "reshape" else "; reshape() joins some of the axes"
    others = "'C', 'F' or 'A'" if name == "reshape" else "'C', 'F', 'A' or 'K'"
    raise ValueError(f"{name}: order: expected {others}, got {show(order)}{advice}")


cdef bint is_fortran(Array x) noexcept:
    """Return whether the elements are contiguous with the first index changing fastest."""
    cdef long long step = 1
    cdef int d
    for d in range(x.ndim_):
        if x.dims[d] > 1 and x.steps[d] != step:
            return False
        step *= x.dims[d]
    return True


cdef Array in_memory_order(Array x):
    """Return a view whose dimensions are in the order of the distances of their elements, from far
    to near."""
    cdef int[MAX_NDIM] order
    cdef int d, position
    for d in range(x.ndim_):
        position = d
        while position and abs(x.steps[order[position - 1]]) < abs(x.steps[d]):
            order[position] = order[position - 1]
            position -= 1
        order[position] = d
    return in_order(x, order)


cdef object reshape_to(str name, object x, object shape, object order, object copy):
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Array array = array_of(name, x)
    cdef int ndim
    if recording and is_followed(x):
        if order == "K" and name != "reshape":
            return record_call(reshape, (in_memory_order(array), shape, "C", copy))
        if order == "A":
            order = "F" if is_fortran(array) and not array.dense else "C"
        return record_call(reshape, (x, shape, order, copy))
    if order != "C" and order != "F":
        if order == "A":
            order = "F" if is_fortran(array) and not array.dense else "C"
        elif order == "K" and name != "reshape":
            array, order = in_memory_order(array), "C"
        else:
            refuse_order(name, order)
    if copy is not None:
        check_flags(name, copy=copy)
    ndim = read_shape(array, shape, dims)
    if order == "F":
        return reshape_to(name, array.T, tuple_of_sizes(ndim, dims)[::-1], "C", copy).T
    if copy is not None and not copy and not array.dense and not restride(array, ndim, dims, steps):
        raise ValueError(f"{name}: an array of shape {shape_of(array)} and strides "
                         f"{array.strides} has no view of shape {tuple_of_sizes(ndim, dims)}, and "
                         "copy=False was given")
    return reshape_array(array, ndim, dims, copy is not None and copy)


def reshape(x, /, shape, order="C", *, copy=None):
    """Change the shape of an array, in the order of its elements.

    Parameters
    ----------
    x : Array
    shape : int or tuple of int
        The new shape. One size may be -1; it is computed from the others.
    order : {"C", "F", "A"}
        The order of the elements: the last index ("C") or the first ("F") changes fastest. "A" is
        "F" if x's elements are contiguous in that order only, otherwise "C".
    copy : bool, optional
        With True, the elements are always copied. With False, a ValueError is raised if a copy is
        needed. Default: the result is a view if the strides allow it, otherwise a copy.

    Returns
    -------
    Array
        An array of x's type and the new shape.

    Raises
    ------
    ValueError
        The number of elements differs, or ``copy=False`` and the strides do not allow a view.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.reshape(cyrt.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int64)
    """
    return reshape_to("reshape", x, shape, order, copy)


def ravel(x, /, order="C"):
    """Flatten an array to one dimension.

    Parameters
    ----------
    x : Array
    order : {"C", "F", "A", "K"}
        The order of the elements, as for :func:`cyrt.reshape`; "K" is their order in memory.

    Returns
    -------
    Array
        A view if the elements are contiguous in that order, otherwise a copy.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.ravel(cyrt.asarray([[1, 2], [3, 4]]), order="F")
    Array([1, 3, 2, 4], dtype=int64)
    """
    return as_contiguous(reshape_to("ravel", x, (-1,), order, None))


# -- dimensions in another order -------------------------------------------------------------------


cdef Array in_order(Array x, const int* order):
    cdef int d
    if recording and is_followed(x):
        return record_call(permute_dims, (x, tuple([order[d] for d in range(x.ndim_)])))
    return reordered(x, order)


cdef Array reordered(Array x, const int* order):
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef int d
    for d in range(x.ndim_):
        dims[d] = x.dims[order[d]]
        steps[d] = x.steps[order[d]]
    return view_of(x, x.code, x.ndim_, dims, steps, 0)


cdef Array move_axis(Array x, int axis, int to):
    cdef int[MAX_NDIM] order
    cdef int d
    for d in range(x.ndim_):
        order[d] = axis if d == to else d + (axis <= d < to) - (to < d <= axis)
    return reordered(x, order)


cdef Array axis_last(Array x, int axis):
    return as_contiguous(x if axis == x.ndim_ - 1 else move_axis(x, axis, x.ndim_ - 1))


cdef Array axis_back(Array rows, int axis):
    return as_contiguous(rows if axis == rows.ndim_ - 1 else move_axis(rows, rows.ndim_ - 1, axis))


cdef Array flat(Array x):
    cdef long long one = 1
    x = as_contiguous(x)
    return x if x.ndim_ == 1 else view_of(x, x.code, 1, &x.count, &one, 0)


cdef object permute_axes(str name, object x, object axes):
    if recording and is_followed(x):
        return record_call(permute_dims, (x, axes))
    cdef int[MAX_NDIM] order
    cdef Array array = array_of(name, x)
    if not isinstance(axes, (tuple, list)):
        try:
            axes = tuple(axes)
        except TypeError:
            raise TypeError(f"{name}: axes: expected a tuple of ints, got "
                            f"{type(axes).__name__}") from None
    if axes_at(axes, array.ndim_, order) != array.ndim_:
        advice = f"; swapaxes({axes[0]}, {axes[1]}) exchanges two" if len(axes) == 2 else ""
        raise ValueError(f"{name}: axes: expected each of {array.ndim_} axes once, got "
                         f"{axes}{advice}")
    return in_order(array, order)


def permute_dims(x, /, axes):
    """Return a view with the dimensions in another order.

    Parameters
    ----------
    x : Array
    axes : tuple of int
        The dimension of x for each dimension of the result.

    Raises
    ------
    ValueError
        An axis is missing or repeated.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.permute_dims(cyrt.zeros((8, 3, 32, 64)), (0, 2, 3, 1)).shape
    (8, 32, 64, 3)
    """
    return permute_axes("permute_dims", x, axes)


def transpose(a, axes=None):
    """Return a view with the dimensions permuted, by default reversed.

    Parameters
    ----------
    a : Array
    axes : tuple of int, optional
        The dimension of `a` for each dimension of the result. Default: all in reverse order.

    Raises
    ------
    ValueError
        An axis is missing or repeated.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.transpose(cyrt.asarray([[1, 2, 3], [4, 5, 6]]))
    Array([[1, 4],
           [2, 5],
           [3, 6]], dtype=int64)
    """
    cdef Array array = array_of("transpose", a)
    return array.T if axes is None else permute_axes("transpose", array, axes)


def moveaxis(x, /, source, destination):
    """Return a view with some axes moved to other positions; the other axes keep their order.

    Parameters
    ----------
    x : Array
    source, destination : int or tuple of int
        The axes, and for each of them its position in the result.
    """
    if recording and is_followed(x):
        return record_call(moveaxis, (x, source, destination))
    cdef int[MAX_NDIM] sources
    cdef int[MAX_NDIM] targets
    cdef int[MAX_NDIM] order
    cdef bint[MAX_NDIM] moved
    cdef Array array = array_of("moveaxis", x)
    cdef int count, d, rest = 0
    if source is None or destination is None:
        raise TypeError("moveaxis: source and destination: expected ints or tuples of ints, got "
                        "None")
    count = axes_at(source, array.ndim_, sources)
    if axes_at(destination, array.ndim_, targets) != count:
        raise ValueError(f"moveaxis: expected as many destinations as sources, got {source} and "
                         f"{destination}")
    for d in range(array.ndim_):
        order[d] = -1
        moved[d] = False
    for d in range(count):
        order[targets[d]] = sources[d]
        moved[sources[d]] = True
    for d in range(array.ndim_):
        if order[d] < 0:
            while moved[rest]:
                rest += 1
            order[d] = rest
            rest += 1
    return in_order(array, order)


def swapaxes(x, /, axis1, axis2):
    """Return a view with two axes exchanged.

    Parameters
    ----------
    x : Array
    axis1, axis2 : int
        The axes; negative ones count from the last.

    Raises
    ------
    numpy.exceptions.AxisError
        x has no such axis. The error is also an IndexError and a ValueError.
    """
    if recording and is_followed(x):
        return record_call(swapaxes, (x, axis1, axis2))
    cdef int[MAX_NDIM] order
    cdef Array array = array_of("swapaxes", x)
    cdef int a = axis_at(axis1, array.ndim_), b = axis_at(axis2, array.ndim_)
    axes_at(None, array.ndim_, order)
    order[a], order[b] = b, a
    return in_order(array, order)


def flip(x, /, axis=None):
    """Return a view with the elements in reverse order along axes.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        The axes to reverse. Default: all.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.flip(cyrt.asarray([[1, 2], [3, 4]]), axis=0)
    Array([[3, 4],
           [1, 2]], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(flip, (x, axis))
    cdef int[MAX_NDIM] axes
    cdef long long[MAX_NDIM] steps
    cdef Array array = array_of("flip", x)
    cdef long long offset = 0
    cdef int count = axes_at(axis, array.ndim_, axes), i, d
    memcpy(steps, array.steps, array.ndim_ * sizeof(long long))
    for i in range(count):
        d = axes[i]
        steps[d] = -steps[d]
        if array.count:
            offset -= (array.dims[d] - 1) * steps[d]
    return view_of(array, array.code, array.ndim_, array.dims, steps, offset)


# -- more and fewer dimensions ---------------------------------------------------------------------


def expand_dims(x, /, axis):
    """Return a view with new axes of size 1.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int
        The positions of the new axes in the result.

    Raises
    ------
    numpy.exceptions.AxisError
        The result has no such axis. The error is also an IndexError and a ValueError.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.expand_dims(cyrt.zeros((3, 4)), axis=1).shape
    (3, 1, 4)
    """
    if recording and is_followed(x):
        return record_call(expand_dims, (x, axis))
    cdef int[MAX_NDIM] axes
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Array array = array_of("expand_dims", x)
    cdef int ndim = array.ndim_, count, i, own = 0
    if axis is None:
        raise TypeError("expand_dims: axis: expected an int or a tuple of ints, got None")
    if isinstance(axis, list):          # an item's __index__ may change the list
        axis = tuple(axis)
    count = len(axis) if isinstance(axis, tuple) else 1
    check_ndim(ndim + count)
    ndim += count
    axes_at(axis, ndim, axes)
    for i in range(ndim):
        dims[i] = -1
    for i in range(count):
        dims[axes[i]] = 1
        steps[axes[i]] = 0
    for i in range(ndim):
        if dims[i] < 0:
            dims[i] = array.dims[own]
            steps[i] = array.steps[own]
            own += 1
    return view_of(array, array.code, ndim, dims, steps, 0)


def squeeze(x, /, axis=None):
    """Return a view without axes of size 1.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        The axes to remove. Default: all axes of size 1.

    Raises
    ------
    ValueError
        An axis has another size.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.squeeze(cyrt.zeros((1, 3, 1))).shape
    (3,)
    """
    if recording and is_followed(x):
        return record_call(squeeze, (x, axis))
    cdef int[MAX_NDIM] axes
    cdef bint[MAX_NDIM] dropped
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Array array = array_of("squeeze", x)
    cdef int i, d, ndim = 0
    for d in range(array.ndim_):
        dropped[d] = axis is None and array.dims[d] == 1
    if axis is not None:
        for i in range(axes_at(axis, array.ndim_, axes)):
            d = axes[i]
            if array.dims[d] != 1:
                raise ValueError(f"squeeze: axis {d} of shape {shape_of(array)} is not of size 1")
            dropped[d] = True
    for d in range(array.ndim_):
        if not dropped[d]:
            dims[ndim] = array.dims[d]
            steps[ndim] = array.steps[d]
            ndim += 1
    return view_of(array, array.code, ndim, dims, steps, 0)


def atleast_1d(*arrays):
    """Return views of at least one dimension.

    Parameters
    ----------
    *arrays : Array

    Returns
    -------
    Array or tuple of Array
        A view for one array, otherwise a tuple of views.
    """
    return each_of("atleast_1d", arrays, {0: (0,)})


def atleast_2d(*arrays):
    """Return views of at least two dimensions, new ones first.

    Parameters
    ----------
    *arrays : Array

    Returns
    -------
    Array or tuple of Array
        A view for one array, otherwise a tuple of views.
    """
    return each_of("atleast_2d", arrays, {0: (0, 1), 1: (0,)})


def atleast_3d(*arrays):
    """Return views of at least three dimensions.

    Parameters
    ----------
    *arrays : Array

    Returns
    -------
    Array or tuple of Array
        A view for one array, otherwise a tuple of views. ``(n,)`` becomes ``(1, n, 1)``, and
        ``(m, n)`` becomes ``(m, n, 1)``.
    """
    return each_of("atleast_3d", arrays, {0: (0, 1, 2), 1: (0, 2), 2: (2,)})


cdef object each_of(str name, tuple arrays, dict new_axes):
    views = tuple([expand_dims(each, new_axes.get(array_of(name, each).ndim_, ()))
                   for each in arrays])
    return views[0] if len(views) == 1 else views


# -- parts -----------------------------------------------------------------------------------------


cdef Array narrow_axis(Array x, int axis, long long start, long long length):
    cdef long long[MAX_NDIM] dims
    memcpy(dims, x.dims, x.ndim_ * sizeof(long long))
    dims[axis] = length
    return view_of(x, x.code, x.ndim_, dims, x.steps, start * x.steps[axis] if length else 0)


def unstack(x, /, axis=0):
    """Return views of the slices at each index of an axis, a tuple.

    Parameters
    ----------
    x : Array
        An array of one dimension or more.
    axis : int
        The axis whose indices select the slices.
    """
    if recording and is_followed(x):
        return record_call(unstack, (x, axis))
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Array array = array_of("unstack", x)
    cdef int along = axis_at(axis, array.ndim_), d, ndim = 0
    cdef long long i
    for d in range(array.ndim_):
        if d != along:
            dims[ndim] = array.dims[d]
            steps[ndim] = array.steps[d]
            ndim += 1
    return tuple([view_of(array, array.code, ndim, dims, steps,
                          i * array.steps[along] if array.count else 0)
                  for i in range(array.dims[along])])


def split(x, /, indices_or_sections, axis=0):
    """Return views of consecutive parts along an axis, a list.

    Parameters
    ----------
    x : Array
    indices_or_sections : int, or sequence or Array of ints
        The number of equal parts, or the indices at which new parts begin. The call waits for the
        values of an Array.
    axis : int
        The axis to split.

    Raises
    ------
    ValueError
        The axis cannot be split into that many equal parts.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.split(cyrt.arange(6), 3)
    [Array([0, 1], dtype=int64), Array([2, 3], dtype=int64), Array([4, 5], dtype=int64)]
    >>> cyrt.split(cyrt.arange(6), [1, 4])[1]
    Array([1, 2, 3], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(split, (x, indices_or_sections, axis))
    cdef Array array = array_of("split", x)
    cdef int along = axis_at(axis, array.ndim_)
    cdef long long size = array.dims[along], start, stop
    if isinstance(indices_or_sections, Array):
        indices_or_sections = indices_or_sections.tolist()
    if is_int(indices_or_sections):
        if indices_or_sections <= 0 or size % indices_or_sections:
            raise ValueError(f"split: axis {along} of size {size} cannot be split into "
                             f"{indices_or_sections} equal parts; array_split() makes unequal ones")
        bounds = range(size // indices_or_sections, size, size // indices_or_sections) if size \
            else [0] * (indices_or_sections - 1)
    else:
        try:
            bounds = tuple(indices_or_sections)
        except TypeError:
            raise TypeError("split: indices_or_sections: expected an int or a sequence of int, got "
                            f"{type(indices_or_sections).__name__}") from None
    parts = []
    first = 0
    for last in (*bounds, None):
        start, stop, _ = slice(first, last).indices(size)
        parts.append(narrow_axis(array, along, start, max(0, stop - start)))
        first = last
    return parts
