"""Discrete Fourier transforms along axes of arrays."""

from libc.math cimport sqrt
from libc.string cimport memcpy, memset

from cyrt.builtin.fft cimport (
    FFT_HERMITIAN, FFT_REAL_IN, FFT_REAL_OUT, MOST_FFT_NDIM, MOST_POINTS, Transform, record_fft,
)
from cyrt.builtin.library_fft cimport MOST_AXES, prefers_library, record_library_fft
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.dtypes import dtype as _dtype
from cyrt.error_text import show
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport (
    Array, as_contiguous, device_of, new_array, set_operand, shape_of, view_of,
)
from cyrt.ops.arguments import check_array, int_of
from cyrt.ops.copy cimport cast, duplicate, fill
from cyrt.ops.functions import multiply
from cyrt.ops.promotion cimport FLOAT32, FLOAT64, kinds
from cyrt.ops.shapes cimport axis_at
from cyrt.ops.tensors cimport view_operand
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int COMPLEX64 = _dtype("complex64").code, COMPLEX128 = _dtype("complex128").code

# What is transformed into what. The spectrum of real numbers is Hermitian: its second half mirrors
# the first one, which alone is in memory.
cdef enum Kind:
    COMPLEX                 # complex numbers into complex ones
    TO_HALF                 # real numbers into half a spectrum
    FROM_HALF               # half a spectrum into real numbers

# How the factor of the results is shared between a transform and its inverse.
cdef enum Norm:
    BACKWARD                # the inverse one has it
    FORWARD
    ORTHO                   # each has its square root

# The axes of a transform along several, and its points along each.
cdef struct Axes:
    int count
    int[MAX_NDIM] dims
    long long[MAX_NDIM] points


# -- arguments -------------------------------------------------------------------------------------


cdef Array input_of(str name, object x, Kind kind):
    """Return an argument in a type that kernels take: float32 or float64, or a complex type."""
    cdef Array array = <Array>x if type(x) is Array else check_array(view_operand(x), f"{name}: x")
    if kind == TO_HALF and kinds[array.code] == c"c":
        raise TypeError(f"{name}: x: expected a real type, got {array.dtype}")
    if kinds[array.code] != c"c" and array.code != FLOAT64:
        array = cast(array, FLOAT32)
    return array


cdef long long points_of(str name, str argument, object n) except -1:
    """Return the points of a transform."""
    cdef object found = int_of(n, f"{name}: {argument}")
    if not 1 <= found <= MOST_POINTS:
        raise ValueError(f"{name}: {argument}: expected 1 to {<long long>MOST_POINTS:,} points, "
                         f"got {found:,}")
    return found


cdef inline long long default_points(str name, Array x, int axis, Kind kind) except -1:
    """Return the points of a transform that uses all elements along an axis."""
    cdef long long n = x.dims[axis]
    if kind == FROM_HALF:
        n = 2 * (n - 1)
    if not 1 <= n <= MOST_POINTS:
        raise ValueError(f"{name}: expected a transform of 1 to {<long long>MOST_POINTS:,} points, "
                         f"got {n:,} along axis {axis} of shape {shape_of(x)}")
    return n


cdef Norm norm_of(str name, object norm) except? FORWARD:
    if norm is None or norm == "backward":
        return BACKWARD
    if norm == "forward":
        return FORWARD
    if norm == "ortho":
        return ORTHO
    raise ValueError(f"{name}: norm: expected 'backward', 'ortho' or 'forward', got {show(norm)}")


cdef inline double scale_of(Norm norm, long long n, bint inverse) noexcept:
    """Return the factor of the results of a transform of n points."""
    if norm == ORTHO:
        return 1.0 / sqrt(<double>n)
    return 1.0 / n if (norm == BACKWARD) == inverse else 1.0


# -- transforms ------------------------------------------------------------------------------------


