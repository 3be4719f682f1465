# cython: freethreading_compatible=False
"""A kernel: one function of device code, and ``kernel[grid, block](...)``."""

cimport cython
from cpython.exc cimport PyErr_Clear, PyErr_ExceptionMatches, PyErr_Occurred
from cpython.float cimport PyFloat_CheckExact
from cpython.list cimport PyList_GET_ITEM
from cpython.long cimport PyLong_CheckExact
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.string cimport memcmp, memcpy, memset

from cyrt import settings
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, cu
from cyrt.graph.commit cimport Recorder
from cyrt.graph.hazards cimport note_writes
from cyrt.graph.recorder cimport (
    encoder_of, hold_tensors, is_deferred, launch_on_producer, launches_at_once, record_kernel,
)
from cyrt.graph.recording cimport (
    COOPERATIVE, LAUNCH, LAUNCH_ON_TENSORS, Node, Tensors, Use,
)
from cyrt.graph.replay_call cimport (
    geometry_of, hold_kernel, is_same_use, is_verified, next_call, note_call,
    num_uses_of, params_of, replay_next, replay_without_versions, uses_of,
)
from cyrt.jit.signature import elements
from cyrt.kernels import tuning
from cyrt.kernels.arguments cimport (
    check_array, declared_memory, is_doubtful, is_memory, is_plain, pointer_argument, set_checks,
    traits_of_type, use_declared, written_memory, wrong_device,
)
from cyrt.kernels.geometry cimport (
    check_cooperative, check_required, cover_grid, dimension, dynamic_smem, element_count, fits,
    meets, refuse_geometry, spread, triple,
)
from cyrt.kernels.packing cimport POINTER, WORD64, Param, code_of, pack_number, pack_value
from cyrt.kernels.vectorcall cimport (
    Py_TYPE, PySequence_Fast_ITEMS, PyVectorcall_NARGS, offer_vectorcall,
)
from cyrt.runtime.device cimport Device, contexts, current_ordinal, enter, leave
from cyrt.runtime.memory cimport Memory, array_type, block_of, live_block
from cyrt.runtime.dlpack cimport DLPackExchangeAPI, DLTensor, KDL_CUDA
from cyrt.runtime.module cimport LoadedFunction, allow_smem, set_layout
from cyrt.runtime.outside cimport contains, is_outside, outside
from cyrt.runtime.pool cimport is_own
from cyrt.runtime.producer cimport (
    Known, Producer, describe, known_memory, memory_on, producer_of, work_stream,
)
from cyrt.runtime.state cimport (
    DEVICE_MEMORY, FOREIGN_MEMORY, MANAGED_MEMORY, PINNED_MEMORY, READ, WRITE, Block, StreamState,
)
from cyrt.runtime.stream cimport current_state, is_chosen
from cyrt.runtime.stream_state cimport is_captured
from cyrt.runtime.taping cimport num_tapes, recording, refuse_followed

cdef enum:
    STACK_BYTES = 2048          # parameters that need no allocation
    STACK_PARAMS = 64
    RANGE_BYTES = 16            # the size of a UsableRange of cyrt/emulator/exec/ranges.hpp
    DECLARED_RANGES = 8         # those of `reads=` and `writes=`; the last one spans all others

# CUDA's vector types: structs that contain no pointer.
POINTER_FREE = frozenset(
    f"{base}{count}" for count in (1, 2, 3, 4) for base in (
        "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "longlong",
        "ulonglong", "float", "double")) | {"dim3"}


@cython.final
@cython.no_gc       # no member refers back to the object
@cython.freelist(16)
cdef class Launch:
    """A kernel with a grid and a block; a call launches it."""

    def __init__(self, *args, **keywords):
        raise TypeError("a launch is made by kernel[grid, block]")

    def __call__(self, *args, reads=None, writes=None, cluster=None):
        """Put the kernel on the current stream.

        Parameters
        ----------
        *args
            One argument for each parameter. A scalar parameter takes a number, which is converted
            to the declared type and must be in its range. A pointer takes an Array, a Buffer, an
            array of another library, ``cyrt.pointer(...)`` or None (a null pointer). A struct takes
            bytes, a NumPy structured scalar or array, or a ctypes structure, of exactly the
            struct's size.
        reads, writes : list or tuple of Buffers and arrays, optional
            Memory that the kernel uses and that is not one of its arguments: the memory behind
            pointers inside structs and behind ``T**``. Without both lists, a kernel with such
            parameters waits for all earlier work, and all later work waits for it. With one of
            them, its pointer arguments and the named memory determine its order.
        cluster : int or tuple of up to three ints, optional
            Blocks in a cluster; the grid must be a multiple of it. Clusters need compute capability
            9.0. A kernel with ``__cluster_dims__`` needs no argument.

        Raises
        ------
        TypeError
            An argument has a wrong type; the message shows the signature.
        ValueError
            An argument has a wrong layout or alignment (:class:`Kernel` has the rules), a Buffer
            is freed or is on another device, the geometry exceeds the limits of the kernel or
            the device, the grid is not a multiple of the cluster, or the device has no clusters.
        """
        if self.kernel is None:
            raise RuntimeError("the Launch was not made by kernel[grid, block]")
        if cluster is not None:
            from cyrt.kernels.encoder import current_encoder

            current_encoder().add_kernel(
                self.kernel, triple(self.geometry.grid), triple(self.geometry.block), args,
                smem=self.geometry.smem, cluster=cluster, reads=reads, writes=writes)
            return
        launch_any(self.kernel, &self.geometry, PySequence_Fast_ITEMS(args), len(args),
                   declared_memory(self.kernel.name, reads, writes))

    def __repr__(self):
        if self.kernel is None:
            return "<cyrt launch, not initialised>"
        return (f"<{self.kernel.name}[{triple(self.geometry.grid)}, {triple(self.geometry.block)}"
                f"{f', {self.geometry.smem}' if self.geometry.smem else ''}]>")


cdef object call(object self, PyObject** args, size_t count, PyObject* keywords):
    """The vectorcall function of a Launch."""
    cdef Py_ssize_t positional = PyVectorcall_NARGS(count)
    if keywords == NULL:
        launch((<Launch>self).kernel, &(<Launch>self).geometry, args, positional)
        return None
    return call_by_name(self, (<Launch>self).kernel.name, args, positional, <tuple>keywords,
                        "cooperative= is an argument of CommandEncoder.add_kernel("
                        "kernel, grid, block, args)")


