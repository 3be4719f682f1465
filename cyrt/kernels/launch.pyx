# C-level functions only: see launch.pxd.
"""What the launches of rows have in common."""

from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.device cimport Device

cdef int[MAX_DEVICES] multiprocessors


cdef int multiprocessors_of(int ordinal) except -1:
    """Asked for once a device."""
    if multiprocessors[ordinal] == 0:
        multiprocessors[ordinal] = Device(ordinal).multiprocessors
    return multiprocessors[ordinal]
