from collections.abc import Iterable
from typing import Any

class Structure:
    """The structure of a nest, whose leaves are taken out.

    Attributes
    ----------
    num_leaves : int
        The number of leaves.
    """

    @property
    def num_leaves(self) -> int: ...
    def flatten(self, nest: object, leaf: type | tuple[type, ...], name: str) -> list[Any]:
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

    def unflatten(self, leaves: Iterable[object]) -> Any:
        """Return a new nest of this structure with other leaves, of any type.

        Dataclasses are made without their ``__init__``.

        Raises
        ------
        ValueError
            There are more or fewer leaves than this structure has.
        """

    def paths(self, name: str) -> list[str]:
        """Return for each leaf the expression that finds it in the nest of that name.

        >>> from cyrt import trees
        >>> _, structure = trees.flatten({"w": [1, 2], "b": 3}, int, "params")
        >>> structure.paths("params")
        ["params['w'][0]", "params['w'][1]", "params['b']"]
        """

    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

def flatten(nest: object, leaf: type | tuple[type, ...], name: str) -> tuple[list[Any], Structure]:
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
