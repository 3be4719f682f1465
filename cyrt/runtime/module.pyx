"""Code on a device: modules, functions and their attributes."""

import _thread
import threading
import time

cimport cython
from libc.stdlib cimport free

from cyrt.driver import errors, table
from cyrt.driver.capture_mode cimport relax, restore
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, check, cu
from cyrt.runtime.allocation cimport allocate_zeroed
from cyrt.runtime.device cimport (
    Device, context_of, contexts, enter, leave, leave_quietly, ordinal_of, verify,
)
from cyrt.runtime import image as images
from cyrt.runtime.ending cimport destroy_when_idle, destroy_unused
from cyrt.runtime.memory cimport Buffer, live_block, new_variables_buffer, variable_buffer
from cyrt.runtime.reserve cimport Shortage, give_back, pools
from cyrt.runtime cimport waiting
from cyrt.runtime.waiting cimport wait_all

cdef extern from "cuda.h":
    CUfunction_attribute CU_FUNC_ATTRIBUTE_CACHE_MODE_CA
    CUfunction_attribute CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT

cdef enum:
    LOG_BYTES = 16384
    PLAIN_SMEM = 48 << 10       # bytes of shared memory that a block may use without opting in
    MOST_NAMES = 1024           # the most kernels of a module that function_names() lists


# A thread holds this lock while it loads code that several threads may request. There is only one
# lock, so that no two threads wait for each other. It is reentrant, since a finalizer or a signal
# handler that runs during a load may load code, too.
loading = threading.RLock()
_begun = set()          # the loads that some thread has begun: the thread and the key
_apart = {}             # key -> the Apart that loads it
cdef unsigned long long last_serial = 0
cdef Limits[MAX_DEVICES] limits         # zeros until they are queried


cdef unsigned long long new_serial() noexcept:
    global last_serial
    last_serial += 1
    return last_serial


cdef const Limits* limits_of(int ordinal) except NULL:
    """Return the limits of a device; they are queried once."""
    cdef Limits* found = &limits[ordinal]
    cdef int i
    if found.threads == 0:
        device = Device(ordinal)
        for i in range(3):
            found.grid[i] = device.attribute(f"MAX_GRID_DIM_{'XYZ'[i]}")
            found.block[i] = device.attribute(f"MAX_BLOCK_DIM_{'XYZ'[i]}")
        found.smem = device.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        found.multiprocessors = device.multiprocessors
        found.cooperative = device.attribute("COOPERATIVE_LAUNCH")
        found.clusters = device.attribute("CLUSTER_LAUNCH")
        found.threads = device.attribute("MAX_THREADS_PER_BLOCK")
    return found


class Apart:
    """A load on a thread of its own."""

    def __init__(self, load):
        self.load = load
        self.ended = False
        self.error = None
        _thread.start_new_thread(self.run, ())

    def run(self):
        try:
            self.load()
        except BaseException as error:
            self.error = error
        self.ended = True


def load_uninterrupted(key, load):
    """Call ``load()``, on a thread of its own if this thread has begun a load of that key and a
    signal handler or a finalizer interrupted it.

    A handler cannot wait for the load that it interrupted. If it began one on its own thread, the
    next signal would interrupt this, too, so that under a timer no load would end. No signal
    interrupts another thread, and handlers that interrupt the wait for it wait for it as well.

    Parameters
    ----------
    key : hashable
    load : callable
        It stores what it loads: a handler may run as soon as it has returned. It needs no lock
        that the interrupted load may hold.
    """
    mine = threading.get_ident(), key
    if mine not in _begun:
        _begun.add(mine)
        try:
            load()
        finally:
            _begun.discard(mine)
        return
    apart = _apart.get(key) or _apart.setdefault(key, Apart(load))
    while not apart.ended:
        time.sleep(0.0005)
    if _apart.get(key) is apart:
        _apart.pop(key, None)
    if apart.error is not None:
        raise apart.error


cdef class Code:
    pass


@cython.no_gc_clear         # the end of a kernel needs `code`
cdef class Runnable:
    pass


cdef Code new_code(object held):
    cdef Code code = Code.__new__(Code)
    code.held = held
    return code


cdef void drop_code(Code code) noexcept:
    global num_dropped
    if code is not None:
        code.dropped = True
        num_dropped += 1


cdef CUresult unload(size_t handle) noexcept nogil:
    cdef CUstreamCaptureMode before = relax()
    cdef CUresult result = cu.cuModuleUnload(<CUmodule>handle)
    restore(before)
    return result


