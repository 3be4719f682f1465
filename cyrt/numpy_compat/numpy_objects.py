"""NumPy's own objects, under the same names: kinds of types, printing, subscripts, error states."""

from numpy import (
    False_,
    True_,
    complexfloating,
    errstate,
    floating,
    generic,
    get_printoptions,
    geterr,
    index_exp,
    inexact,
    integer,
    isscalar,
    iterable,
    ndenumerate,
    ndindex,
    number,
    printoptions,
    s_,
    set_printoptions,
    seterr,
    signedinteger,
    unsignedinteger,
)

__all__ = ["False_", "True_", "complexfloating", "errstate", "floating", "generic",
           "get_printoptions", "geterr", "index_exp", "inexact", "integer", "isscalar", "iterable",
           "ndenumerate", "ndindex", "number", "printoptions", "s_", "set_printoptions", "seterr",
           "signedinteger", "unsignedinteger"]
