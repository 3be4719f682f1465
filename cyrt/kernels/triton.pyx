# cython: freethreading_compatible=False
# cython: cdivision=True
"""Triton's kernels: ``kernel[grid](*args)``, compiled once for each specialisation.

A specialisation of Triton consists of a *form* of each argument, which has 2 bits. The lower bit
means that an integer or an address is a multiple of 16, the upper bit that the argument is a
constant of the code: the integer 1, or None.
"""

cimport cython
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.error_text import show
from cyrt.graph.recording cimport Geometry
from cyrt.kernels.arguments cimport declared_memory, is_memory
from cyrt.kernels.geometry cimport dimension, triple
from cyrt.kernels.kernel cimport (
    Borrowed, Described, Kernel, argument_tuple, begin_borrowing, borrow, call_by_name,
    launch_any, launch_borrowed,
)
from cyrt.kernels.vectorcall cimport (
    Py_TYPE, PySequence_Fast_ITEMS, PyVectorcall_NARGS, Vectorcall, offer_vectorcall,
)
from cyrt.runtime.device cimport Device, current_ordinal
from cyrt.runtime.integers cimport as_int, read_long
from cyrt.runtime.interop cimport as_buffer
from cyrt.runtime.memory cimport Memory, array_type

cdef enum:
    MOST_ARGUMENTS = 64     # two words have the forms of all
    DIVISOR = 16
    # The forms.
    GENERAL = 0
    MULTIPLE = 1
    ONE = 2
    NULL_POINTER = 3
    # The property of an argument that decides on its form.
    IS_POINTER = 1
    IS_INTEGER = 2
    BY_ALIGNMENT = 4
    BY_VALUE = 8

ctypedef unsigned long long[2] Forms

cdef inline int form_at(const unsigned long long* forms, int i) noexcept:
    return forms[<unsigned int>i >> 5] >> (2 * i & 63) & 3

cdef inline void add_form(unsigned long long* forms, int i, int form) noexcept:
    forms[<unsigned int>i >> 5] |= <unsigned long long>form << (2 * i & 63)


@cython.final
@cython.no_gc
cdef class Variant:
    """A kernel, and the forms of arguments for which it was compiled."""

    cdef Kernel kernel
    cdef int ordinal
    cdef Forms forms
    cdef Geometry geometry      # a launch's geometry, except the grid
    cdef unsigned int ctas      # Triton's grid counts clusters of so many blocks


@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class TritonLaunch:
    """A kernel of Triton with a grid; a call launches it."""

    cdef Vectorcall vectorcall
    cdef TritonKernel kernel
    cdef unsigned int[3] grid

    def __init__(self, *args, **keywords):
        raise TypeError("a launch is made by kernel[grid]")

    def __call__(self, *args, reads=None, writes=None):
        """Put the kernel on the current stream.

        Parameters
        ----------
        *args
            The arguments of the signature, in the order of the function's parameters, without the
            constants. They have the types that a launch of ``cyrt.Kernel`` accepts. Arrays may have
            any strides.
        reads, writes : list or tuple of Buffers and arrays, optional
            As in a launch of ``cyrt.Kernel``.

        Raises
        ------
        TypeError, ValueError
            The errors of a launch of ``cyrt.Kernel``; or the kernel was compiled by Triton for a
            multiple of 16, and the argument is not one.
        """
        if self.kernel is None:
            raise RuntimeError("the launch was not made by kernel[grid]")
        launch_variant(self, PySequence_Fast_ITEMS(args), len(args),
                       declared_memory(self.kernel.name, reads, writes))

    def __repr__(self):
        if self.kernel is None:
            return "<cyrt launch, not initialised>"
        return f"<{self.kernel.name}[{triple(self.grid)}]>"


cdef object call(object self, PyObject** args, size_t count, PyObject* keywords):
    """The vectorcall function of a TritonLaunch."""
    cdef Py_ssize_t positional = PyVectorcall_NARGS(count)
    if keywords == NULL:
        launch_variant(<TritonLaunch>self, args, positional, None)
        return None
    return call_by_name(self, (<TritonLaunch>self).kernel.name, args, positional, <tuple>keywords,
                        "constants and num_warps are arguments of Kernel.from_triton")


