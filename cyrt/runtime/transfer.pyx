"""Copies between host and device memory, staged through pinned memory."""

from libc.stdlib cimport calloc, free
from libc.string cimport memcpy
from posix.unistd cimport usleep

from cyrt.driver.capture_mode cimport relax, restore
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, READY, check, cu, faulted, process
from cyrt.runtime.device cimport (
    contexts, enter, enter_quietly, leave, leave_quietly, verify,
)
from cyrt.runtime.device import reset_hooks
from cyrt.runtime.failure cimport raise_failure
from cyrt.runtime.order cimport (
    begin_copy, begin_direct, continue_after, end_copy, end_direct, order_after, refuse_freed,
)
from cyrt.runtime.outside cimport is_outside
from cyrt.runtime.pool cimport out_of_memory
from cyrt.runtime.seam cimport graph
from cyrt.runtime.state cimport READ, Access, Block, StreamState
from cyrt.runtime.stream cimport acquire_state
from cyrt.runtime.stream_state cimport flush, refuse_captured
from cyrt.runtime.waiting cimport (
    is_done, note_end, poll, printing, query_event, submission_count, wait, wait_all,
)

cdef enum:
    CHUNKS = 4
    CHUNK = 4 << 20         # bytes of its pinned memory
    INLINE = 64 << 10       # the most bytes that the driver copies into its command buffer

# A ring of pinned chunks; a chunk is free after its event. Each copy has a Staging to itself, so
# that copies of several threads, and of a signal handler that runs while a copy waits, are
# separate. A copy that takes more than one turn uses the Staging's own stream, see runtime/order.
cdef struct Staging:
    unsigned int epoch
    char* chunk[CHUNKS]
    CUevent passed[CHUNKS]
    int turn                # index of the chunk to use next
    size_t size             # bytes of a chunk that the copy uses
    StreamState* own        # its own stream; NULL: none yet
    Staging* next           # the next of the idle ones

cdef Staging* idle[MAX_DEVICES]
cdef int touching[MAX_DEVICES]      # threads that access a chunk without the GIL
cdef size_t chunk_size = CHUNK      # smaller in tests


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
            staging.size = chunk_size
            return staging
        free(staging)       # the reset of the context freed its chunks
    return new_staging(stream)


cdef Staging* new_staging(StreamState* stream, bint again=True) except NULL:
    cdef int entered = enter(stream.ordinal, stream.epoch, b"cuMemHostAlloc")
    cdef Staging* staging = <Staging*>calloc(1, sizeof(Staging))
    cdef CUresult result = CUDA_SUCCESS if staging != NULL else CUDA_ERROR_OUT_OF_MEMORY
    cdef CUstreamCaptureMode before
    cdef int i
    if staging != NULL:
        staging.epoch = stream.epoch
        staging.size = chunk_size
        for i in range(CHUNKS):
            if result == CUDA_SUCCESS:
                with nogil:         # the call may wait for work in flight
                    before = relax()
                    result = cu.cuMemHostAlloc(<void**>&staging.chunk[i], CHUNK,
                                               CU_MEMHOSTALLOC_PORTABLE)
                    restore(before)
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
    cdef CUstreamCaptureMode before
    cdef int i
    for i in range(CHUNKS):
        if staging.passed[i] != NULL:
            cu.cuEventDestroy(staging.passed[i])
        if staging.chunk[i] != NULL:
            with nogil:
                before = relax()
                cu.cuMemFreeHost(staging.chunk[i])
                restore(before)
    free(staging)


cdef void release_staging(StreamState* stream, Staging* staging) noexcept:
    staging.next = idle[stream.ordinal]
    idle[stream.ordinal] = staging


cdef int take_chunk(StreamState* stream, Staging* staging) except -1:
    """Return the index of the next chunk, after waiting for the last copy that used it."""
    cdef int index = staging.turn
    wait(stream.ordinal, stream.epoch, query_event, staging.passed[index], b"cuEventQuery")
    staging.turn = (index + 1) % CHUNKS
    return index


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


