"""What tests compile, and for which architecture."""

from cyrt.jit.compiler import compile

PTX = "compute_90"
SAXPY = """\
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}"""


def signature(source, name, **more):
    return str(compile(source, [name], arch=PTX, **more).signatures[name])
