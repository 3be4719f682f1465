"""Calls of cuSOLVER between batches."""

import functools
import threading

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.string cimport memset

from cyrt.builtin cimport library
from cyrt.builtin.library cimport CUSOLVER, bindings_of, is_served
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.driver.capture_mode cimport relax, restore
from cyrt.driver.cuda cimport CUstreamCaptureMode
from cyrt.driver.errors import OutOfMemoryError
from cyrt.dtypes import DTYPES
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recorder cimport allows_calls, call_library, encoder_of
from cyrt.graph.recording cimport TEMPLATE, Use
from cyrt.libs.library import Unsupported
from cyrt.logger import logger
from cyrt.ndarray cimport Array, device_of
from cyrt.runtime.device cimport enter, leave_quietly
from cyrt.runtime.device import reset_hooks
from cyrt.runtime.memory cimport Memory, live_block
from cyrt.runtime.module cimport Runnable
from cyrt.runtime.state cimport OVERWRITE, WRITE, StreamState
from cyrt.runtime.stream cimport current_state

cdef enum:
    MOST_WORDS = 24         # the most arguments of a function
    # A call is taken to put so many commands on the stream, and one more for every few columns: 128
    # are too few for the QR factorization of 1,000 columns.
    LEAST_COMMANDS = 128
    COLUMNS_OF_A_COMMAND = 4
    # The values of the Variables of cyrt/libs/cusolver.py.
    MOST_OPERANDS = 5
    HANDLE = 5
    PARAMETERS
    WORKSPACE
    WORKSPACE_SIZE
    HOST_WORKSPACE
    HOST_SIZE
    WORKSPACE_SIZE_OUT
    HOST_SIZE_OUT
    VARIABLES               # the end

# Each argument of the library's functions is an integer or an address, and has a register, or eight
# bytes of the stack, of its own in the calling conventions of all platforms that CUDA has (System V
# and Windows for x86-64, AAPCS64). This type therefore serves for all functions: a function ignores
# the words after its last argument.
ctypedef int (*Function)(
    unsigned long long, unsigned long long, unsigned long long, unsigned long long,
    unsigned long long, unsigned long long, unsigned long long, unsigned long long,
    unsigned long long, unsigned long long, unsigned long long, unsigned long long,
    unsigned long long, unsigned long long, unsigned long long, unsigned long long,
    unsigned long long, unsigned long long, unsigned long long, unsigned long long,
    unsigned long long, unsigned long long, unsigned long long, unsigned long long) noexcept nogil

cdef struct Call:
    Function function
    unsigned long long[MOST_WORDS] words

# The handles by library and address of the stream's state. States are reused, never freed.
cdef dict handles = {}
creation = threading.RLock()


def decide(int ordinal, served=None, bint every=False):
    """Set whether a device uses the library, whatever the device is; None decides at the next
    factorization. With `every`, it computes all that it provides, also where own kernels are
    faster. Comparisons call this, and tests, which have a library for the emulated device."""
    global factors_all
    factors_all = every
    library.decide(CUSOLVER, ordinal, served)


def is_preferred(int ordinal, long long most, long long batch):
    """Return whether the library factors matrices on a device: it does for up to `most` in a batch.
    """
    return bool(batch and (batch <= most or factors_all) and is_served(CUSOLVER, ordinal))


@reset_hooks.append
def _forget(int ordinal):
    """Forget the handles of a device: what they have there ends with its context."""
    for key in list(handles):
        if (<StreamState*><size_t>key[1]).ordinal == ordinal:
            handles.pop(key, None)


cdef int run(void* data) noexcept nogil:
    cdef Call* c = <Call*>data
    cdef unsigned long long* w = c.words
    cdef CUstreamCaptureMode before = relax()
    cdef int status = c.function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10],
                                 w[11], w[12], w[13], w[14], w[15], w[16], w[17], w[18], w[19],
                                 w[20], w[21], w[22], w[23])
    restore(before)
    return status


