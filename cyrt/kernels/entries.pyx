# C-level functions only: see entries.pxd.
"""The table of loaded kernels, and recording one of them."""

from cpython.object cimport PyObject
from libc.stdlib cimport calloc

from cyrt import settings
from cyrt.driver.table cimport MAX_DEVICES, cu
from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recording cimport Use
from cyrt.graph.recorder cimport record_kernel
from cyrt.kernels import catalogue
from cyrt.runtime.device cimport Device, context_of, contexts
from cyrt.runtime.memory cimport Memory, live_block, overwriting
from cyrt.runtime.module cimport LoadedFunction, set_layout
from cyrt.runtime.pool cimport is_outside
from cyrt.runtime.state cimport MANAGED_MEMORY, PINNED_MEMORY, READ, WRITE, Block

cdef Entry* tables[MAX_DEVICES]
cdef int num_dtypes = len(DTYPES)

# By device, operation and type: the functions, which the tables point at, and their origin.
_loaded = {}
_op_codes = {name: code for code, name in enumerate(catalogue.OPS)}


cdef int op_code(str name) except -1:
    code = _op_codes.get(name)
    if code is None:
        raise ValueError(f"{name!r} is no built-in operation; there are {', '.join(_op_codes)}")
    return code


cdef int dtype_code(str name) except -1:
    return _dtype(name).code


cdef Entry* entry_of(int ordinal, int op, int dtype) except NULL:
    cdef Entry* entry
    if tables[ordinal] != NULL:
        entry = &tables[ordinal][op * num_dtypes + dtype]
        if entry.epoch == contexts[ordinal].epoch + 1:
            return entry
    return load_entry(ordinal, op, dtype)


cdef Entry* load_entry(int ordinal, int op, int dtype) except NULL:
    """The first use of an operation on a type, in this context of the device."""
    cdef unsigned int epoch = context_of(ordinal).epoch
    from cyrt.kernels.loading import load

    row = catalogue.row(catalogue.OPS[op], DTYPES[dtype].name)
    functions, origin = load(row, ordinal, epoch)
    prepare(row, functions, ordinal)
    return publish(ordinal, epoch, op, dtype, row, functions, origin)


cdef int prepare(row, list functions, int ordinal) except -1:
    """Check the kernels of a row, and tell them their parameters."""
    cdef LoadedFunction function
    if len(functions) > VARIANTS or len(row.inputs) >= MAX_OPERANDS:
        raise RuntimeError(f"{row.op}: {len(functions)} kernels of {len(row.inputs)} inputs, at "
                           f"most {VARIANTS} of {MAX_OPERANDS - 1} are provided for")
    programmatic = (settings.get("CYRT_PDL") and cu.cuGraphAddTypedDependencies != NULL
                    and Device(ordinal).compute_capability >= (9, 0))
    for each, nbytes in zip(functions, catalogue.param_bytes(row), strict=True):
        function = each
        told = function.parameters()
        if told is not None and told != [(0, nbytes)]:
            raise RuntimeError(f"{function.name}: its parameters are {told}, expected {nbytes} "
                               "bytes; install cyrt again")
        set_layout(function, [(0, nbytes)])
        # It is the loaded image that qualifies: compiled for 9.0 or above.
        function.programmatic = programmatic and function.binary_version >= 90
        function.ordered = True         # an operation may be several kernels
    return 0


cdef Entry* publish(int ordinal, unsigned int epoch, int op, int dtype, row, list functions,
                    str origin) except NULL:
    """Put the kernels into the table; of several threads the first one does."""
    cdef Entry* entry
    cdef int[MAX_OPERANDS] itemsizes
    cdef int i, widest = 2
    cdef tuple key = (ordinal, op, dtype), loaded = (functions, origin)
    for i, name in enumerate((row.output, *row.inputs)):
        itemsizes[i] = _dtype(name).itemsize
        widest = max(widest, itemsizes[i])
    if tables[ordinal] == NULL:
        tables[ordinal] = <Entry*>calloc(len(catalogue.OPS) * num_dtypes, sizeof(Entry))
        if tables[ordinal] == NULL:
            raise MemoryError()
    entry = &tables[ordinal][op * num_dtypes + dtype]
    # From the check on nothing is made and nothing dropped, so no other code runs: none sees half
    # an entry, or functions that are gone.
    if entry.epoch == epoch + 1:
        return entry
    _replaced = _loaded.get(key)        # of a context that was reset: dropped on return
    _loaded[key] = loaded
    for i in range(len(functions)):
        entry.functions[i] = <PyObject*>functions[i]
    entry.num_inputs = len(row.inputs)
    for i in range(entry.num_inputs + 1):
        entry.itemsizes[i] = itemsizes[i]
    entry.items = 16 // widest          # as kernels_cu/include/memory.cuh has it
    entry.shift = entry.items.bit_length() - 1
    entry.epoch = epoch + 1             # 0: nothing is loaded
    return entry


cdef str origin_of(int ordinal, int op, int dtype):
    entry_of(ordinal, op, dtype)
    return _loaded[ordinal, op, dtype][1]


cdef class Explained:
    """What would be launched."""

    def __cinit__(self):
        self.launches = []


cdef int record_entry(Recorder encoder, const Entry* entry, int variant, const Geometry* geometry,
                      const char* params, const Operand* operands, int count, unsigned int writes,
                      Explained explained) except -1:
    cdef Use[MAX_USES] uses
    cdef list foreign = None
    cdef Memory buffer
    cdef Block* block
    cdef int i, num_uses = 0
    if explained is not None:
        explained.launches.append((
            (<LoadedFunction>entry.functions[variant]).name, geometry.grid[0],
            (geometry.block[0], geometry.block[1])))
        return 0
    for i in range(count - 1, -1, -1):          # what is written last
        if operands[i].buffer == NULL:
            continue
        buffer = <Memory>operands[i].buffer
        block = live_block(buffer)
        if block.ordinal != encoder.state.ordinal and block.kind != PINNED_MEMORY \
                and block.kind != MANAGED_MEMORY:
            raise ValueError(f"a Buffer is of device {block.ordinal}, the operation runs on "
                             f"device {encoder.state.ordinal}; to_device() moves arrays")
        if is_outside(block):
            foreign = [buffer] if foreign is None else foreign + [buffer]
        uses[num_uses].block = block
        uses[num_uses].access = READ if not writes >> i & 1 \
            else overwriting(buffer) if writes & WHOLE and i == 0 else WRITE
        num_uses += 1
    return record_kernel(encoder, <LoadedFunction>entry.functions[variant], geometry, params, uses,
                         num_uses, foreign, False, 0, NULL)