@cython.final
cdef class TritonKernel:
    """A kernel of Triton, made by ``cyrt.Kernel.from_triton``.

    ``kernel[grid](*args)`` launches it on the current stream. ``grid`` is an int, a tuple of up to
    three ints, or a function that returns one of these and is called with a dict of the constants.
    Block and shared memory are those for which Triton compiled it.

    Attributes
    ----------
    name : str
        The function's name.
    """

    cdef readonly str name
    cdef object source              # triton_code.Function or Compiled
    cdef int num_params
    cdef unsigned char[MOST_ARGUMENTS] traits
    cdef Forms required             # the forms' bits that a compiled kernel relies on
    cdef bint compiled
    cdef dict found                 # Variant by (ordinal, forms)
    cdef Variant last
    cdef object config              # the last grid, and what it was read to
    cdef unsigned int[3] grid
    cdef object __weakref__

    def __init__(self, source):
        cdef int i
        if self.source is not None:
            raise RuntimeError("a TritonKernel is initialised once")
        if not hasattr(source, "parameters"):
            raise TypeError("a TritonKernel is made by cyrt.Kernel.from_triton(function, ...)")
        if len(source.parameters) > MOST_ARGUMENTS:
            raise ValueError(f"{source.name}: {len(source.parameters)} arguments, at most "
                             f"{<int>MOST_ARGUMENTS} are supported")
        self.name = source.name
        self.num_params = len(source.parameters)
        self.compiled = source.compiled
        self.found = {}
        for i in range(self.num_params):
            parameter = source.parameters[i]
            self.traits[i] = IS_POINTER if parameter.code == "pointer" \
                else IS_INTEGER if parameter.code[0] in "iu" else 0
            if source.by_alignment[i]:
                self.traits[i] |= BY_ALIGNMENT
            if source.by_value[i]:
                self.traits[i] |= BY_VALUE
            if self.compiled and source.by_alignment[i]:
                add_form(self.required, i, MULTIPLE)
        self.source = source
        if self.compiled:
            self.last = variant_of(self, current_ordinal(), self.required)

    @property
    def signature(self):
        """The C++ declaration of the arguments of launches."""
        return str(self.source.signature)

    @property
    def variants(self):
        """A list of the kernels that were compiled so far, each a ``cyrt.Kernel``."""
        return [(<Variant>each).kernel for each in self.found.values()]

    def __getitem__(self, grid):
        cdef TritonLaunch bound = TritonLaunch.__new__(TritonLaunch)
        if grid is None or grid is not self.config:
            read_grid(self, grid)
        bound.grid = self.grid
        bound.kernel = self
        bound.vectorcall = call
        return bound

    def _choose(self, int ordinal, grid, block, smem, args):
        """Return the kernel, the grid, the block, the shared memory and the arguments of a launch
        that ``CommandEncoder.add_kernel`` records."""
        cdef PyObject* kept[MOST_ARGUMENTS]
        cdef Geometry geometry
        cdef Borrowed borrowed
        cdef Variant variant
        cdef PyObject** passed
        cdef Py_ssize_t i, count
        if block is not None or smem != 0:
            raise TypeError(f"add_kernel: {self.name}: expected None as block, and no smem: Triton "
                            f"has chosen both; got {block!r} and {smem!r}")
        read_grid(self, grid)
        values = argument_tuple(self.name, args)
        passed, count = PySequence_Fast_ITEMS(values), len(values)
        variant = choose(self, ordinal, self.grid, &passed, &count, kept, &geometry, &borrowed)
        return (variant.kernel, triple(geometry.grid), triple(geometry.block), geometry.smem,
                tuple([<object>passed[i] for i in range(count)]))

    def __call__(self, *args, **keywords):
        raise TypeError(f"{self.name}: a launch is written kernel[grid](*args)")

    def __reduce__(self):
        raise TypeError("a TritonKernel is code loaded in this process and is not pickled; make it "
                        "from its function there")

    def __repr__(self):
        if self.source is None:
            return "<cyrt kernel of Triton, not initialised>"
        return f"<cyrt kernel of Triton {self.signature}>"


