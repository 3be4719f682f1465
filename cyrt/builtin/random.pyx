# cython: cdivision=True
"""Random numbers: the launches of random.cu, and Philox on the host."""


from libc.string cimport memcpy, memset

from cyrt.builtin.entry cimport entry_of
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, WARP, WHOLE, Launch, power_of_two, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef extern from "params/random.h" nogil:
    cdef struct Random:
        unsigned long long key, out
        long long n
        unsigned long long word[RANDOM_WORDS]
        unsigned int steps

cdef enum:
    BLOCK = 256             # The maximum number of threads
    BLOCKS = 2048  # more than a device runs at once: threads of larger grids process several items,
    STEPS = 16              # at most this many
    VECTOR = 16             # bytes of a thread's store
    LEAST = 4               # the minimum number of items of a thread

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Random),)


cdef int record_random(Recorder encoder, int op, int dtype, int variant, unsigned long long key,
                       const unsigned long long* words, const Operand* output,
                       long long n) except -1:
    cdef Random params
    cdef Launch launch
    cdef long long threads, blocks
    cdef unsigned int block
    launch.entry = entry_of(encoder.state.ordinal, op, dtype)
    launch.variant = variant
    if n == 0:
        return 0
    threads = (n - 1) // max(VECTOR // launch.entry.itemsizes[0], LEAST) + 1
    block = power_of_two(threads, WARP, BLOCK)
    memset(&params, 0, sizeof(params))
    params.key, params.out, params.n = key, output.address, n
    memcpy(params.word, words, sizeof(params.word))
    params.steps = <unsigned int>min(max(threads // (<long long>BLOCKS * BLOCK), 1), STEPS)
    blocks = (threads - 1) // (<long long>block * params.steps) + 1
    if blocks > MAX_BLOCKS:
        raise ValueError(f"random numbers: {n:,} are more than a grid covers")
    set_geometry(&launch.geometry, blocks, block, 1)
    return record_launch(encoder, &launch, &params, output, 1, 1 | WHOLE)


def philox(words, unsigned long long key):
    """Compute the 128 random bits of a counter and a key.

    Parameters
    ----------
    words : sequence of four int
        The counter in words of 32 bits, the lowest first.
    key : int
        An int of 64 bits.

    Returns
    -------
    tuple of four int
        The random bits in words of 32 bits.
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
