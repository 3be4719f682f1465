// What kernels are made of in which operations follow a product: a thread goes on with each result that
// it has computed.
#pragma once

#include "fusion.cuh"
#include "matmul.cu"
