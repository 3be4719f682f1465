# cython: cdivision=True
"""How the kernels of search.cu are launched: a thread a value."""

from libc.string cimport memset

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.graph.recorder cimport Recorder
from cyrt.graph.recording cimport Geometry
from cyrt.kernels import catalogue
from cyrt.kernels.launch cimport MAX_BLOCKS, ceiling, power_of_two, set_geometry
from cyrt.kernels.sorting cimport KeyOrder, key_order, key_type
from cyrt.kernels.entries cimport Operand, entry_of, record_entry

cdef enum:
    THREADS = 256
    PLACES = 0                  # variants
    CONTAINS = 1

# As Search of search.cu.
cdef struct Search:
    CUdeviceptr elements, sorter, values, out
    long long n, count
    unsigned int right, invert
    KeyOrder order

cdef int SEARCH = catalogue.OPS.index("search")


cdef int launch(Recorder encoder, int variant, int dtype, const Operand* operands, long long n,
                long long count, bint right, bint invert) except -1:
    cdef Search args
    cdef Geometry geometry
    cdef unsigned int x
    if count == 0:
        return 0
    memset(&args, 0, sizeof(args))
    key_order(&args.order, dtype, False)
    args.out = operands[0].address
    args.elements = operands[1].address
    args.values = operands[2].address
    if operands[3].buffer != NULL:
        args.sorter = operands[3].address
    args.n = n
    args.count = count
    args.right = right
    args.invert = invert
    x = power_of_two(count, 32, THREADS)
    set_geometry(&geometry, min(ceiling(count, x), MAX_BLOCKS), x, 1)
    return record_entry(encoder, entry_of(encoder.state.ordinal, SEARCH, key_type(dtype)), variant,
                        &geometry, <const char*>&args, operands, 4, 1, None)


cdef int record_search(Recorder encoder, int dtype, const Operand* operands, long long n,
                       long long count, bint right) except -1:
    return launch(encoder, PLACES, dtype, operands, n, count, right, False)


cdef int record_contains(Recorder encoder, int dtype, const Operand* operands, long long n,
                         long long count, bint invert) except -1:
    return launch(encoder, CONTAINS, dtype, operands, n, count, False, invert)
