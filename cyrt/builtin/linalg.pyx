# cython: cdivision=True
"""Factorizations of matrices: the launches of linalg.cu. The matrices of a batch that fit into the
shared memory of a block have a block each; some operations have a kernel for small ones, which are
in registers. For others, the block works in the workspace or in the result; Jacobi's method then
uses many blocks, and a launch for each round. Operations without a large kernel are for matrices
that fit."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin.entry cimport Entry, entry_of, op_code
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, WARP, Launch, ceiling, describe, multiprocessors_of, num_replayed, power_of_two,
    record_launch, replay_described, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.graph.commit cimport Recorder
from cyrt.graph.exact_key cimport Key, add_word, begin_key, forget_launch_plans
from cyrt.runtime.failure cimport NO_FAILURE
from cyrt.runtime.host_memory import PinnedBuffer
from cyrt.runtime.memory cimport Buffer, Memory
from cyrt.runtime.module cimport LoadedFunction, allow_smem
from cyrt.runtime.state cimport StreamState

cdef enum:
    MOST_THREADS = 512
    TILE_THREADS = 256          # threads of a block, which copies 32 x 32 numbers, or 2,048
    MOST_TILES = 128            # the most blocks for a matrix whose numbers are copied one by one
    SHARED = 0                  # kernels, in the order of Row.kernels
    LARGE = 1
    SMALL = 1
    SMALL_QR = 2
    BEGIN = 1                   # those of Jacobi's method
    ROUND = 2
    END = 3
    WRITES = 1 << X | 1 << Y | 1 << Z | 1 << INFO | 1 << NUM_OPERANDS   # bits of operands

cdef int CHOLESKY = op_code("cholesky"), LU = op_code("lu"), SOLVE = op_code("solve")
cdef int DETERMINANT = op_code("determinant"), TRIANGULAR = op_code("triangular")
cdef int EXCHANGE = op_code("exchange"), QR = op_code("qr"), JACOBI = op_code("jacobi")
cdef int EIG = op_code("eig")
# Operations before and after a library's factorization.
cdef int FINITE_COPY = op_code("finite_copy"), MARK_FAILED = op_code("mark_failed")
cdef int LOWER_FACTOR = op_code("lower_factor"), CHECK_LU = op_code("check_lu")

# The memory of the streams' failure words. A state is never freed, and neither is its word.
cdef list words = []
cdef long long shared_limit = 1 << 30   # the devices' own limits are lower

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Linalg),)


cdef unsigned long long failure_word(StreamState* stream) except? 0:
    cdef Buffer buffer
    if stream.explained:
        return 0
    if stream.failure == NULL:
        buffer = PinnedBuffer(2 * sizeof(unsigned long long), stream.ordinal)
        if stream.failure == NULL:      # a finalizer may have run
            words.append(buffer)
            (<unsigned long long*>buffer.address)[0] = <unsigned long long>NO_FAILURE
            (<unsigned long long*>buffer.address)[1] = 0
            stream.failure = <unsigned long long*>buffer.address
    return <unsigned long long>stream.failure


cdef inline long long odd(long long n) noexcept:
    return n | 1


cdef inline long long rounded(long long n) noexcept:
    return ceiling(n, LINALG_PART) * LINALG_PART


cdef long long work_elements(int op, const Linalg* params) noexcept:
    """Return the elements of a block's shared memory, or of a matrix's workspace."""
    cdef long long m = params.m, n = params.n, k = params.k
    if op == FINITE_COPY or op == MARK_FAILED or op == LOWER_FACTOR or op == CHECK_LU:
        return 0
    if op == CHOLESKY or op == DETERMINANT:
        return n * odd(n)
    if op == LU:
        return m * odd(n)
    if op == SOLVE:
        return n * odd(n + k)
    if op == TRIANGULAR:
        return n * (odd(n) + odd(min(k, LINALG_TILE)))
    if op == EXCHANGE:
        return m
    if op == QR:
        return 3 * min(m, n) + (n + (k if params.flags & LINALG_VECTORS else 0)) * odd(m)
    if op == JACOBI:
        return rounded(LINALG_SPARE + 2 * n + k + k * (rounded(m) | LINALG_PART)
                       + n * (rounded(n) | LINALG_PART))
    return n + 3 * n * odd(n)           # eig


cdef bint fits(StreamState* stream, int op, int dtype, const Linalg* params) except -1:
    cdef Entry* entry = entry_of(stream.ordinal, op, dtype)
    cdef LoadedFunction function = <LoadedFunction>entry.functions[SHARED]
    return work_elements(op, params) * entry.itemsizes[0] \
        <= min(<long long>function.limits.smem - function.static_smem, shared_limit)


def limit_shared_bytes(long long nbytes):
    """Set the most bytes of shared memory of a block, so that a test's small matrices do not fit;
    return the limit before."""
    global shared_limit
    before, shared_limit = shared_limit, nbytes
    forget_launch_plans()
    return before


cdef int small_variant(const Entry* entry, int op, const Linalg* params) noexcept:
    """Return the kernel that has matrices in registers, or SHARED if they are too large for it."""
    cdef long long rows = params.m if op == QR else params.n, most
    if rows > min(LINALG_ROWS, LINALG_ROW_BYTES // entry.itemsizes[0]):
        return SHARED
    if op == CHOLESKY or (op == SOLVE and params.flags & LINALG_IDENTITY):
        return SMALL
    if op == QR and not params.flags & LINALG_REFLECTIONS:
        most = min(MOST_THREADS, (<LoadedFunction>entry.functions[SMALL_QR]).max_threads)
        if power_of_two(columns_of_qr(params), WARP, 2 * MOST_THREADS) <= most:
            return SMALL_QR
    return SHARED


cdef inline long long columns_of_qr(const Linalg* params) noexcept:
    """Return the columns of A, and of the identity from which Q is made."""
    return <long long>params.n + (params.m if params.flags & LINALG_VECTORS else 0)


cdef long long useful_threads(int op, const Linalg* params) noexcept:
    """Return how many threads have something to do in most steps."""
    cdef long long m = params.m, n = params.n, k = params.k
    if op == QR:
        return power_of_two(ceiling(m, LINALG_PART), 1, WARP) * <long long>max(n, k) // 2
    if op == JACOBI:
        return power_of_two(ceiling(m, LINALG_PART), 1, WARP) * (n + 1) // 2
    if op == TRIANGULAR:
        return n * min(k, LINALG_TILE) // 2
    if op == SOLVE:
        return n * (n + k) // 4
    if op == EXCHANGE:
        return m * k // 4
    if op == MARK_FAILED:
        return MOST_THREADS
    if op == FINITE_COPY or op == LOWER_FACTOR:
        return TILE_THREADS
    return n if op == CHECK_LU else max(m, n) * n // 4


cdef long long threads_of(int ordinal, int op, const Linalg* params, long long blocks) except -1:
    """Return the threads of a block in shared memory. Each warp computes the scalars of all steps,
    so that blocks that share a multiprocessor have few warps; larger matrices have more."""
    cdef long long threads = useful_threads(op, params)
    cdef long long per_row = 16 if op == JACOBI or op == SOLVE else 32  # measured on an H200
    cdef long long most = per_row * params.m * multiprocessors_of(ordinal)
    while threads > WARP and blocks * threads > most:
        threads //= 2
    return threads


cdef int set_block(Launch* launch, unsigned long long blocks, long long threads) except -1:
    cdef LoadedFunction function = <LoadedFunction>launch.entry.functions[launch.variant]
    cdef unsigned int x = power_of_two(threads, WARP, MOST_THREADS)
    while x > <unsigned int>function.max_threads:
        x //= 2
    if blocks > MAX_BLOCKS:
        raise ValueError(f"{function.name}: {blocks:,} blocks, a grid has at most {MAX_BLOCKS:,}")
    set_geometry(&launch.geometry, blocks, x, 1)
    return 0


cdef unsigned int tiles_of(int op, const Linalg* params) noexcept:
    """Return the blocks for a matrix."""
    if op == TRIANGULAR:
        return <unsigned int>max(1, ceiling(params.k, LINALG_TILE))
    if op == LOWER_FACTOR:
        return <unsigned int>(ceiling(params.n, WARP) * ceiling(params.n, WARP))
    if op == FINITE_COPY:
        return <unsigned int>max(1, min(ceiling(<long long>params.m * params.n, 8 * TILE_THREADS),
                                        MOST_TILES))
    return 1


cdef int record_linalg(Recorder encoder, int op, int dtype, Linalg* params,
                       const Operand* operands, long long batch) except -1:
    cdef Key key
    cdef Launch launch
    cdef int before
    cdef bint described = operands[X].buffer != NULL
    launch.entry = entry_of(encoder.state.ordinal, op, dtype)
    begin_key(&key, launch.entry, batch)
    add_word(&key, <unsigned long long>params.flags << 32 | params.m)
    add_word(&key, <unsigned long long>params.n << 32 | params.k)
    add_word(&key, params.failure)
    add_word(&key, params.site)
    if described and replay_described(encoder, &key, operands, NUM_OPERANDS):
        return 0
    params.x, params.y, params.z = operands[X].address, operands[Y].address, operands[Z].address
    params.info, params.a, params.b = \
        operands[INFO].address, operands[A].address, operands[B].address
    params.tiles = tiles_of(op, params)
    if not fits(encoder.state, op, dtype, params):
        return record_large(encoder, op, &launch, params, operands, batch)
    before = num_replayed(encoder)
    choose_block(encoder.state.ordinal, op, &launch, params, batch)
    record_launch(encoder, &launch, params, operands, NUM_OPERANDS, WRITES)
    if described:
        describe(encoder, before, &key, operands, NUM_OPERANDS, &launch)
    return 0


cdef int choose_block(int ordinal, int op, Launch* launch, const Linalg* params,
                      long long batch) except -1:
    """Choose the kernel and the blocks for matrices that fit."""
    cdef long long elements = work_elements(op, params), blocks = batch * params.tiles
    launch.variant = small_variant(launch.entry, op, params)
    if launch.variant != SHARED:
        elements = 2 * LINALG_ROWS + (params.n * odd(params.n) if op == SOLVE else 0)
        set_block(launch, batch, columns_of_qr(params) if op == QR else WARP)
    else:
        set_block(launch, blocks, threads_of(ordinal, op, params, blocks))
    launch.geometry.smem = <unsigned int>(elements * launch.entry.itemsizes[0])
    allow_smem(<LoadedFunction>launch.entry.functions[launch.variant], launch.geometry.smem)
    return 0


cdef int record_large(Recorder encoder, int op, Launch* launch, Linalg* params,
                      const Operand* operands, long long batch) except -1:
    """Record the launches for matrices that do not fit."""
    cdef Operand[NUM_OPERANDS + 1] used
    cdef Memory workspace = None
    cdef long long elements = work_elements(op, params), size = launch.entry.itemsizes[0]
    cdef int i
    for i in range(NUM_OPERANDS):
        used[i] = operands[i]
    memset(&used[NUM_OPERANDS], 0, sizeof(Operand))
    if op == QR or op == EXCHANGE or op == EIG or op == JACOBI:
        workspace = allocate_workspace(encoder, batch * elements * size)
        params.work, params.work_size = workspace.address, elements
        used[NUM_OPERANDS].buffer = <PyObject*>workspace
        used[NUM_OPERANDS].address = workspace.address
    if op == JACOBI:
        return record_rounds(encoder, launch, params, used, batch)
    if op == CHOLESKY or op == SOLVE or op == DETERMINANT or op == TRIANGULAR:
        name = (<LoadedFunction>launch.entry.functions[SHARED]).name
        raise ValueError(f"{name}: a block of this device has no {elements * size:,} bytes of "
                         "shared memory")
    launch.variant = LARGE
    set_block(launch, batch * params.tiles, MOST_THREADS)
    return record_launch(encoder, launch, params, used, NUM_OPERANDS + 1, WRITES)


cdef int record_rounds(Recorder encoder, Launch* launch, Linalg* params, const Operand* used,
                       long long batch) except -1:
    """Record Jacobi's method with a launch for each round; the workspace is the last operand."""
    cdef unsigned int rounds = max(1, (params.n + 1) // 2 * 2 - 1), i
    cdef Operand[2] loaded
    loaded[0], loaded[1] = used[NUM_OPERANDS], used[A]
    launch.variant = BEGIN
    set_block(launch, batch, MOST_THREADS)
    record_launch(encoder, launch, params, loaded, 2, 1)
    launch.variant = ROUND
    params.tiles = max(1, (params.n + 1) // 2)
    set_block(launch, batch * params.tiles, WARP)
    for i in range(LINALG_SWEEPS * rounds):
        params.round = i
        record_launch(encoder, launch, params, loaded, 1, 1)
    launch.variant = END
    set_block(launch, batch, MOST_THREADS)
    return record_launch(encoder, launch, params, used, NUM_OPERANDS + 1, WRITES)
