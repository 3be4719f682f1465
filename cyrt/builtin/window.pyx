# cython: cdivision=True
"""Sliding windows over spatial dimensions."""

import operator

from cyrt.builtin.space cimport divider, tuple_of_sizes
from cyrt.error_text import show

cdef long long MOST = <long long>1 << 40    # no array has as many windows, or elements of one


cdef str describe(int ndim, bint paired):
    """Describe an argument of windows, for errors."""
    return f"an int, a tuple of {ndim} int or of {ndim} pairs (before, behind)" if paired else (
        f"an int or a tuple of {ndim} int, one for each spatial dimension")


cdef bint read_index(object value, long long* number) except -1:
    if isinstance(value, bool):
        return False
    try:
        number[0] = limited(operator.index(value))
    except TypeError:
        return False
    return True


cdef int refuse_number(bint whole, str name, str argument, object value, int ndim, bint paired,
                       long long least) except -1:
    if not whole:
        raise TypeError(f"{name}: {argument}: expected {describe(ndim, paired)}, "
                        f"got {show(value)}")
    raise ValueError(f"{name}: {argument}: expected {describe(ndim, paired)}, from {least} to "
                     f"{<long long>FARTHEST - 1}, got {show(value)}")


cdef inline long long read_number(str name, str argument, object value, int ndim, bint paired,
                                  long long least) except? -1:
    cdef long long number = 0
    cdef bint whole = read_int(value, &number)
    if not whole or not least <= number < FARTHEST:
        refuse_number(whole, name, argument, value, ndim, paired, least)
    return number


cdef int read_numbers(str name, str argument, object value, int ndim, long long least,
                      long long* numbers, bint paired=False) except -1:
    cdef tuple items
    cdef int d
    if not isinstance(value, (tuple, list)):
        numbers[0] = read_number(name, argument, value, ndim, paired, least)
        for d in range(1, ndim):
            numbers[d] = numbers[0]
        return 0
    items = tuple(value)            # an item's __index__ may change the list
    if len(items) != ndim:
        raise ValueError(f"{name}: {argument}: expected {describe(ndim, paired)}, "
                         f"got {show(value)}")
    for d in range(ndim):
        numbers[d] = read_number(name, argument, items[d], ndim, paired, least)
    return 0


cdef bint has_pairs(object padding) except -1:
    if isinstance(padding, (tuple, list)):
        for each in padding:
            if isinstance(each, (tuple, list)):
                return True
    return False


cdef int read_padding(str name, object padding, int ndim, long long* low,
                      long long* high) except -1:
    cdef tuple items, pair
    cdef int d
    if not has_pairs(padding):
        read_numbers(name, "padding", padding, ndim, 1 - FARTHEST, low, True)
        for d in range(ndim):
            high[d] = low[d]
        return 0
    items = tuple(padding)
    if len(items) != ndim:
        raise ValueError(f"{name}: padding: expected {describe(ndim, True)}, got {show(padding)}")
    for d in range(ndim):
        pair = tuple(items[d]) if isinstance(items[d], (tuple, list)) else ()
        if len(pair) != 2:
            raise ValueError(f"{name}: padding: expected {describe(ndim, True)}, "
                             f"got {show(padding)}")
        low[d] = read_number(name, "padding", pair[0], ndim, True, 1 - FARTHEST)
        high[d] = read_number(name, "padding", pair[1], ndim, True, 1 - FARTHEST)
    return 0


cdef inline long long extent(long long size, long long spacing) noexcept:
    """Return the positions that elements take up."""
    return (size - 1) * spacing + 1 if size else 0


cdef int set_sliding(Sliding* sliding, str name, int ndim, const long long* sources,
                     const long long* taps, object stride, object padding, object dilation,
                     object input_dilation, bint flip) except -1:
    cdef long long[WINDOW_AXES] low, high
    cdef long long room, window
    cdef int d
    cdef Sliding* s = sliding
    s.ndim = ndim
    for d in range(WINDOW_AXES):
        s.sources[d] = s.outputs[d] = s.taps[d] = s.stride[d] = s.step[d] = s.spacing[d] = 1
        s.origin[d] = 0
    read_numbers(name, "stride", stride, ndim, 1, s.stride)
    read_numbers(name, "dilation", dilation, ndim, 1, s.step)
    read_numbers(name, "input_dilation", input_dilation, ndim, 1, s.spacing)
    read_padding(name, padding, ndim, low, high)
    for d in range(ndim):
        s.sources[d], s.taps[d] = sources[d], taps[d]
        if taps[d] < 1:
            raise ValueError(f"{name}: expected a kernel of sizes above 0, got "
                             f"{tuple_of_sizes(ndim, taps)}")
        if max(sources[d], taps[d]) >= FARTHEST \
                or extent(sources[d], s.spacing[d]) >= FARTHEST \
                or extent(taps[d], s.step[d]) >= FARTHEST:
            raise ValueError(f"{name}: dilated sizes of {<long long>FARTHEST:,} and more are not "
                             f"provided for, got {tuple_of_sizes(ndim, sources)} with a kernel "
                             f"{tuple_of_sizes(ndim, taps)}")
        window = extent(taps[d], s.step[d])
        room = extent(sources[d], s.spacing[d]) + low[d] + high[d] - window
        # A place too few leaves no outputs, of any stride; even fewer are taken for a mistake.
        s.outputs[d] = room // s.stride[d] + 1 if room >= 0 else 0
        if room < -1:
            raise ValueError(
                f"{name}: a kernel of size {taps[d]} is larger than the padded input of size "
                f"{sources[d]} in spatial dimension {d} (with dilation it has {window} places, "
                f"the input {room + window}): the output's size would be negative")
        s.origin[d] = -low[d]
        if flip:
            s.origin[d] += (taps[d] - 1) * s.step[d]
            s.step[d] = -s.step[d]
    return 0


cdef Sliding reverse(const Sliding* sliding) noexcept:
    """An output o and a source's element i meet at tap t where o * stride + t * step + origin =
    i * spacing."""
    cdef Sliding back = sliding[0]
    cdef int d
    for d in range(WINDOW_AXES):
        back.sources[d], back.outputs[d] = sliding.outputs[d], sliding.sources[d]
        back.stride[d], back.spacing[d] = sliding.spacing[d], sliding.stride[d]
        back.step[d], back.origin[d] = -sliding.step[d], -sliding.origin[d]
    return back


cdef long long product(const long long* sizes) noexcept:
    if <double>sizes[0] * <double>sizes[1] * <double>sizes[2] > <double>MOST:
        return MOST
    return sizes[0] * sizes[1] * sizes[2]


cdef void set_windows(Windows* windows, const Sliding* sliding, long long batch_step,
                      const long long* steps) noexcept:
    cdef Axis* axis
    cdef int d
    windows.batch_step, windows.num_axes = batch_step, <unsigned int>sliding.ndim
    windows.spaced = False
    for d in range(WINDOW_AXES):
        axis = &windows.axis[d]
        axis.outputs = divider(<unsigned int>max(1, sliding.outputs[d]))
        axis.taps = divider(<unsigned int>sliding.taps[d])
        axis.spacing = divider(<unsigned int>sliding.spacing[d])
        axis.stride, axis.step = <int>sliding.stride[d], <int>sliding.step[d]
        axis.origin = <int>sliding.origin[d]
        axis.limit = <unsigned int>extent(sliding.sources[d], sliding.spacing[d])
        axis.source_step = steps[d] if d < sliding.ndim else 0
        windows.spaced |= sliding.spacing[d] > 1
