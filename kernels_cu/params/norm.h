// Parameters of norm.cu.
#ifndef CYRT_PARAMS_NORM_H
#define CYRT_PARAMS_NORM_H
#include "params/row.h"
#include "params/space.h"
#include "params/begin.h"

enum {
    FEW_ITEMS = 16,    // elements of x that a thread holds at least, if rows have them
    VJP_HELD = 16,     // elements of x of which a thread holds the slopes and the weight, too
    VJP_ADDENDS = 16,  // partials that a thread of the last launch of the gradients loads at once
    FULL_CHUNKS = 2,   // vectors that a thread holds of each of two rows that fill their threads
    // Flags, beside ROW_VECTORS.
    NORM_STREAM = 2,  // the gradients' rows of 4-byte elements stream
    NORM_FULL = 4     // rows fill their threads
};

// Rows under way while a block works on one: 64 KB of x and of the gradient on a multiprocessor.
#define NORM_STAGES(ITEMSIZE) ((ITEMSIZE) > 2 ? 1 : 2)

// The vectors, of this many elements, of x and of the gradient that a thread holds of an aligned row:
// 32 elements of the types up to 4 bytes, 8 of float64.
#define VJP_CHUNKS(ITEMS) ((ITEMS) == 4 ? 8 : 4)

// Steps are in elements. A pointer to an absent array is 0.
struct CYRT_PARAMETERS Norm {
    CYRT_POINTER(const void) x;
    CYRT_POINTER(const void) gradient;  // the gradient of the result
    CYRT_POINTER(const void) weight;
    CYRT_POINTER(const void) bias;
    CYRT_POINTER(void) out;       // the result, or the gradient of x
    CYRT_POINTER(void) states;    // states of the parts of rows
    CYRT_POINTER(void) partials;  // partial sums of the gradients of weight, then of bias
    CYRT_POINTER(void) weight_gradient;
    CYRT_POINTER(void) bias_gradient;
    long long rows, n;                          // n elements a row
    long long x_step, gradient_step, out_step;  // from row to row
    long long part;                             // elements of a part of a row
    // In the type that the kernels compute in, float or double: constants of instructions then.
    unsigned char eps[8], share[8];  // share: 1 / n
    struct Divider parts;            // the parts of a row
    struct Divider strips;           // strips of columns, a block each
    unsigned int groups;             // rows of partials
    unsigned int flags;
};

#include "params/end.h"
#endif
