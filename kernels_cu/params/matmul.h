// Parameters of matmul.cu.
#ifndef CYRT_PARAMS_MATMUL_H
#define CYRT_PARAMS_MATMUL_H
#include "params/space.h"
#include "params/begin.h"

// Flags.
enum {
    DOT_VECTOR = 1,     // both operands are aligned, contiguous, and whole vectors
    DOT_CONJUGATE = 2,  // the first operand is conjugated
    MATMUL_PARTS = 4,   // a part's sums go to memory, unrounded
    PRODUCT_VECTOR_A = 8,
    PRODUCT_VECTOR_B = 16,
    PRODUCT_VECTOR_OUT = 32,
    PRODUCT_ALONG_A = 64,  // lanes run along the summed dimension
    PRODUCT_ALONG_B = 128
};

// What a warp of a skinny product loads at once into registers, of a matrix whose rows are along the
// summed dimension or across it.
enum {
    ALONG_ROWS = 16,   // rows of a tile
    ALONG_STEP = 64,   // bytes of each row
    ACROSS_ROWS = 32,  // rows of a tile
    NARROW_ROWS = 8    // rows of a tile where others would be few
};
#define ACROSS_STEP(ROWS) (16 * 32 / (ROWS))  // elements of each column
// Steps that are loaded ahead, and the most warps of a block, for 8 * EIGHTS few rows of elements of
// ITEMSIZE bytes.
#define SKINNY_STEPS(EIGHTS, ITEMSIZE) (((EIGHTS) * (ITEMSIZE) <= 4 ? 8 : 4) / (ITEMSIZE))
#define SKINNY_WARPS(EIGHTS, ITEMSIZE) ((EIGHTS) <= 2 && (ITEMSIZE) == 2 ? 16 : 8)

// A ring goes through shared memory. At every step a warp takes TILES * RING_ROWS rows of the matrix and
// RING_STEP indices of the summed dimension.
enum { RING_ROWS = 16, RING_STEP = 32 };
// Steps that are loaded ahead, for up to 8 * EIGHTS few rows.
#define RING_STAGES(EIGHTS) ((EIGHTS) <= 2 ? 4 : (EIGHTS) == 4 ? 3 : 2)
// Bytes of shared memory of a warp: for a step, in which each lane copies 2 * TILES + EIGHTS vectors,
// and for the sums in the end.
#define RING_STAGE_BYTES(TILES, EIGHTS) (512 * (2 * (TILES) + (EIGHTS)))
#define RING_SUMS_BYTES(TILES, EIGHTS) (4 * RING_ROWS * (TILES) * 8 * (EIGHTS))
// The most warps of a block.
#define RING_WARPS(TILES) ((TILES) == 1 ? 16 : 8)

// The most blocks of a grid that lets the next kernel start early, to load its own weights.
enum { PRODUCT_BLOCKS = 528 };

// Sums of products along one dimension, one for each element of the result.
struct CYRT_PARAMETERS Dot {
    CYRT_POINTER(const void) a;
    CYRT_POINTER(const void) b;
    CYRT_POINTER(void) out;        // contiguous
    long long a_stride, b_stride;  // along the summed dimension
    long long a_column, b_column;  // columns: along the result's innermost dimension
    long long length, depth;       // elements summed in all, and by a part
    struct Outer2 outer;           // the result's other dimensions (rows: all); a's stride first
    struct Divider chunks, parts;  // blocks that share a row (columns), blocks that share a result
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
    unsigned int m, n, k, depth, num_batch, flags;  // depth: a part's, a multiple of every tile's
};

// A batch of products of a few rows and a matrix, each along the summed dimension k.
struct CYRT_PARAMETERS Skinny {
    CYRT_POINTER(const void) few_rows;  // adjacent along k
    CYRT_POINTER(const void) matrix;    // adjacent along k, or its rows are
    CYRT_POINTER(void) out;             // contiguous, or parts of it, unrounded
    long long few_step;                 // to the next of the few rows
    long long wide_step;          // to the matrix's next row; where rows are adjacent, along k
    long long few_out, wide_out;  // the result's strides
    struct Outer2 batch;          // the stride of the few rows first
    struct Divider tiles, parts;
    unsigned int few, wide, k, depth, num_batch, flags;  // depth: a part's
    unsigned int works;                                  // a ring's: tiles of all parts and batches
    unsigned int early;  // 1: the matrix's first elements may be loaded before griddepcontrol.wait
};

// Sums of parts, to be added.
struct CYRT_PARAMETERS Parts {
    CYRT_POINTER(const void) input;  // part by part
    CYRT_POINTER(void) out;
    long long n;  // the sums of a part
    unsigned int count;
};

#include "params/end.h"
#endif
