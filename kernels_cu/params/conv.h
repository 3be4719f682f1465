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

// Of windows by phases (see conv_phases.cuh): a block takes so many neighbouring columns of places, and
// lines of them by 4 warps of tensor cores, or by half as many threads in float32. A step has as many
// vectors of channels, of which so many steps are in shared memory.
enum { PHASE_COLUMNS = 16, PHASE_STRIPS = 4, PHASE_VECTORS = 2, PHASE_STAGES = 2 };
enum { PHASE_BLOCK = 32 * PHASE_STRIPS, PHASE_BLOCK_MULTIPLY_ADD = PHASE_COLUMNS * PHASE_STRIPS };
// The most sums of a place, and the lines of a warp, or of a thread with the most sums in float32.
enum { PHASE_SUMS = 16, PHASE_LINES = 7, PHASE_LINES_OF_MOST = 6 };

// Convolutions of a source whose elements are a stride apart, by phases. Numbers of two dimensions.
struct CYRT_PARAMETERS ConvPhases {
    CYRT_POINTER(const void) source;  // channels are adjacent
    CYRT_POINTER(const void) other;   // the weight as `arrange_weight` leaves it
    CYRT_POINTER(const void) bias;
    CYRT_POINTER(void) out;
    long long batch_step, bias_step;
    long long step[2];                    // of the source
    struct Divider tiles_m, tiles_n;      // of an image, along a line and across
    struct Divider width;                 // elements of the source along a tile's line
    struct Divider run;                   // results of a place along a line: stride by channels
    struct Divider channels;              // of the result
    int first[2];                         // the source's element at tap 0 of place 0
    unsigned int taps[2];                 // of a place's window
    unsigned int sources[2], outputs[2];  // sizes
    unsigned int shift[2];                // output of place 0 and phase 0: so many before the first
    unsigned int used[2][4];              // taps that each quarter of the sums has, a bit each
    unsigned int stride;
    unsigned int vectors, steps;  // of the source's channels
    unsigned int activation;
};

// The weight, by taps of a place's window.
struct CYRT_PARAMETERS ConvPhaseWeight {
    CYRT_POINTER(const void) weight;
    CYRT_POINTER(void) out;                        // step, tap, vector, sum, channel
    long long source_step, result_step, tap_step;  // of the weight
    unsigned int sources, results;                 // channels
    unsigned int taps[2], filter[2];               // of a place's window, and of the weight
    int first[2];                                  // the filter's tap at tap 0 and phase 0
    unsigned int backwards;                        // whether the filter's last tap is its first
    unsigned int stride, sums, n;
};

#include "params/end.h"
#endif
