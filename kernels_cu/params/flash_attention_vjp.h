// Parameters of flash_attention_vjp.cu.
#ifndef CYRT_PARAMS_FLASH_ATTENTION_VJP_H
#define CYRT_PARAMS_FLASH_ATTENTION_VJP_H
#include "params/attention.h"
#include "params/begin.h"

enum {
    FLASH_VJP_ROWS = 128,   // rows of queries, or keys, whose gradients a block computes
    FLASH_VJP_NARROW = 64,  // features that the kernels of narrow heads hold
    FLASH_VJP_WIDE = 128    // those of wide heads
};

struct CYRT_PARAMETERS FlashAttentionVjp {
    CYRT_POINTER(void) gq;  // (batch, heads, rows, features), contiguous, as all results
    CYRT_POINTER(void) gk;
    CYRT_POINTER(void) gv;
    CYRT_POINTER(const void) g;
    CYRT_POINTER(const void) q;
    CYRT_POINTER(const void) k;
    CYRT_POINTER(const void) v;
    CYRT_POINTER(void) sums;  // one for each row of queries, (batch, heads, all_rows), contiguous
    struct AttentionStrides g_step, q_step, k_step, v_step;
    float scale;   // from products to logits, whose powers of 2 are taken; it is above 0
    float factor;  // multiplies the gradients of products
    int rows, keys;
    int all_rows;  // a multiple of FLASH_VJP_ROWS
    unsigned int features, flags;
    struct Divider units, heads;  // the grid's units and heads: those of queries, or of keys
    struct Divider group;         // heads of queries that share a head of keys
};

#include "params/end.h"
#endif
