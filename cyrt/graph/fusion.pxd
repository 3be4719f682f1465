# Fusion: batches that keep coming back run as fewer kernels, which are compiled in the background.
#
# INVARIANTS
# - A script counts its launches. At a certain one its Fusion is made: a copy of its nodes, and of
#   which of the memory that they use had other owners by then. A thread of low priority finds what
#   can be one kernel, compiles that, and stores the fused plan. Nothing ever waits for it.
# - What was recorded is unchanged. A fused plan is launched in place of a script, all of which was
#   replayed, if the script has the same parameters and geometry as compiled for, but for what is
#   patched, and if all memory whose values the kernels do not write has another owner now: nobody
#   can read them. This is asked in the turn, before the launch. Else the script's plan is launched.
# - A number that changes is patched. So is the address of memory that a kernel only reads, if its
#   alignment, and which operands are equal, stay as compiled. What a kernel writes stays where it
#   is: the kernel could read it, too.
# - Nothing is replayed to the end that uses memory which was split, joined or given back meanwhile,
#   so every block of the script's uses exists when its generation is compared.
# - The nodes of a fused plan have the order that the memory which they use demands: the edges
#   between the operations of one kernel and those of another have one direction.
# - A fused plan is compared with the script's plan once, by events around launches of both in turn.
#   It is dropped if it is not clearly faster. On the emulated device it is kept: times there tell
#   nothing about a GPU.
# - If the driver refuses a fused plan, it is dropped, and the script's plan is launched instead. It
#   uses the same memory, which nothing else has used meanwhile: this happens in the turn.
# - The batch's Plan, its names, and where batches end do not depend on which of them runs.

from cyrt.driver.cuda cimport CUevent
from cyrt.graph.executable cimport Executable, Execs, Outcome
from cyrt.graph.plan cimport Plan, PlanStats
from cyrt.graph.recording cimport Recording
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

cdef struct Extents:
    Extent* items
    int count, room

cdef struct Transfers:
    Transfer* items
    int count, room

cdef class Fusion(Execs):
    cdef Recording* plain       # the nodes of the script, without references
    cdef char* dead             # each use's: whether its memory had another owner at the launch
    cdef Recording* recording   # the nodes of the fused plan; NULL: it is not complete
    cdef Executable exec        # what it was instantiated to
    cdef char* patched          # each of its nodes': whether the last launch patched it
    # What must be as in `plain`, and what is copied to `recording`.
    cdef Extents equal_params, equal_geometry
    cdef Transfers params, geometry
    cdef Pair* pairs
    cdef Alignment* alignments
    cdef int num_pairs, num_alignments
    cdef int* unwritten         # uses whose memory must have another owner
    cdef int num_unwritten
    cdef list functions         # the fused kernels
    cdef list names             # what each node of the script runs
    cdef list held_             # for each node of the fused plan, those of the script that it runs
    cdef readonly unsigned long long launches
    cdef readonly unsigned int epoch    # that of the device's context
    cdef unsigned long long bytes_saved
    cdef int num_fused          # nodes that run within fused kernels
    cdef bint abandoned         # the script is no longer kept, or the driver refuses the plan
    cdef bint refused           # the driver does, or it is not faster
    cdef CUevent[2 * TRIALS] events     # before and after each launch that is timed
    cdef int trials             # number of launches that were timed; TRIALS: it is not timed
    cdef bint judged            # it is known to be faster

# Note which memory of a recording has other owners, since it is being launched.
cdef void note_dead(Recording* recording) noexcept
# Make the Fusion of a script that was launched; None: there is nothing to compile it. The caller
# passes it to `submit` when the commit has ended.
cdef Fusion new_fusion(StreamState* stream, Recording* script, Plan plan)
cdef int submit(Fusion fusion) except -1
# Drop that of a script that is no longer kept, or one that the driver refuses.
cdef int abandon(Recording* script) except -1
# Drop those of all scripts of a list that are not being replayed or launched.
cdef void abandon_all(Recording* scripts) noexcept
# Launch a script that has a Fusion: its fused plan, or else its plan. Return how many of its nodes
# count as patched. This runs no Python code.
cdef int launch(Recording* script, Plan plan, PlanStats* stats, Outcome* outcome) noexcept
