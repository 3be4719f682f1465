"""Exact keys, what is stored under them, and the launches that were planned last."""

from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memmove

from cyrt.runtime.allocation cimport allocate_zeroed, reallocate

cdef enum:
    WAYS = 4                # plans of a set

cdef Set[SETS] plans
cdef unsigned long long[MOST_WORDS] multipliers


def set_multipliers(bint equal=False):
    """Set the factors of words in a hash to the first numbers of SplitMix64. `equal`, for tests,
    gives all keys of one length one hash."""
    cdef unsigned long long state = 0, mixed
    cdef int i
    for i in range(MOST_WORDS):
        state += <unsigned long long>0x9e3779b97f4a7c15u
        mixed = (state ^ state >> 30) * <unsigned long long>0xbf58476d1ce4e5b9u
        mixed = (mixed ^ mixed >> 27) * <unsigned long long>0x94d049bb133111ebu
        multipliers[i] = 0 if equal else mixed ^ mixed >> 31


set_multipliers()


cdef inline unsigned long long hash_words(const unsigned long long* words, int count) noexcept:
    # None of the products waits for another one. The hash of batches (graph/executable), which is
    # one of bytes, takes 46 instructions more for the key of a reduction (measured).
    cdef unsigned long long h = count
    cdef int i
    for i in range(count):
        h += words[i] * multipliers[i]
    return h ^ h >> 32


cdef Slot* find(Set* sets, Key* key) noexcept:
    cdef Set* set
    cdef Slot* slot
    cdef int i
    if key.count > MOST_WORDS:
        return NULL
    key.hash = hash_words(key.words, key.count)
    set = &sets[key.hash % SETS]
    for i in range(set.count):
        slot = &set.slots[i]
        if slot.hash == key.hash and slot.count == key.count \
                and memcmp(slot.words, key.words, key.count * sizeof(key.words[0])) == 0:
            return slot
    return NULL


cdef int insert(Set* sets, const Key* key, const void* plan, size_t nbytes, object held,
                int most) except -1:
    cdef Set* set = &sets[key.hash % SETS]
    cdef size_t size = key.count * sizeof(key.words[0])
    cdef Slot slot
    while set.count >= most:
        remove(set, set.count - 1)
    set.slots = <Slot*>reallocate(set.slots, (set.count + 1) * sizeof(Slot))
    slot.hash, slot.count, slot.held = key.hash, key.count, NULL
    slot.words = <unsigned long long*>allocate_zeroed(size + nbytes)
    memcpy(slot.words, key.words, size)
    memcpy(slot.words + key.count, plan, nbytes)
    if held is not None:
        Py_INCREF(held)
        slot.held = <PyObject*>held
    memmove(set.slots + 1, set.slots, set.count * sizeof(Slot))
    set.slots[0] = slot
    set.count += 1
    return 0


cdef void remove(Set* set, int index) noexcept:
    cdef Slot slot = set.slots[index]
    set.count -= 1
    memmove(&set.slots[index], &set.slots[index + 1], (set.count - index) * sizeof(Slot))
    free(slot.words)
    Py_XDECREF(slot.held)


# -- plans -----------------------------------------------------------------------------------------


cdef const void* find_plan(Key* key) noexcept:
    cdef const Slot* slot = find(plans, key)
    return NULL if slot == NULL else slot.words + slot.count


cdef int store_plan(const Key* key, const void* plan, size_t nbytes, object held=None) except -1:
    if key.count <= MOST_WORDS:
        insert(plans, key, plan, nbytes, held, WAYS)
    return 0


cdef void forget_launch_plans() noexcept:
    global times_forgotten
    cdef int i
    times_forgotten += 1
    for i in range(SETS):
        while plans[i].count:
            remove(&plans[i], plans[i].count - 1)


def plan_of(words, number=None, held=None):
    """Return the plan of a key of these words, or None. For tests, whose plans are a number; one
    that is passed is stored where there is none."""
    cdef Key key
    cdef const void* plan
    cdef long long stored
    key.count = 0
    for word in words:
        add_word(&key, word)
    plan = find_plan(&key)
    if plan != NULL:
        return (<const long long*>plan)[0]
    if number is not None:
        stored = number
        store_plan(&key, &stored, sizeof(stored), held)
    return None
