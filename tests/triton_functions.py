"""Functions of Triton that the tests compile where it is installed.

``kernels/triton/*.ptx`` is what Triton 3.6 compiles of them, with TRITON_DISABLE_LINE_INFO=1 and
without comments, for the constants and specialisations that ``kernels/test_triton.py`` lists.
"""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, inside) + tl.load(y + i, inside), inside)


@triton.jit
def softmax(out, x, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + j, j < columns, -float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * stride + j, powers / tl.sum(powers, 0), j < columns)


@triton.jit
def matmul(
    a, b, c, M, N, K, am, ak, bk, bn, cm, cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    result = tl.zeros((BM, BN), tl.float32)
    from_a = a + m[:, None] * am + k[None, :] * ak
    from_b = b + k[:, None] * bk + n[None, :] * bn
    for i in range(0, tl.cdiv(K, BK)):
        left = K - i * BK
        rows = tl.load(from_a, (m[:, None] < M) & (k[None, :] < left), 0.0)
        columns = tl.load(from_b, (k[:, None] < left) & (n[None, :] < N), 0.0)
        result = tl.dot(rows, columns, result)
        from_a += BK * ak
        from_b += BK * bk
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + m[:, None] * cm + n[None, :] * cn, result, inside)


@triton.jit
def fill(out, value, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, value * scale, i < n)
