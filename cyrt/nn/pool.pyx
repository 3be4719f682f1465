"""Pooling of arrays with channels last, and its gradients."""

from libc.string cimport memset

from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.pool cimport GRADIENT, OUT, SOURCE, Pooling, record_pool
from cyrt.builtin.space cimport tuple_of_sizes
from cyrt.builtin.window cimport WINDOW_AXES, read_numbers, read_padding, set_sliding
from cyrt.dtypes import DTYPES
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array_on, set_operand, shape_of
from cyrt.nn.checks import check_gradient
from cyrt.ops.arguments import check_array
from cyrt.ops.promotion cimport kinds
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef enum:
    MOST_DIMS = WINDOW_AXES + 2

cdef int MAX = op_code("max_pool"), MAX_VJP = op_code("max_pool_vjp")
cdef int AVG = op_code("avg_pool"), AVG_VJP = op_code("avg_pool_vjp")


cdef Array read_input(str name, object x_, object kernel_size, object stride, object padding,
                      Pooling* pooling):
    """Check the arguments and set the windows."""
    cdef Array x = <Array>x_ if isinstance(x_, Array) else check_array(x_, f"{name}: x")
    cdef long long[WINDOW_AXES] taps
    cdef int ndim = x.ndim_ - 2
    if kinds[x.code] != c"f":
        raise TypeError(f"{name}: x: expected a real floating-point type, got {DTYPES[x.code]}")
    if not 1 <= ndim <= WINDOW_AXES:
        raise ValueError(f"{name}: x: expected a shape (N, *spatial, C) of 3 to 5 dimensions, got "
                         f"{shape_of(x)}")
    memset(pooling, 0, sizeof(Pooling))
    read_numbers(name, "kernel_size", kernel_size, ndim, 1, taps)
    set_sliding(&pooling.sliding, name, ndim, x.dims + 1, taps,
                kernel_size if stride is None else stride, padding, 1, 1, False)
    pooling.batch, pooling.channels = x.dims[0], x.dims[ndim + 1]
    return x


cdef int check_padding(str name, object padding, const Pooling* pooling) except -1:
    """Raise ValueError if a window has nothing but padding: its result would be minus infinity."""
    cdef long long[WINDOW_AXES] low
    cdef long long[WINDOW_AXES] high
    cdef int d
    read_padding(name, padding, pooling.sliding.ndim, low, high)
    for d in range(pooling.sliding.ndim):
        if max(low[d], high[d]) >= pooling.sliding.taps[d]:
            raise ValueError(f"{name}: padding: expected less than {pooling.sliding.taps[d]}, the "
                             f"window's size, got {max(low[d], high[d])}")
    return 0


cdef Array as_source(Array x, Pooling* pooling):
    """Return x, copied unless its last axis is contiguous; set its steps."""
    cdef int d, last = x.ndim_ - 1
    if x.dims[last] > 1 and x.steps[last] != 1:
        x = as_contiguous(x)
    pooling.batch_step = x.steps[0]
    for d in range(1, last):
        pooling.steps[d - 1] = x.steps[d]
    return x


cdef Array record(int op, Array like, int ndim, const long long* dims, Array source,
                  Array gradient, const Pooling* pooling):
    """Record the operation; its result has those dimensions and the type of `like`."""
    cdef Operand[3] operands
    cdef StreamState* stream = current_state(device_of(like))
    cdef Array out = new_array_on(stream, like.code, ndim, dims)
    memset(operands, 0, sizeof(operands))
    if out.count == 0:
        return out
    set_operand(&operands[OUT], out)
    if source.count:
        set_operand(&operands[SOURCE], source)
    if gradient is not None and gradient.count:
        set_operand(&operands[GRADIENT], gradient)
    record_pool(encoder_of(stream), op, like.code, operands, pooling)
    return out


cdef Array forward(str name, int op, object x_, object kernel_size, object stride,
                   object padding):
    cdef Pooling pooling
    cdef Array x = read_input(name, x_, kernel_size, stride, padding, &pooling)
    cdef long long[MOST_DIMS] dims
    cdef int d
    if op == MAX:
        check_padding(name, padding, &pooling)
    dims[0], dims[x.ndim_ - 1] = x.dims[0], x.dims[x.ndim_ - 1]
    for d in range(pooling.sliding.ndim):
        dims[d + 1] = pooling.sliding.outputs[d]
    return record(op, x, x.ndim_, dims, as_source(x, &pooling), None, &pooling)


