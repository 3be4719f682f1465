"""What ends a device or a process: faults, resets, forks, exits."""

from __future__ import annotations

from pathlib import Path

import pytest
from outside import only_batches

from cyrt import settings


def test_reset_with_recordings_open(python, only_emulated):
    done = python(
        """
        import cyrt
        source = 'extern "C" __global__ void k(int* x) { *x = 1; }'
        calls = []
        for how in ("plain", "concurrent", "capture", "batch", "handlers"):
            k = cyrt.Kernel(source, "k")
            x, encoder = cyrt.Buffer(4), cyrt.CommandEncoder()
            encoder.add_kernel(k, 1, 1, (x,))
            block = {"concurrent": encoder.concurrent, "capture": encoder.capture,
                     "batch": cyrt.batch}.get(how)
            if block is not None:
                block = block()
                block.__enter__()
            if how == "handlers":
                encoder.add_completed_handler(lambda: calls.append(1))
                encoder.keep(x)
            cyrt.Device(0).reset()
            if block is not None:
                try:
                    block.__exit__(None, None, None)
                except RuntimeError as error:
                    assert "reset" in str(error), error
            for call in (lambda: encoder.add_kernel(k, 1, 1, (x,)), encoder.synchronize):
                try:
                    call()
                except RuntimeError as error:
                    assert "reset" in str(error) or "capture" in str(error), error
                else:
                    raise AssertionError(how)
            try:
                encoder.close()
            except RuntimeError:
                pass
            x = cyrt.Buffer(4)
            cyrt.Kernel(source, "k")[1, 1](x)
            out = bytearray(4)
            x.copy_to(out)
            assert out == bytes([1, 0, 0, 0])
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_forked_while_another_thread_launches(python):
    """The child finds a commit under way that nobody will end."""
    done = python(
        """
        import os, sys, threading, time
        import cyrt
        k = cyrt.Kernel('extern "C" __global__ void k(int* x) { *x = 1; }', "k")
        stop = threading.Event()
        def work():
            x = cyrt.Buffer(4)
            encoder = cyrt.CommandEncoder()
            keep.append((encoder, x))
            while not stop.is_set():
                encoder.add_kernel(k, 1, 1, (x,))
                encoder.commit()
        keep = []
        threads = [threading.Thread(target=work) for _ in range(2)]
        for t in threads: t.start()
        for _ in range(25):
            time.sleep(0.002)
            child = os.fork()
            if child == 0:
                import signal
                signal.alarm(10)
                for encoder, x in keep:
                    for use in (lambda: x.ptr, encoder.stream.synchronize, cyrt.synchronize):
                        try:
                            use()
                        except RuntimeError as error:
                            assert "fork" in str(error), error
                keep.clear(); encoder = x = None
                os._exit(0)
            _, status = os.waitpid(child, 0)
            if status:
                break
        stop.set()
        for t in threads: t.join()
        sys.exit(status != 0)
        """
    )
    assert done.returncode == 0, done.stderr


# What a child of `os.fork` does is told by its exit status: it is killed after 20 seconds.
FORK = """
import ctypes, os, signal, sys, threading, warnings
import cyrt
from cyrt.driver import table

warnings.simplefilter("ignore")     # Python 3.12 warns of a fork beside other threads

def fork(work):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]

def refused(use):
    try:
        use()
    except RuntimeError as error:
        assert "fork" in str(error), error
    else:
        raise AssertionError("used in a forked child")

class Held:
    # A driver function that waits, when another thread calls it, until `release` is set.
    def __init__(self, name, *types):
        self.inside, self.release = threading.Event(), threading.Event()
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *types)
        self.hook = prototype(self.call)
        address = ctypes.cast(self.hook, ctypes.c_void_p).value
        self.original = prototype(table.replace(name, address))
    def call(self, *arguments):
        if threading.current_thread() is not threading.main_thread():
            self.inside.set()
            self.release.wait(60)
        return self.original(*arguments)
"""


def test_forked_while_another_thread_has_a_turn(python):
    """Its objects end in the child first of all, and must not wait for that turn."""
    done = python(
        FORK
        + """
(cyrt.zeros(50) + 1).numpy()
launch = Held("cuGraphLaunch" if os.environ["GRAPHS"] == "1" else "cuLaunchKernel",
              *([ctypes.c_void_p] * 2 if os.environ["GRAPHS"] == "1" else
                [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]))
def work():     # on the thread's own stream, which ends with the thread
    y = cyrt.zeros(50) + 1
    cyrt.commit()
    y += 1