cdef unsigned long long handle_of(object opened, StreamState* state) except? 0:
    """Return the stream's handle."""
    cdef Call create, choose, destroy
    cdef unsigned long long made = 0
    cdef int entered, status
    key = opened, <size_t>state
    found = handles.get(key)
    if found is not None:
        return found
    with creation:
        if key in handles:      # another thread has made it
            return handles[key]
        memset(&create, 0, sizeof(create))
        memset(&choose, 0, sizeof(choose))
        memset(&destroy, 0, sizeof(destroy))
        create.function = <Function><size_t>opened.address("cusolverDnCreate")
        choose.function = <Function><size_t>opened.address("cusolverDnSetStream")
        create.words[0] = <size_t>&made
        destroy.function = <Function><size_t>opened.address("cusolverDnDestroy")
        entered = enter(state.ordinal, state.epoch, b"cusolverDnCreate")
        with nogil:
            status = run(&create)
            if status == 0:
                choose.words[0], choose.words[1] = made, <size_t>state.handle
                status = run(&choose)
                if status:
                    destroy.words[0] = made
                    run(&destroy)
        leave_quietly(entered)
        if status:
            opened.refuse("cusolverDnSetStream" if made else "cusolverDnCreate", status, "a handle")
        handles[key] = made
        return made


cdef class KnownCall:
    """A call whose operands may be anywhere."""
    cdef object library
    cdef str name, text
    cdef str refusal                # why the library does not provide it; None: it does
    cdef Runnable runnable          # what `explain` shows of the call
    cdef Function function, query   # `query` tells the sizes of the workspaces; NULL: none
    cdef unsigned long long[MOST_WORDS] words, query_words
    # The Variable that each word is; -1: the word is a constant.
    cdef signed char[MOST_WORDS] variables, query_variables
    cdef bint asked                 # the sizes are known
    cdef size_t[2] sizes            # on the device, in units, and on the host, in bytes
    cdef size_t unit
    cdef unsigned int commands      # estimate of the commands that a call puts on the stream


@functools.lru_cache(maxsize=256)
def known_call(opened, int ordinal, str function, tuple options, str dtype):
    """Return the call of a method of the bindings' Solver. The sizes of its workspaces depend on
    the device."""
    cdef KnownCall known = KnownCall.__new__(KnownCall)
    described = getattr(bindings_of(CUSOLVER).Solver(dtype), function)(*options)
    known.library, known.name, known.text = opened, described.name, described.text
    known.runnable = Runnable.__new__(Runnable)
    known.runnable.name, known.runnable.origin = known.name, f"cuSOLVER {opened.dotted}"
    known.unit = described.unit
    known.commands = LEAST_COMMANDS + described.columns // COLUMNS_OF_A_COMMAND
    known.asked = not described.query
    pack(described.arguments, known.words, known.variables)
    pack(described.query, known.query_words, known.query_variables)
    try:
        known.function = <Function><size_t>opened.address(known.name)
        if described.query:
            known.query = <Function><size_t>opened.address(f"{known.name}_bufferSize")
    except Unsupported as error:
        note_refusal(known, error)
    return known


cdef int note_refusal(KnownCall known, object error) except -1:
    logger.debug("cyrt's own kernels run: %s", error)
    known.refusal = str(error)
    return 0


cdef int pack(tuple arguments, unsigned long long* words, signed char* variables) except -1:
    cdef int i
    for i in range(MOST_WORDS):
        words[i], variables[i] = 0, -1
    for i, each in enumerate(arguments):
        if isinstance(each, int):
            words[i] = each
        else:
            variables[i] = each.index
    return 0


cdef void fill(Call* call, Function function, const unsigned long long* words,
               const signed char* variables, const unsigned long long* values) noexcept:
    cdef int i
    call.function = function
    for i in range(MOST_WORDS):
        call.words[i] = words[i] if variables[i] < 0 else values[variables[i]]


cdef bint lacks_memory(KnownCall known, str function, int status) except -1:
    """Return whether a status says that the library had no memory; raise an error for others."""
    if status == 0:
        return False
    if status != known.library.no_memory:
        known.library.refuse(function, status, known.text)
    logger.debug("cyrt's own kernels run: %s had no memory", function)
    return True


