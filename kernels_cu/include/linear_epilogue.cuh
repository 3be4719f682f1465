// What follows the sums of a linear layer: bias, activation or gate, and residual.
#pragma once

#include "activations.cuh"
#include "memory.cuh"
#include "params/linear.h"

namespace cyrt {

// The epilogue of one result.
template <class T> struct LinearEpilogue {
    T bias, gated_bias, residual;  // read only where the layer has them

    // They are loaded well before they are needed.
    __device__ void load_bias(const Linear& args, uint32 index) {
        if (!args.bias) return;
        const T* from = static_cast<const T*>(args.bias) + index;
        bias = global<T>(from)[0];
        if (args.gated) gated_bias = global<T>(from)[args.product.wide];
    }
    __device__ void load_residual(const Linear& args, int64 offset) {
        if (args.residual) residual = global<T>(args.residual)[offset];
    }
    LinearEpilogue() = default;
    __device__ LinearEpilogue(const Linear& args, uint32 index, int64 offset) {
        load_bias(args, index);
        load_residual(args, offset);
    }
    // `gated` is the sum that this one is multiplied with, if this one is a gate.
    __device__ T apply(const Linear& args, float sum, float gated) const {
        if (args.bias) sum += widen(bias);
        if (args.gated) {
            sum = silu(sum) * (args.bias ? gated + widen(gated_bias) : gated);
        } else if (args.activation != ACTIVATION_NONE) {
            sum = activate(sum, args.activation);
        }
        if (args.residual) sum += widen(residual);
        return cast<T>(sum);
    }
};

}  // namespace cyrt
