"""The process ends, or a context is reset, while others are at work on the emulated device."""

from __future__ import annotations

import sys
from pathlib import Path

import processes
import pytest

import cyrt

pytestmark = pytest.mark.usefixtures("only_emulated")

PROGRAM = '''
import ctypes, sys, threading, time
from ctypes import byref, c_uint64, c_void_p

driver = ctypes.CDLL(sys.argv[1])
PTX = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b32 %r<4>; .reg .b64 %l<2>; .reg .pred %p<2>;
    ld.param.u64 %l1, [p];
    mov.u32 %r1, 0;
again:
    add.u32 %r1, %r1, 1;
    st.global.u32 [%l1], %r1;
    setp.lt.u32 %p1, %r1, ROUNDS;
    @%p1 bra again;
    FILLING
    ret;
}
""".replace(b"ROUNDS", b"100000").replace(b"FILLING", b"add.u32 %r2, %r1, %r3;\\n" * 3000)
codes = set()

def work():
    """Load, launch and record graphs, in a context that may be gone at any call."""
    while not stopped:
        context, module, kernel, stream, graph, exec_ = (c_void_p() for _ in range(6))
        address = c_uint64()
        driver.cuDevicePrimaryCtxRetain(byref(context), 0)
        driver.cuCtxPushCurrent_v2(context)
        codes.add(driver.cuModuleLoadData(byref(module), PTX))
        driver.cuModuleGetFunction(byref(kernel), module, b"k")
        driver.cuMemAlloc_v2(byref(address), 4096)
        driver.cuStreamCreate(byref(stream), 1)
        params = (c_void_p * 1)(ctypes.addressof(address))
        launch = kernel, 4, 1, 1, 32, 1, 1, 0, stream, params, None
        codes.add(driver.cuLaunchKernel(*launch))
        driver.cuStreamBeginCapture_v2(stream, 1)
        driver.cuLaunchKernel(*launch)
        driver.cuStreamEndCapture(stream, byref(graph))
        driver.cuGraphInstantiateWithFlags(byref(exec_), graph, c_uint64(0))
        driver.cuGraphLaunch(exec_, stream)
        driver.cuModuleUnload(module)
        driver.cuCtxPopCurrent_v2(byref(context))

driver.cuInit(0)
stopped = False
threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
while 0 not in codes:
    time.sleep(0.001)
'''


@pytest.fixture
def run():
    library = Path(cyrt.__file__).parent / "emulator" / "libcyrt_emu.so"

    def run(ending):
        return processes.run([sys.executable, "-P", "-c", PROGRAM + ending, library])

    return run


def test_nothing_is_destroyed_by_exit():
    """The library registers no destructor of a static object: other threads may be using it."""
    library = Path(cyrt.__file__).parent / "emulator" / "libcyrt_emu.so"
    assert b"\0__cxa_atexit\0" not in library.read_bytes()


def test_exit_while_others_load_and_launch(run):
    for delay in range(6):
        done = run(f"time.sleep({delay / 50}); sys.exit(0)")
        assert (done.returncode, done.stderr) == (0, "")


def test_reset_while_others_load_and_launch(run):
    done = run("""
for _ in range(60):
    time.sleep(0.005)
    assert driver.cuDevicePrimaryCtxReset_v2(0) == 0
stopped = True
for thread in threads:
    thread.join()
print(sorted(codes))
""")
    assert (done.returncode, done.stderr) == (0, "")
    assert "709" in done.stdout  # some calls came after their context was gone
