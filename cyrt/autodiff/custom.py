"""Functions with their own gradients, and functions that are computed again for a gradient."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper, wraps
from typing import Any

from cyrt import tape, trees
from cyrt.autodiff.compositions import gradients_at
from cyrt.ndarray import Array
from cyrt.ops.copy import copy
from cyrt.ops.creation import zeros
from cyrt.ops.views import layout
from cyrt.random import keys

_ARRAY = object()


class _Arguments:
    """Arguments of a function, of which arrays are taken out."""

    __slots__ = ("arrays", "leaves", "others", "structures")

    def __init__(self, arguments: tuple[Any, ...], name: str) -> None:
        self.arrays: list[Array] = []
        self.others: list[Any] = list(arguments)
        self.leaves: list[list[Any]] = []  # _ARRAY: it is taken out
        self.structures: list[Any] = []  # None: the argument has no arrays
        for i, each in enumerate(arguments):
            try:
                leaves, structure = trees.flatten(each, trees.AnyLeaf, f"{name}: argument {i}")
            except ValueError:
                leaves, structure = [], None
            arrays = [leaf for leaf in leaves if isinstance(leaf, Array)]
            self.arrays += arrays
            self.structures.append(structure if arrays else None)
            self.leaves.append([_ARRAY if isinstance(leaf, Array) else leaf for leaf in leaves])

    def build(self, arrays: list[Any]) -> list[Any]:
        """Return the arguments with other arrays."""
        built, rest = [], iter(arrays)
        for structure, leaves, other in zip(self.structures, self.leaves, self.others, strict=True):
            if structure is None:
                built.append(other)
            else:
                built.append(
                    structure.unflatten([next(rest) if each is _ARRAY else each for each in leaves])
                )
        return built


class _Results:
    """Results of a function: arrays, or nests of them."""

    __slots__ = ("arrays", "kinds", "structure")

    def __init__(self, result: Any, inputs: list[Array], name: str) -> None:
        arrays, self.structure = trees.flatten(result, Array, f"{name}: the result")
        own = {id(each) for each in inputs}
        self.arrays = [tape.detach(each) if id(each) in own else each for each in arrays]
        self.kinds = [(each.shape, each.dtype, each.device) for each in arrays]

    def fill(self, g: list[Array | None]) -> Any:
        """Return the nest of gradients, which are contiguous, with zeros where there is none."""
        return self.structure.unflatten(
            [
                zeros(shape, dtype, device=device)
                if each is None
                else each
                if layout(each)[0]
                else copy(each)
                for each, (shape, dtype, device) in zip(g, self.kinds, strict=True)
            ]
        )


# -- gradients of one's own ------------------------------------------------------------------------


class custom_vjp:  # the name of JAX's class
    """Make a function that is differentiated by a rule of its own.

    A function that launches your own kernels gets a gradient in this way. It is called as before;
    where a gradient is computed, the functions that :meth:`defvjp` has set are called instead.

    Parameters
    ----------
    f : callable
        Its arguments are arrays, nests, or other objects; arrays, alone or in nests, have
        gradients. Its result is an array or a nest of arrays. It uses no other arrays that depend
        on the arguments of a function that is differentiated, and has no keyword-only parameters.

    Notes
    -----
    This is JAX's ``jax.custom_vjp``.

    Examples
    --------
    >>> import cyrt
    >>> @cyrt.custom_vjp
    ... def clipped(x):
    ...     return cyrt.clip(x, -1.0, 1.0)
    >>> clipped.defvjp(lambda x: (clipped(x), None), lambda _, g: (g,))
    >>> cyrt.grad(lambda x: clipped(x).sum())(cyrt.asarray([0.5, 3.0]))
    Array([1., 1.], dtype=float32)
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise TypeError(f"custom_vjp: f: expected a function, got {type(f).__name__}")
        self._f = f
        self._name = getattr(f, "__name__", repr(f))
        self._rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        try:
            self._signature: inspect.Signature | None = inspect.signature(f)
        except (TypeError, ValueError):
            self._signature = None  # a function of C, which does not tell it
        kinds = self._signature.parameters.values() if self._signature else ()
        if any(each.kind in (each.KEYWORD_ONLY, each.VAR_KEYWORD) for each in kinds):
            raise TypeError(
                f"custom_vjp: {self._name}: parameters for keywords only are not supported; make "
                "them positional"
            )
        update_wrapper(self, f)

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Set the rule.

        Parameters
        ----------
        forward : callable
            It takes the function's arguments, and returns a pair of the function's result and
            whatever `backward` needs. Arrays in it, alone or in nests, must not be written before
            `backward` has run; this is checked.
        backward : callable
            It takes what `forward` kept, and the gradient of the result. It returns a tuple with
            the gradient of each argument, also of those with defaults. A gradient has the
            structure, the shapes and the types of its argument; None stands for zero, and in a
            nest for what is not an array.
        """
        for name, each in (("forward", forward), ("backward", backward)):
            if not callable(each):
                raise TypeError(
                    f"defvjp of {self._name}: {name}: expected a function, got "
                    f"{type(each).__name__}"
                )
        self._rules = forward, backward

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if self._signature is not None and (
            keywords or len(args) < len(self._signature.parameters)
        ):
            bound = self._signature.bind(*args, **keywords)
            bound.apply_defaults()
            args, keywords = bound.args, {}
        arguments = _Arguments(args, self._name)
        before = tape.num_nodes()
        if not tape.follows(arguments.arrays):
            result = self._f(*args, **keywords)
            _refuse_closure(self._name, before, [])  # its rule would not be used
            return result
        if keywords:
            raise TypeError(f"{self._name}: keywords have no gradient; pass positional arguments")
        if self._rules is None:
            raise TypeError(f"{self._name}: its gradient is not defined; call defvjp first")
        call = _Call(self._name, *self._rules, arguments)
        call.run([tape.detach(each) for each in arguments.arrays])
        _refuse_closure(self._name, before, call.results.arrays)
        found = tape.recorded(_called, (arguments.arrays, call))
        return call.results.structure.unflatten(found)


class _Call:
    """One call of a function with a rule of its own."""

    results: _Results
    used: list[keys.Key]

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        backward: Callable[..., Any],
        arguments: _Arguments,
    ) -> None:
        self.name, self.forward, self.backward = name, forward, backward
        self.arguments = arguments
        self.kept: Any = None
        # Outer levels differentiate what is kept: it is computed again where they record it.
        self.again = tape.num_levels() > 1
        self.versions = 0

    def run(self, constants: list[Array]) -> None:
        with keys.noted() as self.used:
            found = self.forward(*self.arguments.build(constants))
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(
                f"{self.name}: forward: expected a pair of the result and what is kept, got "
                f"{type(found).__name__}"
            )
        self.results = _Results(found[0], constants, self.name)
        self.kept = found[1]
        if not self.again:
            self.arguments.others = [None] * len(self.arguments.others)
        self.versions = tape.versions_of((self.kept, self.arguments.others))

    def gradients(self, g: list[Array | None]) -> list[Array | None]:
        kept = self.kept
        if tape.versions_of((kept, self.arguments.others)) != self.versions:
            raise RuntimeError(
                f"{self.name}: what forward kept for the gradient{' or an argument' * self.again} "
                "was written in place since"
            )
        if self.again:
            with keys.used_again(self.used):
                kept = self.forward(*self.arguments.others)[1]
        found = self.backward(kept, self.results.fill(g))
        structures = self.arguments.structures
        if not isinstance(found, (tuple, list)) or len(found) != len(structures):
            got = len(found) if isinstance(found, (tuple, list)) else type(found).__name__
            raise TypeError(
                f"{self.name}: backward: expected a tuple of {len(structures)} gradients, one for "
                f"each argument, got {got}"
            )
        gradients: list[Array | None] = []
        for i, (each, structure) in enumerate(zip(found, structures, strict=True)):
            if structure is None:
                continue
            of_leaves = [None] * structure.num_leaves
            if each is not None:
                of_leaves = structure.flatten(
                    each, (Array, type(None)), f"{self.name}: backward: gradient {i}"
                )
            gradients += [
                gradient
                for gradient, leaf in zip(of_leaves, self.arguments.leaves[i], strict=True)
                if leaf is _ARRAY
            ]
        for i, (gradient, own) in enumerate(zip(gradients, self.arguments.arrays, strict=True)):
            if gradient is not None and (
                gradient.shape != own.shape or gradient.dtype != own.dtype
            ):
                raise ValueError(
                    f"{self.name}: backward: the gradient of array {i}: expected shape {own.shape} "
                    f"and {own.dtype}, got {gradient.shape} and {gradient.dtype}"
                )
        return gradients


def _called(arrays: list[Array], call: _Call) -> list[Array]:
    found, call.results.arrays = call.results.arrays, []
    return found


def _refuse_closure(name: str, before: int, results: list[Array]) -> None:
    """Raise TypeError if a function of constants has appended nodes that are not of a level of its
    own, or if its results are followed."""
    if tape.has_followed_since(before) or tape.follows(results):
        raise TypeError(
            f"{name}: the function uses an array that depends on the arguments of the function "
            "that is differentiated, and is not an argument of its own; pass it as one, alone or "
            "in a nest"
        )


# -- computing again -------------------------------------------------------------------------------


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that keeps only its arguments for its gradient.

    Where the gradient is computed, `f` is called again. This saves memory, and costs time [1]_. The
    second call must compute the same, so `f` must not depend on variables that change in between.
    It gets the same random numbers again, from the process's sequence or from a
    :class:`cyrt.random.Generator`, if the thread that calls `f` draws them; the numbers that other
    calls draw are not affected.

    Parameters
    ----------
    f : callable
        Its arguments are arrays, nests, or other objects; arrays, alone or in nests, have
        gradients. Its result is an array or a nest of arrays. It uses no other arrays that depend
        on the arguments of a function that is differentiated.

    Returns
    -------
    callable
        A function of the same arguments and result.

    Raises
    ------
    RuntimeError
        While the gradient is computed, `f` draws random numbers in more or fewer calls than it did
        the first time.

    References
    ----------
    .. [1] T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training Deep Nets with Sublinear Memory Cost",
       2016, arXiv:1604.06174.

    Examples
    --------
    >>> import cyrt
    >>> f = cyrt.checkpoint(lambda x: cyrt.sum(cyrt.sin(cyrt.exp(x))))
    >>> cyrt.grad(f)(cyrt.asarray([0.0])).round(3)
    Array([0.54], dtype=float32)
    """
    if not callable(f):
        raise TypeError(f"checkpoint: f: expected a function, got {type(f).__name__}")
    name = f"checkpoint of {getattr(f, '__name__', repr(f))}"

    @wraps(f)
    def call(*args: Any, **keywords: Any) -> Any:
        arguments = _Arguments((*args, *keywords.values()), name)
        if not tape.follows(arguments.arrays):
            return f(*args, **keywords)

        def computed(arrays: list[Array]) -> Any:
            values = arguments.build(arrays)
            named = dict(zip(keywords, values[len(args) :], strict=True))
            return f(*values[: len(args)], **named)

        before = tape.num_nodes()
        constants = [tape.detach(each) for each in arguments.arrays]
        with keys.noted() as used:
            results = _Results(computed(constants), constants, name)
        _refuse_closure(name, before, results.arrays)

        def again(*arrays: Array) -> Any:
            with keys.used_again(used):
                return computed(list(arrays))

        return results.structure.unflatten(
            tape.recorded(_computed, (arguments.arrays, results, again))
        )

    return call


def _computed(arrays: list[Array], results: _Results, again: Callable[..., Any]) -> list[Array]:
    found, results.arrays = results.arrays, []
    return found


def _compute_again(
    g: list[Array | None], arrays: list[Array], results: _Results, again: Callable[..., Any]
) -> list[Array | None]:
    indices = [i for i, each in enumerate(arrays) if each.dtype.kind in "fc"]
    return gradients_at(indices, again, arrays, lambda: results.fill(g))


_called.__name__, _computed.__name__ = "custom_vjp", "checkpoint"  # their names in messages
tape.register(_called, "arrays", lambda g, call: call.gradients(g), sequence=True)
tape.register(_computed, "arrays", _compute_again, sequence=True)
