# C-level functions only: see seam.pxd.
"""The functions of `graph` that the runtime calls."""

from cyrt.driver cimport table
from cyrt.graph.commit cimport (
    Recorder, commit, release_all_ended, release_ended_batches, stop_replay, suspects,
)
from cyrt.graph.fusion cimport abandon_all
from cyrt.graph.loss cimport count_holders, error_of
from cyrt.graph.plan_cache cimport forget_plans, release_plans
from cyrt.graph.recorder cimport (
    encoder_of, end_encoder, forget_left_scripts, keep, record_copy,
)
from cyrt.graph.replay cimport free_idle
from cyrt.graph.template cimport forget_templates
from cyrt.runtime cimport seam
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream_state cimport states


cdef int release_ended_batches_of(StreamState* stream) except -1:
    return release_ended_batches(<Recorder>stream.encoder)


cdef void stop_replay_of(StreamState* stream) noexcept:
    if stream.encoder != NULL:
        stop_replay(<Recorder>stream.encoder)
        (<Recorder>stream.encoder).recording.once = True


cdef int free_scripts(int ordinal) except -1:
    cdef StreamState* state = states[ordinal]
    cdef Recorder encoder
    while state != NULL:
        if state.encoder != NULL:
            encoder = <Recorder>state.encoder       # a finalizer may detach it
            if encoder.replay.num_readers == 0:
                abandon_all(encoder.replay.scripts)
            free_idle(&encoder.replay)
        state = state.next
    return forget_left_scripts(ordinal)


cdef int forget_device(int ordinal) except -1:
    forget_plans(ordinal)
    forget_templates(ordinal)
    forget_left_scripts(ordinal)
    return 0


cdef bint record_fill(StreamState* stream, object target, unsigned int pattern,
                      size_t width) except -1:
    return builtin.record_fill != NULL and builtin.record_fill(stream, target, pattern, width)


cdef int keep_on(StreamState* stream, object obj) except -1:
    return keep(encoder_of(stream), obj)


seam.graph.commit = commit
seam.graph.release_ended_batches = release_ended_batches_of
seam.graph.release_all_ended = release_all_ended
seam.graph.stop_replay = stop_replay_of
seam.graph.free_scripts = free_scripts
seam.graph.end_encoder = end_encoder
seam.graph.forget_device = forget_device
seam.graph.release_plans = release_plans
seam.graph.record_copy = record_copy
seam.graph.record_fill = record_fill
seam.graph.keep = keep_on
seam.graph.error_of = error_of
seam.graph.count_holders = count_holders
table.suspects = suspects
