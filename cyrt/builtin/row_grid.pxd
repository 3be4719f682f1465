# How rows are divided among threads and blocks, where a kernel keeps them in registers: the numbers
# of params/row.h and what follows from them.

from cyrt.builtin.launch cimport WARP, Launch, ceiling, power_of_two, set_geometry
from cyrt.runtime.module cimport LoadedFunction, allow_smem

cdef extern from "params/row.h" nogil:
    enum: ROW_BLOCK, PART_BLOCK, STREAM_BLOCK, MAX_PARTS, ROW_VECTORS
    int ROW_CHUNKS(int items)

cdef enum:
    RESIDENT = 1024         # threads of 64 registers that a multiprocessor runs at once
    SHORT_BLOCK = 256       # threads of a block of several rows
    # Rows of at least LONG elements are divided if there are at least FEW multiprocessors for each.
    LONG = 16384
    FEW = 2
    PARTS_RESIDENT = 4      # blocks of parts on a multiprocessor
    STREAM_ITEMS = 32       # 16-bit elements of a row that a thread of a stream holds
    TURNS = 2               # the fewest rows of a block of a stream

# The rows of an operation's arrays, n adjacent elements each. Steps are elements from row to row.
cdef struct Rows:
    long long rows, n
    long long x_step, gradient_step, out_step


cdef inline bint are_vectors(unsigned long long address, long long step, int items,
                             int itemsize) noexcept:
    """Return whether rows at that address begin at vectors."""
    return address % (items * itemsize) == 0 and step % items == 0


cdef inline unsigned int row_threads(const Rows* rows, int items, int chunks, int few,
                                     int multiprocessors) noexcept:
    """Return the threads of a row: as few as hold it, or more where the device would be idle; these
    have at least `few` elements each."""
    cdef unsigned int threads = power_of_two(ceiling(rows.n, items * chunks), 1, ROW_BLOCK)
    while threads < ROW_BLOCK and threads * few < rows.n \
            and threads * rows.rows < RESIDENT * multiprocessors:
        threads *= 2
    return threads


cdef inline unsigned int rows_of_block(const Rows* rows, unsigned int threads,
                                       unsigned int block) noexcept:
    """Return the rows of a block of about `block` threads, in whole warps."""
    return power_of_two(rows.rows, max(1, WARP // threads), max(1, block // threads))


cdef inline unsigned int rows_within_warps(const Rows* rows, unsigned int threads) noexcept:
    """Return the rows of a block where a barrier is the whole block's: rows of more than a warp
    have a block each."""
    return rows_of_block(rows, threads, SHORT_BLOCK) if threads <= WARP else 1


cdef inline bint is_long(const Rows* rows, int items, int chunks, int multiprocessors) noexcept:
    """Return whether rows are divided into parts: they do not fit a block, or are long and few."""
    return rows.n > ROW_BLOCK * items * chunks \
        or (rows.n >= LONG and rows.rows * FEW <= multiprocessors)


cdef inline long long part_length(const Rows* rows, int items, int multiprocessors) noexcept:
    """Return the elements of a row's part: whole vectors, so few that the parts fill the device."""
    cdef long long unit = PART_BLOCK * items
    cdef long long parts = max(1, PARTS_RESIDENT * multiprocessors // rows.rows)
    parts = min(parts, min(MAX_PARTS, ceiling(rows.n, unit)))
    return ceiling(ceiling(rows.n, parts), unit) * unit


cdef inline bint fits(const Launch* launch) except -1:
    """Allow the launch's shared memory; return False if a block cannot have so much."""
    cdef LoadedFunction function = <LoadedFunction>launch.entry.functions[launch.variant]
    if launch.geometry.smem > function.limits.smem - function.static_smem:
        return False
    allow_smem(function, launch.geometry.smem)
    return True


# Streams of 16-bit rows: persistent blocks, each of which takes one row after the other.
cdef inline unsigned int stream_threads(const Rows* rows) noexcept:
    return power_of_two(ceiling(rows.n, STREAM_ITEMS), WARP, STREAM_BLOCK)


cdef inline bint are_many(const Rows* rows, long long least, int multiprocessors) noexcept:
    """Return whether rows may stream: they have at least `least` elements, a block holds one, and
    each block takes several."""
    return least <= rows.n <= STREAM_BLOCK * STREAM_ITEMS \
        and rows.rows * stream_threads(rows) >= TURNS * STREAM_BLOCK * multiprocessors


cdef inline bint set_stream(Launch* launch, const Rows* rows, int stages,
                            int multiprocessors) except -1:
    """Set the grid of a stream and the shared memory of the rows that are loaded ahead; return
    whether that fits."""
    cdef unsigned int x = stream_threads(rows)
    set_geometry(&launch.geometry, <long long>multiprocessors * (STREAM_BLOCK // x), x, 1)
    launch.geometry.smem = stages * x * STREAM_ITEMS * 2
    return fits(launch)
