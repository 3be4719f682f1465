"""The fastest plan of cuDNN for a convolution: measured on request, and stored.

A choice is an entry of the disk cache, keyed by the problem, the device's name and the library's
version.
"""

import hashlib
import json
from dataclasses import asdict
from statistics import median

from cyrt.driver.cuda cimport *
from cyrt.driver.errors import OutOfMemoryError
from cyrt.driver.table cimport check, cu
from cyrt.dtypes import dtype as dtype_of
from cyrt.graph.capture cimport capture_child
from cyrt.graph.child cimport ChildGraph
from cyrt.jit import cache
from cyrt.libs import cudnn
from cyrt.runtime.device cimport Device
from cyrt.runtime.event import Event
from cyrt.runtime.stream cimport Stream

MOST_PLANS = 10         # that are measured
SAMPLES = 5
REPEATS = 10            # calls of a sample, in one graph
ALIGNMENT = 512         # of the memory for each tensor


def nbytes(problem, int name):
    """Return the bytes from the first to the last element of a tensor, or of the bias."""
    itemsize = dtype_of(problem.dtype).itemsize
    if name == cudnn.BIAS:
        channels = problem.tensors[cudnn.COMPUTED[problem.kind]].shape[1]
        return ((channels - 1) * problem.bias + 1) * itemsize
    tensor = problem.tensors[name]
    last = sum((size - 1) * step
               for size, step in zip(tensor.shape, tensor.strides, strict=True))
    return (last + 1) * itemsize


def choose(convolution, int ordinal, str version):
    """Build the fastest plan, as remembered or as measured on memory of its own; without memory to
    measure in, the first one.

    Parameters
    ----------
    convolution : cudnn.Convolution
    ordinal : int
        The device, whose context is current.
    version : str
        The library's.

    Raises
    ------
    cudnn.Unsupported
        There is no plan.
    """
    cdef CUdeviceptr memory = 0
    cdef list addresses = []
    cdef size_t total = 0
    facts = {"kind": "convolution", "problem": asdict(convolution.problem),
             "device": Device(ordinal).name, "cudnn": version}
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    store = cache.current()
    found = store.get(key) if store else None
    if found is not None:
        try:
            return convolution.build_first(found[0]["plan"])
        except cudnn.Unsupported:
            pass                        # another frontend may name plans otherwise
    for name in convolution.order:
        addresses.append(total)
        total += -(-nbytes(convolution.problem, name) // ALIGNMENT) * ALIGNMENT
    try:
        check(cu.cuMemAlloc(&memory, total), b"cuMemAlloc", ordinal)
    except OutOfMemoryError:
        return convolution.build_first()
    try:
        times = measure(convolution, Stream(ordinal), tuple([memory + each for each in addresses]))
    finally:
        cu.cuMemFree(memory)
    if not times:
        return convolution.build_first()
    fastest = min(times, key=times.get)
    name = convolution.build(fastest)
    if store:
        store.put(key, {**facts, "plan": name, "microseconds": times[fastest]})


cdef dict measure(convolution, Stream stream, tuple addresses):
    """Return the time of a call in µs of each plan that can be measured, by its index."""
    cdef dict times = {}
    cdef CUdeviceptr workspace
    cdef int index
    for index in range(convolution.count):
        if len(times) == MOST_PLANS:
            break
        if convolution.build(index) is None:
            continue
        workspace = 0
        try:
            if convolution.workspace:
                check(cu.cuMemAlloc(&workspace, convolution.workspace), b"cuMemAlloc",
                      stream.state.ordinal)
            times[index] = sample(convolution, stream, (*addresses, workspace))
        except OutOfMemoryError:
            continue
        finally:
            if workspace:
                cu.cuMemFree(workspace)
    return times


cdef double sample(convolution, Stream stream, tuple addresses) except -1:
    """Return the µs of a call, from graphs of several, so that the host takes no part in it."""
    cdef ChildGraph calls
    cdef CUgraphExec executable = NULL
    cdef list times = []

    def repeat(handle, where):
        for _ in range(REPEATS):
            convolution(handle, where)

    calls = capture_child(stream, repeat, addresses)
    check(cu.cuGraphInstantiateWithFlags(&executable, calls.graph, 0),
          b"cuGraphInstantiateWithFlags", stream.state.ordinal)
    try:
        for _ in range(SAMPLES + 1):
            begin, end = Event(stream.device), Event(stream.device)
            begin.record(stream)
            check(cu.cuGraphLaunch(executable, stream.state.handle), b"cuGraphLaunch",
                  stream.state.ordinal)
            end.record(stream)
            end.synchronize()
            times.append(1e3 * begin.elapsed_time(end) / REPEATS)
    finally:
        cu.cuGraphExecDestroy(executable)
    return median(times[1:])
