# C-level functions only: see failure.pxd.
"""Failures that kernels report, such as a matrix that has no inverse."""

import os

from cpython.object cimport PyObject

from cyrt.driver import frames
from cyrt.driver.calling_code cimport cyrt_calling_code
from cyrt.driver.errors import LinAlgError
from cyrt.runtime.state cimport StreamState

# The package's folder: the line of a call is the first one outside it.
cdef str folder = os.path.join(os.path.dirname(os.path.dirname(frames.__file__)), "")

cdef enum:
    MOST_SITES = 1 << 16

# The functions, texts and lines of the sites, by number; and their numbers by the code and the
# instruction of the call, the function and the text.
cdef list sites = []
cdef dict numbers = {}


cdef long long site_of(str function, str text) except -1:
    cdef int instruction = 0
    cdef PyObject* code = cyrt_calling_code(<PyObject*>folder, &instruction)
    if code == NULL:
        return new_site(function, text, None, 0)
    known = numbers.get((<size_t>code, instruction, function, text))
    return new_site(function, text, <object>code, instruction) if known is None else known[0]


cdef long long new_site(str function, str text, code, instruction) except -1:
    """Store a site. The code object is kept, so that no other one has its id."""
    key = id(code), instruction, function, text
    known = numbers.get(key)
    if known is None:
        line = frames.outside_line()
        if len(sites) >= MOST_SITES:    # a program that makes code without end
            key, code, line = (None, None, function, text), None, ""
            if key in numbers:
                return numbers[key][0]
        sites.append((function, text, line))
        known = numbers[key] = len(sites) - 1, code
    return known[0]


cdef int raise_reported(StreamState* stream) except -1:
    cdef unsigned long long word = cyrt_take_failure(stream.failure)
    if word == <unsigned long long>NO_FAILURE:      # another thread has raised it
        return 0
    function, text, line = sites[word >> 32]
    where = f" (called in {line})" if line else ""
    raise LinAlgError(f"{function}: {text.format(word & 0xffffffff)}{where}")
