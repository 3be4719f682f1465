"""Fused plans: batches that keep coming back, as fewer kernels."""

from logging import DEBUG

from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from cpython.exc cimport PyErr_SetInterrupt
from cpython.object cimport PyObject
from cpython.ref cimport Py_CLEAR, Py_INCREF

from cyrt.driver.capture_mode cimport event_status, relax, restore
from cyrt.driver.cuda cimport CUDA_SUCCESS, CUdeviceptr, CUevent, CUresult, CUstreamCaptureMode
from cyrt.driver.table cimport cu, is_emulated, is_sticky
from cyrt.graph cimport executable as executables, plan as plans, recording as recordings
from cyrt.graph.executable cimport Executable, Outcome
from cyrt.graph.plan cimport Plan, PlanStats
from cyrt.graph.plan_cache cimport add_fused, remove_fused
from cyrt.graph.recording cimport (
    CLUSTER, COOPERATIVE, KERNEL, PROGRAMMATIC, Geometry, Node, Operation, Recording, Use,
    UsedMemory, edge_end, use_end,
)
from cyrt.graph.seam cimport builtin
from cyrt.runtime.allocation cimport allocate_zeroed, reallocate
from cyrt.runtime.device cimport Device, contexts, enter, enter_quietly, leave, leave_quietly
from cyrt.runtime.module cimport LoadedFunction, allow_smem
from cyrt.logger import logger
from cyrt.runtime.state cimport DEVICE_MEMORY, OVERWRITE, READ, StreamState

cdef enum:
    NEVER = 1 << 30         # ms
    MOST_UNFIT = 16         # launches in a row for which a fused plan is of no use
    MOST_FUSIONS = 4        # fused plans of a script, one after the other
cdef float FASTER = 0.97    # the greatest ratio of the times of a fused plan and a plain one
cdef object timed = None    # whether fused plans are timed; None: on a GPU they are
cdef unsigned long long num_hot = 0         # batches that were launched often
cdef unsigned long long num_rejected = 0    # those of them that are known to stay plain


def counts():
    """Return how many batches were launched often, and how many of these are not fused."""
    return num_hot, num_rejected


def set_timed(value):
    """Set whether fused plans are timed; None: only on a GPU. Tests call this."""
    global timed
    timed = value


cdef void note_memory(Recording* recording) noexcept:
    cdef const Use* use
    cdef UsedMemory* memory
    cdef int i
    free(recording.memory)
    recording.memory = <UsedMemory*>malloc((recording.num_uses + 1) * sizeof(UsedMemory))
    if recording.memory != NULL:
        for i in range(recording.num_uses):
            use, memory = &recording.uses[i], &recording.memory[i]
            memory.address, memory.size = use.block.address, use.block.size
            # What other libraries may use is seen without cyrt.
            memory.dead = use.generation != use.block.generation \
                and use.block.kind == DEVICE_MEMORY and not use.block.shared


cdef Fusion new_fusion(StreamState* stream, Recording* script, Plan plan):
    global num_hot
    cdef Fusion fusion
    cdef list code = plan.code
    if builtin.fuse == NULL or code is None or script.fusion != NULL \
            or script.num_fusions == MOST_FUSIONS:
        return None
    fusion = Fusion.__new__(Fusion)
    fusion.stream, fusion.epoch, fusion.used = stream, stream.epoch, plans.clock
    fusion.original = recordings.new_recording()
    if not recordings.copy_nodes(fusion.original, script, script.num_nodes):
        return None
    fusion.memory, script.memory = script.memory, NULL
    fusion.code, fusion.names_ = code[:], plan.names_
    recordings.release_owners(fusion.original, False)     # the copy has taken them
    Py_INCREF(fusion)
    script.fusion = <PyObject*>fusion
    script.num_fusions += 1
    num_hot += script.num_fusions == 1
    tell_of(plan, fusion)
    return fusion


cdef void tell_of(Plan plan, Fusion fusion) noexcept:
    if plan.fusion is None or fusion.cached or not (<Fusion>plan.fusion).cached:
        plan.fusion = fusion


cdef void tell(Fusion fusion) noexcept:
    fusion.news = False
    try:
        if logger.isEnabledFor(DEBUG):
            logger.debug("%s", fusion.outcome)
    except KeyboardInterrupt:
        PyErr_SetInterrupt()        # interrupts the code that runs next instead


cdef void note_rejected(Fusion self) noexcept:
    global num_rejected
    num_rejected += not self.refused
    self.refused = self.news = True
    self.cached = False


