"""Templates: calls of other libraries, captured once and recorded as kernels after that."""

cimport cython
from cpython.list cimport PyList_GET_ITEM
from cpython.ref cimport PyObject, _Py_REFCNT
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from cyrt import settings
from cyrt.driver.cuda cimport *
from cyrt.driver.errors import OutOfMemoryError
from cyrt.graph import capture as captures
from cyrt.graph.capture cimport CapturedKernel, capture_child, capture_kernels
from cyrt.graph.child cimport ATTRIBUTES, NUM_ATTRIBUTES
from cyrt.graph.commit cimport (
    Recorder, Unfinished, begin_operation, continue_operation, end_operation,
)
from cyrt.graph.exact_key cimport (
    MOST_WORDS, NO_LIMIT, SETS, Set, Slot, add_word, begin_key, find, forget_launch_plans, insert,
    remove,
)
from cyrt.graph.pattern cimport Word, lay, room_of
from cyrt.graph.recorder cimport commit_if_complete, encoder_of, record
from cyrt.graph.recording cimport (
    CALL_IN_ORDER, CHILD, CLUSTER, COOPERATIVE, LANES, PROGRAMMATIC, TEMPLATE, Node, Operation,
)
from cyrt.graph.replay cimport check_call
from cyrt.graph.replay_call cimport (
    geometry_of, is_same_use, next_call, num_uses_of, params_of, replay_copied, uses_of,
)
from cyrt.runtime.allocation cimport allocate_zeroed
from cyrt.runtime.device cimport context_of, contexts
from cyrt.runtime.memory cimport Memory, live_block
from cyrt.runtime.module cimport LoadedFunction, drop_code, new_code
from cyrt.runtime.outside cimport is_outside
from cyrt.runtime.pool cimport allocate, is_own
from cyrt.runtime.state cimport LARGE, OVERWRITE, READ, WRITE, Access, StreamState
from cyrt.runtime.stream cimport Stream, current_state

cdef enum:
    SPREAD = 4096           # bytes between two addresses of a capture
    BLOCK = 512             # alignment of a block of the pool
    FAMILY_OF_TESTS = 0

cdef str NO_SCRATCH = "there is no scratch memory to learn the call in"

cdef Set[SETS] templates
cdef Py_ssize_t num_templates = 0       # the number of templates in the store
cdef Py_ssize_t most_templates = 0      # CYRT_TEMPLATE_CACHE_SIZE
cdef unsigned long long clock = 0
cdef unsigned long long last_serial = 0


def count_templates():
    """Return the number of templates in the store."""
    return num_templates


# -- the store -------------------------------------------------------------------------------------


cdef void begin_call_key(Key* key, unsigned long long family, int ordinal) noexcept:
    begin_key(key, <const void*>family,
              <unsigned long long>contexts[ordinal].epoch << 8 | <unsigned long long>ordinal)


cdef void touch(Template template) noexcept:
    global clock
    clock += 1
    template.used = clock


cdef Template find_template(Key* key):
    cdef Slot* slot = find(templates, key)
    if slot == NULL:
        return None
    touch(<Template>slot.held)
    return <Template>slot.held


cdef bint is_held(PyObject* kept) except -1:
    """Return whether a call in progress or a launch's plan holds a template of the store, or a
    recording its kernels."""
    cdef Template template
    cdef PyObject* code
    if _Py_REFCNT(kept) > 1:
        return True
    template = <Template>kept
    for kernel in template.kernels or ():
        if _Py_REFCNT(<PyObject*>kernel) > 2:       # the list's, and this loop's
            return True
    code = <PyObject*>template.code             # child graphs hold it, too
    return template.code is not None and _Py_REFCNT(code) > 1