cdef object call_by_name(object launch, str kernel, PyObject** args, Py_ssize_t positional,
                         tuple keywords, str advice):
    cdef Py_ssize_t i
    values = [<object>args[i] for i in range(positional)]
    named = {name: <object>args[positional + i] for i, name in enumerate(keywords)}
    allowed = ["reads=", "writes="] + ["cluster="] * isinstance(launch, Launch)
    for name in named:
        if f"{name}=" not in allowed:
            raise TypeError(f"{kernel}: a launch takes the kernel's arguments by position, and "
                            f"by name only {', '.join(allowed)}; not {name}=: {advice}")
    return launch.__call__(*values, **named)


cdef class Kernel:
    """Kernel(code, name, *, signature=None, options=(), headers=None, define=None, pdl=False,
           strided=False)\n--\n
    One function of device code.

    ``kernel[grid, block](*args)`` and ``kernel[grid, block, smem](*args)`` launch it on the current
    stream. ``grid`` and ``block`` are an int or a tuple of up to three ints, x first; ``smem`` is
    the number of bytes of dynamic shared memory.

    Parameters
    ----------
    code : str, bytes or path
        CUDA C++ source; or PTX, or the bytes of a cubin or a fatbin; or a `pathlib.Path` to a
        file of one of these.
    name : str
        The function: its unqualified name, a name expression for a template (``"axpy<float>"``), or
        the mangled symbol.
    signature : str, optional
        A C++ declaration, for code whose parameters cannot be read (``extern "C"`` kernels passed
        as bytes): ``"void saxpy(float a, const float* x, float* y, int n)"``.
    options, headers, define
        Options of the compiler, as for :class:`Module`; for source only.
    pdl : bool
        Whether the kernel takes part in programmatic dependent launch, so that it may start while
        the kernel on which it depends is still running. It must execute ``griddepcontrol.wait``
        (``cudaGridDependencySynchronize()``) in every thread before it accesses global memory. This
        needs compute capability 9.0; below that, and with ``CYRT_PDL=0``, it has no effect. If the
        kernel branches on a parameter before the wait, parameters are loaded while it waits, which
        saves 0.07 of 0.70 µs on an H200.
    strided : bool
        Whether the kernel computes addresses from strides, which it gets as separate arguments.
        Then it accepts arrays that are not C-contiguous, and the pointer is the address of the
        element whose indices are all 0.

    Attributes
    ----------
    name : str
        The name by which the kernel was looked up.
    module : Module
        The code that contains the kernel.

    Notes
    -----
    A launch checks its arrays, those of cyrt and of other libraries, against the kernel's C++
    declaration:

    ====================================  ==========================================================
    Parameter                             Arrays that it accepts
    ====================================  ==========================================================
    ``float*``, ``unsigned*``, ...        the same kind and size; ``long`` is ``long long``
    ``__half*``, ``__nv_bfloat16*``       float16; bfloat16
    ``bool*``                             bool, int8 and uint8
    ``float2*``, ``half2*``, ...          the element type, or complex numbers for pairs of floats;
                                          aligned; the size is a multiple of the vector's
    ``cuda::std::complex<float>*``, ...   complex numbers or their parts, with the same rule
    ``T**``                               64-bit integers
    ``void*``, ``char*``, one byte        every type
    structs and enumerations              every type
    ====================================  ==========================================================

    Arrays must be C-contiguous, unless the kernel is made with ``strided=True``. A broadcast view
    (a stride of 0 in a dimension of more than one element) is accepted only if, in addition, the
    pointer is ``const``. The element type of a Buffer is not known and not checked. Arguments are
    not checked if the code does not declare its parameters' types (PTX and cubins of ``extern "C"``
    kernels, without `signature`).

    Raises
    ------
    CompileError
        The source does not compile, or the driver refuses the code.
    KeyError
        The code has no such kernel.
    ValueError
        ``pdl=True`` for a kernel without the instruction, or for code that is neither source nor
        PTX; `options`, `headers` or `define` for code that is already compiled.

    Examples
    --------
    >>> import cyrt
    >>> add = cyrt.Kernel(
    ...     r'''extern "C" __global__ void add(const float* x, float* y, int n) {
    ...         int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...         if (i < n) y[i] += x[i];
    ...     }''',
    ...     "add",
    ... )
    >>> x, y = cyrt.ones(1000), cyrt.zeros(1000)
    >>> add[(1000 + 255) // 256, 256](x, y, 1000)  # grid, block
    >>> add.for_each(1000, x, y, 1000)  # grid and block by occupancy
    >>> y[:3]
    Array([2., 2., 2.], dtype=float32)
    """

    def __init__(self, code, name=None, *, signature=None, options=(), headers=None,
                 define=None, bint pdl=False, bint strided=False):
        from cyrt.kernels.module import Module

        if self.params != NULL:
            raise RuntimeError("a Kernel is initialised once")
        if not isinstance(name, str):
            raise TypeError("Kernel(code, name): name: expected a str, the kernel's name in the "
                            f"code, got {type(name).__name__}")
        module = Module(code, [name], signatures=None if signature is None else {name: signature},
                        options=options, headers=headers, define=define, strided=strided)
        if pdl:
            module._check_programmatic(name)
        self.pdl = pdl
        adopt(self, module, name)

    def __dealloc__(self):
        PyMem_Free(self.params)

    @staticmethod
    def _of(module, str name, int hidden=0, bint cooperative=False):
        cdef Kernel self = Kernel.__new__(Kernel)
        self.num_hidden, self.cooperative = hidden, cooperative
        adopt(self, module, name)
        return self

    @staticmethod
    def from_triton(function, *, signature=None, constants=None, num_warps=4, num_stages=3,
                    num_ctas=1):
        """Make a kernel of a function of Triton; it is launched as ``kernel[grid](*args)``.

        Parameters
        ----------
        function : function with ``@triton.jit``, or compiled kernel
            Triton compiles a function at the first launch for each specialisation, that is, for
            each combination of integers that are 1, and of integers and addresses that are
            multiples of 16. A kernel that Triton has compiled (the result of ``triton.compile``,
            ``warmup`` or a launch) is used as it is: its arguments must have the properties for
            which it was specialised.
        signature : mapping or str
            Triton's types of the arguments of launches, by the parameters' names or in their
            order: ``{"x": "*fp32", "n": "i32"}`` or ``"*fp32, i32"``. ``"*kfp32"`` or
            ``"const *fp32"`` is a pointer that is only read; other pointers are read and written.
            Compiled kernels contain their signature.
        constants : mapping, optional
            The values of all other parameters (``tl.constexpr``) that have no default, by name.
        num_warps, num_stages, num_ctas : int
            Triton's options. Compiled kernels contain them.

        Returns
        -------
        cyrt.kernels.triton.TritonKernel

        Raises
        ------
        TypeError
            `function` is neither of these (for an autotuned function, pass its ``fn``), or the
            signature has a type that cyrt cannot pass, such as a tensor descriptor.
        ValueError
            The signature and constants do not match the function, or the compiled kernel needs
            scratch memory or was compiled for another architecture.
        """
        from cyrt.kernels.triton import TritonKernel
        from cyrt.kernels.triton_code import source

        return TritonKernel(source(function, signature, constants, num_warps, num_stages,
                                   num_ctas))

    @property
    def signature(self):
        """The kernel's C++ declaration."""
        return str(self.signature_)

    def __getitem__(self, config):
        cdef Launch bound = Launch.__new__(Launch)
        if config is None or config is not self.config:
            read_geometry(self, config)
        bound.geometry = self.geometry
        bound.kernel = self
        bound.vectorcall = call
        return bound

    def __call__(self, *args, **keywords):
        raise TypeError(f"{self.name}: a launch is written kernel[grid, block](*args), for example "
                        f"{self.name}[8, 256](x, n); kernel.for_each(n, *args) chooses both")

    cdef LoadedFunction load(self, int ordinal):
        cdef LoadedFunction function = self.loaded[ordinal]
        if function is None or function.module.epoch != contexts[ordinal].epoch:
            function = self.module._function(self.symbol, ordinal)
            function.programmatic = self.pdl and may_be_programmatic(function)
            if self.params != NULL:
                lay_out(self, function)
            self.loaded[ordinal] = function
        return function

    @property
    def registers(self):
        """The number of 32-bit registers of a thread, on the current device."""
        return self.load(current_ordinal()).registers

    @property
    def shared_bytes(self):
        """The bytes of static shared memory of a block."""
        return self.load(current_ordinal()).static_smem

    @property
    def local_bytes(self):
        """The bytes of local memory of a thread, for spilled registers and arrays."""
        return self.load(current_ordinal()).local_bytes

    @property
    def max_threads(self):
        """The maximum number of threads of a block on the current device: registers limit it."""
        return self.load(current_ordinal()).max_threads

    def blocks_per_multiprocessor(self, block, smem=0):
        """Return how many blocks of the kernel a multiprocessor runs at the same time.

        Parameters
        ----------
        block : int
            The number of threads of a block.
        smem : int, optional
            Bytes of dynamic shared memory per block.

        Returns
        -------
        int
            The number of blocks, on the current device.

        Examples
        --------
        >>> import cyrt
        >>> code = 'extern "C" __global__ void bump(float* x) { x[threadIdx.x] += 1; }'
        >>> cyrt.Kernel(code, "bump").blocks_per_multiprocessor(128) > 0
        True
        """
        return self.load(current_ordinal()).blocks_per_multiprocessor(block, dynamic_smem(smem))

    def suggest(self, n, smem=0):
        """Return a grid and a block for n elements, one thread per element.

        Parameters
        ----------
        n : int
            Number of elements; 0 gives a grid of 0, which cannot be launched.
        smem : int, optional
            Bytes of dynamic shared memory per block.

        Returns
        -------
        tuple of int
            ``(grid, block)``. The block is the one that :meth:`tune` chose for such an n; otherwise
            the one with the highest occupancy, or a smaller one if n is so small that
            multiprocessors would be idle.

        Raises
        ------
        ValueError
            A grid cannot have as many threads as there are elements.

        Examples
        --------
        >>> import cyrt
        >>> code = 'extern "C" __global__ void bump(float* x) { x[threadIdx.x] += 1; }'
        >>> grid, block = cyrt.Kernel(code, "bump").suggest(1000)
        >>> grid * block >= 1000
        True
        """
        n = element_count(self.name, n)
        return cover_grid(self.name, n, self.block_for(n, dynamic_smem(smem)))

    def for_each(self, n, *args, smem=0, reads=None, writes=None):
        """Launch the kernel over n elements, one thread per element; do nothing for 0.

        Grid and block are those of :meth:`suggest`. There may be more threads than elements, so the
        kernel must compare its index with n.

        Parameters
        ----------
        n : int
            Number of elements.
        *args, reads, writes
            As in ``kernel[grid, block](*args, reads=..., writes=...)``.
        smem : int, optional
            Bytes of dynamic shared memory per block.

        Raises
        ------
        TypeError, ValueError
            The errors of a launch; or a grid cannot have as many threads as there are elements.
        """
        cdef Launch bound
        grid, block = self.suggest(n, smem)
        if grid:
            bound = self[grid, block, smem]
            declared = declared_memory(self.name, reads, writes)
            if declared is None:
                launch(self, &bound.geometry, PySequence_Fast_ITEMS(args), len(args))
            else:
                launch_any(self, &bound.geometry, PySequence_Fast_ITEMS(args), len(args),
                           declared)

    def tune(self, n, args, blocks=(32, 64, 128, 256, 512, 1024), *, smem=0, reads=None,
             writes=None):
        """Find the fastest block for n elements; :meth:`for_each` uses it in later calls.

        This runs the kernel on the arguments, about a hundred times, and measures it with events on
        the current stream. The memory that the kernel writes through its pointer arguments, and the
        memory in `writes`, are saved before the measurement and restored after it. Other memory
        that it writes (variables of the module, memory that is not declared) is not restored.

        Parameters
        ----------
        n : int
            Number of elements, at least 1. The choice is used for all n with as many bits.
        args : tuple or list
            The kernel's arguments.
        blocks : iterable of int
            The blocks to measure; those greater than ``max_threads`` are skipped.
        smem, reads, writes
            As in :meth:`for_each`.

        Returns
        -------
        int
            The fastest block. It is stored in the cache folder (``CYRT_CACHE_DIR``) for this code
            and this model of device, also for later processes.

        Raises
        ------
        TypeError, ValueError
            The errors of :meth:`for_each`; the kernel allows none of the blocks; or n is 0.

        Examples
        --------
        >>> import cyrt
        >>> code = '''extern "C" __global__ void bump(float* x, int n) {
        ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
        ...     if (i < n) x[i] += 1;
        ... }'''
        >>> bump, x = cyrt.Kernel(code, "bump"), cyrt.zeros(1000)
        >>> bump.tune(1000, (x, 1000), blocks=(64, 128)) in (64, 128)
        True
        >>> x[0]  # the values are restored
        Array(0., dtype=float32)
        """
        values, n = argument_tuple(self.name, args), element_count(self.name, n)
        written = written_memory(self.name, self.params, values[:self.num_params], reads, writes)
        block = tuning.choose(self, n, blocks, dynamic_smem(smem), written, values,
                              {"reads": reads, "writes": writes})
        self.blocks[current_ordinal(), n.bit_length(), smem] = block
        return block

    cdef object block_for(self, n, unsigned int smem):
        """The block for n elements on the current device, looked up once for each size class."""
        cdef int ordinal = current_ordinal()
        cdef LoadedFunction function
        key = ordinal, n.bit_length(), smem
        block = self.blocks.get(key)
        if block is None:
            function = self.load(ordinal)
            block = tuning.recall_block(self, n, smem) if n else None
            if function.block[0] != 0:
                block = function.block[0]
            elif block is None:
                block, _ = function.suggested_block(smem)
                block = spread(block, (1 << n.bit_length()) // 2, ordinal)
            self.blocks[key] = block
        return block

    def __reduce__(self):
        raise TypeError("a Kernel is code loaded in this process and is not pickled; make it from "
                        "its source there")

    def __repr__(self):
        return f"<cyrt.Kernel {self.signature_}>"


cdef Launch unbound = Launch.__new__(Launch)
offer_vectorcall(unbound, &unbound.vectorcall)


cdef int read_geometry(Kernel self, config) except -1:
    """Keep the last immutable object: in a loop with constants it is always the same one."""
    cdef Geometry geometry
    cdef bint constant
    if not isinstance(config, tuple) or not 2 <= len(<tuple>config) <= 3:
        advice = "; work goes to the stream of `with stream:`" if isinstance(config, tuple) \
            and any([hasattr(each, "__cuda_stream__") for each in config]) else ""
        raise TypeError(f"{self.name}[...]: expected [grid, block] or [grid, block, smem], got "
                        f"{config!r}{advice}")
    constant = dimension((<tuple>config)[0], "grid", geometry.grid)
    constant = dimension((<tuple>config)[1], "block", geometry.block) and constant
    geometry.smem = 0
    if len(<tuple>config) == 3:
        geometry.smem = dynamic_smem((<tuple>config)[2])
        constant = constant and PyLong_CheckExact((<tuple>config)[2])
    self.geometry, self.config = geometry, config if constant else None
    return 0


cdef int adopt(Kernel self, module, str name) except -1:
    cdef int ordinal = current_ordinal()
    cdef LoadedFunction function
    cdef Param* param
    cdef int i = 0
    self.module = module
    self.name = name
    self.symbol = module._symbol(name)
    self.loaded = [None] * MAX_DEVICES
    self.blocks, self.resident = {}, {}
    function = self.load(ordinal)
    signature = module._signature(name, function)
    self.num_params = len(signature.parameters) - self.num_hidden
    self.signature_ = signature.without_last(self.num_hidden)
    self.params = <Param*>PyMem_Malloc(max(1, len(signature.parameters)) * sizeof(Param))
    if self.params == NULL:
        raise MemoryError()
    for parameter, offset in zip(signature.parameters, signature.offsets):
        param = &self.params[i]
        param.code = code_of(parameter.code)
        param.offset = offset
        param.size = parameter.size
        param.writes = parameter.writes
        set_checks(param, elements(parameter), module._strided)
        self.param_bytes = offset + parameter.size
        self.opaque = self.opaque or parameter.indirect or (
            parameter.code in ("bytes", "unknown") and parameter.size >= 8
            and parameter.type not in POINTER_FREE)
        i += 1
    if cu.cyrtEmuSetRanges != NULL:
        self.range_offset = (self.param_bytes + 7) & ~7u
        self.num_ranges = self.num_params + DECLARED_RANGES
        self.param_bytes = self.range_offset + self.num_ranges * RANGE_BYTES
        self.unlimited = self.opaque or module._may_hold_pointers() or any(
            [each.holds_pointers for each in signature.parameters])
    lay_out(self, function)
    self.num_usual = -1 if self.opaque or self.unlimited or self.cooperative \
        or function.module.globals != NULL or self.num_params >= STACK_PARAMS \
        or self.param_bytes > STACK_BYTES else self.num_params
    return 0


cdef bint may_be_programmatic(LoadedFunction function) except *:
    """The loaded image decides: it must be compiled for 9.0 or above, and run on such a device."""
    return (settings.get("CYRT_PDL") and function.binary_version >= 90
            and Device(function.module.ordinal).compute_capability >= (9, 0)
            and cu.cuGraphAddTypedDependencies != NULL)


cdef int lay_out(Kernel self, LoadedFunction function) except -1:
    """Store the offset and size of each parameter, and of the ranges, which are one more parameter
    for the driver."""
    cdef list extents = [
        (self.params[i].offset, self.params[i].size)
        for i in range(self.num_params + self.num_hidden)]
    cdef bytes text
    cdef CUresult result
    cdef int entered
    if self.num_ranges and function.layout.offsets == NULL:
        extents.append((self.range_offset, self.num_ranges * RANGE_BYTES))
        text = "\n".join([str(each) for each in self.signature_.parameters]).encode()
        entered = enter(function.module.ordinal, function.module.epoch, b"cyrtEmuSetRanges")
        result = cu.cyrtEmuSetRanges(function.handle, self.num_ranges, text)
        leave(function.module.ordinal, entered, result, b"cyrtEmuSetRanges")
    set_layout(function, extents)
    return 0


cdef int bad_argument(Kernel kernel, int index, error) except -1:
    """The same error, with the argument's position and the signature."""
    parameter = kernel.signature_.parameters[index]
    name = f" {parameter.name}" if parameter.name else ""
    raise type(error)(
        f"{kernel.name}: argument {index + 1} ({parameter.type}{name}): {error}\n"
        f"  {kernel.signature_}") from None


cdef inline LoadedFunction loaded_on(Kernel kernel, int ordinal):
    cdef LoadedFunction function
    if kernel.loaded is not None:
        function = <LoadedFunction>PyList_GET_ITEM(kernel.loaded, ordinal)
        if function is not None and function.module.epoch == contexts[ordinal].epoch:
            return function
    return kernel.load(ordinal)


cdef inline bint pack_array(const Param* param, Memory array, int ordinal, char* blob,
                            Use* use) noexcept:
    """Pack an array of the device that certainly fits a pointer. Return False for other
    arguments."""
    cdef Block* block = block_of(array)
    if is_doubtful(param, array) or block == NULL or block.ordinal != ordinal \
            or block.epoch != contexts[ordinal].epoch or is_outside(block):
        return False
    memcpy(blob + param.offset, &array.address, 8)
    use.block, use.access = block, WRITE if param.writes else READ
    return True


cdef inline bint pack_usual(Kernel kernel, int ordinal, PyObject** args, char* blob, Use* uses,
                            int* num_uses) noexcept:
    """Pack arrays, ints and floats that need no further check. Return False if an argument does."""
    cdef const Param* param = kernel.params
    cdef PyObject* value
    cdef int i, count = 0
    memset(blob, 0, kernel.param_bytes)
    for i in range(kernel.num_params):
        value = args[i]
        if param.code != POINTER:
            if not pack_number(param, <object>value, blob + param.offset) or (
                    kernel.num_ranges and param.size == 8 and is_address(blob + param.offset)):
                return False
        elif <void*>Py_TYPE(<object>value) != array_type \
                or not pack_array(param, <Memory>value, ordinal, blob, &uses[count]):
            return False
        else:
            count += 1
        param += 1
    num_uses[0] = count
    return True


cdef inline Node* next_launch(Kernel kernel, const StreamState* stream,
                              const Geometry* geometry, unsigned long long key) noexcept:
    """Return the next node of a script if it is a launch of the kernel with this geometry, which
    was checked when it was recorded; else NULL."""
    cdef Node* node = next_call(stream, key)
    cdef PyObject* function
    if node == NULL or kernel.loaded is None:
        return NULL
    function = <PyObject*>PyList_GET_ITEM(kernel.loaded, stream.ordinal)
    if function == <PyObject*>None or node.serial != (<LoadedFunction>function).serial \
            or memcmp(geometry_of(stream), geometry, sizeof(Geometry)) != 0:
        return NULL
    return node


cdef inline bint pack_same_array(const Param* param, PyObject* value, char* blob, const Use* use,
                                 const StreamState* stream) noexcept:
    """Pack an array that certainly fits a pointer, and has the block of a script's use."""
    cdef Block* block
    if <void*>Py_TYPE(<object>value) != array_type or is_doubtful(param, <Memory>value):
        return False
    block = block_of(<Memory>value)
    if use.access != (WRITE if param.writes else READ) \
            or not is_same_use(use, block, stream) or not is_own(block, stream):
        return False
    memcpy(blob + param.offset, &(<Memory>value).address, 8)
    return True


cdef inline bint is_packed(Kernel kernel, StreamState* stream, char* blob, Use* uses, int num_uses,
                           int num_arrays) noexcept:
    """Return whether a launch whose arguments are packed may be replayed: it has as many arrays as
    the script's launch, and calls are not verified."""
    if num_arrays != num_uses:
        return False
    if kernel.num_ranges:
        add_ranges(kernel, blob, uses, num_uses)
    if is_verified(stream):
        note_call(stream)
        return False
    return True


cdef inline bint replay(Kernel kernel, StreamState* stream, const Geometry* geometry,
                        PyObject** args, bint taped) noexcept:
    """Replay the launch if it is the next call of a script, into which its arguments are packed.
    `taped`: a tape exists."""
    cdef Node* node = next_launch(kernel, stream, geometry, LAUNCH)
    cdef const Param* param = kernel.params
    cdef char* blob
    cdef Use* uses
    cdef int i, num_uses, count = 0
    if node == NULL:
        return False
    blob = <char*>params_of(stream, node)
    uses = uses_of(stream, node)
    num_uses = num_uses_of(stream, node)
    for i in range(kernel.num_params):
        if param.code != POINTER:
            if not pack_number(param, <object>args[i], blob + param.offset):
                return False
        else:
            if count == num_uses or not pack_same_array(param, args[i], blob, &uses[count],
                                                        stream):
                return False
            count += 1
        param += 1
    if not is_packed(kernel, stream, blob, uses, num_uses, count):
        return False
    hold_kernel(stream, <PyObject*>PyList_GET_ITEM(kernel.loaded, stream.ordinal))
    if taped:
        note_writes(uses, num_uses)
    replay_without_versions(stream, uses, num_uses)
    return True


cdef int refuse_arguments(Kernel kernel, PyObject** args, Py_ssize_t count) except -1:
    """Raise TypeError if a tape follows an argument, and does not record the call."""
    cdef Py_ssize_t i
    for i in range(count):
        if isinstance(<object>args[i], Memory):
            refuse_followed(<Memory>args[i], kernel.name)
    return 0


cdef bint replay_launch(Kernel kernel, Recorder encoder, const Geometry* geometry,
                        PyObject** args, Py_ssize_t count) noexcept:
    return encoder.state.encoder == <void*>encoder and count == kernel.num_usual \
        and not num_tapes and replay(kernel, encoder.state, geometry, args, False)


cdef inline int replay_or_launch(Kernel kernel, StreamState* stream, const Geometry* geometry,
                                 PyObject** args, Py_ssize_t count, bint taped) except -1:
    if count == kernel.num_usual:
        if replay(kernel, stream, geometry, args, taped):
            return 0
        if next_call(stream, LAUNCH_ON_TENSORS) != NULL:
            return borrow_and_replay(kernel, stream, geometry, args, count)
    return launch_usual(kernel, stream, geometry, args, count, NULL)


cdef int launch(Kernel kernel, const Geometry* geometry, PyObject** args,
                Py_ssize_t count) except -1:
    cdef StreamState* stream = current_state(current_ordinal())
    if num_tapes:
        return launch_taped(kernel, stream, geometry, args, count)
    return replay_or_launch(kernel, stream, geometry, args, count, False)


cdef int launch_borrowed(Kernel kernel, const Geometry* geometry, PyObject** args,
                         Py_ssize_t count, Borrowed* borrowed) except -1:
    cdef StreamState* stream
    if borrowed.count == 0:
        return launch(kernel, geometry, args, count)
    stream = current_state(current_ordinal())
    if recording:
        refuse_arguments(kernel, args, count)
    if count == kernel.num_usual and replay_on_tensors(kernel, stream, geometry, args, borrowed):
        return 0
    return launch_usual(kernel, stream, geometry, args, count, borrowed)


cdef inline bint begins_with_other(Kernel kernel, PyObject** args) noexcept:
    """Return whether the first argument is passed as a pointer, and is no array of cyrt."""
    return kernel.num_params != 0 and kernel.params[0].code == POINTER \
        and <void*>Py_TYPE(<object>args[0]) != array_type


cdef int launch_taped(Kernel kernel, StreamState* stream, const Geometry* geometry,
                      PyObject** args, Py_ssize_t count) except -1:
    """Launch a kernel while a tape exists."""
    if recording:
        refuse_arguments(kernel, args, count)
    return replay_or_launch(kernel, stream, geometry, args, count, True)


cdef int launch_usual(Kernel kernel, StreamState* stream, const Geometry* geometry,
                      PyObject** args, Py_ssize_t count, Borrowed* borrowed) except -1:
    cdef LoadedFunction function = loaded_on(kernel, stream.ordinal)
    cdef char[STACK_BYTES] blob
    cdef Use[STACK_PARAMS] uses
    cdef int num_uses
    if count != kernel.num_usual or not fits(geometry, function) \
            or function.restricted and not meets(geometry, function) \
            or <long>geometry.smem > function.dynamic_smem:
        return launch_any(kernel, geometry, args, count, None)
    if borrowed != NULL or begins_with_other(kernel, args) \
            or not pack_usual(kernel, stream.ordinal, args, blob, uses, &num_uses):
        return launch_on_tensors(kernel, encoder_of(stream), function, geometry, args, count,
                                 borrowed)
    if kernel.num_ranges:
        add_ranges(kernel, blob, uses, num_uses)
    return record_kernel(encoder_of(stream), function, geometry, blob, uses, num_uses, None,
                         False, 0, NULL, NULL)


cdef const Described* borrow_or_raise(PyObject* value, int ordinal,
                                      Borrowed* borrowed) except? NULL:
    cdef const Producer* producer = producer_of(value)
    cdef const DLPackExchangeAPI* api = producer.api
    cdef Described* described = &borrowed.described[borrowed.count]
    cdef DLTensor tensor
    if api == NULL or (borrowed.api != NULL and borrowed.api != api):
        return NULL
    describe(producer, value, &tensor)
    if tensor.device.device_type != KDL_CUDA or tensor.device.device_id != ordinal \
            or not is_plain(&tensor, &described.size):
        return NULL
    described.address = <CUdeviceptr>tensor.data + tensor.byte_offset
    described.traits = traits_of_type(&tensor.dtype)
    if described.traits == 0 or described.size == 0 or described.address == 0:
        return NULL
    if borrowed.api == NULL:
        borrowed.home = work_stream(api, ordinal)
        borrowed.api = api
    borrowed.objects[borrowed.count] = <void*>value
    borrowed.count += 1
    return described


cdef const Described* forget_error() except? NULL:
    if PyErr_Occurred() != NULL and PyErr_ExceptionMatches(Exception):
        PyErr_Clear()
    return NULL         # an exception that is still set is raised


cdef inline bint borrow_all(Kernel kernel, int ordinal, PyObject** args,
                            Borrowed* borrowed) except -1:
    """Add the arguments that are passed as pointers, except arrays of cyrt. Return False if one of
    them is no tensor that can be packed."""
    cdef int i
    begin_borrowing(borrowed)
    for i in range(kernel.num_params):
        if kernel.params[i].code == POINTER \
                and <void*>Py_TYPE(<object>args[i]) != array_type \
                and borrow(args[i], ordinal, borrowed) == NULL:
            return False
    return True


cdef inline bint is_accepted(const Param* param, const Described* tensor) noexcept:
    """Return whether the tensor certainly fits a pointer."""
    return ((tensor.traits & param.refused)
            | ((tensor.address | tensor.size) & param.coarse)) == 0


cdef bint pack_with_tensors(Kernel kernel, int ordinal, PyObject** args, const Borrowed* borrowed,
                            char* blob, Use* uses, int* num_uses, Known** memory,
                            int* held) except -1:
    """Do the same as `pack_usual` for arguments that include tensors of other libraries, whose
    `memory` the launch holds."""
    cdef const Param* param = kernel.params
    cdef const Described* tensor
    cdef PyObject* value
    cdef int i, count = 0
    memset(blob, 0, kernel.param_bytes)
    for i in range(kernel.num_params):
        value = args[i]
        if param.code != POINTER:
            if not pack_number(param, <object>value, blob + param.offset) or (
                    kernel.num_ranges and param.size == 8 and is_address(blob + param.offset)):
                return False
        elif <void*>Py_TYPE(<object>value) == array_type:
            if not pack_array(param, <Memory>value, ordinal, blob, &uses[count]):
                return False
            count += 1
        elif held[0] == borrowed.count or borrowed.objects[held[0]] != <void*>value:
            return False
        else:
            tensor = &borrowed.described[held[0]]
            memory[held[0]] = known_memory(ordinal, tensor.address, tensor.size, borrowed.home) \
                if is_accepted(param, tensor) else NULL
            if memory[held[0]] == NULL:
                return False
            memory[held[0]].holders += 1
            memcpy(blob + param.offset, &tensor.address, 8)
            uses[count].block = memory[held[0]].block
            uses[count].access = WRITE if param.writes else READ
            held[0] += 1
            count += 1
        param += 1
    num_uses[0] = count
    return True


cdef inline bint pack_same_tensor(const Param* param, const Described* tensor, char* blob,
                                  const Use* use, const Borrowed* borrowed,
                                  const StreamState* stream) noexcept:
    """Pack a tensor that certainly fits a pointer, and has the memory of a script's use."""
    cdef Block* block = use.block
    if not is_accepted(param, tensor) or use.access != (WRITE if param.writes else READ) \
            or block.address != tensor.address or block.size != tensor.size \
            or block.kind != FOREIGN_MEMORY or block.generation != use.generation \
            or block.hazard.stream != stream or block.poison:
        return False
    memcpy(blob + param.offset, &tensor.address, 8)
    block.home = borrowed.home
    return True


cdef bint replay_on_tensors(Kernel kernel, StreamState* stream, const Geometry* geometry,
                            PyObject** args, const Borrowed* borrowed) except -1:
    """Do the same as `replay` for arguments that include tensors of other libraries."""
    cdef list foreign = memory_on(borrowed.home)    # may create objects
    cdef Node* node = next_launch(kernel, stream, geometry, LAUNCH_ON_TENSORS)
    cdef const Param* param = kernel.params
    cdef Recorder encoder
    cdef Tensors tensors
    cdef char* blob
    cdef Use* uses
    cdef int i, num_uses, count = 0
    if node == NULL:
        return False
    encoder = <Recorder>stream.encoder
    if not is_deferred(encoder) or is_captured(borrowed.home):
        return False
    blob = <char*>params_of(stream, node)
    uses = uses_of(stream, node)
    num_uses = num_uses_of(stream, node)
    tensors.objects, tensors.count = <void**>borrowed.objects, 0
    for i in range(kernel.num_params):
        if param.code != POINTER:
            if not pack_number(param, <object>args[i], blob + param.offset):
                return False
        elif count == num_uses:
            return False
        elif tensors.count < borrowed.count \
                and borrowed.objects[tensors.count] == <void*>args[i]:
            if not pack_same_tensor(param, &borrowed.described[tensors.count], blob, &uses[count],
                                    borrowed, stream):
                return False
            tensors.count += 1
            count += 1
        elif not pack_same_array(param, args[i], blob, &uses[count], stream):
            return False
        else:
            count += 1
        param += 1
    if not is_packed(kernel, stream, blob, uses, num_uses, count) \
            or not hold_tensors(encoder, uses, num_uses, foreign, &tensors):
        return False
    hold_kernel(stream, <PyObject*>PyList_GET_ITEM(kernel.loaded, stream.ordinal))
    replay_next(stream, uses, num_uses)
    return True


cdef int borrow_and_replay(Kernel kernel, StreamState* stream, const Geometry* geometry,
                           PyObject** args, Py_ssize_t count) except -1:
    """Replay a launch on tensors if it is the next call of a script, and launch it otherwise."""
    cdef Borrowed borrowed
    if not borrow_all(kernel, stream.ordinal, args, &borrowed):
        return launch_any(kernel, geometry, args, count, None)
    if borrowed.count == 0:
        return launch_usual(kernel, stream, geometry, args, count, NULL)
    if replay_on_tensors(kernel, stream, geometry, args, &borrowed):
        return 0
    return launch_usual(kernel, stream, geometry, args, count, &borrowed)


cdef int launch_on_tensors(Kernel kernel, Recorder encoder, LoadedFunction function,
                           const Geometry* geometry, PyObject** args, Py_ssize_t count,
                           const Borrowed* borrowed) except -1:
    """Launch on arguments that may include tensors of other libraries: inside a block that defers
    them, with the batch; otherwise immediately, on the stream on which their library works."""
    cdef Borrowed own
    if borrowed == NULL:
        if not borrow_all(kernel, encoder.state.ordinal, args, &own) or own.count == 0:
            return launch_any(kernel, geometry, args, count, None)
        borrowed = &own
    return record_on_tensors(kernel, encoder, function, geometry, args, count, borrowed)


cdef int record_on_tensors(Kernel kernel, Recorder encoder, LoadedFunction function,
                           const Geometry* geometry, PyObject** args, Py_ssize_t count,
                           const Borrowed* borrowed) except -1:
    """Launch on arguments that include tensors, immediately or later."""
    cdef StreamState* home = borrowed.home
    cdef Tensors tensors
    cdef char[STACK_BYTES] blob
    cdef Use[STACK_PARAMS] uses
    cdef Known* memory[STACK_PARAMS]
    cdef int i, num_uses, held = 0
    tensors.objects, tensors.count = <void**>borrowed.objects, borrowed.count
    try:
        if pack_with_tensors(kernel, home.ordinal, args, borrowed, blob, uses, &num_uses, memory,
                             &held):
            if kernel.num_ranges:
                add_ranges(kernel, blob, uses, num_uses)
            if is_captured(home):
                return record_kernel(encoder, function, geometry, blob, uses, num_uses,
                                     memory_on(home), False, 0, NULL, NULL)
            if not is_chosen() and launches_at_once(encoder):
                return launch_on_producer(home, function, geometry, blob, uses, num_uses)
            return record_kernel(encoder, function, geometry, blob, uses, num_uses,
                                 memory_on(home), False, 0, NULL, NULL, LAUNCH_ON_TENSORS,
                                 &tensors)
    finally:
        for i in range(held):
            memory[i].holders -= 1
    return launch_any(kernel, geometry, args, count, None)


cdef int launch_any(Kernel kernel, const Geometry* geometry, PyObject** args, Py_ssize_t count,
                    list declared) except -1:
    cdef StreamState* stream = current_state(current_ordinal())
    cdef LoadedFunction function = loaded_on(kernel, stream.ordinal)
    cdef Arguments packed
    cdef list foreign
    allocate_arguments(kernel, count, len(declared or ()), &packed)
    try:
        check_launch(kernel, function, geometry)
        if kernel.cooperative:
            check_cooperative(kernel.name, function, geometry, kernel.resident)
        foreign = pack(kernel, function, stream.ordinal, args, &packed)
        if declared is not None:
            foreign, packed.num_uses = use_declared(kernel.name, declared, stream.ordinal, foreign,
                                                    packed.uses, packed.num_uses)
        if kernel.num_ranges:
            allow_declared(kernel, &packed, declared)
        return record_kernel(encoder_of(stream), function, geometry, packed.blob,
                             packed.uses, packed.num_uses, foreign,
                             kernel.opaque and declared is None,
                             COOPERATIVE if kernel.cooperative else 0, NULL, NULL)
    finally:
        PyMem_Free(packed.heap)


cdef tuple argument_tuple(str kernel, args):
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"{kernel}: args: expected a tuple of the kernel's arguments, got "
                        f"{type(args).__name__}")
    return tuple(args)


