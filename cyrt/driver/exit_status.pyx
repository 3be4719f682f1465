"""The process's exit status, set if asynchronous work failed and no call reported it."""

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

# Python sets the status of the main program, regardless of its exit functions. The C library's exit
# functions run last, and may still change the status.
cyrt_register_exit()


def fail():
    """Make the process end with status 1 if it would end with 0."""
    cyrt_set_failed()
