"""The launch of a built-in kernel: its geometry, and its record."""

from cpython.object cimport PyObject
from libc.string cimport memcmp, memcpy

from cyrt.driver.table cimport MAX_DEVICES
from cyrt.graph.child cimport ChildGraph
from cyrt.graph.exact_key cimport MOST_WORDS, Key, times_forgotten
from cyrt.graph.recorder cimport encoder_of, record_kernel
from cyrt.graph.recording cimport (
    LAUNCH, STEP, STEP_WORDS, EarlyLoad, Node, Recording, Step, Use, new_step, use_end,
)
from cyrt.graph.replay_call cimport (
    geometry_of, is_same_use, next_call, num_uses_of, params_of, replay_copied, step_of, uses_of,
)
from cyrt.graph.template cimport (
    MOST_OPERANDS, Template, capture_opaque, record_opaque, record_template,
)
from cyrt.runtime.device cimport Device, current_ordinal
from cyrt.runtime.memory cimport Memory, block_of, live_block, overwriting
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.outside cimport is_outside
from cyrt.runtime.pool cimport is_own
from cyrt.runtime.state cimport (
    MANAGED_MEMORY, OVERWRITE, PINNED_MEMORY, READ, WRITE, Access, Block, StreamState,
)
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport recording, refuse_followed

cdef int[MAX_DEVICES] multiprocessors


cdef int multiprocessors_of(int ordinal) except -1:
    if multiprocessors[ordinal] == 0:
        multiprocessors[ordinal] = Device(ordinal).multiprocessors
    return multiprocessors[ordinal]


def launches_of(function):
    """Call a function; return what it launches on the current stream, without launching it.

    Returns
    -------
    list of tuple
        The serial number of each kernel, its packed parameters, grid, block and bytes of dynamic
        shared memory.
    """
    cdef Recorder encoder = encoder_of(current_state(current_ordinal()))
    cdef list listed = []
    cdef bint direct = encoder.direct
    encoder.listed, encoder.direct = listed, False
    try:
        function()
    finally:
        encoder.listed, encoder.direct = None, direct
    return [((<LoadedFunction?>each[1]).serial, each[5], each[2], each[3], each[4])
            for each in listed]


cdef inline Block* block_on(int ordinal, Memory memory) except NULL:
    """Return the block of memory that the device can access."""
    cdef Block* block = live_block(memory)
    if block.ordinal != ordinal and block.kind != PINNED_MEMORY and block.kind != MANAGED_MEMORY:
        raise ValueError(f"a Buffer is of device {block.ordinal}, the operation runs on "
                         f"device {ordinal}; to_device() moves arrays")
    return block


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
        block = block_on(ordinal, <Memory>operands[i].buffer)
        if is_outside(block):
            foreign = foreign or []
            foreign.append(<Memory>operands[i].buffer)
        next.block = block
        next.access = access_of(operands, i, writes)
        next += 1
    num_uses[0] = <int>(next - uses)
    return foreign


cdef inline Access access_of(const Operand* operands, int i, unsigned int writes) noexcept:
    return READ if not writes >> i & 1 \
        else overwriting(<Memory>operands[i].buffer) if i == 0 and writes & WHOLE \
        else WRITE


cdef inline bint replay(Recorder encoder, const Launch* launch, const void* params,
                        const Operand* operands, int count, unsigned int writes) noexcept:
    """Replay a launch if it is the next call of a script."""
    cdef StreamState* stream = encoder.state
    cdef Node* node = next_call(stream, LAUNCH)
    cdef PyObject* function = launch.entry.functions[launch.variant]
    cdef Block* block
    cdef Use* uses
    cdef int i, num_uses, found = 0
    if node == NULL or stream.encoder != <void*>encoder \
            or node.serial != (<LoadedFunction>function).serial:
        return False
    uses, num_uses = uses_of(stream, node), num_uses_of(stream, node)
    for i in range(count - 1, -1, -1):
        if operands[i].buffer == NULL:
            continue
        block = block_of(<Memory>operands[i].buffer)
        if found == num_uses or uses[found].access != access_of(operands, i, writes) \
                or not is_same_use(&uses[found], block, stream) or not is_own(block, stream):
            return False
        found += 1
    if found != num_uses:
        return False
    memcpy(params_of(stream, node), params, node.param_bytes)
    geometry_of(stream)[0] = launch.geometry
    return replay_copied(stream, NULL, uses, num_uses)


cdef int refuse_operands(LoadedFunction function, const Operand* operands, int count) except -1:
    """Raise TypeError if a tape follows an operand, and does not record the call."""
    cdef int i
    for i in range(count):
        if operands[i].buffer != NULL:
            refuse_followed(<Memory>operands[i].buffer, function.name)
    return 0


cdef inline int record_with(Recorder encoder, const Launch* launch, const void* params,
                            const Operand* operands, int count, unsigned int writes,
                            const EarlyLoad* early) except -1:
    cdef LoadedFunction function = <LoadedFunction>launch.entry.functions[launch.variant]
    cdef Use[MAX_USES] uses
    cdef list foreign = None
    cdef int num_uses = 0
    if recording:
        refuse_operands(function, operands, count)
    if encoder.listed is None:      # else memory means nothing
        if early == NULL and replay(encoder, launch, params, operands, count, writes):
            return 0
        foreign = use_operands(encoder.state.ordinal, operands, count, writes, uses, &num_uses)
    return record_kernel(encoder, function, &launch.geometry, <const char*>params, uses, num_uses,
                         foreign, False, 0, NULL, early)


