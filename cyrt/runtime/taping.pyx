# C-level functions only: see taping.pxd.
"""What the tape of a thread follows."""

from cyrt.runtime.allocation cimport reallocate
from cyrt.runtime.memory cimport Memory, block_of
from cyrt.runtime.state cimport Block

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

cdef extern from *:
    """
    static _Thread_local struct {
        unsigned long long tape, live;
        int suspended;
        const unsigned long long* masks;
        void* current;
    } cyrt_taping;
    /* It is reached without a call, through memory of which there is little: a pointer has room. */
    static _Thread_local void* cyrt_own_taping __attribute__((tls_model("initial-exec")));
    static inline void* cyrt_get_taping(void) {
        if (cyrt_own_taping == NULL) cyrt_own_taping = &cyrt_taping;
        return cyrt_own_taping;
    }
    """
    void* cyrt_get_taping() noexcept

# An open tape, and the thread that opened it.
cdef struct Open:
    unsigned long long number
    unsigned long thread

cdef Open* opened = NULL
cdef int room = 0
cdef unsigned long long last_number = 0


cdef Thread* this_thread() noexcept:
    return <Thread*>cyrt_get_taping()


cdef unsigned long long open_tape(Thread* thread) except 0:
    global last_number, opened, recording, room
    if recording == room:
        opened = <Open*>reallocate(opened, (2 * room + 4) * sizeof(Open))
        room = 2 * room + 4
    last_number += 1
    opened[recording] = Open(last_number, PyThread_get_thread_ident())
    recording += 1
    return last_number


cdef void close_tape(unsigned long long number) noexcept:
    global recording
    cdef int i
    for i in range(recording):
        if opened[i].number == number:
            recording -= 1
            opened[i] = opened[recording]
            return


cdef int refuse_other_thread(unsigned long long number) except -1:
    """Raise RuntimeError if another thread has opened the tape, and it is still open."""
    cdef int i
    for i in range(recording):
        if opened[i].number == number and opened[i].thread != PyThread_get_thread_ident():
            raise RuntimeError(
                "an array is used that another thread differentiates just now; stop_gradient() "
                "makes a constant of it")
    return 0


cdef int refuse_stale() except -1:
    raise RuntimeError(
        "an array is used whose memory was written through another array, or by a function without "
        "a gradient, while it was differentiated; write through the array itself, or use a copy")


cdef bint is_followed(object value) except -1:
    cdef const Thread* thread
    cdef Memory memory
    cdef Block* block
    if not isinstance(value, Memory):
        return False
    memory, thread = <Memory>value, this_thread()
    if thread.suspended:
        return False
    block = block_of(memory)
    if memory.tape == 0:
        if thread.tape and block != NULL \
                and block.tape == (thread.tape << 24 | block.generation & 0xffffff):
            refuse_stale()
        return False
    if memory.tape != thread.tape:
        refuse_other_thread(memory.tape)
        return False
    if memory.node < 0:
        raise TypeError("an array is differentiated that a function without a gradient made")
    if not thread.masks[memory.node] & thread.live:
        return False
    if block != NULL and block.version != memory.version:
        refuse_stale()
    return True


cdef int refuse_followed(Memory memory, str name) except -1:
    cdef const Thread* thread = this_thread()
    if thread.suspended or memory.tape == 0:
        return 0
    if memory.tape != thread.tape:
        return refuse_other_thread(memory.tape)
    if memory.node >= 0 and not thread.masks[memory.node] & thread.live:
        return 0
    raise TypeError(f"{name} uses an array that is differentiated, and has no gradient; "
                    "cyrt.custom_vjp gives it one, and cyrt.stop_gradient makes the array a "
                    "constant")
