"""Captures of other libraries' calls, and comparisons of what they contain."""

import gc
import struct

from libc.string cimport memcmp, memcpy, memset

from cyrt.driver.capture_mode cimport relax, restore
from cyrt.driver.cuda cimport *
from cyrt.driver.errors import CudaError
from cyrt.driver.table cimport check, cu
from cyrt.graph.child cimport (
    attributes_of, begin_capture, copy_graph, describe_edges, discard_capture, take_graph,
)
from cyrt.graph.seam cimport builtin
from cyrt.libs.library import capturing
from cyrt.runtime.device cimport enter, leave_quietly
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport StreamState

cdef extern from *:
    """
    #include <string.h>
    /* Leave known bytes in the stack below the caller, where the call's frames are going to be:
       what they do not initialise then differs between two captures. */
    #if defined(__GNUC__)
    __attribute__((noinline))
    #endif
    static void cyrt_scribble(int byte) {
        volatile unsigned long long stack[4096];
        for (int i = 0; i < 4096; ++i) stack[i] = 0x0101010101010101ull * (unsigned char)byte;
    }
    """
    void cyrt_scribble(int byte) noexcept

cdef enum:
    MOST_NODES = 64             # the maximum number of nodes of a captured call
    ATTEMPTS = 3
    LEAST_ADDRESS = 1 << 12     # no memory is below it,
    ADDRESS_BITS = 57           # or needs more bits
    # Two small numbers in one word look like the address of memory if a framework has reserved low
    # addresses for all memory of the device, as XLA does (0x302000000 and 112 GB behind it). Halves
    # below these limits are numbers. An allocation could begin there only at a multiple of 4 GiB.
    SMALL_LOW = 1 << 21         # bytes that the driver maps at once
    SMALL_HIGH = 1 << 12        # 16 TiB; what the driver places itself is above it

cdef char[8] NO_PADDING = [0, 0, 0, 0, 0, 0, 0, 0]
# A word this far from its operand may be a part of an address.
cdef long long FAR = <long long>1 << 31


class Opaque(Exception):
    """The captures do not explain each other.

    Attributes
    ----------
    undeclared : bool
        The call uses memory that is no operand.
    """

    def __init__(self, message, undeclared=False):
        super().__init__(message)
        self.undeclared = undeclared


cdef class CapturedKernel:
    cdef tuple identity(self):
        """Return what is compared between the captures of a call, in addition to the parameters. A
        launch's attributes, which the driver is slow to return, follow from the rest."""
        return (<size_t>self.function, <size_t>self.kernel, <size_t>self.context, self.packed,
                (<char*>&self.geometry)[:sizeof(Geometry)], len(self.params), self.offsets,
                self.sources)


def _do_nothing():
    pass


# -- capturing -------------------------------------------------------------------------------------


cdef CUgraph capture(Stream stream, object call, tuple addresses, int seed) except NULL:
    """Return the graph of the call, which the caller destroys."""
    cdef StreamState* state = stream.live()
    cdef CUstreamCaptureMode before
    cdef CUgraph graph
    cdef int attempt, entered
    prepare = getattr(call, "prepare", _do_nothing)
    # A finalizer or a signal handler may call the driver meanwhile, which may end the capture as
    # invalid: the call is then captured again.
    for attempt in range(ATTEMPTS):
        entered = enter(state.ordinal, state.epoch, b"cuStreamBeginCapture")
        try:
            before = relax()
            try:
                prepare()
            finally:
                restore(before)
            with capturing:
                graph = capture_once(state, call, addresses, seed, attempt == ATTEMPTS - 1)
        finally:
            leave_quietly(entered)
        if graph != NULL:
            return graph


