# Objects that the garbage collector may track and does not, unless it is told to.
#
# INVARIANTS
# - The place of a dead object serves the next one of its size: making and dropping one costs no
#   more than if the collector did not know of its class.
# - Python's subclasses have an allocator of their own; the collector tracks their instances.

from cpython.object cimport PyTypeObject

cdef extern from *:
    """
    #define CYRT_SIZES 32               /* sizes in words, up to here */
    #define CYRT_PLACES 256             /* of a size, at most */
    /* A free place's first word after the head is the next one. */
    static struct { PyObject* first; int count; } cyrt_places[CYRT_SIZES];

    static PyObject* cyrt_new_untracked(PyTypeObject* type, Py_ssize_t items) {
        size_t size = type->tp_basicsize, words = size / sizeof(void*);
        PyObject* self = words < CYRT_SIZES ? cyrt_places[words].first : NULL;
        if (self != NULL) {
            cyrt_places[words].first = *(PyObject**)(self + 1);
            --cyrt_places[words].count;
            PyObject_Init(self, type);
        } else {
            self = PyObject_GC_New(PyObject, type);
            if (self == NULL) return NULL;
        }
        memset(self + 1, 0, size - sizeof(PyObject));
        return self;
    }

    static void cyrt_free_untracked(void* object) {
        PyObject* self = object;
        size_t words = Py_TYPE(self)->tp_basicsize / sizeof(void*);
        if (words < CYRT_SIZES && cyrt_places[words].count < CYRT_PLACES) {
            *(PyObject**)(self + 1) = cyrt_places[words].first;
            cyrt_places[words].first = self;
            ++cyrt_places[words].count;
        } else {
            PyObject_GC_Del(self);
        }
    }

    static void cyrt_bear_untracked(PyTypeObject* type) {
        type->tp_alloc = cyrt_new_untracked;
        type->tp_free = cyrt_free_untracked;
    }
    """
    # For a class, and those that modules loaded later derive from it.
    void cyrt_bear_untracked(PyTypeObject* type)

cdef extern from "Python.h":
    bint PyObject_GC_IsTracked(object)
