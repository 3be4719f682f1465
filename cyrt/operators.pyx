# cython: c_api_binop_methods=True
"""The operators and methods of arrays, as the base class of Array.

An operator's method is called with its operands in their order, whichever of them is the array.
"""

cimport cython
from cpython.number cimport PyIndex_Check
from cpython.object cimport PyTypeObject
from cpython.type cimport PyType_Modified

import numpy as np

from cyrt.builtin.entry cimport op_code
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.taping cimport is_followed, recording


class _Functions:
    """The functions that methods call, as attributes."""

    __slots__ = (
        # Attributes of arrays.
        "Flags", "Flat", "get_by_arrays", "set_by_arrays",
        # Conversions.
        "asarray", "assign", "call_function", "call_ufunc", "format_of", "namespace",
        "repr_of", "text_of", "view_as", "weak_array", "zeros_like",
        # Elementwise functions.
        "clip", "conj", "imag", "real", "round", "sqrt",
        # Shapes, sorting, searching and indexing.
        "matrix_transpose", "argpartition", "choose", "compress", "partition", "put",
        "searchsorted", "sort", "stack",
        # The tape.
        "put_at", "record_put", "recorded",
        # Scans, sums and products.
        "cumprod", "cumsum", "dot", "trace",
    )


functions = _Functions()


def bind(dict module not None):
    """Set the functions that methods call to those that a module's dictionary has by their names.

    Raises
    ------
    TypeError
        A function is missing.
    """
    missing = [name for name in _Functions.__slots__ if name not in module]
    if missing:
        raise TypeError(f"bind: missing {missing}")
    for name in _Functions.__slots__:
        setattr(functions, name, module[name])


def attach(kind, *methods):
    """Make functions, or other objects with a name, attributes of a class; those of
    :class:`Operators` are the methods of arrays, and take their first operand by position."""
    cdef dict attributes = <dict>(<PyTypeObject*>kind).tp_dict
    for method in methods:
        attributes[method.__name__] = method
    PyType_Modified(kind)


cdef int ADD = op_code("add"), SUBTRACT = op_code("subtract"), MULTIPLY = op_code("multiply")
cdef int DIVIDE = op_code("divide"), FLOOR_DIVIDE = op_code("floor_divide")
cdef int REMAINDER = op_code("remainder"), POW = op_code("pow")
cdef int AND = op_code("bitwise_and"), OR = op_code("bitwise_or"), XOR = op_code("bitwise_xor")
cdef int LEFT = op_code("bitwise_left_shift"), RIGHT = op_code("bitwise_right_shift")
# In the order of Py_LT, Py_LE, ...
cdef int[6] comparisons
comparisons[:] = [op_code("less"), op_code("less_equal"), op_code("equal"), op_code("not_equal"),
                  op_code("greater"), op_code("greater_equal")]
cdef int NEGATIVE = op_code("negative"), POSITIVE = op_code("positive"), ABS = op_code("abs")
cdef int INVERT = op_code("bitwise_invert")

# NumPy's functions for the operators. If the left operand is a NumPy object, the operator calls
# NumPy's function, and that calls the Array on the right.
cdef dict comparisons_of_numpy = {
    each: op_code(each.__name__) for each in (np.less, np.less_equal, np.equal, np.not_equal,
                                              np.greater, np.greater_equal)}
cdef dict ops_of_numpy = comparisons_of_numpy | {
    np.add: ADD, np.subtract: SUBTRACT, np.multiply: MULTIPLY, np.divide: DIVIDE,
    np.floor_divide: FLOOR_DIVIDE, np.remainder: REMAINDER, np.power: POW,
    np.bitwise_and: AND, np.bitwise_or: OR, np.bitwise_xor: XOR,
    np.left_shift: LEFT, np.right_shift: RIGHT,
}
cdef object numpy_divmod = np.divmod, numpy_matmul = np.matmul
cdef object numpy_array = np.ndarray, numpy_number = np.generic


cdef object left_of_numpy(object ufunc, object left):
    """Return the number from which NumPy made an array for a comparison; other operands
    unchanged."""
    if ufunc in comparisons_of_numpy and left.ndim == 0 \
            and isinstance(left[()], numpy_number):
        return left[()]
    return left


