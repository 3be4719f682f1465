"""Memory that a kernel uses: its pointer arguments, and what is declared beside them."""

import numpy as np

from cyrt.graph.recording cimport Use
from cyrt.kernels.packing cimport Param
from cyrt.runtime.interop cimport as_buffer
from cyrt.runtime.memory cimport Memory, live_block
from cyrt.runtime.pool cimport is_outside
from cyrt.runtime.state cimport MANAGED_MEMORY, PINNED_MEMORY, READ, WRITE, Block


cdef bint is_memory(object value):
    return (isinstance(value, Memory) or value is None
            or hasattr(value, "__cuda_array_interface__")
            or (hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray)))


cdef Memory pointer_argument(object value, bint writes):
    if isinstance(value, int):
        raise TypeError("an int is no pointer; use cyrt.pointer(address, nbytes)")
    return as_buffer(value, writes)


cdef object wrong_device(const Block* block, int ordinal):
    return ValueError(f"the Buffer is of device {block.ordinal}, the kernel runs on device "
                      f"{ordinal}")


cdef list declared_memory(str name, reads, writes):
    cdef list found = []
    if reads is None and writes is None:
        return None
    for what, given, write in (("reads", reads, False), ("writes", writes, True)):
        if given is not None and not isinstance(given, (list, tuple, set, frozenset)):
            raise TypeError(f"{name}: {what}: expected a list of Buffers and arrays, got "
                            f"{type(given).__name__}")
        for i, value in enumerate(given or ()):
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
    found = [buffer for buffer, write in declared_memory(name, reads, writes) or () if write]
    for i, value in enumerate(args):
        if not params[<int>i].writes or value is None or not is_memory(value):
            continue
        try:
            found.append(value if isinstance(value, Memory) else as_buffer(value, True))
        except (TypeError, ValueError):
            continue        # a launch says what is wrong with it
    return found