cdef bint drop_oldest() except -1:
    """Drop the template that was used longest ago and is not held; return False: there is none."""
    cdef Set* set
    cdef Set* found = NULL
    cdef PyObject* kept
    cdef unsigned long long oldest = 0
    cdef int i, j, index = 0
    for i in range(SETS):
        set = &templates[i]
        for j in range(set.count):
            kept = set.slots[j].held
            if (found == NULL or (<Template>kept).used < oldest) and not is_held(kept):
                found, index, oldest = set, j, (<Template>kept).used
    if found != NULL:
        drop(found, index)
    return found != NULL


cdef void drop(Set* set, int index) noexcept:
    global num_templates
    num_templates -= 1
    remove(set, index)


cdef Template keep(Key* key, Template template):
    """Put a template into the store. Return it, or the one that another thread has put there
    meanwhile."""
    global num_templates, most_templates
    cdef Template earlier
    if most_templates == 0:
        most_templates = settings.get("CYRT_TEMPLATE_CACHE_SIZE")
    earlier = find_template(key)
    if earlier is not None:
        return earlier
    touch(template)
    insert(templates, key, NULL, 0, template, NO_LIMIT)
    num_templates += 1
    while num_templates > most_templates and drop_oldest():
        pass
    return template


cdef void forget_templates(int ordinal) noexcept:
    """Drop the templates of a device, or of all for -1."""
    cdef int i, index
    forget_launch_plans()
    for i in range(SETS):
        index = templates[i].count - 1
        while index >= 0:
            if ordinal < 0 or (<Template>templates[i].slots[index].held).ordinal == ordinal:
                drop(&templates[i], index)
                index = templates[i].count      # finalizers may have stored others
            index -= 1


def forget():
    """Drop all templates, and read the limit on their number again."""
    global most_templates
    forget_templates(-1)
    most_templates = 0


# -- learning --------------------------------------------------------------------------------------


@cython.no_gc_clear
cdef class TemplateKernel(Runnable):
    """A kernel of a template, with what it keeps alive."""

    def __dealloc__(self):
        drop_code(self.code)
        free(self.pattern.layout.offsets)
        free(self.pattern.params)
        free(self.pattern.words)
        free(self.pattern.attributes)


@cython.no_gc_clear         # the end needs `code`
cdef class Template:
    """A call of another library: the kernels that it launches, or why these cannot be recorded.

    Attributes
    ----------
    kernels : list or None
        The kernels that the call launches; None if it is opaque or refused.
    num_tokens : int
        How many blocks order the kernels; 0 if they run one after the other.
    reason : str or None
        For which the call is opaque or refused.
    """

    def __dealloc__(self):
        drop_code(self.code)

    @property
    def names(self):
        """A list of the names of the kernels."""
        return [kernel.name for kernel in self.kernels or ()]


cdef Template refuse(Key* key, int ordinal, str reason):
    cdef Template template = Template.__new__(Template)
    template.ordinal, template.reason, template.refused = ordinal, reason, True
    return keep(key, template)


