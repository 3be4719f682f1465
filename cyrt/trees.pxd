# Nests of dicts, lists, tuples, named tuples and dataclasses: their leaves and their structure.

cdef enum NestKind:
    LEAF
    NOTHING
    DICT
    LIST
    TUPLE
    NAMED_TUPLE
    DATACLASS

cdef class Structure:
    cdef NestKind kind
    cdef type type              # the nest's type; None: it is a leaf, or nothing
    cdef tuple keys             # the keys of a dict, or the names of a dataclass's fields
    cdef tuple children         # the Structure of each entry
    cdef readonly Py_ssize_t num_leaves

# Append the leaves of a nest; return whether it has a given structure, or False with some leaves
# appended. `in_order`: whether its dicts must have their keys in the same order.
cdef bint append_like(Structure structure, nest, leaf, list leaves, bint in_order) except -1

# Return a structure whose dicts have their keys in the order of the keys' texts: it is the same for
# equal dicts.
cdef Structure with_sorted_keys(Structure structure)
