# cython: boundscheck=True
"""Nests of dicts, lists, tuples, named tuples and dataclasses: their leaves and their structure."""

from collections import OrderedDict
from dataclasses import fields, is_dataclass

cdef enum:
    MOST_LEVELS = 100           # C functions that call themselves have no limit of Python's


cdef class Structure:
    """The structure of a nest without its leaves.

    Attributes
    ----------
    num_leaves : int
        The number of leaves.
    """

    def flatten(self, nest, leaf, str name):
        """Return the leaves of a nest that must have this structure, in the order of its leaves.

        Entries of dicts are found by their keys, in whatever order the nest has them.

        Parameters
        ----------
        nest : object
            The nest.
        leaf : type or tuple of type
            The types of leaves.
        name : str
            The name of the nest in messages.

        Raises
        ------
        TypeError
            There is another kind of nest, or a leaf of another type.
        ValueError
            There are other keys, another length, or a leaf where this structure has a nest.
        """
        cdef list leaves = []
        if not append_like(self, nest, leaf, leaves, False):
            refuse_unlike(self, nest, leaf, name)
            raise RuntimeError(f"{name} changed while it was read")
        return leaves

    def unflatten(self, leaves):
        """Return a new nest of this structure with other leaves, of any type.

        Dataclasses are made without their ``__init__``.

        Raises
        ------
        ValueError
            There are more or fewer leaves than this structure has.
        """
        cdef list values = list(leaves)
        cdef Py_ssize_t next = 0
        if len(values) != self.num_leaves:
            raise ValueError(f"a structure of {self.num_leaves} leaves was given {len(values)}")
        return build(self, values, &next)

    def paths(self, str name):
        """Return for each leaf the expression that finds it in the nest of that name.

        >>> from cyrt import trees
        >>> _, structure = trees.flatten({"w": [1, 2], "b": 3}, int, "params")
        >>> structure.paths("params")
        ["params['w'][0]", "params['w'][1]", "params['b']"]
        """
        cdef list found = []
        append_paths(self, name, found)
        return found

    def names(self):
        """Return for each leaf the keys, indices and fields that lead to it, joined by dots.

        >>> from cyrt import trees
        >>> _, structure = trees.flatten({"w": [1, 2], "b": 3}, int, "params")
        >>> structure.names()
        ['w.0', 'w.1', 'b']
        """
        cdef list found = []
        append_names(self, "", found)
        return found

    def __eq__(self, other):
        cdef Structure that
        if not isinstance(other, Structure):
            return NotImplemented
        that = other
        return self.kind == that.kind and self.type is that.type \
            and self.keys == that.keys and self.children == that.children

    def __hash__(self):
        return hash((<int>self.kind, self.type, self.keys, self.children))

    def __repr__(self):
        return f"Structure({', '.join(self.paths('nest'))})"


cdef Structure new_structure(NestKind kind, type of, tuple keys, tuple children,
                             Py_ssize_t num_leaves):
    cdef Structure made = Structure.__new__(Structure)
    made.kind, made.type, made.keys, made.children = kind, of, keys, children
    made.num_leaves = num_leaves
    return made


cdef Structure _leaf = new_structure(LEAF, None, (), (), 1)
cdef Structure _nothing = new_structure(NOTHING, None, (), (), 0)


cdef int kind_of(nest) except -1:
    """Return the kind of something that is no leaf; LEAF: it is no nest either."""
    cdef type of = type(nest)
    if nest is None:
        return NOTHING
    if of is dict or of is OrderedDict:
        return DICT
    if of is list:
        return LIST
    if of is tuple:
        return TUPLE
    if issubclass(of, tuple) and hasattr(of, "_fields") and hasattr(of, "_make"):
        return NAMED_TUPLE
    if is_dataclass(of):
        return DATACLASS
    return LEAF


cdef str key_of(Structure structure, Py_ssize_t i):
    """Return what follows a nest's name in the path of its child i."""
    if structure.kind == DICT:
        return f"[{structure.keys[i]!r}]"
    if structure.kind == DATACLASS:
        return f".{structure.keys[i]}"
    if structure.kind == NAMED_TUPLE:
        return f".{structure.type._fields[i]}"
    return f"[{i}]"


cdef str expected(leaf):
    cdef list names = [each.__name__ for each in (leaf if type(leaf) is tuple else (leaf,))]
    return f"expected {', '.join(names)}, or a dict, list, tuple, named tuple or dataclass of them"


cdef str advice_of(nest):
    return "; keep what is not differentiated or stepped outside of the nest" \
        if isinstance(nest, (bool, int, str)) else ""


