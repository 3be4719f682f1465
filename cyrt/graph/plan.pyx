"""Plans: the executable graphs of one topology, and their launches."""

from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from cyrt.driver.cuda cimport *
from cyrt.graph cimport chain, executable as executables
from cyrt.graph.executable cimport Contents, Executable, Execs, Outcome, SAMPLES
from cyrt.graph.recording cimport (
    CHILD, CLUSTER, COOPERATIVE, KERNEL, TEMPLATE, Geometry, Recording,
)
from cyrt.runtime.allocation cimport allocate_zeroed
from cyrt.runtime.module cimport Runnable
from cyrt.runtime.state cimport StreamState

_KINDS = ("kernel", "copy", "empty", "graph", "kernel")

cdef enum:
    BETTER = 2              # samples more that an earlier batch equals than the best exec does
    NEVER = SAMPLES + 1

cdef unsigned long long clock = 0
cdef size_t most_bytes = 0


cdef bint has_topology(Plan plan, const Recording* recording) noexcept:
    return (plan.topology_words == recording.topology_words
            and plan.blob_bytes == recording.blob_bytes
            and memcmp(plan.topology, recording.topology,
                       recording.topology_words * sizeof(unsigned int)) == 0)


cdef Plan new_plan(StreamState* stream, Recording* recording):
    """Return a plan for a copy of the topology. The caller checks the copy: finalizers may run
    while objects are created, and change the recording."""
    cdef Py_ssize_t count = recording.num_nodes         # read before a finalizer can change it
    cdef list names = [None] * count, code = [None] * count
    cdef Plan plan = Plan.__new__(Plan)
    cdef size_t topology_bytes = recording.topology_words * sizeof(unsigned int)
    cdef size_t geometry_bytes = recording.num_nodes * sizeof(Geometry)
    cdef void* owner
    cdef int i
    plan.stream = stream
    plan.topology_words = recording.topology_words
    plan.blob_bytes = recording.blob_bytes
    plan.num_nodes = recording.num_nodes
    plan.names_, plan.code = names, code
    plan.topology = <unsigned int*>allocate_zeroed(topology_bytes)
    plan.geometry = <Geometry*>allocate_zeroed(geometry_bytes)
    plan.patched_ = <char*>allocate_zeroed(recording.num_nodes)
    memcpy(plan.topology, recording.topology, topology_bytes)
    memcpy(plan.geometry, recording.geometry, geometry_bytes)
    for i in range(min(recording.num_nodes, <int>count)):
        owner = recording.owners[i]
        if owner == NULL and recording.nodes[i].kind in (KERNEL, TEMPLATE, CHILD):
            return None         # a finalizer has launched the recording, and it is a script now
        names[i] = node_name(recording.nodes[i].kind, None if owner == NULL else <object>owner)
        if owner != NULL:
            code[i] = (<Runnable>owner).code
    return plan


cdef list node_names(Recording* recording):
    cdef int i
    return [node_name(recording.nodes[i].kind,
                      <object>recording.owners[i] if recording.owners[i] != NULL
                      else None)
            for i in range(recording.num_nodes)]


cdef str kind_name(int kind):
    return _KINDS[kind]


cdef str node_name(int kind, owner):
    return owner.name if _KINDS[kind] == "kernel" else _KINDS[kind]


