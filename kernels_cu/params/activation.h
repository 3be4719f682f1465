// Activations that products and convolutions apply to their sums.
#ifndef CYRT_PARAMS_ACTIVATION_H
#define CYRT_PARAMS_ACTIVATION_H
#include "params/begin.h"

enum { ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_GELU, ACTIVATION_GELU_TANH, ACTIVATION_SILU };

#include "params/end.h"
#endif
