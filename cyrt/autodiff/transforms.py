"""The gradients of functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import index
from typing import Any

import numpy as np

from cyrt import trees
from cyrt.ndarray import Array
from cyrt.ops.copy import copy
from cyrt.ops.creation import asarray, ones, zeros
from cyrt.tape import Level, detach, is_plain

_Arguments = tuple[Any, ...]


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))


def _read_argnums(argnums: Any, name: str) -> tuple[int, ...]:
    numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    for each in numbers:
        if isinstance(each, (bool, Array, np.ndarray)) or not hasattr(each, "__index__"):
            if isinstance(each, (str, bool, type(None))):
                raise TypeError(
                    f"{name}: argnums: expected an int or a tuple of ints, got {argnums!r}"
                )
            raise TypeError(
                f"{name}: argnums: expected an int or a tuple of ints, got {type(each).__name__}; "
                f"{name}(f) is a function, which takes the arguments: {name}(f)(x)"
            )
    return tuple(map(index, numbers))


def _places(argnums: tuple[int, ...], args: _Arguments, name: str) -> list[int]:
    places = []
    for each in argnums:
        if not -len(args) <= each < len(args):
            raise ValueError(
                f"{name}: argnums: {each} is out of range for {len(args)} positional arguments"
            )
        places.append(each % len(args))
    if len(set(places)) != len(places):
        raise ValueError(f"{name}: argnums: {argnums} names an argument twice")
    return places


def _check_leaf(x: Any, path: str) -> Array:
    leaf: Array = asarray(x) if isinstance(x, float) else x
    if leaf.dtype.kind not in "fc":
        raise TypeError(
            f"{path}: expected an array of a floating-point type, got {leaf.dtype} of shape "
            f"{leaf.shape}"
        )
    return leaf


class _Inputs:
    """Nests of arrays that a function is differentiated by."""

    __slots__ = ("leaves", "structures")

    def __init__(self, nests: list[Any], names: list[str]) -> None:
        self.leaves: list[Array] = []
        self.structures: list[Any] = []  # one an argument; None: it is an array
        for nest, name in zip(nests, names, strict=True):
            if isinstance(nest, Array):
                self.structures.append(None)
                self.leaves.append(_check_leaf(nest, name))
                continue
            leaves, structure = trees.flatten(nest, (Array, float), name)
            self.structures.append(structure)
            for i, leaf in enumerate(leaves):
                try:
                    self.leaves.append(_check_leaf(leaf, name))
                except TypeError:
                    _check_leaf(leaf, structure.paths(name)[i])

    def build(self, leaves: list[Any]) -> list[Any]:
        """Return the nests with other leaves."""
        nests, first = [], 0
        for structure in self.structures:
            if structure is None:
                nests.append(leaves[first])
                first += 1
            else:
                nests.append(structure.unflatten(leaves[first : first + structure.num_leaves]))
                first += structure.num_leaves
        return nests

    def finish(self, gradients: list[Array | None], given: list[Array]) -> list[Any]:
        """Return the nests of gradients: arrays of their own memory, which is shared neither with
        each other nor with given arrays."""
        seen = set(map(id, given))
        found = []
        for gradient, leaf in zip(gradients, self.leaves, strict=True):
            if gradient is None:
                gradient = zeros(leaf.shape, leaf.dtype, device=leaf.device)
            elif not is_plain(gradient) or id(gradient) in seen:
                gradient = copy(gradient)
            seen.add(id(gradient))
            found.append(gradient)
        return self.build(found)


def value_and_grad(
    f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes what `f` does, and its gradient.

    Parameters
    ----------
    f : callable
        Its result is a real floating-point scalar, or with `has_aux` a pair of it and anything
        else.
    argnums : int or tuple of int
        The positional arguments by which to differentiate: arrays of floating-point types, or
        nests of dict, list, tuple, named tuple and dataclass. A float counts as an array.
    has_aux : bool

    Returns
    -------
    callable
        It takes f's arguments, and returns ``(value, gradient)``. The gradient has the structure
        of the argument; it is a tuple if `argnums` is. With `has_aux` the value is f's pair.

    Raises
    ------
    TypeError
        An argument is no array of a floating-point type or nest of such arrays, or f's result is no
        such scalar; or f uses a function that has no gradient.
    ValueError
        There is no argument of that number.
    RuntimeError
        f has overwritten values that its gradient needs.

    Notes
    -----
    The method is reverse-mode differentiation [1]_: f runs once, and each operation on an array
    that depends on the arguments is recorded. For complex arguments the gradient is that of JAX:
    ``df/dx - 1j * df/dy`` for ``x + 1j * y``.

    References
    ----------
    .. [1] A. Griewank, A. Walther, "Evaluating Derivatives", SIAM, 2008.

    Examples
    --------
    >>> import cyrt
    >>> f = cyrt.value_and_grad(lambda x: cyrt.sum(x**2))
    >>> f(cyrt.asarray([1.0, 2.0]))
    (Array(5., dtype=float32), Array([2., 4.], dtype=float32))
    """
    return _differentiated(f, argnums, has_aux, "value_and_grad", True)


