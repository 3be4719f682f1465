"""Operations of three operands: a choice between two, numbers between bounds."""

from cpython.bool cimport PyBool_Check
from cpython.long cimport PyLong_Check

import numpy as np

from cyrt.dtypes import DTYPES
from cyrt.kernels.entries cimport op_code
from cyrt.ndarray cimport Array
from cyrt.operators import functions
from cyrt.ops.elementwise cimport (
    check_out_type, perform, refuse_argument, refuse_operand, refuse_type, result_code, side_of,
    unary,
)
from cyrt.ops.promotion cimport (
    BOOL, code_of_number, is_number, kinds, plain, promote, promote_number,
)

cdef int WHERE = op_code("where"), CLIP = op_code("clip"), POSITIVE = op_code("positive")
cdef int MAXIMUM = op_code("maximum"), MINIMUM = op_code("minimum")


def where(condition, x1=None, x2=None, /):
    """Elements of x1 where the condition holds, of x2 elsewhere.

    With the condition alone the indices at which it is not zero: see :func:`cyrt.nonzero`.

    Parameters
    ----------
    condition : Array, number or sequence of numbers
        Holds where it is not zero.
    x1, x2 : Array, number or sequence of numbers
        Both left out: the result is that of :func:`cyrt.nonzero`.

    Returns
    -------
    Array
        Of the joint shape, and of the type that x1 and x2 promote to.
    """
    cdef int code
    if x1 is None and x2 is None:
        return functions.nonzero(condition)
    if not isinstance(condition, Array):
        like = x1 if isinstance(x1, Array) else x2
        if not isinstance(like, Array) or not (is_number(condition)
                                               or isinstance(condition, (list, tuple))):
            refuse_operand("where: condition", condition)
        condition = functions.asarray(condition, dtype="bool", device=like.device)
    x1, x2 = beside("where", x1, x2, condition), beside("where", x2, x1, condition)
    code = joint_code(x1, x2)
    return perform(WHERE, code, code, [condition, x1, x2], [BOOL, code, code], None)


cdef object beside(str name, object x, object other, Array like):
    """An Array or a number; of a sequence an Array on a device, its numbers are weak beside
    another."""
    if isinstance(x, Array) or is_number(x):
        return x
    if not isinstance(x, (list, tuple)):
        refuse_operand(name, x)
    if isinstance(other, Array):
        return functions.sequence_beside(other, x)
    return functions.asarray(x, device=like.device)


cdef int is_beyond(int code, object value) except -2:
    """Of an int -1 below all of an integer type, 1 above; 0 within it, and of all else."""
    if (kinds[code] != c"i" and kinds[code] != c"u") or not is_number(value):
        return 0
    value = plain(value)
    if not PyLong_Check(value) or PyBool_Check(value):
        return 0
    return side_of(code, value)


cdef object within(int code, object bound):
    """A bound of another integer type held within that of the result: cast alone it would wrap
    around."""
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
        return promote_number((<Array>a).code, plain(b))
    if isinstance(b, Array):
        return promote_number((<Array>b).code, plain(a))
    return promote_number(code_of_number(plain(a)), plain(b))


cdef object clip_number(object x, object min, object max, object out):
    """NumPy's number."""
    for each in (x, min, max):
        if each is not None and not is_number(each):
            refuse_operand("clip", each)
    if x is None or out is not None:
        refuse_argument("clip", x)
    with np.errstate(all="ignore"):
        return np.clip(x, min, max)


def clip(x, /, min=None, max=None, out=None, *, a_min=None, a_max=None):
    """Elements held between two bounds; the upper one wins where they cross.

    Parameters
    ----------
    x : Array or number
        Of a real type. Of numbers alone the result is NumPy's number.
    min, max : Array, number or sequence of numbers, optional
        No bound where left out, nor where an int is below or above all of x's integer type. An
        Array's integers beyond that type count as the nearest of it.
    out : Array, optional
        Takes the result, which may be cast within its kind; may be x.
    a_min, a_max : as min and max
        NumPy's older names of the bounds.

    Returns
    -------
    Array
        Of the joint shape; of x's type, integers with a real bound of the type both promote to.
    """
    cdef Array array
    check_out_type("clip", out)
    cdef int code
    if min is not None and a_min is not None or max is not None and a_max is not None:
        raise ValueError("clip: a_min and a_max are other names of min and max: expected one of "
                         "them")
    min = a_min if min is None else min
    max = a_max if max is None else max
    if not isinstance(x, Array):
        like = min if isinstance(min, Array) else max
        if not is_number(x) or not isinstance(like, Array):
            return clip_number(x, min, max, out)
        x = functions.sequence_beside(like, x)
    array = x
    min = None if min is None else beside("clip", min, array, array)
    max = None if max is None else beside("clip", max, array, array)
    code = array.code
    if result_code(CLIP, code) < 0:
        refuse_type(CLIP, code)
    min = None if is_beyond(code, min) < 0 else min
    max = None if is_beyond(code, max) > 0 else max
    bounds = [each for each in (min, max) if each is not None]
    for each in bounds:
        if isinstance(each, Array) and kinds[(<Array>each).code] == c"c":
            refuse_type(CLIP, (<Array>each).code)
        if kinds[code] != c"f" and (kinds[(<Array>each).code] == c"f" if isinstance(each, Array)
                                    else isinstance(plain(each), float)):
            code = joint_code(array, each)
    bounds = [within(code, each) for each in bounds]
    if len(bounds) == 2:
        op = CLIP
    elif bounds:
        op = MAXIMUM if max is None else MINIMUM
    else:
        return unary(POSITIVE, array, out)
    return perform(op, code, code, [x, *bounds], [code] * (1 + len(bounds)), out)