cdef CUgraph capture_once(StreamState* state, object call, tuple addresses, int seed,
                          bint last) except? NULL:
    """Return the graph of the call, or NULL if the capture became invalid and is not the last."""
    cdef bint collecting = gc.isenabled()
    gc.disable()
    try:
        begin_capture(state, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        try:
            cyrt_scribble(37 * (seed + 1))
            call(<size_t>state.handle, addresses)
        except BaseException as error:
            if discard_capture(state) != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED or last \
                    or not isinstance(error, Exception):
                raise
            return NULL
        try:
            return take_graph(state)
        except CudaError as error:
            if error.code != <int>CUDA_ERROR_STREAM_CAPTURE_INVALIDATED or last:
                raise
            return NULL
    finally:
        if collecting:
            gc.enable()


cdef ChildGraph capture_child(Stream stream, object call, tuple addresses):
    cdef StreamState* state = stream.live()
    cdef CUgraph graph = capture(stream, call, addresses, 0)
    try:
        return copy_graph(state.ordinal, state.epoch, graph)
    finally:
        cu.cuGraphDestroy(graph)


cdef list capture_kernels(Stream stream, object call, tuple addresses, int seed, dict functions):
    cdef StreamState* state = stream.live()
    cdef CUgraph graph = capture(stream, call, addresses, seed)
    cdef CUgraphNode[MOST_NODES] nodes
    cdef CUgraphNodeType kind
    cdef size_t i, count = MOST_NODES
    cdef list found = [], spans = []
    cdef dict numbers = {}
    cdef int entered = enter(state.ordinal, state.epoch, b"cuGraphGetNodes")
    try:
        check(cu.cuGraphGetNodes(graph, NULL, &count), b"cuGraphGetNodes")
        if count > MOST_NODES:
            raise Opaque(f"the call has {count} nodes")
        check(cu.cuGraphGetNodes(graph, nodes, &count), b"cuGraphGetNodes")
        for i in range(count):
            numbers[<size_t>nodes[i]] = i
            first = len(found)
            check(cu.cuGraphNodeGetType(nodes[i], &kind), b"cuGraphNodeGetType")
            if kind == CU_GRAPH_NODE_TYPE_KERNEL:
                found.append(read_kernel(nodes[i], seed == 0, functions))
            elif kind == CU_GRAPH_NODE_TYPE_MEMSET:
                found.extend(read_memset(nodes[i], state.ordinal))
            else:
                raise Opaque(f"the call has a node of type {<int>kind}, neither kernel nor memset")
            spans.append(range(first, len(found)))
        set_sources(graph, numbers, spans, found)
        return found
    finally:
        cu.cuGraphDestroy(graph)
        leave_quietly(entered)


cdef int set_sources(CUgraph graph, dict numbers, list spans, list found) except -1:
    """Set the kernels for which each kernel waits. The kernels of one node run in order; if the
    driver does not return the edges of nodes, all kernels run in order."""
    cdef CapturedKernel kernel
    cdef list edges = [], ends = [], waits = [[] for _ in spans]
    cdef set sources
    check(describe_edges(graph, numbers, edges), b"cuGraphGetEdges")
    found_edges = edges[0] if edges else [(i, i + 1) for i in range(len(spans) - 1)]
    for source, target, *_ in found_edges:
        if source >= target:
            raise Opaque("the call's nodes are not in order")
        waits[target].append(source)
    for span, before in zip(spans, waits, strict=True):
        sources = set()
        for source in before:
            sources |= ends[source]
        for index in span:
            kernel = found[index]
            kernel.sources = tuple(sorted(sources))
            sources = {index}
        ends.append(sources)
    return 0


cdef CapturedKernel read_kernel(CUgraphNode node, bint whole, dict functions):
    """Return the kernel of a node; if `whole`, with its attributes.

    The properties of a function that are the same in every launch, the layout of its parameters and
    the default attributes, are read once, and kept in `functions`.
    """
    cdef CapturedKernel found = CapturedKernel.__new__(CapturedKernel)
    cdef CUDA_KERNEL_NODE_PARAMS_v2 params
    memset(&params, 0, sizeof(params))
    check(cu.cuGraphKernelNodeGetParams(node, &params), b"cuGraphKernelNodeGetParams")
    found.function, found.kernel, found.context = params.func, params.kern, params.ctx
    if found.function != NULL:
        found.kernel, found.context = NULL, NULL        # the driver ignores them
    found.geometry.grid[:] = [params.gridDimX, params.gridDimY, params.gridDimZ]
    found.geometry.block[:] = [params.blockDimX, params.blockDimY, params.blockDimZ]
    found.geometry.smem = params.sharedMemBytes
    found.name = name_of(found)
    found.packed = params.extra != NULL and params.kernelParams == NULL
    found.offsets = []
    if found.packed:
        found.params = packed_params(params.extra)
    else:
        found.params = separate_params(found, params.kernelParams, functions)
    if whole:
        found.attributes = own_attributes(found, attributes_of(node), &params, functions)
    return found


cdef str name_of(CapturedKernel kernel):
    cdef const char* text = NULL
    cdef CUresult result = CUDA_ERROR_UNKNOWN
    with nogil:
        if kernel.function != NULL and cu.cuFuncGetName != NULL:
            result = cu.cuFuncGetName(&text, kernel.function)
        elif kernel.function == NULL and cu.cuKernelGetName != NULL:
            result = cu.cuKernelGetName(&text, kernel.kernel)
    return text.decode() if result == CUDA_SUCCESS and text != NULL else "kernel of a library"


cdef bytes packed_params(void** extra):
    """Return the buffer of `extra`, a list of pairs of a name and a value."""
    cdef const char* buffer = NULL
    cdef size_t size = 0
    while extra[0] != CU_LAUNCH_PARAM_END:
        if extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER:
            buffer = <const char*>extra[1]
        elif extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE:
            size = (<size_t*>extra[1])[0]
        else:
            raise Opaque(f"a launch has the unknown extra {<size_t>extra[0]}")
        extra += 2
    return buffer[:size]


cdef bytes separate_params(CapturedKernel kernel, void** values, dict functions):
    """Return the parameters packed, and set their offsets."""
    cdef size_t index, offset, size, end = 0
    cdef bytearray packed = bytearray()
    key = "layout", <size_t>kernel.function, <size_t>kernel.kernel
    layout = functions.get(key)
    if layout is None:
        layout = functions[key] = layout_of(kernel)
    for index, (offset, size) in enumerate(layout):
        end = max(end, offset + size)
        packed.extend(bytes(end - len(packed)))
        packed[offset:offset + size] = (<const char*>values[index])[:size]
        kernel.offsets.append(offset)
    return bytes(packed)


cdef list layout_of(CapturedKernel kernel):
    """Return the offset and the size of each parameter."""
    cdef size_t index = 0, offset = 0, size = 0
    cdef CUresult result
    cdef list found = []
    while True:
        with nogil:
            if kernel.function != NULL:
                result = CUDA_ERROR_NOT_SUPPORTED if cu.cuFuncGetParamInfo == NULL \
                    else cu.cuFuncGetParamInfo(kernel.function, index, &offset, &size)
            else:
                result = CUDA_ERROR_NOT_SUPPORTED if cu.cuKernelGetParamInfo == NULL \
                    else cu.cuKernelGetParamInfo(kernel.kernel, index, &offset, &size)
        if result == CUDA_ERROR_INVALID_VALUE:          # after the last parameter
            return found
        if result != CUDA_SUCCESS:
            raise Opaque(f"{kernel.name}: the driver does not tell its parameters")
        found.append((offset, size))
        index += 1


cdef list own_attributes(CapturedKernel kernel, list attributes,
                         const CUDA_KERNEL_NODE_PARAMS_v2* params, dict functions):
    """Return those attributes of a node that another node of the same launch does not have."""
    key = "attributes", <size_t>kernel.function, <size_t>kernel.kernel
    defaults = functions.get(key)
    if defaults is None:
        defaults = functions[key] = default_attributes(params)
    return [None if own == default else own
            for own, default in zip(attributes, defaults, strict=True)]


cdef list default_attributes(const CUDA_KERNEL_NODE_PARAMS_v2* params):
    """Return the attributes of a node for which none was set."""
    cdef CUgraph graph = NULL
    cdef CUgraphNode node
    cdef CUresult result
    with nogil:
        result = cu.cuGraphCreate(&graph, 0)
        if result == CUDA_SUCCESS:
            result = cu.cuGraphAddKernelNode(&node, graph, NULL, 0, params)
    try:
        if result != CUDA_SUCCESS:
            raise Opaque("a kernel cannot be added without its attributes")
        return attributes_of(node)
    finally:
        if graph != NULL:
            cu.cuGraphDestroy(graph)


cdef list read_memset(CUgraphNode node, int ordinal):
    """Return the launches of cyrt's own kernels that fill the memory, since memset nodes among
    kernels make a graph's launch slow."""
    cdef CUDA_MEMSET_NODE_PARAMS_v1 fill
    cdef CapturedKernel kernel
    cdef LoadedFunction function
    cdef list found = []
    check(cu.cuGraphMemsetNodeGetParams(node, &fill), b"cuGraphMemsetNodeGetParams")
    if fill.height > 1 and fill.pitch != fill.width * fill.elementSize:
        raise Opaque("a memset of rows with gaps")
    for function, grid, block, smem, params in builtin.fill_launches(
            ordinal, fill.dst, fill.width * max(fill.height, <size_t>1), fill.value,
            fill.elementSize):
        kernel = CapturedKernel.__new__(CapturedKernel)
        kernel.function, kernel.owner, kernel.name = function.handle, function, function.name
        kernel.geometry.grid[:] = grid
        kernel.geometry.block[:] = block
        kernel.geometry.smem = smem
        kernel.params, kernel.offsets = params, [0]
        kernel.attributes = []
        found.append(kernel)
    return found


# -- comparing -------------------------------------------------------------------------------------


def compare(one, other):
    """Raise Opaque unless two captures have the same kernels, whatever their parameters are."""
    if len(one) != len(other):
        raise Opaque(f"{len(one)} kernels in one capture, {len(other)} in another")
    for first, second in zip(one, other, strict=True):
        if (<CapturedKernel>first).identity() != (<CapturedKernel>second).identity():
            raise Opaque(f"{first.name}: its launches differ between captures")


def explain(found, masks, addresses):
    """Return, for each kernel, the words of its parameters that are addresses of operands.

    Parameters
    ----------
    found : sequence
        The kernels of each of three captures.
    masks : sequence of bytes
        For each kernel, which bytes of its parameters are padding.
    addresses : sequence of tuple
        The operands' addresses in each capture.

    Returns
    -------
    list of list
        For each kernel its words: their offset, bytes, operand and constant.

    Raises
    ------
    Opaque
        Other bytes differ.
    """
    for other in found[1:]:
        compare(found[0], other)
    return [explain_kernel(same, mask, addresses)
            for mask, same in zip(masks, zip(*found, strict=True), strict=True)]


cdef list explain_kernel(tuple same, bytes mask, addresses):
    cdef list words = []
    cdef bytes first = same[0].params, second = same[1].params, third = same[2].params
    cdef const char* one = first
    cdef const char* two = second
    cdef const char* three = third
    cdef const char* padding = mask
    cdef Py_ssize_t start, size, i
    cdef list halves = []
    for start in range(0, len(first), 8):
        size = min(<Py_ssize_t>8, len(first) - start)
        if memcmp(one + start, two + start, size) == 0 \
                and memcmp(one + start, three + start, size) == 0:
            continue
        if memcmp(padding + start, NO_PADDING, size) == 0:
            values = [each[start:start + size] for each in (first, second, third)]
            found = explain_word(values, addresses)
            if found is None:
                halves.append((start, values))
            else:
                words.append((start, 8, *found))
            continue
        for i in range(start, start + size):
            if not padding[i] and (one[i] != two[i] or one[i] != three[i]):
                raise Opaque(f"{same[0].name}: the parameters' bytes {start} to {start + size} "
                             "differ")
    for start, values in halves:
        found = explain_halves(start, values, words, addresses)
        if not found:
            raise Opaque(f"{same[0].name}: the parameters' word at {start} differs, and is no "
                         "operand's address")
        words = words + found
    return words


cdef tuple explain_word(list values, addresses):
    """Return the operand whose address it is, and the constant, from the first two captures; None
    if there is not one."""
    cdef unsigned long long first, second, one, two
    cdef long long addend
    cdef list matches = []
    if len(values[0]) == 8:
        memcpy(&first, <const char*>values[0], sizeof(first))
        memcpy(&second, <const char*>values[1], sizeof(second))
        for operand in range(len(addresses[0])):
            one, two = addresses[0][operand], addresses[1][operand]
            addend = <long long>(first - one)
            if first - one == second - two and -FAR < addend < FAR:
                matches.append((operand, addend))
    return matches[0] if len(matches) == 1 else None


cdef list explain_halves(Py_ssize_t start, list values, list words, addresses):
    """Return the words of four bytes that explain a word of eight: each half that differs is the
    lower half of an address that is another word of the kernel. None if one is not."""
    cdef list found = []
    cdef Py_ssize_t begin
    for begin in range(0, len(values[0]), 4):
        halves = [value[begin:begin + 4] for value in values]
        if halves[0] == halves[1] == halves[2]:
            continue
        for _, nbytes, operand, addend in words:
            wanted = [struct.pack("<I", where[operand] + addend & 0xFFFF_FFFF)
                      for where in addresses]
            if nbytes == 8 and halves == wanted:
                found.append((start + begin, 4, operand, addend))
                break
        else:
            return None
    return found


cdef inline bint are_small_numbers(unsigned long long word) noexcept:
    return (word & 0xFFFF_FFFF) < SMALL_LOW and word >> 32 < SMALL_HIGH


def check_memory(kernel, bytes mask, words, set harmless):
    """Raise Opaque if another word of the parameters is the address of device memory. Words that
    are not are added to the set. A word in which a parameter begins is no address."""
    cdef unsigned long long value
    cdef unsigned int kind
    cdef bytes params = (<CapturedKernel>kernel).params
    cdef const char* padding = mask
    cdef Py_ssize_t start
    cdef set known = {word[0] for word in words}
    known.update([offset & ~7 for offset in (<CapturedKernel>kernel).offsets if offset & 7])
    for start in range(0, len(params) - 7, 8):
        memcpy(&value, <const char*>params + start, sizeof(value))
        if value < LEAST_ADDRESS or value >> ADDRESS_BITS or are_small_numbers(value) \
                or memcmp(padding + start, NO_PADDING, 8) != 0:
            continue
        if start in known or value in harmless:
            continue
        harmless.add(value)
        if cu.cuPointerGetAttribute(
                &kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, value) == CUDA_SUCCESS:
            raise Opaque(f"{kernel.name}: the parameters' word at {start} is the address of memory "
                         "that is no operand", undeclared=True)
