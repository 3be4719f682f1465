"""Recording the kernels that fill new arrays with random numbers."""

from libc.string cimport memcpy, memset

from cyrt.graph.recorder cimport encoder_of
from cyrt.builtin.random cimport RANDOM_WORDS, record_random
from cyrt.builtin.variates cimport VARIATES_PARAMETERS, record_variates
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.builtin.entry cimport dtype_code, op_code
from cyrt.builtin.operand cimport Operand
from cyrt.ndarray cimport Array, new_array, set_operand
from cyrt.runtime.device cimport ordinal_of
from cyrt.runtime.stream cimport current_state
from cyrt.shape cimport dims_of


def draw(str op, unsigned long long key, words, shape, dtype, device, *, str kernel=None,
         int variant=0):
    """Record an operation of the random family into a new array.

    Parameters
    ----------
    op : str
        The operation's name in the catalogue.
    key : int
        64 bits.
    words : sequence of int or float
        The distribution's parameters; see kernels_cu/random.cu.
    shape : int or sequence of int
    dtype : DType
        The array's element type.
    device : Device or int, optional
        By default the current one.
    kernel : str, optional
        The element type of the kernel's row, if it differs from the array's.
    variant : int
        The index of the row's kernel.

    Returns
    -------
    Array
    """
    cdef unsigned long long[RANDOM_WORDS] bits
    cdef long long[MAX_NDIM] dims
    cdef Operand operand
    cdef Array out
    cdef double real
    cdef int ordinal = ordinal_of(device), ndim = dims_of(shape, dims), i = 0
    memset(bits, 0, sizeof(bits))
    memset(&operand, 0, sizeof(operand))
    for word in words:
        if isinstance(word, float):
            real = word
            memcpy(&bits[i], &real, sizeof(real))
        else:
            bits[i] = word
        i += 1
    out = new_array(ordinal, dtype.code, ndim, dims)
    set_operand(&operand, out)
    record_random(encoder_of(current_state(ordinal)), op_code(op),
                  dtype_code(kernel or dtype.name), variant, key, bits, &operand, out.count)
    return out


def draw_with(str op, unsigned long long key, parameters, shape, dtype, device):
    """Record an operation of the variates family into a new array.

    Parameters
    ----------
    op : str
        The operation's name in the catalogue.
    key : int
        64 bits.
    parameters : sequence of float or Array
        The distribution's parameters. Arrays are contiguous, of float64, the shape and the device.
    shape : int or sequence of int
    dtype : DType
        The array's element type.
    device : Device or int, optional
        By default the current one.

    Returns
    -------
    Array
    """
    cdef Operand[1 + VARIATES_PARAMETERS] operands
    cdef long long[MAX_NDIM] dims
    cdef double number
    cdef Array out
    cdef int ordinal = ordinal_of(device), ndim = dims_of(shape, dims), i = 0
    memset(operands, 0, sizeof(operands))
    for each in parameters:
        i += 1
        if isinstance(each, Array):
            set_operand(&operands[i], <Array>each)
        else:
            number = each
            memcpy(operands[i].value, &number, sizeof(number))
    out = new_array(ordinal, dtype.code, ndim, dims)
    set_operand(&operands[0], out)
    record_variates(encoder_of(current_state(ordinal)), op_code(op), dtype.code, key, operands,
                    out.count)
    return out
