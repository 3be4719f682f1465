"""Floors: the same work as a C loop over the driver's own functions."""

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu
from cyrt.kernels.kernel cimport Kernel
from cyrt.runtime.device cimport current_ordinal, enter, leave
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.stream cimport current_state, flush

cdef extern from *:
    """
    #include <time.h>
    static inline double cyrt_floor_now(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec + t.tv_nsec * 1e-9;
    }
    """
    double cyrt_floor_now() noexcept nogil


def launch_loop(Kernel kernel not None, unsigned int grid, unsigned int block, x, b, y, int n,
                int rounds):
    """Seconds that `rounds` raw launches of ``kernel(x, b, y, n)`` take the host.

    The context is current and the arguments lie ready, as in the tightest program in C.
    """
    cdef int ordinal = current_ordinal()
    cdef LoadedFunction function = kernel.load(ordinal)
    cdef CUstream stream = current_state(ordinal).handle
    cdef unsigned int epoch = current_state(ordinal).epoch
    cdef CUdeviceptr px = x.ptr, pb = b.ptr, py = y.ptr
    cdef void* params[4]
    cdef CUresult result = CUDA_SUCCESS
    cdef double begin, end
    cdef int _i
    cdef int entered
    flush(current_state(ordinal))
    entered = enter(ordinal, epoch, b"cuLaunchKernel")
    params[0], params[1], params[2], params[3] = &px, &pb, &py, &n
    with nogil:
        begin = cyrt_floor_now()
        for _i in range(rounds):
            result = cu.cuLaunchKernel(function.handle, grid, 1, 1, block, 1, 1, 0, stream, params,
                                       NULL)
            if result != CUDA_SUCCESS:
                break
        end = cyrt_floor_now()
    leave(ordinal, entered, result, b"cuLaunchKernel")
    return end - begin
