"""What every test may use."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import shutil
import signal
import sys
import tempfile
import textwrap
from pathlib import Path

import hypothesis
import numpy as np
import processes
import pytest

# Folders that have modules beside their tests: any test may import these.
sys.path[:0] = {
    str(path.parent)
    for path in Path(__file__).parent.glob("*/*.py")
    if not path.name.startswith(("test_", "conftest"))
}

# A run draws the examples of the run before, so that it tells of a change and not of its luck;
# new ones: pytest --hypothesis-profile=explore.
hypothesis.settings.register_profile("repeat", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("explore", deadline=None, print_blob=True)
hypothesis.settings.load_profile("repeat")

# A shell lets its jobs in the background ignore Ctrl-C, which many tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("CYRT_DEVICE", "emulated")
# JAX would take three quarters of a GPU's memory, which other test processes need.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# Each worker's NumPy would use all processors: its threads spin while they wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Tests start hundreds of processes, whose imports take twice the time without bytecode.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# One for all processes of a run: the outermost makes it and removes it.
if "CYRT_TEST_CACHE" not in os.environ:
    os.environ["CYRT_TEST_CACHE"] = tempfile.mkdtemp(prefix="cyrt-tests-")
    atexit.register(shutil.rmtree, os.environ["CYRT_TEST_CACHE"], ignore_errors=True)
os.environ["CYRT_CACHE_DIR"] = os.environ["CYRT_TEST_CACHE"]


def pytest_collection_modifyitems(items):
    if os.environ["CYRT_DEVICE"] == "cuda":
        return
    skip = pytest.mark.skip(reason="needs a GPU: CYRT_DEVICE=cuda pytest")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(autouse=True, scope="module")
def freeze_objects():
    """What exists before a file's tests stays: the collector, which many tests call, need not visit
    it."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """With ``CYRT_TEST_GC=N`` the collector runs in tests after every N allocations."""
    before = gc.get_threshold()
    gc.set_threshold(int(os.environ.get("CYRT_TEST_GC", before[0])), *before[1:])
    try:
        return (yield)
    finally:
        gc.set_threshold(*before)


@pytest.fixture(autouse=True, scope="module")
def return_memory():
    """Free what the pool holds after each file, since other test processes may share the GPU."""
    yield
    if os.environ["CYRT_DEVICE"] == "cuda":
        import cyrt

        cyrt.trim_memory()


@pytest.fixture(scope="session")
def emulated():
    import cyrt

    return cyrt.Device(0).emulated


@pytest.fixture
def only_emulated(emulated):
    """For what a GPU cannot survive or does not report."""
    if not emulated:
        pytest.skip("shows the emulated device's own checks; a GPU's context would be lost")


@pytest.fixture
def pooled():
    """For what the pool of memory does."""
    from cyrt import settings

    if settings.get("CYRT_CHECK") or not settings.get("CYRT_POOL"):
        pytest.skip("shows the pool: CYRT_POOL=0")


@pytest.fixture
def batched():
    """For what batches are."""
    from cyrt import settings

    if not settings.get("CYRT_GRAPHS") or settings.get("CYRT_LAUNCH_BLOCKING"):
        pytest.skip("looks at batches; CYRT_GRAPHS=0 and CYRT_LAUNCH_BLOCKING=1 have none")


@pytest.fixture
def fresh_stream():
    """The current stream has no round, and no plans of a stream that has ended: what other tests
    ran decides nothing."""
    import cyrt
    from cyrt.graph import plan_cache

    plan_cache.forget()
    with cyrt.Stream() as stream:
        yield stream


@pytest.fixture
def unchecked():
    """For unordered work on the same memory, on purpose."""
    from cyrt import settings

    if settings.get("CYRT_CHECK"):
        pytest.skip("races on purpose, which CYRT_CHECK=1 reports")


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="tested with PyTorch, which is not installed")


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy", reason="tested with CuPy, which is not installed")


@pytest.fixture
def rng():
    return np.random.default_rng(7)


# They are never freed: a thread that has read a function's address may call it after the test.
callbacks = []


@pytest.fixture
def own_products():
    """Products are those of the catalogue's kernels, wherever a library would be faster."""
    from cyrt.builtin import library_product

    library_product.decide(0, False)
    yield
    library_product.decide(0)


@pytest.fixture
def replaced():
    """Put a Python function into a driver function's place until the test ends.

    It is called with the driver's own function and the arguments, and gives a CUresult. Other
    threads may run, and objects may be destroyed, inside every call of it, also where the driver's
    own function keeps the GIL.
    """
    from cyrt.driver import table

    before = []

    def replace(name, types, function, version=0):
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *types)
        callbacks.append(prototype(lambda *arguments: function(original, *arguments)))
        address = table.replace(name, ctypes.cast(callbacks[-1], ctypes.c_void_p).value, version)
        original = prototype(address)
        before.append((name, address, version))

    yield replace
    for each in reversed(before):
        table.replace(*each)


@pytest.fixture(scope="session")
def fork_server():
    server = processes.ForkServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def python(fork_server):
    """Run a program in a process of its own, which imports from `folders` too; returns the finished
    process.

    NumPy and cyrt have been imported there. With `fresh`, and where variables are set that other
    libraries read, the interpreter is a new one.
    """

    def run(program, *, seconds=processes.SECONDS, folders=(), fresh=False, **environment):
        program = textwrap.dedent(program)
        fresh = fresh or not all(name.startswith("CYRT_") for name in environment)
        # The package may be installed in a folder that this variable names.
        before = os.environ.get("PYTHONPATH")
        path = [*map(str, folders), *([before] if before else [])]
        if path:
            environment["PYTHONPATH"] = os.pathsep.join(path)
        environment = {**os.environ, **environment}
        if not fresh:
            return fork_server.run(program, seconds=seconds, env=environment)
        # -P: the installed package, not the source tree in the current folder.
        arguments = [sys.executable, "-P", "-c", program]
        return processes.run(arguments, seconds=seconds, env=environment)

    return run


@pytest.fixture
def setting(monkeypatch):
    """Set ``CYRT_`` variables for the test."""
    from cyrt import settings
    from cyrt.jit import cache

    def forget():
        settings.get.cache_clear()
        cache.current.cache_clear()

    def set(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        forget()

    yield set
    monkeypatch.undo()
    forget()


@pytest.fixture
def folder(setting, monkeypatch, tmp_path):
    """The folder of a disk cache of the test's own."""
    from cyrt.jit import toolchain

    monkeypatch.setattr(toolchain, "_library", None)
    setting(CYRT_CACHE="1", CYRT_CACHE_DIR=str(tmp_path / "cache"))
    return tmp_path / "cache"