thread = threading.Thread(target=work)
thread.start()
assert launch.inside.wait(30)
def child():
    refused(lambda: cyrt.zeros(3))
    refused(cyrt.synchronize)
status = fork(child)
launch.release.set()
thread.join()
assert status == 0, status
""",
        GRAPHS=str(int(settings.get("CYRT_GRAPHS"))),
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_forked_while_another_thread_has_recorded(python):
    """The objects of that thread end in the child, which neither calls the driver nor prints."""
    done = python(
        FORK
        + """
from pathlib import Path
cyrt.zeros(50).numpy()
recorded, end = threading.Event(), threading.Event()
def work():     # on the thread's own stream, which ends with the thread
    local.own = cyrt.CommandEncoder(), cyrt.Event(), cyrt.Stream()
    local.y = cyrt.zeros(50)
    local.own[1].record()
    local.y += 1
    cyrt.current_encoder().keep([local.y])
    cyrt.current_encoder().add_completed_handler(lambda: None)
    recorded.set()
    end.wait(60)
local = threading.local()
thread = threading.Thread(target=work)
thread.start()
assert recorded.wait(30)
calls = []
def note(name):
    def call(*arguments):
        calls.append(name)
        return 0
    hook = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 6)(call)
    keep.append(hook)
    return table.replace(name, ctypes.cast(hook, ctypes.c_void_p).value)
keep = []
names = ("cuGraphLaunch", "cuEventQuery", "cuEventDestroy", "cuStreamQuery",
         "cuMemFree", "cuModuleUnload", "cuGraphExecDestroy", "cuCtxGetCurrent")
before = {name: note(name) for name in names}
def child():
    assert not calls, calls
status = fork(child)
for name, address in before.items():
    table.replace(name, address)
end.set()
thread.join()
cyrt.synchronize()
assert status == 0, status
"""
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_forked_while_another_thread_loads_code(python):
    done = python(
        FORK
        + """
source = 'extern "C" __global__ void k(int* x) { extern __shared__ int s[]; *x = s[0] = 1; }'
x, kernel = cyrt.zeros(1, dtype="int32"), cyrt.Kernel(source, "k")
kernel[1, 1, 4](x)
cyrt.synchronize()
load = Held("cuModuleLoadDataEx", *[ctypes.c_void_p] * 2, ctypes.c_uint, *[ctypes.c_void_p] * 2)
thread = threading.Thread(target=lambda: cyrt.Kernel(source.replace("= 1", "= 2"), "k"))
thread.start()
assert load.inside.wait(30)
def child():
    refused(lambda: kernel[1, 1, 60_000](x))
    refused(lambda: cyrt.Kernel(source, "k")[1, 1, 4](x))
    refused(lambda: cyrt.cos(x))
status = fork(child)
load.release.set()
thread.join()
assert status == 0, status
"""
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_forked_by_a_signal_handler_during_a_wait(python):
    done = python(
        FORK
        + f"sys.path.insert(0, {str(Path(__file__).parent.parent)!r})"
        + """
from gates import Gate
gate, status, child = Gate(), None, 0
def handler(*_):
    global status, child
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        return
    status = os.waitpid(child, 0)[1]
    gate.open()
x = cyrt.zeros(50)
x += 1      # loads the kernel, for which a driver may wait for the device
x.numpy()
gate.wait()
x += 1
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    cyrt.synchronize()
except RuntimeError as error:
    os._exit(not (child == 0 and "fork" in str(error)))
assert status == 0, status
assert x.numpy().tolist() == [2] * 50
"""
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("how", ["recording", "batch", "concurrent", "capture"])
def test_exit_with_one_open(python, how):
    done = python(
        f"""
        import cyrt
        k = cyrt.Kernel('extern "C" __global__ void k(int* x) {{ *x = 1; }}', "k")
        x = cyrt.Buffer(4)
        encoder = cyrt.CommandEncoder()
        encoder.add_kernel(k, 1, 1, (x,))
        k[1, 1](cyrt.Buffer(4))
        block = {{"batch": cyrt.batch, "concurrent": encoder.concurrent,
                  "capture": encoder.capture}}.get({how!r})
        if block is not None:
            block = block()
            block.__enter__()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