cdef Structure append(nest, leaf, list leaves, str name, tuple path, int level):
    """Append the leaves of a nest; return its structure."""
    cdef Py_ssize_t before = len(leaves), i
    cdef Structure made
    cdef tuple keys = ()
    cdef list children = []
    cdef NestKind kind
    if isinstance(nest, leaf):
        leaves.append(nest)
        return _leaf
    kind = <NestKind>kind_of(nest)
    if kind == NOTHING:
        return _nothing
    if kind == LEAF:
        raise TypeError(f"{name}{path_of(path)}: {expected(leaf)}, got {type(nest).__name__}"
                        f"{advice_of(nest)}")
    if level == MOST_LEVELS:
        raise ValueError(f"{name} is more than {MOST_LEVELS} levels deep; does it contain itself?")
    if kind == DICT:
        keys = tuple(nest)
        values = [(<dict>nest)[key] for key in keys]
    elif kind == DATACLASS:
        keys = tuple([each.name for each in fields(nest)])
        values = [getattr(nest, key) for key in keys]
    else:
        values = list(nest)
    made = new_structure(kind, type(nest), keys, None, 0)
    for i in range(len(<list>values)):
        children.append(append((<list>values)[i], leaf, leaves, name, (path, made, i), level + 1))
    made.children, made.num_leaves = tuple(children), len(leaves) - before
    return made


cdef str path_of(tuple path):
    """Return a path as text; it is a chain of (path before, structure, index), or ()."""
    return "" if not path else path_of(path[0]) + key_of(path[1], path[2])


cdef inline bint is_leaf(value, leaf) except -1:
    """Return whether a value has a type, or one of a tuple of types, or is of a subtype."""
    if type(leaf) is tuple:
        return type(value) is (<tuple>leaf)[0] or isinstance(value, leaf)
    return type(value) is leaf or isinstance(value, leaf)


cdef bint append_like(Structure structure, nest, leaf, list leaves, bint in_order) except -1:
    """Append the leaves of a nest; return whether it has a given structure."""
    cdef Structure child
    cdef Py_ssize_t i, count
    if structure.kind == LEAF:
        if not is_leaf(nest, leaf):
            return False
        leaves.append(nest)
        return True
    if structure.kind == NOTHING:
        return nest is None
    if type(nest) is not structure.type:
        return False
    count = len(structure.children)
    if structure.kind != DATACLASS and len(nest) != count:
        return False
    if in_order and structure.kind == DICT and tuple(<dict>nest) != structure.keys:
        return False
    for i in range(count):
        child = <Structure>structure.children[i]
        if structure.kind == DICT:
            if structure.keys[i] not in <dict>nest:
                return False
            each = (<dict>nest)[structure.keys[i]]
        elif structure.kind == DATACLASS:
            each = getattr(nest, structure.keys[i])
        elif structure.kind == LIST:
            each = (<list>nest)[i]
        else:
            each = (<tuple>nest)[i]
        if not append_like(child, each, leaf, leaves, in_order):
            return False
    return True


cdef Structure with_sorted_keys(Structure structure):
    """Return a structure whose dicts have their keys in the order of the keys' texts."""
    cdef list children = [with_sorted_keys(<Structure>each) for each in structure.children]
    cdef list order = list(range(len(children)))
    if structure.kind == DICT:
        texts = [repr(each) for each in structure.keys]
        order.sort(key=texts.__getitem__)
    return new_structure(
        structure.kind, structure.type,
        tuple([structure.keys[i] for i in order]) if structure.keys else (),
        tuple([children[i] for i in order]), structure.num_leaves)


cdef int refuse_unlike(Structure structure, nest, leaf, str name) except -1:
    """Raise the error for a nest, if it has another structure."""
    cdef Py_ssize_t i
    if structure.kind == LEAF:
        if isinstance(nest, leaf):
            return 0
        if kind_of(nest) == LEAF:
            raise TypeError(f"{name}: {expected(leaf)}, got {type(nest).__name__}")
        raise ValueError(f"{name}: expected a leaf, got {describe(nest)}")
    if structure.kind == NOTHING:
        if nest is None:
            return 0
        raise ValueError(f"{name}: expected None, got {describe(nest)}")
    if type(nest) is not structure.type:
        raise (TypeError if kind_of(nest) == LEAF and not isinstance(nest, leaf) else ValueError)(
            f"{name}: expected {of_kind(structure)}, got {describe(nest)}")
    if structure.kind == DICT and set(nest) != set(structure.keys):
        missing = [key for key in structure.keys if key not in nest]
        others = [key for key in nest if key not in structure.keys]
        raise ValueError(f"{name}: " + "; ".join(
            f"{what}: {keys}" for what, keys in
            (("keys are missing", missing), ("keys that are not expected", others)) if keys))
    if structure.kind != DATACLASS and len(nest) != len(structure.children):
        raise ValueError(f"{name}: expected {of_kind(structure)}, got one of {len(nest)}")
    for i in range(len(structure.children)):
        each = getattr(nest, structure.keys[i]) if structure.kind == DATACLASS \
            else nest[structure.keys[i]] if structure.kind == DICT else nest[i]
        refuse_unlike(structure.children[i], each, leaf, name + key_of(structure, i))
    return 0