cdef int allocate_arguments(Kernel kernel, Py_ssize_t count, Py_ssize_t declared,
                            Arguments* packed) except -1:
    """Allocate heap memory if the stack is too small; the module's variables are one more use."""
    cdef Py_ssize_t uses = kernel.num_params + 1 + declared
    if count != kernel.num_params:
        raise TypeError(f"{kernel.name}: expected {kernel.num_params} "
                        f"argument{'' if kernel.num_params == 1 else 's'}, got {count}\n"
                        f"  {kernel.signature_}")
    packed.heap = PyMem_Malloc(uses * sizeof(Use) + kernel.param_bytes)
    if packed.heap == NULL:
        raise MemoryError()
    packed.ranges, packed.holds_address = 0, False
    packed.uses = <Use*>packed.heap
    packed.blob = <char*>packed.heap + uses * sizeof(Use)
    return 0


cdef int check_launch(Kernel kernel, LoadedFunction function, const Geometry* geometry) except -1:
    if not fits(geometry, function):
        refuse_geometry(kernel.name, function, geometry)
    if function.restricted:
        check_required(kernel.name, function, geometry)
    if <long>geometry.smem > function.dynamic_smem:
        allow_smem(function, geometry.smem)
    return 0


cdef list pack(Kernel kernel, LoadedFunction function, int ordinal, PyObject** args,
               Arguments* packed):
    """Write the parameters' bytes and uses; return the Buffers of foreign memory, or None.

    Nothing is ordered or recorded before every argument has been validated.
    """
    cdef Param* param = kernel.params
    cdef Use* use = packed.uses
    cdef PyObject* value
    cdef Memory buffer
    cdef Block* block
    cdef list foreign = None
    cdef bint foreign_code = False  # an argument's own code ran: it may have freed another argument
    cdef int i
    if recording:
        refuse_arguments(kernel, args, kernel.num_params)
    memset(packed.blob, 0, kernel.param_bytes)
    try:
        for i in range(kernel.num_params):
            value = args[i]
            if param.code == POINTER or (param.code == WORD64 and is_memory(<object>value)):
                if isinstance(<object>value, Memory):
                    buffer = <Memory>value
                    if is_doubtful(param, buffer):
                        check_array(param, buffer, None)
                elif <object>value is None:
                    param += 1
                    continue
                else:
                    buffer = pointer_argument(<object>value, param)
                    foreign_code = True
                block = live_block(buffer)
                if block.ordinal != ordinal and block.kind != PINNED_MEMORY \
                        and block.kind != MANAGED_MEMORY:
                    raise wrong_device(block, ordinal)
                memcpy(packed.blob + param.offset, &buffer.address, 8)
                if is_outside(block):
                    foreign = [buffer] if foreign is None else foreign + [buffer]
                use.block = block
                use.access = WRITE if param.writes else READ
                use += 1
            else:
                pack_value(param, <object>value, packed.blob + param.offset)
                if kernel.num_ranges and param.size == 8 and not packed.holds_address:
                    packed.holds_address = is_address(packed.blob + param.offset)
                if not (PyLong_CheckExact(<object>value) or PyFloat_CheckExact(<object>value)):
                    foreign_code = True
            param += 1
        for i in range(kernel.num_params if foreign_code else 0):
            if isinstance(<object>args[i], Memory):
                live_block(<Memory>args[i])
    except (TypeError, ValueError) as error:
        bad_argument(kernel, i, error)
    if function.module.globals != NULL:
        use.block = function.module.globals
        use.access = WRITE if function.module.writes_globals else READ
        if is_outside(use.block):
            foreign = [function.module.memory] if foreign is None \
                else foreign + [function.module.memory]
        use += 1
    packed.num_uses = <int>(use - packed.uses)
    if kernel.num_ranges:
        packed.ranges = add_ranges(kernel, packed.blob, packed.uses, packed.num_uses)
    return foreign


