"""Dropout: elements that are chosen at random are kept, and the others become 0."""

from libc.string cimport memset

from cyrt.builtin.dropout cimport record_dropout
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array, set_operand
from cyrt.nn.checks import check_floating, check_gradient, number_of
from cyrt.random.keys import bits_of
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int DROPOUT = op_code("dropout")


cdef Array apply(str name, Array x, object p, object key):
    cdef Operand[2] operands
    cdef unsigned long long bits = bits_of(key, name)
    cdef double stay = 1 - <double>number_of(p, name, "p", 0, 1)
    cdef Array source = as_contiguous(x)
    cdef Array out = new_array(device_of(x), x.code, x.ndim_, x.dims)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], out)
    set_operand(&operands[1], source)
    # The threshold is that of bernoulli's kernel.
    record_dropout(encoder_of(current_state(device_of(x))), x.code, operands, x.count, bits,
                   round(stay * (1 << 32)), 1 / stay if stay else 0)
    return out


def dropout(x, p=0.5, *, key):
    """Replace each element by 0 with probability p, and divide the others by 1 - p.

    Nothing is stored for the gradient, because the choice of elements depends only on the key.

    Parameters
    ----------
    x : Array
        float16, bfloat16, float32 or float64; it is copied if it is not contiguous.
    p : float
        The probability that an element becomes 0, from 0 to 1, with a precision of 32 bits.
    key : Key
        A key that is used for nothing else, see :func:`cyrt.random.split`. Element i, in C order,
        is kept if element i of ``cyrt.random.bernoulli(1 - p, x.shape, key=key)`` is true.

    Returns
    -------
    Array
        An array of x's shape and type, ``x / (1 - p)`` where elements are kept.

    Raises
    ------
    TypeError
        x is not an array of one of these types, p is not a number, or the key is not a Key.
    ValueError
        p is less than 0 or greater than 1.

    Notes
    -----
    Srivastava et al., JMLR 15 (2014). This is PyTorch's ``torch.nn.functional.dropout`` with a key
    instead of a generator, and without a switch for inference, where it must not be called.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.dropout(cyrt.ones(6), 0.5, key=cyrt.random.key(7))
    Array([0., 0., 2., 2., 2., 0.], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(dropout, (x, p, key))
    check_floating("dropout", "x", x)
    return apply("dropout", x, p, key)


def dropout_vjp(g, x, p=0.5, *, key):
    """Compute the gradient of :func:`dropout`'s input from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result, of x's shape and type.
    x : Array
        The input; its values are not read.
    p : float
        As for :func:`dropout`.
    key : Key
        The key of the call of dropout.

    Returns
    -------
    Array
        ``dropout(g, p, key=key)``, of x's shape and type.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`dropout`; or g differs from x in type or shape.

    Examples
    --------
    >>> import cyrt
    >>> x, g = cyrt.ones(6), cyrt.ones(6)
    >>> cyrt.nn.dropout_vjp(g, x, 0.5, key=cyrt.random.key(7))
    Array([0., 0., 2., 2., 2., 0.], dtype=float32)
    """
    check_floating("dropout_vjp", "x", x)
    check_gradient("dropout_vjp", g, x.shape, x, "x")
    return apply("dropout_vjp", g, p, key)
