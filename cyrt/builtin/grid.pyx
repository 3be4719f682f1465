# C-level functions only: see grid.pxd.
"""Geometry functions of all families' launches."""

from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.device cimport Device

cdef int[MAX_DEVICES] multiprocessors


cdef int multiprocessors_of(int ordinal) except -1:
    """Return the device's number of multiprocessors; it is queried once per device."""
    if multiprocessors[ordinal] == 0:
        multiprocessors[ordinal] = Device(ordinal).multiprocessors
    return multiprocessors[ordinal]
