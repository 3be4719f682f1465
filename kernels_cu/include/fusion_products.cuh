// Parts of fused kernels with a product: a thread applies the other operations to each result that it
// has computed.
#pragma once

#include "fusion.cuh"
#include "matmul.cu"
