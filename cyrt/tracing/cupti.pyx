"""The times of single operations on a GPU, from CUPTI's activity records.

The layouts are the fields that CUpti_ActivityKernel4 to 13, CUpti_ActivityMemcpy to 7 and
CUpti_ActivityMemset to 5 of cupti_activity.h have in common.
"""

import ctypes
from typing import NamedTuple

from cuda import pathfinder
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

cdef extern from "stdlib.h" nogil:
    void* aligned_alloc(size_t alignment, size_t size)

cdef extern from "pthread.h" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_mutex_init(pthread_mutex_t* mutex, void* attributes)
    int pthread_mutex_lock(pthread_mutex_t* mutex)
    int pthread_mutex_unlock(pthread_mutex_t* mutex)

cdef enum:
    MEMCPY = 1              # CUpti_ActivityKind
    MEMSET = 2
    CONCURRENT_KERNEL = 10
    FLUSH_FORCED = 1
    BUFFER = 4 << 20        # bytes; a record of a kernel takes up to 250

cdef struct KernelRecord:
    uint32_t kind
    uint32_t[3] ignored
    uint64_t start, end, completed
    uint32_t device, context, stream
    int32_t[3] grid
    int32_t[3] block
    uint32_t[4] memory
    uint32_t correlation
    uint64_t grid_id
    const char* name
    void* reserved
    uint64_t queued, submitted
    uint32_t launch, shared_memory
    uint64_t graph_node
    uint32_t shared_memory_limit, graph

# The record of a copy, and of a memset.
cdef struct CopyRecord:
    uint32_t kind
    uint32_t ignored
    uint64_t nbytes
    uint64_t start, end
    uint32_t device, context, stream
    uint32_t[3] others
    void* reserved
    uint64_t graph_node
    uint32_t graph

# Buffers that CUPTI has filled.
cdef struct Filled:
    uint8_t* records
    size_t nbytes
    Filled* next

cdef Filled* filled = NULL
cdef pthread_mutex_t lock
pthread_mutex_init(&lock, NULL)


# CUPTI calls these two on the thread of a driver's call or on one of its own, with locks of its own
# held: they must not wait for the GIL, which a thread that waits for those locks may hold.
cdef void provide_buffer(uint8_t** buffer, size_t* size, size_t* most_records) noexcept nogil:
    buffer[0] = <uint8_t*>aligned_alloc(8, BUFFER)
    size[0] = BUFFER if buffer[0] != NULL else 0
    most_records[0] = 0


cdef void take_buffer(void* context, uint32_t stream, uint8_t* buffer, size_t size,
                      size_t nbytes) noexcept nogil:
    global filled
    cdef Filled* entry = <Filled*>malloc(sizeof(Filled)) if nbytes else NULL
    if entry == NULL:
        free(buffer)
        return
    entry.records, entry.nbytes = buffer, nbytes
    pthread_mutex_lock(&lock)
    entry.next, filled = filled, entry
    pthread_mutex_unlock(&lock)


class Activity(NamedTuple):
    """An operation that a GPU ran; times in ns of CUPTI's clock."""

    name: str       # a kernel's symbol, "copy" or "fill"
    device: int
    stream: int     # CUPTI's number
    graph: int      # CUPTI's number; 0: it was launched by itself
    start: int
    end: int
    details: dict   # the geometry of a kernel, or the bytes of a copy or fill


class Unavailable(Exception):
    """CUPTI is not installed, or refuses; the text says which."""


class Collector:
    """The one user of CUPTI's activity records in the process.

    Raises
    ------
    Unavailable
        CUPTI is not installed.
    """

    def __init__(self):
        try:
            found = pathfinder.load_nvidia_dynamic_lib("cupti")
        except pathfinder.DynamicLibNotFoundError:
            raise Unavailable("CUPTI is not installed") from None
        self.library = ctypes.CDLL(found.abs_path)
        self.registered = False

    def call(self, name, *arguments):
        """Call a function; raise `Unavailable` if it fails."""
        cdef int result = getattr(self.library, name)(*arguments)
        if result:
            text = ctypes.c_char_p()
            self.library.cuptiGetResultString(result, ctypes.byref(text))
            raise Unavailable(f"{name}: {(text.value or b'unknown error').decode()} ({result})")

    def start(self):
        """Begin to collect. Raises `Unavailable` where another profiler uses CUPTI."""
        if not self.registered:
            self.call("cuptiActivityRegisterCallbacks", ctypes.c_void_p(<size_t>&provide_buffer),
                      ctypes.c_void_p(<size_t>&take_buffer))
            self.registered = True
        for kind in (CONCURRENT_KERNEL, MEMCPY, MEMSET):
            self.call("cuptiActivityEnable", ctypes.c_int(kind))

    def now(self):
        """The time in ns of the clock that the records have."""
        time = ctypes.c_uint64()
        self.call("cuptiGetTimestamp", ctypes.byref(time))
        return time.value

    def stop(self):
        """End it, and return the activities since `start`, in the order of their start."""
        global filled
        cdef Filled* entry
        cdef Filled* rest
        found = []
        for kind in (CONCURRENT_KERNEL, MEMCPY, MEMSET):
            self.call("cuptiActivityDisable", ctypes.c_int(kind))
        self.call("cuptiActivityFlushAll", ctypes.c_uint32(FLUSH_FORCED))
        pthread_mutex_lock(&lock)
        rest, filled = filled, NULL
        pthread_mutex_unlock(&lock)
        while rest != NULL:
            entry, rest = rest, rest.next
            try:
                self.read(<size_t>entry.records, entry.nbytes, found)
            finally:
                free(entry.records)
                free(entry)
        return sorted(found, key=lambda activity: activity.start)

    def read(self, size_t buffer, size_t nbytes, list found):
        """Append the records of a buffer."""
        cdef KernelRecord* kernel
        cdef CopyRecord* copy
        following = self.library.cuptiActivityGetNextRecord
        record = ctypes.c_void_p()
        while following(ctypes.c_void_p(buffer), ctypes.c_size_t(nbytes),
                        ctypes.byref(record)) == 0:
            kernel = <KernelRecord*><size_t>record.value
            copy = <CopyRecord*><size_t>record.value
            if kernel.kind == CONCURRENT_KERNEL:
                found.append(Activity(
                    kernel.name.decode(errors="replace"), kernel.device, kernel.stream,
                    kernel.graph, kernel.start, kernel.end,
                    {"grid": list(kernel.grid), "block": list(kernel.block)}))
            elif kernel.kind in (MEMCPY, MEMSET):
                found.append(Activity(
                    "copy" if kernel.kind == MEMCPY else "fill", copy.device, copy.stream,
                    copy.graph, copy.start, copy.end, {"bytes": copy.nbytes}))