cdef str of_kind(Structure structure):
    cdef str of = structure.type.__name__
    return of if structure.kind == DATACLASS else f"a {of} of {len(structure.children)}"


cdef str describe(nest):
    return "None" if nest is None else type(nest).__name__


cdef build(Structure structure, list leaves, Py_ssize_t* next):
    cdef list values
    if structure.kind == LEAF:
        next[0] += 1
        return leaves[next[0] - 1]
    if structure.kind == NOTHING:
        return None
    values = [build(<Structure>each, leaves, next) for each in structure.children]
    if structure.kind == LIST:
        return values
    if structure.kind == TUPLE:
        return tuple(values)
    if structure.kind == NAMED_TUPLE:
        return structure.type._make(values)
    if structure.kind == DICT:
        return structure.type(zip(structure.keys, values))
    # Without __init__: it may have other arguments than the fields. A frozen one refuses setattr.
    made = object.__new__(structure.type)
    for key, value in zip(structure.keys, values):
        object.__setattr__(made, key, value)
    return made


cdef int append_paths(Structure structure, str name, list found) except -1:
    cdef Py_ssize_t i
    if structure.kind == LEAF:
        found.append(name)
    for i in range(len(structure.children)):
        append_paths(structure.children[i], name + key_of(structure, i), found)
    return 0


cdef int append_names(Structure structure, str name, list found) except -1:
    cdef Py_ssize_t i
    if structure.kind == LEAF:
        found.append(name)
    for i in range(len(structure.children)):
        if structure.kind == NAMED_TUPLE:
            key = structure.type._fields[i]
        else:
            key = structure.keys[i] if structure.keys else i
        append_names(structure.children[i], f"{name}.{key}" if name else f"{key}", found)
    return 0


class IsLeaf(type):
    """The type of `AnyLeaf`."""

    def __instancecheck__(cls, value):
        return kind_of(value) == LEAF


class AnyLeaf(metaclass=IsLeaf):
    """The type of leaves that may be any object that is not a nest."""


def tree_map(function, nest, /, *others):
    """Apply a function to each leaf of a nest.

    Parameters
    ----------
    function : callable
        It is called with a leaf of `nest`, and with what the other nests have at the same place.
    nest : nest
        A dict, list, tuple, named tuple or dataclass of nests; None, which has no leaves; or
        anything else, which is a leaf.
    *others : nest
        Nests of the same structure. At the place of a leaf they may have nests, which are passed
        to the function as they are.

    Returns
    -------
    nest
        A new nest of the structure of `nest`, whose leaves are the function's results. Dataclasses
        are made without their ``__init__``.

    Raises
    ------
    ValueError
        One of the others has another structure, or a nest is more than 100 levels deep.

    Notes
    -----
    This is JAX's ``jax.tree.map`` and MLX's ``mlx.utils.tree_map``.

    Examples
    --------
    >>> import cyrt
    >>> params = {"w": cyrt.ones(2), "b": [cyrt.zeros(1)]}
    >>> cyrt.tree_map(lambda x: x.astype(cyrt.bfloat16).dtype.name, params)
    {'w': 'bfloat16', 'b': ['bfloat16']}
    >>> cyrt.tree_map(lambda a, b: a + b, (1, [2]), (10, [20]))
    (11, [22])
    """
    if not callable(function):
        raise TypeError("tree_map: function: expected a callable, got "
                        f"{type(function).__name__}; the order is tree_map(function, nest)")
    leaves, structure = flatten(nest, AnyLeaf, "tree_map: nest")
    columns = [(<Structure>structure).flatten(each, object, f"tree_map: others[{i}]")
               for i, each in enumerate(others)]
    return structure.unflatten([function(*each) for each in zip(leaves, *columns)])


def flatten(nest, leaf, str name):
    """Return the leaves of a nest in order, and its structure.

    A nest is a leaf, None (which has no leaves), or a dict, list, tuple, named tuple or dataclass
    of nests. The entries of a dict come in its own order.

    Parameters
    ----------
    nest : object
        The nest.
    leaf : type or tuple of type
        The types of leaves.
    name : str
        The name of the nest in messages.

    Raises
    ------
    TypeError
        Something in the nest is neither a leaf nor a nest; the message has its path and type.
    ValueError
        The nest is more than 100 levels deep, perhaps since it contains itself.

    Examples
    --------
    >>> from cyrt import trees
    >>> leaves, structure = trees.flatten({"w": [1, 2], "b": 3}, int, "params")
    >>> leaves
    [1, 2, 3]
    >>> structure.unflatten([10, 20, 30])
    {'w': [10, 20], 'b': 30}
    """
    cdef list leaves = []
    cdef Structure structure = append(nest, leaf, leaves, name, (), 0)
    return leaves, structure
