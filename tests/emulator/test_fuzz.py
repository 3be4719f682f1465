"""PTX that is nearly right never ends the process: a short run of tools/fuzz_ptx.py's mutations."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("only_emulated")

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"

PROGRAM = '''
import ctypes, random, sys
from ctypes import byref, c_uint64, c_void_p
from pathlib import Path
import cyrt
sys.path.insert(0, TOOLS)
from ptx_mutations import mutate, own_seeds

# The load's errors: of the PTX, its version, its first bytes; of too large a variable.
REFUSED = {218, 222, 200, 2}
driver = ctypes.CDLL(str(Path(cyrt.__file__).parent / "emulator" / "libcyrt_emu.so"))
driver.cuInit(0)
address = c_uint64()

def open_context():
    context = c_void_p()
    assert driver.cuDevicePrimaryCtxRetain(byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuMemAlloc_v2(byref(address), 1 << 16) == 0

def run(text):
    """The load's code; what loads is launched as well, and a context that is lost is replaced."""
    module, kernel = c_void_p(), c_void_p()
    code = driver.cuModuleLoadData(byref(module), text.encode("latin-1"))
    if code:
        return code
    count = ctypes.c_uint()
    driver.cuModuleGetFunctionCount(byref(count), module)
    driver.cuModuleEnumerateFunctions(byref(kernel), 1, module)
    values = [c_uint64(address.value + 64 * i) for i in range(64)]
    params = (c_void_p * 64)(*map(ctypes.addressof, values))
    if count.value:
        driver.cuLaunchKernel(kernel, 4, 1, 1, 40, 1, 1, 256, None, params, None)
    if driver.cuCtxSynchronize():
        assert driver.cuDevicePrimaryCtxReset_v2(0) == 0
        open_context()
    else:
        driver.cuModuleUnload(module)
    return 0

open_context()
seeds = own_seeds()
for seed in seeds:
    assert run(seed) == 0
chance = random.Random(SEED)
codes = []
for _ in range(400):
    text = mutate(chance, chance.choice(seeds))
    if "bra" not in text:           # a loop without end would have to be waited for
        codes.append(run(text.replace(chr(0), " ")))
assert set(codes) <= {0, *REFUSED}, sorted(set(codes))
assert 0 < codes.count(0) < len(codes)
'''


@pytest.mark.parametrize("seed", range(3))
def test_mutated_ptx(python, seed):
    program = PROGRAM.replace("TOOLS", repr(str(TOOLS)))
    done = python(program.replace("SEED", str(seed)), CYRT_EMULATED_MEMORY="64M")
    assert done.returncode == 0, done.stderr
