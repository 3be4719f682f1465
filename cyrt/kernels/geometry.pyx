"""Grid and block: read from Python, and refused with the reason."""

from cyrt.graph.recording cimport Geometry
from cyrt.runtime.device cimport Device
from cyrt.runtime.module cimport LoadedFunction

cdef extern from "Python.h":
    int PyLong_CheckExact(object)
    long PyLong_AsLongAndOverflow(object, int*) except? -1


cdef int dimension(value, str what, unsigned int* target) except -1:
    cdef int i = 0
    cdef long size
    target[0] = target[1] = target[2] = 1
    if PyLong_CheckExact(value):
        size = PyLong_AsLongAndOverflow(value, &i)
        if 1 <= size < 1 << 32:
            target[0] = <unsigned int>size
            return 0
    i = 0
    if not isinstance(value, tuple):
        value = tuple(value) if isinstance(value, list) else (value,)
    if not 1 <= len(<tuple>value) <= 3:
        raise ValueError(f"{what}: expected an int or a tuple of one to three, got {value!r}")
    for item in <tuple>value:
        if isinstance(item, bool) or not hasattr(item, "__index__"):
            raise TypeError(f"{what}: expected an int or a tuple of one to three, got {value!r}")
        number = item.__index__()
        if not 1 <= number < 1 << 32:
            raise ValueError(f"{what}: expected numbers from 1 to {(1 << 32) - 1:,}, got {value!r}")
        target[i] = number
        i += 1
    return 0


cdef tuple triple(const unsigned int* sizes):
    return sizes[0], sizes[1], sizes[2]


cdef int refuse_geometry(str name, LoadedFunction function,
                         const Geometry* geometry) except -1:
    device = Device(function.module.ordinal)
    grid, block = triple(geometry.grid), triple(geometry.block)
    threads = block[0] * block[1] * block[2]
    if threads > function.max_threads:
        why = (f"its {function.registers} registers a thread, or its launch bounds, allow"
               if function.max_threads < device.attribute("MAX_THREADS_PER_BLOCK")
               else "the device allows")
        raise ValueError(f"{name}: a block of {block} has {threads:,} threads, {why} "
                         f"{function.max_threads:,}")
    for what, sizes in (("grid", grid), ("block", block)):
        for axis, size in zip("XYZ", sizes):
            most = device.attribute(f"MAX_{what.upper()}_DIM_{axis}")
            if size > most:
                raise ValueError(f"{name}: {what} {sizes}: {axis.lower()} is at most "
                                 f"{most:,} on device {device.index}")
    return 0


cdef unsigned int dynamic_smem(value) except? 0xffffffff:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"smem: expected a number of bytes, got {value!r}")
    if not 0 <= value.__index__() < 1 << 31:
        raise ValueError(f"smem: expected a number of bytes of 0 or more, got {value}")
    return value


cdef object element_count(str name, n):
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"{name}: n: expected a number of elements, got {n!r}")
    if n.__index__() < 0:
        raise ValueError(f"{name}: n: expected a number of elements of 0 or more, got {n}")
    return n.__index__()


cdef tuple cover(str name, n, block):
    grid = -(-n // block)
    if grid >= 1 << 31:
        raise ValueError(f"{name}: n: {n:,} elements are {grid:,} blocks of {block} threads, and a "
                         f"grid has at most {(1 << 31) - 1:,}; launch them in parts")
    return grid, block


cdef object spread(block, n, int ordinal):
    multiprocessors = Device(ordinal).multiprocessors
    while block >= 128 and n <= block // 2 * multiprocessors:
        block = block // 64 * 32
    return block