cdef class LoadedModule:
    """A ``CUmodule`` made from PTX, cubin or fatbin bytes.

    Parameters
    ----------
    code : bytes
        The PTX text, or the cubin or fatbin.
    device : Device or int, optional
        Default: the current device.

    Raises
    ------
    CompileError
        The driver refuses the code; ``log`` is the output of its JIT compiler.
    """

    def __init__(self, bytes code not None, device=None):
        cdef int ordinal = ordinal_of(device)
        cdef unsigned int epoch = context_of(ordinal).epoch
        cdef char info[LOG_BYTES]
        cdef char error[LOG_BYTES]
        cdef CUjit_option options[4]
        cdef void* values[4]
        cdef bytes image = code + b"\0"     # the driver expects PTX text to end with a NUL
        cdef const char* start = image
        cdef CUmodule handle = NULL
        cdef CUstreamCaptureMode before
        cdef CUresult result
        cdef int entered
        cdef Shortage shortage
        if self.handle != NULL:
            raise RuntimeError("a LoadedModule is initialised once")
        info[0] = error[0] = 0
        options[0] = CU_JIT_INFO_LOG_BUFFER
        values[0] = info
        options[1] = CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES
        options[2] = CU_JIT_ERROR_LOG_BUFFER
        values[2] = error
        options[3] = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
        shortage.tries, shortage.size = 0, 0
        shortage.limited = shortage.collected = False
        destroy_unused()
        while True:
            shortage.given_back = pools[ordinal].given_back
            values[1] = values[3] = <void*><size_t>LOG_BYTES    # the driver overwrites them
            entered = enter(ordinal, epoch, b"cuModuleLoadDataEx")
            with nogil:
                before = relax()
                result = cu.cuModuleLoadDataEx(&handle, start, 4, options, values)
                restore(before)
            if result != CUDA_ERROR_OUT_OF_MEMORY:
                break
            leave_quietly(entered)
            if not give_back(ordinal, &shortage):
                check(result, b"cuModuleLoadDataEx", ordinal)
        if result != CUDA_SUCCESS and <int>result not in errors.STICKY:
            leave_quietly(entered)
            name, text = table.describe(<int>result)
            raise errors.CompileError("cuModuleLoadDataEx", <int>result, name, text,
                                      error.decode("utf-8", "replace").strip())
        leave(ordinal, entered, result, b"cuModuleLoadDataEx")
        if self.handle != NULL:         # another thread has initialised the object in between
            destroy_when_idle(ordinal, epoch, unload, <size_t>handle)
            raise RuntimeError("a LoadedModule is initialised once")
        self.handle, self.ordinal, self.epoch = handle, ordinal, epoch
        if b"vprintf" in code:
            waiting.printing = True
        self.required_blocks = images.required_blocks(code)
        self.variables = images.variables(code)
        if self.variables is None or self.variables:
            order_variables(self, self.variables is None or not all(self.variables.values()))

    def __dealloc__(self):
        if self.handle != NULL:
            destroy_when_idle(self.ordinal, self.epoch, unload, <size_t>self.handle)

    @property
    def is_current(self):
        """Whether the context exists that the code was loaded into: the device was not reset."""
        return self.epoch == contexts[self.ordinal].epoch

    cdef int live(self) except -1:
        if self.handle == NULL:
            raise RuntimeError("the LoadedModule was not initialised")
        return 0

    def function(self, str name not None):
        """Return the kernel of that (mangled) name.

        Raises
        ------
        KeyError
            The module has no kernel of that name.
        """
        cdef LoadedFunction function = LoadedFunction.__new__(LoadedFunction)
        cdef bytes encoded = name.encode()
        cdef const char* symbol = encoded
        cdef CUstreamCaptureMode before
        cdef CUresult result
        cdef int entered
        self.live()
        entered = enter(self.ordinal, self.epoch, b"cuModuleGetFunction")
        with nogil:             # a driver may load the code only now
            before = relax()
            result = cu.cuModuleGetFunction(&function.handle, self.handle, symbol)
            restore(before)
        if result == CUDA_ERROR_NOT_FOUND:
            leave_quietly(entered)
            raise KeyError(name)
        leave(self.ordinal, entered, result, b"cuModuleGetFunction")
        function.serial = new_serial()
        function.module = self
        function.code = new_code(self)
        function.name = name
        function.max_threads = function.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
        function.static_smem = function.attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
        function.dynamic_smem = PLAIN_SMEM - function.static_smem
        function.limits = limits_of(self.ordinal)
        if function.limits.clusters:
            function.cluster = [
                function.attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
                function.attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
                function.attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)]
        required = self.required_blocks.get(name)
        if required is not None:
            function.block = [required.size[0], required.size[1], required.size[2]]
            function.counts_clusters = required.counts_clusters
        function.restricted = function.cluster[0] != 0 or function.block[0] != 0
        return function

    def function_names(self):
        """Return the names of the kernels, or None if the driver (before 12.4) cannot list them."""
        cdef unsigned int count = 0
        cdef const char* texts[MOST_NAMES]
        cdef CUfunction handles[MOST_NAMES]
        cdef unsigned int i
        cdef CUresult result
        cdef int entered
        self.live()
        if (cu.cuModuleEnumerateFunctions == NULL or cu.cuFuncGetName == NULL
                or cu.cuModuleGetFunctionCount == NULL):
            return None
        entered = enter(self.ordinal, self.epoch, b"cuModuleEnumerateFunctions")
        with nogil:
            result = cu.cuModuleGetFunctionCount(&count, self.handle)
            if result == CUDA_SUCCESS:
                count = min(count, <unsigned int>MOST_NAMES)
                result = cu.cuModuleEnumerateFunctions(handles, count, self.handle)
            if result == CUDA_SUCCESS:
                for i in range(count):
                    if cu.cuFuncGetName(&texts[i], handles[i]) != CUDA_SUCCESS:
                        texts[i] = NULL
        leave(self.ordinal, entered, result, b"cuModuleEnumerateFunctions")
        return [texts[i].decode() for i in range(count) if texts[i] != NULL]

    def variable(self, str name not None):
        """Return the ``__device__`` or ``__constant__`` variable of that (mangled) name.

        Returns
        -------
        Buffer
            A view whose uses are ordered with the module's kernels; it keeps the module loaded.

        Raises
        ------
        KeyError
            The module has no variable of that name.
        """
        cdef CUdeviceptr address = 0
        cdef size_t size = 0
        cdef bytes encoded = name.encode()
        cdef const char* symbol = encoded
        cdef CUresult result
        cdef int entered
        self.live()
        entered = enter(self.ordinal, self.epoch, b"cuModuleGetGlobal")
        with nogil:
            result = cu.cuModuleGetGlobal(&address, &size, self.handle, symbol)
        if result == CUDA_ERROR_NOT_FOUND:
            leave_quietly(entered)
            raise KeyError(name)
        leave(self.ordinal, entered, result, b"cuModuleGetGlobal")
        if self.memory is None:         # images.variables() did not find the variable
            wait_all(self.ordinal)
            order_variables(self, True)
        return variable_buffer(self.memory, address, size, self)


