# How rows are divided among threads and blocks, where a kernel keeps them in registers: the numbers
# of params/row.h and what follows from them.

from cyrt.builtin.grid cimport ceiling, power_of_two, set_geometry
from cyrt.builtin.launch cimport Launch
from cyrt.runtime.module cimport LoadedFunction, allow_smem

cdef extern from "params/row.h" nogil:
    enum: ROW_BLOCK
    enum: PART_BLOCK
    enum: STREAM_BLOCK
    enum: MAX_PARTS
    enum: ROW_VECTORS
    int ROW_CHUNKS(int items)

cdef enum:
    WARP = 32
    VECTOR_BYTES = 16
    RESIDENT = 1024         # threads of 64 registers that a multiprocessor runs at once
    SHORT_BLOCK = 256       # threads of a block of several rows
    PARTS_RESIDENT = 4      # blocks of parts on a multiprocessor
    LONG = 16384            # elements of a row that is divided where there are few
    FEW = 2                 # fewer rows than one for so many multiprocessors
    STREAM_ITEMS = 32       # 16-bit elements of a row that a thread of a stream holds
    TURNS = 2               # rows that a block of a stream takes, at least

# Rows of arrays that an operation takes: n elements side by side each. Steps are from row to row,
# in elements.
cdef struct Rows:
    long long rows, n
    long long x_step, gradient_step, out_step


cdef inline bint are_vectors(unsigned long long address, long long step, int items,
                             int itemsize) noexcept:
    """Return whether rows at that address begin at vectors."""
    return address % (items * itemsize) == 0 and step % items == 0


cdef inline unsigned int row_threads(const Rows* rows, int items, int chunks, int few,
                                     int multiprocessors) noexcept:
    """Return the threads of a row: as few as hold it, or more if the device were idle, but with
    `few` elements each."""
    cdef unsigned int threads = power_of_two(ceiling(rows.n, items * chunks), 1, ROW_BLOCK)
    while threads < ROW_BLOCK and threads * few < rows.n \
            and threads * rows.rows < RESIDENT * multiprocessors:
        threads *= 2
    return threads


cdef inline unsigned int rows_of_block(const Rows* rows, unsigned int threads,
                                       unsigned int block) noexcept:
    """Return the rows of a block of about `block` threads, which is of whole warps."""
    return power_of_two(rows.rows, max(1, WARP // threads), max(1, block // threads))


cdef inline unsigned int rows_within_warps(const Rows* rows, unsigned int threads) noexcept:
    """Return the rows of a block whose rows have no barriers of their own: those of more than a
    warp are alone."""
    return rows_of_block(rows, threads, SHORT_BLOCK) if threads <= WARP else 1


cdef inline bint is_long(const Rows* rows, int items, int chunks, int multiprocessors) noexcept:
    """Return whether rows are divided into parts: they do not fit, or are long and few."""
    return rows.n > ROW_BLOCK * items * chunks \
        or (rows.n >= LONG and rows.rows * FEW <= multiprocessors)


cdef inline long long part_length(const Rows* rows, int items, int multiprocessors) noexcept:
    """Return the elements of a row's part: whole vectors, in parts that fill the device."""
    cdef long long unit = PART_BLOCK * items
    cdef long long parts = max(1, PARTS_RESIDENT * multiprocessors // rows.rows)
    parts = min(parts, min(MAX_PARTS, ceiling(rows.n, unit)))
    return ceiling(ceiling(rows.n, parts), unit) * unit


cdef inline bint fits(const Launch* launch) except -1:
    """Return whether a block may have the launch's shared memory, which is allowed then."""
    cdef LoadedFunction function = <LoadedFunction>launch.entry.functions[launch.variant]
    if launch.geometry.smem > function.limits.smem - function.static_smem:
        return False
    allow_smem(function, launch.geometry.smem)
    return True


# Streams of 16-bit rows: persistent blocks, which have a row of whole warps each.
cdef inline unsigned int stream_threads(const Rows* rows) noexcept:
    return power_of_two(ceiling(rows.n, STREAM_ITEMS), WARP, STREAM_BLOCK)


cdef inline bint are_many(const Rows* rows, long long least, int multiprocessors) noexcept:
    """Return whether rows of at least so many elements may stream: blocks hold them and take
    several."""
    return least <= rows.n <= STREAM_BLOCK * STREAM_ITEMS \
        and rows.rows * stream_threads(rows) >= TURNS * STREAM_BLOCK * multiprocessors


cdef inline bint set_stream(Launch* launch, const Rows* rows, int stages,
                            int multiprocessors) except -1:
    """Set the grid of a stream and the shared memory of the rows under way; return whether that
    fits."""
    cdef unsigned int x = stream_threads(rows)
    set_geometry(&launch.geometry, <long long>multiprocessors * (STREAM_BLOCK // x), x, 1)
    launch.geometry.smem = stages * x * STREAM_ITEMS * 2
    return fits(launch)