cdef void describe(Transform* transform, Array x, int axis, long long n, double scale, Kind kind,
                   bint inverse) noexcept:
    memset(transform, 0, sizeof(transform[0]))
    transform.axis, transform.n, transform.inverse = axis, n, inverse
    transform.inputs = x.dims[axis]
    transform.outputs = n // 2 + 1 if kind == TO_HALF else n
    transform.half = kind != COMPLEX
    transform.scale = scale
    if kinds[x.code] == c"f":
        transform.kind |= FFT_REAL_IN
    if kind == FROM_HALF:
        transform.kind |= FFT_HERMITIAN | FFT_REAL_OUT


cdef inline bint is_wide(Array x) noexcept:
    return x.code == FLOAT64 or x.code == COMPLEX128


cdef Array new_output(Array x, const Transform* transform):
    cdef long long[MAX_NDIM] dims
    cdef int code = COMPLEX128 if is_wide(x) else COMPLEX64
    if transform.kind & FFT_REAL_OUT:
        code = FLOAT64 if is_wide(x) else FLOAT32
    memcpy(dims, x.dims, x.ndim_ * sizeof(long long))
    dims[transform.axis] = transform.outputs
    return new_array(device_of(x), code, x.ndim_, dims)


cdef Array along(Array x, int axis, long long n, Norm norm, Kind kind, bint inverse, bint own):
    """Transform along an axis. `own`: x is a result of this module, which nobody else has."""
    cdef Transform transform
    cdef Operand[2] operands
    cdef Array out
    describe(&transform, x, axis, n, scale_of(norm, n, inverse), kind, inverse)
    if x.count and prefers_library(device_of(x), &transform, 1, x.ndim_,
                                   x.count // x.dims[axis]):
        out = by_library(x, &transform, 1)
        if out is not None:
            return out
    if own and kind == COMPLEX and kinds[x.code] == c"c" and x.dense and n == x.dims[axis]:
        out = x
    else:
        out = new_output(x, &transform)
    if out.count == 0:
        return out
    if x.count == 0:
        fill(out, 0)
        return out
    if x.ndim_ > MOST_FFT_NDIM:
        x = as_contiguous(x)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], out)
    set_operand(&operands[1], x)
    record_fft(encoder_of(current_state(device_of(out))), COMPLEX128 if is_wide(x) else COMPLEX64,
               operands, x.ndim_, x.dims, &transform)
    return out


# -- transforms by a library -----------------------------------------------------------------------


cdef Array by_library(Array x, const Transform* transform, int rank):
    """Transform along adjacent axes, the last one of which is the transform's, by the library;
    return None if it does not provide the transform."""
    cdef Transform served = transform[0]    # own kernels may still need the one of x as it is
    cdef Operand[2] operands
    cdef Array out
    cdef int spectrum = COMPLEX128 if is_wide(x) else COMPLEX64
    if transform.kind & FFT_REAL_OUT:
        # The library computes the inverse transform only.
        if not transform.inverse:
            return None
        x = proper_half(x, transform.axis, transform.n, spectrum)
        served.kind &= ~FFT_REAL_IN
    elif not transform.half:
        x = cast(x, spectrum) if x.code != spectrum else x
        served.kind &= ~FFT_REAL_IN
    elif transform.inverse:     # into half a spectrum, it computes the forward transform only
        return None
    if rank > 1:
        x = as_contiguous(x)
    out = new_output(x, transform)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], out)
    set_operand(&operands[1], x)
    if not record_library_fft(encoder_of(current_state(device_of(out))), spectrum, operands,
                              x.ndim_, x.dims, &served, rank):
        return None
    if transform.scale != 1:
        multiply(out, transform.scale, out=out)
    return out