cdef class Plan(Execs):
    """The executable graphs of one topology, and the nodes of its last batch."""

    __module__ = "cyrt"

    def __dealloc__(self):
        self.drop()
        free(self.topology)
        free(self.geometry)
        free(self.patched_)
        free(self.variants)
        free(self.history)

    cdef size_t held(self) noexcept:
        return self.num_variants * executables.bytes_of(self.num_nodes)

    cdef void drop(self) noexcept:
        cdef Executable** variants = self.variants
        cdef int i, count = self.num_variants
        if self.last != NULL:           # `nodes` still shows the last batch
            memcpy(self.geometry, self.last.geometry, self.num_nodes * sizeof(Geometry))
        self.variants, self.last = NULL, NULL
        self.num_variants = self.variant_room = 0
        for i in range(count):
            executables.destroy(variants[i])
            free(variants[i])
        free(variants)
        self.code = None

    @property
    def names(self):
        """A list of what each node runs: a kernel's symbol, ``copy``, ``empty`` or ``graph``."""
        return self.names_[:]

    @property
    def nodes(self):
        """A list of a ``PlanNode`` for each operation, in the order of recording."""
        from cyrt.graph.drawing import PlanNode

        cdef const unsigned int* word = self.topology
        cdef Geometry geometry
        cdef unsigned int kind, flags, edges
        cdef int i
        found = []
        for i in range(self.num_nodes):
            kind, flags, edges = word[0] & 15, word[0] >> 4 & 255, word[0] >> 12
            word += 3
            cluster = None
            if flags & CLUSTER:
                cluster = word[0], word[1], word[2]
                word += 3
            word += edges
            # Copy it first: other threads may launch the plan while objects are created.
            geometry = self.geometry[i] if self.last == NULL else self.last.geometry[i]
            found.append(PlanNode(
                name=self.names_[i], kind=_KINDS[kind],
                grid=(geometry.grid[0], geometry.grid[1], geometry.grid[2]),
                block=(geometry.block[0], geometry.block[1], geometry.block[2]),
                smem=geometry.smem, cluster=cluster, cooperative=bool(flags & COOPERATIVE),
                patched=bool(self.patched_[i])))
        return found

    @property
    def edges(self):
        """A list of ``(source, target, programmatic)`` for each edge, whose ends are indices into
        ``nodes``."""
        cdef const unsigned int* word = self.topology
        cdef unsigned int head
        cdef int i, e
        found = []
        for i in range(self.num_nodes):
            head = word[0]
            word += 3
            if head >> 4 & CLUSTER:
                word += 3
            for e in range(<int>(head >> 12) - 1, -1, -1):      # the latest source is first
                found.append((word[e] >> 1, i, bool(word[e] & 1)))
            word += head >> 12
        return found

    @property
    def patched(self):
        """A list of the indices of the nodes that the last launch patched."""
        cdef int i
        return [i for i in range(self.num_nodes) if self.patched_[i]]

    @property
    def _graphs(self):
        """``CUgraph`` handles of the executable graphs, valid until the plan's next launch."""
        cdef int i
        return [<size_t>self.variants[i].graph for i in range(self.num_variants)]

    def to_dot(self):
        """Return the batch as Graphviz text."""
        from cyrt.graph.drawing import dot

        return dot(self.nodes, self.edges)

    def __repr__(self):
        return (f"<cyrt.Plan of {self.num_nodes} operations, launched {self.launches} times, "
                f"{self.num_variants} executable graphs>")


cdef Executable* new_variant(Plan plan) noexcept:
    """Allocate an exec and make room for it in the plan; NULL if memory is short."""
    cdef Executable** grown
    cdef int room
    if plan.num_variants == plan.variant_room:
        room = 2 * plan.variant_room + 2
        grown = <Executable**>realloc(plan.variants, room * sizeof(Executable*))
        if grown == NULL:
            return NULL
        plan.variants = grown
        plan.variant_room = room
    return <Executable*>calloc(1, sizeof(Executable))


cdef Executable* add_variant(Plan plan, Recording* recording, PlanStats* stats,
                             Outcome* outcome) noexcept:
    """Add an exec that equals the recording to the plan; NULL if the driver refuses it."""
    cdef Executable* target = new_variant(plan)
    memset(plan.patched_, 0, plan.num_nodes)
    plan.patching = False
    if target == NULL:
        outcome.result, outcome.call = CUDA_ERROR_OUT_OF_MEMORY, b"cuGraphInstantiateWithFlags"
        return NULL
    if not executables.instantiate(target, plan.stream, recording, recording.num_nodes, False,
                                   outcome):
        free(target)
        return NULL
    plan.variants[plan.num_variants] = target
    plan.num_variants += 1
    stats.instantiations += 1
    return target


cdef void drop_variant(Plan plan, Executable* target) noexcept:
    cdef int i, kept = 0
    for i in range(plan.num_variants):
        if plan.variants[i] != target:
            plan.variants[kept] = plan.variants[i]
            if plan.variants[kept].following == target:
                plan.variants[kept].following = NULL
            kept += 1
    plan.num_variants = kept
    plan.last = NULL
    executables.destroy(target)
    free(target)


