# The line of a user's program that calls cyrt.

from cpython.object cimport PyObject

cdef extern from *:
    """
    /* Return a new reference to the code of the first frame, outwards, whose file is not in a
       folder, and set the instruction that it executes, an offset into the code. NULL: there is no
       such frame. */
    static PyObject* cyrt_calling_code(PyObject* folder, int* offset) {
        static PyCodeObject* last = NULL;       /* the code that was found last: owned */
        PyFrameObject* frame = PyEval_GetFrame();
        Py_XINCREF(frame);
        while (frame != NULL) {
            PyCodeObject* code = PyFrame_GetCode(frame);
            PyFrameObject* back;
            if (code == last
                || PyUnicode_Tailmatch(code->co_filename, folder, 0, PY_SSIZE_T_MAX, -1) != 1) {
                *offset = PyFrame_GetLasti(frame);
                Py_DECREF(frame);
                if (code != last) {
                    Py_INCREF(code);
                    Py_XSETREF(last, code);
                }
                return (PyObject*)code;
            }
            Py_DECREF(code);
            back = PyFrame_GetBack(frame);
            Py_DECREF(frame);
            frame = back;
        }
        return NULL;
    }
    """
    PyObject* cyrt_calling_code(PyObject* folder, int* offset)
