# CuPy's arrays, which have no C exchange API: their attributes are read instead.
#
# INVARIANTS
# - A description is valid until another array is described.

from cyrt.runtime.dlpack cimport DLPackExchangeAPI

# Return functions like those of DLPack's C exchange API if it is the class of CuPy's arrays, or a
# subclass; else NULL.
cdef const DLPackExchangeAPI* functions_of_cupy(type cls) except? NULL
