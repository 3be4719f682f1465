"""The tests' own processes."""

from __future__ import annotations

import signal

import processes
import pytest


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("program", ["import time; time.sleep(99)", "while True: pass"])
def test_a_process_that_does_not_end_shows_its_stacks(python, program, fresh):
    program = f"""
import threading
def work():
    {program}
print("begun", flush=True)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    seconds = 3 if fresh else 1
    with pytest.raises(AssertionError) as raised:
        python(program, seconds=seconds, fresh=fresh)
    text = str(raised.value)
    assert f"has not ended after {seconds} s" in text
    assert "begun" in text
    assert "Current thread" in text or "Thread 0x" in text
    assert "in work" in text


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(
    ("program", "status", "out", "error"),
    [
        ("print(__name__, sys.argv)", 0, "__main__ ['-c']\n", ""),
        ("sys.exit(3)", 3, "", ""),
        ("sys.exit('bad')", 1, "", "bad\n"),
        ("raise KeyError(7)", 1, "", "KeyError: 7\n"),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, "", ""),
        ("signal.raise_signal(signal.SIGINT)", -signal.SIGINT, "", "KeyboardInterrupt\n"),
        ("os._exit(9)", 9, "", ""),
        ("atexit.register(print, 'end')\nprint(os.environ['CYRT_GRAPHS'])", 0, "1\nend\n", ""),
        ("os.write(1, b'x' * 200_000)", 0, "x" * 200_000, ""),
    ],
    # The environment has the name of the test, which may not be as long as the last output.
    ids=["argv", "status", "text", "error", "killed", "interrupted", "at once", "at exit", "long"],
)
def test_both_kinds_of_process_end_alike(python, program, status, out, error, fresh):
    done = python(f"import atexit, os, signal, sys\n{program}", fresh=fresh, CYRT_GRAPHS="1")
    assert (done.returncode, done.stdout) == (status, out)
    assert done.stderr.endswith(error) if error else not done.stderr


def test_a_process_after_one_that_was_killed(python, monkeypatch):
    monkeypatch.setattr(processes, "MORE_SECONDS", 1)
    program = """
    import signal, time
    signal.signal(signal.SIGABRT, signal.SIG_IGN)
    time.sleep(99)
    """
    with pytest.raises(AssertionError, match="has not ended after 1 s"):
        python(program, seconds=1)
    assert python("print(5)").stdout == "5\n"


def test_a_forked_process_has_no_device_and_no_thread(python):
    program = """
    import os, sys, threading
    from cyrt import settings
    from cyrt.driver import table
    print("cyrt" in sys.modules, settings.get.cache_info().currsize, threading.active_count())
    print(len(os.listdir("/proc/self/task")), table.is_open(), os.getsid(0) == os.getpid())
    """
    assert python(program).stdout == "True 0 1\n1 False True\n"
