"""Waits on a machine whose processors have too much to do."""

from __future__ import annotations

import shutil
import subprocess

import pytest

READS = 100
LIBRARY = r"""
#include <time.h>
static int yields;
int num_yields(void) { return yields; }
int sched_yield(void) {
    struct timespec t = {0, 10000000};
    __atomic_fetch_add(&yields, 1, __ATOMIC_SEQ_CST);
    nanosleep(&t, 0);
    return 0;
}
"""
PROGRAM = f"""
import ctypes, os, time
import cyrt
x = cyrt.ones(8)
kernel = cyrt.Kernel('''extern "C" __global__ void slow(float* x) {{
    unsigned long long now, end;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(end));
    end += 200000;
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now < end);
    x[0] += 1;
}}''', "slow")
kernel[1, 1](x)
x.numpy()
library = ctypes.CDLL(os.environ["LD_PRELOAD"])
before, begun = library.num_yields(), time.monotonic()
for _ in range({READS}):
    kernel[1, 1](x)
    x.numpy()
print(library.num_yields() - before, time.monotonic() - begun)
"""


def test_waits_do_not_yield_when_others_take_the_processor(python, tmp_path):
    """Each yield takes 10 ms: after the first one nobody yields for 80 ms."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source, library = tmp_path / "yield.c", tmp_path / "yield.so"
    source.write_text(LIBRARY)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    done = python(PROGRAM, LD_PRELOAD=str(library))
    assert done.returncode == 0, done.stderr
    yields, seconds = map(float, done.stdout.split())
    assert yields <= 4 * (1 + seconds / 0.1)