cdef int abandon(Recording* script) except -1:
    cdef Fusion fusion = <Fusion>script.fusion
    fusion.abandoned = True
    Py_CLEAR(script.fusion)
    return remove_fused(fusion)


cdef void abandon_all(Recording* scripts) noexcept:
    cdef Recording* each = scripts
    while each != NULL:
        if each.fusion != NULL and not each.busy:
            try:
                abandon(each)
            except Exception:       # no memory: it leaves the cache as others do
                pass
        each = each.next


cdef int add_extent(Extents* extents, size_t start, size_t size) except -1:
    """Add a part; one that follows the last one is joined to that."""
    if size == 0:
        return 0
    if extents.count and extents.items[extents.count - 1].start \
            + extents.items[extents.count - 1].size == start:
        extents.items[extents.count - 1].size += size
        return 0
    if extents.count == extents.room:
        extents.items = <Extent*>reallocate(
            extents.items, (2 * extents.room + 16) * sizeof(Extent))
        extents.room = 2 * extents.room + 16
    extents.items[extents.count].start, extents.items[extents.count].size = start, size
    extents.count += 1
    return 0


cdef int add_transfer(Transfers* transfers, size_t source, size_t target, size_t size) except -1:
    if transfers.count == transfers.room:
        transfers.items = <Transfer*>reallocate(
            transfers.items, (2 * transfers.room + 16) * sizeof(Transfer))
        transfers.room = 2 * transfers.room + 16
    transfers.items[transfers.count] = Transfer(source, target, size)
    transfers.count += 1
    return 0


cdef int create_events(Fusion self) except -1:
    """Create the events of the launches that are timed."""
    cdef CUresult result = CUDA_SUCCESS
    cdef int i, entered
    self.trials, self.judged = TRIALS, True
    self.least[0] = self.least[1] = NEVER
    if not (timed if timed is not None else not is_emulated()):
        return 0
    entered = enter(self.stream.ordinal, self.epoch, b"cuEventCreate")
    for i in range(2 * TRIALS):
        if result == CUDA_SUCCESS:
            result = cu.cuEventCreate(&self.events[i], 0)
    leave(self.stream.ordinal, entered, result, b"cuEventCreate")
    self.trials, self.judged = 0, False
    return 0


cdef void destroy_events(Fusion self) noexcept:
    cdef int i, entered = enter_quietly(self.stream.ordinal, self.epoch)
    for i in range(2 * TRIALS):
        if self.events[i] != NULL and entered >= 0:
            cu.cuEventDestroy(self.events[i])
        self.events[i] = NULL
    leave_quietly(entered)


cdef int append(Recording* recording, const Operation* operation) except -1:
    recordings.reserve(recording, operation.param_bytes, recording.num_edges - recording.open_edge)
    recordings.append(recording, operation, 0)
    return 0


cdef int add_original(Fusion self, int index) except -1:
    """Append a node of the script."""
    cdef Recording* fused = self.recording
    cdef Node* node = &self.original.nodes[index]
    cdef Operation operation
    memset(&operation, 0, sizeof(operation))
    operation.kind, operation.flags, operation.cluster = node.kind, node.flags, node.cluster
    operation.function, operation.serial = node.function, node.serial
    operation.layout, operation.geometry = node.layout, &self.original.geometry[index]
    operation.params = self.original.blob + node.params
    operation.param_bytes = node.param_bytes
    append(fused, &operation)
    self.held_.append([index])
    add_transfer(&self.params, node.params, fused.nodes[fused.num_nodes - 1].params,
                 node.param_bytes)
    return add_transfer(&self.geometry, index * sizeof(Geometry),
                        (fused.num_nodes - 1) * sizeof(Geometry), sizeof(Geometry))


cdef int make_room(Fusion self, list kernels) except -1:
    """Allocate what `add_kernel` fills for all kernels."""
    cdef size_t addresses = sum([len(each[7]) for each in kernels])
    cdef size_t equal = sum([len(address[4]) for each in kernels for address in each[7]])
    cdef size_t unwritten = sum([len(each[8]) for each in kernels])
    self.alignments = <Alignment*>allocate_zeroed(addresses * sizeof(Alignment))
    self.pairs = <Pair*>allocate_zeroed(equal * sizeof(Pair))
    self.unwritten = <Unwritten*>allocate_zeroed(unwritten * sizeof(Unwritten))
    return 0


