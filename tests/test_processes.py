"""The tests' own processes."""

from __future__ import annotations

import sys

import processes
import pytest


@pytest.mark.parametrize("program", ["import time; time.sleep(99)", "while True: pass"])
def test_a_process_that_does_not_end_shows_its_stacks(program):
    program = f"""
import threading
def work():
    {program}
print("begun", flush=True)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    with pytest.raises(AssertionError) as raised:
        processes.run([sys.executable, "-c", program], seconds=3)
    text = str(raised.value)
    assert "has not ended after 3 s" in text
    assert "begun" in text
    assert "Current thread" in text or "Thread 0x" in text
    assert "in work" in text
