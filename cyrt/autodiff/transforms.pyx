# cython: boundscheck=True
"""The gradients of functions."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport _Py_REFCNT

from functools import wraps
from operator import index

import numpy as np

from cyrt.error_text import show
from cyrt.ndarray cimport Array, device_of, shape_of
from cyrt.ops.creation import asarray, ones, zeros
from cyrt.ops.copy import copy
from cyrt.tape cimport FIRST_FLOAT, Level
from cyrt.tape import detach
from cyrt.trees cimport Structure, append_like
from cyrt.trees import flatten

cdef extern from "Python.h":
    PyObject* PyList_GET_ITEM(object items, Py_ssize_t i)   # borrowed

cdef tuple LEAVES = (Array, float)


cdef str name_of(object function):
    return function.__name__ if hasattr(function, "__name__") else repr(function)


# -- arguments -------------------------------------------------------------------------------------


cdef tuple read_argnums(object argnums, str name):
    cdef tuple numbers = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    for each in numbers:
        if isinstance(each, (bool, Array, np.ndarray)) or not hasattr(each, "__index__"):
            if isinstance(each, (str, bool, type(None))):
                raise TypeError(
                    f"{name}: argnums: expected an int or a tuple of ints, got {show(argnums)}")
            raise TypeError(
                f"{name}: argnums: expected an int or a tuple of ints, got {type(each).__name__}; "
                f"{name}(f) is a function, which takes the arguments: {name}(f)(x)")
    return tuple([index(each) for each in numbers])


cdef list indices_of(tuple argnums, Py_ssize_t count, str name):
    """Return the positions of the arguments by which to differentiate."""
    cdef list indices = []
    cdef Py_ssize_t each
    for each in argnums:
        if not -count <= each < count:
            raise ValueError(
                f"{name}: argnums: {each} is out of range for {count} positional arguments")
        each += count if each < 0 else 0
        if each in indices:
            raise ValueError(f"{name}: argnums: {argnums} names an argument twice")
        indices.append(each)
    return indices


@cython.final
cdef class Inputs:
    """The arguments by which a function is differentiated, which are nests of arrays."""
    cdef object f
    cdef str name               # the public function that differentiates f
    cdef list leaves
    cdef list structures        # one an argument; None: it is an array

    cdef str path(self, Py_ssize_t number):
        """Return the name of an argument in messages."""
        return f"{self.name} of {name_of(self.f)}: argument {number}"

    cdef int add(self, object nest, Structure known, Py_ssize_t number) except -1:
        """Append an argument, which may have the structure that it had in an earlier call."""
        cdef Py_ssize_t i, first = len(self.leaves)
        if isinstance(nest, Array):
            known = None
            self.leaves.append(nest)
        elif known is None or not append_like(known, nest, LEAVES, self.leaves, True):
            del self.leaves[first:]
            found, known = flatten(nest, LEAVES, self.path(number))
            self.leaves += found
        self.structures.append(known)
        for i in range(first, len(self.leaves)):
            if isinstance(self.leaves[i], float):
                self.leaves[i] = asarray(self.leaves[i])
            elif (<Array>self.leaves[i]).code < FIRST_FLOAT:
                path = self.path(number)
                raise TypeError(
                    f"{path if known is None else known.paths(path)[i - first]}: expected an array "
                    f"of a floating-point type, got {self.leaves[i].dtype} of shape "
                    f"{self.leaves[i].shape}")
        return 0

    cdef list build(self, list leaves):
        """Return the nests with other leaves."""
        cdef list nests = []
        cdef Py_ssize_t first = 0
        cdef Structure structure
        for structure in self.structures:
            if structure is None:
                nests.append(leaves[first])
                first += 1
            else:
                nests.append(structure.unflatten(leaves[first:first + structure.num_leaves]))
                first += structure.num_leaves
        return nests

    cdef list follow(self, Level level):
        """Return the nests of arrays that a level of the tape follows."""
        return self.build([level.leaf(each) for each in self.leaves])

    cdef list finish(self, list gradients):
        """Return the nests of gradients: arrays of their own memory, to which nothing else refers.
        None is zero."""
        cdef Array leaf
        cdef Py_ssize_t i
        for i in range(len(gradients)):
            if gradients[i] is None:
                leaf = <Array>self.leaves[i]
                gradients[i] = zeros(shape_of(leaf), leaf.dtype, device=device_of(leaf))
            elif not is_alone(gradients, i):
                gradients[i] = copy(gradients[i])
        return self.build(gradients)


cdef Inputs new_inputs(object f, str name):
    cdef Inputs inputs = Inputs.__new__(Inputs)
    inputs.f, inputs.name, inputs.leaves, inputs.structures = f, name, [], []
    return inputs


cdef bint is_alone(list gradients, Py_ssize_t i) noexcept:
    """Return whether a gradient is a dense array to which the list alone refers."""
    cdef PyObject* gradient = PyList_GET_ITEM(gradients, i)
    return _Py_REFCNT(gradient) == 1 and (<Array>gradient).dense \
        and (<Array>gradient).base is None


# -- scalars ---------------------------------------------------------------------------------------


@cython.final
cdef class Scalar:
    """A function whose result is a scalar, and how it is differentiated."""
    cdef object f
    cdef str name
    cdef tuple argnums
    cdef bint several, has_aux, with_value
    cdef list structures        # those of the arguments of the last call; None: there was none

    cdef object differentiate(self, tuple args, dict keywords):
        cdef list indices = indices_of(self.argnums, len(args), self.name), own = list(args)
        cdef list known = self.structures, nests, gradients
        cdef Inputs inputs = new_inputs(self.f, self.name)
        cdef Level level
        cdef Py_ssize_t i
        for i in range(len(indices)):
            inputs.add(args[indices[i]], None if known is None else known[i], indices[i])
        self.structures = inputs.structures
        level = Level.__new__(Level)
        try:
            nests = inputs.follow(level)
            for i in range(len(indices)):
                own[indices[i]] = nests[i]
            value, aux = self.split(self.f(*own, **keywords))
            node = level.find_node(value)
            level.stop_recording()
            gradients = [None] * len(inputs.leaves)
            if node >= 0:
                gradients = level.differentiate(
                    [node], [ones((), value.dtype, device=device_of(<Array>value))], False)
            nests = inputs.finish(gradients)
        finally:
            level.end_level()
        gradient = tuple(nests) if self.several else nests[0]
        if self.with_value:
            return ((value, aux), gradient) if self.has_aux else (value, gradient)
        return (gradient, aux) if self.has_aux else gradient

    cdef tuple split(self, object result):
        """Return the scalar, and what f returns beside it."""
        cdef object aux = None
        if self.has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise TypeError(f"{self.name} of {name_of(self.f)}: has_aux: expected a pair of "
                                f"the value and anything else, got {type(result).__name__}")
            result, aux = result
        if not isinstance(result, Array):
            advice = "has_aux=True allows a pair" if isinstance(result, (tuple, list)) \
                else "float() and item() make constants"
            raise TypeError(f"{self.name} of {name_of(self.f)}: the result: expected an Array "
                            f"without dimensions, got {type(result).__name__}; {advice}")
        if (<Array>result).ndim_ or (<Array>result).dtype.kind != "f":
            raise TypeError(f"{self.name} of {name_of(self.f)}: the result: expected a real "
                            f"floating-point scalar, got {result.dtype} of shape {result.shape}")
        return result, aux


cdef object differentiated(object f, object argnums, bint has_aux, str name, bint with_value):
    cdef Scalar scalar = Scalar.__new__(Scalar)
    if not callable(f):
        raise TypeError(f"{name}: f: expected a function, got {type(f).__name__}")
    scalar.f, scalar.name, scalar.argnums = f, name, read_argnums(argnums, name)
    scalar.several = isinstance(argnums, (tuple, list))
    scalar.has_aux, scalar.with_value = has_aux, with_value

    def call(*args, **keywords):
        return scalar.differentiate(args, keywords)

    try:
        return wraps(f)(call)
    except (AttributeError, TypeError):
        return call


def value_and_grad(f, argnums=0, has_aux=False):
    """Return a function that computes what `f` does, and its gradient.

    Parameters
    ----------
    f : callable
        Its result is a real floating-point scalar, or with `has_aux` a pair of it and anything
        else.
    argnums : int or tuple of int
        The indices of the positional arguments by which to differentiate: arrays of floating-point
        types, or nests of them (dict, list, tuple, named tuple and dataclass). A float counts as an
        array.
    has_aux : bool
        Whether f's result is a pair, of which only the first part is differentiated.

    Returns
    -------
    callable
        It takes f's arguments, and returns ``(value, gradient)``. The gradient has the structure
        of the argument; if `argnums` is a tuple, it is a tuple of the gradients of these arguments.
        With `has_aux` the value is f's pair.

    Raises
    ------
    TypeError
        An argument is neither an array of a floating-point type nor a nest of such arrays, f's
        result is not such a scalar, or f uses a function that has no gradient.
    ValueError
        There is no argument of that number.
    RuntimeError
        f has overwritten values that its gradient needs.

    Notes
    -----
    The method is reverse-mode differentiation [1]_: f runs once, and each operation on an array
    that depends on the arguments is recorded. The arguments are those of JAX's
    ``jax.value_and_grad``. For complex arguments the gradient is that of JAX, too:
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
    return differentiated(f, argnums, has_aux, "value_and_grad", True)


