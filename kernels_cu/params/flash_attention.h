// Parameters of flash_attention.cu.
#ifndef CYRT_PARAMS_FLASH_ATTENTION_H
#define CYRT_PARAMS_FLASH_ATTENTION_H
#include "params/attention.h"
#include "params/begin.h"

enum {
    FLASH_ROWS = 128,   // rows of queries of a block
    FLASH_KEYS = 64,    // keys of a tile
    FLASH_NARROW = 64,  // features that the kernels of narrow heads hold
    FLASH_WIDE = 128,   // those of wide heads
    // What an element of the mask is.
    FLASH_MASK_BOOL = 0,
    FLASH_MASK_OWN,   // added, of the queries' type
    FLASH_MASK_FLOAT  // added, float32
};

struct CYRT_PARAMETERS FlashAttention {
    CYRT_POINTER(void) out;  // (batch, heads, rows, features), contiguous
    CYRT_POINTER(const void) q;
    CYRT_POINTER(const void) k;
    CYRT_POINTER(const void) v;
    CYRT_POINTER(const void) mask;                              // (batch, heads, rows, keys)
    CYRT_POINTER(const void) sinks;                             // a logit of each head; or NULL
    struct AttentionStrides q_step, k_step, v_step, mask_step;  // rows of queries, in the mask
    long long mask_key_step, sinks_step;
    float scale;  // from products to logits, whose powers of 2 are taken; it is above 0
    int rows, keys;
    unsigned int features, flags, mask_type;
    struct Divider tiles, heads, group;  // tiles of rows; heads of queries; heads that share keys
};

#include "params/end.h"
#endif
