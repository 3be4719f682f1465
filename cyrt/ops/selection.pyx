"""Selection by a key with arrays of indices and masks.

The dimensions of the result follow NumPy's rule: those of all arrays of indices, broadcast
together, replace the indexed dimensions, or come first if a slice, None or an Ellipsis separates
the arrays; an int next to arrays counts as an array.
"""

from cpython.number cimport PyIndex_Check

import numpy as np

from cyrt import settings
from cyrt.dtypes import DTYPES
from cyrt.builtin.gather cimport MAX_INDICES
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.ndarray cimport Array, view_of
from cyrt.ops.compact cimport positions_where
from cyrt.ops.copy cimport check_device
from cyrt.ops.creation import asarray
from cyrt.ops.promotion cimport BOOL

for _each in DTYPES:
    kinds[<int>_each.code] = -1
    if _each.kind in "iu":
        kinds[<int>_each.code] = _each.itemsize.bit_length() - 1 + (4 if _each.kind == "u" else 0)


cdef object parse_item(object part):
    """Parse one item of a key: an array of integers or booleans, a bool, or an item of a view."""
    if part is None or part is Ellipsis or isinstance(part, (slice, bool)):
        return part
    if isinstance(part, np.bool_):
        return bool(part)
    if isinstance(part, Array):
        if kinds[(<Array>part).code] >= 0:
            return part
        if (<Array>part).code == BOOL:
            return part if (<Array>part).ndim_ else bool(part)
        raise IndexError("expected an array of integers or booleans as an index, got "
                         f"{part.dtype} of shape {part.shape}")
    if isinstance(part, (np.ndarray, list, tuple, range)):
        found = np.asarray(part)
        if found.size == 0 and not isinstance(part, np.ndarray):
            found = found.astype(np.intp)
        if found.dtype.kind == "b" and found.ndim == 0:
            return bool(found)
        if found.dtype.kind in "biu":
            return found
        raise IndexError("expected an array of integers or booleans as an index, got "
                         f"{found.dtype} of shape {found.shape}")
    if PyIndex_Check(part):
        return part
    raise IndexError("expected an int, a slice, an Ellipsis, None, or an array of integers or "
                     f"booleans as an index, got {type(part).__name__}")


cdef inline bint is_array(object part):
    return isinstance(part, (Array, np.ndarray))


cdef bint is_indices(object part):
    return isinstance(part, Array) and kinds[(<Array>part).code] >= 0


cdef bint all_indices(object key):
    if type(key) is not tuple:
        return is_indices(key)
    for part in <tuple>key:
        if not is_indices(part):
            return False
    return len(<tuple>key) > 0


cdef inline bint is_mask(object part):
    if isinstance(part, Array):
        return (<Array>part).code == BOOL
    return isinstance(part, np.ndarray) and part.dtype.kind == "b"