cdef int order_variables(LoadedModule self, bint written) except -1:
    """Make every later launch of a kernel of the module a use of the module's variables."""
    cdef Buffer memory = new_variables_buffer(self.ordinal)
    if self.memory is None:         # else another thread was faster
        self.memory = memory
        self.globals = live_block(memory)
        self.writes_globals = written
    return 0


@cython.no_gc_clear
cdef class LoadedFunction(Runnable):
    """A ``CUfunction``, created by :meth:`LoadedModule.function`."""

    def __init__(self):
        raise TypeError("a LoadedFunction is made by LoadedModule.function()")

    def __dealloc__(self):
        drop_code(self.code)
        free(self.layout.offsets)

    cdef int live(self) except -1:
        if self.module is None:
            raise RuntimeError("the LoadedFunction was not made by LoadedModule.function()")
        return 0

    cdef int attribute(self, CUfunction_attribute which) except? -1:
        cdef int value = 0
        cdef CUresult result
        cdef int entered
        self.live()
        entered = enter(self.module.ordinal, self.module.epoch, b"cuFuncGetAttribute")
        with nogil:
            result = cu.cuFuncGetAttribute(&value, which, self.handle)
        leave(self.module.ordinal, entered, result, b"cuFuncGetAttribute")
        return value

    def attributes(self):
        """The driver's attributes of the function for which there is no property, by their
        names."""
        return {
            "const_size_bytes": self.attribute(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES),
            "ptx_version": self.attribute(CU_FUNC_ATTRIBUTE_PTX_VERSION),
            "binary_version": self.attribute(CU_FUNC_ATTRIBUTE_BINARY_VERSION),
            "cache_mode_ca": self.attribute(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA),
            "max_dynamic_shared_size_bytes": self.attribute(
                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
            "preferred_shared_memory_carveout": self.attribute(
                CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
        }

    @property
    def registers(self):
        """The number of 32-bit registers of a thread."""
        return self.attribute(CU_FUNC_ATTRIBUTE_NUM_REGS)

    @property
    def local_bytes(self):
        """The bytes of local memory of a thread."""
        return self.attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)

    @property
    def binary_version(self):
        """The architecture of the loaded code, 90 for compute capability 9.0."""
        return self.attribute(CU_FUNC_ATTRIBUTE_BINARY_VERSION)

    def parameters(self):
        """Return ``[(offset, size), ...]`` in bytes, or None with drivers before 12.4."""
        cdef size_t index, offset = 0, size = 0
        cdef CUresult result
        cdef int entered
        self.live()
        if cu.cuFuncGetParamInfo == NULL:
            return None
        found = []
        entered = enter(self.module.ordinal, self.module.epoch, b"cuFuncGetParamInfo")
        while True:
            index = len(found)
            with nogil:
                result = cu.cuFuncGetParamInfo(self.handle, index, &offset, &size)
            if result == CUDA_ERROR_INVALID_VALUE:      # after the last parameter
                leave_quietly(entered)
                return found
            if result != CUDA_SUCCESS:
                leave(self.module.ordinal, entered, result, b"cuFuncGetParamInfo")
            found.append((offset, size))

    def blocks_per_multiprocessor(self, int block, size_t smem=0):
        """Return the number of blocks with `block` threads and `smem` bytes of dynamic shared
        memory that a multiprocessor runs at the same time."""
        cdef int blocks = 0
        cdef CUresult result
        cdef int entered
        self.live()
        allow_smem(self, smem)
        entered = enter(self.module.ordinal, self.module.epoch,
                        b"cuOccupancyMaxActiveBlocksPerMultiprocessor")
        with nogil:
            result = cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, self.handle, block,
                                                                    smem)
        leave(self.module.ordinal, entered, result, b"cuOccupancyMaxActiveBlocksPerMultiprocessor")
        return blocks

    def suggested_block(self, size_t smem=0):
        """Return ``(block, grid)``: the threads of a block for the highest occupancy, and the
        fewest blocks that reach it. `smem` is the bytes of dynamic shared memory of a block."""
        cdef int grid = 0, block = 0
        cdef CUresult result
        cdef int entered
        self.live()
        allow_smem(self, smem)
        entered = enter(self.module.ordinal, self.module.epoch,
                        b"cuOccupancyMaxPotentialBlockSize")
        with nogil:
            result = cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, self.handle, NULL, smem,
                                                         0)
        leave(self.module.ordinal, entered, result, b"cuOccupancyMaxPotentialBlockSize")
        return block, grid