@only_batches
def test_after_a_fault_every_call_says_what_happened_first(python, only_emulated):
    done = python(
        """
        import cyrt
        m = cyrt.Module('extern "C" __global__ void stray(int* p, long long n) { p[n] = 1; }'
                        'extern "C" __global__ void fine(int* p) { *p = 1; }')
        x, y = cyrt.Buffer(64), cyrt.Buffer(64)
        encoder, later = cyrt.CommandEncoder(), cyrt.CommandEncoder()
        later.add_kernel(m["fine"], 1, 1, (y,))
        encoder.add_kernel(m["fine"], 1, 1, (x,))
        encoder.add_kernel(m["stray"], 1, 1, (x, 1 << 40))
        encoder.keep(object())
        try:
            encoder.synchronize()
        except cyrt.CudaError as error:
            first = error
            assert "stray" in str(error) and "fine" in str(error), error
            assert "Operations in flight: fine, stray." in str(error), error
        for call in (encoder.synchronize, later.commit, later.synchronize,
                     lambda: encoder.add_kernel(m["fine"], 1, 1, (x,)),
                     lambda: later.add_memset(y, 1), lambda: later.record(cyrt.Event()),
                     lambda: later.capture().__enter__(), cyrt.synchronize,
                     lambda: m["fine"][1, 1](y), lambda: y.copy_to(bytearray(64))):
            try:
                call()
            except cyrt.CudaError as error:
                assert "failed before, in cuStreamSynchronize" in str(error), error
                assert error.__cause__ is first, error.__cause__
            else:
                raise AssertionError
        del encoder, later
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_launch_blocking_names_the_line_of_an_encoders_operation(python, only_emulated):
    done = python(
        """
        import cyrt
        k = cyrt.Kernel('extern "C" __global__ void stray(int* p, long long n) { p[n] = 1; }',
                        "stray")
        x, encoder = cyrt.Buffer(64), cyrt.CommandEncoder()
        encoder.add_kernel(k, 1, 1, (x, 0))
        try:
            with encoder.concurrent():
                encoder.add_kernel(k, 1, 1, (x, 1))
                encoder.add_kernel(
                    k, 1, 1, (x, 1 << 40))
        except cyrt.CudaError as error:
            assert "recorded at <string>:10" in str(error), error
        else:
            raise AssertionError
        """,
        CYRT_LAUNCH_BLOCKING="1",
    )
    assert done.returncode == 0, done.stderr


def test_launch_blocking_names_the_operation_of_whichever_stream(python, only_emulated):
    """Not one that another stream ran before, nor one that was refused."""
    done = python(
        """
        import ctypes, threading
        import cyrt
        from cyrt.driver import table
        k = cyrt.Kernel('extern "C" __global__ void stray(int* p, long long n) { p[n] = 1; }',
                        "stray")
        x = cyrt.Buffer(64)
        first, second = cyrt.Stream(), cyrt.Stream()
        with first:
            k[1, 1](x, 0)
        with second:
            k[1, 1](x, 1)
        thread = threading.Thread(target=lambda: k[1, 1](x, 2))
        thread.start()
        thread.join()
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
        refused = prototype(lambda *_: 801)
        before = [(name, table.replace(name, ctypes.cast(refused, ctypes.c_void_p).value))
                  for name in ("cuGraphLaunch", "cuLaunchKernelEx")]
        with first:
            try:
                k[1, 1](cyrt.Buffer(64), 3)
            except cyrt.CudaError as error:
                assert "recorded at <string>:22" in str(error), error
        for name, address in before:
            table.replace(name, address)
        try:
            with second:
                k[1, 1](x, 1 << 40)
        except cyrt.CudaError as error:
            assert "recorded at <string>:29.\\n" in str(error), error
        else:
            raise AssertionError
        """,
        CYRT_LAUNCH_BLOCKING="1",
    )
    assert done.returncode == 0, done.stderr


def test_a_warning_that_is_an_error_loses_no_batch(python):
    """The warning of a cache that is too small; what is recorded is launched all the same."""
    done = python(
        """
        import warnings
        import cyrt
        warnings.simplefilter("error")
        k = cyrt.Kernel('extern "C" __global__ void inc(int* x) { *x += 1; }', "inc")
        x, out, total = cyrt.Buffer(4), bytearray(4), 0
        x.fill(0)
        for _ in range(8):
            for n in (1, 2, 3):
                for _ in range(n):
                    k[1, 1](x)
                cyrt.commit()
                total += n
        x.copy_to(out)
        assert int.from_bytes(out, "little") == total, (out, total)
        """,
        CYRT_GRAPH_CACHE_SIZE="1",
    )
    assert done.returncode == 0, done.stderr
