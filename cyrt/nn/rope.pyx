"""Rotary position embedding, and its gradient."""

import math
import operator

from libc.float cimport DBL_MAX
from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.rope cimport BATCH, HEAD, POSITION, RopeSpace, record_rope
from cyrt.builtin.space cimport MAX_NUMERATOR
from cyrt.builtin.window cimport read_int
from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array, set_operand, shape_of
from cyrt.nn.rows cimport bool_of, may_overwrite, writable_rows
from cyrt.ops.arguments import check_array
from cyrt.ops.copy cimport assign_array, cast, check_device, check_out
from cyrt.ops.promotion cimport is_number, kinds, python_number
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int ROPE = op_code("rope")
cdef int INT64 = _dtype("int64").code, FLOAT32 = _dtype("float32").code
cdef int FLOAT64 = _dtype("float64").code


cdef double check_real(str name, str argument, object value) except? -1:
    number = python_number(value) if is_number(value) else value
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise TypeError(f"{name}: {argument}: expected a number, got {type(value).__name__}")
    if not -DBL_MAX <= number <= DBL_MAX:
        raise ValueError(f"{name}: {argument}: expected a finite number, got {value}")
    return number


cdef long long check_dims(str name, object dims, long long features) except -1:
    cdef long long count
    if not read_int(dims, &count):
        raise TypeError(f"{name}: dims: expected an int, got {type(dims).__name__}")
    if count < 2 or count % 2 or count > features:
        raise ValueError(f"{name}: dims: expected an even number from 2 to {features}, the number "
                         f"of features, got {dims}")
    return count


cdef Array check_offset(str name, Array offset, Array x):
    """Check the offsets of a batch: int64, one for all, or one for each."""
    cdef long long batches = x.dims[0] if x.ndim_ > 2 else 1
    if kinds[offset.code] != c"i" and kinds[offset.code] != c"u":
        raise TypeError(f"{name}: offset: expected integers, got {DTYPES[offset.code]}")
    if offset.count != 1 and (offset.ndim_ != 1 or offset.count != batches):
        raise ValueError(f"{name}: offset: expected shape () or ({batches},), for x of shape "
                         f"{shape_of(x)}, got {shape_of(offset)}")
    check_device(offset, x, name, "offset")
    return cast(offset, INT64)


cdef Array check_freqs(str name, Array freqs, Array x, long long pairs):
    if kinds[freqs.code] != c"f":
        raise TypeError(f"{name}: freqs: expected a real floating-point type, got "
                        f"{DTYPES[freqs.code]}")
    if freqs.ndim_ != 1 or freqs.count != pairs:
        raise ValueError(f"{name}: freqs: expected shape ({pairs},), half of dims, got "
                         f"{shape_of(freqs)}")
    check_device(freqs, x, name, "freqs")
    return freqs if freqs.code == FLOAT64 else cast(freqs, FLOAT32)


cdef bint describe(RopeSpace* space, int operand, Array x) noexcept:
    """Set shape and strides of an operand; return False if a RopeSpace cannot represent them."""
    cdef int d, last = x.ndim_ - 1
    cdef long long heads = 1
    if x.dims[last] > 1 and x.steps[last] != 1:
        return False
    space.shape[POSITION] = x.dims[last - 1]
    space.strides[POSITION][operand] = x.steps[last - 1] if x.dims[last - 1] > 1 else 0
    space.shape[BATCH], space.strides[BATCH][operand] = 1, 0
    if last > 1:
        space.shape[BATCH] = x.dims[0]
        space.strides[BATCH][operand] = x.steps[0] if x.dims[0] > 1 else 0
    space.strides[HEAD][operand] = 0
    for d in range(last - 2, 0, -1):
        if x.dims[d] == 1:
            continue
        if heads == 1:
            space.strides[HEAD][operand] = x.steps[d]
        elif x.steps[d] != space.strides[HEAD][operand] * heads:
            return False
        heads *= x.dims[d]
    space.shape[HEAD] = heads
    return True


cdef Array set_angles(RopeSpace* space, str name, Array x, object dims, object traditional,
                      object base, object scale, object freqs, double direction):
    cdef Array divisors = None
    cdef double number
    space.features = x.dims[x.ndim_ - 1]
    if space.features > MAX_NUMERATOR:
        raise ValueError(f"{name}: expected at most {<long long>MAX_NUMERATOR:,} features, got "
                         f"{space.features:,}")
    space.pairs = check_dims(name, dims, space.features) // 2
    space.traditional = bool_of(name, "traditional", traditional)
    space.turns = direction * check_real(name, "scale", scale) / (2 * math.pi)
    number = check_real(name, "base", base)
    if number <= 0:
        raise ValueError(f"{name}: base: expected a number above 0, got {base}")
    space.log2_step = -math.log2(number) / space.pairs
    if freqs is not None:
        divisors = check_freqs(name, check_array(freqs, f"{name}: freqs"), x, space.pairs)
        space.freqs_step, space.wide_freqs = divisors.steps[0], divisors.code == FLOAT64
    return divisors