cdef Array proper_half(Array x, int axis, long long n, int spectrum):
    """Return a copy of half a spectrum, the elements that a transform to n real numbers uses,
    without the imaginary parts that have no effect: the first one and, for an even n, the last."""
    cdef Array used = x[(slice(None),) * axis + (slice(n // 2 + 1),)]
    cdef Array half = duplicate(cast(used, spectrum)), ends
    cdef long long[MAX_NDIM] dims, steps
    cdef int d
    for d in range(half.ndim_ - 1, -1, -1):
        dims[d] = half.dims[d]
        steps[d] = 2 if d == half.ndim_ - 1 else steps[d + 1] * dims[d + 1]
    dims[axis] = 2 if n % 2 == 0 else 1
    steps[axis] *= n // 2
    ends = view_of(half, FLOAT64 if spectrum == COMPLEX128 else FLOAT32, half.ndim_, dims, steps, 1)
    fill(ends, 0)
    return half


cdef Array along_one(str name, object x, object n, object axis, object norm, Kind kind,
                     bint inverse):
    cdef Array array = input_of(name, x, kind)
    cdef int d = axis_at(axis, array.ndim_, name)
    cdef long long points = default_points(name, array, d, kind) if n is None \
        else points_of(name, "n", n)
    return along(array, d, points, norm_of(name, norm), kind, inverse, False)


cdef Array along_several(str name, object x, object s, object axes, object norms, Kind kind,
                         bint inverse):
    """Transform along axes. In a transform between real numbers and half a spectrum, the last axis
    is the one that has half of the results or inputs."""
    cdef Array array = input_of(name, x, kind), before
    cdef Axes chosen
    cdef Norm norm
    cdef int i, last
    read_axes(&chosen, name, array, s, axes)
    if chosen.count == 0 and kind != COMPLEX:
        raise ValueError(f"{name}: expected 1 or more axes, got none")
    last = chosen.count - 1
    for i in range(chosen.count):
        along_half = kind if i == last else COMPLEX
        if s is None:
            chosen.points[i] = default_points(name, array, chosen.dims[i], along_half)
        elif int_of(s[i], f"{name}: s") == -1:      # NumPy's: all elements
            chosen.points[i] = default_points(name, array, chosen.dims[i], COMPLEX)
        else:
            chosen.points[i] = points_of(name, "s", s[i])
    norm = norm_of(name, norms)
    if kind != FROM_HALF and 1 < chosen.count <= MOST_AXES and array.count:
        before = by_library_along(array, &chosen, norm, kind, inverse)
        if before is not None:
            return before
    before = array
    if kind == TO_HALF:
        array = along(array, chosen.dims[last], chosen.points[last], norm, kind, inverse, False)
        last -= 1
    if kind == FROM_HALF:
        for i in range(last):
            array = along(array, chosen.dims[i], chosen.points[i], norm, COMPLEX, inverse,
                          array is not before)
        return along(array, chosen.dims[last], chosen.points[last], norm, kind, inverse, False)
    for i in range(last, -1, -1):
        array = along(array, chosen.dims[i], chosen.points[i], norm, COMPLEX, inverse,
                      array is not before)
    if chosen.count == 0:
        return cast(array, COMPLEX128 if is_wide(array) else COMPLEX64)
    return array


cdef int read_axes(Axes* chosen, str name, Array x, object s, object axes) except -1:
    """Read the axes of a transform along several."""
    cdef tuple named
    cdef int i, first = 0
    if s is not None and not isinstance(s, (tuple, list)):
        raise TypeError(f"{name}: s: expected a sequence of int, got {type(s).__name__}")
    if axes is None:
        if s is not None:
            first = max(0, x.ndim_ - <int>len(s))
        chosen.count = x.ndim_ - first
        for i in range(chosen.count):
            chosen.dims[i] = first + i
    elif isinstance(axes, (tuple, list)):
        named = <tuple>axes if type(axes) is tuple else tuple(axes)
        if len(named) > MAX_NDIM:
            raise ValueError(f"{name}: axes: expected at most {<int>MAX_NDIM}, got {len(named)}")
        chosen.count = <int>len(named)
        for i in range(chosen.count):
            chosen.dims[i] = axis_at(named[i], x.ndim_, name, "axes")
    else:
        raise TypeError(f"{name}: axes: expected a sequence of int, got {type(axes).__name__}")
    if s is not None and len(s) != chosen.count:
        raise ValueError(f"{name}: s: expected a length for each of {chosen.count} axes, got "
                         f"{len(s)}")
    return 0


cdef Array by_library_along(Array x, const Axes* chosen, Norm norm, Kind kind, bint inverse):
    """Transform along several axes by the library; return None if it is not the faster one, or does
    not provide the transform. Adjacent axes are transformed together."""
    cdef Transform transform
    cdef int i, count = chosen.count, last = chosen.dims[count - 1]
    cdef double scale = 1
    for i in range(count):
        if chosen.dims[i] != last - count + 1 + i \
                or chosen.points[i] != x.dims[chosen.dims[i]]:
            return None
        scale *= scale_of(norm, chosen.points[i], inverse)
    describe(&transform, x, last, chosen.points[count - 1], scale, kind, inverse)
    if not prefers_library(device_of(x), &transform, count, x.ndim_, x.count // x.dims[last]):
        return None
    return by_library(x, &transform, count)


# -- the functions ---------------------------------------------------------------------------------


def fft(x, /, n=None, axis=-1, norm="backward"):
    """Compute the discrete Fourier transform: sums of ``x[j] * exp(-2j * pi * j * k / n)`` over j.

    Parameters
    ----------
    x : Array
        An array of any type. float64 and complex128 give complex128; all other types give
        complex64.
    n : int, optional
        The number of points: x is cut, or zeros are appended. By default the axis's size.
    axis : int
        The axis to transform along.
    norm : str
        ``"backward"`` uses no factor; ``"ortho"`` divides the results by the square root of n;
        ``"forward"`` divides them by n. None is ``"backward"``.

    Returns
    -------
    Array
        x's shape, with n complex numbers along the axis.

    Raises
    ------
    ValueError
        The transform has less than 1 point or more than 2**30, or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Notes
    -----
    Lines of up to 8,192 points whose prime factors are 2, 3, 5 and 7 are transformed in one
    launch (Stockham's algorithm), longer ones in two or three (Bailey, 1990). Other lengths are a
    convolution with a chirp (Bluestein, 1970), and take four to ten times as long.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.abs(cyrt.fft.fft(cyrt.asarray([1.0, 0.0, -1.0, 0.0])))
    Array([0., 2., 0., 2.], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(fft, (x, n, axis, norm))
    return along_one("fft", x, n, axis, norm, COMPLEX, False)


def ifft(x, /, n=None, axis=-1, norm="backward"):
    """Compute the inverse of :func:`cyrt.fft.fft`.

    The results are the sums of ``x[k] * exp(2j * pi * j * k / n) / n`` over k.

    Parameters
    ----------
    x : Array
        An array of any type. float64 and complex128 give complex128; all other types give
        complex64.
    n : int, optional
        The number of points: x is cut, or zeros are appended. By default the axis's size.
    axis : int
        The axis to transform along.
    norm : str
        ``"backward"`` divides the results by n; ``"ortho"`` divides them by the square root of n;
        ``"forward"`` uses no factor. None is ``"backward"``.

    Returns
    -------
    Array
        x's shape, with n complex numbers along the axis.

    Raises
    ------
    ValueError
        The transform has less than 1 point or more than 2**30, or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.real(cyrt.fft.ifft(cyrt.asarray([10, -2 + 2j, -2, -2 - 2j])))
    Array([1., 2., 3., 4.], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(ifft, (x, n, axis, norm))
    return along_one("ifft", x, n, axis, norm, COMPLEX, True)


def rfft(x, /, n=None, axis=-1, norm="backward"):
    """Compute the first half of the discrete Fourier transform of real numbers.

    Parameters
    ----------
    x : Array
        An array of a real type. float64 gives complex128; all other types give complex64.
    n : int, optional
        The number of points: x is cut, or zeros are appended. By default the axis's size.
    axis : int
        The axis to transform along.
    norm : str
        ``"backward"`` uses no factor; ``"ortho"`` divides the results by the square root of n;
        ``"forward"`` divides them by n. None is ``"backward"``.

    Returns
    -------
    Array
        x's shape, with n // 2 + 1 numbers along the axis: the others are their conjugates.

    Raises
    ------
    TypeError
        x is complex.
    ValueError
        The transform has less than 1 point or more than 2**30, or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.abs(cyrt.fft.rfft(cyrt.asarray([1.0, 0.0, -1.0, 0.0])))
    Array([0., 2., 0.], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(rfft, (x, n, axis, norm))
    return along_one("rfft", x, n, axis, norm, TO_HALF, False)


def irfft(x, /, n=None, axis=-1, norm="backward"):
    """Compute the inverse of :func:`cyrt.fft.rfft`.

    Parameters
    ----------
    x : Array
        The first half of a spectrum, n // 2 + 1 numbers along the axis; of any type. The imaginary
        parts of the first number, and for an even n of the last one, have no effect.
    n : int, optional
        The number of results: the axis is cut, or zeros are appended. By default 2 * (m - 1), where
        m is the axis's size.
    axis : int
        The axis to transform along.
    norm : str
        ``"backward"`` divides the results by n; ``"ortho"`` divides them by the square root of n;
        ``"forward"`` uses no factor. None is ``"backward"``.

    Returns
    -------
    Array
        x's shape, with n real numbers along the axis; float64 if x is float64 or complex128, else
        float32.

    Raises
    ------
    ValueError
        The transform has less than 1 point or more than 2**30, or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.fft.irfft(cyrt.asarray([10, -2 + 2j, -2]))
    Array([1., 2., 3., 4.], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(irfft, (x, n, axis, norm))
    return along_one("irfft", x, n, axis, norm, FROM_HALF, True)


def hfft(x, /, n=None, axis=-1, norm="backward"):
    """Compute the discrete Fourier transform of numbers with Hermitian symmetry, which is real.

    Parameters
    ----------
    x : Array
        The first half of the numbers, n // 2 + 1 along the axis; of any type. The others are their
        conjugates.
    n : int, optional
        The number of results: the axis is cut, or zeros are appended. By default 2 * (m - 1), where
        m is the axis's size.
    axis : int
        The axis to transform along.
    norm : str
        ``"backward"`` uses no factor; ``"ortho"`` divides the results by the square root of n;
        ``"forward"`` divides them by n. None is ``"backward"``.

    Returns
    -------
    Array
        x's shape, with n real numbers along the axis; float64 if x is float64 or complex128, else
        float32.

    Raises
    ------
    ValueError
        The transform has less than 1 point or more than 2**30, or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.fft.hfft(cyrt.asarray([1.0, 2.0, 3.0]))
    Array([ 8., -2.,  0., -2.], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(hfft, (x, n, axis, norm))
    return along_one("hfft", x, n, axis, norm, FROM_HALF, False)


def ihfft(x, /, n=None, axis=-1, norm="backward"):
    """Compute the inverse of :func:`cyrt.fft.hfft`.

    Parameters
    ----------
    x : Array
        An array of a real type. float64 gives complex128; all other types give complex64.
    n : int, optional
        The number of points: x is cut, or zeros are appended. By default the axis's size.
    axis : int
        The axis to transform along.
    norm : str
        ``"backward"`` divides the results by n; ``"ortho"`` divides them by the square root of n;
        ``"forward"`` uses no factor. None is ``"backward"``.

    Returns
    -------
    Array
        x's shape, with n // 2 + 1 numbers along the axis: the others are their conjugates.

    Raises
    ------
    TypeError
        x is complex.
    ValueError
        The transform has less than 1 point or more than 2**30, or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.real(cyrt.fft.ihfft(cyrt.asarray([8.0, -2.0, 0.0, -2.0])))
    Array([1., 2., 3.], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(ihfft, (x, n, axis, norm))
    return along_one("ihfft", x, n, axis, norm, TO_HALF, True)


def fftn(x, /, s=None, axes=None, norm="backward"):
    """Compute the discrete Fourier transform along several axes.

    Parameters
    ----------
    x : Array
        An array of any type. float64 and complex128 give complex128; all other types give
        complex64.
    s : sequence of int, optional
        The points along each axis, as `n` for :func:`cyrt.fft.fft`; -1 is the axis's size. With `s`
        and without `axes`, the last ``len(s)`` axes are transformed.
    axes : sequence of int, optional
        The axes to transform along, by default all.
    norm : str
        As for :func:`cyrt.fft.fft`, where n is the product of the points along the axes.

    Returns
    -------
    Array
        x's shape, with the points of `s` along the axes; complex.

    Raises
    ------
    ValueError
        The transform along an axis has less than 1 point or more than 2**30; `s` and `axes` differ
        in length; or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> cyrt.abs(cyrt.fft.fftn(x))
    Array([[10.,  2.],
           [ 4.,  0.]], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(fftn, (x, s, axes, norm))
    return along_several("fftn", x, s, axes, norm, COMPLEX, False)


def ifftn(x, /, s=None, axes=None, norm="backward"):
    """Compute the inverse of :func:`cyrt.fft.fftn`.

    Parameters
    ----------
    x : Array
        An array of any type. float64 and complex128 give complex128; all other types give
        complex64.
    s : sequence of int, optional
        The points along each axis, as `n` for :func:`cyrt.fft.fft`; -1 is the axis's size. With `s`
        and without `axes`, the last ``len(s)`` axes are transformed.
    axes : sequence of int, optional
        The axes to transform along, by default all.
    norm : str
        As for :func:`cyrt.fft.ifft`, where n is the product of the points along the axes.

    Returns
    -------
    Array
        x's shape, with the points of `s` along the axes; complex.

    Raises
    ------
    ValueError
        The transform along an axis has less than 1 point or more than 2**30; `s` and `axes` differ
        in length; or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[10, -2], [-4, 0j]])
    >>> cyrt.real(cyrt.fft.ifftn(x))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(ifftn, (x, s, axes, norm))
    return along_several("ifftn", x, s, axes, norm, COMPLEX, True)


def rfftn(x, /, s=None, axes=None, norm="backward"):
    """Compute the first half of the discrete Fourier transform of real numbers along several axes.

    Parameters
    ----------
    x : Array
        An array of a real type. float64 gives complex128; all other types give complex64.
    s : sequence of int, optional
        The points along each axis, as `n` for :func:`cyrt.fft.fft`; -1 is the axis's size. With `s`
        and without `axes`, the last ``len(s)`` axes are transformed.
    axes : sequence of int, optional
        The axes to transform along, by default all.
    norm : str
        As for :func:`cyrt.fft.fft`, where n is the product of the points along the axes.

    Returns
    -------
    Array
        x's shape, with the points of `s` along the axes, but ``s[-1] // 2 + 1`` along the last one;
        complex.

    Raises
    ------
    TypeError
        x is complex.
    ValueError
        The transform along an axis has less than 1 point or more than 2**30; `s` and `axes` differ
        in length; or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> cyrt.abs(cyrt.fft.rfftn(x))
    Array([[10.,  2.],
           [ 4.,  0.]], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(rfftn, (x, s, axes, norm))
    return along_several("rfftn", x, s, axes, norm, TO_HALF, False)


def irfftn(x, /, s=None, axes=None, norm="backward"):
    """Compute the inverse of :func:`cyrt.fft.rfftn`.

    Parameters
    ----------
    x : Array
        The first half of a spectrum along the last of the axes; of any type.
    s : sequence of int, optional
        The number of results along each axis; for the last one, as `n` for :func:`cyrt.fft.irfft`.
        -1 is the axis's size. With `s` and without `axes`, the last ``len(s)`` axes are
        transformed.
    axes : sequence of int, optional
        The axes to transform along, by default all.
    norm : str
        As for :func:`cyrt.fft.ifft`, where n is the product of the points along the axes.

    Returns
    -------
    Array
        x's shape, with the results of `s` along the axes; float64 if x is float64 or complex128,
        else float32.

    Raises
    ------
    ValueError
        The transform along an axis has less than 1 point or more than 2**30; `s` and `axes` differ
        in length; or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[10, -2], [-4, 0j]])
    >>> cyrt.fft.irfftn(x)
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(irfftn, (x, s, axes, norm))
    return along_several("irfftn", x, s, axes, norm, FROM_HALF, True)


def fft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Compute the discrete Fourier transform along two axes, by default the last ones.

    Parameters
    ----------
    x : Array
        An array of any type. float64 and complex128 give complex128; all other types give
        complex64.
    s : sequence of int, optional
        The points along each of the axes, as `n` for :func:`cyrt.fft.fft`; -1 is the axis's size.
    axes : sequence of int
        The axes to transform along.
    norm : str
        As for :func:`cyrt.fft.fft`, where n is the product of the points along the axes.

    Returns
    -------
    Array
        x's shape, with the points of `s` along the axes; complex.

    Raises
    ------
    ValueError
        The transform along an axis has less than 1 point or more than 2**30; `s` and `axes` differ
        in length; or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> cyrt.abs(cyrt.fft.fft2(x))
    Array([[10.,  2.],
           [ 4.,  0.]], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(fft2, (x, s, axes, norm))
    return along_several("fft2", x, s, axes, norm, COMPLEX, False)


def ifft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Compute the inverse of :func:`cyrt.fft.fft2`.

    Parameters
    ----------
    x : Array
        An array of any type. float64 and complex128 give complex128; all other types give
        complex64.
    s : sequence of int, optional
        The points along each of the axes, as `n` for :func:`cyrt.fft.fft`; -1 is the axis's size.
    axes : sequence of int
        The axes to transform along.
    norm : str
        As for :func:`cyrt.fft.ifft`, where n is the product of the points along the axes.

    Returns
    -------
    Array
        x's shape, with the points of `s` along the axes; complex.

    Raises
    ------
    ValueError
        The transform along an axis has less than 1 point or more than 2**30; `s` and `axes` differ
        in length; or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[10, -2], [-4, 0j]])
    >>> cyrt.real(cyrt.fft.ifft2(x))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(ifft2, (x, s, axes, norm))
    return along_several("ifft2", x, s, axes, norm, COMPLEX, True)


def rfft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Compute the first half of the discrete Fourier transform of real numbers along two axes.

    Parameters
    ----------
    x : Array
        An array of a real type. float64 gives complex128; all other types give complex64.
    s : sequence of int, optional
        The points along each of the axes, as `n` for :func:`cyrt.fft.fft`; -1 is the axis's size.
    axes : sequence of int
        The axes to transform along.
    norm : str
        As for :func:`cyrt.fft.fft`, where n is the product of the points along the axes.

    Returns
    -------
    Array
        x's shape, with the points of `s` along the axes, but ``s[-1] // 2 + 1`` along the last one;
        complex.

    Raises
    ------
    TypeError
        x is complex.
    ValueError
        The transform along an axis has less than 1 point or more than 2**30; `s` and `axes` differ
        in length; or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> cyrt.abs(cyrt.fft.rfft2(x))
    Array([[10.,  2.],
           [ 4.,  0.]], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(rfft2, (x, s, axes, norm))
    return along_several("rfft2", x, s, axes, norm, TO_HALF, False)


def irfft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Compute the inverse of :func:`cyrt.fft.rfft2`.

    Parameters
    ----------
    x : Array
        The first half of a spectrum along the last of the axes; of any type.
    s : sequence of int, optional
        The number of results along each of the axes; for the last one, as `n` for
        :func:`cyrt.fft.irfft`. -1 is the axis's size.
    axes : sequence of int
        The axes to transform along.
    norm : str
        As for :func:`cyrt.fft.ifft`, where n is the product of the points along the axes.

    Returns
    -------
    Array
        x's shape, with the results of `s` along the axes; float64 if x is float64 or complex128,
        else float32.

    Raises
    ------
    ValueError
        The transform along an axis has less than 1 point or more than 2**30; `s` and `axes` differ
        in length; or there is no such `norm`.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[10, -2], [-4, 0j]])
    >>> cyrt.fft.irfft2(x)
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(irfft2, (x, s, axes, norm))
    return along_several("irfft2", x, s, axes, norm, FROM_HALF, True)
