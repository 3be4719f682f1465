# Objects that the garbage collector could track but does not track unless it is asked to.
#
# INVARIANTS
# - A new object reuses the memory of a dead object of the same size: creating and dropping an
#   object costs no more than if its class had no garbage collection.
# - Such a class is no heap type: its instances hold no reference to it.
# - Python subclasses use Python's allocator, and the collector tracks their instances.
# - Where Python is built without the GIL, an object's header has fields that only Python knows, and
#   the collector finds objects by their memory: all of them come from Python's allocator there.

from cpython.object cimport PyObject, PyTypeObject

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define cyrt_allocate(type, size) PyObject_GC_New(PyObject, type)
    #define cyrt_free_untracked PyObject_GC_Del
    #else
    #define CYRT_SIZES 32               /* objects of fewer words are kept */
    #define CYRT_PLACES 256             /* the most objects that are kept of a size */
    /* The first word after the header of a free object points to the next free object. */
    static struct { PyObject* first; int count; } cyrt_places[CYRT_SIZES];

    /* Return a new object of such a class, the fields of which have no values yet. */
    static inline PyObject* cyrt_allocate(PyTypeObject* type, size_t size) {
        size_t words = size / sizeof(void*);
        PyObject* self = words < CYRT_SIZES ? cyrt_places[words].first : NULL;
        if (self == NULL) return PyObject_GC_New(PyObject, type);
        cyrt_places[words].first = *(PyObject**)(self + 1);
        --cyrt_places[words].count;
        Py_SET_REFCNT(self, 1);
        Py_SET_TYPE(self, type);
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
    #endif

    static PyObject* cyrt_new_untracked(PyTypeObject* type, Py_ssize_t items) {
        PyObject* self = cyrt_allocate(type, type->tp_basicsize);
        if (self != NULL) memset(self + 1, 0, type->tp_basicsize - sizeof(PyObject));
        return self;
    }

    static void cyrt_bear_untracked(PyTypeObject* type) {
        type->tp_alloc = cyrt_new_untracked;
        type->tp_free = cyrt_free_untracked;
    }
    """
    # Set the allocator of a class, and of the classes that are derived from it later.
    void cyrt_bear_untracked(PyTypeObject* type)
    # Return a new object, of `size` bytes, of a class that this module has passed to that function.
    object cyrt_allocate(PyTypeObject* type, size_t size)

cdef extern from "Python.h":
    bint PyObject_GC_IsTracked(object)
