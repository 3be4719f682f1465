"""Conversion of a key of ints, slices, None and Ellipsis to the shape and strides of a view."""

from cpython.number cimport PyIndex_Check
from cpython.object cimport PyObject

import numpy as np

from cyrt.builtin.space cimport MAX_NDIM
from cyrt.runtime.integers cimport read_long
from cyrt.runtime.memory cimport Memory

cdef extern from "Python.h":
    ctypedef struct PySliceObject:
        PyObject* start
        PyObject* stop
        PyObject* step
    PyObject* Py_None
    PyObject* Py_Ellipsis
    Py_ssize_t PY_SSIZE_T_MAX
    bint PyLong_CheckExact(PyObject*)
    bint PySlice_Check(PyObject*)
    Py_ssize_t PyTuple_GET_SIZE(object)
    PyObject** PySequence_Fast_ITEMS(object)
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    int PySlice_Unpack(PyObject*, Py_ssize_t*, Py_ssize_t*, Py_ssize_t*) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t, Py_ssize_t*, Py_ssize_t*, Py_ssize_t) noexcept

# The items of a key; references are borrowed.
cdef struct KeyParts:
    PyObject** items
    Py_ssize_t count


cdef inline KeyParts parts_of(PyObject** key) noexcept:
    """Return the items of a tuple; any other key is the only item."""
    cdef KeyParts parts = KeyParts(key, 1)
    if type(<object>key[0]) is tuple:
        parts.items = PySequence_Fast_ITEMS(<object>key[0])
        parts.count = PyTuple_GET_SIZE(<object>key[0])
    return parts


cdef bint is_index(object part):
    """Return whether an item is an int; arrays are not, though they may have ``__index__``."""
    return PyIndex_Check(part) and not isinstance(part, (bool, Memory, np.ndarray))


cdef bint check_parts(KeyParts parts, int ndim) except -1:
    """Raise IndexError for too many items. Return False if one is no part of a key of a view."""
    cdef PyObject* part
    cdef int named = 0, ellipses = 0, result = ndim
    cdef Py_ssize_t i
    for i in range(parts.count):
        part = parts.items[i]
        if PySlice_Check(part):
            named += 1
        elif part == Py_None:
            result += 1
        elif part == Py_Ellipsis:
            ellipses += 1
        elif PyLong_CheckExact(part) or is_index(<object>part):
            named += 1
            result -= 1
        else:
            return False
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if named > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {named} "
                         "were indexed")
    if result > MAX_NDIM:
        raise IndexError(f"the result would have more than {MAX_NDIM} dimensions")
    return True


cdef long long index_at(object index, int axis, long long size) except? -1:
    cdef int overflow
    cdef long long i = PyLong_AsLongLongAndOverflow(index, &overflow)
    if overflow or i < -size or i >= size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return i + size if i < 0 else i


cdef inline bint read_bound(PyObject* bound, Py_ssize_t* value) noexcept:
    """Read an int; None leaves the value unchanged. False for other objects and for large ints."""
    return bound == Py_None or (PyLong_CheckExact(bound) and read_long(bound, <long*>value))


cdef inline int unpack(PyObject* part, Py_ssize_t* start, Py_ssize_t* stop,
                       Py_ssize_t* step) except -1:
    """Compute PySlice_Unpack, with a short path for ints and a positive step."""
    cdef PySliceObject* bounds = <PySliceObject*>part
    start[0], stop[0], step[0] = 0, PY_SSIZE_T_MAX, 1
    if read_bound(bounds.step, step) and step[0] > 0 and read_bound(bounds.start, start) \
            and read_bound(bounds.stop, stop):
        return 0
    return PySlice_Unpack(part, start, stop, step)


cdef inline Py_ssize_t clamp(Py_ssize_t bound, Py_ssize_t size) noexcept:
    if bound < 0:
        return max(bound + size, <Py_ssize_t>0)
    return min(bound, size)


cdef inline Py_ssize_t cut(Py_ssize_t size, Py_ssize_t* start, Py_ssize_t stop,
                           Py_ssize_t step) noexcept:
    """Compute PySlice_AdjustIndices, without its division if the step is 1. Return the length."""
    if step != 1:
        return PySlice_AdjustIndices(size, start, &stop, step)
    start[0] = clamp(start[0], size)
    return max(clamp(stop, size) - start[0], <Py_ssize_t>0)


cdef bint read_key(object key, int ndim, const long long* dims, const long long* steps,
                   View* view) except -1:
    cdef PyObject* whole = <PyObject*>key
    cdef PyObject* part
    cdef KeyParts parts = parts_of(&whole)
    cdef long long offset = 0
    cdef Py_ssize_t start, stop, step, length, i, after
    cdef int axis = 0, to = 0, end
    cdef bint checked = False
    for i in range(parts.count):
        part = parts.items[i]
        if not checked and not (PySlice_Check(part) and axis < ndim):
            checked = check_parts(parts, ndim)
            if not checked:
                return False
        if PySlice_Check(part):
            unpack(part, &start, &stop, &step)
            length = cut(dims[axis], &start, stop, step)
            if length:
                offset += start * steps[axis]
            view.dims[to] = length
            view.steps[to] = step * steps[axis] if length > 1 else steps[axis]
            to += 1
            axis += 1
        elif part == Py_None:
            view.dims[to] = 1
            view.steps[to] = 0
            to += 1
        elif part == Py_Ellipsis:
            end = ndim
            for after in range(i + 1, parts.count):
                end -= parts.items[after] != Py_None
            while axis < end:
                view.dims[to] = dims[axis]
                view.steps[to] = steps[axis]
                to += 1
                axis += 1
        else:
            offset += index_at(<object>part, axis, dims[axis]) * steps[axis]
            axis += 1
    while axis < ndim:
        view.dims[to] = dims[axis]
        view.steps[to] = steps[axis]
        to += 1
        axis += 1
    view.ndim, view.offset = to, offset
    return True
