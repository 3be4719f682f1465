# PEP 590: calls of an extension type's objects without a tuple of the arguments. Cython supports it
# for functions only.

from cpython.object cimport PyObject

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        Py_ssize_t tp_vectorcall_offset
        unsigned long tp_flags
    PyTypeObject* Py_TYPE(object instance) noexcept
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    Py_ssize_t PyVectorcall_NARGS(size_t count) noexcept
    PyObject** PySequence_Fast_ITEMS(object sequence) noexcept      # the address of a tuple's items

# The function that the interpreter calls: the object, its arguments followed by the values of
# keywords; their number with a flag; a tuple of the keywords' names, or NULL.
ctypedef object (*Vectorcall)(object, PyObject**, size_t, PyObject*)

# Declares that every object of the type holds a Vectorcall at that offset. Called once, directly
# after the type's definition.
cdef inline void offer_vectorcall(object instance, Vectorcall* held) noexcept:
    cdef PyTypeObject* cls = Py_TYPE(instance)
    cls.tp_vectorcall_offset = <char*>held - <char*><PyObject*>instance
    cls.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL
