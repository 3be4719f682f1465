"""The launch of a built-in kernel."""


from cyrt.graph.child cimport ChildGraph
from cyrt.graph.recorder cimport encoder_of, record_kernel
from cyrt.graph.recording cimport EarlyLoad, Use
from cyrt.graph.template cimport (
    MOST_OPERANDS, Template, capture_opaque, record_opaque, record_template,
)
from cyrt.runtime.device cimport current_ordinal
from cyrt.runtime.memory cimport Memory, live_block, overwriting
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.outside cimport is_outside
from cyrt.runtime.state cimport (
    MANAGED_MEMORY, OVERWRITE, PINNED_MEMORY, READ, WRITE, Block,
)
from cyrt.runtime.stream cimport current_state


def launches_of(function):
    """Call a function; return what it launches on the current stream, without launching it.

    Returns
    -------
    list of tuple
        The serial number of each kernel, its packed parameters, grid and block.
    """
    cdef Recorder encoder = encoder_of(current_state(current_ordinal()))
    cdef list listed = []
    cdef bint direct = encoder.direct
    encoder.listed, encoder.direct = listed, False
    try:
        function()
    finally:
        encoder.listed, encoder.direct = None, direct
    return [((<LoadedFunction?>each[1]).serial, each[5], each[2], each[3]) for each in listed]


cdef inline list use_operands(int ordinal, const Operand* operands, int count, unsigned int writes,
                              Use* uses, int* num_uses):
    """Set the uses of operands. Return the Buffers of outside memory, or None."""
    cdef list foreign = None
    cdef Use* next = uses
    cdef Block* block
    cdef int i
    for i in range(count - 1, -1, -1):          # written memory comes last
        if operands[i].buffer == NULL:
            continue
        block = live_block(<Memory>operands[i].buffer)
        if block.ordinal != ordinal and block.kind != PINNED_MEMORY \
                and block.kind != MANAGED_MEMORY:
            raise ValueError(f"a Buffer is of device {block.ordinal}, the operation runs on "
                             f"device {ordinal}; to_device() moves arrays")
        if is_outside(block):
            foreign = foreign or []
            foreign.append(<Memory>operands[i].buffer)
        next.block = block
        next.access = READ if not writes >> i & 1 \
            else overwriting(<Memory>operands[i].buffer) if i == 0 and writes & WHOLE \
            else WRITE
        next += 1
    num_uses[0] = <int>(next - uses)
    return foreign


cdef inline int record_with(Recorder encoder, const Launch* launch, const void* params,
                            const Operand* operands, int count, unsigned int writes,
                            const EarlyLoad* early) except -1:
    cdef LoadedFunction function = <LoadedFunction>launch.entry.functions[launch.variant]
    cdef Use[MAX_USES] uses
    cdef list foreign = None
    cdef int num_uses = 0
    if encoder.listed is None:      # else memory means nothing
        foreign = use_operands(encoder.state.ordinal, operands, count, writes, uses, &num_uses)
    return record_kernel(encoder, function, &launch.geometry, <const char*>params, uses, num_uses,
                         foreign, False, 0, NULL, early)


cdef int record_launch(Recorder encoder, const Launch* launch, const void* params,
                       const Operand* operands, int count, unsigned int writes) except -1:
    return record_with(encoder, launch, params, operands, count, writes, NULL)


cdef int record_launch_of_weights(Recorder encoder, const Launch* launch, const void* params,
                                  const Operand* operands, int count, unsigned int writes,
                                  int weights, int num_weights, size_t word) except -1:
    cdef EarlyLoad early
    cdef int i
    early.use, early.count, early.word = 0, 0, word
    for i in range(weights, count):             # `use_operands` begins with the last one
        if operands[i].buffer != NULL:
            if i < weights + num_weights:
                early.count += 1
            else:
                early.use += 1
    return record_with(encoder, launch, params, operands, count, writes, &early)


cdef int record_call(Recorder encoder, Template template, const Operand* operands, int count,
                     unsigned int writes, Memory workspace) except -1:
    cdef unsigned long long[MOST_OPERANDS] addresses
    cdef Use[MOST_OPERANDS] uses
    cdef ChildGraph child = None
    cdef list foreign
    cdef int i, num_uses, num_addresses = count
    for i in range(count):
        addresses[i] = operands[i].address
    if workspace is not None:
        addresses[count] = workspace.address
        num_addresses += 1
    if template.kernels is None:
        child = capture_opaque(template, addresses, num_addresses)
    foreign = use_operands(encoder.state.ordinal, operands, count, writes, uses, &num_uses)
    if workspace is not None:
        uses[num_uses].block, uses[num_uses].access = workspace.block, OVERWRITE
        num_uses += 1
    if child is not None:
        return record_opaque(encoder, template, child, uses, num_uses, foreign)
    return record_template(encoder, template, addresses, num_addresses, uses, num_uses, foreign)