cdef bint remember_geometry(Plan plan, unsigned long long h) noexcept:
    """Return whether the geometry was launched recently, and remember it as launched now."""
    cdef Geometries* known = &plan.geometries
    cdef unsigned int i
    cdef bint found = False
    for i in range(min(known.count, <unsigned int>GEOMETRIES)):
        found = found or known.hashes[i] == h
    known.hashes[known.count % GEOMETRIES] = h
    known.count += 1
    if known.count == 2 * GEOMETRIES:
        known.count = GEOMETRIES
    return found


cdef bint remember(Plan plan, const Contents* contents, int least) noexcept:
    """Return whether these contents, or contents of which at least `least` samples are equal, were
    launched recently. Remember these contents as launched now."""
    cdef unsigned int i
    cdef bint found = False
    if plan.history == NULL:
        plan.history = <Contents*>malloc(HISTORY * sizeof(Contents))
        if plan.history == NULL:
            return False
    for i in range(min(plan.remembered, <unsigned int>HISTORY)):
        if plan.history[i].hash == contents.hash or (
                least <= SAMPLES
                and executables.likeness(&plan.history[i], contents) >= least):
            found = True
            break
    plan.history[plan.remembered % HISTORY] = contents[0]
    plan.remembered += 1
    if plan.remembered == 2 * HISTORY:
        plan.remembered = HISTORY
    return found


cdef bint equals(Executable* target, Recording* recording) noexcept:
    return executables.equal_params(target, recording) \
        and executables.equal_geometry(target, recording)


cdef Executable* find_equal(Plan plan, Recording* recording, Contents* contents) noexcept:
    """Return the exec that equals the recording; else summarise the contents and return NULL."""
    cdef Executable* target = plan.last.following if plan.last != NULL else NULL
    cdef int i
    if target != NULL and equals(target, recording):    # the same successor as last time
        return target
    executables.summarise(recording, contents)
    for i in range(plan.num_variants):
        target = plan.variants[i]
        if target.contents.hash == contents.hash and equals(target, recording):
            return target
    return NULL


cdef Executable* most_similar_variant(Plan plan, Recording* recording, const Contents* contents,
                            int* most) noexcept:
    """Return the exec of equal geometry with the fewest nodes to patch, or NULL if none has equal
    geometry. Set `most` to its number of equal samples."""
    cdef Executable* target
    cdef Executable* alike = NULL
    cdef int i, nodes
    for i in range(plan.num_variants):
        target = plan.variants[i]
        if executables.equal_geometry(target, recording):
            nodes = executables.likeness(&target.contents, contents)
            if alike == NULL or nodes > most[0] or (nodes == most[0] and target.used < alike.used):
                alike = target
                most[0] = nodes
    return alike


cdef Executable* least_recently_used(Plan plan) noexcept:
    cdef Executable* target = NULL
    cdef int i
    for i in range(plan.num_variants):
        if target == NULL or plan.variants[i].used < target.used:
            target = plan.variants[i]
    return target


cdef Executable* choose_variant(Plan plan, Recording* recording, const Contents* contents,
                                int* likeness, int* differing, int* returning) noexcept:
    """Return the exec to patch, or NULL if none has equal geometry. Set `likeness` to its number of
    equal samples, and what `find_differing` sets.

    Samples do not tell between a few nodes more and a few less. So the exec that followed the last
    one before, or else the one that was launched longest ago, is preferred if it needs no more:
    batches that take turns keep their execs, though other values change every time.
    """
    cdef Executable* alike = most_similar_variant(plan, recording, contents, likeness)
    cdef Executable* next = plan.last.following if plan.last != NULL else NULL
    if alike == NULL:
        return NULL
    if next == NULL or next == plan.last:
        next = least_recently_used(plan)
    if next != alike and executables.equal_geometry(next, recording):
        differing[0] = executables.find_differing(next, recording, plan.patched_, returning)
        if executables.count_differing(alike, recording, differing[0]) >= differing[0]:
            likeness[0] = executables.likeness(&next.contents, contents)
            return next
    differing[0] = executables.find_differing(alike, recording, plan.patched_, returning)
    return alike


