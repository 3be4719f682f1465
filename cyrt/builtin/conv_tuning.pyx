"""The fastest plan of cuDNN for a convolution: measured on request, and stored.

A choice is an entry of the disk cache, keyed by the problem, the device's name and the library's
version. The measured calls are recorded templates, as in programs, and use more memory than the
device's cache holds.
"""

import hashlib
import json
from dataclasses import asdict
from statistics import median

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin.launch cimport WHOLE, record_call
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.driver.errors import CudaError, OutOfMemoryError
from cyrt.dtypes import dtype as dtype_of
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recorder cimport attach, detach
from cyrt.graph.template cimport MOST_OPERANDS, Extent, Template, learn_apart
from cyrt.jit import cache
from cyrt.libs import cudnn
from cyrt.runtime.device cimport Device
from cyrt.runtime.event import Event
from cyrt.runtime.memory cimport Memory, fill_memory
from cyrt.runtime.stream cimport Stream

# The maximum number of plans that are measured, and the samples of each, after one that is dropped.
MOST_PLANS = 10
SAMPLES = 4
# The minimum number of calls of a sample, and of bytes of their tensors: twice a cache of 60 MB.
CALLS = 8
ROTATED = 128 << 20


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


def choose(make, int ordinal, str version):
    """Return a convolution with the fastest plan, as stored or as measured; or with the first plan,
    if there is no memory for measurements.

    Parameters
    ----------
    make : callable
        Returns a new ``cudnn.Convolution`` without a plan. A convolution holds all plans that were
        built for it. The result is another convolution than the one that holds the slower plans,
        so that these are freed.
    ordinal : int
        The device, whose context is current.
    version : str
        The library's.

    Raises
    ------
    cudnn.Unsupported
        There is no plan.
    """
    cdef Stream stream
    cdef Recorder recorder
    convolution = make()
    facts = {"kind": "convolution", "problem": asdict(convolution.problem),
             "device": Device(ordinal).name, "cudnn": version}
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    store = cache.current()
    found = store.get(key) if store else None
    if found is not None:
        try:
            convolution.build_first(str(found[0].get("plan")))
            return convolution
        except cudnn.Unsupported:       # another frontend may have other names for plans
            convolution = make()
    stream, recorder = Stream(ordinal), Recorder.__new__(Recorder)
    # Without graphs: plans of graphs, which are kept, would hold the templates of the slower plans.
    attach(recorder, stream.state, False, 0)
    try:
        times = measure(convolution, stream, recorder)
    finally:
        detach(recorder)
    name = min(times, key=times.get) if times else None
    convolution = make()
    convolution.build_first(name)
    if store and name is not None:
        store.put(key, {**facts, "plan": name, "microseconds": times[name]})
    return convolution


cdef dict measure(convolution, Stream stream, Recorder encoder):
    """Return the time of a call in µs of each plan that can be measured, by its name."""
    cdef int index
    cdef Template template
    cdef list sets = []
    cdef dict times = {}
    sizes = [nbytes(convolution.problem, name) for name in convolution.order]
    try:
        for _ in range(max(1, min(CALLS, -(-ROTATED // sum(sizes))))):
            sets.append([allocate_workspace(encoder, size) for size in sizes])
    except OutOfMemoryError:
        if not sets:
            return times
    for tensors in sets:        # numbers near 1 in most types: zeros would take less power
        for tensor in tensors:
            fill_memory(<Memory>tensor, 0x3C, stream)
    for index in range(convolution.count):
        if len(times) == MOST_PLANS:
            break
        try:
            name = convolution.build(index)
            template = learn_plan(convolution, stream, sizes)
            times[name] = sample(encoder, stream, template, sets)
        except (cudnn.Unsupported, CudaError):      # not for this device, or not in its memory
            pass
    return times


cdef Template learn_plan(convolution, Stream stream, list sizes):
    cdef Extent[MOST_OPERANDS] extents
    cdef int count = len(sizes)
    memset(extents, 0, sizeof(extents))
    extents[0].written = sizes[0]
    if convolution.workspace:
        extents[count].written, extents[count].workspace = convolution.workspace, True
        count += 1
    return learn_apart(stream.state.ordinal, convolution, extents, count, convolution.workspace)


cdef double sample(Recorder encoder, Stream stream, Template template, list sets) except -1:
    """Return the time of a call in µs, without the host's: the host is ahead of the device."""
    cdef list events = [Event(stream.device)]
    events[0].record(stream)
    for _ in range(SAMPLES + 1):
        for index in range(CALLS):
            record_on(encoder, template, sets[index % len(sets)])
        events.append(Event(stream.device))
        events[len(events) - 1].record(stream)
    events[SAMPLES + 1].synchronize()
    return median([1e3 * events[i].elapsed_time(events[i + 1]) / CALLS
                   for i in range(1, SAMPLES + 1)])


cdef int record_on(Recorder encoder, Template template, list tensors) except -1:
    """Record the call on memory of these tensors."""
    cdef Operand[MOST_OPERANDS] operands
    cdef Memory memory, workspace = None
    cdef int i
    memset(operands, 0, sizeof(operands))
    for i in range(len(tensors)):
        memory = <Memory>tensors[i]
        operands[i].buffer, operands[i].address = <PyObject*>memory, memory.address
    if template.workspace:
        workspace = allocate_workspace(encoder, template.workspace)
    return record_call(encoder, template, operands, len(tensors), 1 | WHOLE, workspace)