cdef TemplateKernel new_kernel(CapturedKernel captured, bytes params, list words, object call):
    """Return a kernel with these words of its parameters to be set."""
    global last_serial
    cdef TemplateKernel kernel = TemplateKernel.__new__(TemplateKernel)
    cdef Pattern* pattern = &kernel.pattern
    cdef CUkernelNodeAttrValue value
    cdef int i
    last_serial += 1
    kernel.serial = last_serial
    kernel.name = captured.name
    # A library may unload what it has compiled for a call with the object that makes it.
    kernel.code = new_code(call if captured.owner is None else captured.owner)
    kernel.geometry = captured.geometry
    pattern.function, pattern.kernel = captured.function, captured.kernel
    pattern.context, pattern.packed = captured.context, captured.packed
    pattern.nbytes = len(params)
    pattern.params = <char*>allocate_zeroed(len(params))
    memcpy(pattern.params, <const char*>params, len(params))
    pattern.layout.offsets = <unsigned int*>allocate_zeroed(
        len(captured.offsets) * sizeof(unsigned int))
    pattern.layout.count = len(captured.offsets)
    for i in range(pattern.layout.count):
        pattern.layout.offsets[i] = captured.offsets[i]
    pattern.layout.nbytes = len(params)
    pattern.words = <Word*>allocate_zeroed(len(words) * sizeof(Word))
    pattern.num_words = len(words)
    for i in range(pattern.num_words):
        pattern.words[i].offset, pattern.words[i].nbytes, operand, addend = words[i]
        pattern.words[i].operand = operand
        pattern.words[i].addend = addend & 0xFFFF_FFFF_FFFF_FFFF
    pattern.attributes = <CUlaunchAttribute*>allocate_zeroed(
        NUM_ATTRIBUTES * sizeof(CUlaunchAttribute))
    for i, attribute in enumerate(captured.attributes):
        if attribute is None:
            continue
        memcpy(&value, <const char*>attribute, sizeof(value))
        pattern.attributes[pattern.num_attributes].id = ATTRIBUTES[i]
        pattern.attributes[pattern.num_attributes].value = value
        pattern.num_attributes += 1
        if ATTRIBUTES[i] == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            kernel.flags |= CLUSTER
            kernel.cluster = [value.clusterDim.x, value.clusterDim.y, value.clusterDim.z]
        elif ATTRIBUTES[i] == CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            kernel.flags |= COOPERATIVE
    if captured.owner is not None and (<LoadedFunction>captured.owner).programmatic:
        kernel.flags |= PROGRAMMATIC
    return kernel


cdef bytes lay_out_parameters(TemplateKernel kernel, tuple addresses):
    """Return the parameters of a launch whose operands are at these addresses."""
    cdef unsigned long long[MOST_OPERANDS] words
    cdef void** room = <void**>allocate_zeroed(room_of(&kernel.pattern))
    cdef char* params
    cdef int i
    for i, address in enumerate(addresses):
        words[i] = address
    lay(&kernel.pattern, words, room)
    if kernel.pattern.packed:
        params = <char*>room[1]
    else:
        params = <char*>room[0] - kernel.pattern.layout.offsets[0] if kernel.pattern.layout.count \
            else <char*>room
    found = params[:kernel.pattern.nbytes]
    free(room)
    return found


cdef list choose_offsets(const Extent* operands, int count, size_t* nbytes):
    """Return the offsets of the operands in the scratch memory, for each of three captures. Between
    two captures no operand moves as far as another one."""
    cdef size_t written = 0
    cdef int i
    rounds = [], [], []
    for i in range(count):
        written = max(written, operands[i].written)
        # An operand's address is of no higher alignment than the key tells.
        rest = 0 if operands[i].workspace else ALIGNMENT + operands[i].address % ALIGNMENT
        for found, slot in zip(rounds, (i, 2 * i + count + 1, 4 * count + 5 - i), strict=True):
            found.append(SPREAD * slot + rest)
    nbytes[0] = written + <size_t>SPREAD * (4 * count + 7)
    return [tuple(found) for found in rounds]


cdef bytes clear_words(bytes params, bytes mask):
    """Return the parameters with zeros as padding."""
    if mask.count(0) == len(mask):
        return params
    return bytes([0 if padding else byte for byte, padding in zip(params, mask, strict=True)])


cdef int set_tokens(list kernels, list captured) except -1:
    """Set the tokens of kernels that do not all run in order, and return how many there are. Where
    there are no more tokens, a kernel waits for more than it has to."""
    cdef TemplateKernel kernel
    cdef list lanes = [], tails = []        # each lane's token, and each lane's last kernel
    cdef list of_kernel = [0] * len(kernels)    # each kernel's lane
    cdef int count = 0
    if all([(<CapturedKernel>captured[i]).sources == (i - 1,) for i in range(1, len(captured))]):
        return 0
    for i, kernel in enumerate(kernels):
        sources = (<CapturedKernel>captured[i]).sources
        lane = next((lane for lane, tail in enumerate(tails) if tail in sources), len(lanes))
        if lane == len(lanes) and lane < LANES:
            lanes.append(count)
            tails.append(i)
            count += 1
        lane %= LANES
        for source in sources:
            if source == 0:         # all wait for the first one
                continue
            if tails[of_kernel[source]] != source and count < MOST_TOKENS:
                (<TemplateKernel>kernels[source]).marks |= 1 << count
                kernel.waits |= 1 << count
                count += 1
            else:
                kernel.waits |= 1 << <int>lanes[of_kernel[source]]
        of_kernel[i], tails[lane] = lane, i
        kernel.marks |= 1 << <int>lanes[lane]
    kernel.waits = (1 << count) - 1
    return count


cdef list learn_kernels(int ordinal, object call, const Extent* operands, int count,
                        int* num_tokens):
    """Return the TemplateKernels of a call. Raise `captures.Opaque` if there can be none."""
    cdef Stream stream = Stream(ordinal)
    cdef Memory scratch = Memory.__new__(Memory)
    cdef size_t nbytes = 0
    cdef list offsets = choose_offsets(operands, count, &nbytes)
    cdef dict functions = {}        # what the captures have in common
    # The call's workspace can reuse a large block afterwards if that is the current stream's.
    scratch.block = allocate(current_state(ordinal) if nbytes >= LARGE else stream.live(), nbytes)
    scratch.address = scratch.block.address
    scratch.size = nbytes
    addresses = [tuple([scratch.address + offset for offset in each]) for each in offsets]
    found = [capture_kernels(stream, call, each, seed, functions)
             for seed, each in enumerate(addresses)]
    masks = [bytes(len(kernel.params)) for kernel in found[0]]
    try:
        learned = captures.explain(found, masks, addresses)
    except captures.Opaque:
        again = capture_kernels(stream, call, addresses[0], len(found), functions)
        captures.compare(found[0], again)
        masks = [bytes([x != y for x, y in zip(one.params, other.params, strict=True)])
                 for one, other in zip(found[0], again, strict=True)]
        if not any(map(any, masks)):
            raise
        learned = captures.explain(found, masks, addresses)
    kernels, harmless = [], set()
    for first, third, mask, words in zip(found[0], found[2], masks, learned, strict=True):
        if not getattr(call, "reads_own_memory", False):
            captures.check_memory(first, mask, words, harmless)
        kernel = new_kernel(first, clear_words(first.params, mask), words, call)
        confirmed = lay_out_parameters(kernel, addresses[2])
        if clear_words(confirmed, mask) != clear_words(third.params, mask):
            raise captures.Opaque(f"{first.name}: the third capture is not as the first two show")
        kernels.append(kernel)
    num_tokens[0] = set_tokens(kernels, found[0])
    return kernels


cdef Template learn_apart(int ordinal, object call, const Extent* operands, int count,
                          size_t workspace):
    cdef Template template = Template.__new__(Template)
    template.ordinal, template.workspace = ordinal, workspace
    try:
        template.kernels = learn_kernels(ordinal, call, operands, count, &template.num_tokens)
        template.count = len(template.kernels)
    except OutOfMemoryError:        # without scratch memory the call is captured where it is
        template.reason = NO_SCRATCH
        template.call, template.code = call, new_code(call)
    except captures.Opaque as error:
        template.reason = str(error)
        template.undeclared = error.undeclared
        template.call, template.code = call, new_code(call)
    return template


cdef Template learn(Key* key, int ordinal, object call, const Extent* operands, int count,
                    size_t workspace):
    cdef Template template = learn_apart(ordinal, call, operands, count, workspace)
    return template if template.reason is NO_SCRATCH else keep(key, template)


# -- recording -------------------------------------------------------------------------------------


cdef list make_tokens(Recorder encoder, int count):
    cdef list tokens = []
    cdef Memory token
    for _ in range(count):
        token = Memory.__new__(Memory)
        token.block = allocate(encoder.state, 1)
        token.address, token.size = token.block.address, 1
        tokens.append(token)
    return tokens


cdef int use_branches(TemplateKernel kernel, list tokens, bint last, Use* uses,
                      int num_uses) except -1:
    """Change the uses of a kernel of a call with branches. Return how many there are now."""
    cdef int u, t
    for u in range(0 if last else num_uses):
        uses[u].access = READ
    for t in range(len(tokens)):
        if (kernel.marks | kernel.waits) >> t & 1:
            uses[num_uses].block = (<Memory>tokens[t]).block
            uses[num_uses].access = WRITE if kernel.marks >> t & 1 else READ
            num_uses += 1
    return num_uses


cdef inline Access access_at(const Use* use, int i) noexcept:
    """Return the access of kernel i of a call that runs in order: an earlier kernel has written
    some of what the call overwrites."""
    return WRITE if i and use.access == OVERWRITE else use.access


cdef bint replay_kernel(StreamState* stream, TemplateKernel kernel, int i,
                        const unsigned long long* addresses, const Use* uses,
                        int num_uses) noexcept:
    """Replay kernel i of a call that runs in order if it is the next node of a script."""
    cdef Node* node = next_call(stream, CALL_IN_ORDER)
    cdef Use* own
    cdef int u
    if node == NULL or node.serial != kernel.serial or num_uses_of(stream, node) != num_uses:
        return False
    own = uses_of(stream, node)
    for u in range(num_uses):
        if own[u].access != access_at(&uses[u], i) \
                or not is_same_use(&own[u], uses[u].block, stream) \
                or not is_own(uses[u].block, stream):
            return False
    memcpy(params_of(stream, node), addresses, node.param_bytes)
    geometry_of(stream)[0] = kernel.geometry
    return replay_copied(stream, <PyObject*>kernel, own, num_uses)


cdef int record_template(Recorder encoder, Template template,
                         const unsigned long long* addresses, int num_operands, const Use* uses,
                         int num_uses, list foreign) except -1:
    cdef TemplateKernel kernel
    cdef Operation operation
    # `record` changes the uses of outside memory.
    cdef Use[<int>MOST_OPERANDS + <int>MOST_TOKENS] own
    cdef list tokens = make_tokens(encoder, template.num_tokens) if template.num_tokens \
        else None
    cdef Unfinished before
    cdef int i, u, begin = 0, num_own = num_uses
    cdef bint in_order = tokens is None and foreign is None and encoder.listed is None \
        and encoder.state.encoder == <void*>encoder
    while in_order and begin < template.count and replay_kernel(
            encoder.state, <TemplateKernel>PyList_GET_ITEM(template.kernels, begin), begin,
            addresses, uses, num_uses):
        begin += 1
    if begin == template.count:     # no batch ends with an operation that is replayed so
        encoder.repoints += 1
        return 0
    before = begin_operation(encoder)
    operation.kind = TEMPLATE
    operation.params = addresses
    operation.param_bytes = num_operands * sizeof(addresses[0])
    operation.early, operation.tensors = NULL, NULL
    operation.key = CALL_IN_ORDER if in_order else 0
    if begin:
        continue_operation()
    try:
        for i in range(begin, template.count):
            kernel = <TemplateKernel>template.kernels[i]
            for u in range(num_uses):
                own[u] = uses[u]
                own[u].access = access_at(&uses[u], i)
            if tokens is not None and i:
                num_own = use_branches(kernel, tokens, i == template.count - 1, own, num_uses)
            operation.flags = kernel.flags
            operation.cluster = kernel.cluster
            operation.function = kernel.pattern.function if kernel.pattern.function != NULL \
                else <CUfunction>kernel.pattern.kernel
            operation.serial = kernel.serial
            operation.layout = &kernel.pattern.layout
            operation.geometry = &kernel.geometry
            operation.owner = <void*>kernel
            if encoder.replay.called:
                check_call(&encoder.replay, &operation, own, num_own)
            record(encoder, &operation, own, num_own, None if foreign is None else foreign[:],
                   False)
            continue_operation()
    finally:
        end_operation(before)
    commit_if_complete(encoder, foreign)
    encoder.repoints += 1
    return 0


cdef ChildGraph capture_opaque(Template template, const unsigned long long* addresses, int count):
    cdef int i
    cdef ChildGraph child = capture_child(Stream(template.ordinal), template.call,
                                          tuple([addresses[i] for i in range(count)]))
    child.code = template.code
    return child


cdef int record_opaque(Recorder encoder, Template template, ChildGraph child, Use* uses,
                       int num_uses, list foreign) except -1:
    cdef Operation operation = Operation(
        CHILD, 0, NULL, NULL, child.shape, NULL, NULL, NULL, 0, <void*>child, NULL, 0,
        NULL)
    cdef unsigned long long[2] params
    child.origin = template.origin
    params[0], params[1] = <size_t>child.graph, child.serial
    operation.params = params
    operation.param_bytes = sizeof(params)
    record(encoder, &operation, uses, num_uses, foreign, template.undeclared)
    encoder.opaque_captures += 1
    return 0


def record_call(key, call, buffers, writes, *, size_t workspace=0):
    """Record a call of another library on the current stream.

    Parameters
    ----------
    key : sequence of int
        Everything that selects what the call launches, except its operands' alignments.
    call : callable
        It takes the handle of a stream and a tuple of addresses, those of the operands and then of
        the workspace, and puts its work on the stream. It is called to learn the call, and each
        time if the call is opaque; its ``prepare()``, if it has one, before each capture.
    buffers : sequence of Memory
        The operands, on one device.
    writes : sequence of int
        The indices of those that the call writes.
    workspace : int
        Bytes of temporary memory of the call.

    Returns
    -------
    Template
    """
    cdef Key words
    cdef Extent[MOST_OPERANDS] extents
    cdef unsigned long long[MOST_OPERANDS] addresses
    cdef Use[MOST_OPERANDS] uses
    cdef list operands = list(buffers), foreign = []
    cdef Memory memory
    cdef Template template
    cdef ChildGraph child
    cdef Recorder encoder
    cdef int i, count = len(operands) + (workspace > 0)
    cdef int ordinal = live_block(<Memory?>operands[0]).ordinal
    if count > MOST_OPERANDS or len(key) + len(operands) + 4 > MOST_WORDS:
        raise ValueError(f"a call has at most {<int>MOST_OPERANDS} operands and "
                         f"{<int>MOST_WORDS} words of its key")
    context_of(ordinal)
    encoder = encoder_of(current_state(ordinal))
    begin_call_key(&words, FAMILY_OF_TESTS, ordinal)
    for word in (len(key), *key, workspace):
        add_word(&words, word)
    memset(extents, 0, sizeof(extents))
    for i in range(len(operands)):
        memory = <Memory?>operands[i]
        live_block(memory)
        addresses[i] = extents[i].address = memory.address
        extents[i].written = memory.size if i in writes else 0
        add_word(&words, memory.address % ALIGNMENT)
    template = find_template(&words)
    if workspace:
        extents[count - 1].written, extents[count - 1].workspace = workspace, True
    if template is None:
        template = learn(&words, ordinal, call, extents, count, workspace)
    if workspace:
        memory = Memory.__new__(Memory)
        memory.block = allocate(encoder.state, workspace)
        memory.address, memory.size = memory.block.address, workspace
        addresses[count - 1] = memory.address
        operands.append(memory)
    child = None if template.kernels is not None else capture_opaque(template, addresses, count)
    for i in range(count):
        memory = <Memory>operands[i]
        uses[i].block = live_block(memory)
        uses[i].access = OVERWRITE if i == len(buffers) else WRITE if i in writes else READ
        if is_outside(uses[i].block):
            foreign.append(memory)
    if child is None:
        record_template(encoder, template, addresses, count, uses, count, foreign or None)
    else:
        record_opaque(encoder, template, child, uses, count, foreign or None)
    return template