cdef Array rotate(str name, object x_, object dims, object traditional, object base, object scale,
                  object offset, object freqs, double direction, object out):
    cdef Operand[4] operands
    cdef RopeSpace space
    cdef long long step
    cdef Array x = check_array(x_, f"{name}: {'g' if direction < 0 else 'x'}"), target = None
    cdef Array offsets = None, divisors
    if kinds[x.code] != c"f" or x.code == FLOAT64:
        catalogue.row("rope", DTYPES[x.code].name)      # raises: it lists the types
    if x.ndim_ < 2:
        raise ValueError(f"{name}: expected an array (..., positions, features) of at least two "
                         f"dimensions, got shape {shape_of(x)}")
    if out is not None:
        target = check_out(name, out, x.code, x.ndim_, x.dims, device_of(x))
    memset(&space, 0, sizeof(space))
    divisors = set_angles(&space, name, x, dims, traditional, base, scale, freqs, direction)
    if isinstance(offset, Array):
        offsets = check_offset(name, <Array>offset, x)
    else:
        try:
            if isinstance(offset, bool):
                raise TypeError
            space.first = operator.index(offset)
        except TypeError:
            raise TypeError(f"{name}: offset: expected an int or an Array of integers, got "
                            f"{type(offset).__name__}") from None
        except OverflowError:
            raise ValueError(f"{name}: offset: expected an int of 64 bits, got {offset}") from None
    if not describe(&space, 1, x):
        x = as_contiguous(x)
        describe(&space, 1, x)
    if target is None or target.code != x.code or not writable_rows(target, &step) \
            or not may_overwrite(target, x) or not may_overwrite(target, offsets) \
            or not may_overwrite(target, divisors):
        target = new_array(device_of(x), x.code, x.ndim_, x.dims)
    describe(&space, 0, target)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], target)
    set_operand(&operands[1], x)
    if offsets is not None:
        set_operand(&operands[2], offsets)
        space.offsets_step = offsets.steps[0] if offsets.count > 1 else 0
    if divisors is not None:
        set_operand(&operands[3], divisors)
    record_rope(encoder_of(current_state(device_of(x))), x.code, operands, &space)
    if out is None or target is out:
        return target
    assign_array(<Array>out, target)
    return out


def rope(x, dims, traditional=False, base=10000.0, scale=1.0, offset=0, freqs=None, *, out=None):
    """Rotate pairs of features by angles that are proportional to their position.

    Pair i at position t is rotated by the angle ``scale * (t + offset) * base ** (-2 * i / dims)``.
    Angles are computed, and reduced to less than a turn, in float64; sine and cosine are computed
    in float32.

    Parameters
    ----------
    x : Array
        float16, bfloat16 or float32, shaped (..., positions, features).
    dims : int
        The number of features that are rotated, which must be even: the first ones are rotated, the
        others are copied.
    traditional : bool
        Whether pair i consists of features 2 i and 2 i + 1, instead of features i and i + dims / 2.
    base : float
        The base of the angles, greater than 0. It is ignored if `freqs` are given.
    scale : float
        The factor by which positions are multiplied.
    offset : int or Array
        The position of the first row. An Array of integers on x's device is read when the operation
        runs: one number, or one for each index of x's first dimension (if x has more than two).
    freqs : Array, optional
        An array of a real floating-point type and shape (dims / 2,): pair i is rotated by
        ``scale * (t + offset) / freqs[i]``. Use float64 for positions beyond some thousands, for
        which float32 has too few digits.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind; it may be x.

    Returns
    -------
    Array
        An array of x's shape and type.

    Raises
    ------
    TypeError
        x, offset or freqs are of another type.
    ValueError
        x has fewer than two dimensions, `dims` is odd or greater than the number of features, or
        the shape of `out` or another argument is wrong.

    Notes
    -----
    Su et al., "RoFormer", arXiv:2104.09864. The arguments are those of MLX's
    ``mlx.core.fast.rope``.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[1.0, 0.0], [1.0, 0.0]])
    >>> cyrt.nn.rope(x, 2)
    Array([[1.        , 0.        ],
           [0.54030234, 0.84147096]], dtype=float32)
    """
    if recording and (is_followed(x) or is_followed(freqs) or is_followed(out)):
        return record_call(rope, (x, dims, traditional, base, scale, offset, freqs, out))
    return rotate("rope", x, dims, traditional, base, scale, offset, freqs, 1, out)


def rope_vjp(g, dims, traditional=False, base=10000.0, scale=1.0, offset=0, freqs=None):
    """Compute the gradient of :func:`rope`'s input from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result.
    dims, traditional, base, scale, offset, freqs
        As for :func:`rope`.

    Returns
    -------
    Array
        The gradient of x, of g's shape and type.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> cyrt.nn.rope_vjp(cyrt.nn.rope(x, 2), 2).round(3)  # turns back
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return rotate("rope_vjp", g, dims, traditional, base, scale, offset, freqs, -1, None)
