"""Copies between host and device memory, staged through pinned memory."""

from libc.stdlib cimport calloc, free
from libc.string cimport memcpy
from posix.unistd cimport usleep

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, cu
from cyrt.runtime.device cimport (
    contexts, enter, enter_quietly, leave, leave_quietly, verify,
)
from cyrt.runtime.device import reset_hooks
from cyrt.runtime.order cimport begin_direct, end_direct
from cyrt.runtime.pool cimport out_of_memory
from cyrt.runtime.state cimport READ, Access, Block, StreamState
from cyrt.runtime.waiting cimport (
    note_end, printing, query_event, submission_count, wait, wait_all,
)

cdef enum:
    CHUNKS = 4
    CHUNK = 4 << 20
    INLINE = 64 << 10       # the most bytes that the driver copies into its command buffer

# A ring of pinned chunks; a chunk is free after its event. Each copy has a Staging to itself, which
# keeps apart the copies of several threads, and of a signal handler that runs while a copy waits.
cdef struct Staging:
    unsigned int epoch
    char* chunk[CHUNKS]
    CUevent passed[CHUNKS]
    int turn                # index of the chunk to use next
    Staging* next           # in the list of idle ones

cdef Staging* idle[MAX_DEVICES]
cdef int touching[MAX_DEVICES]      # threads that access a chunk without the GIL


@reset_hooks.append
def _reset(int ordinal):
    """Wait until no thread accesses a chunk, since the reset frees the chunks."""
    while touching[ordinal]:
        with nogil:
            usleep(20)


cdef Staging* take_staging(StreamState* stream) except NULL:
    cdef Staging* staging
    while idle[stream.ordinal] != NULL:
        staging = idle[stream.ordinal]
        idle[stream.ordinal] = staging.next
        if staging.epoch == contexts[stream.ordinal].epoch:
            return staging
        free(staging)       # the reset of the context freed its chunks
    return new_staging(stream)


cdef Staging* new_staging(StreamState* stream, bint again=True) except NULL:
    cdef int entered = enter(stream.ordinal, stream.epoch, b"cuMemHostAlloc")
    cdef Staging* staging = <Staging*>calloc(1, sizeof(Staging))
    cdef CUresult result = CUDA_SUCCESS if staging != NULL else CUDA_ERROR_OUT_OF_MEMORY
    cdef int i
    if staging != NULL:
        staging.epoch = stream.epoch
        for i in range(CHUNKS):
            if result == CUDA_SUCCESS:
                with nogil:         # the call may wait for work in flight
                    result = cu.cuMemHostAlloc(<void**>&staging.chunk[i], CHUNK,
                                               CU_MEMHOSTALLOC_PORTABLE)
            if result == CUDA_SUCCESS:
                result = cu.cuEventCreate(&staging.passed[i], CU_EVENT_DISABLE_TIMING)
        if result != CUDA_SUCCESS:
            end_staging(staging)
    if result == CUDA_ERROR_OUT_OF_MEMORY:
        leave_quietly(entered)
        if again:
            wait_all(stream.ordinal)    # frees what dropped PinnedBuffers still hold
            return take_staging(stream) if idle[stream.ordinal] != NULL \
                else new_staging(stream, False)
        out_of_memory(stream.ordinal, CHUNKS * CHUNK, b"cuMemHostAlloc")
    leave(stream.ordinal, entered, result, b"cuMemHostAlloc")
    return staging


cdef void end_staging(Staging* staging) noexcept:
    cdef int i
    for i in range(CHUNKS):
        if staging.passed[i] != NULL:
            cu.cuEventDestroy(staging.passed[i])
        if staging.chunk[i] != NULL:
            with nogil:
                cu.cuMemFreeHost(staging.chunk[i])
    free(staging)


cdef void release_staging(StreamState* stream, Staging* staging) noexcept:
    staging.next = idle[stream.ordinal]
    idle[stream.ordinal] = staging


cdef int take_chunk(StreamState* stream, Staging* staging) except -1:
    """Return the index of the next chunk, after waiting for the last copy that used it."""
    cdef int index = staging.turn
    staging.turn = (index + 1) % CHUNKS
    wait(stream.ordinal, stream.epoch, query_event, staging.passed[index], b"cuEventQuery")
    return index


cdef int end_chunk(StreamState* stream, Staging* staging, int index, int entered,
                   CUresult result, const char* call) except -1:
    """End the turn in which a chunk's copy was put on the stream."""
    if result == CUDA_SUCCESS:
        result = cu.cuEventRecord(staging.passed[index], stream.handle)
        stream.put += 1
    end_direct(stream)
    return leave(stream.ordinal, entered, result, call)