cdef object kept(object x):
    """Return the argument of a function whose result overwrites x; a copy if a gradient needs x."""
    return x.copy() if recording and is_followed(x) else x


@cython.no_gc
cdef class Operators(Memory):
    """The operators and methods of :class:`cyrt.Array`."""

    __hash__ = None

    def __add__(left, right):
        return ops.binary(ADD, left, right, None)

    def __iadd__(self, other):
        return ops.binary(ADD, self, other, self)

    def __sub__(left, right):
        return ops.binary(SUBTRACT, left, right, None)

    def __isub__(self, other):
        return ops.binary(SUBTRACT, self, other, self)

    def __mul__(left, right):
        return ops.binary(MULTIPLY, left, right, None)

    def __imul__(self, other):
        return ops.binary(MULTIPLY, self, other, self)

    def __truediv__(left, right):
        return ops.binary(DIVIDE, left, right, None)

    def __itruediv__(self, other):
        return ops.binary(DIVIDE, self, other, self)

    def __floordiv__(left, right):
        return ops.binary(FLOOR_DIVIDE, left, right, None)

    def __ifloordiv__(self, other):
        return ops.binary(FLOOR_DIVIDE, self, other, self)

    def __mod__(left, right):
        return ops.binary(REMAINDER, left, right, None)

    def __imod__(self, other):
        return ops.binary(REMAINDER, self, other, self)

    def __divmod__(left, right):
        return left // right, left % right

    def __pow__(left, right, modulus):
        return NotImplemented if modulus is not None else ops.binary(POW, left, right, None)

    def __ipow__(self, other):
        return ops.binary(POW, self, other, self)

    def __and__(left, right):
        return ops.binary(AND, left, right, None)

    def __iand__(self, other):
        return ops.binary(AND, self, other, self)

    def __or__(left, right):
        return ops.binary(OR, left, right, None)

    def __ior__(self, other):
        return ops.binary(OR, self, other, self)

    def __xor__(left, right):
        return ops.binary(XOR, left, right, None)

    def __ixor__(self, other):
        return ops.binary(XOR, self, other, self)

    def __lshift__(left, right):
        return ops.binary(LEFT, left, right, None)

    def __ilshift__(self, other):
        return ops.binary(LEFT, self, other, self)

    def __rshift__(left, right):
        return ops.binary(RIGHT, left, right, None)

    def __irshift__(self, other):
        return ops.binary(RIGHT, self, other, self)

    def __matmul__(left, right):
        other = right if isinstance(left, Operators) else left
        if isinstance(other, Operators) or hasattr(other, "__array__"):
            return ops.matmul(left, right, None, None)
        return NotImplemented

    def __imatmul__(self, other):
        ops.assign(self, ops.matmul(self, other, None, None))
        return self

    def __richcmp__(self, other, int order):
        return ops.binary(comparisons[order], self, other, None)

    def __neg__(self):
        return ops.unary(NEGATIVE, self, None)

    def __pos__(self):
        return ops.unary(POSITIVE, self, None)

    def __abs__(self):
        return ops.unary(ABS, self, None)

    def __invert__(self):
        return ops.unary(INVERT, self, None)

    def __array_ufunc__(self, ufunc, method, *operands, **keywords):
        """Compute an operator whose left operand is NumPy's, or call cyrt's function."""
        if not keywords and len(operands) == 2 and method == "__call__":
            left = operands[0]
            if isinstance(left, numpy_array):
                left = left_of_numpy(ufunc, left)
            elif not isinstance(left, numpy_number):
                return functions.call_ufunc(ufunc, method, operands, keywords)
            op = ops_of_numpy.get(ufunc)
            if op is not None:
                return ops.binary(op, left, self, None)
            if ufunc is numpy_divmod:
                return left // self, left % self
            if ufunc is numpy_matmul:
                return ops.matmul(left, self, None, None)
        return functions.call_ufunc(ufunc, method, operands, keywords)

    def cumsum(self, axis=None, dtype=None, out=None):
        """See :func:`cyrt.cumsum`."""
        return functions.cumsum(self, axis, dtype, out)

    def cumprod(self, axis=None, dtype=None, out=None):
        """See :func:`cyrt.cumprod`."""
        return functions.cumprod(self, axis, dtype, out)

    def trace(self, offset=0, axis1=0, axis2=1, dtype=None):
        """See :func:`cyrt.trace`."""
        return functions.trace(self, offset, axis1, axis2, dtype)

    def dot(self, other, out=None):
        """See :func:`cyrt.dot`."""
        return functions.dot(self, other, out)

    def choose(self, choices, mode="raise"):
        """See :func:`cyrt.choose`."""
        return functions.choose(self, choices, mode)

    def argpartition(self, kth, axis=-1):
        """See :func:`cyrt.argpartition`."""
        return functions.argpartition(self, kth, axis)

    def clip(self, min=None, max=None, out=None):
        """See :func:`cyrt.clip`."""
        return functions.clip(self, min, max, out)

    def compress(self, condition, axis=None):
        """See :func:`cyrt.compress`."""
        return functions.compress(condition, self, axis)

    def conj(self):
        """See :func:`cyrt.conj`."""
        return functions.conj(self)

    def conjugate(self):
        """See :func:`cyrt.conj`."""
        return functions.conj(self)

    def fill(self, value):
        """Write one number into all elements."""
        functions.assign(self, value)

    def get(self):
        """Copy the values to a NumPy array: CuPy's name of :meth:`Array.numpy`."""
        return self.numpy()

    def flatten(self, order="C"):
        """Return a one-dimensional copy; see :func:`cyrt.reshape`."""
        return ops.reshape("flatten", self, (-1,), order, True)

    def partition(self, kth, axis=-1):
        """Partition the elements around the k-th one, in place; see :func:`cyrt.partition`."""
        functions.assign(self, functions.partition(kept(self), kth, axis))

    def put(self, indices, values, mode="raise"):
        """See :func:`cyrt.put`."""
        functions.put(self, indices, values, mode)

    @cython.binding(False)      # the interpreter makes one tuple of the arguments, not two
    def reshape(self, *shape, order="C", copy=None):
        """reshape($self, /, *shape, order='C', copy=None)\n--\n
        See :func:`cyrt.reshape`. The shape is one tuple, or several ints."""
        if not shape:
            raise TypeError("reshape: expected a shape, a tuple or several ints")
        return ops.reshape("reshape", self, shape[0] if len(shape) == 1 else shape, order, copy)

    def round(self, decimals=0):
        """See :func:`cyrt.round`: round to decimal places, halves to the even number."""
        return functions.round(self, decimals)

    def searchsorted(self, values, side="left", sorter=None):
        """See :func:`cyrt.searchsorted`."""
        return functions.searchsorted(self, values, side, sorter)

    def sort(self, axis=-1, kind=None, *, descending=False, stable=True):
        """Sort the elements along an axis, in place; see :func:`cyrt.sort`."""
        if axis is None:
            raise TypeError("sort: axis: expected an int, got None; cyrt.sort(x, None) returns the "
                            "sorted elements as a vector")
        functions.assign(self, functions.sort(kept(self), axis, kind, descending=descending,
                                              stable=stable))

    @cython.binding(False)      # the interpreter makes one tuple of the arguments, not two
    def transpose(self, *axes):
        """transpose($self, /, *axes)\n--\n
        Return a view with the dimensions in the order of the axes, by default in reverse order. The
        axes are one tuple, or several ints. See :func:`cyrt.permute_dims`."""
        order = axes or None
        if len(axes) == 1 and not PyIndex_Check(axes[0]):
            order = axes[0]
        return self.T if order is None else ops.permute_dims("transpose", self, order)

    @cython.binding(False)      # its signature is the documented one
    def view(self, dtype=None, *sizes):
        """view($self, /, dtype=None)\n--\n
        Return a view of the array; with `dtype`, a view of its bytes as elements of that type.

        If the sizes of the types differ, the last dimension becomes longer or shorter.

        Raises
        ------
        ValueError
            The last dimension, the strides or the address do not fit elements of the new size.
        """
        if sizes:       # as PyTorch's method takes them
            dtype = dtype, *sizes
        same = dtype is None or dtype is type(self)
        return functions.view_as(self, self.dtype if same else dtype)