cdef int set_layout(LoadedFunction function, list extents) except -1:
    cdef int i
    if function.layout.offsets != NULL:
        return 0
    function.layout.offsets = <unsigned int*>allocate_zeroed(len(extents) * sizeof(unsigned int))
    function.layout.count = len(extents)
    for i, (offset, size) in enumerate(extents):
        function.layout.offsets[i] = offset
        function.layout.nbytes = offset + size
    return 0


cdef int allow_smem(LoadedFunction function, size_t nbytes) except -1:
    cdef int ordinal = function.module.ordinal
    cdef int entered
    cdef CUresult result
    cdef long allowed, most = <long>function.limits.smem - function.static_smem
    if nbytes <= <size_t>max(function.dynamic_smem, 0) and function.dynamic_smem >= 0:
        return 0
    if most < 0 or nbytes > <size_t>most:
        raise ValueError(
            f"{function.name}: {nbytes:,} bytes of dynamic and {function.static_smem:,} of static "
            f"shared memory; device {ordinal} has {function.limits.smem:,} for a block")
    # In a forked child, a thread that is not there may hold the lock for ever.
    verify(ordinal, function.module.epoch, b"cuFuncSetAttribute")
    with loading:           # the limit never falls below what another thread or object has set
        allowed = function.attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        allowed = min(max(<long>nbytes, allowed), most)
        entered = enter(ordinal, function.module.epoch, b"cuFuncSetAttribute")
        with nogil:
            result = cu.cuFuncSetAttribute(
                function.handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, <int>allowed)
        leave(ordinal, entered, result, b"cuFuncSetAttribute")
        function.dynamic_smem = allowed
    return 0
