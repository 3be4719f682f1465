// Parameters of conv.cu.
#ifndef CYRT_PARAMS_CONV_H
#define CYRT_PARAMS_CONV_H
#include "params/activation.h"
#include "params/window.h"
#include "params/begin.h"

// Flags.
enum {
    CONV_VECTOR_SOURCE = 1,  // channels are aligned vectors
    CONV_VECTOR_OTHER = 2,
    CONV_VECTOR_OUT = 4,
    CONV_PARTS = 8,  // sums go to memory, unrounded: part, group, row, column
};

// Outputs of a thread that takes neighbouring ones, in lines of elements of 16 bits or of more; the
// taps of their windows in a dimension; its channels: so many, or as many as fill 16 bytes. And the
// threads of a block.
enum {
    CONV_STRIP = 4,
    CONV_LINES = 4,
    CONV_WIDE_LINES = 7,
    CONV_STRIP_TAPS = 3,
    CONV_STRIP_ITEMS = 4,
    CONV_STRIP_BLOCK = 128,
};

// Products of matrices, one a group: rows by length, of the source unfolded into windows, and length
// by columns, of the other operand.
//
//                    rows                length              columns   other
// conv               outputs             taps, channels      channels  weight
// conv_input_vjp     the input's places  taps, channels      channels  weight
// conv_weight_vjp    taps, channels      outputs             channels  gradient
struct CYRT_PARAMETERS Conv {
    CYRT_POINTER(const void) source;  // channels are adjacent
    CYRT_POINTER(const void) other;
    CYRT_POINTER(const void) bias;
    CYRT_POINTER(void) out;
    struct Windows windows;
    long long other_step;   // of the weight's output channel, or the gradient's output
    long long other_group;  // to the next group
    long long out_step;     // of a row
    long long bias_step;
    struct Divider channels;  // of the source in a group; depthwise: results of a channel
    // For strips: the strips of a line, vectors of channels, and groups of lines; depth: images.
    struct Divider tiles_m, tiles_n, groups;
    unsigned int rows, columns, length, depth;  // depth: of a part of the length
    unsigned int flags, activation;
};

// Sums of parts, to be added.
struct CYRT_PARAMETERS ConvSum {
    CYRT_POINTER(const void) input;  // part, group, row, column
    CYRT_POINTER(const void) bias;
    CYRT_POINTER(void) out;
    long long group_step, row_step, column_step, bias_step;
    struct Divider rows, columns;
    unsigned int n, count, activation;  // n: of a part
};

#include "params/end.h"
#endif
