"""The process's exit status, where work failed that nobody waited for."""

cdef extern from *:
    """
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    static int cyrt_failed;
    static void cyrt_at_exit(int status, void* unused) {
        (void)unused;
        if (status == 0 && cyrt_failed) {
            fflush(NULL);
            _exit(1);
        }
    }
    static inline int cyrt_register_exit(void) { return on_exit(cyrt_at_exit, NULL); }
    static inline void cyrt_set_failed(void) { cyrt_failed = 1; }
    """
    int cyrt_register_exit() noexcept
    void cyrt_set_failed() noexcept

# Python gives the status of what it ran, whatever its exit functions find: the C library's, which
# come last, may still change it.
cyrt_register_exit()


def fail():
    """Let the process end with status 1, if it ends with 0."""
    cyrt_set_failed()