def grad(f, argnums=0, has_aux=False):
    """Return a function that computes the gradient of `f`.

    The parameters and errors are those of :func:`value_and_grad`.

    Returns
    -------
    callable
        It takes f's arguments, and returns the gradient; with `has_aux` a pair of the gradient and
        the second part of f's result.

    Notes
    -----
    The arguments are those of JAX's ``jax.grad``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.grad(cyrt.sin)(cyrt.asarray(0.0))
    Array(1., dtype=float32)
    >>> cyrt.grad(cyrt.grad(lambda x: x**3))(cyrt.asarray(2.0))
    Array(12., dtype=float32)
    """
    return differentiated(f, argnums, has_aux, "grad", False)


def vjp(f, *args):
    """Compute what `f` does, and return a function for the product of a vector with its Jacobian.

    Parameters
    ----------
    f : callable
        Its result is an array, or a nest of arrays.
    *args
        The arguments of f: arrays of floating-point types, or nests of them, as for
        :func:`value_and_grad`.

    Returns
    -------
    tuple
        The result of f, and a function. The function takes the gradient of some scalar with respect
        to f's result, with the result's structure, shapes and types. It returns a tuple of the
        gradients of that scalar with respect to the arguments. It may be called several times.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        See :func:`value_and_grad`.

    Notes
    -----
    This is JAX's ``jax.vjp`` without ``has_aux``.

    Examples
    --------
    >>> import cyrt
    >>> y, pull = cyrt.vjp(lambda x: x**2, cyrt.asarray([1.0, 2.0]))
    >>> pull(cyrt.asarray([1.0, 10.0]))
    (Array([ 2., 40.], dtype=float32),)
    """
    cdef Inputs inputs = new_inputs(f, "vjp")
    cdef Level level
    cdef Py_ssize_t i
    if not callable(f):
        raise TypeError(f"vjp: f: expected a function, got {type(f).__name__}")
    for i in range(len(args)):
        inputs.add(args[i], None, i)
    name = f"vjp of {name_of(f)}"
    level = Level.__new__(Level)
    try:
        result = f(*inputs.follow(level))
        outputs, structure = flatten(result, Array, f"{name}: the result")
        nodes = [level.find_node(each) for each in outputs]
        level.hold()
    finally:
        level.end_level()
    kinds = [(each.shape, each.dtype) for each in outputs]

    def pull(g):
        """Return the gradients of the arguments from that of the result."""
        found = structure.flatten(g, Array, "g")
        for each, (shape, dtype), path in zip(found, kinds, structure.paths("g")):
            if each.shape != shape or each.dtype != dtype:
                raise ValueError(
                    f"{name}: {path}: expected shape {shape} and {dtype}, got {each.shape} and "
                    f"{each.dtype}")
        return tuple(inputs.finish(level.differentiate(nodes, found, True)))

    return result, pull


def stop_gradient(x):
    """Return an array, or the arrays of a nest, as constants: their gradients are zero.

    Parameters
    ----------
    x : Array, or nest of arrays

    Returns
    -------
    Array or nest
        Views of the arrays, or copies of those that the differentiated function has written.

    Notes
    -----
    This is JAX's ``jax.lax.stop_gradient``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.grad(lambda x: x * cyrt.stop_gradient(x))(cyrt.asarray(3.0))
    Array(3., dtype=float32)
    """
    if isinstance(x, Array):
        return detach(x)
    leaves, structure = flatten(x, Array, "stop_gradient: x")
    return structure.unflatten([detach(each) for each in leaves])