cdef inline int count_indexed(object part):
    """Return how many dimensions an item of a key indexes."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    return part.ndim if is_mask(part) else 1


cdef int check_named(Py_ssize_t named, int ndim) except -1:
    if named > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {named} "
                         "were indexed")
    return 0


cdef int check_few(Py_ssize_t count) except -1:
    if count > MAX_INDICES:
        raise IndexError(f"expected at most {<int>MAX_INDICES} arrays of indices, got {count}")
    return 0


cdef list parse_items(object key, int ndim):
    """Return the items of a key; with an Ellipsis, for every dimension."""
    cdef list parts
    cdef int named = 0
    if isinstance(key, Array) and (<Array>key).code == BOOL and 0 < (<Array>key).ndim_ <= ndim:
        return [key, Ellipsis]          # the most frequent case
    parts = [parse_item(each) for each in (key if type(key) is tuple else (key,))]
    for each in parts:
        named += count_indexed(each)
    check_named(named, ndim)
    for each in parts:
        if each is Ellipsis:
            return parts
    parts.append(Ellipsis)
    return parts


cdef int check_mask(object mask, Array x, int axis) except -1:
    cdef long long size
    cdef int d
    if isinstance(mask, Array):
        check_device(mask, x, "mask")
    for d in range(<int>mask.ndim):
        size = (<Array>mask).dims[d] if isinstance(mask, Array) else mask.shape[d]
        if size != x.dims[axis + d] and size != 0:  # a mask of size 0 selects nothing from any size
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + d}; size of axis is "
                f"{x.dims[axis + d]} but size of corresponding boolean axis is {size}")
    return 0


cdef int check_range(object index, int axis, long long size) except -1:
    """Check indices on the host; in checking mode, all indices."""
    if isinstance(index, Array):
        if not settings.get("CYRT_CHECK"):
            return 0
        index = index.numpy()
    if index.size:
        for each in (index.min(), index.max()):
            if not -size <= int(each) < size:
                raise IndexError(
                    f"index {each} is out of bounds for axis {axis} with size {size}")
    return 0


cdef class Selection:
    """A parsed key with arrays: a view, and arrays of integers for some of its dimensions."""

    def __cinit__(self):
        self.arrays = []
        self.dims = []
        self.spans = []

    cdef void add(self, object array, int dim, int span):
        self.arrays.append(array)
        self.dims.append(dim)
        self.spans.append(span)


cdef Selection select(Array x, list parts):
    """Compute the selection of a key's items from an array."""
    cdef Selection found = Selection()
    cdef list basic = []
    cdef int axis = 0, dim = 0, first = -1, named = 0, kept = 0, taken
    cdef bint left = False, apart = False
    for part in parts:
        named += count_indexed(part)
    for part in parts:
        taken = x.ndim_ - named if part is Ellipsis else count_indexed(part)
        if is_array(part) or isinstance(part, bool) or (PyIndex_Check(part) and part is not None):
            apart = apart or left
            if first < 0:
                first = kept
        else:
            left = first >= 0
            kept += 1 if part is None else taken
        if isinstance(part, bool):
            basic.append(None)
            found.add(np.zeros(1 if part else 0, np.int64), dim, 1)
        elif is_mask(part):
            check_mask(part, x, axis)
            basic += [slice(None)] * taken
            found.add(positions_of(part), dim, taken)
        elif is_array(part):
            check_range(part, axis, x.dims[axis])
            basic.append(slice(None))
            found.add(part, dim, 1)
        else:
            basic.append(part)
        axis += taken
        if part is None or isinstance(part, bool):
            dim += 1
        elif not PyIndex_Check(part) or is_array(part):
            dim += taken
    found.view = x[tuple(basic)]
    found.axis = 0 if apart else first
    merge_dimensions(found)
    check_few(len(found.arrays))
    device = found.view.device
    found.arrays = [each if isinstance(each, Array) else asarray(each, device=device)
                    for each in found.arrays]
    return found


cdef object positions_of(object mask):
    """Find the positions in C order at which a mask is true."""
    return positions_where(mask) if isinstance(mask, Array) else np.flatnonzero(mask)


cdef int merge_dimensions(Selection found) except -1:
    """Merge the dimensions of a mask if strides allow; otherwise use an index array for each."""
    cdef Array view
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef long long inner
    cdef int d, first, span, i = 0
    while i < len(found.arrays):
        first, span = found.dims[i], found.spans[i]
        view = found.view
        for d in range(first, first + span - 1):
            if view.steps[d] != view.steps[d + 1] * view.dims[d + 1]:
                break
        else:
            if span > 1:
                inner = 1
                for d in range(view.ndim_):
                    dims[d if d < first + span else d - span + 1] = view.dims[d]
                    steps[d if d < first + span else d - span + 1] = view.steps[d]
                for d in range(first, first + span):
                    inner *= view.dims[d]
                dims[first], steps[first] = inner, view.steps[first + span - 1]
                found.view = view_of(view, view.code, view.ndim_ - span + 1, dims, steps, 0)
                found.dims[i + 1:] = [each - span + 1 for each in found.dims[i + 1:]]
            i += 1
            continue
        flat, inner, several = found.arrays[i], 1, []
        for d in range(first + span - 1, first - 1, -1):
            several.insert(0, flat // max(inner, 1) % max(view.dims[d], 1))
            inner *= view.dims[d]
        found.arrays[i:i + 1] = several
        found.dims[i:i + 1] = range(first, first + span)
        found.spans[i:i + 1] = [1] * span
        i += span
    return 0


cdef Selection along(Array x, object indices, int axis):
    """Select by one array of integers for an axis, or a tuple of them for that axis and the next
    ones."""
    cdef Selection found = Selection()
    cdef tuple several = <tuple>indices if type(indices) is tuple else (indices,)
    check_named(len(several), x.ndim_ - axis)
    check_few(len(several))
    found.view, found.axis = x, axis
    for index in several:
        check_range(index, axis, x.dims[axis])
        found.add(index, axis, 1)
        axis += 1
    return found


cdef object only_mask(list parts):
    """Return the mask of a key that consists of one mask, and perhaps whole dimensions after it;
    otherwise None."""
    if not is_mask(parts[0]):
        return None
    for part in parts[1:]:
        if not (part is Ellipsis or (isinstance(part, slice) and part == slice(None))):
            return None
    return parts[0]
