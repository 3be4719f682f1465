// Parameters of fft.cu.
#ifndef CYRT_PARAMS_FFT_H
#define CYRT_PARAMS_FFT_H
#include "params/space.h"
#include "params/begin.h"

enum {
    FFT_BLOCK = 640,     // the most threads
    FFT_ITEMS = 16,      // the most points that a thread holds
    FFT_LONGEST = 8192,  // the most points of a line
    FFT_PASSES = 8,      // the most passes of a line
    // Flags. A real input or output has real numbers in memory.
    FFT_REAL_IN = 1,
    FFT_REAL_OUT = 2,
    FFT_HERMITIAN = 4,  // the input has the first half of a spectrum whose result is real
    FFT_CONJUGATE_IN = 8,
    FFT_CONJUGATE_OUT = 16,
    FFT_LINES_IN = 32,  // adjacent threads load from, store to adjacent lines
    FFT_LINES_OUT = 64,
    // Pairs of real numbers are the complex points of a line of half the length.
    FFT_PACKED_IN = 128,  // the output is the first half of the spectrum
    FFT_PACKED_OUT = 256  // the input is the first half of the spectrum, or its conjugate
};

// Where point i of a line is in shared memory: gaps keep strided accesses off the same bank.
#define FFT_PADDED(i, itemsize) ((i) + ((i) >> ((itemsize) == 8 ? 4 : 3)))

// A pass over a line of n points.
struct FftPass {
    unsigned int radix;
    struct Divider butterflies;  // the butterflies of a line: n / radix
    struct Divider done;         // the product of the radices of the passes before
};

// How the points of a line are in memory. Point k of a line has the logical index
// i = k * step + sub, where `sub` is the line's index among the lines of one transform.
struct FftSide {
    long long point, sub;  // steps in elements, from k to k + 1 and from line to line
    unsigned int step;     // from k to k + 1, in logical indices
    unsigned int valid;    // logical indices from here on: 0 in the input, no output
};

struct CYRT_PARAMETERS Fft {
    CYRT_POINTER(const void) input;
    CYRT_POINTER(void) out;
    CYRT_POINTER(const void) roots;      // the roots of each pass: n - 1 factors
    CYRT_POINTER(const void) in_table;   // factors by logical index; 0: none
    CYRT_POINTER(const void) out_table;  // the same
    CYRT_POINTER(const void) half;       // roots of packed lines: exp(-pi i k / n), k < n
    CYRT_POINTER(const void) high;       // factors between launches, complex128; 0: none:
    CYRT_POINTER(const void) low;        // w ** i is high[i >> low_bits] * low[rest]
    double scale;
    struct FftSide from, to;
    struct Outer2 outer;                   // the transforms: strides of the output and the input
    struct Divider subs;                   // lines of a transform
    struct Divider tile;                   // lines of a block
    unsigned int lines, n, pitch, length;  // all lines; points of a line; points from line to line
                                           // in shared memory; points of the transform
    unsigned int num_outer, passes, flags;
    unsigned int low_bits, twist;  // i is sub * k * twist
    struct FftPass pass[FFT_PASSES];
};

#include "params/end.h"
#endif
