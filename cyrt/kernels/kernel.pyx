# cython: freethreading_compatible=False
"""A kernel: one function of device code, and ``kernel[grid, block](...)``."""

from functools import partial

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.string cimport memcpy, memset

from cyrt import settings
from cyrt.driver.table cimport MAX_DEVICES, cu
from cyrt.graph.encoder cimport encoder_of, record_kernel
from cyrt.graph.hazards cimport Use
from cyrt.kernels.arguments cimport (
    declared_memory, is_memory, pointer_argument, use_declared, wrong_device,
)
from cyrt.kernels.geometry cimport (
    cover, dimension, dynamic_smem, element_count, refuse_geometry, spread, triple,
)
from cyrt.kernels.packing cimport POINTER, WORD64, Param, code_of, pack_value
from cyrt.runtime.device cimport Device, contexts, current_ordinal
from cyrt.runtime.memory cimport Buffer, live_block
from cyrt.runtime.module cimport LoadedFunction, allow_smem, set_layout
from cyrt.runtime.state cimport Block, FOREIGN_MEMORY, MANAGED_MEMORY, PINNED_MEMORY
from cyrt.runtime.stream cimport Stream, current_stream

cdef enum:
    STACK_BYTES = 1024          # parameters that need no allocation
    STACK_PARAMS = 64

# CUDA's vector types: structs that hold no pointer.
POINTER_FREE = frozenset(
    f"{base}{count}" for count in (1, 2, 3, 4) for base in (
        "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "longlong",
        "ulonglong", "float", "double")) | {"dim3"}


@cython.freelist(16)
cdef class Launch:
    """A kernel with its grid and block; calling it launches."""

    def __init__(self):
        raise TypeError("a launch is made by kernel[grid, block]")

    def __call__(self, *args, reads=None, writes=None):
        """Put the kernel on the current stream.

        Parameters
        ----------
        *args
            One for each parameter: numbers for scalars, converted and range-checked as declared;
            for pointers Buffers, arrays of other libraries, ``cyrt.pointer(...)`` or None (a null
            pointer); bytes, NumPy structured scalars or arrays, or ctypes structures of exactly
            its size for structs.
        reads, writes : list or tuple of Buffers and arrays, optional
            What the kernel reaches without an argument, through pointers inside structs and
            behind ``T**``. Without them such a kernel is ordered against everything; with one of
            them, against its pointer arguments and what is listed.

        Raises
        ------
        TypeError, ValueError
            An argument does not fit its parameter (the message shows the signature), a Buffer is
            freed or of another device, or the geometry is more than the kernel or device allows.
        """
        launch(self, args, None if reads is None and writes is None
               else declared_memory(self.kernel.name, reads, writes))

    def __repr__(self):
        return (f"<{self.kernel.name}[{triple(self.geometry.grid)}, {triple(self.geometry.block)}"
                f"{f', {self.geometry.smem}' if self.geometry.smem else ''}]>")


