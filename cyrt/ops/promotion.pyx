"""Type promotion: the element type in which an operation computes, and numbers in that type."""

from cpython.bool cimport PyBool_Check
from cpython.complex cimport PyComplex_AsCComplex, PyComplex_Check
from cpython.float cimport PyFloat_Check, PyFloat_CheckExact
from cpython.long cimport PyLong_Check, PyLong_CheckExact
from libc.math cimport copysign, isinf, isnan
from libc.string cimport memcpy, memset

import numpy as np

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.row import MOVES
from cyrt.dtypes import DEFAULTS, DTYPES, DType
from cyrt.dtypes import dtype as _dtype
from cyrt.ndarray cimport Array

cdef extern from "Python.h":
    int PyFloat_Pack2(double x, char* p, int le) except -1

cdef object generic = np.generic
cdef dict codes = {each.name: each.code for each in DTYPES}
cdef int FLOAT16 = codes["float16"], BFLOAT16 = codes["bfloat16"]
cdef int COMPLEX64 = codes["complex64"], COMPLEX128 = codes["complex128"]
assert len(DTYPES) == NUM_DTYPES
assert codes["bool"] == BOOL and codes["float32"] == FLOAT32 and codes["float64"] == FLOAT64
cdef int DEFAULT_INT = DEFAULTS["i"].code, DEFAULT_FLOAT = DEFAULTS["f"].code
cdef int DEFAULT_COMPLEX = DEFAULTS["c"].code


ORDER = "buifc"                 # kinds: values of one may be written into those behind it


cdef int pair(a, b):
    """Look up the standard's table; in addition, an integer with a float gives that float."""
    if a.kind == b.kind:
        if {a.name, b.name} == {"float16", "bfloat16"}:
            return FLOAT32
        return a.code if a.itemsize >= b.itemsize else b.code
    if ORDER.index(a.kind) > ORDER.index(b.kind):
        a, b = b, a
    if a.kind == "u" and b.kind == "i":
        if a.itemsize < b.itemsize:
            return b.code
        return -1 if a.itemsize == 8 else codes[f"int{16 * a.itemsize}"]
    if a.kind == "f" and b.kind == "c":
        return COMPLEX128 if a.itemsize == 8 else b.code
    return b.code


cdef int[NUM_DTYPES] ranks      # the place of a type's kind in their order
for _a in DTYPES:
    kinds[_a.code] = ord(_a.kind)
    ranks[_a.code] = ORDER.index(_a.kind)
    for _b in DTYPES:
        promoted[<int>_a.code][<int>_b.code] = pair(_a, _b)
memset(outputs, -1, sizeof(outputs))
for _row in catalogue.ROWS:
    outputs[op_code(_row.op)][<int>codes[_row.dtype]] = codes[_row.output]
for _name in MOVES:         # the kernels of a type's size move its elements
    for _a in DTYPES:
        outputs[op_code(_name)][<int>_a.code] = _a.code


# Operators of bool that are advised where arithmetic is refused.
cdef dict for_bool = {"negative": "~x", "subtract": "x ^ y"}


cdef int refuse_type(int op, int code) except -1:
    takes = ", ".join([str(DTYPES[i]) for i in range(NUM_DTYPES) if outputs[op][i] >= 0])
    advice = for_bool.get(catalogue.OPS[op]) if code == BOOL else None
    raise TypeError(f"{catalogue.OPS[op]}: not for {DTYPES[code]}; it takes {takes}"
                    + (f"; for bool there is {advice}" if advice else ""))


cdef int promote(int a, int b) except -1:
    if promoted[a][b] < 0:
        raise TypeError(f"{DTYPES[a]} and {DTYPES[b]} have no common type; cast one with astype()")
    return promoted[a][b]


cdef bint is_number(object value):
    return PyFloat_CheckExact(value) or PyLong_CheckExact(value) \
        or isinstance(value, (bool, int, float, complex, generic))


cdef object python_number(object value):
    return value.item() if isinstance(value, generic) else value


cdef int promote_number(int code, object value) except -1:
    if PyBool_Check(value):
        return code
    if PyLong_Check(value):
        return DEFAULT_INT if kinds[code] == c"b" else code
    if PyFloat_Check(value):
        return code if kinds[code] == c"f" or kinds[code] == c"c" else DEFAULT_FLOAT
    if PyComplex_Check(value):
        if kinds[code] == c"c":
            return code
        return COMPLEX128 if code == FLOAT64 else DEFAULT_COMPLEX
    raise TypeError(f"expected a number, got {type(value).__name__}")


cdef int code_of_number(object value) except -1:
    return promote_number(BOOL, value)


cdef bint same_kind(int code, int target) noexcept:
    return ranks[code] <= ranks[target]


