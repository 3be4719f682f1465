# C-level functions only: see captures.pxd.
"""Captures of streams by other libraries."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport free

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport check, cu
from cyrt.runtime.allocation cimport allocate_zeroed, reallocate
from cyrt.runtime.order cimport has_exported_memory, is_recorded_anywhere
from cyrt.runtime.outside cimport add_outside
from cyrt.runtime.pool cimport release
from cyrt.runtime.state cimport CAPTURED, LIVE, Block, StreamState
from cyrt.runtime.stream_state cimport states
from cyrt.runtime.waiting cimport is_done, wait_for_own_work

cdef extern from *:
    """
    static inline void cyrt_push(void* head, void* item, void** next) {
        void* first = __atomic_load_n((void**)head, __ATOMIC_RELAXED);
        do *next = first;
        while (!__atomic_compare_exchange_n((void**)head, &first, item, 1, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED));
    }
    static inline void* cyrt_take_all(void* head) {
        return __atomic_exchange_n((void**)head, NULL, __ATOMIC_ACQUIRE);
    }
    """
    void cyrt_push(void* head, void* item, void** next) noexcept nogil
    void* cyrt_take_all(void* head) noexcept nogil

cdef Kept* last_kept        # the capture that was asked for last; NULL: none, or it has ended


cdef int refuse_uncommitted() except -1:
    raise RuntimeError(
        "a stream is being captured, and cyrt's work on this memory is recorded, but not launched: "
        "the graph would not contain it; call cyrt.commit() before the capture begins")


cdef bint settle(const Block* block) except -1:
    cdef StreamState* awaited
    cdef bint waited = False
    cdef int i
    while True:
        if is_recorded_anywhere(block):
            refuse_uncommitted()
        awaited = NULL if is_done(block.home) else block.home
        for i in range(block.num_readers):
            if awaited == NULL and not is_done(block.readers[i]):
                awaited = block.readers[i]
        if awaited == NULL:
            return waited
        wait_for_own_work(awaited)
        waited = True


cdef int refuse_recorded(int ordinal, bint all) except -1:
    cdef StreamState* state = states[ordinal]
    while state != NULL:
        if state.pending and (all or state.outside):
            refuse_uncommitted()
        state = state.next
    return 0


cdef void note_end(void* kept) noexcept nogil:
    """The destructor of a user object, on a thread of the driver's."""
    cyrt_push(&ended, kept, <void**>&(<Kept*>kept).next)


cdef Kept* kept_by(StreamState* stream) except NULL:
    global last_kept
    cdef CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE
    cdef cuuint64_t capture = 0
    cdef CUgraph graph = NULL
    cdef CUuserObject owner = NULL
    cdef CUresult result
    cdef Kept* kept
    check(cu.cuStreamGetCaptureInfo(stream.handle, &status, &capture, &graph, NULL, NULL),
          b"cuStreamGetCaptureInfo", stream.ordinal)
    if graph == NULL:
        raise RuntimeError("the capture of the stream has become invalid: a call that it does not "
                           "permit came before")
    if last_kept != NULL and last_kept.capture == capture:
        return last_kept
    objects = []
    kept = <Kept*>allocate_zeroed(sizeof(Kept))
    kept.capture = capture
    kept.objects = <PyObject*>objects
    Py_INCREF(objects)
    result = cu.cuUserObjectCreate(&owner, kept, <CUhostFn>note_end, 1,
                                   CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    if result != CUDA_SUCCESS:
        Py_DECREF(objects)
        free(kept)
        check(result, b"cuUserObjectCreate", stream.ordinal)
    check(cu.cuGraphRetainUserObject(graph, owner, 1, CU_GRAPH_USER_OBJECT_MOVE),
          b"cuGraphRetainUserObject", stream.ordinal)
    last_kept = kept
    return kept


cdef int keep_object(Kept* kept, object value) except -1:
    cdef list objects = <list>kept.objects
    if not objects or objects[len(objects) - 1] is not value:
        objects.append(value)
    return 0


cdef int keep_block(Kept* kept, Block* block) except -1:
    cdef int i
    for i in range(kept.count):
        if kept.blocks[i] == block:
            return 0
    if kept.count == kept.room:
        kept.blocks = <Block**>reallocate(kept.blocks, (2 * kept.room + 8) * sizeof(Block*))
        kept.room = 2 * kept.room + 8
    kept.blocks[kept.count] = block
    kept.count += 1
    block.captures += 1
    if not block.shared:
        add_outside(block)
        block.shared = has_exported_memory[block.ordinal] = True
    return 0


cdef void release_block(Block* block) noexcept:
    block.captures -= 1
    if block.captures == 0 and block.state == CAPTURED:
        block.state = LIVE
        release(block)


cdef void release_all_ended() noexcept:
    global last_kept
    cdef Kept* kept = <Kept*>cyrt_take_all(&ended)
    cdef Kept* following
    cdef int i
    while kept != NULL:
        following = kept.next
        if last_kept == kept:
            last_kept = NULL
        for i in range(kept.count):
            release_block(kept.blocks[i])
        Py_DECREF(<object>kept.objects)         # may run finalizers
        free(kept.blocks)
        free(kept)
        kept = following
