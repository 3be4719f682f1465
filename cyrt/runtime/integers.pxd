# Ints that users pass as sizes, addresses and indices.

from cpython.number cimport PyIndex_Check, PyNumber_Index
from cpython.object cimport PyObject

cdef extern from *:
    """
    /* Most ints have one digit, which is read without a call. */
    static inline int cyrt_read_long(PyObject* value, long* result) {
        int overflow = 0;
    #if PY_VERSION_HEX >= 0x030C0000
        if (PyUnstable_Long_IsCompact((PyLongObject*)value)) {
            *result = (long)PyUnstable_Long_CompactValue((PyLongObject*)value);
            return 1;
        }
    #else
        if (-1 <= Py_SIZE(value) && Py_SIZE(value) <= 1) {
            *result = (long)Py_SIZE(value) * (long)((PyLongObject*)value)->ob_digit[0];
            return 1;
        }
    #endif
        *result = PyLong_AsLongAndOverflow(value, &overflow);
        return !overflow;
    }
    """
    # Set `result` to the value of an exact int. Return False if that has more than 64 bits.
    bint read_long "cyrt_read_long"(PyObject* value, long* result) noexcept


cdef inline object as_int(object value):
    """Return a value as an int; None for a bool, and for what is no int, such as an array of
    floats, although it has ``__index__``."""
    if isinstance(value, bool) or not PyIndex_Check(value):
        return None
    try:
        return PyNumber_Index(value)
    except TypeError:
        return None