cdef int copy_chunk(StreamState* stream, char* target, const char* source, size_t nbytes) except -1:
    """Copy between a chunk and the caller's memory, on the host."""
    verify(stream.ordinal, stream.epoch, b"copy")
    touching[stream.ordinal] += 1
    with nogil:
        memcpy(target, source, nbytes)
    touching[stream.ordinal] -= 1
    return 0


cdef bint is_page_locked(const void* address) noexcept nogil:
    cdef CUmemorytype kind
    return cu.cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    <CUdeviceptr>address) == CUDA_SUCCESS


cdef int copy_page_locked(StreamState* stream, Block* block, Access access, CUdeviceptr memory,
                          char* host, size_t nbytes, bint outward) except -1:
    cdef CUresult result
    cdef int entered
    begin_direct(stream, block, access, NULL, READ)
    entered = enter_quietly(stream.ordinal, stream.epoch)
    with nogil:
        if outward:
            result = cu.cuMemcpyDtoHAsync(host, memory, nbytes, stream.handle)
        else:
            result = cu.cuMemcpyHtoDAsync(memory, host, nbytes, stream.handle)
    end_direct(stream)
    return leave(stream.ordinal, entered, result,
                 b"cuMemcpyDtoHAsync" if outward else b"cuMemcpyHtoDAsync")


cdef int to_device(StreamState* stream, Block* block, Access access, CUdeviceptr target,
                   const char* source, size_t nbytes) except -1:
    cdef Staging* staging
    cdef int entered
    cdef CUresult result
    if nbytes <= INLINE and not is_page_locked(source):
        begin_direct(stream, block, access, NULL, READ)
        entered = enter_quietly(stream.ordinal, stream.epoch)
        with nogil:
            result = cu.cuMemcpyHtoDAsync(target, source, nbytes, stream.handle)
        end_direct(stream)
        return leave(stream.ordinal, entered, result, b"cuMemcpyHtoDAsync")
    staging = take_staging(stream)
    try:
        return send(stream, block, access, staging, target, source, nbytes)
    finally:
        release_staging(stream, staging)


cdef int send(StreamState* stream, Block* block, Access access, Staging* staging,
              CUdeviceptr target, const char* source, size_t nbytes) except -1:
    """Copy to the device. Each chunk has a separate turn: other threads may use the memory in
    between, in order."""
    cdef size_t done = 0, part
    cdef int index, entered
    cdef CUresult result
    cdef char* chunk
    while done < nbytes:
        index = take_chunk(stream, staging)
        part = min(<size_t>CHUNK, nbytes - done)
        chunk = staging.chunk[index]
        copy_chunk(stream, chunk, source + done, part)
        begin_direct(stream, block, access, NULL, READ)
        entered = enter_quietly(stream.ordinal, stream.epoch)
        with nogil:
            result = cu.cuMemcpyHtoDAsync(target + done, chunk, part, stream.handle)
        end_chunk(stream, staging, index, entered, result, b"cuMemcpyHtoDAsync")
        done += part
    return 0


cdef int to_host(StreamState* stream, Block* block, char* target, CUdeviceptr source,
                 size_t nbytes) except -1:
    cdef Staging* staging = take_staging(stream)
    try:
        return receive(stream, block, staging, target, source, nbytes)
    finally:
        release_staging(stream, staging)


cdef int receive(StreamState* stream, Block* block, Staging* staging, char* target,
                 CUdeviceptr source, size_t nbytes) except -1:
    """Copy from the device. Chunk i + 1 crosses the bus while chunk i is copied out of its pinned
    memory."""
    cdef size_t queued = 0, done = 0, part
    cdef int[CHUNKS] pending
    cdef int index, entered
    cdef int first = 0, count = 0
    cdef unsigned long long before = 0
    cdef CUresult result
    cdef char* chunk
    while done < nbytes:
        while queued < nbytes and count < 2:
            index = take_chunk(stream, staging)
            part = min(<size_t>CHUNK, nbytes - queued)
            chunk = staging.chunk[index]
            begin_direct(stream, block, READ, NULL, READ)
            entered = enter_quietly(stream.ordinal, stream.epoch)
            with nogil:
                result = cu.cuMemcpyDtoHAsync(chunk, source + queued, part, stream.handle)
            before = submission_count(stream)
            end_chunk(stream, staging, index, entered, result, b"cuMemcpyDtoHAsync")
            pending[(first + count) % CHUNKS] = index
            count += 1
            queued += part
        index = pending[first]
        first = (first + 1) % CHUNKS
        count -= 1
        wait(stream.ordinal, stream.epoch, query_event, staging.passed[index],
             b"cuMemcpyDtoHAsync")
        if queued == nbytes and count == 0 and not printing:     # printf's text needs a real wait
            note_end(stream, before)
        part = min(<size_t>CHUNK, nbytes - done)
        copy_chunk(stream, target + done, staging.chunk[index], part)
        done += part
    return 0
