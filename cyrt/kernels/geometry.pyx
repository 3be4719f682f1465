"""Grid and block: parsed from Python values, and rejected with the reason."""

from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject

from cyrt.error_text import show
from cyrt.graph.recording cimport Geometry
from cyrt.runtime.device cimport Device
from cyrt.runtime.integers cimport as_int, read_long
from cyrt.runtime.module cimport Limits, LoadedFunction

cdef enum:
    MOST = 0xffffffff
    PORTABLE_CLUSTER = 8    # blocks (CUDA programming guide, thread block clusters)

# The limits of every device that CUDA 12 supports (CUDA programming guide, compute capabilities).
# A launch checks the limits of its device; these are only for messages.
cdef dict RANGES = {
    "grid": " to 2,147,483,647 (x) or 65,535 (y and z)",
    "block": " to 1,024 (x and y) or 64 (z)",
    "cluster": f" to {<int>PORTABLE_CLUSTER}",
}


cdef bint dimension(value, str what, unsigned int* target) except -1:
    cdef bint constant = True
    cdef int i = 0
    cdef long size
    cdef object whole
    target[0] = target[1] = target[2] = 1
    if PyLong_CheckExact(value) and read_long(<PyObject*>value, &size) \
            and 0 < size <= <long>MOST:
        target[0] = <unsigned int>size
        return True
    whole = value
    if not isinstance(value, tuple):
        constant = False
        value = tuple(value) if isinstance(value, list) else (value,)
    if not 1 <= len(<tuple>value) <= 3:
        raise ValueError(f"{what}: expected an int or a tuple of one to three ints, got "
                         f"{show(whole)}")
    for item in <tuple>value:
        number = as_int(item)
        if number is None:
            raise TypeError(f"{what}: expected an int or a tuple of one to three ints, got "
                            f"{show(whole)}")
        if not 1 <= number < 1 << 32:
            raise ValueError(f"{what}: expected numbers from 1{RANGES[what]}, got {show(whole)}")
        target[i] = number
        constant = constant and PyLong_CheckExact(item)
        i += 1
    return constant


cdef tuple triple(const unsigned int* sizes):
    return sizes[0], sizes[1], sizes[2]


cdef int refuse_geometry(str name, LoadedFunction function,
                         const Geometry* geometry) except -1:
    cdef const Limits* limits = function.limits
    grid, block = triple(geometry.grid), triple(geometry.block)
    threads = block[0] * block[1] * block[2]
    if threads > function.max_threads:
        check_required(name, function, geometry)
        why = (f"its {function.registers} registers a thread, or its launch bounds, allow"
               if function.max_threads < <int>limits.threads else "the device allows")
        raise ValueError(f"{name}: a block of {block} has {threads:,} threads, {why} "
                         f"{function.max_threads:,}")
    for what, sizes, most in (("grid", grid, triple(limits.grid)),
                              ("block", block, triple(limits.block))):
        for axis, size, limit in zip("xyz", sizes, most):
            if size > limit:
                raise ValueError(f"{name}: {what} {sizes}: {axis} is at most {limit:,} on device "
                                 f"{function.module.ordinal}")
    return 0


cdef int check_required(str name, LoadedFunction function, const Geometry* geometry) except -1:
    block, compiled = triple(geometry.block), triple(function.block)
    if compiled[0] and block != compiled:
        raise ValueError(f"{name}: block {block}: the kernel is compiled for blocks of {compiled} "
                         "(__block_size__ in CUDA C++, .reqntid in PTX)")
    return divide_grid(name, function, geometry, function.cluster)


cdef int divide_grid(str name, LoadedFunction function, const Geometry* geometry,
                     const unsigned int* cluster) except -1:
    """Raise ValueError if the grid cannot be divided into such clusters."""
    cdef int i
    if function.counts_clusters:
        return 0
    for i in range(3):
        if cluster[i] > 1 and geometry.grid[i] % cluster[i]:
            raise ValueError(f"{name}: the grid {triple(geometry.grid)} is not a multiple of the "
                             f"cluster {triple(cluster)}")
    return 0


cdef unsigned int dynamic_smem(value) except? 0xffffffff:
    cdef long size
    if PyLong_CheckExact(value) and read_long(<PyObject*>value, &size) \
            and 0 <= size <= 0x7fffffff:
        return <unsigned int>size
    number = as_int(value)
    if number is None:
        advice = "; work goes to the stream of `with stream:`" \
            if hasattr(value, "__cuda_stream__") else ""
        raise TypeError(f"smem: expected a number of bytes, got {show(value)}{advice}")
    if not 0 <= number < 1 << 31:
        raise ValueError(f"smem: expected a number of bytes of 0 or more, got {value}")
    return number


cdef object element_count(str name, n):
    if PyLong_CheckExact(n) and n >= 0:
        return n
    if getattr(n, "ndim", 0):
        raise TypeError(f"{name}: n: expected a number of elements, before the kernel's arguments, "
                        f"got {show(n)}")
    number = as_int(n)
    if number is None:
        raise TypeError(f"{name}: n: expected a number of elements, got {show(n)}")
    if number < 0:
        raise ValueError(f"{name}: n: expected a number of elements of 0 or more, got {n}")
    return number


cdef tuple cover_grid(str name, n, block):
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
    sizes, compiled = triple(cluster), triple(function.cluster)
    blocks = sizes[0] * sizes[1] * sizes[2]
    # A cluster of one block only requires that the device knows the launch attribute.
    if not function.limits.clusters and (
            blocks > 1 or Device(function.module.ordinal).compute_capability < (9, 0)):
        raise ValueError(f"{name}: cluster {sizes}: device {function.module.ordinal} has no "
                         "clusters (its CLUSTER_LAUNCH is 0)")
    if compiled[0] and sizes != compiled:
        raise ValueError(f"{name}: cluster {sizes}: the kernel is compiled for {compiled}")
    if blocks > PORTABLE_CLUSTER:
        raise ValueError(f"{name}: a cluster of {sizes} has {blocks:,} blocks, at most "
                         f"{<int>PORTABLE_CLUSTER} run on every device that has clusters")
    return divide_grid(name, function, geometry, cluster)


cdef int check_cooperative(str name, LoadedFunction function, const Geometry* geometry,
                           dict resident) except -1:
    cdef int ordinal = function.module.ordinal
    cdef tuple key
    grid, block = triple(geometry.grid), triple(geometry.block)
    if not function.limits.cooperative:
        raise ValueError(f"{name}: device {ordinal} has no cooperative launch")
    blocks = grid[0] * grid[1] * grid[2]
    if function.counts_clusters:
        blocks *= function.cluster[0] * function.cluster[1] * function.cluster[2]
    threads = block[0] * block[1] * block[2]
    key = (ordinal, threads, geometry.smem)
    if key not in resident:
        resident[key] = function.limits.multiprocessors * function.blocks_per_multiprocessor(
            threads, geometry.smem)
    most = resident[key]
    if blocks > most:
        raise ValueError(f"{name}: a cooperative grid of {grid} has {blocks:,} blocks, and "
                         f"{most:,} of block {block} run at once on device {ordinal}")
    return 0
