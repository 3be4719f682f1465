# The launch of a built-in kernel: its geometry, and its record.

from cpython.object cimport PyObject

from cyrt.builtin.entry cimport Entry
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder
from cyrt.graph.exact_key cimport Key
from cyrt.graph.recording cimport Geometry
from cyrt.graph.template cimport Template
from cyrt.runtime.memory cimport Memory

cdef extern from *:
    int __builtin_clzll(unsigned long long) noexcept

cdef enum:
    WARP = 32               # threads
    VECTOR_BYTES = 16       # bytes of the widest vector; no greater alignment matters
    MAX_BLOCKS = 0x7fffffff     # the most blocks of a grid
    MAX_USES = 9            # the most operands of a launch
    MAX_MEMORIES = 330      # the most of `record_launch_of_many`
    WHOLE = 1 << 16         # a bit of `writes`: every element of operand 0 is written

cdef struct Launch:
    const Entry* entry
    int variant             # index of the kernel in the entry
    Geometry geometry

# Return the device's number of multiprocessors; it is queried once per device.
cdef int multiprocessors_of(int ordinal) except -1

cdef inline void set_geometry(Geometry* geometry, unsigned long long blocks, unsigned int x,
                              unsigned int y) noexcept:
    geometry.grid[0] = <unsigned int>blocks
    geometry.grid[1] = geometry.grid[2] = 1
    geometry.block[0] = x
    geometry.block[1] = y
    geometry.block[2] = 1
    geometry.smem = 0

# Return the smallest power of two that is at least n, limited to [least, most].
cdef inline unsigned int power_of_two(unsigned long long n, unsigned int least,
                                      unsigned int most) noexcept:
    if n <= least:
        return least
    return most if n > most // 2 else 1u << (64 - __builtin_clzll(n - 1))

cdef inline long long ceiling(long long n, long long of) noexcept:
    return (n + of - 1) // of

# Record a launch. `params` is the kernel's parameter struct, `operands` is the memory that it
# uses; bit i of `writes` is set if operand i is written.
cdef int record_launch(Recorder encoder, const Launch* launch, const void* params,
                       const Operand* operands, int count, unsigned int writes) except -1
# Record a launch of a kernel that writes operand 0, and can load `num_weights` operands, from
# `weights` on, before it waits for its dependencies. The kernel loads them early if the 32-bit word
# at offset `word` of its parameters is 1. The caller passes 0, and the recorder sets the word
# (see graph/early).
cdef int record_launch_of_weights(Recorder encoder, const Launch* launch, const void* params,
                                  const Operand* operands, int count, int weights,
                                  int num_weights, size_t word) except -1
# Record a launch that uses many Buffers: it reads the first ones, and writes the others, from
# `written` on, too.
cdef int record_launch_of_many(Recorder encoder, const Launch* launch, const void* params,
                               PyObject** memories, int count, int written) except -1
# Replay a call of a family with such a key, which has all but the operands' memory and numbers, if
# it is the next one of a script. Return whether it was. Otherwise the caller notes the number of
# operations that were replayed before, and describes the call after the last launch, which it has
# recorded: where that was the only one, and replayed, the next such call finds it.
cdef bint replay_described(Recorder encoder, Key* key, const Operand* operands,
                           int count) noexcept
cdef inline int num_replayed(Recorder encoder) noexcept:
    return encoder.replay.played
cdef void describe(Recorder encoder, int before, Key* key, const Operand* operands, int count,
                   const Launch* launch) noexcept
# Record a library's call; the workspace, or None, comes after the operands.
cdef int record_call(Recorder encoder, Template template, const Operand* operands, int count,
                     unsigned int writes, Memory workspace) except -1
