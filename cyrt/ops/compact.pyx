"""Selection by masks. The host reads the number of selected elements, and waits for it."""

from libc.string cimport memset

from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recorder cimport encoder_of
from cyrt.builtin.compact cimport COMPACT_TILE, record_counts, record_select
from cyrt.builtin.scan cimport record_scan
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array, set_operand, shape_of, view_of
from cyrt.ops.arguments import check_array
from cyrt.ops.copy cimport check_device
from cyrt.runtime.stream cimport current_state

cdef int BOOL = _dtype("bool").code, INT64 = _dtype("int64").code
cdef int CUMULATIVE_SUM = op_code("cumulative_sum")


cdef Array compact(Array x, Array mask):
    """Select the elements of x, or their positions if x is None, at which a mask is true."""
    cdef Operand[4] operands
    cdef Array counts, sums = None, result
    cdef int ordinal = device_of(mask), code = INT64 if x is None else x.code
    cdef Recorder encoder = encoder_of(current_state(ordinal))
    cdef long long tiles = (mask.count + COMPACT_TILE - 1) // COMPACT_TILE, length = 0, one = 1
    memset(operands, 0, sizeof(operands))
    if tiles:
        counts = new_array(ordinal, INT64, 1, &tiles)
        set_operand(&operands[0], counts)
        set_operand(&operands[1], mask)
        record_counts(encoder, operands, mask.count)
        if tiles > 1:
            length = tiles + 1
            sums = new_array(ordinal, INT64, 1, &length)
            set_operand(&operands[0], sums)
            set_operand(&operands[1], counts)
            record_scan(encoder, CUMULATIVE_SUM, INT64, operands, 1, tiles, 1, True)
            set_operand(&operands[1], mask)
            set_operand(&operands[3], sums)
            counts = view_of(sums, INT64, 1, &one, &one, tiles)
        length = counts.item()
    result = new_array(ordinal, code, 1, &length)
    if length:
        set_operand(&operands[0], result)
        if x is not None:
            set_operand(&operands[2], x)
        record_select(encoder_of(current_state(ordinal)), code, operands, mask.count)
    return result


cdef Array positions_where(Array mask):
    return compact(None, as_contiguous(mask))


cdef Array select_where(Array x, Array mask):
    check_device(mask, x, "mask")
    return compact(as_contiguous(x), as_contiguous(mask))


cdef int check_mask(Array mask) except -1:
    if mask.code != BOOL:
        raise TypeError(f"mask: expected a bool array, got {DTYPES[mask.code]}")
    return 0


def positions(mask):
    """Find the positions at which a mask is true.

    Parameters
    ----------
    mask : Array
        bool, any shape.

    Returns
    -------
    Array
        int64, one dimension: positions in C order, ascending.
    """
    check_mask(check_array(mask, "mask"))
    return positions_where(mask)


def select(x, mask):
    """Select the elements at which a mask is true.

    Parameters
    ----------
    x : Array
    mask : Array
        bool, of x's shape and on its device.

    Returns
    -------
    Array
        A one-dimensional array of x's type, in C order.
    """
    check_mask(check_array(mask, "mask"))
    if shape_of(check_array(x, "x")) != shape_of(mask):
        raise ValueError(f"select: x has shape {shape_of(x)}, the mask {shape_of(mask)}")
    return select_where(x, mask)
