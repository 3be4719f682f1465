"""Scalars and structs as kernel parameters: converted as declared, checked for range."""

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.complex cimport Py_complex
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_AsDouble, PyFloat_CheckExact
from cpython.long cimport PyLong_AsUnsignedLongLong, PyLong_CheckExact
from libc.math cimport isfinite
from libc.string cimport memcpy

from _ctypes import _SimpleCData

import numpy as np

from cyrt.error_text import show


cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    long long as_long_long "PyLong_AsLongLongAndOverflow"(object, int*) noexcept   # exact ints
    int PyFloat_Pack2(double, char*, int) except -1
    int pack_half "PyFloat_Pack2"(double, char*, int) noexcept      # up to MOST_HALF
    int PyBool_Check(object)
    int PyComplex_Check(object)
    Py_complex PyComplex_AsCComplex(object) except *    # Cython's own declaration has no errors
    object PyNumber_Index(object)
    int PyIndex_Check(object)

_CODES = {
    "pointer": POINTER, "word8": WORD8, "word16": WORD16, "word32": WORD32, "word64": WORD64,
    "bool": BOOL, "i8": I8, "u8": U8, "i16": I16, "u16": U16,
    "i32": I32, "u32": U32, "i64": I64, "u64": U64, "f16": F16, "bf16": BF16,
    "f32": F32, "f64": F64, "c64": C64, "c128": C128, "bytes": BYTES,
    "unknown": UNKNOWN,
}

cdef int MOST_HALF = 65504              # the largest half
cdef long long EXACT = 9007199254740992        # integers up to this one are exact as doubles

# Bits of the integer types, and whether they are signed, in the enum's order from I8.
cdef int[8] _BITS = [8, 8, 16, 16, 32, 32, 64, 64]


cdef inline bint is_in_range(ParamCode code, unsigned int size, long long number) noexcept:
    """Return whether a parameter of an integer type holds the number."""
    cdef bint signed = code >= I8 and (<int>code - <int>I8) % 2 == 0
    cdef int bits = 8 * size - 1            # the number has them besides its sign
    if number < 0:
        return (signed or code < I8) and number >> bits == -1
    return bits + (not signed) > 63 or number >> bits + (not signed) == 0


cdef bint pack_other_number(const Param* param, object value, char* target) noexcept:
    cdef ParamCode code = param.code
    cdef long long whole
    cdef double number
    cdef float single
    cdef unsigned short half
    cdef int overflow
    if PyLong_CheckExact(value):
        whole = as_long_long(value, &overflow)
        if overflow:
            return False
        if I8 <= code <= U64 or WORD8 <= code <= WORD64:
            if not is_in_range(code, param.size, whole):
                return False
            memcpy(target, &whole, param.size)      # little-endian: the low bytes come first
            return True
        if not -EXACT <= whole <= EXACT:
            return False
        number = <double>whole
    elif PyFloat_CheckExact(value):
        number = PyFloat_AS_DOUBLE(value)
    elif code == BOOL and PyBool_Check(value):
        target[0] = value is True
        return True
    else:
        return False
    if code == F64:
        memcpy(target, &number, 8)
        return True
    if code == F32:
        single = <float>number
        memcpy(target, &single, 4)
        return isfinite(single)
    if code == F16 and -MOST_HALF <= number <= MOST_HALF:
        pack_half(number, target, 1)
        return True
    if code == BF16 and isfinite(number):
        half = bfloat16_of(number)
        memcpy(target, &half, 2)
        return half & 0x7f80 != 0x7f80
    return False


cdef ParamCode code_of(str name) except *:
    return <ParamCode><int>_CODES[name]


cdef long long as_integer(object value) except? -1:
    """An int or an object with ``__index__``; floats are rejected."""
    cdef int overflow = 0
    cdef long long number
    if not PyLong_CheckExact(value):
        if not PyIndex_Check(value):
            if getattr(value, "ndim", None) == 0 and getattr(value, "dtype", None) is not None \
                    and value.dtype.kind in "biu":
                value = int(value)
            else:
                raise TypeError(f"expected an int, got {type(value).__name__}")
        else:
            value = index_of(value)
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        raise OverflowError(value)
    return number


