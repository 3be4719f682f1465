/* A function in a driver function's place: it makes the call, and then the signal comes, where no
 * Python code sees it. */
#include <signal.h>

typedef int (*Call)(void*, void*, void*, void*, void*);

Call original;
int countdown; /* the signal comes after so many calls; 0: never */

int interrupt(void* a, void* b, void* c, void* d, void* e) {
    int result = original(a, b, c, d, e);
    if (countdown > 0 && --countdown == 0) {
        raise(SIGINT);
    }
    return result;
}
