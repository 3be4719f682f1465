"""The table of loaded kernels."""

import importlib

from cpython.object cimport PyObject

from cyrt import settings
from cyrt.driver.table cimport cu
from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.builtin import catalogue
from cyrt.builtin.loading import load
from cyrt.builtin.row import BY_SIZE
from cyrt.runtime.allocation cimport allocate_zeroed
from cyrt.runtime.device cimport Device, context_of
from cyrt.runtime.module cimport LoadedFunction, set_layout

# The functions, which the tables point at, by device, operation and type.
_loaded = {}
# The row of each function that was loaded, the index of its variant and the origin of its code, by
# its serial number.
_rows = {}
if len(DTYPES) > MAX_DTYPES or len(catalogue.OPS) > MAX_OPS:
    raise RuntimeError(f"{len(catalogue.OPS)} operations on {len(DTYPES)} element types, at most "
                       f"{MAX_OPS} on {MAX_DTYPES} are provided for")
_op_codes = {name: code for code, name in enumerate(catalogue.OPS)}
for _size, _name in BY_SIZE.items():
    type_of_size[<int>_size] = <int>_dtype(_name).code


cdef int op_code(str name) except -1:
    code = _op_codes.get(name)
    if code is None:
        raise catalogue.unknown_operation(name)
    return code


cdef int dtype_code(str name) except -1:
    return _dtype(name).code


cdef Entry* load_entry(int ordinal, int op, int dtype) except NULL:
    """Load an operation on a type at its first use in this context of the device."""
    cdef unsigned int epoch = context_of(ordinal).epoch
    row = catalogue.row(catalogue.OPS[op], DTYPES[dtype].name)
    functions, origin = load(row, ordinal, epoch)
    prepare(row, functions, ordinal, origin)
    return publish(ordinal, epoch, op, dtype, row, functions)


cdef int prepare(row, list functions, int ordinal, str origin) except -1:
    """Check the kernels of a row, and set their parameter sizes and their origin."""
    if len(functions) > VARIANTS or len(row.inputs) >= MAX_OPERANDS:
        raise RuntimeError(f"{row.op}: {len(functions)} kernels of {len(row.inputs)} inputs, at "
                           f"most {VARIANTS} of {MAX_OPERANDS - 1} are provided for")
    sizes = importlib.import_module(f"cyrt.builtin.{catalogue.family(row)}").PARAM_BYTES
    if isinstance(sizes, dict):
        sizes = sizes[len(row.inputs)]
    for i, each in enumerate(functions):
        set_up(each, ordinal, sizes[min(i, len(sizes) - 1)], origin)
    return 0


def set_up(LoadedFunction function not None, int ordinal, nbytes, str origin not None):
    """Check that the parameter of a built-in kernel, a struct, has that size, and set its layout,
    its origin and how it may be launched.

    Raises
    ------
    RuntimeError
        The code has other parameters.
    """
    found = function.parameters()
    if found is not None and found != [(0, nbytes)]:
        raise RuntimeError(f"{function.name}: its parameters are {found}, expected {nbytes} "
                           "bytes; install cyrt again")
    set_layout(function, [(0, nbytes)])
    # The loaded image decides: it must be compiled for 9.0 or above.
    function.programmatic = (
        settings.get("CYRT_PDL") and cu.cuGraphAddTypedDependencies != NULL
        and Device(ordinal).compute_capability >= (9, 0) and function.binary_version >= 90)
    function.ordered = True         # an operation may use several kernels
    function.origin = origin


def row_of(serial):
    """Return the row of a built-in kernel, the index of its variant and the origin of its code, by
    the serial number of its function; None if that belongs to no built-in kernel."""
    return _rows.get(serial)


cdef Entry* publish(int ordinal, unsigned int epoch, int op, int dtype, row,
                    list functions) except NULL:
    """Put the kernels into the table; the first of several threads does it."""
    cdef Entry* entry
    cdef int[MAX_OPERANDS] itemsizes
    cdef int i, widest = 2
    cdef LoadedFunction function
    cdef tuple key = (ordinal, op, dtype)
    for i, name in enumerate((row.output, *row.inputs)):
        itemsizes[i] = _dtype(name).itemsize
        widest = max(widest, itemsizes[i])
    for i in range(len(functions)):
        function = <LoadedFunction>functions[i]
        _rows[function.serial] = row, i, function.origin
    if tables[ordinal] == NULL:
        tables[ordinal] = <Entry*>allocate_zeroed(
            len(catalogue.OPS) * MAX_DTYPES * sizeof(Entry))
    entry = &tables[ordinal][op * MAX_DTYPES + dtype]
    # No object is created or dropped after the check, so no other code runs: no thread sees an
    # incomplete entry, or functions that are released.
    if entry.epoch == epoch + 1:
        return entry
    _replaced = _loaded.get(key)        # from a context that was reset; dropped on return
    _loaded[key] = functions
    for i in range(len(functions)):
        entry.functions[i] = <PyObject*>functions[i]
    entry.num_inputs = len(row.inputs)
    for i in range(entry.num_inputs + 1):
        entry.itemsizes[i] = itemsizes[i]
    entry.items = 16 // widest          # equal to the definition in kernels_cu/include/memory.cuh
    entry.shift = entry.items.bit_length() - 1
    entry.epoch = epoch + 1             # 0: nothing is loaded
    return entry
