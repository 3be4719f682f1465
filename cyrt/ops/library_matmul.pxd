# Products of matrices that only a library multiplies: with an addend, or of a wider type.

from cyrt.ndarray cimport Array

# Return alpha * (a @ b) + beta * c, or None if the library does not provide it; c may be None, and
# the result is of the type `code`, as c is.
cdef Array multiply_by_library(Array a, Array b, Array c, int code, double alpha, double beta)