cdef bint ask(KnownCall known, Recorder encoder, unsigned long long* values) except -1:
    """Ask the library for the sizes of the workspaces, in the stream's turn, as it has the handle.
    Return False if it has no memory.
    """
    cdef Call query
    cdef size_t[2] sizes
    cdef int status
    sizes[0] = sizes[1] = 0
    values[WORKSPACE_SIZE_OUT], values[HOST_SIZE_OUT] = <size_t>&sizes[0], <size_t>&sizes[1]
    fill(&query, known.query, known.query_words, known.query_variables, values)
    status = call_library(encoder, run, &query, 0, NULL, 0)
    if lacks_memory(known, f"{known.name}_bufferSize", status):
        return False
    known.sizes[0], known.sizes[1] = sizes[0], sizes[1]
    known.asked = True
    return True


def call(str function, options, long long batch, arrays):
    """Call a function of the library for each matrix of a batch, in order.

    Parameters
    ----------
    function : str
        A method of the bindings' Solver.
    options : sequence of int
        Its arguments.
    batch : int
    arrays : sequence of Array
        The operands, contiguous, in cyrt's own memory; each has a part for every matrix, which the
        call may write. The type of the first one is that of the matrices.

    Returns
    -------
    bool
        False if own kernels have to run, because the library does not provide the function, there
        is no memory for its workspace, or it cannot be called now. The operands may be overwritten
        then.
    """
    cdef Array first = arrays[0]
    cdef StreamState* state = current_state(device_of(first))
    cdef Recorder encoder = encoder_of(state)
    cdef KnownCall known
    if not allows_calls(encoder):
        return False
    known = known_call(bindings_of(CUSOLVER).find()[0], state.ordinal, function, tuple(options),
                       DTYPES[first.code].name)
    if known.refusal is not None:
        return False
    if encoder.listed is not None:
        for _ in range(batch):
            encoder.listed.append((<int>TEMPLATE, known.runnable, (1, 1, 1), (1, 1, 1), 0, b""))
        return True
    try:
        return bool(make(known, encoder, batch, arrays))
    except Unsupported as error:
        note_refusal(known, error)
        return False


cdef bint make(KnownCall known, Recorder encoder, long long batch, arrays) except -1:
    """Make a call. Return False if there is no memory for it.

    An error of an earlier batch may be raised here, of the same type as that of an allocation, so
    only what allocates is asked.
    """
    cdef Call made
    cdef Use[MOST_OPERANDS + 1] uses
    cdef unsigned long long[VARIABLES] values
    cdef unsigned long long[VARIABLES] steps
    cdef Memory workspace = None
    cdef bytearray host = None
    cdef Array array
    cdef int i, status, count = len(arrays)
    memset(values, 0, sizeof(values))
    memset(steps, 0, sizeof(steps))
    try:
        values[HANDLE] = handle_of(known.library, encoder.state)
        values[PARAMETERS] = known.library.parameters
    except OutOfMemoryError as error:
        logger.debug("cyrt's own kernels run: %s", error)
        return False
    if not known.asked and not ask(known, encoder, values):
        return False
    for i in range(count):
        array = <Array>arrays[i]
        values[i], steps[i] = array.address, array.nbytes // batch
        uses[i].block, uses[i].access = live_block(array), WRITE
    values[WORKSPACE_SIZE], values[HOST_SIZE] = known.sizes[0], known.sizes[1]
    if known.sizes[0]:
        try:
            workspace = allocate_workspace(encoder, known.sizes[0] * known.unit)
        except OutOfMemoryError as error:
            logger.debug("cyrt's own kernels run: %s", error)
            return False
        values[WORKSPACE] = workspace.address
        uses[count].block, uses[count].access = live_block(workspace), OVERWRITE
        count += 1
    if known.sizes[1]:
        host = bytearray(known.sizes[1])
        values[HOST_WORKSPACE] = <size_t>PyByteArray_AS_STRING(host)
    # Each matrix has a turn, so that the stream has room for the commands of each.
    for _ in range(batch):
        fill(&made, known.function, known.words, known.variables, values)
        status = call_library(encoder, run, &made, known.commands, uses, count)
        if lacks_memory(known, known.name, status):
            return False
        for i in range(VARIABLES):
            values[i] += steps[i]
    return True