cdef Array backward(str name, int op, object g_, object x_, object kernel_size, object stride,
                    object padding):
    cdef Pooling pooling
    cdef Array x = read_input(name, x_, kernel_size, stride, padding, &pooling)
    cdef tuple outputs = tuple_of_sizes(pooling.sliding.ndim, pooling.sliding.outputs)
    cdef Array g
    if op == MAX_VJP:
        check_padding(name, padding, &pooling)
    check_gradient(name, g_, (x.dims[0], *outputs, x.dims[x.ndim_ - 1]), x, "x")
    g = g_
    if op == AVG_VJP:
        return record(op, x, x.ndim_, x.dims, as_source(g, &pooling), None, &pooling)
    return record(op, x, x.ndim_, x.dims, as_source(x, &pooling), as_contiguous(g), &pooling)


def max_pool(x, kernel_size, stride=None, padding=0):
    """Take the greatest element of each window; windows have 1 to 3 spatial dimensions.

    Parameters
    ----------
    x : Array
        Shape (N, *spatial, C), of a real floating-point type. It is copied if its last axis is not
        contiguous.
    kernel_size : int or tuple of int
        The windows' size, for all spatial dimensions or one for each.
    stride : int or tuple of int, optional
        The distance between windows; by default their size.
    padding : int, tuple of int or tuple of pairs
        The number of elements of minus infinity that are added on either side, as for
        :func:`conv_general`; less than the window's size, so that each window has an element.

    Returns
    -------
    Array
        Shape (N, *outputs, C), of x's type. If a window has a NaN, its result is NaN.

    Raises
    ------
    TypeError
        x is not an Array of a real floating-point type, or a number is not an int.
    ValueError
        x has no spatial dimension or more than 3, a number is out of its range, or the window is
        larger than the padded x by more than one element (by one, the result is empty).

    Notes
    -----
    This is PyTorch's ``torch.nn.functional.max_pool1d`` to ``max_pool3d``, with channels last.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.max_pool(cyrt.asarray([[[1.0], [3.0], [2.0], [0.0]]]), 2)[0, :, 0]
    Array([3., 2.], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(max_pool, (x, kernel_size, stride, padding))
    return forward("max_pool", MAX, x, kernel_size, stride, padding)


def avg_pool(x, kernel_size, stride=None, padding=0):
    """Take the mean of each window; windows have 1 to 3 spatial dimensions.

    Parameters
    ----------
    x, kernel_size, stride
        As for :func:`max_pool`.
    padding : int, tuple of int or tuple of pairs
        The number of zeros that are added on either side, in the forms of :func:`conv_general`.
        They are part of the mean.

    Returns
    -------
    Array
        Shape (N, *outputs, C), of x's type.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`max_pool`.

    Notes
    -----
    This is PyTorch's ``torch.nn.functional.avg_pool1d`` to ``avg_pool3d``, with channels last.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.avg_pool(cyrt.asarray([[[1.0], [3.0], [2.0], [0.0]]]), 2)[0, :, 0]
    Array([2., 1.], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(avg_pool, (x, kernel_size, stride, padding))
    return forward("avg_pool", AVG, x, kernel_size, stride, padding)


def max_pool_vjp(g, x, kernel_size, stride=None, padding=0):
    """Compute the gradient of :func:`max_pool`'s input from that of its result.

    A window passes its gradient to the first of its greatest elements.

    Parameters
    ----------
    g : Array
        The gradient of the result, of its shape and x's type.
    x : Array
        The input.
    kernel_size, stride, padding
        As for :func:`max_pool`.

    Returns
    -------
    Array
        An array of x's shape and type.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`max_pool`; or g has another type or shape.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[[1.0], [3.0], [2.0], [0.0]]])
    >>> cyrt.nn.max_pool_vjp(cyrt.ones((1, 2, 1)), x, 2)[0, :, 0]
    Array([0., 1., 1., 0.], dtype=float32)
    """
    return backward("max_pool_vjp", MAX_VJP, g, x, kernel_size, stride, padding)


def avg_pool_vjp(g, x, kernel_size, stride=None, padding=0):
    """Compute the gradient of :func:`avg_pool`'s input from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result, of its shape and x's type.
    x : Array
        The input; its values are not read.
    kernel_size, stride, padding
        As for :func:`avg_pool`.

    Returns
    -------
    Array
        An array of x's shape and type.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`avg_pool`; or g has another type or shape.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[[1.0], [3.0], [2.0], [0.0]]])
    >>> cyrt.nn.avg_pool_vjp(cyrt.ones((1, 2, 1)), x, 2)[0, :, 0]
    Array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    return backward("avg_pool_vjp", AVG_VJP, g, x, kernel_size, stride, padding)
