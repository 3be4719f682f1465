# C-level functions only: see loss.pxd.
"""Losses: operations that the driver refused, and the memory that is lost because of them."""

from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.object cimport PyObject
from libc.stdlib cimport realloc
from libc.string cimport memset

from cyrt.driver import errors
from cyrt.driver.cuda cimport CUresult
from cyrt.driver.table import describe
from cyrt.graph.recording cimport (
    CLUSTER, KERNEL, TEMPLATE, Geometry, Recording, Use, use_end,
)
from cyrt.runtime.module cimport Runnable
from cyrt.runtime.outside cimport is_outside, overlap
from cyrt.runtime.poison cimport mark_valid, retain_error, poison
from cyrt.runtime.state cimport OVERWRITE, READ

_KINDS = ("kernel", "copy", "empty node", "graph")

cdef struct Refusal:
    CUresult result
    const char* call
    int kind
    unsigned int flags
    Geometry geometry
    unsigned int[3] cluster
    PyObject* name              # a str, the name of a kernel; or NULL
    PyObject* where             # a str, the file and line that recorded it; or NULL
    int holders                 # blocks and operations that are lost because of it
    bint used

cdef Refusal* refusals = NULL   # the error of number n is at index n - 1
cdef unsigned int num_refusals = 0


cdef bint make_losses(Recording* recording) noexcept:
    cdef unsigned int* grown
    if recording.loss_room < recording.num_nodes:
        grown = <unsigned int*>realloc(recording.losses,
                                       recording.node_room * sizeof(unsigned int))
        if grown == NULL:
            return False
        memset(grown + recording.loss_room, 0,
               (recording.node_room - recording.loss_room) * sizeof(unsigned int))
        recording.losses, recording.loss_room = grown, recording.node_room
    return True


cdef void mark_lost(Recording* recording, int node, unsigned int number) noexcept:
    if recording.losses[node] == 0 and number:
        retain_error(number)
        recording.losses[node] = number


cdef bint same_memory(const Use* earlier, const Use* use) noexcept:
    if earlier.block == use.block:
        return earlier.generation == use.generation
    return is_outside(earlier.block) and is_outside(use.block) \
        and overlap(earlier.block, use.block)


cdef bint find_writer(const Recording* recording, int node, const Use* use,
                      unsigned int* number) noexcept:
    """Return whether a node before this one writes the memory; set `number` to the error because of
    which that node is lost, or 0."""
    cdef const Use* earlier
    cdef int u = recording.nodes[node].first_use if node < recording.num_nodes \
        else recording.num_uses
    while u > 0:
        u -= 1
        earlier = &recording.uses[u]
        if earlier.access == READ or not same_memory(earlier, use):
            continue
        node = min(node, recording.num_nodes - 1)
        while recording.nodes[node].first_use > u:
            node -= 1
        number[0] = recording.losses[node] if node < recording.loss_room else 0
        if number[0] or earlier.block == use.block:
            return True
    return False


cdef unsigned int inherited_loss(const Recording* recording, int node,
                                 const Recording* before) noexcept:
    """Return the number of the error if the node uses lost memory and so is lost, else 0."""
    cdef const Use* use
    cdef unsigned int number
    cdef int u
    for u in range(recording.nodes[node].first_use, use_end(recording, node)):
        use = &recording.uses[u]
        if use.access == OVERWRITE:
            continue
        number = 0
        if not find_writer(recording, node, use, &number) and not (
                before != NULL and find_writer(before, before.num_nodes, use, &number)):
            number = use.block.poison if use.block.generation == use.generation else 0
        if number:
            return number
    return 0


cdef void inherit(Recording* recording, int node, const Recording* before) noexcept:
    cdef unsigned int number = inherited_loss(recording, node, before)
    if number and make_losses(recording):
        mark_lost(recording, node, number)


cdef void propagate_losses(const Recording* recording, Recording* later) noexcept:
    cdef int i
    for i in range(later.num_nodes):
        inherit(later, i, recording)


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
        return i                    # two errors share the last number; 0 if there is no number
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
        if refusal.kind == KERNEL or refusal.kind == TEMPLATE:
            refusal.name = <PyObject*>(<Runnable>recording.owners[node]).name
            Py_INCREF(<object>refusal.name)
        if where != NULL:
            refusal.where = <PyObject*>where
            Py_INCREF(<object>refusal.where)
    refusal.used = True
    return number


cdef void mark_losses(const Recording* recording) noexcept:
    cdef const Use* use
    cdef unsigned int number
    cdef int node, u
    for node in range(recording.num_nodes):
        number = recording.losses[node] if node < recording.loss_room else 0
        for u in range(recording.nodes[node].first_use, use_end(recording, node)):
            use = &recording.uses[u]
            if use.access != READ and number:
                poison(use.block, number, use.generation)
            elif use.access == OVERWRITE and use.block.generation == use.generation:
                mark_valid(use.block)


cdef unsigned int mark_all_lost(Recording* recording, CUresult result, const char* call,
                           void* where) noexcept:
    cdef unsigned int number = 0
    cdef int i
    if recording.num_nodes and make_losses(recording):
        number = refuse(recording, 0, result, call, where)
        for i in range(recording.num_nodes):
            mark_lost(recording, i, number)
        mark_losses(recording)
    return number


cdef void reclaim() noexcept:
    cdef Refusal* refusal
    cdef unsigned int i
    for i in range(num_refusals):
        refusal = &refusals[i]
        if refusal.used and refusal.holders == 0:
            refusal.used = False
            Py_XDECREF(refusal.name)
            Py_XDECREF(refusals[i].where)
            refusals[i].name = refusals[i].where = NULL


cdef object error_of(unsigned int number):
    """Return a new exception for an error's number."""
    cdef Refusal refusal = refusals[number - 1]     # a copy: other threads may move the array
    cdef Geometry geometry = refusal.geometry
    name, text = describe(<int>refusal.result)
    if refusal.name != NULL:
        detail = (f"The operation refused is the kernel {<object>refusal.name}, "
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


cdef void count_holders(unsigned int number, int change) noexcept:
    refusals[number - 1].holders += change
