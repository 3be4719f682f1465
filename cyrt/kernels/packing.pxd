# Python arguments to a kernel's parameter bytes.

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
# Stores one scalar or struct; raises the error, to which a caller adds the argument's position.
cdef int pack_value(Param* param, object value, char* target) except -1
