# Failures that kernels report, such as a matrix that has no inverse.
#
# INVARIANTS
# - A stream's failure word is page-locked memory, which its kernels write and the host reads after
#   a wait, without a copy: NO_FAILURE, or the number of the call's site in the upper half, and that
#   of the failed item in the lower half. The least number stays, so that the error does not depend
#   on the order in which blocks run. The word behind it is the number of failures.
# - A site is a function of cyrt and the line that called it. The parameters of a program that
#   repeats its calls therefore do not change.
# - Whatever waits for a value calls `raise_failure` for the streams that it waited for; it raises
#   once.

from cyrt.runtime.state cimport StreamState

cdef extern from *:
    """
    /* The device may write the words at any time. */
    static inline unsigned long long cyrt_take(unsigned long long* word, unsigned long long next) {
        return __atomic_exchange_n(word, next, __ATOMIC_ACQ_REL);
    }
    static inline unsigned long long cyrt_peek(const unsigned long long* word) {
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }
    """
    unsigned long long cyrt_take(unsigned long long* word, unsigned long long next) noexcept
    unsigned long long cyrt_peek(const unsigned long long* word) noexcept

cdef enum:
    NO_FAILURE = -1

# Raise the error of a failure on the stream that was not raised yet.
cdef inline int raise_failure(StreamState* stream) except -1:
    if stream.failure != NULL \
            and cyrt_peek(stream.failure) != <unsigned long long>NO_FAILURE:
        return raise_reported(stream)
    return 0
cdef int raise_reported(StreamState* stream) except -1
# Return the number of a site: the function called by the line that is running, and its error's
# text, which may contain "{}", the number of the failed item.
cdef long long site_of(str function, str text) except -1