cdef TritonLaunch unbound = TritonLaunch.__new__(TritonLaunch)
offer_vectorcall(unbound, &unbound.vectorcall)


cdef int read_grid(TritonKernel self, grid) except -1:
    """Keep the last immutable grid: in a loop with constants it is one object."""
    cdef unsigned int[3] sizes
    cdef object given = grid
    if self.source is None:
        raise RuntimeError("the TritonKernel was not initialised")
    if callable(grid):
        try:
            grid = grid(dict(self.source.constants))
        except KeyError as error:
            raise ValueError(f"{self.name}: grid: the function asks for {error}, which is none of "
                             f"the constants {list(self.source.constants)}") from None
        given = None
    self.config = given if dimension(grid, "grid", sizes) else None
    self.grid = sizes
    return 0


cdef object address_of(value):
    """Return the address of an array's first element; None for other values."""
    cdef list layout = []
    if isinstance(value, Memory):
        return (<Memory>value).address
    if hasattr(value, "data_ptr"):
        return value.data_ptr()
    if hasattr(value, "__cuda_array_interface__"):
        return value.__cuda_array_interface__["data"][0]
    if not is_memory(value):
        return None
    memory = as_buffer(value, False, layout)
    return memory.address + layout[2]


cdef int slow_form(unsigned char traits, object value) except -1:
    """The form of an object that is not an array or an int. If it is not known, the form is
    GENERAL, and the launch converts or refuses the object."""
    number = value
    if traits & IS_POINTER:
        if value is None:
            return NULL_POINTER
        number = address_of(value)
    if not isinstance(number, int):
        number = as_int(number)
    if number is None:
        return GENERAL
    return ONE if number == 1 and traits & BY_VALUE \
        else MULTIPLE if number % DIVISOR == 0 and traits & BY_ALIGNMENT else GENERAL


cdef inline int form_of_address(unsigned char traits, CUdeviceptr address) noexcept:
    return MULTIPLE if address % DIVISOR == 0 and traits & BY_ALIGNMENT else GENERAL


cdef inline int form_of_tensor(unsigned char traits, PyObject* value, int ordinal,
                               Borrowed* borrowed) except -1:
    """The form of an object that is not an array, passed as a pointer."""
    cdef const Described* tensor = borrow(value, ordinal, borrowed)
    return slow_form(traits, <object>value) if tensor == NULL \
        else form_of_address(traits, tensor.address)


cdef inline int form_of(unsigned char traits, PyObject* value, int ordinal,
                        Borrowed* borrowed) except -1:
    cdef long number
    if traits & IS_POINTER:
        if <void*>Py_TYPE(<object>value) == array_type:
            return form_of_address(traits, (<Memory>value).address)
        return form_of_tensor(traits, value, ordinal, borrowed)
    elif not traits & IS_INTEGER:
        return GENERAL
    elif PyLong_CheckExact(<object>value) and read_long(value, &number):
        return ONE if number == 1 and traits & BY_VALUE \
            else MULTIPLE if number % DIVISOR == 0 and traits & BY_ALIGNMENT else GENERAL
    return slow_form(traits, <object>value)


cdef int refuse_forms(TritonKernel kernel, PyObject** args, const unsigned long long* forms) \
        except -1:
    """Raise the error for an argument without a property on which a compiled kernel relies."""
    cdef int i
    for i in range(kernel.num_params):
        if form_at(kernel.required, i) & ~form_at(forms, i) & MULTIPLE:
            pointer = kernel.traits[i] & IS_POINTER
            value = address_of(<object>args[i]) if pointer else <object>args[i]
            raise ValueError(
                f"{kernel.name}: argument {i + 1} ({kernel.source.parameters[i]}): expected "
                f"{'an address' if pointer else 'a number'} that is a multiple of {<int>DIVISOR}, "
                f"for which Triton compiled the kernel, got {show(value)}; give "
                "Kernel.from_triton the function with @triton.jit, which is compiled for others, "
                f"too\n  {kernel.signature}")
    return 0


