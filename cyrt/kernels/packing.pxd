# Python arguments to a kernel's parameter bytes.

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from libc.math cimport isfinite
from libc.string cimport memcpy

from cyrt.runtime.integers cimport read_long

cdef enum ParamCode:
    POINTER
    WORD8           # integers of unknown sign
    WORD16
    WORD32
    WORD64          # may be a pointer
    BOOL
    I8
    U8
    I16
    U16
    I32
    U32
    I64
    U64
    F16
    BF16
    F32
    F64
    C64
    C128
    BYTES           # a struct
    UNKNOWN         # a struct or an enumeration

cdef struct Param:
    ParamCode code
    unsigned int offset
    unsigned int size
    bint writes
    # The arrays that a pointer accepts; `arguments` sets and reads these fields.
    unsigned int refused        # an array's traits that do not fit
    unsigned int unit, align    # bytes of what it points to
    # bits that are zero in every valid address or size; a necessary condition only
    unsigned int coarse

# Code of a signature's parameter ("f32"); ValueError for an unknown one.
cdef ParamCode code_of(str name) except *
# Stores a number that needs no conversion by Python. Returns False for all others.
cdef inline bint pack_number(const Param* param, object value, char* target) noexcept:
    cdef long whole
    cdef float single
    if (param.code == I32 or param.code == I64) and PyLong_CheckExact(value):
        if not read_long(<PyObject*>value, &whole):
            return False
        if param.code == I64:
            memcpy(target, &whole, 8)
            return True
        if whole != <int>whole:
            return False
        (<int*>target)[0] = <int>whole
        return True
    if param.code == F32 and PyFloat_CheckExact(value):
        single = <float>PyFloat_AS_DOUBLE(value)
        if not isfinite(single):
            return False
        memcpy(target, &single, 4)
        return True
    return pack_other_number(param, value, target)
cdef bint pack_other_number(const Param* param, object value, char* target) noexcept

# Stores one scalar or struct; raises the error, to which a caller adds the argument's position.
cdef int pack_value(Param* param, object value, char* target) except -1
