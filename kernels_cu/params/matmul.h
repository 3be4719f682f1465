// Parameters of matmul.cu.
#ifndef CYRT_PARAMS_MATMUL_H
#define CYRT_PARAMS_MATMUL_H
#include "params/space.h"
#include "params/begin.h"

// Flags.
enum {
    DOT_VECTOR = 1,     // both operands: aligned, side by side, in whole vectors
    DOT_CONJUGATE = 2,  // the first operand
    MATMUL_PARTS = 4,   // a part's sums go to memory, unrounded
    PRODUCT_VECTOR_A = 8,
    PRODUCT_VECTOR_B = 16,
    PRODUCT_VECTOR_OUT = 32,
    PRODUCT_ALONG_A = 64,  // lanes run along the summed dimension
    PRODUCT_ALONG_B = 128
};

// What a warp of a skinny product takes at once, in registers.
enum {
    ALONG_ROWS = 16,   // rows of the matrix in a tile, if they are along the summed dimension
    ACROSS_ROWS = 32,  // and if they are across it
    ALONG_STEP = 64,   // bytes of a row
    ACROSS_STEP = 16   // elements of a column
};
// Steps that are on their way, and the most warps of a block, for so many times 8 few rows, of
// elements of so many bytes.
#define SKINNY_STEPS(EIGHTS, ITEMSIZE) (((EIGHTS) * (ITEMSIZE) <= 4 ? 8 : 4) / (ITEMSIZE))
#define SKINNY_WARPS(EIGHTS, ITEMSIZE) ((EIGHTS) <= 2 && (ITEMSIZE) == 2 ? 16 : 8)

// Through shared memory, a warp takes TILES times so many rows of the matrix, and so many indices of
// the summed dimension, at every step.
enum { RING_ROWS = 16, RING_STEP = 32 };
// Steps that are on their way, of up to EIGHTS times 8 few rows.
#define RING_STAGES(EIGHTS) ((EIGHTS) <= 2 ? 4 : (EIGHTS) == 4 ? 3 : 2)
// Bytes of shared memory of a warp: of a step, of whose vectors each lane copies as many, and of the
// sums in the end.
#define RING_STAGE_BYTES(TILES, EIGHTS) (512 * (2 * (TILES) + (EIGHTS)))
#define RING_SUMS_BYTES(TILES, EIGHTS) (4 * RING_ROWS * (TILES) * 8 * (EIGHTS))
// The most warps of a block.
#define RING_WARPS(TILES) ((TILES) == 1 ? 16 : 8)

// The most blocks of a sum's or a skinny product's grid that let the next kernel start early, which
// is to load its own weights.
enum { PRODUCT_BLOCKS = 528 };

// Sums of products along one dimension, one for each element of the result.
struct CYRT_PARAMETERS Dot {
    CYRT_POINTER(const void) a;
    CYRT_POINTER(const void) b;
    CYRT_POINTER(void) out;        // contiguous
    long long a_stride, b_stride;  // along the summed dimension
    long long a_column, b_column;  // columns: along the result's innermost dimension
    long long length, depth;       // summed in all, by a part
    struct Outer2 outer;           // the result's other dimensions (rows: all); a's stride first
    struct Divider chunks, parts;  // blocks that share a row (columns), a result
    unsigned int rows, columns, num_outer, flags;
    unsigned int early;  // 1: a's first elements may be loaded before griddepcontrol.wait
};

// A batch of products of matrices.
struct CYRT_PARAMETERS Product {
    CYRT_POINTER(const void) a;
    CYRT_POINTER(const void) b;
    CYRT_POINTER(void) out;  // contiguous: batch, m, n
    long long a_stride, a_summed, b_stride, b_summed;
    struct Outer2 batch;  // a's stride first
    struct Divider tiles_m, tiles_n, parts;
    unsigned int m, n, k, depth, num_batch, flags;  // depth: of a part, a multiple of every tile's
};

// A batch of products of a few rows and a matrix, each along the summed dimension k.
struct CYRT_PARAMETERS Skinny {
    CYRT_POINTER(const void) few_rows;  // adjacent along k
    CYRT_POINTER(const void) matrix;    // adjacent along k, or its rows are
    CYRT_POINTER(void) out;             // contiguous, or parts of it, unrounded
    long long few_step, wide_step;      // of a row; of a row or, where rows are adjacent, along k
    long long few_out, wide_out;        // the result's strides
    struct Outer2 batch;                // the stride of the few rows first
    struct Divider tiles, parts;
    unsigned int few, wide, k, depth, num_batch, flags;  // depth: of a part
    unsigned int works;  // through shared memory: tiles of all parts and batches
    unsigned int early;  // 1: the matrix's first may be loaded before griddepcontrol.wait
};

// Sums of parts, to be added.
struct CYRT_PARAMETERS Parts {
    CYRT_POINTER(const void) input;  // part by part
    CYRT_POINTER(void) out;
    long long n;  // of a part
    unsigned int count;
};

#include "params/end.h"
#endif
