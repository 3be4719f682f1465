# Ints that users pass as sizes, addresses and indices.

from cpython.number cimport PyIndex_Check, PyNumber_Index


cdef inline object as_int(object value):
    """Return a value as an int; None for a bool, and for what is no int, such as an array of
    floats, although it has ``__index__``."""
    if isinstance(value, bool) or not PyIndex_Check(value):
        return None
    try:
        return PyNumber_Index(value)
    except TypeError:
        return None


cdef inline str described(object value):
    """Return the text of a value for a message: of an array the type and shape, since it may have
    many numbers."""
    if getattr(value, "ndim", 0) and hasattr(value, "dtype"):
        return f"{type(value).__name__} of {value.dtype}, shape {value.shape}"
    return repr(value)
