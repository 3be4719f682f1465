# Scopes: the open `batch()` and `concurrent()` blocks, and who is inside.
#
# INVARIANTS
# - A block belongs to the thread that opened it, and within it to the context (PEP 567) that did,
#   and to those copied from that while it is open. One context variable holds a context's open
#   blocks. It is read only while a block of that kind is open on the recorder.
# - A block that has ended belongs to nobody, though contexts that were copied inside still hold it.
#   Whoever leaves it, in any context or thread, ends it.
# - Reading the variable creates no object and runs no Python code.

from cyrt.graph.commit cimport Recorder

cdef class Scope:
    cdef Recorder recorder          # None: the block has ended
    cdef unsigned long thread       # the number of the thread that opened it
    cdef bint group                 # whether it is a `concurrent()` block; else a `batch()`
    cdef unsigned long long limits  # the recorder's `limits` when it was opened

# Open a block of the caller's, and end it.
cdef Scope open_scope(Recorder recorder, bint group)
cdef int close_scope(Scope scope) except -1
# Return the caller's innermost open block of that kind, borrowed; NULL: it is in none.
cdef void* innermost(Recorder recorder, bint group) noexcept
