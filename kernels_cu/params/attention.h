// Parameters of attention.cu. Strides and flags are flash_attention.cu's, too.
#ifndef CYRT_PARAMS_ATTENTION_H
#define CYRT_PARAMS_ATTENTION_H
#include "params/space.h"
#include "params/begin.h"

enum {
    ATTENTION_ITEMS = 8,    // features of a key that a lane holds
    ATTENTION_WARPS = 8,    // the most warps of a block
    ATTENTION_PARTS = 128,  // the most parts of the cache: a block combines them, a thread each
    // By tensor cores: the rows of queries of a block, and the elements behind one in shared memory.
    ATTENTION_TILE_ROWS = 8,
    ATTENTION_TILE_PADDING = 32,
    // Flags.
    ATTENTION_APPEND = 1,          // new keys and values are written to the cache
    ATTENTION_WIDE_POSITIONS = 2,  // positions are int64; otherwise int32
    ATTENTION_WIDE_SINKS = 4,      // sinks are float32; otherwise of the queries' type
    ATTENTION_TRADITIONAL = 8,     // neighbouring features are a pair
    ATTENTION_CAUSAL = 16,         // the last query sees all keys, the one before all but one ...
    ATTENTION_NEGATE = 32,         // the scale is negative, and given without its sign
    ATTENTION_WIDE_FREQS = 64      // freqs are double; otherwise float
};

// Keys that a lane takes at once, 8 features of each, where they are aligned.
#define ATTENTION_KEYS(ITEMSIZE) ((ITEMSIZE) <= 2 ? 4 : 2)
// By tensor cores, of heads of up to so many features: keys that a warp takes at once, warps of a block
// and blocks in a multiprocessor, at most. There are registers for the keys and values of all of them.
#define ATTENTION_TILE_KEYS(WIDTH) ((WIDTH) == 128 ? 32 : 16)
#define ATTENTION_TILE_WARPS(WIDTH) ((WIDTH) == 256 ? 4 : 8)
#define ATTENTION_TILE_WAVES(WIDTH) ((WIDTH) == 128 ? 1 : 2)
// Vectors of shared memory that new rows occupy, of so many bytes.
#define ATTENTION_NEW_VECTORS(NBYTES) (((NBYTES) + 15) / 16)

// (batch, heads, rows, features), the features contiguous. Strides are in elements.
struct AttentionStrides {
    long long batch, head, row;
};

struct CYRT_PARAMETERS Attention {
    CYRT_POINTER(void) out;   // (batch, heads, rows, features), contiguous
    CYRT_POINTER(void) keys;  // the cache
    CYRT_POINTER(void) values;
    CYRT_POINTER(const void) q;
    CYRT_POINTER(const void) k;  // new rows, which follow the first ones of the cache
    CYRT_POINTER(const void) v;
    CYRT_POINTER(const void) positions;  // positions of the first new row of each batch; or NULL
    CYRT_POINTER(const void) freqs;      // the radians' divisor of each pair; or NULL
    CYRT_POINTER(const void) sinks;      // a logit of each head; or NULL
    CYRT_POINTER(float) states;          // states of the parts of the cache; NULL: there is one
    struct AttentionStrides q_step, k_step, v_step, keys_step, values_step;
    long long positions_step, freqs_step, sinks_step;
    long long first;          // added to every position
    long long most;           // the largest position of a first new row
    double turns, log2_step;  // the rotation, as in Rope
    float scale;              // from products to logits, whose powers of 2 are taken
    unsigned int fresh;       // new rows of keys and values
    unsigned int capacity;    // keys that the memory of the cache has
    unsigned int features, pairs, flags;
    unsigned int group;                  // heads of queries that share a head of keys
    unsigned int lanes;                  // lanes of a warp that share a key; a power of two
    struct Divider parts, tiles, heads;  // the cache's parts, a group's tiles, heads of keys
    struct Divider rows, group_rows;     // rows of a head of queries, and of a group of heads
    struct Divider chunk;                // keys that a block takes at once
    struct Divider row_pairs;            // pairs of features; the last one may have one
};

#include "params/end.h"
#endif
