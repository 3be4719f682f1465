"""Operations of three operands: selection by a condition, bounds, operations of the catalogue."""

from cpython.bool cimport PyBool_Check
from cpython.long cimport PyLong_Check
from cpython.object cimport PyObject

import numpy as np

from cyrt.dtypes import DTYPES
from cyrt.builtin.entry cimport op_code
from cyrt.ndarray cimport Array
from cyrt.operators import functions
from cyrt.ops.arguments import refuse_array
from cyrt.ops.copy cimport check_device
from cyrt.ops.elementwise cimport (
    choose_where, record, refuse_argument, side_of, unary,
)
from cyrt.ops.promotion cimport (
    BOOL, FLOAT32, code_of_number, is_number, kinds, outputs, promote, promote_number,
    python_number, refuse_type,
)
from cyrt.ops.search import nonzero
from cyrt.ops.tensors cimport view_operand, view_output
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int CLIP = op_code("clip"), POSITIVE = op_code("positive")
cdef int MAXIMUM = op_code("maximum"), MINIMUM = op_code("minimum")


def where(condition, x1=None, x2=None, /):
    """Choose elements of x1 if the condition is true, and of x2 otherwise.

    With the condition alone, the result is that of :func:`cyrt.nonzero`.

    Parameters
    ----------
    condition : Array, number or sequence of numbers
        The condition; an element that is not zero is true.
    x1, x2 : Array, number or sequence of numbers
        The elements to choose from; both or neither.

    Returns
    -------
    Array
        An array of the broadcast shape, and of the type to which x1 and x2 promote.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([-1.0, 2.0, -3.0])
    >>> cyrt.where(x > 0, x, 0.0)
    Array([0., 2., 0.], dtype=float32)
    """
    cdef int code
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise TypeError("where: expected x1 and x2, or neither, got one of them")
    condition, x1, x2 = view_operand(condition), view_operand(x1), view_operand(x2)
    if not isinstance(condition, Array):
        like = x1 if isinstance(x1, Array) else x2
        if not isinstance(like, Array) or not (is_number(condition)
                                               or isinstance(condition, (list, tuple))):
            refuse_array(condition, "where: condition")
        condition = functions.asarray(condition, dtype="bool", device=like.device)
    x1, x2 = convert_choice("where", x1, x2, condition), convert_choice("where", x2, x1, condition)
    code = joint_code(x1, x2)
    return choose_where(condition, x1, x2, code, None)


cdef object convert_choice(str name, object x, object other, Array like):
    """Return an Array or a number; a sequence becomes an Array of weak numbers on a device."""
    if isinstance(x, Array) or is_number(x):
        return x
    if not isinstance(x, (list, tuple)):
        refuse_array(x, name)
    if isinstance(other, Array):
        return functions.weak_array(other, x)
    return functions.asarray(x, device=like.device)


cdef int is_beyond(int code, object value) except -2:
    """Return -1 for an int below the range of an integer type, 1 for an int above it; 0 for all
    other values."""
    if (kinds[code] != c"i" and kinds[code] != c"u") or not is_number(value):
        return 0
    value = python_number(value)
    if not PyLong_Check(value) or PyBool_Check(value):
        return 0
    return side_of(code, value)


cdef object clip_bound(int code, object bound):
    """Clip a bound of another integer type to the range of the result's type: a cast alone would
    wrap."""
    cdef Array array
    if not isinstance(bound, Array) or kinds[code] not in b"iu" or (<Array>bound).code == code:
        return bound
    array = bound
    if kinds[array.code] not in b"iu":
        return bound
    limits = np.iinfo(DTYPES[code].numpy)
    return clip(array, int(limits.min), int(limits.max))


cdef int joint_code(object a, object b) except -1:
    if isinstance(a, Array):
        if isinstance(b, Array):
            return promote((<Array>a).code, (<Array>b).code)
        return promote_number((<Array>a).code, python_number(b))
    if isinstance(b, Array):
        return promote_number((<Array>b).code, python_number(a))
    return promote_number(code_of_number(python_number(a)), python_number(b))


cdef object clip_number(object x, object min, object max, object out):
    """Clip a number; the result is a NumPy number."""
    for each in (x, min, max):
        if each is not None and not is_number(each):
            refuse_array(each, "clip")
    if x is None or out is not None:
        refuse_argument("clip", x)
    with np.errstate(all="ignore"):
        return np.clip(x, min, max)


