# C-level functions only: see failure.pxd.
"""Failures that kernels report, such as a matrix that has no inverse."""

from sys import _getframe

from cyrt.driver.errors import LinAlgError
from cyrt.driver.frames import outside_line
from cyrt.runtime.state cimport StreamState

cdef enum:
    MOST_SITES = 1 << 16

# The functions, texts and lines of the sites, by number; and their numbers by the code and the
# instruction of the call, the function and the text.
cdef list sites = []
cdef dict numbers = {}


cdef long long site_of(str function, str text) except -1:
    frame = _getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("cyrt."):
        frame = frame.f_back
    if frame is None:
        return new_site(function, text, None, 0)
    known = numbers.get((id(frame.f_code), frame.f_lasti, function, text))
    return new_site(function, text, frame.f_code, frame.f_lasti) if known is None else known[0]


cdef long long new_site(str function, str text, code, instruction) except -1:
    """Store a site. The code object is kept, so that no other one has its id."""
    key = id(code), instruction, function, text
    known = numbers.get(key)
    if known is None:
        line = outside_line()
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
