"""Import, fork, exit, signals, subinterpreters: the process around the runtime."""

from __future__ import annotations

import re
import sys

import pytest

from cyrt import settings

SPIN = """
import cyrt
forever = cyrt.Kernel('extern "C" __global__ void forever(volatile int* x) { while (!*x) {} }',
                      "forever")
flag = cyrt.Buffer(4)
flag.fill(0)
"""


def test_import_opens_nothing_and_prints_nothing(python):
    done = python(
        """
        import sys, warnings
        warnings.simplefilter("error")
        import cyrt
        from cyrt.driver import table
        assert table._opened is None
        assert not any(name.startswith("cuda.") for name in sys.modules), "NVRTC was loaded"
        from pathlib import Path
        maps = Path("/proc/self/maps").read_text()
        assert "nvrtc" not in maps and "libcyrt_emu" not in maps and "libcuda.so" not in maps
        """,
        CYRT_DEVICE="auto",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_fork_after_use(python):
    done = python(
        """
        import os, sys
        import cyrt
        buffer = cyrt.Buffer(64)
        buffer.fill(5)
        stream = cyrt.Stream()
        pid = os.fork()
        if pid == 0:
            try:
                for use in (lambda: buffer.fill(0), lambda: cyrt.Buffer(8), stream.synchronize,
                            cyrt.Device, cyrt.synchronize):
                    try:
                        use()
                    except RuntimeError as error:
                        assert "fork" in str(error) and "spawn" in str(error), error
                    else:
                        raise AssertionError("used in a forked child")
                del buffer, stream
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(1)
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        out = bytearray(64)
        buffer.copy_to(out)
        assert out == bytes([5]) * 64
        """
    )
    assert done.returncode == 0, done.stderr


def test_fork_before_use(python):
    done = python(
        """
        import os
        import cyrt
        pid = os.fork()
        buffer = cyrt.Buffer(64)
        buffer.fill(5)
        cyrt.synchronize()
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
        """
    )
    assert done.returncode == 0, done.stderr


def test_exit_with_work_in_flight(python):
    done = python(
        """
        import cyrt
        k = cyrt.Kernel('extern "C" __global__ void k(int* x) { int v = 1;'
                        'for (int i = 0; i < 3000000; ++i) v = v * 5 + i; *x = v; }', "k")
        buffers = [cyrt.Buffer(4) for _ in range(4)]
        streams = [cyrt.Stream() for _ in range(4)]
        for stream, buffer in zip(streams, buffers):
            with stream:
                k[1, 1](buffer)
        print("end")
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.usefixtures("only_emulated")
def test_exit_does_not_wait_for_ever(python):
    """It names what it gives up, and the status is that of a failure."""
    done = python(SPIN + "forever[1, 1](flag)\n", CYRT_EXIT_TIMEOUT="0.5")
    assert done.returncode == 1
    text = "cyrt: work on device 0 did not end within 0.5 s (CYRT_EXIT_TIMEOUT) and was given up."
    assert done.stderr.startswith(text)
    if settings.get("CYRT_GRAPHS"):
        assert re.fullmatch(r" Operations in flight: .*forever\.\n", done.stderr[len(text) :])


def test_exit_does_not_wait_for_what_a_daemon_thread_launches_meanwhile(python):
    done = python(
        """
        import sys, threading, time
        import cyrt

        def work():
            x = cyrt.ones(1 << 14)
            while True:             # faster than the device
                x = x + 1

        threading.Thread(target=work, daemon=True).start()
        while cyrt.memory_stats()["in_use"] == 0:
            time.sleep(0.01)
        time.sleep(0.5)
        begin = time.monotonic()
        cyrt._leave()               # what the interpreter's exit calls
        print(time.monotonic() - begin < 30)
        """,
        CYRT_EXIT_TIMEOUT="60",
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_exit_waits_for_the_handlers_that_are_queued_and_no_others(python):
    done = python(
        """
        import threading, time
        import cyrt

        def add_more():
            x = cyrt.ones(10)
            while True:
                x = x + 1
                cyrt.current_encoder().add_completed_handler(lambda: time.sleep(0.01))
                cyrt.commit()
                time.sleep(0.005)   # there is always one that has not run

        called = []
        x = cyrt.ones(10) + 1
        cyrt.current_encoder().add_completed_handler(lambda: called.append(time.sleep(0.2)))
        cyrt.commit()
        threading.Thread(target=add_more, daemon=True).start()
        time.sleep(0.1)
        begin = time.monotonic()
        cyrt._leave()
        print(len(called), time.monotonic() - begin < 30)
        """,
        CYRT_EXIT_TIMEOUT="60",
    )
    assert (done.returncode, done.stdout) == (0, "1 True\n"), done.stderr


def test_exit_names_handlers_that_do_not_end(python):
    done = python(
        """
        import threading
        import cyrt
        x = cyrt.ones(10) + 1
        cyrt.current_encoder().add_completed_handler(threading.Event().wait)
        cyrt.commit()
        """,
        CYRT_EXIT_TIMEOUT="0.5",
    )
    assert done.returncode == 1
    assert done.stderr == (
        "cyrt: completion handlers did not end within 0.5 s (CYRT_EXIT_TIMEOUT) and were given "
        "up.\n"
    )


@pytest.mark.usefixtures("only_emulated")
@pytest.mark.parametrize(
    "use", ["cyrt.add(total, 1, out=total)", "module['f'][1, 1](total)"], ids=["built-in", "user's"]
)
def test_a_signal_handler_that_needs_code_whose_load_it_interrupts(python, use):
    """A signal comes during each load, as from a timer that is shorter than a load."""
    done = python(
        f"""
        import ctypes, signal
        import cyrt
        from cyrt.driver import table

        SOURCE = 'extern "C" __global__ void f(float* x) {{{{ *x += 1; }}}}'
        module = cyrt.Module(SOURCE)        # loaded on device 0
        device = cyrt.Device(1)
        with device:
            total, own = cyrt.zeros(1), cyrt.Stream()
        depth = deepest = 0

        def handler(signum, frame):
            global depth, deepest
            depth += 1
            deepest = max(depth, deepest)
            with device, own:
                {use}
            depth -= 1

        @ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_uint,
                          *[ctypes.c_void_p] * 2)
        def load(*arguments):
            if depth < 20:
                signal.raise_signal(signal.SIGALRM)
            return original(*arguments)

        signal.signal(signal.SIGALRM, handler)
        address = ctypes.cast(load, ctypes.c_void_p).value
        original = type(load)(table.replace("cuModuleLoadDataEx", address))
        with device:
            {use}
        print(0 < deepest < 10, total.item() > 1)
        """,
        CYRT_EMULATED_DEVICES="2",
    )
    assert (done.returncode, done.stdout) == (0, "True True\n"), done.stderr


def test_a_bad_time_limit_of_the_exit_is_an_error_of_the_first_use(python):
    done = python("import cyrt\ncyrt.zeros(3)\n", CYRT_EXIT_TIMEOUT="abc")
    assert done.returncode == 1
    assert done.stderr.endswith(
        "ValueError: CYRT_EXIT_TIMEOUT='abc': expected a number of seconds of 0 or more\n"
    )
    done = python("import cyrt", CYRT_EXIT_TIMEOUT="abc")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("only_emulated")
def test_ctrl_c_ends_a_wait(python):
    done = python(
        SPIN
        + """
import _thread, signal, threading, time
for name in ("all", "stream", "event", "copy"):
    forever[1, 1](flag)
    wait = {"all": cyrt.synchronize, "stream": cyrt.stream().synchronize,
            "event": cyrt.Event().record().synchronize,
            "copy": lambda: flag.copy_to(bytearray(4))}[name]
    signal.signal(signal.SIGINT, signal.default_int_handler)    # a shell may have ignored it
    threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        wait()
    except KeyboardInterrupt:
        assert time.monotonic() - begin < 20
    else:
        raise AssertionError("the wait ended by itself")
    cyrt.Device().reset()
    flag = cyrt.Buffer(4)
    flag.fill(0)
    forever = cyrt.Kernel('extern "C" __global__ void f(volatile int* x) { while (!*x) {} }', "f")
print("done")
""",
        CYRT_EXIT_TIMEOUT="0.5",
    )
    assert done.stdout == "done\n", done.stderr


@pytest.mark.skipif(sys.version_info < (3, 12), reason="subinterpreters by import came with 3.12")
def test_subinterpreter_is_refused_3_12(python):
    subinterpreter(
        python,
        "import _interpreters as i"
        if sys.version_info >= (3, 13)
        else "import _xxsubinterpreters as i",
    )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the same test for 3.11's module")
def test_subinterpreter_is_refused_3_11(python):
    subinterpreter(python, "import _xxsubinterpreters as i")


def subinterpreter(python, module):
    done = python(
        module
        + """
import cyrt
source = '''
try:
    import cyrt
except ImportError as error:
    print("refused:", error, flush=True)
else:
    print("imported", flush=True)
'''
run = i.run_string if hasattr(i, "run_string") else i.exec
run(i.create(), source)
"""
    )
    assert done.stdout.startswith("refused:"), (done.stdout, done.stderr)


def test_a_fault_is_the_cause_of_every_later_call(python, only_emulated):
    done = python(
        """
        import cyrt
        k = cyrt.Kernel('extern "C" __global__ void stray(int* p, long long n)'
                        '{ if (threadIdx.x == 3) p[n] = 1; }', "stray")
        buffer, other = cyrt.Buffer(1024), cyrt.Buffer(16)
        k[2, 8](buffer, 1 << 40)
        try:
            cyrt.synchronize()
        except cyrt.CudaError as error:
            first = error
            assert error.name == "CUDA_ERROR_ILLEGAL_ADDRESS"
            text = str(error)
            for part in ("stray", "thread", hex(buffer.ptr + (4 << 40))):
                assert part in text, text
        else:
            raise AssertionError("no fault")
        for use in (lambda: other.fill(0), cyrt.synchronize, lambda: cyrt.Buffer(99999999),
                    cyrt.Event, lambda: k[1, 1](other, 0), lambda: cyrt.stream().done,
                    lambda: other.copy_to(bytearray(16))):
            try:
                use()
            except cyrt.CudaError as error:
                assert error.__cause__ is first, error
                assert "failed before" in str(error)
            else:
                raise AssertionError("a faulted device answered")
        del buffer, k
        cyrt.Device(0).reset()
        fresh = cyrt.Buffer(16)
        fresh.fill(1)
        out = bytearray(16)
        fresh.copy_to(out)
        assert out == bytes([1]) * 16
        """,
        CYRT_CHECK="1",
    )
    assert done.returncode == 0, done.stderr


def test_exit_launches_what_every_stream_has_recorded(python):
    """Also beside a stream that is busy for longer than the exit waits."""
    done = python(
        """
        import time, numpy as np, cyrt
        m = cyrt.Module('''
            extern "C" __global__ void spin(long long n) {
                long long begin = clock64();
                while (clock64() - begin < n) { }
            }
            extern "C" __global__ void set(volatile int* x) { *x = 7; }''')
        pinned = cyrt.PinnedBuffer(4)
        view = np.frombuffer(pinned, np.int32)
        view[0] = 0
        def look():
            end = time.monotonic() + 20
            while view[0] != 7 and time.monotonic() < end:
                time.sleep(0.01)
            print(view[0])
        streams = [cyrt.Stream() for _ in range(4)]
        encoders = [cyrt.CommandEncoder(s) for s in streams]
        encoders[0].add_kernel(m["spin"], 1, 1, (1_500_000_000,))
        encoders[3].add_kernel(m["spin"], 1, 1, (1_500_000_000,))
        encoders[1].add_kernel(m["set"], 1, 1, (pinned,))
        cyrt._leave()               # what the interpreter's exit calls
        look()
        """,
        CYRT_EXIT_TIMEOUT="0.05",
    )
    assert done.stdout.split()[-1:] == ["7"], done.stderr