cdef int copy_directly(StreamState* stream, Block* block, Access access, CUdeviceptr memory,
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
    cdef unsigned int generation = block.generation
    cdef Staging* staging
    if nbytes <= min(<size_t>INLINE, chunk_size) and not is_page_locked(source):
        return copy_directly(stream, block, access, target, <char*>source, nbytes, False)
    staging = take_staging(stream)
    try:
        if nbytes <= staging.size or (nbytes <= CHUNKS * staging.size
                                      and not is_unused(stream, block)):
            return send(stream, block, access, generation, staging, target, source, nbytes)
        return send_long(stream, block, access, generation, staging, target, source, nbytes)
    finally:
        release_staging(stream, staging)


cdef bint is_unused(StreamState* stream, const Block* block) noexcept:
    """Return whether a long copy need not wait: then some chunks are transferred while others are
    staged."""
    return block.num_readers == 0 and not is_outside(block) and is_done(block.home) \
        and is_done(stream)


cdef int send(StreamState* stream, Block* block, Access access, unsigned int generation,
              Staging* staging, CUdeviceptr target, const char* source, size_t nbytes) except -1:
    """Copy memory that fits into the ring to the device: stage all of it, then send it in one
    turn."""
    cdef size_t done = 0, size = staging.size
    cdef int first = staging.turn, count = 0, entered, i
    cdef CUresult result = CUDA_SUCCESS
    while done < nbytes:
        copy_chunk(stream, staging.chunk[take_chunk(stream, staging)], source + done,
                   min(size, nbytes - done))
        done += size
        count += 1
    if block.generation != generation:
        refuse_freed()
    begin_direct(stream, block, access, NULL, READ)
    entered = enter_quietly(stream.ordinal, stream.epoch)
    with nogil:
        for i in range(count):
            if result == CUDA_SUCCESS:
                result = send_chunk(stream, staging, (first + i) % CHUNKS, target + i * size,
                                    min(size, nbytes - i * size))
    stream.put += 2 * count
    end_direct(stream)
    return leave(stream.ordinal, entered, result, b"cuMemcpyHtoDAsync")


cdef CUresult send_chunk(StreamState* stream, Staging* staging, int index, CUdeviceptr target,
                         size_t nbytes) noexcept nogil:
    cdef CUresult result = cu.cuMemcpyHtoDAsync(target, staging.chunk[index], nbytes,
                                                stream.handle)
    return cu.cuEventRecord(staging.passed[index], stream.handle) if result == CUDA_SUCCESS \
        else result


cdef int prepare(StreamState* stream, Staging* staging) except -1:
    """Make the ring's own stream wait for all earlier work on the stream, and wait until no chunk
    is in use."""
    cdef int i
    if staging.own == NULL:
        staging.own = acquire_state(stream.ordinal, 0)
    for i in range(CHUNKS):
        wait(stream.ordinal, stream.epoch, query_event, staging.passed[i], b"cuEventQuery")
    refuse_captured(stream)
    flush(stream, b"a copy between host and device comes")
    verify(stream.ordinal, stream.epoch, b"cuMemcpyAsync")
    return order_after(staging.own, stream)


cdef bint may_go_on(const StreamState* own, const Block* block, unsigned int generation) noexcept:
    """Return whether the device works and the memory has not been freed."""
    return process == READY and not faulted[own.ordinal] \
        and contexts[own.ordinal].epoch == own.epoch and block.generation == generation


cdef int refuse_rest(StreamState* own, CUresult result, const char* call) except -1:
    """Raise the reason why a copy ended early."""
    verify(own.ordinal, own.epoch, call)
    check(result, call, own.ordinal)
    return refuse_freed()


cdef int send_long(StreamState* stream, Block* block, Access access, unsigned int generation,
                   Staging* staging, CUdeviceptr target, const char* source,
                   size_t nbytes) except -1:
    """Copy several chunks to the device: one is copied into its pinned memory while others are
    transferred."""
    cdef StreamState* own
    cdef CUresult result = CUDA_SUCCESS
    cdef int index = staging.turn, entered
    cdef size_t done
    wait(stream.ordinal, stream.epoch, query_event, staging.passed[index], b"cuEventQuery")
    copy_chunk(stream, staging.chunk[index], source, staging.size)
    prepare(stream, staging)
    own = staging.own
    begin_copy(own, block, access, generation)
    entered = enter_quietly(own.ordinal, own.epoch)
    done = send_chunks(block, generation, staging, target, source, nbytes, &result)
    end_copy(own, block, access, generation, done == nbytes)
    leave_quietly(entered)
    if done < nbytes:
        refuse_rest(own, result, b"cuMemcpyHtoDAsync")
    return continue_after(stream, own, block, generation)


cdef size_t send_chunks(const Block* block, unsigned int generation, Staging* staging,
                        CUdeviceptr target, const char* source, size_t nbytes,
                        CUresult* result) noexcept:
    """Send the chunks, the first of which is staged; return the bytes sent. No Python code runs."""
    cdef StreamState* own = staging.own
    cdef size_t done = 0, part
    cdef int index
    while done < nbytes:
        index = staging.turn
        part = min(staging.size, nbytes - done)
        result[0] = wait_for_chunk(own, staging, index)
        if result[0] != CUDA_SUCCESS or not may_go_on(own, block, generation):
            break
        touching[own.ordinal] += 1
        with nogil:
            if done:
                memcpy(staging.chunk[index], source + done, part)
            result[0] = send_chunk(own, staging, index, target + done, part)
        touching[own.ordinal] -= 1
        own.put += 2
        if result[0] != CUDA_SUCCESS:
            break
        staging.turn = (index + 1) % CHUNKS
        done += part
    return done


cdef CUresult wait_for_chunk(StreamState* own, Staging* staging, int index) noexcept:
    """Wait until the chunk's last copy has finished, or the device has stopped."""
    cdef double begin = 0
    cdef CUresult result = query_event(staging.passed[index])
    while result == CUDA_ERROR_NOT_READY and contexts[own.ordinal].epoch == own.epoch \
            and not faulted[own.ordinal]:
        result = poll(query_event, staging.passed[index], &begin)
    return result


cdef int to_host(StreamState* stream, Block* block, char* target, CUdeviceptr source,
                 size_t nbytes) except -1:
    cdef unsigned int generation = block.generation
    cdef Staging* staging = take_staging(stream)
    cdef StreamState* home = block.home     # the stream that wrote the memory
    try:
        if nbytes <= staging.size:
            receive(stream, block, generation, staging, target, source, nbytes)
        else:
            receive_long(stream, block, generation, staging, target, source, nbytes)
    finally:
        release_staging(stream, staging)
    graph.release_all_ended()
    raise_failure(stream)
    return raise_failure(home)


cdef int receive(StreamState* stream, Block* block, unsigned int generation, Staging* staging,
                 char* target, CUdeviceptr source, size_t nbytes) except -1:
    """Copy one chunk from the device."""
    cdef int index = take_chunk(stream, staging)
    cdef int entered
    cdef unsigned long long before
    cdef CUresult result
    if block.generation != generation:
        refuse_freed()
    begin_direct(stream, block, READ, NULL, READ)
    entered = enter_quietly(stream.ordinal, stream.epoch)
    with nogil:
        result = receive_chunk(stream, staging, index, source, nbytes)
    before = submission_count(stream)
    stream.put += 2
    end_direct(stream)
    leave(stream.ordinal, entered, result, b"cuMemcpyDtoHAsync")
    wait(stream.ordinal, stream.epoch, query_event, staging.passed[index], b"cuMemcpyDtoHAsync")
    if not printing:            # printf's text needs a real wait
        note_end(stream, before)
    return copy_chunk(stream, target, staging.chunk[index], nbytes)


cdef CUresult receive_chunk(StreamState* stream, Staging* staging, int index, CUdeviceptr source,
                            size_t nbytes) noexcept nogil:
    cdef CUresult result = cu.cuMemcpyDtoHAsync(staging.chunk[index], source, nbytes,
                                                stream.handle)
    return cu.cuEventRecord(staging.passed[index], stream.handle) if result == CUDA_SUCCESS \
        else result


cdef int receive_long(StreamState* stream, Block* block, unsigned int generation,
                      Staging* staging, char* target, CUdeviceptr source,
                      size_t nbytes) except -1:
    """Copy several chunks from the device."""
    cdef StreamState* own
    cdef CUresult result = CUDA_SUCCESS
    cdef unsigned long long before, copying
    cdef int entered
    cdef size_t done
    prepare(stream, staging)
    before = submission_count(stream)
    own = staging.own
    begin_copy(own, block, READ, generation)
    copying = submission_count(own)
    entered = enter_quietly(own.ordinal, own.epoch)
    done = receive_chunks(block, generation, staging, target, source, nbytes, &result)
    end_copy(own, block, READ, generation, done == nbytes)
    leave_quietly(entered)
    if done < nbytes:
        refuse_rest(own, result, b"cuMemcpyDtoHAsync")
    if not printing:
        note_end(own, copying)
        note_end(stream, before)
    return 0


cdef size_t receive_chunks(const Block* block, unsigned int generation, Staging* staging,
                           char* target, CUdeviceptr source, size_t nbytes,
                           CUresult* result) noexcept:
    """Receive the chunks; return the bytes received. Chunk i + 1 is transferred while chunk i is
    copied out of its pinned memory. No Python code runs."""
    cdef StreamState* own = staging.own
    cdef size_t size = staging.size, done = 0
    cdef int i
    if not may_go_on(own, block, generation):
        return 0
    with nogil:
        for i in range(2):
            if result[0] == CUDA_SUCCESS:
                result[0] = receive_part(own, staging, i, source, nbytes)
    own.put += 4
    i = 0
    while done < nbytes and result[0] == CUDA_SUCCESS:
        result[0] = wait_for_chunk(own, staging, i % CHUNKS)
        if result[0] != CUDA_SUCCESS or not may_go_on(own, block, generation):
            break
        touching[own.ordinal] += 1
        with nogil:
            memcpy(target + done, staging.chunk[i % CHUNKS], min(size, nbytes - done))
            result[0] = receive_part(own, staging, i + 2, source, nbytes)
        touching[own.ordinal] -= 1
        own.put += 2
        i += 1
        done = min(nbytes, i * size)
    return done


cdef CUresult receive_part(StreamState* stream, Staging* staging, int i, CUdeviceptr source,
                           size_t nbytes) noexcept nogil:
    """Put the copy of chunk i on the stream, if there is one."""
    cdef size_t start = i * staging.size
    if start >= nbytes:
        return CUDA_SUCCESS
    return receive_chunk(stream, staging, i % CHUNKS, source + start,
                         min(staging.size, nbytes - start))


def _set_chunk_size(nbytes):
    """Set the size of a chunk, so that a test's small copies have several; return the size before.

    Parameters
    ----------
    nbytes : int
        From 1 to 4 MB, the size at first.
    """
    global chunk_size
    cdef size_t before = chunk_size
    if not 0 < nbytes <= CHUNK:
        raise ValueError(f"expected a size from 1 to {CHUNK:,} bytes, got {nbytes:,}")
    chunk_size = nbytes
    return before
