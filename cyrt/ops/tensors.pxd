# Views of other libraries' arrays on a device.
#
# INVARIANTS
# - Each use of a `lasting` view is ordered with the legacy default stream, which is put behind the
#   library's current stream when the view is made. Other views are for one operation, and ordered
#   with the library's current stream where that is known.

from cyrt.ndarray cimport Array

# View a tensor that its library describes by DLPack's C exchange API. Return None if there is no
# such description, or if it is not a C-contiguous one of elements on a device.
cdef Array from_tensor(obj, bint lasting)
# View the memory of another library's array on a device. Return the view, and whether the memory is
# read-only.
cdef tuple from_other(obj, bint lasting)
# View an array on the host as NumPy's, by DLPack. Raise BufferError if its library does not hand it
# out.
cdef object from_host_tensor(obj)
# Return whether DLPack says that an array lies in memory that a CUDA device reaches.
cdef bint on_device(obj)
# Return a view, for one operation, of another library's array on a device; else the value.
cdef inline object view_operand(object value):
    return value if isinstance(value, Array) else view_other(value)
cdef object view_other(object value)
# Return an Array; of another library's array on a device, a view for one operation.
cdef Array view_output(str name, object out)
