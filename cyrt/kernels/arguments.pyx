"""Memory that a kernel uses: its pointer arguments, and the memory declared for a launch."""

import numpy as np

from cyrt.dtypes import DTYPES, dtype
from cyrt.graph.recording cimport Use
from cyrt.kernels.packing cimport Param
from cyrt.runtime.dlpack cimport (
    KDL_BFLOAT, KDL_BOOL, KDL_COMPLEX, KDL_FLOAT, KDL_INT, KDL_UINT,
)
from cyrt.runtime.interop cimport as_buffer
from cyrt.runtime.memory cimport (
    ELEMENT_TYPES, OTHER_TYPE, READ_ONLY, SCATTERED, Memory, live_block,
)
from cyrt.runtime.outside cimport is_outside
from cyrt.runtime.state cimport MANAGED_MEMORY, PINNED_MEMORY, READ, WRITE, Block

cdef enum:
    MOST = 0xffffffff

# Indexed by the kind and the itemsize that runtime/interop reports.
cdef dict type_traits = {
    ("E" if each.name == "bfloat16" else each.kind, each.itemsize): 1 << each.code
    for each in DTYPES}


cdef bint is_memory(object value):
    return (isinstance(value, Memory) or value is None
            or hasattr(value, "__cuda_array_interface__")
            or (hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray)))


cdef int set_checks(Param* param, object fit, bint strided) except -1:
    cdef unsigned int types = 0
    param.refused = param.coarse = 0
    param.unit = param.align = 1
    if fit is None:
        return 0
    param.unit, param.align = fit.size, fit.align
    for name in fit.types:
        types |= 1 << <int>dtype(name).code
    if len(fit.types) < len(DTYPES):
        param.refused = (ELEMENT_TYPES | OTHER_TYPE) & ~types
    if not strided:
        param.refused |= SCATTERED
    if param.writes:
        param.refused |= READ_ONLY
    # The size of three elements is no power of two: check_array has to compute it.
    param.coarse = (param.unit | param.align) - 1 if param.unit & param.unit - 1 == 0 else MOST
    return 0


cdef str conversion(unsigned int traits, list types):
    """The advice that converts an array to one of the types; complex types are kept if possible."""
    if any([each.kind == "c" and traits >> <int>each.code & 1 for each in DTYPES]):
        wide = [each for each in types if each.kind == "c"]
        if not wide:
            return f"convert one part of it, such as .real.astype({types[0].name!r})"
        types = wide
    return f"convert it with .astype({types[0].name!r})"


cdef int check_array(const Param* param, Memory memory, tuple description) except -1:
    cdef unsigned int wrong = memory.traits & param.refused
    cdef str received
    if memory.traits == READ_ONLY and wrong:
        raise ValueError("expected memory that can be written, because the parameter is not const, "
                         "got the bytes of a read-only view; copy the view with .copy()")
    if memory.traits & ~READ_ONLY == 0 or not (
            wrong or memory.size and (
                memory.address % param.align
                or not memory.traits & SCATTERED and memory.size % param.unit)):
        return 0
    if description is None:
        description = memory.dtype, memory.shape, memory.strides
    received = f"got an array of {description[0]}, shape {description[1]}, strides {description[2]}"
    if wrong & (ELEMENT_TYPES | OTHER_TYPE):
        types = [each for each in DTYPES if not param.refused >> <int>each.code & 1]
        raise TypeError(f"expected an array of {' or '.join(each.name for each in types)}, "
                        f"{received}; {conversion(memory.traits, types)}")
    if wrong & READ_ONLY:
        strided = " and make the kernel with strided=True" if param.refused & SCATTERED else ""
        raise ValueError("expected an array that can be written, because the parameter is not "
                         f"const, {received}, a read-only view; copy it with .copy(), or declare "
                         f"the parameter const{strided}")
    if wrong:
        raise ValueError(f"expected a C-contiguous array, {received}; copy it with .copy() or "
                         "cyrt.ascontiguousarray(), or make the kernel with strided=True if it "
                         "takes the strides as arguments")
    if memory.address % param.align:
        raise ValueError(f"expected an address that is a multiple of {param.align}, got "
                         f"{memory.address:#x}, {received}; copy it with .copy()")
    raise ValueError(f"expected a multiple of {param.unit} bytes, {received}, of {memory.size:,} "
                     "bytes; pad it")