cdef Py_ssize_t next_reader(Fusion self, int index, int written, tuple kernel) except -2:
    """Return the offset of the next use, by a node that is not in the same kernel, of the memory
    that a node's use writes; -1: there is none, or it overwrites all of that memory."""
    cdef const Recording* original = self.original
    cdef const Use* use
    cdef int node, u
    cdef bint overwritten = False
    for node in range(index + 1, original.num_nodes):
        if node in kernel:
            continue
        for u in range(original.nodes[node].first_use, use_end(original, node)):
            use = &original.uses[u]
            if use.block == original.uses[written].block:
                if use.access != OVERWRITE:
                    return u * sizeof(Use)
                overwritten = True
        if overwritten:
            return -1
    return -1


cdef int add_kernel(Fusion self, tuple unit, dict fixed) except -1:
    """Append a fused kernel. Add, for each of its nodes, the parts that may change to `fixed`."""
    cdef LoadedFunction function
    cdef bytes params
    cdef Operation operation
    cdef Geometry geometry
    cdef size_t start, own
    cdef int node, u
    function, params, grid, block, smem, nodes, numbers, addresses, unwritten = unit
    allow_smem(function, smem)
    if <Py_ssize_t>function.layout.nbytes != len(params):
        raise ValueError(f"{function.name}: {len(params)} bytes of parameters, expected "
                         f"{function.layout.nbytes}")
    memset(&operation, 0, sizeof(operation))
    memset(&geometry, 0, sizeof(geometry))
    geometry.grid, geometry.block = grid, block
    geometry.smem = smem
    operation.kind = KERNEL
    operation.flags = PROGRAMMATIC if function.programmatic else 0
    operation.function, operation.serial = function.handle, function.serial
    operation.layout, operation.geometry = &function.layout, &geometry
    operation.params, operation.param_bytes = <const char*>params, function.layout.nbytes
    append(self.recording, &operation)
    start = self.recording.nodes[self.recording.num_nodes - 1].params
    for node in nodes:
        fixed[node] = set()
    for node, source, target, size in numbers:
        fixed[node].add((source, size))
        add_transfer(&self.params, self.original.nodes[node].params + <size_t>source,
                     start + <size_t>target, size)
    for node, source, target, mask, equal in addresses:
        own = self.original.nodes[node].params + <size_t>source
        fixed[node].add((source, sizeof(CUdeviceptr)))
        add_transfer(&self.params, own, start + <size_t>target, sizeof(CUdeviceptr))
        self.alignments[self.num_alignments] = Alignment(own, mask)
        self.num_alignments += 1
        for other, word in equal:
            fixed[other].add((word, sizeof(CUdeviceptr)))
            self.pairs[self.num_pairs] = Pair(
                own, self.original.nodes[<int>other].params + <size_t>word)
            self.num_pairs += 1
    for node in unwritten:
        for u in range(self.original.nodes[node].first_use, use_end(self.original, node)):
            if self.original.uses[u].access != READ:
                self.unwritten[self.num_unwritten] = Unwritten(
                    u * sizeof(Use), next_reader(self, node, u, nodes))
                self.num_unwritten += 1
    self.functions.append(function)
    self.held_.append(list(nodes))
    self.num_fused += len(nodes)
    return 0


cdef int compare_node(Fusion self, int index, set varying) except -1:
    """Have the parameters of a fused node compared, but for the parts that vary, and its
    geometry."""
    cdef const Node* node = &self.original.nodes[index]
    cdef size_t start = node.params
    cdef size_t end = (node.params + node.param_bytes + 15) & ~<size_t>15   # zeros follow
    for offset, size in sorted(varying):
        add_extent(&self.equal_params, start, node.params + <size_t>offset - start)
        start = node.params + <size_t>offset + <size_t>size
    add_extent(&self.equal_params, start, end - start)
    return add_extent(&self.equal_geometry, index * sizeof(Geometry), sizeof(Geometry))


cdef class Fusion(Execs):
    """A batch that was launched often, for the thread that compiles it, and its fused plan."""

    def __dealloc__(self):
        self.drop()
        recordings.destroy(self.original)
        recordings.destroy(self.recording)
        free(self.memory)
        free(self.patched)
        free(self.equal_params.items)
        free(self.equal_geometry.items)
        free(self.params.items)
        free(self.geometry.items)
        free(self.pairs)
        free(self.alignments)
        free(self.unwritten)

    cdef size_t held(self) noexcept:
        return executables.bytes_of(self.exec.num_nodes) if self.exec.exec != NULL else 0

    cdef void drop(self) noexcept:
        cdef Executable exec = self.exec
        memset(&self.exec, 0, sizeof(Executable))
        executables.destroy(&exec)
        destroy_events(self)
        self.code = self.functions = None

    @property
    def device(self):
        """The Device that the batch runs on."""
        return Device(self.stream.ordinal)

    @property
    def wanted(self):
        """Whether a fused plan would be launched: the script is kept, and its device not reset."""
        return not self.abandoned and contexts[self.stream.ordinal].epoch == self.epoch

    def describe(self):
        """Return a tuple for each node of the script: the serial of its kernel, or None if it is no
        plain kernel; its parameters, grid, block and bytes of dynamic shared memory; and for each
        of its uses a tuple ``(block, generation, access, dead, address, size)``, the last two of
        the block's memory at the launch. `access` is 0 for a read, 1 for a write of a part of the
        block, 2 for a write of all of it."""
        cdef const Recording* original = self.original
        cdef const UsedMemory* memory
        cdef const Node* node
        cdef Geometry* geometry
        cdef const Use* use
        cdef int i, u
        found = []
        for i in range(original.num_nodes):
            node, geometry = &original.nodes[i], &original.geometry[i]
            uses = []
            for u in range(node.first_use, use_end(original, i)):
                use, memory = &original.uses[u], &self.memory[u]
                uses.append((<size_t>use.block, use.generation, <int>use.access,
                             bool(memory.dead), memory.address, memory.size))
            single = node.kind == KERNEL and not node.flags & (COOPERATIVE | CLUSTER)
            found.append((
                node.serial if single else None,
                (<const char*>original.blob + node.params)[:node.param_bytes],
                tuple(geometry.grid), tuple(geometry.block), geometry.smem, uses))
        return found

    @property
    def names(self):
        """A list of what each node of the script runs."""
        return self.names_[:]

    def reject(self, str reason):
        """Store why the batch is not fused."""
        global num_rejected
        num_rejected += self.reason is None
        self.reason = reason

    def complete(self, list units, unsigned long long bytes_saved, double seconds):
        """Store the fused plan, and let it be launched.

        Parameters
        ----------
        units : list
            Its nodes in order, each with the indices of those that it waits for: ``(node,
            sources)``, or ``(kernel, sources)``. A kernel is ``(function, params, grid, block,
            smem, nodes, numbers, addresses, unwritten)``: its `nodes` in order; `numbers` are
            ``(node, source, target, size)``, parts of their parameters that may change, and where
            they are in those of the kernel; `addresses` are ``(node, source, target, mask,
            equal)``, addresses that may change, with the bits that must be 0, and ``(node,
            source)`` of those that must be equal; `unwritten` are the nodes whose results it does
            not write.
        bytes_saved : int
            The bytes that a launch neither reads nor writes, and the plain nodes do.
        seconds : float
            How long it took to find and compile the kernels.

        Returns
        -------
        bool
            Whether it may be launched.
        """
        cdef Recording* fused
        cdef int i, source
        if self.recording != NULL or not self.wanted or self.code is None:
            return False
        fused = self.recording = recordings.new_recording()
        self.functions, self.held_ = [], []
        make_room(self, [unit for unit, _ in units if isinstance(unit, tuple)])
        fixed = {}
        for unit, sources in units:
            recordings.reserve_uses(fused, 0)
            for source in sources:
                recordings.reserve(fused, 0, len(sources) + 1)
                recordings.add_edge(fused, source)
            if isinstance(unit, tuple):
                add_kernel(self, unit, fixed)
            else:
                add_original(self, unit)
        for i in sorted(fixed):
            compare_node(self, i, fixed[i])
        self.patched = <char*>allocate_zeroed(fused.num_nodes)
        self.bytes_saved, self.seconds = bytes_saved, seconds
        create_events(self)
        self.code = self.code + [(<LoadedFunction>each).code for each in self.functions]
        return add_fused(self)

    def release(self):
        """Release the code that the batch runs, unless a fused plan may be launched."""
        if not self.cached:
            self.drop()

    @property
    def nodes(self):
        """A list of a ``PlanNode`` for each node of the fused plan."""
        from cyrt.graph.drawing import PlanNode

        cdef const Node* node
        cdef Geometry geometry
        cdef int i
        names = {(<LoadedFunction>each).serial: each.name for each in self.functions or ()}
        found = []
        for i, held in enumerate(self.held_):
            node = &self.recording.nodes[i]
            geometry = self.recording.geometry[i]
            cluster = None
            if node.flags & CLUSTER:
                cluster = node.cluster[0], node.cluster[1], node.cluster[2]
            found.append(PlanNode(
                name=names.get(node.serial, self.names_[held[0]]), kind=plans.kind_name(node.kind),
                grid=tuple(geometry.grid), block=tuple(geometry.block), smem=geometry.smem,
                cluster=cluster, cooperative=bool(node.flags & COOPERATIVE),
                patched=bool(self.patched[i]),
                operations=tuple([self.names_[each] for each in held]) if len(held) > 1 else ()))
        return found

    @property
    def edges(self):
        """A list of ``(source, target, programmatic)`` for each edge, whose ends are indices into
        ``nodes``."""
        cdef const Recording* fused = self.recording
        cdef int i, e
        return [(fused.edges[e].source, i, bool(fused.edges[e].programmatic))
                for i in range(fused.num_nodes)
                for e in range(edge_end(fused, i) - 1, fused.nodes[i].first_edge - 1, -1)]

    @property
    def rejected(self):
        """Whether the batch is known to stay as it was recorded."""
        return self.refused or self.reason is not None

    @property
    def outcome(self):
        """A text that says whether the batch is fused, and then how fast it is, or why not."""
        text = f"{self.original.num_nodes} operations"
        if self.reason is not None:
            return f"{text} are not fused: {self.reason}"
        if self.recording == NULL:
            return f"{text} are not compiled" + (", and come back no more" if self.abandoned
                                                 else " yet")
        ran = "are not fused" if self.refused else "ran" if self.abandoned else "run"
        text = (f"{text} {ran} as "
                f"{self.recording.num_nodes}, compiled in {self.seconds:.2f} s")
        if self.least[1] < NEVER:
            return f"{text}: {1e3 * self.least[0]:.1f} µs, before {1e3 * self.least[1]:.1f} µs"
        if self.refused:
            return f"{text}: the driver refuses the graph"
        return text if self.judged else f"{text}, and are being timed"

    def __repr__(self):
        return f"<cyrt.Fusion: {self.outcome}>"


cdef bint are_equal(const Extents* extents, const void* one, const void* other) noexcept:
    cdef const Extent* extent
    cdef int i
    for i in range(extents.count):
        extent = &extents.items[i]
        if memcmp(<const char*>one + extent.start, <const char*>other + extent.start,
                  extent.size) != 0:
            return False
    return True


cdef int move(const Transfers* transfers, void* target, const void* source) noexcept:
    """Copy all parts, and return how many of them differed."""
    cdef const Transfer* part
    cdef int i, count = 0
    for i in range(transfers.count):
        part = &transfers.items[i]
        if memcmp(<char*>target + part.target, <const char*>source + part.source, part.size) != 0:
            memcpy(<char*>target + part.target, <const char*>source + part.source, part.size)
            count += 1
    return count


cdef inline CUdeviceptr address_at(const Recording* script, size_t start) noexcept:
    cdef CUdeviceptr address
    memcpy(&address, script.blob + start, sizeof(address))
    return address


cdef bint has_addresses(Fusion fusion, const Recording* script) noexcept:
    """Return whether addresses that may change are as the kernels need them."""
    cdef int i
    for i in range(fusion.num_alignments):
        if address_at(script, fusion.alignments[i].start) & fusion.alignments[i].mask:
            return False
    for i in range(fusion.num_pairs):
        if address_at(script, fusion.pairs[i].one) != address_at(script, fusion.pairs[i].other):
            return False
    return True


cdef bint is_unchanged(Fusion fusion, const Recording* script) noexcept:
    """Return whether parameters and geometry are those of the fused plan's last launch."""
    return memcmp(script.blob, fusion.original.blob, script.blob_bytes) == 0 and memcmp(
        script.geometry, fusion.original.geometry, script.num_nodes * sizeof(Geometry)) == 0


cdef bint is_obsolete(Fusion fusion) noexcept:
    return fusion.refused or fusion.num_unfit >= MOST_UNFIT


cdef bint needs_unwritten(Fusion fusion, const Recording* recording) noexcept:
    cdef const char* uses = <const char*>recording.uses
    cdef const Use* use
    cdef const Unwritten* each = fusion.unwritten
    cdef const Unwritten* end = each + fusion.num_unwritten
    if not fusion.cached or fusion.original.num_uses != recording.num_uses:
        return False
    while each < end:
        use = <const Use*>(uses + each.use)
        if use.generation == (use.block.generation if each.next < 0
                              else (<const Use*>(uses + each.next)).generation):
            return True
        each += 1
    return False


cdef bint may_launch(Fusion fusion, const Recording* script, bint unfit) noexcept:
    """Return whether the fused plan does what the script does."""
    if not fusion.cached or fusion.original.num_nodes != script.num_nodes:
        return False
    if unfit:
        fusion.num_unfit += 1
        return False
    fusion.num_unfit = 0
    fusion.changed = not is_unchanged(fusion, script)
    return not fusion.changed or (
        are_equal(&fusion.equal_geometry, script.geometry, fusion.original.geometry)
        and are_equal(&fusion.equal_params, script.blob, fusion.original.blob)
        and has_addresses(fusion, script))


cdef bint prepare(Fusion self, bint changed) noexcept:
    """Make the exec equal to the fused plan. Return False if the driver refuses it."""
    cdef Outcome outcome
    cdef int ignored
    if self.exec.exec == NULL:
        return executables.instantiate(&self.exec, self.stream, self.recording,
                                       self.recording.num_nodes, False, &outcome)
    if not changed:
        memset(self.patched, 0, self.recording.num_nodes)
        return True
    executables.find_differing(&self.exec, self.recording, self.patched, &ignored)
    return executables.patch(&self.exec, self.recording, self.patched) == CUDA_SUCCESS


cdef int launch_fused(Fusion self, Recording* script, Plan plan, PlanStats* stats,
                      Outcome* outcome, const CUevent* around) noexcept:
    """Launch the fused plan of a script, and return how many parts of its parameters differed from
    those of the last launch; -1: the driver refuses it."""
    cdef CUresult result = CUDA_SUCCESS
    cdef int i, differing = 0, moved = 0
    cdef bint refused
    self.busy += 1
    if self.changed:
        differing = move(&self.params, self.recording.blob, script.blob)
        moved = move(&self.geometry, self.recording.geometry, script.geometry)
        memcpy(self.original.blob, script.blob, script.blob_bytes)
        memcpy(self.original.geometry, script.geometry, script.num_nodes * sizeof(Geometry))
    refused = not prepare(self, differing + moved != 0)
    if not refused:
        result = executables.launch(&self.exec, around)
        refused = result != CUDA_SUCCESS and not is_sticky(result)
    self.busy -= 1
    if refused:
        note_rejected(self)
        return -1
    outcome.result, outcome.call = result, b"cuGraphLaunch"
    plans.note_launch(plan, stats, outcome)
    if result == CUDA_SUCCESS:
        self.launches += 1
        for i in range(self.recording.num_nodes):
            stats.patched += self.patched[i]
        stats.fused_plans += 1
        stats.fused_nodes += self.num_fused
        stats.bytes_saved += self.bytes_saved
    return differing


cdef void judge(Fusion self) noexcept:
    """Compare the times, once all launches that are timed have ended."""
    cdef float elapsed = 0
    cdef CUstreamCaptureMode before
    cdef int i
    if event_status(self.events[2 * TRIALS - 1]) != CUDA_SUCCESS:
        return
    before = relax()
    for i in range(UNTIMED, TRIALS):
        if cu.cuEventElapsedTime(&elapsed, self.events[2 * i], self.events[2 * i + 1]) \
                == CUDA_SUCCESS:
            self.least[i & 1] = min(self.least[i & 1], elapsed)
    restore(before)
    self.judged = self.news = True
    if self.least[1] < NEVER and self.least[0] > FASTER * self.least[1]:
        note_rejected(self)


cdef int launch(Recording* script, Plan plan, bint unfit, PlanStats* stats,
                Outcome* outcome) noexcept:
    cdef Fusion self = <Fusion>script.fusion
    cdef unsigned long long before = stats.patched
    cdef const CUevent* around = NULL
    cdef int differing = -1
    cdef bint fused = may_launch(self, script, unfit)
    self.used = plans.clock
    if fused and self.trials < TRIALS:
        around = &self.events[2 * self.trials]
        fused = self.trials & 1 == 0
        self.trials += 1
    elif fused and not self.judged:
        judge(self)
        fused = self.cached
    if fused:
        differing = launch_fused(self, script, plan, stats, outcome, around)
    if differing < 0:
        plans.launch_plan(plan, script, stats, outcome, around)
        differing = <int>(stats.patched - before)
    return differing