cdef class Kernel:
    """One function of device code.

    ``kernel[grid, block](*args)`` and ``kernel[grid, block, smem](*args)`` put it on the current
    stream: ``grid`` and ``block`` are an int or a tuple of up to three, x first, ``smem`` is bytes
    of dynamic shared memory.

    Parameters
    ----------
    code : str, bytes or path
        CUDA C++ source; or PTX, or the bytes of a cubin or a fatbin; or a `pathlib.Path` to a
        file of one of these.
    name : str
        The function: its plain name, a name expression for a template (``"axpy<float>"``), or the
        mangled symbol.
    signature : str, optional
        A C++ declaration, for code whose parameters cannot be read (``extern "C"`` kernels given
        as bytes): ``"void saxpy(float a, const float* x, float* y, int n)"``.
    options, headers, define
        Of the compiler, as :class:`Module` takes them; for source only.
    pdl : bool
        Programmatic dependent launch: the kernel may start while the one it depends on still
        runs. It executes ``griddepcontrol.wait`` (``cudaGridDependencySynchronize()``) in every
        thread before it touches global memory. Needs compute capability 9.0; has no effect below,
        and with ``CYRT_PDL=0``.

    Raises
    ------
    CompileError
        The source does not compile, or the driver refuses the code.
    KeyError
        There is no such kernel in it.
    ValueError
        ``pdl=True`` for a kernel without the instruction, or for code that is no source or PTX;
        `options`, `headers` or `define` for code that is compiled already.
    """

    def __init__(self, code, str name not None, *, signature=None, options=(), headers=None,
                 define=None, bint pdl=False):
        from cyrt.kernels.module import Module

        if self.params != NULL:
            raise RuntimeError("a Kernel is initialised once")
        module = Module(code, [name], signatures=None if signature is None else {name: signature},
                        options=options, headers=headers, define=define)
        if pdl:
            module._check_programmatic(name)
        self.pdl = pdl
        adopt(self, module, name)

    def __dealloc__(self):
        PyMem_Free(self.params)

    @staticmethod
    def _of(module, str name):
        cdef Kernel self = Kernel.__new__(Kernel)
        adopt(self, module, name)
        return self

    @property
    def signature(self):
        """Its C++ declaration."""
        return str(self.signature_)

    def __getitem__(self, config):
        cdef Launch bound = Launch.__new__(Launch)
        cdef tuple parts
        if not isinstance(config, tuple) or not 2 <= len(<tuple>config) <= 3:
            raise TypeError(f"{self.name}[...]: expected [grid, block] or [grid, block, smem], got "
                            f"{config!r}")
        parts = <tuple>config
        dimension(parts[0], "grid", bound.geometry.grid)
        dimension(parts[1], "block", bound.geometry.block)
        bound.geometry.smem = dynamic_smem(parts[2]) if len(parts) == 3 else 0
        bound.kernel = self
        return bound

    cdef LoadedFunction load(self, int ordinal):
        cdef LoadedFunction function = self.loaded[ordinal]
        if function is None:
            function = self.module._function(self.symbol, ordinal)
            function.programmatic = self.pdl and may_be_programmatic(function)
            if self.params != NULL:
                set_layout(function, extents(self))
            self.loaded[ordinal] = function
        elif function.module.epoch != contexts[ordinal].epoch:
            raise RuntimeError(f"{self.name}: the kernel was loaded into a context of device "
                               f"{ordinal} that was reset")
        return function

    @property
    def registers(self):
        """32-bit registers a thread, on the current device."""
        return self.load(current_ordinal()).registers

    @property
    def shared_bytes(self):
        """Bytes of static shared memory a block."""
        return self.load(current_ordinal()).static_smem

    @property
    def local_bytes(self):
        """Bytes of local memory a thread: spilled registers and arrays."""
        return self.load(current_ordinal()).local_bytes

    @property
    def max_threads(self):
        """Most threads a block, as its registers allow on the current device."""
        return self.load(current_ordinal()).max_threads

    def suggested_block(self, smem=0):
        """``(block, grid)``: threads a block for the highest occupancy, and the fewest blocks that
        fill the current device."""
        return self.load(current_ordinal()).suggested_block(smem)

    def blocks_per_multiprocessor(self, block, smem=0):
        """How many blocks of so many threads run on a multiprocessor at once."""
        return self.load(current_ordinal()).blocks_per_multiprocessor(block, smem)

    def suggest(self, n, smem=0):
        """A grid and a block for n elements, one thread each.

        Parameters
        ----------
        n : int
            Elements; 0 gives a grid of 0, which is not to be launched.
        smem : int, optional
            Bytes of dynamic shared memory a block.

        Returns
        -------
        tuple of int
            ``(grid, block)``: the block that :meth:`tune` chose for such an n, else that of the
            highest occupancy, smaller where n would leave multiprocessors idle.

        Raises
        ------
        ValueError
            More elements than one grid has threads for.
        """
        n = element_count(self.name, n)
        return cover(self.name, n, self.block_for(n, dynamic_smem(smem)))

    def for_each(self, n, *args, smem=0, reads=None, writes=None):
        """Launch the kernel over n elements, one thread each; nothing for 0.

        Grid and block are :meth:`suggest`'s. The kernel is what compares its index with n.

        Parameters
        ----------
        n : int
            Elements.
        *args, reads, writes
            As in ``kernel[grid, block](*args, reads=..., writes=...)``.
        smem : int, optional
            Bytes of dynamic shared memory a block.

        Raises
        ------
        TypeError, ValueError
            As from a launch, or more elements than one grid has threads for.
        """
        grid, block = self.suggest(n, smem)
        if grid:
            self[grid, block, smem](*args, reads=reads, writes=writes)

    def tune(self, n, args, blocks=(32, 64, 128, 256, 512, 1024), *, smem=0, reads=None,
             writes=None):
        """Find the fastest block for n elements; :meth:`for_each` uses it from then on.

        Runs the kernel on these very arguments, some hundred times, and times it by events on the
        current stream. What it writes through its pointer arguments and `writes` is copied aside
        and put back before this returns; what it writes elsewhere (a variable of the module,
        memory not declared) is not.

        Parameters
        ----------
        n : int
            Elements, at least 1. The choice holds for all sizes with as many bits.
        args : sequence
            The kernel's arguments.
        blocks : iterable of int
            What to try; those over ``max_threads`` are left out.
        smem, reads, writes
            As in :meth:`for_each`.

        Returns
        -------
        int
            The block. It is kept for this code and this model of device in the cache folder
            (``CYRT_CACHE_DIR``), for later processes too.

        Raises
        ------
        TypeError, ValueError
            As from :meth:`for_each`, no block that the kernel allows, or n of 0.
        """
        from cyrt.kernels import tuning

        values = tuple(args)
        n = element_count(self.name, n)
        if n == 0:
            raise ValueError(f"{self.name}: n: expected at least 1 element to tune with")
        launches = {}
        for block in tuning.checked_blocks(self, blocks):
            grid, block = cover(self.name, n, block)
            launches[block] = partial(self[grid, block, smem], *values, reads=reads, writes=writes)
        block = tuning.fastest(launches, written_memory(self, values, reads, writes))
        self.blocks[current_ordinal(), n.bit_length(), smem] = block
        tuning.remember(self, n, smem, block)
        return block

    cdef object block_for(self, n, unsigned int smem):
        """The block for n elements on the current device, looked up once for each size class."""
        cdef int ordinal = current_ordinal()
        key = ordinal, n.bit_length(), smem
        block = self.blocks.get(key)
        if block is None:
            from cyrt.kernels import tuning

            block = tuning.remembered(self, n, smem) if n else None
            if block is None:
                block, _ = self.load(ordinal).suggested_block(smem)
                block = spread(block, (1 << n.bit_length()) // 2, ordinal)
            self.blocks[key] = block
        return block

    def __reduce__(self):
        raise TypeError("a Kernel is code loaded in this process and is not pickled; make it from "
                        "its source there")

    def __repr__(self):
        return f"<cyrt.Kernel {self.signature_}>"


cdef int adopt(Kernel self, module, str name) except -1:
    cdef int ordinal = current_ordinal()
    cdef LoadedFunction function
    cdef Param* param
    cdef int i = 0
    self.module = module
    self.name = name
    self.symbol = module._symbol(name)
    self.loaded = [None] * MAX_DEVICES
    self.blocks = {}
    function = self.load(ordinal)
    signature = module._signature(name, function)
    self.signature_ = signature
    self.num_params = len(signature.parameters)
    self.params = <Param*>PyMem_Malloc(max(1, self.num_params) * sizeof(Param))
    if self.params == NULL:
        raise MemoryError()
    for parameter, offset in zip(signature.parameters, signature.offsets):
        param = &self.params[i]
        param.code = code_of(parameter.code)
        param.offset = offset
        param.size = parameter.size
        param.writes = parameter.writes
        self.param_bytes = offset + parameter.size
        self.opaque = self.opaque or parameter.indirect or (
            parameter.code == "bytes" and parameter.size >= 8
            and parameter.type not in POINTER_FREE)
        i += 1
    set_layout(function, extents(self))
    return 0


cdef bint may_be_programmatic(LoadedFunction function) except *:
    """It is the loaded image that qualifies: compiled for 9.0 or above, on such a device."""
    return (settings.get("CYRT_PDL") and function.binary_version >= 90
            and Device(function.module.ordinal).compute_capability >= (9, 0)
            and cu.cuGraphAddTypedDependencies != NULL)


cdef list extents(Kernel self):
    """``(offset, size)`` of each parameter."""
    return [(self.params[i].offset, self.params[i].size) for i in range(self.num_params)]


cdef int bad_argument(Kernel kernel, int index, error) except -1:
    """The same error with the argument's place and the signature."""
    parameter = kernel.signature_.parameters[index]
    name = f" {parameter.name}" if parameter.name else ""
    raise type(error)(
        f"{kernel.name}: argument {index + 1} ({parameter.type}{name}): {error}\n"
        f"  {kernel.signature_}") from None


cdef list written_memory(Kernel kernel, tuple args, reads, writes):
    """The Buffers that a launch writes, as far as its arguments and `writes` tell."""
    found = [buffer for buffer, write in declared_memory(kernel.name, reads, writes) if write]
    for i, value in enumerate(args[:kernel.num_params]):
        if kernel.params[<int>i].writes and value is not None and is_memory(value):
            try:
                found.append(value if isinstance(value, Buffer) else pointer_argument(value, True))
            except (TypeError, ValueError) as error:
                bad_argument(kernel, i, error)
    return found


cdef int launch(Launch self, tuple args, list declared) except -1:
    cdef Kernel kernel = self.kernel
    cdef int count = kernel.num_params
    cdef int room = count + 1       # for uses: the arguments', and that of the module's variables
    cdef char[STACK_BYTES] stack_bytes
    cdef Use[STACK_PARAMS] stack_uses
    cdef char* blob = stack_bytes
    cdef Use* uses = stack_uses
    cdef void* heap = NULL
    if PyTuple_GET_SIZE(args) != count:
        raise TypeError(f"{kernel.name}: expected {count} argument{'' if count == 1 else 's'}, got "
                        f"{len(args)}\n  {kernel.signature_}")
    if declared is not None:
        room += len(declared)
    if kernel.param_bytes > STACK_BYTES or room > STACK_PARAMS:
        heap = PyMem_Malloc(room * sizeof(Use) + kernel.param_bytes)
        if heap == NULL:
            raise MemoryError()
        uses = <Use*>heap
        blob = <char*>heap + room * sizeof(Use)
    try:
        launch_packed(self, kernel, args, blob, uses, declared)
    finally:
        if heap != NULL:
            PyMem_Free(heap)
    return 0


cdef int launch_packed(Launch self, Kernel kernel, tuple args, char* blob, Use* uses,
                       list declared) except -1:
    """Nothing is ordered or recorded before every argument was found good."""
    cdef int ordinal = current_ordinal()
    cdef Stream current = current_stream(ordinal)
    cdef LoadedFunction function = <LoadedFunction>kernel.load(ordinal)
    cdef Param* param = kernel.params
    cdef PyObject* value
    cdef Buffer buffer
    cdef Block* block
    cdef list foreign = None
    cdef int i, num_uses = 0
    cdef unsigned long long threads
    memset(blob, 0, kernel.param_bytes)
    for i in range(kernel.num_params):
        value = <PyObject*>PyTuple_GET_ITEM(args, i)
        if param.code == POINTER or (param.code == WORD64 and is_memory(<object>value)):
            if isinstance(<object>value, Buffer):
                buffer = <Buffer>value
            elif <object>value is None:
                param += 1
                continue
            else:
                try:
                    buffer = pointer_argument(<object>value, param.writes)
                except (TypeError, ValueError) as error:
                    bad_argument(kernel, i, error)
            try:
                block = live_block(buffer)
            except ValueError as error:
                bad_argument(kernel, i, error)
            if block.ordinal != ordinal and block.kind != PINNED_MEMORY \
                    and block.kind != MANAGED_MEMORY:
                bad_argument(kernel, i, wrong_device(block, ordinal))
            memcpy(blob + param.offset, &buffer.address, 8)
            if block.kind == FOREIGN_MEMORY:
                foreign = [buffer] if foreign is None else foreign + [buffer]
            else:
                uses[num_uses].block = block
                uses[num_uses].write = param.writes
                num_uses += 1
        else:
            try:
                pack_value(param, <object>value, blob + param.offset)
            except (TypeError, ValueError) as error:
                bad_argument(kernel, i, error)
        param += 1
    if function.module.globals != NULL:
        uses[num_uses].block = function.module.globals
        uses[num_uses].write = function.module.writes_globals
        num_uses += 1
    threads = <unsigned long long>self.geometry.block[0] * self.geometry.block[1] \
        * self.geometry.block[2]
    if threads > <unsigned long long>function.max_threads or self.geometry.grid[1] > 65535 \
            or self.geometry.grid[2] > 65535 or self.geometry.grid[0] > 0x7fffffff \
            or self.geometry.block[2] > 64:
        refuse_geometry(kernel.name, function, &self.geometry)
    if <long>self.geometry.smem > function.dynamic_smem:
        allow_smem(function, self.geometry.smem)
    if declared is not None:
        foreign, num_uses = use_declared(kernel.name, declared, ordinal, foreign, uses, num_uses)
    return record_kernel(encoder_of(current.state), function, &self.geometry, blob, uses, num_uses,
                         foreign, kernel.opaque and declared is None, 0, NULL)
