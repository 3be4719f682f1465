# C-level functions only: see scope.pxd.
"""The open `batch()` and `concurrent()` blocks, and who is inside."""

from contextvars import ContextVar

from cpython.contextvars cimport get_value
from cpython.object cimport PyObject

from cyrt.driver.table cimport disturb
from cyrt.graph.commit cimport Recorder
from cyrt.runtime.stream_state cimport thread_number

cdef extern from "Python.h":
    PyObject* PyTuple_GET_ITEM(tuple items, Py_ssize_t index) noexcept      # borrowed

# The blocks that were open in a context when one was opened or ended there last, outermost first.
cdef object variable = ContextVar("cyrt.graph.scope", default=())


cdef class Scope:
    """An open block."""


cdef tuple open_ones():
    """Return the context's blocks that are still open."""
    cdef tuple known = get_value(variable)
    return tuple([each for each in known if (<Scope>each).recorder is not None])


cdef Scope open_scope(Recorder recorder, bint group):
    cdef Scope scope = Scope.__new__(Scope)
    scope.recorder, scope.thread, scope.group = recorder, thread_number(), group
    scope.limits = recorder.limits
    variable.set((*open_ones(), scope))
    if group:
        recorder.groups_open += 1
        recorder.state.grouping = True
        disturb()
    else:
        recorder.batches_open += 1
    return scope


cdef int close_scope(Scope scope) except -1:
    cdef Recorder recorder = scope.recorder
    scope.recorder = None
    if not scope.group:
        recorder.batches_open -= 1
    else:
        recorder.groups_open -= 1
        if recorder.state.encoder == <void*>recorder:       # else the encoder was detached
            recorder.state.grouping = recorder.groups_open > 0
    variable.set(open_ones())
    return 0


cdef void* innermost(Recorder recorder, bint group) noexcept:
    cdef tuple known = get_value(variable)
    cdef Py_ssize_t i = len(known)
    cdef PyObject* scope
    while i > 0:
        i -= 1
        scope = PyTuple_GET_ITEM(known, i)
        if <void*>(<Scope>scope).recorder == <void*>recorder and (<Scope>scope).group == group \
                and (<Scope>scope).thread == thread_number():
            return scope
    return NULL
