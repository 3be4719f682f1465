"""Grid and block: read from Python, and refused with the reason."""

from cyrt.graph.recording cimport Geometry
from cyrt.runtime.device cimport Device
from cyrt.runtime.module cimport LoadedFunction

cdef extern from "Python.h":
    int PyLong_CheckExact(object)
    long PyLong_AsLongAndOverflow(object, int*) except? -1

cdef enum:
    MOST = 0xffffffff
    PORTABLE_CLUSTER = 8    # blocks (CUDA programming guide, thread block clusters)


cdef int dimension(value, str what, unsigned int* target) except -1:
    cdef int i = 0
    cdef long size
    target[0] = target[1] = target[2] = 1
    if PyLong_CheckExact(value):
        size = PyLong_AsLongAndOverflow(value, &i)
        if 0 < size <= <long>MOST:
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
    if PyLong_CheckExact(n) and n >= 0:
        return n
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


cdef int check_cluster(str name, LoadedFunction function, const Geometry* geometry,
                       const unsigned int* cluster) except -1:
    device = Device(function.module.ordinal)
    grid, sizes = triple(geometry.grid), triple(cluster)
    if device.compute_capability < (9, 0):
        raise ValueError(f"{name}: cluster {sizes}: clusters need compute capability 9.0, device "
                         f"{device.index} has {'.'.join(map(str, device.compute_capability))}")
    if any(blocks % size for blocks, size in zip(grid, sizes)):
        raise ValueError(f"{name}: the grid {grid} is no multiple of the cluster {sizes}")
    blocks = sizes[0] * sizes[1] * sizes[2]
    if blocks > PORTABLE_CLUSTER:
        raise ValueError(f"{name}: a cluster of {sizes} has {blocks:,} blocks, at most "
                         f"{<int>PORTABLE_CLUSTER} run on every device that has clusters")
    return 0


cdef int check_cooperative(str name, LoadedFunction function, const Geometry* geometry) except -1:
    device = Device(function.module.ordinal)
    grid, block = triple(geometry.grid), triple(geometry.block)
    if not device.attribute("COOPERATIVE_LAUNCH"):
        raise ValueError(f"{name}: device {device.index} has no cooperative launch")
    blocks = grid[0] * grid[1] * grid[2]
    most = device.multiprocessors * function.blocks_per_multiprocessor(
        block[0] * block[1] * block[2], geometry.smem)
    if blocks > most:
        raise ValueError(f"{name}: a cooperative grid of {grid} has {blocks:,} blocks, and "
                         f"{most:,} of block {block} run at once on device {device.index}")
    return 0