cdef int record_launch(Recorder encoder, const Launch* launch, const void* params,
                       const Operand* operands, int count, unsigned int writes) except -1:
    return record_with(encoder, launch, params, operands, count, writes, NULL)


cdef int record_launch_of_weights(Recorder encoder, const Launch* launch, const void* params,
                                  const Operand* operands, int count, int weights,
                                  int num_weights, size_t word) except -1:
    cdef EarlyLoad early
    cdef int i
    early.use, early.count, early.word = 0, 0, word
    for i in range(weights, count):             # `use_operands` begins with the last one
        if operands[i].buffer != NULL:
            if i < weights + num_weights:
                early.count += 1
            else:
                early.use += 1
    return record_with(encoder, launch, params, operands, count, 1, &early)


cdef int record_launch_of_many(Recorder encoder, const Launch* launch, const void* params,
                               PyObject** memories, int count, int written) except -1:
    cdef LoadedFunction function = <LoadedFunction>launch.entry.functions[launch.variant]
    cdef Use[MAX_MEMORIES] uses
    cdef list foreign = None
    cdef Block* block
    cdef int i, num_uses = 0
    if recording:
        for i in range(count):
            refuse_followed(<Memory>memories[i], function.name)
    for i in range(count if encoder.listed is None else 0):     # else memory means nothing
        block = block_on(encoder.state.ordinal, <Memory>memories[i])
        if is_outside(block):
            foreign = foreign or []
            foreign.append(<Memory>memories[i])
        if i == 0 or i == written or uses[num_uses - 1].block != block:
            uses[num_uses].block, uses[num_uses].access = block, READ if i < written else WRITE
            num_uses += 1
    return record_kernel(encoder, function, &launch.geometry, <const char*>params, uses, num_uses,
                         foreign, False, 0, NULL, NULL)


cdef inline void add_operands(Key* key, const Operand* operands, int count) noexcept:
    """Add to a key what a launch depends on besides."""
    cdef unsigned long long* words = &key.words[key.count]
    cdef int i
    key.count += 1 + 2 * count
    if key.count > MOST_WORDS:
        return
    words[0] = times_forgotten << 1 | (overwriting(<Memory>operands[0].buffer) == OVERWRITE)
    words += 1
    for i in range(count):
        if operands[i].buffer == NULL:
            words[0], words[1] = operands[i].value[0], operands[i].value[1]
        else:
            words[0] = <size_t>block_of(<Memory>operands[i].buffer)
            words[1] = operands[i].address
        words += 2


cdef bint replay_described(Recorder encoder, Key* key, const Operand* operands,
                           int count) noexcept:
    cdef StreamState* stream = encoder.state
    cdef const Step* step = NULL
    cdef Node* node
    cdef Use* uses
    cdef int i, num_uses, words = key.count
    cdef bint early
    if stream.encoder != <void*>encoder or encoder.listed is not None \
            or stream.has_exported_handle:
        return False
    node = next_call(stream, STEP)
    if node == NULL:
        return False
    step = step_of(stream)
    add_operands(key, operands, count)
    if step.count != key.count \
            or memcmp(step.words, key.words, key.count * sizeof(key.words[0])) != 0:
        key.count = words
        return False
    key.count = words
    uses, num_uses = uses_of(stream, node), num_uses_of(stream, node)
    for i in range(num_uses):       # the operands have their blocks
        if not is_same_use(&uses[i], uses[i].block, stream) or not is_own(uses[i].block, stream):
            return False
    early = step.early
    if not replay_copied(stream, NULL, uses, num_uses):
        return False
    encoder.num_early_loads += early
    return True


cdef void describe(Recorder encoder, int before, Key* key, const Operand* operands, int count,
                   const Launch* launch) noexcept:
    cdef Recording* script = encoder.replay.script
    cdef PyObject* kernel = launch.entry.functions[launch.variant]
    cdef const Node* node
    cdef Step* step
    cdef int i, buffers = 0, words = key.count
    cdef bint early
    if script == NULL or encoder.replay.played != before + 1:
        return
    node = &script.nodes[before]
    for i in range(count):
        buffers += operands[i].buffer != NULL
    if node.key > LAUNCH or kernel == NULL \
            or node.serial != (<LoadedFunction>kernel).serial \
            or use_end(script, before) - node.first_use != buffers:
        return
    add_operands(key, operands, count)
    if key.count <= STEP_WORDS:
        early = node.key == 0 and encoder.replay.early      # no launch with a key is early
        step = new_step(script, before)
        if step != NULL:
            step.early, step.count = early, key.count
            memcpy(step.words, key.words, key.count * sizeof(key.words[0]))
    key.count = words


cdef int record_call(Recorder encoder, Template template, const Operand* operands, int count,
                     unsigned int writes, Memory workspace) except -1:
    cdef unsigned long long[MOST_OPERANDS] addresses
    cdef Use[MOST_OPERANDS] uses
    cdef ChildGraph child = None
    cdef list foreign
    cdef int i, num_uses, num_addresses = count
    for i in range(count):
        if recording and operands[i].buffer != NULL:
            refuse_followed(<Memory>operands[i].buffer, "a call of a library")
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
