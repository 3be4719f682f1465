"""``Buffer.fill`` as a kernel: a memset node among kernels makes a graph's launch 60 times as slow
(measured)."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.driver.errors import CompileError
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recorder cimport encoder_of
from cyrt.builtin.elementwise cimport record_elementwise
from cyrt.builtin.entry cimport dtype_code, op_code
from cyrt.builtin.operand cimport Operand
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state

cdef int[5] codes           # the element type's code, by its bytes
cdef int copy_code = -1
cdef bint unavailable = False


cdef int set_codes() except -1:
    global copy_code
    if copy_code < 0:
        for bytes, name in ((1, "uint8"), (2, "uint16"), (4, "uint32")):
            codes[<int>bytes] = dtype_code(name)
        copy_code = op_code("copy")
    return 0


cdef bint record_fill(StreamState* stream, object target, unsigned int pattern,
                      size_t width) except -1:
    global unavailable
    cdef Operand[2] operands
    cdef long long count = (<Memory>target).size // width
    if unavailable:
        return False
    set_codes()
    memset(operands, 0, sizeof(operands))
    operands[0].buffer = <PyObject*>target
    operands[0].address = (<Memory>target).address
    operands[1].value[0] = pattern
    try:
        record_elementwise(encoder_of(stream), copy_code, codes[width], operands, 1, &count)
    except CompileError:        # neither prebuilt code nor a compiler
        unavailable = True
        return False
    return True


cdef list fill_launches(int ordinal, CUdeviceptr address, size_t count, unsigned int pattern,
                        size_t width):
    cdef Operand[2] operands
    cdef long long elements = count
    cdef Recorder recorder = Recorder()
    recorder.state, recorder.listed = current_state(ordinal), []
    while width < 4 and elements % 2 == 0 and address % (2 * width) == 0:      # fewer, wider ones
        pattern = (pattern & ((1 << 8 * width) - 1)) * ((1 << 8 * width) + 1)
        elements, width = elements // 2, 2 * width
    set_codes()
    memset(operands, 0, sizeof(operands))
    operands[0].buffer, operands[0].address = <PyObject*>None, address
    operands[1].value[0] = pattern
    record_elementwise(recorder, copy_code, codes[width], operands, 1, &elements)
    return [each[1:] for each in recorder.listed]
