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

// Strips: neighbouring outputs of a depthwise convolution, which one thread computes.
enum {
    CONV_STRIP = 4,          // outputs of a line
    CONV_LINES = 4,          // lines of 16-bit elements
    CONV_WIDE_LINES = 7,     // lines of wider elements
    CONV_STRIP_TAPS = 3,     // taps of a window in a dimension
    CONV_STRIP_ITEMS = 4,    // channels, at most as many as fill 16 bytes
    CONV_STRIP_BLOCK = 128,  // threads of a block
};

// Products of matrices, one a group: rows by length, of the source unfolded into windows, and length
// by columns, of the other operand.
//
//                    rows                length              columns   other
// conv               outputs             taps, channels      channels  weight
// conv_input_vjp     input positions     taps, channels      channels  weight
// conv_weight_vjp    taps, channels      outputs             channels  gradient
struct CYRT_PARAMETERS Conv {
    CYRT_POINTER(const void) source;  // channels are adjacent
    CYRT_POINTER(const void) other;
    CYRT_POINTER(const void) bias;
    CYRT_POINTER(void) out;
    struct Windows windows;
    long long other_step;   // to the weight's next output channel, or the gradient's next output
    long long other_group;  // to the next group
    long long out_step;     // to the next row
    long long bias_step;
    struct Divider channels;  // a group's channels of the source; depthwise: a channel's results
    // Strips: the strips of a line, the vectors of channels, and the groups of lines.
    struct Divider tiles_m, tiles_n, groups;
    unsigned int rows, columns, length;
    unsigned int depth;  // the length of a part; strips: the number of images
    unsigned int flags, activation;
};

// Sums of parts, to be added.
struct CYRT_PARAMETERS ConvSum {
    CYRT_POINTER(const void) input;  // part, group, row, column
    CYRT_POINTER(const void) bias;
    CYRT_POINTER(void) out;
    long long group_step, row_step, column_step, bias_step;
    struct Divider rows, columns;
    unsigned int n, count, activation;  // n: the sums of a part
};

// Windows by phases: see conv_phases.cuh.
enum {
    PHASE_COLUMNS = 16,       // neighbouring columns of positions of a block
    PHASE_STRIPS = 4,         // strips of lines of a block
    PHASE_VECTORS = 2,        // vectors of channels of a step
    PHASE_STAGES = 2,         // steps in shared memory
    PHASE_SUMS = 16,          // the most sums of a position
    PHASE_LINES = 7,          // lines of a strip
    PHASE_LINES_OF_MOST = 6,  // lines of a strip with the most sums in float32
    // Threads of a block: tensor cores have a warp for each strip, float32 a thread for each column.
    PHASE_BLOCK = 32 * PHASE_STRIPS,
    PHASE_BLOCK_MULTIPLY_ADD = PHASE_COLUMNS * PHASE_STRIPS
};

// Convolutions of a source whose elements are a stride apart, by phases, in two dimensions.
struct CYRT_PARAMETERS ConvPhases {
    CYRT_POINTER(const void) source;  // channels are adjacent
    CYRT_POINTER(const void) other;   // the weight as `arrange_weight` leaves it
    CYRT_POINTER(const void) bias;
    CYRT_POINTER(void) out;
    long long batch_step, bias_step;
    long long step[2];                    // from one element of the source to the next
    struct Divider tiles_m, tiles_n;      // an image's tiles along a line and across
    struct Divider width;                 // elements of the source along a tile's line
    struct Divider run;                   // results of a position along a line: stride by channels
    struct Divider channels;              // the result's
    int first[2];                         // the source's element at tap 0 of position 0
    unsigned int taps[2];                 // taps of a position's window
    unsigned int sources[2], outputs[2];  // sizes
    unsigned int shift[2];                // outputs from position 0 and phase 0 to the first output
    unsigned int used[2][4];              // taps that each quarter of the sums has, a bit each
    unsigned int stride;
    unsigned int vectors, steps;  // vectors of the source's channels; steps through them
    unsigned int activation;
};

// The weight, by taps of a position's window.
struct CYRT_PARAMETERS ConvPhaseWeight {
    CYRT_POINTER(const void) weight;
    CYRT_POINTER(void) out;                        // step, tap, vector, sum, channel
    long long source_step, result_step, tap_step;  // the weight's
    unsigned int sources, results;                 // channels
    unsigned int taps[2], filter[2];               // taps of a position's window and of the weight
    int first[2];                                  // the filter's tap at tap 0 and phase 0
    unsigned int backwards;                        // whether the filter's last tap is its first
    unsigned int stride, sums, n;
};

#include "params/end.h"
#endif