cdef bint is_address(const char* number) noexcept:
    """Return whether 8 bytes are the address of memory of the device."""
    cdef unsigned long long address
    cdef unsigned int kind = 0
    memcpy(&address, number, 8)
    return address > 1 << 20 and cu.cuPointerGetAttribute(
        &kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS \
        and kind == CU_MEMORYTYPE_DEVICE


cdef const Block* owner_of(const Block* block) noexcept:
    """Return the block of the pool of which other libraries' memory is a part, or that memory."""
    cdef const Block* other = outside[block.ordinal]
    while other != NULL:
        if other.kind == DEVICE_MEMORY and contains(other, block):
            return other
        other = other.next_outside
    return block


cdef void add_range(Kernel kernel, char* blob, int index, const Block* block) noexcept:
    """Allow accesses to the bytes that the block's owner asked for."""
    cdef unsigned long long* range
    cdef unsigned long long end
    if block.kind == FOREIGN_MEMORY:
        block = owner_of(block)
    end = block.address + (block.size if block.kind == FOREIGN_MEMORY else block.asked)
    range = <unsigned long long*>(blob + kernel.range_offset) + 2 * min(
        index, kernel.num_ranges - 1)
    if index < kernel.num_ranges:
        range[0], range[1] = block.address, end
    else:
        range[0], range[1] = min(range[0], block.address), max(range[1], end)


cdef int add_ranges(Kernel kernel, char* blob, const Use* uses, int count) noexcept:
    """Allow accesses to the arguments' memory. Return the number of ranges, which were zero."""
    cdef int i
    for i in range(count):
        add_range(kernel, blob, i, uses[i].block)
    return count


cdef void allow_declared(Kernel kernel, Arguments* packed, list declared) noexcept:
    cdef unsigned long long* range = <unsigned long long*>(packed.blob + kernel.range_offset)
    if declared is None:
        if kernel.unlimited or packed.holds_address:
            range[0], range[1] = 0, ~0ull
        return
    for buffer, _ in declared:
        add_range(kernel, packed.blob, packed.ranges, block_of(<Memory>buffer))
        packed.ranges += 1
