# Ints that Python code gives as sizes, addresses and indices.

from cpython.number cimport PyIndex_Check, PyNumber_Index


cdef inline object as_int(object value):
    """The int that a value is; None for a bool, and for what is none, such as an array of floats,
    which has ``__index__``, too."""
    if isinstance(value, bool) or not PyIndex_Check(value):
        return None
    try:
        return PyNumber_Index(value)
    except TypeError:
        return None


cdef inline str described(object value):
    """A value for a message; an array's type and shape, because its numbers may be many."""
    if getattr(value, "ndim", 0) and hasattr(value, "dtype"):
        return f"{type(value).__name__} of {value.dtype}, shape {value.shape}"
    return repr(value)
