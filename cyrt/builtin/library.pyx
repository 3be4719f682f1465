# C-level functions only: see library.pxd.
"""NVIDIA's libraries that compute built-in operations."""

import importlib

from libc.string cimport memset

from cyrt import settings
from cyrt.builtin.launch cimport WHOLE, record_call
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.driver.capture_mode cimport relax, restore
from cyrt.driver.cuda cimport CUstreamCaptureMode
from cyrt.driver.errors import OutOfMemoryError
from cyrt.graph.exact_key cimport forget_launch_plans
from cyrt.graph.template cimport MOST_OPERANDS, Extent, TemplateKernel, learn, refuse
from cyrt.libs.library import Unsupported
from cyrt.logger import logger
from cyrt.runtime.device cimport Device, context_of, enter, leave_quietly
from cyrt.runtime.memory cimport Memory

NAMES = {<int>CUBLASLT: "cuBLASLt", <int>CUDNN: "cuDNN", <int>CUFFT: "cuFFT",
         <int>CUSOLVER: "cuSOLVER"}


cdef object bindings_of(Library library):
    return importlib.import_module(f"cyrt.libs.{NAMES[<int>library].lower()}")


cdef bint decide_for(Library library, int ordinal) except -1:
    cdef bint served = False
    if not Device(ordinal).emulated:
        found, problem = bindings_of(library).find()
        served = found is not None
        if not served:
            logger.info("cyrt's own kernels run in the place of %s's: %s", NAMES[<int>library],
                        problem)
    decide(library, ordinal, served)
    return served


cdef int decide(Library library, int ordinal, object served) except -1:
    global tf32
    tf32 = settings.get("CYRT_TF32")
    decisions[ordinal * LIBRARIES + library] = 0 if served is None else 1 if served else -1
    forget_launch_plans()
    return 0


cdef bint record_learned(Recorder encoder, Template template, const Operand* operands, int count,
                         unsigned int writes) except -1:
    cdef Memory workspace = None
    if template.refused:
        return False
    if template.workspace:
        try:
            workspace = allocate_workspace(encoder, template.workspace)
        except OutOfMemoryError:
            return False
    record_call(encoder, template, operands, count, writes | WHOLE, workspace)
    return True


cdef Template learn_call(Library library, Key* key, int ordinal, object make,
                         const Operand* operands, int count, size_t written):
    cdef Extent[MOST_OPERANDS] extents
    cdef Template template
    cdef CUstreamCaptureMode before
    cdef int i, entered
    memset(extents, 0, sizeof(extents))
    for i in range(count):
        extents[i].address = operands[i].address
    extents[0].written = written
    try:
        entered = enter(ordinal, context_of(ordinal).epoch,
                        b"a library's call")
        before = relax()        # the library may allocate memory and load code
        try:
            call = make()
        finally:
            restore(before)
            leave_quietly(entered)
        if call.workspace:
            extents[count].written, extents[count].workspace = call.workspace, True
            count += 1
        template = learn(key, ordinal, call, extents, count, call.workspace)
        template.origin = f"{NAMES[<int>library]} {bindings_of(library).find()[0].dotted}"
        for kernel in template.kernels or ():
            (<TemplateKernel>kernel).origin = template.origin
        return template
    except Unsupported as error:
        logger.debug("cyrt's own kernels run: %s", error)
        return refuse(key, ordinal, str(error))
