"""Copies between host and device memory, staged through pinned memory."""

import threading

from libc.string cimport memcpy

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, cu
from cyrt.runtime.device cimport contexts, enter, leave
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport wait

cdef enum:
    CHUNKS = 4
    CHUNK = 4 << 20
    INLINE = 64 << 10       # up to here the driver takes host memory into its command buffer

# Pinned chunks used in turn; each is free once its event has passed.
cdef struct Staging:
    unsigned int epoch
    char* chunk[CHUNKS]
    CUevent passed[CHUNKS]
    int next

cdef Staging stagings[MAX_DEVICES]
_locks = [threading.Lock() for _ in range(MAX_DEVICES)]


cdef CUresult query_event(void* handle) noexcept nogil:
    return cu.cuEventQuery(<CUevent>handle)


cdef Staging* staging_of(StreamState* stream) except NULL:
    cdef Staging* staging = &stagings[stream.ordinal]
    cdef CUresult result = CUDA_SUCCESS
    cdef int i, entered
    if staging.chunk[CHUNKS - 1] != NULL and staging.epoch == contexts[stream.ordinal].epoch:
        return staging
    staging.epoch = contexts[stream.ordinal].epoch
    for i in range(CHUNKS):
        entered = enter(stream.ordinal, stream.epoch, b"cuMemHostAlloc")
        result = cu.cuMemHostAlloc(<void**>&staging.chunk[i], CHUNK, CU_MEMHOSTALLOC_PORTABLE)
        if result == CUDA_SUCCESS:
            result = cu.cuEventCreate(&staging.passed[i], CU_EVENT_DISABLE_TIMING)
        if result != CUDA_SUCCESS:
            staging.chunk[CHUNKS - 1] = NULL
        leave(stream.ordinal, entered, result, b"cuMemHostAlloc")
    return staging


cdef int take_chunk(StreamState* stream, Staging* staging) except -1:
    """The next chunk, once the copy that used it last has passed."""
    cdef int index = staging.next
    staging.next = (index + 1) % CHUNKS
    wait(stream.ordinal, stream.epoch, query_event, staging.passed[index], b"cuEventQuery")
    return index


cdef int mark_chunk(StreamState* stream, Staging* staging, int index, int entered,
                    CUresult result, const char* call) except -1:
    if result == CUDA_SUCCESS:
        result = cu.cuEventRecord(staging.passed[index], stream.handle)
    return leave(stream.ordinal, entered, result, call)


cdef int to_device(StreamState* stream, CUdeviceptr target, const char* source,
                   size_t nbytes) except -1:
    cdef Staging* staging
    cdef size_t done = 0, part
    cdef int index, entered
    cdef CUresult result
    cdef char* chunk
    if nbytes <= INLINE:
        entered = enter(stream.ordinal, stream.epoch, b"cuMemcpyHtoDAsync")
        with nogil:
            result = cu.cuMemcpyHtoDAsync(target, source, nbytes, stream.handle)
        return leave(stream.ordinal, entered, result, b"cuMemcpyHtoDAsync")
    with _locks[stream.ordinal]:
        staging = staging_of(stream)
        while done < nbytes:
            index = take_chunk(stream, staging)
            part = min(<size_t>CHUNK, nbytes - done)
            chunk = staging.chunk[index]
            with nogil:
                memcpy(chunk, source + done, part)
            entered = enter(stream.ordinal, stream.epoch, b"cuMemcpyHtoDAsync")
            with nogil:
                result = cu.cuMemcpyHtoDAsync(target + done, chunk, part, stream.handle)
            mark_chunk(stream, staging, index, entered, result, b"cuMemcpyHtoDAsync")
            done += part
    return 0


cdef int to_host(StreamState* stream, char* target, CUdeviceptr source, size_t nbytes) except -1:
    """Chunk i + 1 crosses the bus while chunk i is copied out of pinned memory."""
    cdef Staging* staging
    cdef size_t asked = 0, done = 0, part
    cdef int[CHUNKS] pending
    cdef int index, entered
    cdef int first = 0, count = 0
    cdef CUresult result
    cdef char* chunk
    with _locks[stream.ordinal]:
        staging = staging_of(stream)
        while done < nbytes:
            while asked < nbytes and count < 2:
                index = take_chunk(stream, staging)
                part = min(<size_t>CHUNK, nbytes - asked)
                entered = enter(stream.ordinal, stream.epoch, b"cuMemcpyDtoHAsync")
                chunk = staging.chunk[index]
                with nogil:
                    result = cu.cuMemcpyDtoHAsync(chunk, source + asked, part, stream.handle)
                mark_chunk(stream, staging, index, entered, result, b"cuMemcpyDtoHAsync")
                pending[(first + count) % CHUNKS] = index
                count += 1
                asked += part
            index = pending[first]
            first = (first + 1) % CHUNKS
            count -= 1
            wait(stream.ordinal, stream.epoch, query_event, staging.passed[index],
                 b"cuMemcpyDtoHAsync")
            part = min(<size_t>CHUNK, nbytes - done)
            chunk = staging.chunk[index]
            with nogil:
                memcpy(target + done, chunk, part)
            done += part
    return 0
