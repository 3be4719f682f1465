"""Arrays of random numbers: memory, and the kernel that fills it."""

from libc.string cimport memcpy, memset

from cyrt.graph.recorder cimport encoder_of
from cyrt.kernels.generating cimport WORDS, record_random
from cyrt.kernels.space cimport MAX_NDIM
from cyrt.kernels.entries cimport Operand, dtype_code, op_code
from cyrt.ndarray cimport Array, dims_of, new_array, set_operand
from cyrt.runtime.device cimport ordinal_of
from cyrt.runtime.stream cimport current_state


def draw(str op, unsigned long long key, words, shape, dtype, device, *, str kernel=None,
         int variant=0):
    """Record an operation of the random family into a new array.

    Parameters
    ----------
    op : str
        Of the catalogue.
    key : int
        64 bits.
    words : sequence of int or float
        What its distribution takes; see kernels_cu/random.cu.
    shape : int or sequence of int
    dtype : DType
        Of the array.
    device : Device or int, optional
        The current one where left out.
    kernel : str, optional
        Element type of the row, where it is another than the array's.
    variant : int
        Which of the row's kernels.

    Returns
    -------
    Array
    """
    cdef unsigned long long[WORDS] bits
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
    record_random(encoder_of(current_state(ordinal)), ordinal, op_code(op),
                  dtype_code(kernel or dtype.name), variant, key, bits, &operand, out.count, None)
    return out
