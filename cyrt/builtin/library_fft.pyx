"""Discrete Fourier transforms by cuFFT."""

import math
from functools import partial

from cyrt.builtin cimport library
from cyrt.builtin.entry cimport MAX_DTYPES
from cyrt.builtin.fft cimport FFT_REAL_IN, FFT_REAL_OUT, Lines, Transform, find_lines
from cyrt.builtin.library cimport CUFFT, bindings_of, is_served, learn_call, record_learned
from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.exact_key cimport Key, add_word
from cyrt.graph.template cimport ALIGNMENT, Template, begin_call_key, find_template
from cyrt.runtime.device cimport context_of

cdef extern from "params/fft.h" nogil:
    enum: FFT_LONGEST

cdef enum:
    # The library's kernels take 0.2 to 0.9 times the time of own ones (measured on an H200 in
    # complex64, 64 to 2^22 points, each call on the result of the one before). Own kernels also
    # scale results and convert real numbers, for which the library needs further passes over the
    # data. These are made up for from so many points on, in all or in a line.
    LEAST_ALONG_ONE = 1 << 17
    LEAST_IN_LINE = 1 << 12
    LEAST_ALONG_SEVERAL = 1 << 16
    SHORTEST = 65               # own kernels transform shorter lines in two passes
    LEAST_TO_REAL = 1 << 15     # for other prime factors than 2, 3, 5 and 7: the input is copied
    PASS_BITS = 3               # each pass after the first one needs 1 << PASS_BITS times as many

cdef bint always = False
cdef int[MAX_DTYPES] itemsizes
for _each in DTYPES:
    itemsizes[<int>_each.code] = <int>_each.itemsize


def decide(int ordinal, served=None, bint every=False):
    """Use the library on a device or not, whatever the device is; None: decide at the next
    transform. `every`: for all transforms that it provides, also where own kernels are faster. For
    tests, which have a library for the emulated device, and for comparisons."""
    global always
    always = every
    library.decide(CUFFT, ordinal, served)


cdef inline bint is_direct(long long n) noexcept:
    """Return whether the prime factors are 2, 3, 5 and 7."""
    cdef long long prime
    n //= n & -n        # the factors of 2
    if n == 1:
        return True
    for prime in (3, 5, 7):
        while n % prime == 0:
            n //= prime
    return n == 1


cdef bint prefers_library(int ordinal, const Transform* transform, int rank, int ndim,
                          long long lines) except -1:
    cdef long long n = transform.n, points = lines * n
    cdef int further = 0        # passes over the data for which own kernels need none
    if not is_served(CUFFT, ordinal) or transform.inputs < (
            n // 2 + 1 if transform.kind & FFT_REAL_OUT else n):
        return False
    if always:
        return True
    if rank == 1 and 0 < transform.axis < ndim - 1:
        return False            # the library's lines have one distance
    if transform.kind & FFT_REAL_OUT:
        # Own kernels read lines of more points than FFT_LONGEST more than once.
        return points >= (LEAST_ALONG_ONE if n > FFT_LONGEST else LEAST_TO_REAL) \
            and (n > FFT_LONGEST or not is_direct(n))
    if transform.scale != 1:
        further += 1
    if transform.kind and not transform.half:
        further += 1            # complex numbers are the library's input
    if further == 0:
        return True
    points >>= (further - 1) * <int>PASS_BITS
    if rank > 1:
        return points >= LEAST_ALONG_SEVERAL
    if further == 1 and not is_direct(n):
        return True
    return n >= SHORTEST and (n >= LEAST_IN_LINE or points >= LEAST_ALONG_ONE)


cdef bint record_library_fft(Recorder encoder, int dtype, const Operand* operands, int ndim,
                             const long long* shape, const Transform* transform,
                             int rank) except -1:
    cdef Key key
    cdef Lines lines
    cdef Template template
    cdef int itemsize = itemsizes[dtype], d
    find_lines(&lines, operands, ndim, shape, transform, rank)
    if lines.space.ndim > 1 or operands[0].address % itemsize or operands[1].address % itemsize:
        return False
    begin_call_key(&key, CUFFT, encoder.state.ordinal)
    add_word(&key, <unsigned long long>dtype << 32 | transform.kind << 24 | rank << 16
             | operands[0].address % ALIGNMENT << 8 | operands[1].address % ALIGNMENT << 4
             | transform.half << 1 | transform.inverse)
    add_word(&key, lines.in_step)
    add_word(&key, lines.out_step)
    add_word(&key, lines.count)
    add_word(&key, transform.n)
    for d in range(transform.axis - rank + 1, transform.axis):
        add_word(&key, shape[d])
    if lines.space.ndim:
        add_word(&key, lines.space.strides[0][0])
        add_word(&key, lines.space.strides[0][1])
    template = find_template(&key)
    if template is None:
        template = prepare(encoder.state.ordinal, dtype, operands, shape, transform, rank, &lines,
                           &key)
    # A transform from half a spectrum overwrites its input.
    return record_learned(encoder, template, operands, 2,
                          3 if transform.kind & FFT_REAL_OUT else 1)


cdef Template prepare(int ordinal, int dtype, const Operand* operands, const long long* shape,
                      const Transform* transform, int rank, const Lines* lines, Key* key):
    """Learn the transform, or learn that the library does not provide it."""
    cdef long long in_distance, out_distance
    cdef bint to_real = transform.kind & FFT_REAL_OUT, to_half = transform.kind & FFT_REAL_IN
    cdef list others = [shape[d] for d in range(transform.axis - rank + 1, transform.axis)]
    cdef tuple sizes = tuple([*others, transform.n])
    cdef tuple half = tuple([*others, transform.n // 2 + 1])
    cdef object cufft = bindings_of(CUFFT), spectrum = DTYPES[dtype], real = _dtype(spectrum.real)
    cdef tuple in_sizes = half if to_real else sizes, out_sizes = half if to_half else sizes
    if lines.space.ndim:
        out_distance, in_distance = lines.space.strides[0][0], lines.space.strides[0][1]
    else:       # the library refuses 0, also for a transform that is alone
        out_distance = lines.out_step * math.prod(out_sizes)
        in_distance = lines.in_step * math.prod(in_sizes)
    source = cufft.Points((real if to_half else spectrum).name, in_sizes, lines.in_step,
                          in_distance)
    target = cufft.Points((real if to_real else spectrum).name, out_sizes, lines.out_step,
                          out_distance)
    make = partial(cufft.Transform, cufft.find()[0], ordinal, context_of(ordinal).epoch, sizes,
                   source, target, lines.count, bool(transform.inverse))
    return learn_call(CUFFT, key, ordinal, make, operands, 2,
                      lines.count * math.prod(out_sizes)
                      * (real if to_real else spectrum).itemsize)
