"""The process's end: its exit status, set if asynchronous work failed and no call reported it, and
whether libraries' exit functions run."""

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
    static void cyrt_end(int status, void* unused) {
        (void)unused;
        fflush(NULL);
        _exit(status == 0 && cyrt_failed ? 1 : status);
    }
    static inline int cyrt_register_exit(void) { return on_exit(cyrt_at_exit, NULL); }
    static inline int cyrt_register_end(void) { return on_exit(cyrt_end, NULL); }
    static inline void cyrt_set_failed(void) { cyrt_failed = 1; }
    """
    int cyrt_register_exit() noexcept
    int cyrt_register_end() noexcept
    void cyrt_set_failed() noexcept

# Python sets the status of the main program, regardless of its exit functions. The C library's exit
# functions run last, and may still change the status.
cyrt_register_exit()


def fail():
    """Make the process end with status 1 if it would end with 0."""
    cyrt_set_failed()


def skip_exit_functions():
    """Make the process end without the C library's exit functions that are registered already: they
    must not end a library in which another thread still runs."""
    cyrt_register_end()
