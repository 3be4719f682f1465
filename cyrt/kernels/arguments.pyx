"""What a kernel takes for memory."""

import numpy as np

from cyrt.runtime.interop cimport as_buffer
from cyrt.runtime.memory cimport Buffer


cdef bint is_memory(object value):
    return (isinstance(value, Buffer) or value is None
            or hasattr(value, "__cuda_array_interface__")
            or (hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray)))


cdef Buffer pointer_argument(object value, bint writes):
    if isinstance(value, int):
        raise TypeError("an int is no pointer; use cyrt.pointer(address, nbytes)")
    return as_buffer(value, writes)
