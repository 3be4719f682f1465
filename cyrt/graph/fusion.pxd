# Fusion: batches that keep coming back run as fewer kernels, which are compiled in the background.
#
# INVARIANTS
# - A script counts its launches. After a certain number of them its Fusion is made. This stores a
#   copy of the nodes and the memory that they used, and which of it had another owner by then: its
#   blocks may be split, joined or destroyed before the script is launched again. A thread of low
#   priority finds the nodes that can be one kernel, compiles the kernel, and stores the fused plan.
#   Nothing ever waits for it.
# - The recording is not changed. The fused plan is launched instead of the script's plan if three
#   conditions hold, which are checked in the turn, before the launch: all of the script was
#   replayed; its parameters and geometry are those that were compiled, except for the patched ones;
#   and all memory whose values the fused kernels do not write has another owner now, and had one
#   when another kernel used it next, so that nobody can read these values. Otherwise the script's
#   plan is launched.
# - A number that changes is patched. The address of memory that a kernel only reads is patched,
#   too, if its alignment is the same, and the same operands are equal, as in the compiled code. The
#   address of memory that a kernel writes must not change: the kernel could read it, too.
# - A script that uses memory which was split, joined or given back meanwhile is not replayed to the
#   end. So every block of the script's uses exists when its generation is compared.
# - The memory that the nodes of a fused plan use determines their order: all edges between the
#   operations of two kernels have the same direction.
# - A fused plan is compared with the script's plan once, by events around launches of both in turn.
#   It is dropped if it is not clearly faster. The GIL is not taken between the events and the
#   launch: waiting for it would be part of the time. On the emulated device a fused plan is kept:
#   times there tell nothing about a GPU.
# - If the driver refuses a fused plan, it is dropped, and the script's plan is launched instead. It
#   uses the same memory, which nothing else has used meanwhile: this happens in the turn.
# - One that was of no use for several launches in a row, since values that it does not write were
#   alive, is dropped, and the script's launches are counted anew: the program may keep other values
#   than when it began. This happens a few times for a script, at most.
# - A plan may have several scripts, each with a Fusion: their memory differs. The plan tells of one
#   that is ready, if any is, for batches of all of them: so the policy learns that batches end at
#   other operations of a loop, even while the other scripts' kernels are being compiled.
# - The batch's Plan and its names do not depend on which of them runs. Where batches end does only
#   if a fused plan is of no use, since values that it does not write are alive (see graph/policy).

from cyrt.driver.cuda cimport CUevent
from cyrt.graph.executable cimport Executable, Execs, Outcome
from cyrt.graph.plan cimport Plan, PlanStats
from cyrt.graph.recording cimport Recording, UsedMemory
from cyrt.runtime.state cimport StreamState

cdef enum:
    TRIALS = 12             # launches that are timed, of the fused plan and the plain one in turn
    UNTIMED = 2             # the first ones, which do not count

# A part of the script's parameters or geometry.
cdef struct Extent:
    size_t start, size

# A part of the script's parameters that is copied to those of the fused plan, or geometry.
cdef struct Transfer:
    size_t source, target, size

# Two addresses in the script's parameters that must be equal.
cdef struct Pair:
    size_t one, other

# An address in the script's parameters, some bits of which must be 0.
cdef struct Alignment:
    size_t start
    unsigned long long mask

# A value that is not written. Its memory must have another owner when the next use may read it in
# another kernel, or when the batch is launched. Uses are offsets in bytes.
cdef struct Unwritten:
    size_t use
    Py_ssize_t next         # -1: there is none

cdef struct Extents:
    Extent* items
    int count, room

cdef struct Transfers:
    Transfer* items
    int count, room

cdef class Fusion(Execs):
    # The nodes of the script, without references. The parameters and geometry are those of the last
    # launch of the fused plan, or those that it was made of.
    cdef Recording* original
    cdef UsedMemory* memory     # the memory of each use at the launch
    cdef Recording* recording   # the nodes of the fused plan; NULL: it is not complete
    cdef Executable exec        # the executable graph of the fused plan
    cdef char* patched          # whether the last launch patched each of the fused plan's nodes
    # The parts of the parameters and geometry that must be as in `original`, and the parts that are
    # copied to `recording`.
    cdef Extents equal_params, equal_geometry
    cdef Transfers params, geometry
    cdef Pair* pairs
    cdef Alignment* alignments
    cdef int num_pairs, num_alignments
    cdef Unwritten* unwritten
    cdef int num_unwritten
    cdef list functions         # the fused kernels
    cdef list names_            # the name of the kernel of each of the script's nodes
    cdef list held_             # the script's nodes that each node of the fused plan runs
    cdef readonly unsigned long long launches
    cdef readonly unsigned long long used   # the clock of plans at the script's last launch
    cdef readonly unsigned int epoch    # the epoch of the device's context
    cdef unsigned long long bytes_saved
    cdef int num_fused          # nodes that run within fused kernels
    cdef bint changed           # the script is not as at the last launch of the fused plan
    cdef int num_unfit          # launches in a row with values alive that it does not write
    cdef bint abandoned         # the script is no longer kept, or the driver refuses the plan
    cdef readonly str reason    # why there is no fused plan; None: there may be one
    cdef double seconds         # how long it took to find and compile the kernels
    cdef bint refused           # the driver refuses the plan, or the plan is not faster
    cdef CUevent[2 * TRIALS] events     # before and after each launch that is timed
    cdef int trials             # number of launches that were timed; TRIALS: it is not timed
    cdef readonly bint judged   # it is not timed any more
    cdef float[2] least         # ms: the least time of the fused plan, and of the plain one
    cdef bint news              # it was judged or refused, and nobody was told

# Store the memory that a recording, which is being launched, uses, and what has another owner.
cdef void note_memory(Recording* recording) noexcept
# Make the Fusion of a script that was launched; None: there is nothing to compile it. The caller
# passes it to `builtin.fuse` when the commit has ended.
cdef Fusion new_fusion(StreamState* stream, Recording* script, Plan plan)
# Have a plan tell of a Fusion of one of its scripts, unless only the one that it tells of is ready.
cdef void tell_of(Plan plan, Fusion fusion) noexcept
# Return whether a fused plan is not launched any more: the driver refuses it, it is not faster, or
# the program keeps values that it does not write.
cdef bint is_obsolete(Fusion fusion) noexcept
# Return whether a value of a batch is alive that the fused plan of its plan does not write.
cdef bint needs_unwritten(Fusion fusion, const Recording* recording) noexcept
# Log what has become of a Fusion.
cdef void tell(Fusion fusion) noexcept
# Drop the Fusion of a script that is no longer kept, or an obsolete one.
cdef int abandon(Recording* script) except -1
# Drop the Fusions of all scripts of a list, except those that are replayed or launched now.
cdef void abandon_all(Recording* scripts) noexcept
# Launch a script that has a Fusion: its fused plan, or else its plan. If `unfit`, somebody may
# still read a value that the fused plan does not write, and the script's plan is launched. Return
# the number of nodes that count as patched. The function runs no Python code.
cdef int launch(Recording* script, Plan plan, bint unfit, PlanStats* stats,
                Outcome* outcome) noexcept
