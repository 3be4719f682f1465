"""Factorizations of matrices, systems of equations, eigenvalues and singular values.

Matrices that do not fit into the shared memory of a block of threads are factored by
cyrt/linalg/by_library.py where cuSOLVER is installed and faster, and otherwise by
cyrt/linalg/blocked.py.
"""

from collections import namedtuple

from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.string cimport memcmp, memset

from cyrt.builtin.entry cimport dtype_code, op_code
from cyrt.builtin.linalg cimport (
    A, B, INFO, LINALG_CONJUGATE, LINALG_HERMITIAN, LINALG_IDENTITY, LINALG_LOG,
    LINALG_LOWER, LINALG_REFLECTIONS, LINALG_TRANSPOSED, LINALG_UNIT, LINALG_UPPER, LINALG_VECTORS,
    NUM_OPERANDS, X, Y, Z, Linalg, failure_word, fits, record_linalg,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NDIM, tuple_of_sizes
from cyrt.dtypes import DTYPES, dtype as _dtype
from cyrt.error_text import show
from cyrt.graph.recorder cimport encoder_of
from cyrt.linalg.library_calls cimport factors_all
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array_on, set_operand, shape_of
from cyrt.ops.arguments import check_array, check_bool, is_int
from cyrt.ops.broadcasting import broadcast_shapes, broadcast_to
from cyrt.ops.copy cimport cast, check_device
from cyrt.ops.creation import zeros
from cyrt.ops.promotion cimport FLOAT32, NUM_DTYPES, kinds, promote
from cyrt.ops.reduce import any as any_of, argmax
from cyrt.ops.ternary import where
from cyrt.ops.views import diagonal
from cyrt.runtime.failure cimport site_of
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int CHOLESKY = op_code("cholesky"), LU = op_code("lu"), SOLVE = op_code("solve")
cdef int DETERMINANT = op_code("determinant"), TRIANGULAR = op_code("triangular")
cdef int EXCHANGE = op_code("exchange"), QR = op_code("qr")
cdef int JACOBI = op_code("jacobi"), EIG = op_code("eig")
cdef int FINITE_COPY = op_code("finite_copy"), MARK_FAILED = op_code("mark_failed")
cdef int LOWER_FACTOR = op_code("lower_factor"), CHECK_LU = op_code("check_lu")
cdef int INT32 = dtype_code("int32")
cdef int COMPLEX64 = dtype_code("complex64"), COMPLEX128 = dtype_code("complex128")
cdef int[NUM_DTYPES] real_codes     # the type of a type's real parts
cdef int[NUM_DTYPES] own_codes      # the type that has kernels for a type; -1: there is none
for _each in DTYPES:
    real_codes[<int>_each.code] = _dtype(_each.real).code if _each.kind == "c" else _each.code
    own_codes[<int>_each.code] = FLOAT32 if _each.kind in "biu" \
        else -1 if _each.kind not in "fc" or _each.itemsize == 2 else _each.code

cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030E0000
    #define CYRT_FORGET_HASH(tuple) (((PyTupleObject*)(tuple))->ob_hash = -1)
    #else
    #define CYRT_FORGET_HASH(tuple) ((void)0)
    #endif
    """
    object PyType_GenericAlloc(PyTypeObject* cls, Py_ssize_t items)
    # Store in a new tuple that its hash is not known; from Python 3.14 on, 0 would be its hash.
    void CYRT_FORGET_HASH(object tuple) noexcept

# Texts of errors; {} is the number of the matrix.
cdef str NOT_POSITIVE = "matrix {} is not positive definite"
SINGULAR = "matrix {} is singular"
cdef str NO_EXCHANGE = "matrix {} has pivots that are no rows below"
NO_CONVERGENCE = "matrix {} is not finite, or the iteration did not converge"

EigResult = namedtuple("EigResult", ["eigenvalues", "eigenvectors"], module="cyrt.linalg")
EighResult = namedtuple("EighResult", ["eigenvalues", "eigenvectors"], module="cyrt.linalg")
QRResult = namedtuple("QRResult", ["Q", "R"], module="cyrt.linalg")
SlogdetResult = namedtuple("SlogdetResult", ["sign", "logabsdet"], module="cyrt.linalg")
SVDResult = namedtuple("SVDResult", ["U", "S", "Vh"], module="cyrt.linalg")
LUResult = namedtuple("LUResult", ["lu", "pivots"], module="cyrt.linalg")

cdef enum:
    # A library is faster than Jacobi's method in one block from this number of rows and columns on.
    # For the eigenvalues of 128 rows an H200 takes 1,607 µs by the library and 1,365 µs by a block;
    # for those of 192 rows, which do not fit into a block, 1,355 µs by the library.
    LEAST_SERVED = 144

# The parameters of a launch, and where it runs.
cdef struct Call:
    Linalg params
    Operand[NUM_OPERANDS] operands
    StreamState* stream
    int code
    long long batch             # number of matrices


cdef inline object checked(object value, str name):
    """Return a bool; raise TypeError for what is none."""
    return value if value is True or value is False else check_bool(value, name)


cdef int refuse_type(str name, int code) except -1:
    raise TypeError(f"{name}: {DTYPES[code]} is not supported; expected float32, float64, "
                    "complex64, complex128, or integers, which are converted to float32")


cdef Array matrices_of(str name, str argument, object x):
    """Return an operand as matrices of a type that has kernels; integers become float32."""
    cdef Array array
    if not isinstance(x, Array):
        check_array(x, f"{name}: {argument}")
    array = <Array>x
    if array.ndim_ < 2:
        raise ValueError(f"{name}: {argument}: expected matrices, of two dimensions or more, got "
                         f"shape {shape_of(array)}")
    return in_own_type(name, array)


cpdef Array in_own_type(str name, Array array):
    """Return an operand in a type that has kernels; integers become float32."""
    cdef int code = own_codes[array.code]
    if code < 0:
        refuse_type(name, array.code)
    return array if code == array.code else cast(array, code)


cdef Array square_of(str name, str argument, object x):
    cdef Array array = matrices_of(name, argument, x)
    if array.dims[array.ndim_ - 1] != array.dims[array.ndim_ - 2]:
        raise ValueError(f"{name}: {argument}: expected square matrices, got shape "
                         f"{shape_of(array)}")
    return array


cdef inline unsigned int size_at(Array a, int axis) except? 0xffff_ffff:
    """Return a size of matrices, whose rows and columns kernels count in int."""
    if a.dims[axis] > 0x7fff_ffff:
        raise ValueError(f"expected matrices of at most 2**31 - 1 rows and columns, got shape "
                         f"{shape_of(a)}")
    return <unsigned int>a.dims[axis]


cdef tuple batch_shape(Array a):
    return tuple_of_sizes(a.ndim_ - 2, a.dims)


cdef Array begin(Call* call, Array a):
    """Set the call's matrices; return them contiguous. The caller keeps them."""
    cdef int d
    memset(call, 0, sizeof(call[0]))
    call.params.m, call.params.n = size_at(a, a.ndim_ - 2), size_at(a, a.ndim_ - 1)
    a = as_contiguous(a)
    call.stream = current_state(device_of(a))
    call.code = a.code
    call.batch = 1
    for d in range(a.ndim_ - 2):
        call.batch *= a.dims[d]
    set_operand(&call.operands[A], a)
    return a


cdef Array new_result(Call* call, int which, int code, Array like, int ndim, long long first,
                      long long second):
    """Allocate a result: the batch's dimensions, and `ndim` more."""
    cdef long long[MAX_NDIM] dims
    cdef int d, kept = like.ndim_ - 2
    cdef Array result
    for d in range(kept):
        dims[d] = like.dims[d]
    dims[kept], dims[kept + 1] = first, second
    result = new_array_on(call.stream, code, kept + ndim, dims)
    set_operand(&call.operands[which], result)
    return result


cdef int record(Call* call, int op) except -1:
    """Record the launches, if there are matrices."""
    if call.batch:
        record_linalg(encoder_of(call.stream), op, call.code, &call.params, call.operands,
                      call.batch)
    return 0


cdef Array run(Call* call, int op, Array like, str name, str text, object check):
    """Record the launches; return where matrices failed, or None if errors are raised."""
    cdef Array info = None
    if check:
        call.params.failure = failure_word(call.stream)
        call.params.site = <unsigned int>site_of(name, text)
    else:
        info = new_result(call, INFO, INT32, like, 0, 0, 0)
    record(call, op)
    return info


cdef bint is_whole(Call* call, int op) except -1:
    """Return whether a block of threads factors each matrix as a whole."""
    cdef bint empty = min(call.params.m, call.params.n) == 0
    return (empty or not factors_all) and fits(call.stream, op, call.code, &call.params)


cdef inline bint may_be_served(const Call* call, bint whole) noexcept:
    """Return whether a library may find eigenvalues or singular values faster than a block of
    threads, if that can (`whole`)."""
    return call.params.n >= LEAST_SERVED or not whole


cdef object blocked():
    """Return the module for larger matrices, which imports this one."""
    from cyrt.linalg import blocked

    return blocked


cdef object by_library():
    """Return the module of the library's factorizations, which imports this one."""
    from cyrt.linalg import by_library

    return by_library


cdef inline object with_info(object result, Array info):
    return result if info is None else (result, info)


cdef object named(object names, object first, object second, object third=None):
    """Return a named tuple. Its class's constructor is a Python function, which takes the host
    longer than the rest of a call."""
    cdef object found = PyType_GenericAlloc(<PyTypeObject*>names, 2 if third is None else 3)
    CYRT_FORGET_HASH(found)
    Py_INCREF(first)
    PyTuple_SET_ITEM(found, 0, first)
    Py_INCREF(second)
    PyTuple_SET_ITEM(found, 1, second)
    if third is not None:
        Py_INCREF(third)
        PyTuple_SET_ITEM(found, 2, third)
    return found


cdef unsigned int triangle_flag(str name, object UPLO) except? 0xffff_ffff:
    if UPLO == "L" or UPLO == "l":
        return 0
    if UPLO != "U" and UPLO != "u":
        raise ValueError(f"{name}: UPLO: expected 'L' or 'U', got {show(UPLO)}")
    return LINALG_UPPER


cdef unsigned int trans_flags(object trans) except? 0xffff_ffff:
    if is_int(trans) or isinstance(trans, str):
        if trans == 0 or trans == "N":
            return 0
        if trans == 1 or trans == "T":
            return LINALG_TRANSPOSED
        if trans == 2 or trans == "C":
            return LINALG_TRANSPOSED | LINALG_CONJUGATE
    raise ValueError("solve_triangular: trans: expected 0, 1, 2, 'N', 'T' or 'C', got "
                     f"{show(trans)}")


# -- parts of larger matrices, for cyrt/linalg/blocked.py ----------------------------------------


def cholesky_of(str name, Array a, bint check):
    """Return the lower factor, and where matrices failed, or None if errors are raised."""
    cdef Call call
    cdef Array result
    a = begin(&call, a)
    result = new_result(&call, X, a.code, a, 2, call.params.n, call.params.n)
    return result, run(&call, CHOLESKY, a, name, NOT_POSITIVE, check)


def lu_of(Array a):
    """Return L and U in one matrix, and the pivots."""
    cdef Call call
    return factor_lu(&call, begin(&call, a))


cdef object factor_lu(Call* call, Array a):
    cdef Array lu, pivots
    lu = new_result(call, X, a.code, a, 2, call.params.m, call.params.n)
    pivots = new_result(call, Y, INT32, a, 1, min(call.params.m, call.params.n), 0)
    record(call, LU)
    return named(LUResult, lu, pivots)


def exchange_rows(Array b, Array pivots, bint backwards, bint check):
    """Exchange rows of right-hand sides as pivots say, or exchange them back; return the result,
    and where matrices failed, or None if errors are raised."""
    cdef Call call
    cdef Array result
    b = begin(&call, b)
    pivots = as_contiguous(pivots)
    call.params.k = call.params.n
    call.params.n = <unsigned int>pivots.dims[pivots.ndim_ - 1]
    call.params.flags = LINALG_TRANSPOSED if backwards else 0
    set_operand(&call.operands[B], pivots)
    result = new_result(&call, X, b.code, b, 2, call.params.m, call.params.k)
    return result, run(&call, EXCHANGE, b, "lu_solve", NO_EXCHANGE, check)


def factor_panel(Array a):
    """Return Householder's vectors of a panel's columns, R, and 1 / tau of each vector."""
    cdef Call call
    cdef Array u, r, inverse_taus
    cdef long long m, n
    a = begin(&call, a)
    m, n = call.params.m, call.params.n
    call.params.k = <unsigned int>n
    call.params.flags = LINALG_REFLECTIONS
    u = new_result(&call, X, a.code, a, 2, m, n)
    r = new_result(&call, Y, a.code, a, 2, n, n)
    inverse_taus = new_result(&call, Z, a.code, a, 1, n, 0)
    record(&call, QR)
    return u, r, inverse_taus


def triangular_of(str name, Array a, Array b, bint lower, trans, bint unit, bint check):
    """Solve with triangular matrices that fit; return the result, and where matrices failed, or
    None if errors are raised."""
    cdef Call call
    a = begin(&call, a)
    call.params.flags = triangular_flags(lower, trans, unit)
    call.params.k = size_at(b, b.ndim_ - 1)
    return solve_triangles(&call, name, a, b, check)


cdef unsigned int triangular_flags(bint lower, object trans, bint unit) except? 0xffff_ffff:
    return trans_flags(trans) | (0 if lower else LINALG_UPPER) | (LINALG_UNIT if unit else 0)


cdef tuple solve_triangles(Call* call, str name, Array a, Array b, bint check):
    cdef Array result
    b = as_contiguous(b)
    set_operand(&call.operands[B], b)
    result = new_result(call, X, a.code, a, 2, call.params.n, call.params.k)
    return result, run(call, TRIANGULAR, a, name, SINGULAR, check)


def finite_copy(Array x, str triangle=""):
    """Copy matrices, or the triangle "L" or "U" of them, with 0 instead of numbers that are not
    finite. Return the copy, and 1 for matrices that had such numbers, int32 of shape (..., 1, 1).
    """
    cdef Call call
    cdef Array result, infinite
    _kept = begin(&call, x)
    if triangle:
        call.params.flags = LINALG_UPPER if triangle == "U" else LINALG_LOWER
    result = new_result(&call, X, x.code, x, 2, call.params.m, call.params.n)
    infinite = zeros((*batch_shape(x), 1, 1), dtype="int32", device=x.device)
    set_operand(&call.operands[Y], infinite)
    record(&call, FINITE_COPY)
    return result, infinite


def mark_failed(str name, str text, Array status, tuple results, bint check,
                Array infinite=None):
    """Fill the results of failed matrices with NaN. A matrix has failed if its `status`, int32 of
    shape (..., 1, 1), is not 0, or if `infinite`, which is alike, is not. Return where matrices
    failed, or None if errors are raised."""
    cdef Call call
    cdef Array result
    cdef int i
    cdef unsigned int[3] counts = [0, 0, 0]
    memset(&call, 0, sizeof(call))
    call.stream = current_state(device_of(status))
    call.batch = status.count
    call.code = real_codes[(<Array>results[0]).code]
    for i in range(<int>len(results)):
        result = <Array>results[i]
        # Complex numbers are pairs of real ones.
        counts[i] = <unsigned int>(result.count // max(call.batch, 1)
                                   * (1 if real_codes[result.code] == result.code else 2))
        set_operand(&call.operands[X + i], result)
    call.params.m, call.params.n, call.params.k = counts[0], counts[1], counts[2]
    set_operand(&call.operands[A], status)
    if infinite is not None:
        set_operand(&call.operands[B], infinite)
    return run(&call, MARK_FAILED, status, name, text, check)


def lower_factor(str name, Array a, Array status, bint check):
    """Return the lower factors that a library has stored by columns in the lower triangle of `a`,
    and where matrices failed, or None if errors are raised."""
    cdef Call call
    cdef Array result
    _kept = begin(&call, a)
    set_operand(&call.operands[B], status)
    result = new_result(&call, X, a.code, a, 2, call.params.n, call.params.n)
    return result, run(&call, LOWER_FACTOR, a, name, NOT_POSITIVE, check)


def check_lu(Array factors, Array pivots, Array status, Array infinite):
    """Make the pivots, int64 from 1 on, that a library has found numbers of rows, and the status 0
    where no pivot is 0. The factors, which are stored by columns, become NaN where `infinite`, as
    `finite_copy` returns it, is not 0; `mark_failed` then fills results with NaN without an error.
    """
    cdef Call call
    _kept = begin(&call, factors)
    set_operand(&call.operands[X], pivots)
    set_operand(&call.operands[Y], status)
    set_operand(&call.operands[Z], factors)
    set_operand(&call.operands[B], infinite)
    record(&call, CHECK_LU)


cdef tuple solve_any_triangular(str name, Array a, Array b, bint lower, trans, bint unit,
                                bint check):
    cdef Call call
    cdef Array own = begin(&call, a)
    call.params.flags = triangular_flags(lower, trans, unit)
    call.params.k = size_at(b, b.ndim_ - 1)
    if not fits(call.stream, TRIANGULAR, call.code, &call.params):
        return blocked().triangular(name, a, b, lower, trans, unit, check)
    return solve_triangles(&call, name, own, b, check)


# -- Cholesky --------------------------------------------------------------------------------------


def cholesky(x, /, *, upper=False, check=True):
    """Factor Hermitian positive definite matrices: ``x = L @ conj(L).mT``.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., N, N), real or complex; integers are converted to float32. Only the
        lower triangle is read, or the upper one with `upper`.
    upper : bool
        Whether to return U, where ``x = conj(U).mT @ U``, instead of L.
    check : bool
        Whether failures are reported: the result of a matrix that is not positive definite is NaN,
        and the next call that waits for a value raises an error. With False, nothing is raised, and
        the result is a tuple of the factor and `info`.

    Returns
    -------
    Array
        L or U, of x's shape; the other triangle is zero. With ``check=False`` a tuple of it and
        `info`, an int32 array of shape (...,): 0, or the order of the first leading minor that is
        not positive.

    Raises
    ------
    TypeError, ValueError
        x is not an Array of square matrices, or its type is float16 or bfloat16.
    cyrt.linalg.LinAlgError
        When a value is waited for: a matrix was not positive definite.

    Notes
    -----
    The call does not wait. The method is that of Golub and Van Loan, Matrix Computations, 4.2.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.cholesky(cyrt.asarray([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(cholesky, (x, upper, check))
    cdef Call call
    cdef Array a = square_of("cholesky", "x", x), result, info
    checked(check, "cholesky: check")
    checked(upper, "cholesky: upper")
    _kept = begin(&call, a)
    if not is_whole(&call, CHOLESKY):
        factors = blocked()
        result, info = factors.cholesky("cholesky", factors.adjoint(a) if upper else a, check)
        return with_info(factors.adjoint(result) if upper else result, info)
    call.params.flags = LINALG_UPPER if upper else 0
    result = new_result(&call, X, a.code, a, 2, call.params.n, call.params.n)
    info = run(&call, CHOLESKY, a, "cholesky", NOT_POSITIVE, check)
    return with_info(result, info)


# -- LU --------------------------------------------------------------------------------------------


def lu_factor(x, /, *, check=True):
    """Factor matrices with partial pivoting: ``P @ x = L @ U``.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., M, N), real or complex; integers are converted to float32.
    check : bool
        Whether to return only the factors; with False, `info` is returned, too. A singular matrix
        is factored like others, and never causes an error.

    Returns
    -------
    LUResult
        ``lu``, of x's shape: U, and below its diagonal L without its diagonal of ones. ``pivots``,
        int32 of shape (..., min(M, N)): row i was exchanged with row ``pivots[i]``, for i in
        ascending order. With ``check=False`` a tuple of the LUResult and `info`, an int32 array of
        shape (...,): 0, or the number, counted from 1, of the first diagonal element of U that is
        0.

    Raises
    ------
    TypeError, ValueError
        x is not an Array of matrices, or its type is float16 or bfloat16.

    See Also
    --------
    lu_solve : solves equations with the result.

    Examples
    --------
    >>> import cyrt
    >>> lu, pivots = cyrt.linalg.lu_factor(cyrt.asarray([[1.0, 2.0], [4.0, 4.0]]))
    >>> lu, pivots
    (Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32), Array([1, 1], dtype=int32))
    """
    if recording and is_followed(x):
        return record_call(lu_factor, (x, check))
    cdef Call call
    cdef Array a = matrices_of("lu_factor", "x", x)
    checked(check, "lu_factor: check")
    a = begin(&call, a)
    factors = factor_lu(&call, a) if is_whole(&call, LU) else LUResult(*blocked().lu(a))
    return factors if check else (factors, first_zero(factors.lu))


def first_zero(Array lu):
    """Return the number, counted from 1, of the first zero on the diagonal, or 0; int32."""
    zero = diagonal(lu, 0, -2, -1) == 0
    if lu.count == 0:
        return zeros(batch_shape(lu), dtype="int32", device=lu.device)
    return cast(where(any_of(zero, axis=-1), argmax(zero, axis=-1) + 1, 0), INT32)


def det(x, /):
    """Compute determinants.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., N, N), real or complex; integers are converted to float32.

    Returns
    -------
    Array
        Shape (...,), of x's type; 1 for matrices of shape (0, 0).

    Raises
    ------
    TypeError, ValueError
        x is not an Array of square matrices, or its type is float16 or bfloat16.

    See Also
    --------
    slogdet : does not overflow.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.det(cyrt.asarray([[2.0, 1.0], [4.0, 3.0]]))
    Array(2., dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(det, (x,))
    cdef Call call
    cdef Array a = square_of("det", "x", x), result
    _kept = begin(&call, a)
    if not is_whole(&call, DETERMINANT):
        return blocked().determinant(a, False)
    result = new_result(&call, X, a.code, a, 0, 0, 0)
    record(&call, DETERMINANT)
    return result


def slogdet(x, /):
    """Compute the signs of determinants, and the logarithms of their magnitudes.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., N, N), real or complex; integers are converted to float32.

    Returns
    -------
    SlogdetResult
        ``sign``, of shape (...,) and x's type: -1, 0 or 1, or a complex number of magnitude 0 or 1.
        ``logabsdet``, real: minus infinity for a singular matrix.

    Raises
    ------
    TypeError, ValueError
        x is not an Array of square matrices, or its type is float16 or bfloat16.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.slogdet(-2 * cyrt.eye(3)).sign
    Array(-1., dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(slogdet, (x,))
    cdef Call call
    cdef Array a = square_of("slogdet", "x", x), sign, logarithm
    _kept = begin(&call, a)
    if not is_whole(&call, DETERMINANT):
        return SlogdetResult(*blocked().determinant(a, True))
    call.params.flags = LINALG_LOG
    sign = new_result(&call, X, a.code, a, 0, 0, 0)
    logarithm = new_result(&call, Y, real_codes[a.code], a, 0, 0, 0)
    record(&call, DETERMINANT)
    return named(SlogdetResult, sign, logarithm)


# -- systems of equations --------------------------------------------------------------------------


def inv(x, /, *, check=True):
    """Invert matrices.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., N, N), real or complex; integers are converted to float32.
    check : bool
        Whether failures are reported, as by :func:`cholesky`; the result of a singular matrix is
        NaN.

    Returns
    -------
    Array
        The inverses, of x's shape. With ``check=False`` a tuple of them and an int32 array of shape
        (...,): 0, or the number, counted from 1, of the column without a pivot.

    Raises
    ------
    TypeError, ValueError
        x is not an Array of square matrices, or its type is float16 or bfloat16.
    cyrt.linalg.LinAlgError
        When a value is waited for: a matrix was singular.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.inv(cyrt.asarray([[2.0, 1.0], [1.0, 1.0]]))
    Array([[ 1., -1.],
           [-1.,  2.]], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(inv, (x, check))
    return inverted("inv", x, check)


cdef object inverted(str name, object x, object check):
    cdef Call call
    cdef Array a = square_of(name, "x", x), result, info
    checked(check, "inv: check")
    _kept = begin(&call, a)
    call.params.k = call.params.n
    if not is_whole(&call, SOLVE):
        result, info = blocked().solve(name, a, None, check)
        return with_info(result, info)
    call.params.flags = LINALG_IDENTITY
    result = new_result(&call, X, a.code, a, 2, call.params.n, call.params.n)
    info = run(&call, SOLVE, a, name, SINGULAR, check)
    return with_info(result, info)


cdef bint are_joined(Array a, object x) except -1:
    """Return whether x are right-hand sides that `joined` would return with the matrices as they
    are, as in most calls."""
    cdef Array b
    if not isinstance(x, Array):
        return False
    b = <Array>x
    return b.code == a.code and b.ndim_ == a.ndim_ \
        and b.dims[b.ndim_ - 2] == a.dims[a.ndim_ - 1] \
        and memcmp(b.dims, a.dims, (a.ndim_ - 2) * sizeof(a.dims[0])) == 0 \
        and device_of(b) == device_of(a)


cpdef tuple joined_batch(str name, Array a, Array b):
    """Return the broadcast shape of the batches of matrices and right-hand sides."""
    try:
        return broadcast_shapes(batch_shape(a), batch_shape(b))
    except ValueError:
        raise ValueError(f"{name}: matrices of shape {shape_of(a)} and right-hand sides of shape "
                         f"{shape_of(b)}: their leading dimensions do not broadcast") from None


cdef tuple joined(str name, Array a, str argument, object x):
    """Return matrices and right-hand sides in one type with broadcast batches, and whether the
    right-hand side is a vector."""
    cdef Array b
    cdef int code
    cdef bint vector
    if not isinstance(x, Array):
        check_array(x, f"{name}: {argument}")
    b = <Array>x
    check_device(b, a, name, argument)
    if b.ndim_ == 0:
        raise ValueError(f"{name}: {argument}: expected a vector or matrices, got a 0-dimensional "
                         "array")
    b = in_own_type(name, b)
    code = promote(a.code, b.code)
    a, b = cast(a, code), cast(b, code)
    vector = b.ndim_ == 1
    if vector:
        b = b[:, None]
    if a.dims[a.ndim_ - 1] != b.dims[b.ndim_ - 2]:
        raise ValueError(f"{name}: matrices of shape {shape_of(a)} and right-hand sides of shape "
                         f"{shape_of(<Array>x)}: the sizes {a.dims[a.ndim_ - 1]} and "
                         f"{b.dims[b.ndim_ - 2]} must be equal")
    if batch_shape(a) != batch_shape(b):
        batch = joined_batch(name, a, b)
        a = broadcast_to(a, batch + tuple_of_sizes(2, a.dims + a.ndim_ - 2))
        b = broadcast_to(b, batch + tuple_of_sizes(2, b.dims + b.ndim_ - 2))
    return a, b, vector


def solve(x1, x2, /, *, check=True):
    """Solve systems of linear equations: ``x1 @ result = x2``.

    Parameters
    ----------
    x1 : Array
        Matrices of shape (..., N, N), real or complex; integers are converted to float32.
    x2 : Array
        Right-hand sides: a vector of shape (N,), or matrices of shape (..., N, K). The leading
        dimensions broadcast.
    check : bool
        Whether failures are reported, as by :func:`cholesky`; the result of a singular matrix is
        NaN.

    Returns
    -------
    Array
        An array of the broadcast shape (..., N, K), or (..., N) for a vector, and of the type to
        which both promote. With ``check=False`` a tuple of it and an int32 array of shape (...,):
        0, or the number, counted from 1, of the column without a pivot.

    Raises
    ------
    TypeError, ValueError
        The operands are not Arrays of fitting shapes, or a type is float16 or bfloat16.
    cyrt.linalg.LinAlgError
        When a value is waited for: a matrix was singular.

    Examples
    --------
    >>> import cyrt
    >>> a = cyrt.asarray([[3.0, 1.0], [1.0, 2.0]])
    >>> cyrt.linalg.solve(a, cyrt.asarray([9.0, 8.0]))
    Array([2., 3.], dtype=float32)
    """
    if recording and (is_followed(x1) or is_followed(x2)):
        return record_call(solve, (x1, x2, check))
    return solved("solve", x1, x2, check)


cdef object solved(str name, object x1, object x2, object check):
    cdef Call call
    cdef Array a = square_of(name, "x1", x1), b, result, info
    checked(check, "solve: check")
    if are_joined(a, x2):
        b, vector = <Array>x2, False
    else:
        a, b, vector = joined(name, a, "x2", x2)
    _kept = begin(&call, a)
    call.params.k = size_at(b, b.ndim_ - 1)
    b = as_contiguous(b)
    if is_whole(&call, SOLVE):
        set_operand(&call.operands[B], b)
        result = new_result(&call, X, a.code, a, 2, call.params.n, call.params.k)
        info = run(&call, SOLVE, a, name, SINGULAR, check)
    else:
        result, info = blocked().solve(name, a, b, check)
    return with_info(result[..., 0] if vector else result, info)


def solve_triangular(x1, x2, /, *, lower=False, trans=0, unit_diagonal=False, check=True):
    """Solve systems of linear equations with triangular matrices.

    Parameters
    ----------
    x1 : Array
        Matrices of shape (..., N, N), real or complex; integers are converted to float32. Elements
        of the other triangle are not used.
    x2 : Array
        Right-hand sides: a vector of shape (N,), or matrices of shape (..., N, K). The leading
        dimensions broadcast.
    lower : bool
        Whether the matrices are lower triangular, instead of upper triangular.
    trans : int or str
        The system: ``x1 @ result = x2`` for 0 or "N", ``x1.mT @ result = x2`` for 1 or "T", and
        ``conj(x1).mT @ result = x2`` for 2 or "C".
    unit_diagonal : bool
        Whether the elements of the diagonal count as 1 and are not read.
    check : bool
        Whether failures are reported, as by :func:`cholesky`; the result of a matrix with a zero on
        its diagonal is NaN.

    Returns
    -------
    Array
        The solutions, as :func:`solve` returns them. With ``check=False`` a tuple of them and an
        int32 array of shape (...,), which is 1 for singular matrices and otherwise 0.

    Raises
    ------
    TypeError, ValueError
        The operands are not Arrays of fitting shapes, a type is float16 or bfloat16, or `trans` has
        another value.
    cyrt.linalg.LinAlgError
        When a value is waited for: a matrix was singular.

    Notes
    -----
    The arguments are those of SciPy's ``scipy.linalg.solve_triangular``.

    Examples
    --------
    >>> import cyrt
    >>> a = cyrt.asarray([[2.0, 0.0], [1.0, 4.0]])
    >>> cyrt.linalg.solve_triangular(a, cyrt.asarray([2.0, 9.0]), lower=True)
    Array([1., 2.], dtype=float32)
    """
    if recording and (is_followed(x1) or is_followed(x2)):
        return record_call(solve_triangular, (x1, x2, lower, trans, unit_diagonal, check))
    cdef Array a = square_of("solve_triangular", "x1", x1), b
    checked(lower, "solve_triangular: lower")
    checked(unit_diagonal, "solve_triangular: unit_diagonal")
    checked(check, "solve_triangular: check")
    trans_flags(trans)
    if are_joined(a, x2):
        b, vector = <Array>x2, False
    else:
        a, b, vector = joined("solve_triangular", a, "x2", x2)
    result, info = solve_any_triangular("solve_triangular", a, b, lower, trans, unit_diagonal,
                                        check)
    return with_info(result[..., 0] if vector else result, info)


def lu_solve(lu_and_pivots, b, /, trans=0, *, check=True):
    """Solve systems of linear equations whose matrices :func:`lu_factor` has factored.

    Parameters
    ----------
    lu_and_pivots : LUResult or tuple of Array
        The result of :func:`lu_factor` for matrices of shape (..., N, N).
    b : Array
        Right-hand sides: a vector of shape (N,), or matrices of shape (..., N, K). The leading
        dimensions broadcast.
    trans : int
        The system: ``a @ x = b`` for 0, ``a.mT @ x = b`` for 1, and ``conj(a).mT @ x = b`` for 2.
    check : bool
        As for :func:`solve_triangular`; a matrix whose pivots are not rows below has failed, too.

    Returns
    -------
    Array
        The solutions, as :func:`solve_triangular` returns them.

    Raises
    ------
    TypeError, ValueError
        The operands are not Arrays of fitting shapes, or `trans` has another value.
    cyrt.linalg.LinAlgError
        When a value is waited for: a matrix was singular, or the pivots are not of this matrix.

    Examples
    --------
    >>> import cyrt
    >>> factors = cyrt.linalg.lu_factor(cyrt.asarray([[3.0, 1.0], [1.0, 2.0]]))
    >>> cyrt.linalg.lu_solve(factors, cyrt.asarray([9.0, 8.0]))
    Array([2., 3.], dtype=float32)
    """
    if not isinstance(lu_and_pivots, (tuple, list)) or len(lu_and_pivots) != 2:
        raise TypeError("lu_solve: lu_and_pivots: expected the two Arrays that lu_factor returns, "
                        f"got {show(lu_and_pivots)}")
    if recording and (is_followed(b) or is_followed(lu_and_pivots[0])):
        return record_call(lu_solve, (lu_and_pivots, b, trans, check))
    cdef Array a, pivots, right
    checked(check, "lu_solve: check")
    lu, places = lu_and_pivots
    a = square_of("lu_solve", "lu", lu)
    pivots = check_array(places, "lu_solve: pivots")
    check_device(pivots, a, "lu_solve", "pivots")
    places_shape = tuple_of_sizes(a.ndim_ - 1, a.dims)
    if pivots.code != INT32 or shape_of(pivots) != places_shape:
        raise ValueError(f"lu_solve: expected int32 pivots of shape {places_shape}, got "
                         f"{DTYPES[pivots.code]} of shape {shape_of(pivots)}")
    if not is_int(trans) or trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans: expected 0, 1 or 2, got {show(trans)}")
    a, right, vector = joined("lu_solve", a, "b", b)
    pivots = as_contiguous(broadcast_to(pivots, tuple_of_sizes(a.ndim_ - 1, a.dims)))
    if trans == 0:
        right, unfit = exchange_rows(right, pivots, False, check)
        right, _ = solve_any_triangular("lu_solve", a, right, True, 0, True, True)
        result, info = solve_any_triangular("lu_solve", a, right, False, 0, False, check)
    else:
        right, info = solve_any_triangular("lu_solve", a, right, False, trans, False, check)
        right, _ = solve_any_triangular("lu_solve", a, right, True, trans, True, True)
        result, unfit = exchange_rows(right, pivots, True, check)
    return with_info(result[..., 0] if vector else result, None if check else info | unfit)


# -- QR --------------------------------------------------------------------------------------------


def qr(x, /, *, mode="reduced"):
    """Factor matrices into a matrix with orthonormal columns and an upper triangular one:
    ``x = Q @ R``.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., M, N), real or complex; integers are converted to float32.
    mode : str
        With "reduced", Q has K = min(M, N) columns. With "complete", Q is square, and K = M. With
        "r", only R is computed, with K = min(M, N) rows.

    Returns
    -------
    QRResult or Array
        ``Q``, of shape (..., M, K), and ``R``, of shape (..., K, N); for the mode "r" only R.

    Raises
    ------
    TypeError, ValueError
        x is not an Array of matrices, its type is float16 or bfloat16, or the mode does not exist.

    Notes
    -----
    The method is Householder's reflections (Golub and Van Loan, Matrix Computations, 5.2). R's
    diagonal has the signs of LAPACK's.

    Examples
    --------
    >>> import cyrt
    >>> q, r = cyrt.linalg.qr(cyrt.asarray([[3.0, 1.0], [4.0, 2.0]]))
    >>> r.shape, bool(abs(r[0, 0] + 5) < 1e-5)
    ((2, 2), True)
    """
    if recording and is_followed(x):
        if mode == "r":
            return qr(x).R
        return record_call(qr, (x, mode))
    cdef Call call
    cdef Array a = matrices_of("qr", "x", x), q = None, r
    cdef long long m, n, k
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode: expected 'reduced', 'complete' or 'r', got {show(mode)}")
    _kept = begin(&call, a)
    m, n = call.params.m, call.params.n
    k = m if mode == "complete" else min(m, n)
    call.params.k = <unsigned int>k
    if mode != "r":
        call.params.flags = LINALG_VECTORS
    if k and not is_whole(&call, QR):
        q, r = blocked().qr(a, 0 if mode == "r" else k)
        return r if q is None else named(QRResult, q, r)
    if mode != "r":
        q = new_result(&call, X, a.code, a, 2, m, k)
    r = new_result(&call, Y, a.code, a, 2, k, n)
    if k:       # else the results are empty
        record(&call, QR)
    return r if q is None else named(QRResult, q, r)


# -- singular values -------------------------------------------------------------------------------


cpdef object singular(str name, object x, bint full, bint vectors, object check,
                      bint factored=False):
    """Decompose; matrices that do not fit are first factored into Q and R, and with `factored` x is
    the adjoint of such an R."""
    cdef Call call
    cdef Array a = matrices_of(name, "x", x), u = None, s, v = None, info
    cdef long long m, n, k
    cdef bint whole
    _kept = begin(&call, a)
    m, n = call.params.m, call.params.n
    k = min(m, n)
    if vectors:
        call.params.flags = LINALG_VECTORS
    if m < n:       # the conjugate transpose is factored
        call.params.flags |= LINALG_TRANSPOSED
        call.params.m, call.params.n = <unsigned int>n, <unsigned int>m
    call.params.k = max(call.params.m, call.params.n) if full and vectors \
        else min(call.params.m, call.params.n)
    whole = factored or is_whole(&call, JACOBI)
    if not factored and may_be_served(&call, whole):
        found = by_library().singular(name, a, full, vectors, check)
        if found is not None:
            return found
    if not whole:
        return blocked().singular(name, a, full, vectors, check)
    s = new_result(&call, X, real_codes[a.code], a, 1, k, 0)
    if vectors:
        u = new_result(&call, Y, a.code, a, 2, m, m if full else k)
        v = new_result(&call, Z, a.code, a, 2, n if full else k, n)
    info = run(&call, JACOBI, a, name, NO_CONVERGENCE, check)
    return with_info(named(SVDResult, u, s, v) if vectors else s, info)


def svd(x, /, *, full_matrices=True, compute_uv=True, check=True):
    """Compute singular value decompositions: ``x = U @ diag(S) @ Vh``.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., M, N), real or complex; integers are converted to float32.
    full_matrices : bool
        Whether U and Vh are square; otherwise U has K = min(M, N) columns, and Vh as many rows.
    compute_uv : bool
        Whether to return U and Vh, and not only S.
    check : bool
        Whether failures are reported, as by :func:`cholesky`; the result of a matrix that is not
        finite is NaN.

    Returns
    -------
    SVDResult or Array
        ``U``, of shape (..., M, M) or (..., M, K); ``S``, real, of shape (..., K), in descending
        order; ``Vh``, of shape (..., N, N) or (..., K, N). With ``compute_uv=False`` only the Array
        S. With ``check=False`` a tuple of this result and an int32 array of shape (...,), which is
        1 for failed matrices and otherwise 0.

    Raises
    ------
    TypeError, ValueError
        x is not an Array of matrices, or its type is float16 or bfloat16.
    cyrt.linalg.LinAlgError
        When a value is waited for: a matrix was not finite, or the method did not converge.

    Notes
    -----
    The method is the one-sided one of Jacobi (Hestenes, J. SIAM 6, 1958; Demmel and Veselic, SIAM
    J. Matrix Anal. Appl. 13, 1992).

    Examples
    --------
    >>> import cyrt
    >>> u, s, vh = cyrt.linalg.svd(cyrt.asarray([[0.0, 2.0], [3.0, 0.0]]))
    >>> s
    Array([3., 2.], dtype=float32)
    """
    if recording and is_followed(x):
        if not checked(compute_uv, "svd: compute_uv"):
            return svdvals(x, check=check)
        return record_call(svd, (x, full_matrices, True, check))
    return singular("svd", x, checked(full_matrices, "svd: full_matrices"),
                    checked(compute_uv, "svd: compute_uv"), checked(check, "svd: check"))


def svdvals(x, /, *, check=True):
    """Compute singular values, in descending order.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., M, N), real or complex; integers are converted to float32.
    check : bool
        As for :func:`svd`.

    Returns
    -------
    Array
        A real array of shape (..., min(M, N)).

    Raises
    ------
    TypeError, ValueError, cyrt.linalg.LinAlgError
        The errors of :func:`svd`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.svdvals(cyrt.asarray([[0.0, 2.0], [3.0, 0.0]]))
    Array([3., 2.], dtype=float32)
    """
    if recording and is_followed(x):
        found = svd(x, full_matrices=False, check=check)
        return found.S if check else (found[0].S, found[1])
    return singular("svdvals", x, False, False, checked(check, "svdvals: check"))


# -- eigenvalues -----------------------------------------------------------------------------------


cdef object hermitian(str name, object x, object UPLO, bint vectors, object check):
    cdef Call call
    cdef Array a = square_of(name, "x", x), values, columns = None, info
    cdef long long n
    _kept = begin(&call, a)
    n = call.params.n
    call.params.k = <unsigned int>n
    call.params.flags = LINALG_HERMITIAN | triangle_flag(name, UPLO)
    found = None
    if may_be_served(&call, is_whole(&call, JACOBI)):
        found = by_library().hermitian(name, a, bool(call.params.flags & LINALG_UPPER), vectors,
                                       check)
    if found is not None:
        values, columns, info = found
        return with_info(named(EighResult, values, columns) if vectors else values, info)
    values = new_result(&call, X, real_codes[a.code], a, 1, n, 0)
    if vectors:
        call.params.flags |= LINALG_VECTORS
        columns = new_result(&call, Y, a.code, a, 2, n, n)
    info = run(&call, JACOBI, a, name, NO_CONVERGENCE, check)
    return with_info(named(EighResult, values, columns) if vectors else values, info)


def eigh(x, /, UPLO="L", *, check=True):
    """Compute eigenvalues and eigenvectors of Hermitian matrices:
    ``x = V @ diag(eigenvalues) @ conj(V).mT``.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., N, N), real symmetric or complex Hermitian; integers are converted
        to float32. Only one triangle is read.
    UPLO : str
        "L" for the lower triangle, "U" for the upper one.
    check : bool
        Whether failures are reported, as by :func:`cholesky`; the result of a matrix that is not
        finite is NaN.

    Returns
    -------
    EighResult
        ``eigenvalues``, real, of shape (..., N), in ascending order; ``eigenvectors``, of shape
        (..., N, N): the columns of each matrix, which is unitary. With ``check=False`` a tuple of
        this result and an int32 array of shape (...,), which is 1 for failed matrices and otherwise
        0.

    Raises
    ------
    TypeError, ValueError
        x is not an Array of square matrices, its type is float16 or bfloat16, or UPLO is neither
        "L" nor "U".
    cyrt.linalg.LinAlgError
        When a value is waited for: a matrix was not finite, or the method did not converge.

    Notes
    -----
    The method is the one-sided one of Jacobi, as for :func:`svd`. It runs on the sum of the matrix
    and a multiple of the identity that makes it positive definite.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.eigh(cyrt.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(eigh, (x, UPLO, check))
    return hermitian("eigh", x, UPLO, True, checked(check, "eigh: check"))


def eigvalsh(x, /, UPLO="L", *, check=True):
    """Compute eigenvalues of Hermitian matrices, in ascending order.

    Parameters
    ----------
    x, UPLO, check
        As for :func:`eigh`.

    Returns
    -------
    Array
        A real array of shape (..., N).

    Raises
    ------
    TypeError, ValueError, cyrt.linalg.LinAlgError
        The errors of :func:`eigh`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.eigvalsh(cyrt.asarray([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.], dtype=float32)
    """
    if recording and is_followed(x):
        found = eigh(x, UPLO, check=check)
        return found.eigenvalues if check else (found[0].eigenvalues, found[1])
    return hermitian("eigvalsh", x, UPLO, False, checked(check, "eigvalsh: check"))


cdef object general(str name, object x, bint vectors, object check):
    cdef Call call
    cdef Array a = square_of(name, "x", x), values, columns = None, info
    cdef long long n
    if kinds[a.code] == c"f":
        a = cast(a, COMPLEX64 if a.code == FLOAT32 else COMPLEX128)
    _kept = begin(&call, a)
    n = call.params.n
    found = None if is_whole(&call, EIG) else by_library().general(name, a, vectors, check)
    if found is not None:
        values, columns, info = found
        return with_info(named(EigResult, values, columns) if vectors else values, info)
    values = new_result(&call, X, a.code, a, 1, n, 0)
    if vectors:
        call.params.flags = LINALG_VECTORS
        columns = new_result(&call, Y, a.code, a, 2, n, n)
    info = run(&call, EIG, a, name, NO_CONVERGENCE, check)
    return with_info(named(EigResult, values, columns) if vectors else values, info)


def eig(x, /, *, check=True):
    """Compute eigenvalues and right eigenvectors of general matrices:
    ``x @ V = V @ diag(eigenvalues)``.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., N, N), real or complex; integers are converted to float32.
    check : bool
        Whether failures are reported, as by :func:`cholesky`; the result of a matrix that is not
        finite is NaN.

    Returns
    -------
    EigResult
        ``eigenvalues``, of shape (..., N), in no order; ``eigenvectors``, of shape (..., N, N): the
        columns of each matrix, of norm 1. Both are complex, also if all imaginary parts are zero.
        With ``check=False`` a tuple of this result and an int32 array of shape (...,), which is not
        0 for failed matrices.

    Raises
    ------
    TypeError, ValueError
        x is not an Array of square matrices, or its type is float16 or bfloat16.
    cyrt.linalg.LinAlgError
        When a value is waited for: a matrix was not finite, or the method did not converge.

    Notes
    -----
    A block of threads brings each matrix into Hessenberg's form, and applies the QR algorithm with
    single shifts, in complex arithmetic (Golub and Van Loan, Matrix Computations, 7.4 and 7.5).
    Pairs of eigenvalues of a real matrix are conjugate up to rounding errors.

    Examples
    --------
    >>> import cyrt
    >>> values, vectors = cyrt.linalg.eig(cyrt.asarray([[1.0, 0.0], [0.0, 3.0]]))
    >>> values
    Array([1.+0.j, 3.+0.j], dtype=complex64)
    """
    if recording and is_followed(x):
        return record_call(eig, (x, check))
    return general("eig", x, True, checked(check, "eig: check"))


def eigvals(x, /, *, check=True):
    """Compute eigenvalues of general matrices, in no order.

    Parameters
    ----------
    x, check
        As for :func:`eig`.

    Returns
    -------
    Array
        A complex array of shape (..., N).

    Raises
    ------
    TypeError, ValueError, cyrt.linalg.LinAlgError
        The errors of :func:`eig`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.eigvals(cyrt.asarray([[1.0, 0.0], [0.0, 3.0]]))
    Array([1.+0.j, 3.+0.j], dtype=complex64)
    """
    if recording and is_followed(x):
        found = eig(x, check=check)
        return found.eigenvalues if check else (found[0].eigenvalues, found[1])
    return general("eigvals", x, False, checked(check, "eigvals: check"))


# -- for functions that call others, and whose name errors tell ------------------------------------
#
# The operands are in a type that has kernels, or an error is raised. A function that is recorded
# tells its own name if matrices fail.


def square_matrices(str name, x):
    """Return matrices in a type that has kernels."""
    return square_of(name, "x", x)


def inverse_of(str name, Array x, bint check=True):
    """Return what `inv` does."""
    square_of(name, "x", x)
    return inv(x, check=check) if recording and is_followed(x) else inverted(name, x, check)


def solution_of(str name, Array a, Array b):
    """Return what `solve` does."""
    square_of(name, "x", a)
    if recording and (is_followed(a) or is_followed(b)):
        return solve(a, b)
    return solved(name, a, b, True)


def svd_of(str name, Array x):
    """Return what `svd` does, with matrices that are not square."""
    matrices_of(name, "x", x)
    if recording and is_followed(x):
        return svd(x, full_matrices=False)
    return singular(name, x, False, True, True)


def singular_values_of(str name, Array x):
    """Return what `svdvals` does."""
    matrices_of(name, "x", x)
    return svdvals(x) if recording and is_followed(x) else singular(name, x, False, False, True)


def hermitian_of(str name, Array x, bint vectors):
    """Return what `eigh` does, or `eigvalsh` without vectors."""
    square_of(name, "x", x)
    if recording and is_followed(x):
        return eigh(x) if vectors else eigvalsh(x)
    return hermitian(name, x, "L", vectors, True)


def eigenvalues_of(str name, Array x):
    """Return what `eigvals` does."""
    square_of(name, "x", x)
    return eigvals(x) if recording and is_followed(x) else general(name, x, False, True)
