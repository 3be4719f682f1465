# Nests of dicts, lists, tuples, named tuples and dataclasses: their leaves and their structure.

cdef enum Kind:
    LEAF
    NOTHING
    DICT
    LIST
    TUPLE
    NAMED_TUPLE
    DATACLASS

cdef class Structure:
    cdef Kind kind
    cdef type type              # of the nest; None: a leaf, or nothing
    cdef tuple keys             # of a dict, or the names of a dataclass's fields
    cdef tuple children         # a Structure each
    cdef readonly Py_ssize_t num_leaves

# Append the leaves of a nest; return whether it has a given structure, or False with some leaves
# appended.
cdef bint append_like(Structure structure, nest, leaf, list leaves) except -1
