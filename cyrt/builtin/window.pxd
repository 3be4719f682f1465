# Sliding windows: the arguments that describe them, read and checked, and as kernels take them.
#
# INVARIANTS
# - Positions are below 2**31 on either side of 0, and those of taps below 2**28, so that kernels
#   compute them in 32 bits.

from cpython.long cimport PyLong_CheckExact

from cyrt.builtin.space cimport Divider

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int*) noexcept   # raises nothing for an int

cdef extern from "params/window.h" nogil:
    enum: WINDOW_AXES
    cdef struct Axis:
        Divider outputs, taps, spacing
        int stride, step, origin
        unsigned int limit
        long long source_step
    cdef struct Windows:
        Axis[WINDOW_AXES] axis
        long long batch_step
        unsigned int num_axes, spaced

cdef enum:
    FARTHEST = 1 << 28      # the limit of dilated sizes and of padding

# Windows over the spatial dimensions of a source: see Axis. Missing dimensions have size 1.
cdef struct Sliding:
    int ndim
    long long[WINDOW_AXES] sources, outputs, taps
    long long[WINDOW_AXES] stride, step, origin, spacing

# Read the windows' arguments: each is an int, or one int for each dimension; the padding may be a
# pair for each. `sources` and `taps` are the sizes of the dimensions. Raise a ValueError or a
# TypeError if an argument is outside its limits or leaves no room for a window.
cdef int set_sliding(Sliding* sliding, str name, int ndim, const long long* sources,
                     const long long* taps, object stride, object padding, object dilation,
                     object input_dilation, bint flip) except -1
# Return the value of an int, at most 2**62 on either side of 0.
cdef inline long long limited(object whole) noexcept:
    cdef int overflow = 0
    cdef long long number = PyLong_AsLongLongAndOverflow(whole, &overflow)
    return overflow * (<long long>1 << 62) if overflow else number
# Set the value of an int, or of an object that has an index; return False if it is neither.
cdef inline bint read_int(object value, long long* number) except -1:
    if PyLong_CheckExact(value):
        number[0] = limited(value)
        return True
    return read_index(value, number)
cdef bint read_index(object value, long long* number) except -1
# Read a number of at least `least` for each dimension. Errors mention pairs if `paired`.
cdef int read_numbers(str name, str argument, object value, int ndim, long long least,
                      long long* numbers, bint paired=*) except -1
# Read the padding before and behind each dimension.
cdef int read_padding(str name, object padding, int ndim, long long* low, long long* high) except -1
# Return, for each element of the source, the window of the outputs that read it.
cdef Sliding reverse(const Sliding* sliding) noexcept
# Return the product of sizes, or a number above every limit if it is larger than that.
cdef long long product(const long long* sizes) noexcept
# Set the kernel's windows; steps are the source's, in elements.
cdef void set_windows(Windows* windows, const Sliding* sliding, long long batch_step,
                      const long long* steps) noexcept