cdef unsigned int layout_traits(shape, strides, Py_ssize_t itemsize) except? 0xffffffff:
    cdef unsigned int traits = 0
    if strides is None or 0 in shape:
        return 0
    for count, step in zip(reversed(shape), reversed(strides)):
        if count != 1 and step != itemsize:
            traits |= SCATTERED
            if step == 0:
                traits |= READ_ONLY
        itemsize *= count
    return traits


cdef int learn_types() except -1:
    """Store the trait of each of DLPack's element types."""
    cdef int code, size
    cdef dict codes = {"i": KDL_INT, "u": KDL_UINT, "f": KDL_FLOAT, "E": KDL_BFLOAT,
                       "c": KDL_COMPLEX, "b": KDL_BOOL}
    for code in range(CODES):
        for size in range(17):
            dtype_traits[code][size] = OTHER_TYPE
    for (kind, itemsize), trait in type_traits.items():
        dtype_traits[<int>codes[kind]][<int>itemsize] = trait
    return 0


learn_types()


cdef Memory pointer_argument(object value, const Param* param):
    cdef Memory memory
    cdef list layout = []
    if isinstance(value, int):
        raise TypeError("an int is not a pointer; use cyrt.pointer(address, nbytes)")
    memory = as_buffer(value, False, layout)
    shape, strides, first, kind, itemsize, read_only = layout
    memory.address += <long long>first
    memory.traits = layout_traits(shape, strides, itemsize)
    if read_only and param.writes and not memory.traits & READ_ONLY:
        as_buffer(value, True, [])      # raises; for elements that share memory, check_array does
    # Memory without a dtype is described as bytes, because a protocol requires some element type.
    if kind != "V" and (itemsize > 1 or hasattr(value, "dtype")):
        memory.traits |= type_traits.get((kind, itemsize), OTHER_TYPE)
    if is_doubtful(param, memory):
        check_array(param, memory, (getattr(value, "dtype", f"{kind}{itemsize}"), shape,
                                    "of C order" if strides is None else tuple(strides)))
    return memory


cdef object wrong_device(const Block* block, int ordinal):
    return ValueError(f"the Buffer is of device {block.ordinal}, the kernel runs on device "
                      f"{ordinal}")


cdef list declared_memory(str name, reads, writes):
    cdef list found
    if reads is None and writes is None:
        return None
    found = []
    for what, buffers, write in (("reads", reads, False), ("writes", writes, True)):
        if buffers is not None and not isinstance(buffers, (list, tuple, set, frozenset)):
            raise TypeError(f"{name}: {what}: expected a list of Buffers and arrays, got "
                            f"{type(buffers).__name__}")
        for i, value in enumerate(buffers or ()):
            if not isinstance(value, Memory):
                if value is None or not is_memory(value):
                    raise TypeError(f"{name}: {what}[{i}]: expected a Buffer, or an array of "
                                    f"device memory, got {type(value).__name__}")
                try:
                    value = as_buffer(value, write)
                except (TypeError, ValueError) as error:
                    raise type(error)(f"{name}: {what}[{i}]: {error}") from None
            found.append((value, write))
    return found


cdef tuple use_declared(str name, list declared, int ordinal, list foreign, Use* uses, int count):
    cdef Block* block
    for buffer, write in declared:
        try:
            block = live_block(<Memory>buffer)
            if block.ordinal != ordinal and block.kind != PINNED_MEMORY \
                    and block.kind != MANAGED_MEMORY:
                raise wrong_device(block, ordinal)
        except ValueError as error:
            raise ValueError(f"{name}: {'writes' if write else 'reads'}: {error}") from None
        if is_outside(block):
            foreign = [buffer] if foreign is None else foreign + [buffer]
        uses[count].block = block
        uses[count].access = WRITE if write else READ
        count += 1
    return foreign, count


cdef list written_memory(str name, const Param* params, tuple args, reads, writes):
    cdef Memory memory
    found = [buffer for buffer, write in declared_memory(name, reads, writes) or () if write]
    for i, value in enumerate(args):
        if not params[<int>i].writes or value is None or not is_memory(value):
            continue
        try:
            memory = value if isinstance(value, Memory) else as_buffer(value, True, [])
        except (TypeError, ValueError):
            continue        # the launch raises the error
        # The bytes between the elements of a strided array are included.
        found.append(memory.base if memory.traits & SCATTERED else memory)
    return found