cdef int pack_integer(ParamCode code, object value, char* target) except -1:
    cdef int bits = _BITS[<int>code - <int>I8]
    cdef bint signed = (<int>code - <int>I8) % 2 == 0
    cdef long long number
    cdef unsigned long long high
    try:
        number = as_integer(value)
    except OverflowError as error:
        wide = error.args[0]
        if code == U64 and 0 <= wide < 1 << 64:
            high = PyLong_AsUnsignedLongLong(wide)
            memcpy(target, &high, 8)
            return 0
        raise ValueError(out_of_range(wide, bits, signed)) from None
    if bits < 64:
        if signed:
            if not -(<long long>1 << (bits - 1)) <= number < <long long>1 << (bits - 1):
                raise ValueError(out_of_range(number, bits, signed))
        elif not 0 <= number < <long long>1 << bits:
            raise ValueError(out_of_range(number, bits, signed))
    elif not signed and number < 0:
        raise ValueError(out_of_range(number, bits, signed))
    memcpy(target, &number, bits // 8)     # little-endian: the low bytes come first
    return 0


cdef str out_of_range(value, int bits, bint signed):
    cdef object count = 1 << <object>bits       # a Python int: 2**64 fits in no C type
    low = -(count // 2) if signed else 0
    return f"{value} is out of range, expected {low} to {low + count - 1}"


cdef double as_double(object value) except? -1.0:
    if PyFloat_CheckExact(value):
        return PyFloat_AS_DOUBLE(value)
    if PyComplex_Check(value) or isinstance(value, (str, bytes)) \
            or getattr(value, "ndim", 0) != 0:
        raise TypeError(f"expected a float, got {type(value).__name__}")
    try:
        return PyFloat_AsDouble(value)
    except TypeError:
        raise TypeError(f"expected a float, got {type(value).__name__}") from None
    except OverflowError:
        raise ValueError(f"{value} is out of range of a double") from None


cdef int pack_single(double number, char* target) except -1:
    cdef float single = <float>number
    if isfinite(number) and not isfinite(single):
        raise ValueError(f"{number} is out of range of a float")
    memcpy(target, &single, 4)
    return 0


cdef unsigned short bfloat16_of(double number) noexcept:
    """Rounds the float to the nearest, ties to even."""
    cdef float single = <float>number
    cdef unsigned int bits
    memcpy(&bits, &single, 4)
    if number != number:
        return <unsigned short>((bits >> 16) | 0x40)
    return <unsigned short>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)


cdef int pack_bfloat16(double number, char* target) except -1:
    cdef unsigned short half = bfloat16_of(number)
    if isfinite(number) and (half & 0x7f80) == 0x7f80:
        raise ValueError(f"{number} is out of range of a bfloat16")
    memcpy(target, &half, 2)
    return 0


cdef int pack_complex(ParamCode code, object value, char* target) except -1:
    cdef Py_complex number
    try:
        number = PyComplex_AsCComplex(value)
    except TypeError:
        raise TypeError("expected a complex number, or both parts as bytes, got "
                        f"{type(value).__name__}") from None
    if code == C64:
        pack_single(number.real, target)
        pack_single(number.imag, target + 4)
    else:
        memcpy(target, &number.real, 8)
        memcpy(target + 8, &number.imag, 8)
    return 0


cdef int pack_word(unsigned int size, object value, char* target) except -1:
    """An integer of either sign, or a scalar of NumPy's or ctypes' of exactly that size."""
    if isinstance(value, (np.generic, np.ndarray, _SimpleCData)):
        return pack_raw(value, size, target)
    value = as_integer_object(value)
    try:
        raw = value.to_bytes(size, "little", signed=value < 0)
    except OverflowError:
        raise ValueError(f"{value} is out of range of {size} bytes") from None
    memcpy(target, PyBytes_AS_STRING(raw), size)
    return 0


cdef as_integer_object(value):
    if isinstance(value, float) or not PyIndex_Check(value):
        raise TypeError(f"expected an int, got {type(value).__name__}; its type is not known "
                        "here: give the kernel a signature=, or a NumPy scalar")
    return index_of(value)


cdef index_of(value):
    """An array has ``__index__``, which an array of floats refuses."""
    try:
        return PyNumber_Index(value)
    except TypeError:
        raise TypeError(f"expected an int, got {show(value)}") from None


cdef int pack_unknown(unsigned int size, object value, char* target) except -1:
    """A struct or an enumeration, where the code does not tell which: bytes, or an integer."""
    if isinstance(value, (np.generic, np.ndarray)):
        return pack_raw(value, size, target)
    if PyIndex_Check(value) and size in (1, 2, 4, 8) and not PyObject_CheckBuffer(value) \
            and not hasattr(type(value), "__dlpack__"):     # an Array has an index too
        return pack_word(size, value, target)
    return pack_bytes(value, size, target)


cdef int pack_bytes(object value, unsigned int size, char* target) except -1:
    """A struct or array by value: bytes, or an object that exports them; a number is neither."""
    if not PyObject_CheckBuffer(value) or (
            isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0
            and value.dtype.kind not in "OSV"):
        raise TypeError(f"expected {size} bytes: a bytes object, a NumPy structured scalar or a "
                        f"ctypes structure, got {type(value).__name__}")
    return pack_raw(value, size, target)


cdef int pack_raw(object value, unsigned int size, char* target) except -1:
    """The bytes that an object exports, of exactly this size."""
    cdef bytes raw
    cdef str advice = ""
    if isinstance(value, (np.generic, np.ndarray)):
        dtype = value.dtype
        if dtype.hasobject or not dtype.isnative:
            raise TypeError(f"expected {size} bytes in this machine's byte order, got {dtype}")
        if dtype.names and not dtype.isalignedstruct:
            advice = "; np.dtype(..., align=True) pads as C does"
        raw = value.tobytes()
    else:
        raw = bytes(value)
    if len(raw) != size:
        raise ValueError(f"expected {size} bytes, got {len(raw)}{advice}")
    memcpy(target, PyBytes_AS_STRING(raw), size)
    return 0


cdef int pack_value(Param* param, object value, char* target) except -1:
    cdef ParamCode code = param.code
    cdef double number
    if pack_number(param, value, target):
        return 0
    if isinstance(value, _SimpleCData) and not (WORD8 <= code <= WORD64 or code == UNKNOWN
                                                or code == BYTES):
        value = value.value
        if pack_number(param, value, target):
            return 0
    if code == F32:
        return pack_single(as_double(value), target)
    if I8 <= code <= U64:
        return pack_integer(code, value, target)
    if code == F64:
        number = as_double(value)
        memcpy(target, &number, 8)
        return 0
    if code == BOOL:
        if PyBool_Check(value) or type(value).__name__ in ("bool_", "bool"):
            target[0] = 1 if value else 0
            return 0
        number = as_integer(value)
        if number != 0 and number != 1:
            raise ValueError(f"{value} is out of range, expected a bool, 0 or 1")
        target[0] = <char>number
        return 0
    if code == F16:
        number = as_double(value)
        try:
            PyFloat_Pack2(number, target, 1)
        except OverflowError:
            raise ValueError(f"{number} is out of range of a half") from None
        return 0
    if code == BF16:
        return pack_bfloat16(as_double(value), target)
    if WORD8 <= code <= WORD64:
        return pack_word(param.size, value, target)
    if code == C64 or code == C128:
        if PyObject_CheckBuffer(value) and (
                not hasattr(value, "dtype") or value.ndim != 0 or value.dtype.names):
            return pack_bytes(value, param.size, target)
        return pack_complex(code, value, target)
    if code == UNKNOWN:
        return pack_unknown(param.size, value, target)
    return pack_bytes(value, param.size, target)