cdef bint has_room(Plan plan) noexcept:
    """Return whether the plan may have another exec; plans used longest ago are evicted for it."""
    return plan.num_variants < VARIANTS \
        or (plan.num_variants + 1) * executables.bytes_of(plan.num_nodes) <= most_bytes // 2


cdef bint pays(Plan plan, int differing) noexcept:
    """Return whether contents that were launched recently, and differ from the most similar exec in
    so many nodes, get an exec. Each beyond the first UNPAID has to cost no more than the patches of
    such contents since the last one was added."""
    if plan.num_variants >= UNPAID:
        plan.repeated += differing
        if plan.repeated < PATCHES_OF_A_NODE * plan.num_nodes:
            return False
    return has_room(plan)


cdef bint takes_turns(Plan plan, int differing, int returning) noexcept:
    """Return whether most nodes that differ return to what they were before the last patch: such
    batches take turns, and each gets its exec, though some nodes, such as that of a result that is
    kept, have other parameters every time."""
    return returning > 1 and 2 * returning >= differing and plan.num_variants < VARIANTS


cdef Executable* patched_variant(Plan plan, Executable* target, Recording* recording,
                                 PlanStats* stats, Outcome* outcome) noexcept:
    """Patch the flagged nodes, those that differ; replace the exec by a new one if the driver
    refuses."""
    cdef int i
    if executables.patch(target, recording, plan.patched_) != CUDA_SUCCESS:
        drop_variant(plan, target)
        return add_variant(plan, recording, stats, outcome)
    plan.patching = True
    for i in range(plan.num_nodes):
        stats.patched += plan.patched_[i]
    return target


cdef Executable* find_or_patch_exec(Plan plan, Recording* recording, PlanStats* stats,
                                    Outcome* outcome) noexcept:
    """Find, patch or add an exec that equals the recording; NULL if the driver refuses it."""
    global clock
    cdef Contents contents
    cdef Executable* target = find_equal(plan, recording, &contents)
    cdef Executable* alike
    cdef bint geometry_known, again
    cdef int likeness = 0, differing = 0, returning = 0
    clock += 1
    if target != NULL:
        target.used = clock
        stats.equal += 1
        if plan.patching:
            memset(plan.patched_, 0, plan.num_nodes)
            plan.patching = False
        return target
    alike = choose_variant(plan, recording, &contents, &likeness, &differing, &returning)
    geometry_known = remember_geometry(plan, contents.geometry)
    again = remember(plan, &contents, NEVER if alike == NULL
                     else max(SAMPLES // 2, likeness + BETTER)) \
        or (geometry_known and alike == NULL)
    if alike == NULL:
        alike = least_recently_used(plan)
        if alike != NULL:
            differing = executables.find_differing(alike, recording, plan.patched_, &returning)
    if alike == NULL or (again and pays(plan, differing)) \
            or takes_turns(plan, differing, returning):
        plan.repeated = 0
        target = add_variant(plan, recording, stats, outcome)
    else:
        target = patched_variant(plan, alike, recording, stats, outcome)
    if target != NULL:
        target.contents = contents
        target.used = clock
    return target


cdef void launch_plan(Plan plan, Recording* recording, PlanStats* stats, Outcome* outcome,
                      const CUevent* around) noexcept:
    cdef Contents contents
    cdef Executable* before = plan.last
    cdef Executable* target
    if plan.launches == 0 and plan.chains is not None:
        stats.chained += 1
        executables.summarise(recording, &contents)
        remember_geometry(plan, contents.geometry)
        remember(plan, &contents, NEVER)
        chain.run(plan.chains, recording, outcome)
        stats.patched += outcome.launched
        memset(plan.patched_, 0, plan.num_nodes)        # the chain's nodes are not the plan's
        plan.patching = True
    else:
        target = find_or_patch_exec(plan, recording, stats, outcome)
        if target == NULL:
            return
        if before != NULL and plan.last == before:      # else `before` was dropped
            before.following = target
        outcome.call = b"cuGraphLaunch"
        outcome.result = executables.launch(target, around)
        plan.last = target
    note_launch(plan, stats, outcome)


cdef void note_launch(Plan plan, PlanStats* stats, const Outcome* outcome) noexcept:
    if outcome.result == CUDA_SUCCESS:
        plan.launches += 1
        stats.launches += 1
