# C-level functions only: see loss.pxd.
"""Operations that the driver refused, and the memory that was lost by them."""

from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.object cimport PyObject
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from cyrt.driver import errors
from cyrt.driver.cuda cimport CUresult
from cyrt.driver.table import describe
from cyrt.graph.recording cimport (
    CLUSTER, KERNEL, Geometry, Recording, Use, use_end,
)
from cyrt.runtime cimport poison as poisons
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.poison cimport heal, poison
from cyrt.runtime.state cimport OVERWRITE, READ

_KINDS = ("kernel", "copy", "empty node", "graph")

cdef struct Refusal:
    CUresult result
    const char* call
    int kind
    unsigned int flags
    Geometry geometry
    unsigned int[3] cluster
    PyObject* function          # a LoadedFunction, or NULL
    PyObject* where             # who recorded it, a str; or NULL
    int blocks                  # that are lost by it
    bint used

cdef Refusal* refusals = NULL   # by number, less 1
cdef unsigned int num_refusals = 0


cdef unsigned int* new_losses(const Recording* recording) noexcept:
    return <unsigned int*>calloc(recording.num_nodes + 1, sizeof(unsigned int))


cdef unsigned int last_writer_loss(const Recording* recording, int node, const Use* use,
                                   const unsigned int* lost) noexcept:
    """The loss of the batch's last writer of the memory before the node; 0: it was not lost."""
    cdef const Use* earlier
    cdef int u
    for u in range(recording.nodes[node].first_use - 1, -1, -1):
        earlier = &recording.uses[u]
        if earlier.block == use.block and earlier.generation == use.generation \
                and earlier.access != READ:
            while recording.nodes[node].first_use > u:
                node -= 1
            return lost[node]
    return use.block.poison if use.block.generation == use.generation else 0


cdef unsigned int inherited_loss(const Recording* recording, int node,
                                 const unsigned int* lost) noexcept:
    cdef const Use* use
    cdef unsigned int number
    cdef int u
    for u in range(recording.nodes[node].first_use, use_end(recording, node)):
        use = &recording.uses[u]
        if use.access != OVERWRITE:
            number = last_writer_loss(recording, node, use, lost)
            if number:
                return number
    return 0


cdef unsigned int free_number() noexcept:
    global refusals, num_refusals
    cdef Refusal* grown
    cdef unsigned int i
    for i in range(num_refusals):
        if not refusals[i].used:
            return i + 1
    i = num_refusals
    grown = <Refusal*>realloc(refusals, (2 * i + 8) * sizeof(Refusal))
    if grown == NULL:
        return i                    # the last error tells of two; 0 where there is none
    memset(grown + i, 0, (i + 8) * sizeof(Refusal))
    refusals, num_refusals = grown, 2 * i + 8
    return i + 1


cdef unsigned int refuse(const Recording* recording, int node, CUresult result, const char* call,
                         void* where) noexcept:
    cdef unsigned int number = free_number()
    cdef Refusal* refusal
    cdef int i
    if number == 0:
        return 0
    refusal = &refusals[number - 1]
    refusal.result, refusal.call = result, call
    refusal.kind = recording.nodes[node].kind
    refusal.flags = recording.nodes[node].flags
    refusal.geometry = recording.geometry[node]
    for i in range(3):
        refusal.cluster[i] = recording.nodes[node].cluster[i]
    if not refusal.used:
        if refusal.kind == KERNEL:
            refusal.function = <PyObject*>recording.nodes[node].owner
            Py_INCREF(<object>refusal.function)
        if where != NULL:
            refusal.where = <PyObject*>where
            Py_INCREF(<object>refusal.where)
    refusal.used = True
    return number


cdef void mark_losses(const Recording* recording, int first, const unsigned int* lost) noexcept:
    cdef const Use* use
    cdef int node, u
    for node in range(first, recording.num_nodes):
        for u in range(recording.nodes[node].first_use, use_end(recording, node)):
            use = &recording.uses[u]
            if use.access == READ:
                continue
            if lost[node]:
                poison(use.block, lost[node], use.generation)
            elif use.access == OVERWRITE and use.block.generation == use.generation:
                heal(use.block)


cdef unsigned int lose_all(const Recording* recording, CUresult result, const char* call,
                           void* where) noexcept:
    cdef unsigned int* lost = new_losses(recording)
    cdef unsigned int number = 0
    cdef int i
    if lost != NULL and recording.num_nodes:
        number = refuse(recording, 0, result, call, where)
        for i in range(recording.num_nodes):
            lost[i] = number
        mark_losses(recording, 0, lost)
    free(lost)
    return number


cdef void reclaim() noexcept:
    cdef Refusal* refusal
    cdef unsigned int i
    for i in range(num_refusals):
        refusal = &refusals[i]
        if refusal.used and refusal.blocks == 0:
            refusal.used = False
            Py_XDECREF(refusal.function)
            Py_XDECREF(refusals[i].where)
            refusals[i].function = refusals[i].where = NULL


cdef object error_of(unsigned int number):
    """A new exception for it."""
    cdef Refusal refusal = refusals[number - 1]     # other threads may add some meanwhile
    cdef Geometry geometry = refusal.geometry
    name, text = describe(<int>refusal.result)
    if refusal.function != NULL:
        detail = (f"The operation refused is the kernel {(<LoadedFunction>refusal.function).name}, "
                  f"grid ({geometry.grid[0]}, {geometry.grid[1]}, {geometry.grid[2]}), block "
                  f"({geometry.block[0]}, {geometry.block[1]}, {geometry.block[2]}), "
                  f"{geometry.smem:,} bytes of dynamic shared memory")
        if refusal.flags & CLUSTER:
            detail += (f", cluster ({refusal.cluster[0]}, {refusal.cluster[1]}, "
                       f"{refusal.cluster[2]})")
    else:
        detail = f"The operation refused is a {_KINDS[refusal.kind]}"
    if refusal.where != NULL:
        detail += f"; it was recorded at {<object>refusal.where}"
    kind = errors.OutOfMemoryError if name == "CUDA_ERROR_OUT_OF_MEMORY" else errors.CudaError
    return kind((<bytes>refusal.call).decode(), <int>refusal.result, name, text,
                f"{detail}. What it would have written is lost, and what depends on that; the "
                "other operations of its batch ran.")


cdef void hold_error(unsigned int number) noexcept:
    refusals[number - 1].blocks += 1


cdef void drop_error(unsigned int number) noexcept:
    refusals[number - 1].blocks -= 1


poisons.error_of = error_of
poisons.hold_error = hold_error
poisons.drop_error = drop_error
