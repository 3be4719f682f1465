# cython: cdivision=True
"""Random numbers: which kernel, grid and parameters; and Philox on the host."""

from libc.string cimport memcpy, memset

from cyrt.graph.recording cimport Geometry
from cyrt.kernels.entries cimport Entry, entry_of, record_entry, WHOLE

cdef enum:
    PARAM_BYTES = 80
    BLOCK = 256             # threads, at most
    WARP = 32
    BLOCKS = 2048           # more than a device runs at once: threads of larger grids take their
    STEPS = 16              # items several times, so often at most
    MAX_COUNT = 0x7fffffff  # blocks of a grid
    VECTOR = 16             # bytes that a thread stores at once
    LEAST = 4               # items that it takes at once, at least

# As in kernels_cu/random.cu.
cdef struct Parameters:
    unsigned long long key, address
    long long n
    unsigned long long[WORDS] words
    unsigned int steps


cdef int record_random(Recorder encoder, int ordinal, int op, int dtype, int variant,
                       unsigned long long key, const unsigned long long* words,
                       const Operand* output, long long n, Explained explained) except -1:
    cdef char[PARAM_BYTES] params
    cdef Parameters* at = <Parameters*>params
    cdef Geometry geometry
    cdef const Entry* entry = entry_of(ordinal, op, dtype)
    cdef long long threads, blocks
    cdef unsigned int block = WARP
    if n == 0:
        return 0
    threads = (n - 1) // max(VECTOR // entry.itemsizes[0], LEAST) + 1
    while block < threads and block < BLOCK:
        block *= 2
    memset(params, 0, sizeof(params))
    at.key, at.address, at.n = key, output.address, n
    memcpy(at.words, words, sizeof(at.words))
    at.steps = <unsigned int>min(max(threads // (<long long>BLOCKS * BLOCK), 1), STEPS)
    blocks = (threads - 1) // (<long long>block * at.steps) + 1
    if blocks > MAX_COUNT:
        raise ValueError(f"random numbers: {n:,} are more than a grid covers")
    geometry.grid[:] = [<unsigned int>blocks, 1, 1]
    geometry.block[:] = [block, 1, 1]
    geometry.smem = 0
    return record_entry(encoder, entry, variant, &geometry, params, output, 1, 1 | WHOLE, explained)


def philox(words, unsigned long long key):
    """The 128 random bits of a counter and a key.

    Parameters
    ----------
    words : sequence of four int
        The counter, 32 bits each, the lowest first.
    key : int
        64 bits.

    Returns
    -------
    tuple of four int
        32 bits each.
    """
    cdef unsigned int[4] c = words
    cdef unsigned int low = <unsigned int>key, high = <unsigned int>(key >> 32)
    cdef unsigned long long a, b
    for _round in range(10):
        a = <unsigned long long>0xD2511F53 * c[0]
        b = <unsigned long long>0xCD9E8D57 * c[2]
        c[0] = <unsigned int>(b >> 32) ^ c[1] ^ low
        c[1] = <unsigned int>b
        c[2] = <unsigned int>(a >> 32) ^ c[3] ^ high
        c[3] = <unsigned int>a
        low += 0x9E3779B9u
        high += 0xBB67AE85u
    return c[0], c[1], c[2], c[3]