cdef Variant variant_of(TritonKernel kernel, int ordinal, const unsigned long long* forms):
    """Return the variant for these forms; the first launch with them compiles it."""
    cdef Variant made
    cdef int i
    key = (ordinal, forms[0], forms[1])
    if kernel.compiled:
        key = (ordinal, 0, 0)
    variant = kernel.found.get(key)
    if variant is not None:
        return variant
    device = Device(ordinal)
    code = kernel.source.code_for(
        bytes([form_at(forms, i) for i in range(kernel.num_params)]),
        device.compute_capability, device.emulated)
    made = Variant.__new__(Variant)
    made.kernel = code.load()
    if code.ctas > 1 and made.kernel.load(ordinal).cluster[0] != code.ctas:
        raise ValueError(
            f"{kernel.name}: num_ctas is {code.ctas}, and the code does not say so, as that of "
            "Triton 3.6 and later does: compile it with such a version")
    made.ordinal = ordinal
    made.forms = [forms[0], forms[1]]
    made.geometry.block = [code.threads, 1, 1]
    made.geometry.smem = code.smem
    made.ctas = code.ctas
    # Another thread may have been faster.
    return kernel.found.setdefault(key, made)


cdef inline Variant choose(TritonKernel kernel, int ordinal, const unsigned int* grid,
                           PyObject*** args, Py_ssize_t* count, PyObject** kept,
                           Geometry* geometry, Borrowed* borrowed):
    """Return the variant for these arguments, and set the geometry of its launch. `borrowed`
    receives the tensors among them. If some are constants of its code, `kept` receives the others,
    and `args` and `count` are set to these."""
    cdef Variant variant = kernel.last
    cdef PyObject** given = args[0]
    cdef Forms forms
    cdef int i, form, constants = 0
    if count[0] != kernel.num_params:
        raise TypeError(f"{kernel.name}: expected {kernel.num_params} "
                        f"argument{'' if kernel.num_params == 1 else 's'}, got {count[0]}\n"
                        f"  {kernel.signature}")
    forms = [0, 0]
    begin_borrowing(borrowed)
    for i in range(kernel.num_params):
        form = form_of(kernel.traits[i], given[i], ordinal, borrowed)
        add_form(forms, i, form)
        constants |= form & ONE
    if kernel.compiled:
        if kernel.required[0] & ~forms[0] or kernel.required[1] & ~forms[1]:
            refuse_forms(kernel, given, forms)
        if variant.ordinal != ordinal:
            kernel.last = variant = variant_of(kernel, ordinal, forms)
            begin_borrowing(borrowed)       # other code has run
    elif variant is None or variant.forms[0] != forms[0] or variant.forms[1] != forms[1] \
            or variant.ordinal != ordinal:
        kernel.last = variant = variant_of(kernel, ordinal, forms)
        begin_borrowing(borrowed)
    geometry[0] = variant.geometry
    # A grid that is too large is refused by its size, which must not overflow.
    geometry.grid = [<unsigned int>min(<unsigned long long>grid[0] * variant.ctas,
                                       <unsigned long long>0xffffffff), grid[1], grid[2]]
    if constants and not kernel.compiled:
        args[0], count[0] = kept, 0
        for i in range(kernel.num_params):
            if not form_at(forms, i) & ONE:
                kept[count[0]] = given[i]
                count[0] += 1
    return variant


cdef int launch_variant(TritonLaunch self, PyObject** args, Py_ssize_t count,
                        list declared) except -1:
    cdef PyObject* kept[MOST_ARGUMENTS]
    cdef Geometry geometry
    cdef Borrowed borrowed
    cdef Variant variant = choose(self.kernel, current_ordinal(), self.grid, &args, &count, kept,
                                  &geometry, &borrowed)
    if declared is None:
        return launch_borrowed(variant.kernel, &geometry, args, count, &borrowed)
    return launch_any(variant.kernel, &geometry, args, count, declared)