def clip(x, /, min=None, max=None, out=None, *, a_min=None, a_max=None):
    """Limit elements to the range between two bounds. If min is greater than max, the result is
    max.

    Parameters
    ----------
    x : Array or number
        An array of bool or a real type. If no operand is an array, the result is a NumPy number.
    min, max : Array, number or sequence of numbers, optional
        The bounds. If x has an integer type, an int `min` below the range of that type and an int
        `max` above it have no effect; elements of an Array of integers are clipped to the range.
        Default: no bound.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind; may be x.
    a_min, a_max : as min and max
        NumPy's older names of the bounds.

    Returns
    -------
    Array
        An array of the broadcast shape and of x's type. If x is bool, or of an integer type with a
        bound of a floating-point type, the result has the type to which all promote.

    Raises
    ------
    TypeError
        An operand is complex, or is a NumPy array.
    OverflowError
        An int `min` is above the range of x's integer type, or an int `max` below it.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.clip(cyrt.asarray([-2, 0, 5]), 0, 3)
    Array([0, 0, 3], dtype=int64)
    """
    cdef PyObject* operands[3]
    cdef Array array
    cdef int code, i
    if out is not None and not isinstance(out, Array):
        clip(x, min, max, view_output("clip", out), a_min=a_min, a_max=a_max)
        return out
    if min is not None and a_min is not None or max is not None and a_max is not None:
        raise ValueError("clip: a_min and a_max are other names of min and max: expected one of "
                         "them")
    min = a_min if min is None else min
    max = a_max if max is None else max
    x, min, max = view_operand(x), view_operand(min), view_operand(max)
    if not isinstance(x, Array):
        like = min if isinstance(min, Array) else max
        if not is_number(x) or not isinstance(like, Array):
            return clip_number(x, min, max, out)
        x = functions.weak_array(like, x)
    array = x
    for name, each in (("min", min), ("max", max), ("out", out)):
        if isinstance(each, Array):
            check_device(each, array, "clip", name)
    min = None if min is None else convert_choice("clip", min, array, array)
    max = None if max is None else convert_choice("clip", max, array, array)
    if recording and (is_followed(x) or is_followed(min) or is_followed(max) or is_followed(out)):
        return record_call(clip, (x, min, max, out, None, None))
    code = array.code
    if code == BOOL:        # the type that all promote to
        for each in (min, max):
            if isinstance(each, Array):
                code = promote(code, (<Array>each).code)
            elif each is not None:
                code = promote_number(code, python_number(each))
    if code == BOOL and (min is not None or max is not None):
        if min is not None and max is not None:
            operands[0], operands[1] = <PyObject*>x, <PyObject*>min
            x, min = record(MAXIMUM, code, 2, operands, None), None
    elif outputs[CLIP][code] < 0:
        refuse_type(CLIP, code)
    min = None if is_beyond(code, min) < 0 else min
    max = None if is_beyond(code, max) > 0 else max
    bounds = [each for each in (min, max) if each is not None]
    for each in bounds:
        if isinstance(each, Array) and kinds[(<Array>each).code] == c"c":
            refuse_type(CLIP, (<Array>each).code)
        if kinds[code] != c"f" and (kinds[(<Array>each).code] == c"f" if isinstance(each, Array)
                                    else isinstance(python_number(each), float)):
            code = joint_code(array, each)
    bounds = [clip_bound(code, each) for each in bounds]
    if len(bounds) == 2:
        op = CLIP
    elif bounds:
        op = MAXIMUM if max is None else MINIMUM
    else:
        return unary(POSITIVE, array, out)
    operands[0] = <PyObject*>x
    for i, each in enumerate(bounds):       # the list owns the references
        operands[1 + i] = <PyObject*>each
    return record(op, code, 1 + len(bounds), operands, out)


def ternary(str name not None, x1, x2, x3, Array out=None):
    """Apply an operation of the catalogue to three operands, which broadcast and promote like two
    operands; bool and integers are converted to float32.

    Parameters
    ----------
    name : str
        The operation's name.
    x1, x2, x3 : Array or number
        At least one of them is an Array.
    out : Array, optional
        The array that receives the result.

    Returns
    -------
    Array
    """
    cdef PyObject** operands = [<PyObject*>x1, <PyObject*>x2, <PyObject*>x3]
    cdef int op = op_code(name), code = -1
    for each in (x1, x2, x3):
        if isinstance(each, Array):
            code = (<Array>each).code if code < 0 else promote(code, (<Array>each).code)
    for each in (x1, x2, x3):
        if not isinstance(each, Array):
            code = promote_number(code, python_number(each))
    if kinds[code] in b"biu":
        code = FLOAT32
    if outputs[op][code] < 0:
        refuse_type(op, code)
    return record(op, code, 3, operands, out)