cdef int put_real(int code, double number, char* target) except -1:
    cdef float single
    cdef unsigned int word
    cdef unsigned short half
    if code == FLOAT64 or code == COMPLEX128:
        memcpy(target, &number, 8)
        return 0
    single = <float>number          # a number out of range becomes an infinity
    if code == FLOAT16:
        if isnan(number) or isinf(number) or -65520 < number < 65520:
            PyFloat_Pack2(number, target, 1)
        else:
            half = 0x7c00 if number > 0 else 0xfc00
            memcpy(target, &half, 2)
    elif code == BFLOAT16:
        memcpy(&word, &single, 4)
        if isnan(number):
            half = <unsigned short>(word >> 16 | 0x40)
        else:                       # rounded to the nearest, ties to even
            half = <unsigned short>((word + 0x7fff + (word >> 16 & 1)) >> 16)
        memcpy(target, &half, 2)
    else:
        memcpy(target, &single, 4)
    return 0


cdef int put_whole(int code, object value, unsigned long long* bits) except -1:
    cdef int nbytes = DTYPES[code].itemsize
    cdef bint signed = kinds[code] == c"i"
    if PyFloat_Check(value):
        if isnan(value) or isinf(value):
            raise ValueError(f"cannot convert {value} to {DTYPES[code]}")
    elif PyComplex_Check(value):
        raise TypeError(f"cannot convert the complex number {value} to {DTYPES[code]}")
    value = int(value)
    try:
        raw = value.to_bytes(nbytes, "little", signed=signed)
    except OverflowError:
        raise OverflowError(f"the integer {value} is out of range of {DTYPES[code]}") from None
    memcpy(bits, <const char*>raw, nbytes)
    return 0


cdef int put_number(int code, object value, unsigned long long* bits) except -1:
    cdef Py_complex number
    bits[0] = bits[1] = 0
    if PyFloat_CheckExact(value) and kinds[code] == c"f":
        return put_real(code, <double>value, <char*>bits)
    value = python_number(value)
    if not (PyLong_Check(value) or PyFloat_Check(value) or PyComplex_Check(value)):
        raise TypeError(f"expected a number, got {type(value).__name__}")
    if kinds[code] == c"b":
        bits[0] = 1 if value else 0
    elif kinds[code] == c"i" or kinds[code] == c"u":
        put_whole(code, value, bits)
    elif kinds[code] == c"f":
        if PyComplex_Check(value):
            raise TypeError(f"cannot convert the complex number {value} to {DTYPES[code]}")
        put_real(code, real(value), <char*>bits)
    elif PyComplex_Check(value):
        number = PyComplex_AsCComplex(value)
        put_real(code, number.real, <char*>bits)
        put_real(code, number.imag, <char*>bits + (8 if code == COMPLEX128 else 4))
    else:
        put_real(code, real(value), <char*>bits)
    return 0


cdef double real(object value) except? -1:
    """Convert a number to double; an int beyond its range becomes an infinity."""
    try:
        return <double>value
    except OverflowError:
        return copysign(float("inf"), 1 if value > 0 else -1)


def result_type(*arrays_and_dtypes):
    """Return the element type in which an operation on all arguments computes.

    Parameters
    ----------
    *arrays_and_dtypes : Array, DType, argument of :func:`cyrt.dtypes.dtype`, or Python number
        At least one of them is not a number.

    Returns
    -------
    DType
        The type from the standard's promotion table (data-apis.org/array-api, Type Promotion
        Rules). In addition, an integer type with a float type gives the float type, and bool with
        another type gives that type.

    Raises
    ------
    TypeError
        Two types have no common type, such as int64 and uint64.
    """
    cdef int code = -1
    numbers = []
    for each in arrays_and_dtypes:
        if isinstance(each, Array):
            other = (<Array>each).code
        elif is_number(each):
            numbers.append(python_number(each))
            continue
        else:
            other = _dtype(each).code
        code = other if code < 0 else promote(code, other)
    if code < 0:
        raise ValueError("result_type: expected at least one array or element type, got "
                         f"{arrays_and_dtypes}")
    for each in numbers:
        code = promote_number(code, each)
    return DTYPES[code]


def can_cast(from_, to, /):
    """Return whether every value of a type is also a value of another type.

    Parameters
    ----------
    from_ : DType or Array
        The type, or an array of it.
    to : DType
        The other type.

    Returns
    -------
    bool

    Examples
    --------
    >>> import cyrt
    >>> cyrt.can_cast(cyrt.int16, cyrt.float32), cyrt.can_cast(cyrt.int32, cyrt.int16)
    (True, False)
    """
    source = from_.dtype if isinstance(from_, Array) else _dtype(from_)
    return bool(np.can_cast(source.numpy, _dtype(to).numpy))


def isdtype(dtype, kind):
    """Return whether an element type is of a kind.

    Parameters
    ----------
    dtype : DType
    kind : DType, str or tuple of these
        ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
        ``"real floating"``, ``"complex floating"``, ``"numeric"``.

    Raises
    ------
    ValueError
        There is no such kind.
    """
    found = _dtype(dtype)
    for each in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(each, DType):
            if each is found:
                return True
        elif not isinstance(each, str) or each not in KINDS:
            raise ValueError(f"isdtype: expected a DType or one of {', '.join(KINDS)}, got "
                             f"{each!r}")
        elif found.kind in KINDS[each]:
            return True
    return False


KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu",
         "real floating": "f", "complex floating": "c", "numeric": "iufc"}
