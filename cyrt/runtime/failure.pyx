# C-level functions only: see failure.pxd.
"""Failures that kernels report, such as a matrix that has no inverse."""

import os

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdlib cimport free

from cyrt.driver import frames
from cyrt.driver.calling_code cimport cyrt_calling_code
from cyrt.driver.errors import LinAlgError
from cyrt.runtime.allocation cimport allocate_zeroed
from cyrt.runtime.state cimport StreamState

# The package's folder: the line of a call is the first one outside it.
cdef str folder = os.path.join(os.path.dirname(os.path.dirname(frames.__file__)), "")

cdef enum:
    MOST_SITES = 1 << 16
    LEAST_SLOTS = 64            # a power of two

# A site, found by addresses, whose objects `sites` keeps: those of its code (NULL: unknown), its
# function and its text; and by its instruction, an offset into the code.
cdef struct Site:
    PyObject* code
    PyObject* function          # NULL: the slot is free
    PyObject* text
    size_t instruction
    unsigned int number

# The functions, texts, lines and code objects of the sites, by number. Functions and texts are
# constants of cyrt, so there are few of them.
cdef list sites = []
# An open hash table of them: a site is in the first slot, from that of its hash on, that is its own
# or free. At most half of the slots are in use; their number is a power of two.
cdef Site* slots = NULL
cdef size_t num_slots = 0


cdef long long site_of(str function, str text) except -1:
    cdef int instruction = 0
    cdef PyObject* code = cyrt_calling_code(<PyObject*>folder, &instruction)
    cdef Site site = Site(code, <PyObject*>function, <PyObject*>text, instruction, 0)
    cdef const Site* slot
    cdef object held = None
    if code != NULL:
        held = <object>code
        Py_DECREF(held)         # That call's reference; `held` is one until the end.
    if code != NULL and num_slots:
        slot = slot_of(&site)
        if slot.function != NULL:
            return slot.number
    return new_site(&site)


cdef inline Site* slot_of(const Site* site) noexcept:
    """Return the slot of a site, which is free if the site is not known."""
    # Objects are 16 bytes apart, instructions 2.
    cdef size_t h = (<size_t>site.code >> 4) * 31 + (<size_t>site.function >> 4) * 7 \
        + (<size_t>site.text >> 4) + (site.instruction >> 1)
    cdef Site* slot
    while True:
        slot = &slots[h & (num_slots - 1)]
        if slot.function == NULL or slot.code == site.code and slot.function == site.function \
                and slot.text == site.text and slot.instruction == site.instruction:
            return slot
        h += 1


cdef int add_slots() except -1:
    """Double the number of slots."""
    global slots, num_slots
    cdef Site* before = slots
    cdef size_t count = num_slots, i
    slots = <Site*>allocate_zeroed(max(2 * count, LEAST_SLOTS) * sizeof(Site))
    num_slots = max(2 * count, LEAST_SLOTS)
    for i in range(count):
        if before[i].function != NULL:
            slot_of(&before[i])[0] = before[i]
    free(before)
    return 0


cdef long long new_site(Site* site) except -1:
    """Store a site unless it is known, and return its number. Calls from unknown code, and those
    of a program that makes code without end, have one site for each function and text."""
    cdef Site* slot
    cdef tuple entry
    line = frames.outside_line()
    if site.code == NULL or len(sites) >= MOST_SITES:
        site.code, site.instruction, line = NULL, 0, ""
    entry = (<str>site.function, <str>site.text, line,
             None if site.code == NULL else <object>site.code)
    # Finalizers, which may add sites, run before this, but not after it.
    if 2 * (len(sites) + 1) > num_slots:
        add_slots()
    slot = slot_of(site)
    if slot.function == NULL:
        site.number = <unsigned int>len(sites)
        slot[0] = site[0]
        sites.append(entry)
    return slot.number


cdef int raise_reported(StreamState* stream) except -1:
    cdef unsigned long long word = cyrt_take(stream.failure, <unsigned long long>NO_FAILURE)
    cdef unsigned long long count
    if word == <unsigned long long>NO_FAILURE:      # another thread has raised it
        return 0
    count = cyrt_take(stream.failure + 1, 0)
    function, text, line, _ = sites[word >> 32]
    where = f" (called in {line})" if line else ""
    others = f"; {count - 1} more failed" if count > 1 else ""
    raise LinAlgError(f"{function}: {text.format(word & 0xffffffff)}{where}{others}")