def grad(
    f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the gradient of `f`.

    The parameters and errors are those of :func:`value_and_grad`.

    Returns
    -------
    callable
        It takes f's arguments, and returns the gradient; with `has_aux` a pair of the gradient and
        what f returns beside its value.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.grad(cyrt.sin)(cyrt.asarray(0.0))
    Array(1., dtype=float32)
    >>> cyrt.grad(cyrt.grad(lambda x: x**3))(cyrt.asarray(2.0))
    Array(12., dtype=float32)
    """
    return _differentiated(f, argnums, has_aux, "grad", False)


def _differentiated(
    f: Callable[..., Any], argnums: Any, has_aux: bool, name: str, with_value: bool
) -> Callable[..., Any]:
    if not callable(f):
        raise TypeError(f"{name}: f: expected a function, got {type(f).__name__}")
    numbers = _read_argnums(argnums, name)
    several = isinstance(argnums, (tuple, list))

    def differentiated(*args: Any, **keywords: Any) -> Any:
        places = _places(numbers, args, name)
        inputs = _Inputs(
            [args[i] for i in places], [f"{name} of {_name_of(f)}: argument {i}" for i in places]
        )
        level = Level()
        try:
            nests = inputs.build([level.leaf(each) for each in inputs.leaves])
            own = list(args)
            for place, nest in zip(places, nests, strict=True):
                own[place] = nest
            result = f(*own, **keywords)
            value, aux = _split_result(f, result, has_aux, name)
            node = level.node_of(value)
            level.stop()
            if node < 0:
                gradients: list[Array | None] = [None] * len(inputs.leaves)
            else:
                start = ones((), value.dtype, device=value.device)
                gradients = level.differentiate([node], [start])
            found = inputs.finish(gradients, [])
        finally:
            level.close()
        gradient = tuple(found) if several else found[0]
        if with_value:
            return ((value, aux), gradient) if has_aux else (value, gradient)
        return (gradient, aux) if has_aux else gradient

    try:
        return wraps(f)(differentiated)
    except (AttributeError, TypeError):
        return differentiated


def _split_result(
    f: Callable[..., Any], result: Any, has_aux: bool, name: str
) -> tuple[Array, Any]:
    aux = None
    if has_aux:
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(
                f"{name} of {_name_of(f)}: has_aux: expected a pair of the value and anything "
                f"else, got {type(result).__name__}"
            )
        result, aux = result
    if not isinstance(result, Array):
        raise TypeError(
            f"{name} of {_name_of(f)}: the result: expected an Array without dimensions, got "
            f"{type(result).__name__}; {_advice(result)}"
        )
    if result.dtype.kind != "f" or result.shape != ():
        raise TypeError(
            f"{name} of {_name_of(f)}: the result: expected a real floating-point scalar, got "
            f"{result.dtype} of shape {result.shape}"
        )
    return result, aux


def _advice(result: Any) -> str:
    if isinstance(result, (tuple, list)):
        return "has_aux=True allows a pair"
    return "float() and item() make constants"


def vjp(f: Callable[..., Any], *args: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Compute what `f` does, and return a function for the product of a vector with its Jacobian.

    Parameters
    ----------
    f : callable
        Its result is an array, or a nest of arrays.
    *args
        Its arguments, as those that :func:`grad` differentiates by.

    Returns
    -------
    tuple
        f's result, and a function. That takes the gradient of a scalar with respect to the result,
        of its structure, shapes and types, and returns the tuple of those with respect to the
        arguments. It may be called several times.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        See :func:`value_and_grad`.

    Examples
    --------
    >>> import cyrt
    >>> y, pull = cyrt.vjp(lambda x: x**2, cyrt.asarray([1.0, 2.0]))
    >>> pull(cyrt.asarray([1.0, 10.0]))
    (Array([ 2., 40.], dtype=float32),)
    """
    if not callable(f):
        raise TypeError(f"vjp: f: expected a function, got {type(f).__name__}")
    name = f"vjp of {_name_of(f)}"
    inputs = _Inputs(list(args), [f"{name}: argument {i}" for i in range(len(args))])
    level = Level()
    try:
        result = f(*inputs.build([level.leaf(each) for each in inputs.leaves]))
        outputs, structure = trees.flatten(result, Array, f"{name}: the result")
        nodes = [level.node_of(each) for each in outputs]
        level.hold()
    finally:
        level.close()
    kinds = [(each.shape, each.dtype) for each in outputs]

    def pull(g: Any) -> tuple[Any, ...]:
        """Return the gradients of the arguments from that of the result."""
        found = structure.flatten(g, Array, "g")
        for each, (shape, dtype), path in zip(found, kinds, structure.paths("g"), strict=True):
            if each.shape != shape or each.dtype != dtype:
                raise ValueError(
                    f"{name}: {path}: expected shape {shape} and {dtype}, got {each.shape} and "
                    f"{each.dtype}"
                )
        return tuple(inputs.finish(level.differentiate(nodes, found, True), found))

    return result, pull


def stop_gradient(x: Any) -> Any:
    """Return an array, or the arrays of a nest, as constants: their gradients are zero.

    Parameters
    ----------
    x : Array, or nest of arrays

    Returns
    -------
    Array or nest
        Views of the arrays.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.grad(lambda x: x * cyrt.stop_gradient(x))(cyrt.asarray(3.0))
    Array(3., dtype=float32)
    """
    if isinstance(x, Array):
        return detach(x)
    leaves, structure = trees.flatten(x, Array, "stop_gradient: x")
    return structure.unflatten([detach(each) for each in leaves])
